"""Parts of the board: the same table over a window of months, or on one source.

Each part is rows of views: ``headline_at`` for a window, ``internal.headline_all_months`` for
all months, and those of the page of a source.
So the page's script only chooses which cells to show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from core.month import Month, month_range
from reports.site.context import Site, months_of
from reports.site.figure import Column, Figure, Row, cell
from reports.site.findings import board_finding, listed, source_finding

NEWEST = 12  # months of the first window
ALL_MONTHS = "all months: includes text seen in training"
# Columns that a part of the board replaces; a dash stands where the part has no figure.
_OF_WINDOW = (
    "rank_set", "bits_per_byte", "adjusted_gap", "growth_per_year", "num_months",
    "num_sources",
)  # fmt: skip
_OF_SOURCE = (*_OF_WINDOW, "cutoff_text")
_INTERVALS = {"months": "other months like these", "documents": "other documents of these months"}
_ABOUT_WINDOW = (
    "Level and rank in this window alone, over {}. Intervals are of 95 %: would {} say the same? "
    "The other columns are over all months."
)
_ABOUT_SOURCE = "Each model over its own months. Ranks need months that all models have."
# Text, interval, value and reason by model and column.
Cells = Mapping[str, Mapping[str, Sequence[str]]]


def windows_of(first: Month, last: Month) -> dict[str, tuple[Month, Month]]:
    """Return the newest year and each calendar year, newest first; none within a single year."""
    if first + NEWEST > last:
        return {}
    years: dict[str, list[Month]] = {}
    for month in month_range(first, last):
        years.setdefault(str(month)[:4], []).append(month)
    found = {year: (months[0], months[-1]) for year, months in reversed(years.items())}
    newest = (last - (NEWEST - 1), last)
    return found if newest in found.values() else {f"last {NEWEST} months": newest, **found}


def windows_figure(site: Site) -> Figure | None:
    """Return level and rank of each model over each window; None if there are no windows."""
    windows = windows_of(*site.window) if site.window else {}
    parts = [
        site.query("board_window", span=name, first=first.first_day, last=last.first_day)
        for name, (first, last) in windows.items()
    ]
    parts.append(site.query("board_all_months", span=ALL_MONTHS))
    if all(rows.is_empty() for _, rows in parts):
        return None
    sql = "\nunion all\n".join(f"from (\n{sql.strip()}\n)" for sql, _ in parts)
    names = [*windows, ALL_MONTHS]
    about = "The board shows them by its choice of months."
    title = f"Other months for the board: {listed(names)}"
    return Figure("board-windows", title, about, sql, pl.concat([rows for _, rows in parts]))


def parts_of(
    site: Site, columns: Sequence[Column], windows: Sequence[Figure]
) -> dict[str, dict[str, object]]:
    """Return title and cells of each part, by ``months/<name>`` and ``source/<name>``."""
    parts: dict[str, dict[str, object]] = {}
    for figure in windows:
        for [name], rows in figure.rows.partition_by("months", as_dict=True).items():
            title = f"{board_finding(rows.to_dicts(), is_window=True)} ({name})"
            interval = _INTERVALS[rows["interval_basis"][0]]
            about = _ABOUT_WINDOW.format(months_of(rows["basis"][0]), interval)
            cells = _cells(rows, columns, _OF_WINDOW)
            parts[f"months/{name}"] = {"title": title, "about": about, "rows": cells}
    if len(site.sources) < 2:
        return parts
    for name in site.sources:
        rows = site.part("model_sources", "source", name, protocol=site.protocol)[1]
        cells = _cells(rows, columns, _OF_SOURCE)
        parts[f"source/{name}"] = {
            "title": source_finding(rows.to_dicts(), name),
            "about": _ABOUT_SOURCE,
            "rows": cells,
        }
    return parts


def _cells(rows: pl.DataFrame, columns: Sequence[Column], names: Sequence[str]) -> Cells:
    chosen = [column for column in columns if column.name in names]
    return {row["model"]: dict(_row_cells(row, chosen)) for row in rows.to_dicts()}


def _row_cells(row: Row, columns: Sequence[Column]) -> Iterator[tuple[str, list[str]]]:
    """Yield each column with text, interval, value and reason of a row's cell."""
    # A part may lack columns of the board; they count as NULL.
    complete = dict(row)
    for column in columns:
        for end in (column.name, column.low, column.high):
            if end:
                complete.setdefault(end, None)
    for column in columns:
        found = cell(complete, column)
        yield column.name, [found.text, found.interval, found.value, found.why]


def parts_file(parts: Mapping[str, object]) -> bytes:
    """Return parts as a script, which a page that is opened from disk can load, too."""
    return f"tidemark.parts({json.dumps(parts, separators=(',', ':'))});\n".encode()
