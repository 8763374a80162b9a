"""`tidemark corpus`, as a user types it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.corpus import Partition, tables_of
from core.errors import PartitionHeld
from core.month import Month
from core.sealing import HELD_BECAUSE, seal_partition
from core.storage import Store
from simulator.server import Web

Tidemark = Callable[..., Any]


def _import(tidemark: Tidemark, folder: Path, month: str, *texts: str) -> None:
    file = folder / "texts.jsonl"
    lines = [json.dumps({"id": f"t{i}", "text": f"{text} " * 60}) for i, text in enumerate(texts)]
    file.write_text("\n".join(lines))
    ran = tidemark("import-texts", str(file), "--source", "notes", "--month", month, "--replace")
    assert ran.code == 0


def _words(text: str) -> str:
    """What a table says, its lines that were broken joined again, without its frame."""
    return re.sub(r"[\s│]+", " ", text)


def test_the_manifest_of_a_crawl_is_shown_and_adds_up(tidemark: Tidemark, sites: Web) -> None:
    assert tidemark("crawl", "-s", "wikipedia_new", "--month", "2024-01").code == 0
    ran = tidemark("corpus", "show", "wikipedia_new", "2024-01", "--dropped")
    assert ran.code == 0
    shown = _words(ran.out)
    assert "1 of 1" in shown
    found = re.search(
        r"requested ([\d,]+) = ([\d,]+) kept \+ ([\d,]+) dropped \+ (\d+) failed \+ (\d+) repeated",
        shown,
    )
    assert found is not None
    requested, *parts = (int(each.replace(",", "")) for each in found.groups())
    assert requested == sum(parts) > 0
    for word in ("complete", "CC-BY-SA", "digest", "user_agent"):
        assert word in shown


def test_versions_are_shown_listed_and_compared(
    tidemark: Tidemark, tmp_path: Path, home: Path
) -> None:
    _import(tidemark, tmp_path, "2024-01", "sand and tide", "wind and wave")
    _import(tidemark, tmp_path, "2024-01", "sand and tide", "wind and rain")
    show = ("corpus", "show", "notes", "2024-01")
    assert "2 of 2" in tidemark(*show).out
    assert "1 of 2" in tidemark(*show, "--version", "1").out
    [path] = tidemark(*show, "--paths").out.split()
    assert path.startswith(f"{home}/corpus/source=notes/month=2024-01/version=2/part-")
    ran = tidemark(*show, "--version", "3")
    assert (ran.code, ran.out) == (2, "")
    assert "sealed versions: 1, 2" in ran.err
    ran = tidemark("corpus", "diff", "notes", "--versions")
    assert ran.code == 0
    assert "articles" in ran.out
    assert "version 2" in _words(ran.out)


def test_months_are_compared_with_the_one_before_and_the_first(
    tidemark: Tidemark, tmp_path: Path
) -> None:
    for number, month in enumerate(("2024-01", "2024-02", "2024-03")):
        _import(tidemark, tmp_path, month, "sand and tide", f"wind and wave {'x' * number}")
    ran = tidemark("corpus", "diff", "notes", "--month", "2024-02", "--to", "2024-03")
    assert ran.code == 0
    rows = [_words(line).split() for line in ran.out.splitlines() if "articles" in line]
    assert [row[:2] for row in rows] == [
        ["2024-02", "2024-01"], ["2024-03", "2024-01"], ["2024-03", "2024-02"],
    ]  # fmt: skip
    assert all(0 < float(row[-1]) < 0.5 for row in rows)
    assert tidemark("corpus", "diff", "notes", "--versions").code == 2


def test_what_is_held_is_shown_and_accepted(tidemark: Tidemark, home: Path) -> None:
    partition = Partition("notes", Month("2024-01"))
    rows = [{"native_id": "a", "date_kind": "given", "licence": "MIT", "text": "x" * 100}]
    with pytest.raises(PartitionHeld):
        seal_partition(
            Store(str(home)), partition, tables_of(rows, partition), {HELD_BECAUSE: ["too few"]}
        )
    ran = tidemark("corpus", "show", "notes", "2024-01")
    assert ran.code == 2
    assert "something is held back (--held)" in ran.err
    shown = _words(tidemark("corpus", "show", "notes", "2024-01", "--held").out)
    assert "held back" in shown
    assert "too few" in shown
    ran = tidemark("corpus", "accept", "notes", "2024-01", "--why", "a small source")
    assert (ran.code, ran.out) == (0, "notes 2024-01: 1 documents, version 1\n")
    shown = _words(tidemark("corpus", "show", "notes", "2024-01").out)
    assert "why: a small source" in shown
    assert tidemark("corpus", "accept", "notes", "2024-01", "--why", "again").code == 2


def test_a_document_is_forgotten_and_stays_out(
    tidemark: Tidemark, tmp_path: Path, home: Path
) -> None:
    _import(tidemark, tmp_path, "2024-01", "sand and tide", "wind and wave")
    ran = tidemark("corpus", "forget", "--native-id", "notes:t1", "--why", "asked")
    assert ran.code == 0
    assert "1 documents forgotten; rewritten: 1 versions" in ran.out
    _import(tidemark, tmp_path, "2024-01", "sand and tide", "wind and wave")
    shown = _words(tidemark("corpus", "show", "notes", "2024-01").out)
    assert "1 of 1" in shown  # without it, the content is the same
    ran = tidemark("corpus", "forget", "--again")
    assert ran.code == 0
    assert "none of them is in the corpus" in ran.out


@pytest.mark.parametrize(
    "arguments",
    ["", "--again 00000000000000000000000000000000", "x1", "--native-id notes", "--native-id :1"],
)
def test_a_wrong_takedown_exits_with_2(tidemark: Tidemark, arguments: str) -> None:
    assert tidemark("corpus", "forget", *arguments.split()).code == 2
