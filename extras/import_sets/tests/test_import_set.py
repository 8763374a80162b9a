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


@pytest.mark.long
def test_each_category_of_a_set_has_its_own_gap_and_rank(
    tidemark: Tidemark, home: Path, tmp_path: Path
) -> None:
    """As Uncheatable Eval's monthly files: one of them has all categories."""
    for number, month in enumerate(("2024-01", "2024-02", "2024-03", "2024-04")):
        rows = [
            {"content": f"{month} {category} {each}: " + f"{category} and tide {number} " * 20,
             "category": category}
            for each in range(3)
            for category in ("bbc_news", "arxiv_cs")
        ]  # fmt: skip
        path = _write(tmp_path / f"UncheatableEval-{month}.jsonl", [*rows, {"content": "x" * 200}])
        ran = tidemark(
            "import", "set", path, "--source", "ue", "--column", "text=content",
            "--source-column", "category", "--month", month,
        )  # fmt: skip
        assert ran.out.splitlines() == [
            f"ue:arxiv_cs {month}: 3 documents", "dropped: 1 no_source",
            f"ue:bbc_news {month}: 3 documents",
        ]  # fmt: skip
    models = ("-m", "control:zstd", "-m", "control:gzip")
    tidemark("score", *models, "-s", "ue:bbc_news", "-s", "ue:arxiv_cs").expect(0)
    pairs = [[model, source] for model in ("control:gzip", "control:zstd")
             for source in ("ue:arxiv_cs", "ue:bbc_news")]  # fmt: skip

    def rows_of(sql: str) -> list[list[object]]:
        ran = tidemark("sql", sql, "--format", "json").expect(0)
        return [list(row.values()) for row in json.loads(ran.out)]

    gaps = rows_of(
        "select model, source from train_test_gap_at(date '2024-02-01')"
        " where scope = 'source' and bits_per_byte_gap is not null order by all"
    )
    assert gaps == pairs
    ranks = rows_of("select distinct model, source from monthly_rank order by all")
    assert ranks == pairs


def test_columns_between_semicolons_are_named(tidemark: Tidemark, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'date;text\n2024-05-01;"One, two, {A["text"]}"\n')
    ran = tidemark("import", "set", path, "--source", "news")
    assert ran.code == 1
    assert "columns are parted by semicolons: write them with commas" in ran.err
