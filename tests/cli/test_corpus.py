import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.corpus.partition import Partition, tables_of
from core.corpus.sealing import Description, seal_partition
from core.errors import PartitionHeld
from core.month import Month
from core.storage.store import Store
from simulator.server import Web
from tests.commands import import_notes, joined_words

Tidemark = Callable[..., Any]


def test_the_manifest_of_a_crawl_is_shown_and_adds_up(tidemark: Tidemark, sites: Web) -> None:
    assert tidemark("crawl", "-s", "wikipedia_new", "--month", "2024-01").code == 0
    ran = tidemark("corpus", "show", "wikipedia_new", "2024-01", "--dropped").expect(0)
    shown = joined_words(ran.out)
    assert "1 of 1" in shown
    found = re.search(
        r"requested ([\d,]+) = ([\d,]+) kept \+ ([\d,]+) dropped \+ (\d+) failed \+ (\d+) repeated",
        shown,
    )
    assert found is not None
    requested, *parts = (int(each.replace(",", "")) for each in found.groups())
    assert requested == sum(parts) > 0
    for word in ("complete", "LicenseRef-tidemark-simulator", "digest", "user_agent"):
        assert word in shown
    for kind in ("hole", "markup"):
        row = rf"texts with {kind} 0 of ([\d,]+) \(0.0%\); 0 places, 0.0 per million characters"
        assert re.search(row, shown)


@pytest.mark.long
def test_versions_are_shown_and_listed(tidemark: Tidemark, tmp_path: Path, home: Path) -> None:
    import_notes(tidemark, tmp_path, "2024-01", "sand and tide", "wind and wave")
    import_notes(tidemark, tmp_path, "2024-01", "sand and tide", "wind and rain")
    show = ("corpus", "show", "notes", "2024-01")
    assert "2 of 2" in tidemark(*show).out
    assert "1 of 2" in tidemark(*show, "--version", "1").out
    [path] = tidemark(*show, "--paths").out.split()
    assert path.startswith(f"{home}/corpus/source=notes/month=2024-01/version=2/part-")
    tidemark(*show, "--version", "3").expect(2, "sealed versions: 1, 2", out="")


def test_what_is_held_is_shown_and_accepted(tidemark: Tidemark, home: Path) -> None:
    partition = Partition("notes", Month("2024-01"))
    rows = [{"native_id": "a", "date_kind": "given", "licence": "MIT", "text": "x" * 100}]
    with pytest.raises(PartitionHeld):
        seal_partition(
            Store(str(home)),
            partition,
            [*tables_of(rows, partition), Description(held_because=["too few"])],
        )
    tidemark("corpus", "show", "notes", "2024-01").expect(2, "something is held back (--held)")
    shown = joined_words(tidemark("corpus", "show", "notes", "2024-01", "--held").out)
    assert "held back" in shown
    assert "too few" in shown
    ran = tidemark("corpus", "accept", "notes", "2024-01", "--why", "a small source")
    assert (ran.code, ran.out) == (0, "notes 2024-01: 1 document, version 1\n")
    shown = joined_words(tidemark("corpus", "show", "notes", "2024-01").out)
    assert "why: a small source" in shown
    assert tidemark("corpus", "accept", "notes", "2024-01", "--why", "again").code == 2


@pytest.mark.long
def test_a_landed_document_leads_to_its_text(tidemark: Tidemark, tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    fields = {
        "title": "Sand [1]",
        "url": "https://example.org/sand",
        "date": "2023-05-17T01:02:03Z",
    }
    texts = [{"id": f"t{i}", "text": f"sand and tide {i} " * 30, **fields} for i in range(2)]
    file.write_text("\n".join(map(json.dumps, texts)))
    tidemark("import", "texts", str(file), "--source", "notes", "--undated").expect(0)
    tidemark("score", "--model", "control:zstd").expect(0)
    listed = "select document_id, title, url, event_date, native_id from documents order by ALL"
    found = json.loads(tidemark("sql", listed, "--format", "json").expect(0).out)
    assert {row["native_id"] for row in found} == {"t0", "t1"}
    for row in found:
        assert (row["title"], row["url"]) == (fields["title"], fields["url"])
        assert row["event_date"] == "2023-05-17"
        ran = tidemark("corpus", "text", row["document_id"]).expect(0)
        assert ran.out == f"sand and tide {row['native_id'][1]} " * 30 + "\n"
        assert "Sand [1]" in ran.err and "notes undated, version 1" in ran.err
    refused = tidemark("corpus", "text", "nowhere").expect(2)
    assert "no sealed text" in refused.err


def test_a_source_with_a_wrong_letter_is_asked_about(tidemark: Tidemark, tmp_path: Path) -> None:
    import_notes(tidemark, tmp_path, "2024-01", "sand and tide")
    for command in (
        "corpus show nots 2024-01",
        "score -m control:zstd -s nots",
    ):
        tidemark(*command.split()).expect(2, "did you mean notes? ", out="")
