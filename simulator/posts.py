"""Repositories of dated texts on the simulated GitHub, one for each file of ``crawlers/git/posts``.

Each month, a repository gets ``DOCUMENTS`` documents: in the first second, on the 7th (committed
four weeks before if its day is stated), on the 14th, and on the last day. The third is
edited after the month, which must not be seen. Not documents of the month are a text that is
removed within it, and one that comes two months late. If days are stated in headers, one text a
month has no day.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

import yaml

from core.month import Month
from simulator.fast_import import commit, write_file
from simulator.world import World

DOCUMENTS = 4  # a month
EDIT = "This sentence was added after the end of the month."

# Numbers of the texts that are no documents.
_REMOVED = 4
_LATE = 5
_UNDATED = 6
_DAY = dt.timedelta(days=1)
_SECOND = dt.timedelta(seconds=1)
_LICENCE = """The texts are licensed MIT/Apache 2.0, CC0 or CC BY, as this PEP or README says.
Permission is hereby granted, free of charge, to any person obtaining a copy.
Apache License
Version 2.0
Creative Commons Attribution 3.0 Unported
Creative Commons Attribution 4.0 International
<a href="http://creativecommons.org/licenses/by-sa/4.0/">licence</a>
"""
Change = tuple[dt.datetime, bytes]


@dataclass(frozen=True)
class Series:
    """The texts of an entry, and how they state their days."""

    name: str
    repository: str
    example: str
    header: str
    rules: tuple[str, ...]
    licence_file: str


@functools.cache
def read_series() -> Mapping[str, tuple[Series, ...]]:
    """Return the series of texts by repository."""
    found: dict[str, tuple[Series, ...]] = {}
    folder = files("crawlers.git").joinpath("posts")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        entry = yaml.safe_load(file.read_text(encoding="utf-8"))
        series = Series(
            file.name.removesuffix(".yaml"),
            entry["repository"],
            entry["example"],
            entry.get("header", "front"),
            tuple(entry["date"]),
            entry["licence_file"],
        )
        found[series.repository] = (*found.get(series.repository, ()), series)
    return found


def history(world: World, repository: str) -> Iterator[bytes]:
    """Yield the commits of a repository as commands of ``git fast-import``, the oldest first."""
    every = read_series()[repository]
    licences = {series.licence_file for series in every}
    begin = world.first.start - 40 * _DAY
    yield commit("main", begin, *(write_file(path, _LICENCE) for path in sorted(licences)))
    changes: list[Change] = []
    for series in every:
        for month in world.months:
            changes += _month(world, series, month)
    for moment, change in sorted(changes):
        yield commit("main", moment, change)


def text_of(world: World, name: str, month: Month, number: int) -> str:
    """Return the text of a document as it was at the month's end, without header."""
    story = world.story(month, f"git_posts:{name}", number)
    return "\n\n".join(story.paragraphs)


def _month(world: World, series: Series, month: Month) -> Iterator[Change]:
    """Yield the changes of a month to a series of posts, each with its moment."""
    is_stated = series.rules[0] != "commit"
    first, seventh, middle = (month.start + (day - 1) * _DAY for day in (1, 7, 14))
    last = month.end - _DAY
    texts = _Texts(world, series, month)
    yield first, texts.file(0, first)
    yield (seventh - 28 * _DAY if is_stated else seventh), texts.file(1, seventh)
    yield middle, texts.file(2, middle)
    yield month.end - _SECOND, texts.file(3, last)
    yield month.end + 5 * _DAY, texts.file(2, middle, EDIT)
    removed = first + 9 * _DAY
    yield removed, texts.file(_REMOVED, removed)
    yield removed + 5 * _DAY, f"D {texts.path(_REMOVED, removed)}\n".encode()
    if is_stated:
        yield month.end + 61 * _DAY, texts.file(_LATE, middle + _DAY)
    if not {"commit", "path"} & {*series.rules}:
        yield middle, texts.file(_UNDATED, None)


@dataclass(frozen=True)
class _Texts:
    """The files of a series in a month."""

    world: World
    series: Series
    month: Month

    def file(self, number: int, day: dt.datetime | None, addition: str = "") -> bytes:
        """Return the command that writes a text; without a day, its header states none."""
        title = self.world.story(self.month, f"git_posts:{self.series.name}", number).title
        text = text_of(self.world, self.series.name, self.month, number)
        stated = f"{day:%Y-%m-%d}" if day else "soon"
        header = {
            "front": f"---\ntitle: {title}\ndate: {stated}\n---",
            "mail": f"Title: {title}\nDate: {stated}\nCopyright: CC0",
            "none": f"# {title}",
        }[self.series.header]
        path = self.path(number, day or self.month.start)
        return write_file(path, "\n\n".join(filter(None, [header, text, addition])) + "\n")

    def path(self, number: int, day: dt.datetime) -> str:
        """Return the path of a text."""
        months = (self.month.start.year - 2017) * 12 + self.month.start.month
        return self.series.example.format(
            year=f"{day:%Y}",
            month=f"{day:%m}",
            day=f"{day:%d}",
            name=f"story-{self.month}-{number}",
            number=f"{(months * 10 + number) % 10_000:04d}",
        )
