"""Repositories of dated texts: a YAML file each in ``crawlers/git/posts``.

docs/add-a-source.md (A repository of dated texts) shows how to add one.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from core.errors import MalformedInput
from core.month import Month
from crawlers.web.times import read_day

FOLDER = Path(__file__).with_name("posts")

_DAY = re.compile(r"\b(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)")


def _check_pattern(pattern: str) -> str:
    re.compile(pattern)
    return pattern


def _check_month(month: str) -> str:
    return str(Month(month))


Pattern = Annotated[str, AfterValidator(_check_pattern)]


class Entry(BaseModel):
    """A repository of dated texts, and how a document's day and licence are found."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    title: str
    repository: str  # ``owner/name``
    folders: list[str]  # git's path patterns of all folders that the texts have ever been in
    # The paths of documents, matched as a whole. The groups ``year``, ``month`` and ``day`` are
    # the day of the rule ``path``. The group ``id`` names a document that moves between paths.
    match: Pattern
    # Rules of the day, tried in this order: ``path``, ``field:NAME`` of the header, ``commit``.
    # ``commit`` is the day on which the file came onto the main line.
    date: list[str]
    # True if a document that came more than a week after its stated day counts on the day it came.
    is_landed: bool = False
    lag_days: int = 0  # a document may come this many days after the end of its month
    first_month: Annotated[str, AfterValidator(_check_month)] = "2017-01"
    language: str = "en"
    category: str  # genre: blog, standards, minutes, …
    licence: str  # SPDX
    attribution: str
    licence_file: str  # a path at the month's end; without this file the month has no documents
    licence_says: Pattern  # what the file must contain
    document_says: Pattern | None = None  # what each document must contain, if they state licences
    header: Literal["front", "mail", "none"] = "front"  # in mail, ``Name: value`` up to a blank
    # A path of a document, with {year}, {month}, {day}, {name} and {number} (of four digits) in the
    # place of its parts. The simulated site has documents there.
    example: str


def list_names() -> list[str]:
    """Return the names of the repositories."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


@functools.cache
def read_entries() -> Mapping[str, Entry]:
    """Return the repositories by name; raise MalformedInput for a file that is not valid."""
    return {name: _read(FOLDER / f"{name}.yaml") for name in list_names()}


def _read(file: Path) -> Entry:
    try:
        return Entry.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise MalformedInput(f"{file}: {error}; crawlers/git/entries.py has the fields") from error


def find_day(text: str) -> dt.date | None:
    """Return the day that a text states, else the first one like ``2024-03-31`` in it, or None."""
    # Times and zones are ignored: the day is the one that the author wrote.
    stated = read_day(text)
    if stated is not None:
        return stated
    found = _DAY.search(text)
    return make_day(*found.groups()) if found else None


def make_day(year: str, month: str, day: str) -> dt.date | None:
    """Return a day; None if there is no such day."""
    try:
        return dt.date(int(year), int(month), int(day))
    except ValueError:
        return None
