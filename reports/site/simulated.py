"""Marks of simulated text: the bar of a page, the column of a figure's files, the watermark.

Whether text is simulated is read from the snapshot, which has it from the documents' licences.
"""

from __future__ import annotations

import polars as pl

from reports.site.context import Site
from reports.site.figure import Figure, Page

COLUMN = "simulated"
WATERMARK = "SIMULATED"
NOT_SIMULATED = "not simulated: figures of real models, from publications"


def is_simulated(figure: Figure, site: Site) -> bool:
    """Return True if a figure may have rows of simulated text."""
    return bool(site.simulated) and not figure.is_published


def is_simulated_page(page: Page, site: Site) -> bool:
    """Return True for a page of a site with simulated text that not only quotes publications."""
    if any(is_simulated(figure, site) for figure in page.figures):
        return True
    return bool(site.simulated) and not any("reference" in each.measured for each in page.figures)


def marked_rows(figure: Figure, site: Site) -> pl.DataFrame:
    """Return a figure's rows with column ``simulated``."""
    # A row of a source is simulated if the source is. Other rows are if any source is, since they
    # may be over all sources.
    rows = figure.rows
    mark = pl.lit(is_simulated(figure, site))
    if is_simulated(figure, site) and rows.schema.get("source") == pl.String:
        mark = pl.col("source").is_in(site.simulated).fill_null(True)
    return rows.with_columns(mark.alias(COLUMN))


def watermark(figure: Figure, site: Site) -> str:
    """Return the text that marks a figure's picture; empty on a site of real text only."""
    # A picture of the method, such as of intervals in simulated worlds, has no mark.
    if is_simulated(figure, site):
        return WATERMARK
    is_quoted = bool(site.simulated) and "reference" in figure.measured
    return NOT_SIMULATED if is_quoted else ""
