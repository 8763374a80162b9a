"""A figure of the site: rows of public views, how to show them, and the query that gives them."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from reports.site.pictures.trends import Trend

Row = Mapping[str, Any]
Value = str | dt.date | int | float | None
NOTHING = "–"  # shown instead of NULL
P_VALUE = "p"  # form of p-values
_LEAST_P = 0.001  # smaller p-values are shown as less than this
_MAX_SLUG = 60  # characters
# ``measured`` of figures that are not of losses measured here.
ELSEWHERE = dict.fromkeys(("protocol", "window", "num_documents", "measured_at"))
_APART = "so the figure is not in their middle."
WILSON = f"Intervals: 95 %, Wilson's. They reach further towards 50 % than away from it, {_APART}"
CLIPPED = f"By chance, gaps come out too large. Intervals of 95 % allow for it, {_APART}"


@dataclass(frozen=True)
class Column:
    """A column of a figure's table.

    ``form`` is a format of numbers, such as ``+.3f``, or ``P_VALUE``; ``%Y-%m`` or another format
    of dates; empty for text. A column with ``low`` and ``high`` (names of other columns) shows its
    interval, too.
    """

    name: str
    header: str
    form: str = ""
    low: str | None = None
    high: str | None = None
    unit: str = ""
    about: str = ""  # one sentence for the header's tooltip and the metadata
    # Address relative to the site's root, or of another site: these begin with https://.
    link: Callable[[Row], str | None] | None = None
    is_optional: bool = False  # hidden until the reader chooses it
    is_facet: bool = False  # readers choose rows by its values
    factor: int = 1  # a shown number is the row's value times this factor
    draw: Callable[[Row], Trend | None] | None = None  # a line instead of a value of the row
    why: str = ""  # name of the column that says why a value is NULL


def marks_of(columns: Sequence[Column], rows: pl.DataFrame) -> dict[str, str]:
    """Return the reasons that a table's cells give for what is missing, each with its mark."""
    given = [column for column in columns if column.why]
    if not given:
        return {}
    marks: dict[str, str] = {}
    for row in rows.iter_rows(named=True):
        for column in given:
            reason = cell(row, column).why
            if reason and reason not in marks:
                marks[reason] = _letters(len(marks))
    return marks


def _letters(number: int) -> str:
    """Return a, b, … z, aa, ab and so on, from 0 on."""
    rest, last = divmod(number, 26)
    return (_letters(rest - 1) if rest else "") + chr(ord("a") + last)


@dataclass(frozen=True)
class Figure:
    """One figure: a title that states a finding, a table, and optionally a chart.

    Args:
        name: address of the figure: letters, digits and hyphens, unique on the site.
        title: a finding, written from the rows, and never stronger than their intervals.
        about: how to read the figure, in one or two sentences.
        sql: a query on public views that returns ``rows``; it has no parameters.
        rows: the result of ``sql``.
        columns: columns to show as a table; without columns there is only the chart.
        chart: Vega-Lite specification without data sources other than ``rows``; None without chart.
    """

    name: str
    title: str
    about: str
    sql: str
    rows: pl.DataFrame
    columns: Sequence[Column] = ()
    chart: Mapping[str, Any] | None = None
    drawn_models: Sequence[str] | None = None  # models in the chart; None: all
    drawn_pair: Sequence[str] = ()  # columns model and other of the rows in the chart; empty: all
    max_rows: int = 100  # in the page; its script adds the others
    measured: Mapping[str, object] = field(default_factory=dict)  # where not as ``Site.measured``
    has_months: bool = False  # readers may choose the months that the chart shows
    row_class: Callable[[Row], str] = lambda row: ""  # classes of a row's style

    @property
    def is_published(self) -> bool:
        """Return True if the figure is of what others have published, or of the method."""
        return "reference" in self.measured or self.measured == ELSEWHERE

    @property
    def drawn(self) -> pl.DataFrame:
        """Return the rows that the chart shows, so that pictures do not carry all rows."""
        if self.drawn_pair:
            both = (pl.col(name).is_in(list(self.drawn_pair)) for name in ("model", "other"))
            return self.rows.filter(*both)
        if self.drawn_models is None:
            return self.rows
        return self.rows.filter(pl.col("model").is_in(list(self.drawn_models)))


@dataclass(frozen=True)
class Link:
    """A link from a page to a page of an extra."""

    address: str  # relative to the site's root
    title: str
    about: str  # what is there, as a part of a sentence


@dataclass(frozen=True)
class Page:
    """One page: a template filled with fields; ``figures`` get addresses of their own."""

    path: str  # relative to the site's root, as the paths of ``files``
    title: str
    template: str
    figures: Sequence[Figure] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # further files, by path


def told(columns: Sequence[Column], rows: pl.DataFrame) -> list[Column]:
    """Return the columns with any value."""
    return [each for each in columns if each.draw or rows[each.name].is_not_null().any()]


def literal(value: Value) -> str:
    """Return a value as SQL literal; raise ValueError for a NUL character, which DuckDB refuses."""
    if value is None:
        return "null"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, int | float):
        return repr(value)
    if "\0" in value:
        raise ValueError(f"a NUL character in {value!r:.100}")
    return "'" + value.replace("'", "''") + "'"


def slug(name: str) -> str:
    """Return a file name for any text: readable, and unique by a digest if characters are lost."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")[:_MAX_SLUG]
    if plain == name:
        return plain
    return f"{plain or 'x'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Cell:
    """A cell as shown: text, interval, the raw value for sorting, and a link."""

    text: str
    interval: str = ""
    value: str = ""  # the number with nine digits, or the text; empty for NULL
    link: str | None = None
    is_number: bool = False
    path: str = ""  # of a small line
    why: str = ""  # why there is no value, or no interval

    @property
    def is_external(self) -> bool:
        """Return True if the link leads to another site."""
        return self.link is not None and self.link.startswith("https://")


def cell(row: Row, column: Column) -> Cell:
    """Return the cell of a row in a column."""
    why = (row.get(column.why) or "") if column.why else ""
    if column.draw:
        trend = column.draw(row)
        if trend is None:
            return Cell(NOTHING, why=why)
        return Cell("", value=f"{trend.last:.4g}", path=trend.path)
    value = row[column.name]
    link = column.link(row) if column.link else None
    if value is None:
        is_of_numbers = bool(column.form) and "%" not in column.form
        return Cell(NOTHING, link=link, is_number=is_of_numbers, why=why)
    low = row[column.low] if column.low else None
    high = row[column.high] if column.high else None
    ends = [shown(end, column) for end in (low, high) if end is not None]
    interval = " to ".join(ends)
    if len(ends) == 1:
        interval += " or later" if high is None else " or earlier"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    raw = f"{value:.9g}" if isinstance(value, float) else str(value)
    if interval or not column.low:
        why = ""
    return Cell(shown(value, column), interval, raw, link, is_number, why=why)


def shown(value: Any, column: Column) -> str:
    """Return a value as text in the column's format; a minus sign is U+2212."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dt.date):
        return value.strftime(column.form or "%Y-%m-%d")
    if column.form == P_VALUE:
        return f"< {_LEAST_P}" if value < _LEAST_P else f"{value:.3f}"
    if isinstance(value, int | float) and column.form:
        text = format(value * column.factor, column.form)
        if not re.search(r"[1-9]", text):
            text = text.replace("-", "")  # no negative zero
        return text.replace("-", "\u2212")
    return str(value)
