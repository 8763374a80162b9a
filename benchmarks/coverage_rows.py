"""Rows that the commands of docs/coverage-of-the-papers.md give on a demo."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from core.settings import Settings
from warehouse.read.query import query

NO_QUERY = "–"
NO_ROWS = "no rows on the demo: needs "
_ROW = re.compile(r"^\| (?!item|---)([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_QUERY = re.compile(r"`(tidemark sql [^`]+)`")


class Item(NamedTuple):
    """A row of the page: an item of a paper, its commands, the rows they give, its state."""

    name: str
    commands: str
    rows: str
    state: str

    def line(self) -> str:
        """Return the item as the page has it."""
        return f"| {' | '.join(self)} |"

    def queries(self) -> list[str]:
        """Return the SQL of its commands."""
        return [shlex.split(text)[2] for text in _QUERY.findall(self.commands)]

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with its state, given its numbers of rows."""
        is_empty = {*self.rows.split(" and ")} == {"0"}
        if is_empty and not self.state.startswith(NO_ROWS):
            yield f"{self.name}: its state does not begin with {NO_ROWS!r}"
        if not is_empty and NO_ROWS in self.state:
            yield f"{self.name}: there are {self.rows} rows on the demo, and its state says none"


def items_of(page: str) -> list[Item]:
    """Return the items of the page."""
    return [Item(*match.groups()) for match in _ROW.finditer(page)]


def with_rows(page: str, settings: Settings) -> str:
    """Return the page with the number of rows that each query gives on a demo."""
    return _ROW.sub(lambda match: _with_present_rows(Item(*match.groups()), settings).line(), page)


def row_differences(page: str, settings: Settings) -> Iterator[str]:
    """Yield the items with other numbers of rows on a demo, or with a state that denies them."""
    for item in items_of(page):
        counted = _with_present_rows(item, settings)
        if counted.rows != item.rows:
            yield f"{item.name}: printed {item.rows} rows, found {counted.rows}"
        yield from counted.faults()


def _with_present_rows(item: Item, settings: Settings) -> Item:
    """Return an item with the number of rows that each of its queries gives now."""
    numbers = [f"{query(settings, sql).num_rows:,}" for sql in item.queries()]
    return item._replace(rows=" and ".join(numbers) or NO_QUERY)
