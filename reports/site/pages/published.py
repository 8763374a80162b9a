"""Figures that others have published: printed ones, and monthly rates that were landed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from reports.site.answer_findings import printed_rates_finding
from reports.site.charts import INK, PALETTE, with_room
from reports.site.context import Site
from reports.site.figure import Column, Figure, Page
from reports.site.findings import lowest_finding
from reports.site.pages.source import MAX_LINES, level_lines

ORDER, NAVIGATION = 5, ("published.html", "Published")
PATHS = (NAVIGATION[0],)


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of published figures."""
    figures = site.make(_plane, _rates, _tables)
    yield Page("published.html", "Published", "published.html.j2", figures)


def _plane(site: Site) -> Figure | None:
    sql, rows = site.query("published_plane")
    if rows.is_empty():
        return None
    x = {"field": "rate_2023", "type": "quantitative", "scale": {"type": "log", "nice": False},
         "axis": {"labelOverlap": "greedy", "labelSeparation": 6},
         "title": "compressed size in 2023, % of the text (logarithmic)"}  # fmt: skip
    y = {"field": "change", "type": "quantitative",
         "title": "change against 2017 to 2022, percentage points"}  # fmt: skip
    places = ["model", pl.col("rate_2023").log(), "change"]
    told = rows.drop_nulls(["rate_2023", "change"]).sort("rate_2023", "model")
    named = [
        {"and": [
            {"field": "corpus", "equal": corpus},
            {"field": "model", "oneOf": with_room(points.select(places).rows(), 360, 240)},
        ]}
        for [corpus], points in told.partition_by("corpus", as_dict=True).items()
    ]  # fmt: skip
    point = {"mark": {"type": "circle", "size": 50, "color": PALETTE[0], "opacity": 1},
             "encoding": {"x": x, "y": y, "tooltip": [{"field": "model"}]}}  # fmt: skip
    label = {"transform": [{"filter": {"or": named}}],
             "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 9, "color": INK,
                      "limit": 110},
             "encoding": {"x": x, "y": y, "text": {"field": "model"}}}  # fmt: skip
    chart = {
        "facet": {"field": "corpus", "type": "nominal", "title": None,
                  "header": {"labelAnchor": "start", "labelFontWeight": "bold"}},
        "columns": 2, "spacing": 28, "resolve": {"scale": {"x": "independent", "y": "independent"}},
        "spec": {"width": 360, "height": 240, "layer": [point, label]},
    }  # fmt: skip
    columns = [
        Column("corpus", "text"),
        Column("model", "model"),
        Column("rate_2023", "2023", ".3f", unit="% of the text"),
        Column("rate_2017_2023", "2017 to 2023", ".3f", unit="% of the text"),
        Column("change", "change", "+.3f", unit="percentage points",
               about="2023 less 2017 to 2022, as printed"),
    ]  # fmt: skip
    title = printed_rates_finding(rows.to_dicts())
    about = "Left: compresses the text of 2023 better. Up: loses more on it than on older text."
    return Figure("published-plane", title, about, sql, rows, columns, chart)


def _rates(site: Site) -> Figure | None:
    sql, rows = site.query("published_rates")
    if rows.is_empty():
        return None
    means = rows.group_by("model").agg(pl.mean("bits_per_byte")).sort("bits_per_byte", "model")
    chart = level_lines(means["model"].to_list()[:MAX_LINES], rows)
    title = f"{lowest_finding(rows.to_dicts(), 'month')}, as published"
    about = "Rates that were landed with `tidemark land-published`; the mean over their sources."
    return Figure("published-rates", title, about, sql, rows, chart=chart)


def _tables(site: Site) -> Figure | None:
    sql, rows = site.query("published_tables")
    if rows.is_empty():
        return None
    columns = [
        Column("reference", "paper"),
        Column("printed_table", "table"),
        Column("num_figures", "figures", ",d"),
        Column("num_models", "models", "d"),
        Column("columns", "columns"),
    ]
    about = "Every printed figure is a row of view published_figures, with all printed digits."
    num, papers = rows["num_figures"].sum(), rows["reference"].n_unique()
    title = f"{num:,} printed figures of {papers} papers are in the database"
    return Figure("published-tables", title, about, sql, rows, columns)
