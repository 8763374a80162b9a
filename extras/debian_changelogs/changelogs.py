"""Changelogs of Debian packages, of which each entry is a dated text.

An entry is as deb-changelog(5) says: a heading with package and version, indented lines, and a line
`` -- Name <address>  date``. The heading is the title, and the last line has no place in the text.
What is between entries is passed over, such as settings of editors. Debian installs the files as
``/usr/share/doc/PACKAGE/changelog.Debian.gz``; other files ``changelog*`` have forms of their own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import IO

from core.month import Month
from crawlers.contract import Drop
from crawlers.imports.dating import Dating
from crawlers.imports.documents import ImportOptions
from crawlers.imports.tables import DataFile, Row, Rows, damage_of, opened
from crawlers.text.cleaning import too_long

CATEGORY = "changelog"

_MOST_BYTES = 2**26  # unpacked; the longest of 1,200 files that were looked at has 8 MB
_MOST_OF_A_LINE = 2**16
_HEADING = re.compile(
    r"(?P<package>\w[\w.+-]*) \((?P<version>[^()\s]{1,100})\)(?P<release>(?:\s+[\w.+-]+)+)\s*;.*",
    re.ASCII,
)
_TRAILER = re.compile(r" --\s[^<>]*<[^<>]*>\s+(?P<date>\S.*)")


def options_for_changelogs(first: Month, replace: bool = False) -> ImportOptions:
    """Return the options for entries of changelogs since a month; they are never passed on."""
    return ImportOptions(
        dating=Dating(first=first),
        format="changelogs",
        clean=True,
        sift=False,
        language="en",
        is_local=True,
        replace=replace,
    )


def is_changelog(name: str) -> bool:
    """Return True for the name of a changelog: ``changelog*``, also packed, and no page."""
    return name.rpartition("/")[2].lower().startswith("changelog") and ".htm" not in name


def read_changelog(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield each entry of a file as a row; a file without any is a drop.

    A drop is also an entry that is longer than ``file.max_bytes``, or has no last line. Only the
    first 64 MiB of the unpacked file are read.
    """
    num_entries = 0
    with opened(file) as (stream, faults):
        for found in _read_entries(file, _lines(stream, faults)):
            num_entries += 1
            yield found
        yield from damage_of(file, faults)
    if not num_entries and not faults:
        why = "has no entry of the form PACKAGE (VERSION) SUITE; …, as Debian's changelogs have"
        yield Drop(file.name, "unknown_format", f"{file.name}: {why}")


def _lines(stream: IO[bytes], faults: list[str]) -> Iterator[str]:
    """Yield the lines without their ends, in UTF-8 or else in Latin-1; of long ones, pieces."""
    left = _MOST_BYTES
    while line := stream.readline(_MOST_OF_A_LINE):
        left -= len(line)
        if left < 0:
            faults.append(f"more than {_MOST_BYTES:,} bytes; the rest is not read")
            return
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("latin-1")  # usual before 2005; no byte is refused
        yield text.rstrip("\r\n")


def _read_entries(file: DataFile, lines: Iterator[str]) -> Rows:
    """Yield each entry, from its heading to its trailer, or why it is left out."""
    heading: re.Match[str] | None = None
    number = 0  # of the heading's line
    size = 0
    body: list[str] = []
    for place, line in enumerate(lines, start=1):
        found = _HEADING.fullmatch(line)
        if found:
            if heading is not None:
                yield _unended(file, heading, number)
            heading = found
            number = place
            size = 0
            body = []
            continue
        if heading is None:
            continue
        trailer = _TRAILER.fullmatch(line)
        if trailer is None:
            size += len(line) + 1
            if size <= file.max_bytes:
                body.append(line)
            continue
        if size > file.max_bytes:
            why = too_long(size, file.max_bytes)
            yield Drop(f"{file.name}:{number}", "too_long", f"{file.name}:{number}: {why}")
        else:
            yield _row(f"{file.name}:{number}", heading, body, trailer["date"])
        heading = None
    if heading is not None:
        yield _unended(file, heading, number)


def _unended(file: DataFile, heading: re.Match[str], number: int) -> Drop:
    name = f"{heading['package']} {heading['version']}"
    return file.damaged(number, f"line {number}: {name} has no last line ` -- Name <…>  date`")


def _row(place: str, heading: re.Match[str], body: list[str], date: str) -> Row:
    """Return an entry as a row of a data set."""
    version = f"{heading['package']} {heading['version']}"
    values = {
        "text": _unindented(body),
        "id": version,
        "title": f"{version}, {' '.join(heading['release'].split())}",
        "date": date,
        "category": CATEGORY,
    }
    return Row(place, values, "book")


def _unindented(lines: list[str]) -> str:
    """Return lines without the two spaces that the form asks for, and without blank ends."""
    return "\n".join(line.removeprefix("  ").rstrip() for line in lines).strip("\n")
