"""Entries of Debian's changelogs become dated texts for local use."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from core.corpus.partition import Seal, read_documents
from core.errors import EmptyPartition, UsageError
from core.month import Month
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.imports.dating import moment_of
from crawlers.imports.sets import import_set
from crawlers.imports.tables import DataFile, Row
from extras.debian_changelogs import changelogs
from extras.debian_changelogs.changelogs import (
    is_changelog,
    options_for_changelogs,
    read_changelog,
)

CHANGE = "The mark that the sea leaves on the beach is told from sand, which it was not before."
LINE = f"  * {CHANGE}\n    {CHANGE}\n"
BASE = Month("1998-01")
Import = Callable[..., tuple[Seal, ...]]


def entry(version: str, date: str, body: str = LINE, package: str = "tide") -> str:
    return (
        f"{package} ({version}) unstable; urgency=low\n\n{body}\n -- Ann <ann@a.example>  {date}\n"
    )


def rows_of(path: Path, max_bytes: int = 10**6) -> list[Row | Drop]:
    return list(read_changelog(DataFile(path, path.name, max_bytes), ()))


@pytest.fixture
def imports(store: Store, tmp_path: Path) -> Import:
    def run(files: dict[str, str | bytes], first: Month = BASE) -> tuple[Seal, ...]:
        for name, data in files.items():
            path = tmp_path / "doc" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(data.encode()) if isinstance(data, str) else data)
        return import_set(
            [tmp_path / "doc"], "changelogs", store, options_for_changelogs(first)
        ).seals

    return run


def reasons(store: Store, seal: Seal) -> list[str]:
    packed = store.read_bytes(f"{seal.folder}/dropped.jsonl.zst")
    return sorted(json.loads(line)["reason"] for line in zstandard.decompress(packed).splitlines())


@pytest.mark.smoke
def test_each_entry_is_a_text_of_the_month_of_its_date(imports: Import, store: Store) -> None:
    text = "\n".join(
        [
            entry("1.1-2", "Sun, 31 Mar 2019 23:30:00 -0200"),
            entry("1.1-1", "Fri,  1 Mar 2019 00:00:00 +0000", f"  * A fix.\n{LINE}"),
            entry("0.9~rc1-1", "Tue, 2 Jan 1997 10:00:00 +0100"),
            "Local variables:\nmode: debian-changelog\nEnd:\n",
        ]
    )
    seals = imports({"tide/changelog.Debian.gz": text})
    assert [str(seal.partition.month) for seal in seals] == ["2019-03", "2019-04"]
    assert all(seal.is_local for seal in seals)
    [row] = [row for batch in read_documents(store, seals[0]) for row in batch.to_pylist()]
    assert row["text"] == f"* A fix.\n* {CHANGE}\n  {CHANGE}"
    assert (row["native_id"], row["title"]) == ("tide 1.1-1", "tide 1.1-1, unstable")
    assert (row["language"], row["category"], row["date_kind"]) == ("en", "changelog", "given")
    assert "ann@" not in json.dumps(row, default=str)
    assert reasons(store, seals[0]) == ["outside_month"]


def test_an_entry_of_several_packages_counts_once(imports: Import, store: Store) -> None:
    shared = entry("1-1", "Fri, 01 Mar 2019 10:00:00 +0000")
    built = entry("1-1+b1", "Fri, 01 Mar 2019 11:00:00 +0000", "  * Built again.\n")
    [seal] = imports({"a/changelog.Debian.gz": shared, "b/changelog.Debian.gz": built + shared})
    assert seal.num_documents == 1
    assert reasons(store, seal) == ["exact_dup", "too_short"]


def test_rubbish_is_counted_and_good_entries_are_kept(imports: Import, store: Store) -> None:
    good = entry("1-1", "Fri, 01 Mar 2019 10:00:00 +0000")
    dice = random.Random(0)
    files = {
        "a/changelog.gz": "2019-03-01  Ann  <ann@a.example>\n\n\t* file.c: Changed.\n",
        "b/changelog.gz": dice.randbytes(5000),
        "c/changelog.gz": gzip.compress(dice.randbytes(5000)),
        "d/changelog.gz": gzip.compress(good.encode())[:-30],
        "e/changelog.gz": entry("2-1", "31 February 2019"),
        "f/changelog.gz": f"tide (2-1) unstable; urgency=low\n{LINE}\n{good}",
        "g/changelog": b"",
        "h/changelog.Debian.gz": entry("3-1", "Fri, 01 Mar 2219 10:00:00 +0000"),
        "i/changelog.html.gz": "<p>No changelog of Debian.</p>",
    }
    [seal] = imports(files)
    assert seal.num_documents == 1
    assert reasons(store, seal) == [
        *["damaged"] * 3, *["no_date"] * 2, *["unknown_format"] * 4
    ]  # fmt: skip


def test_a_folder_without_changelogs_is_refused(imports: Import) -> None:
    with pytest.raises(UsageError, match=r"holds no file changelog"):
        imports({"a/copyright": "x", "a/changelog.html.gz": "x"})
    with pytest.raises(EmptyPartition, match="nothing to keep"):
        imports({"b/changelog.gz": "x"})


def test_a_file_that_unpacks_to_far_more_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelogs, "_MOST_BYTES", 10**5)
    path = tmp_path / "changelog.gz"
    good = entry("1-1", "Fri, 01 Mar 2019 10:00:00 +0000")
    path.write_bytes(gzip.compress(good.encode() + bytes(10**6) + good.encode()))
    first, last = rows_of(path)
    assert isinstance(first, Row)
    assert isinstance(last, Drop)
    assert "more than 100,000 bytes" in last.detail


def test_long_entries_and_old_letters(tmp_path: Path) -> None:
    path = tmp_path / "changelog"
    long = entry("2-1", "Fri, 01 Mar 2019 10:00:00 +0000", LINE * 100)
    old = entry("1-1", "Thu, 01 Mar 2001 10:00:00 +0000", "  * D\u00e9j\u00e0 vu.\n")
    path.write_bytes(long.encode() + old.encode("latin-1"))
    first, last = rows_of(path, max_bytes=1000)
    assert isinstance(first, Drop)
    assert first.reason == "too_long"
    assert isinstance(last, Row)
    assert last.values["text"] == "* D\u00e9j\u00e0 vu."


def test_names() -> None:
    names = ["tide/changelog.Debian.gz", "changelog", "CHANGELOG.Debian.amd64.gz"]
    assert all(map(is_changelog, names))
    assert not any(map(is_changelog, ["changelog/copyright", "changelog.html.gz", "NEWS.gz"]))


def test_a_changelog_of_this_machine() -> None:
    """Each entry of a file that Debian installed is read, and has a date."""
    path = Path("/usr/share/doc/base-files/changelog.gz")
    if not path.is_file():
        pytest.skip(f"no {path} on this machine")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    rows = [row for row in rows_of(path) if isinstance(row, Row)]
    assert len(rows) == sum(line.startswith(" -- ") for line in lines) > 0
    assert all(moment_of(row.values["date"]) for row in rows)
