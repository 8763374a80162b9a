import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.corpus.partition import list_sealed
from core.storage.store import Store

Tidemark = Callable[..., Any]
A, B, C = ({"text": f"{each}: " + "sand and tide " * 20, "date": "2024-05-01"} for each in "abc")


def _write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_month_that_cannot_be_sealed_stops_no_other(
    tidemark: Tidemark, home: Path, tmp_path: Path
) -> None:
    path = _write(tmp_path / "a.jsonl", [A, {**B, "date": "2024-06-01"}])
    command = ("import", "set", path, "--source", "news")
    assert tidemark(*command).out.splitlines() == [
        "news 2024-05: 1 document", "news 2024-06: 1 document",
    ]  # fmt: skip
    _write(path, [C, {**B, "date": "2024-06-01"}, {**C, "date": "2024-07-01"}, {"text": "x"}])
    ran = tidemark(*command)
    assert ran.code == 1 and "use --replace" in ran.err
    assert ran.out.splitlines() == ["news 2024-06: 1 document", "news 2024-07: 1 document"]
    assert len(list_sealed(Store(str(home)))) == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--column content", "is not FIELD=COLUMN"), ("--column a=b", "unknown field 'a'"),
        ("--column text=a --column text=b", "given twice"),
        ("--undated --month 2024-05", "contradict"),
        ("--date-column x --months-in-names", "contradict"), ("--month 2024-13", "is not a month"),
        ("--column text=body", "no column `body`.*its columns are: text, date"),
        ("--date-column no", "no row has a column"), ("--months-in-names", "no month in the name"),
    ],
)  # fmt: skip
def test_requests_that_cannot_be_meant(
    options: str, says: str, tidemark: Tidemark, tmp_path: Path
) -> None:
    path = _write(tmp_path / "a.jsonl", [A, B, C])
    ran = tidemark("import", "set", path, "--source", "news", *options.split())
    assert ran.code in (1, 2)
    assert re.search(says, ran.err)
