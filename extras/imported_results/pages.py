"""Figures that others have published: printed ones, and monthly rates that were landed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from core.json import JsonObject
from extras.imported_results.findings import (
    growth_finding,
    printed_rates_finding,
    published_gaps_finding,
)
from reports.site.charts import INK, PALETTE, PAPER, SOFT, by_month, time_axis
from reports.site.context import Site, some
from reports.site.figure import ELSEWHERE, Column, Figure, Page
from reports.site.findings import span
from reports.site.labels import end_labels, extent_of, with_room

ORDER = 5
NAVIGATION = ("published.html", "Published")
PATHS = (NAVIGATION[0],)
LABEL_SHARE = 0.037  # of the height of the chart, for a label


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of published figures."""
    has_rates = not site.query("published_references")[1].is_empty()
    figures = site.make(*(_rates, _gaps) * has_rates, _plane, _tables)
    yield Page("published.html", "Published", "published.html.j2", figures)


def _plane(site: Site) -> Figure:
    """Return the figure of rates in 2023 against their change since earlier years."""
    sql, rows = some(site.query("published_plane"))
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
            {"field": "model", "oneOf": with_room(points.select(places).rows(), 300, 240)},
        ]}
        for [corpus], points in told.partition_by("corpus", as_dict=True).items()
    ]  # fmt: skip
    point = {"mark": {"type": "circle", "size": 50, "color": PALETTE[0], "opacity": 1},
             "encoding": {"x": x, "y": y, "tooltip": [{"field": "model"}]}}  # fmt: skip
    label = {"transform": [{"filter": {"or": named}}],
             "mark": {"type": "text", "align": "left", "dx": 6, "color": INK,
                      "limit": 110},
             "encoding": {"x": x, "y": y, "text": {"field": "model"}}}  # fmt: skip
    chart = {
        "facet": {"field": "corpus", "type": "nominal", "title": None,
                  "header": {"labelAnchor": "start", "labelFontWeight": "bold"}},
        "columns": 2, "spacing": 28, "resolve": {"scale": {"x": "independent", "y": "independent"}},
        "spec": {"width": 310, "height": 240, "layer": [point, label]},
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
    origin = {**ELSEWHERE, "reference": "Li et al. 2024, arXiv 2402.00861, Table 3"}
    return Figure("published-plane", title, about, sql, rows, columns, chart, measured=origin)


def _rates(site: Site) -> Figure:
    """Return the figure of published rates by month."""
    sql, rows = site.query("published_rates")
    about = (
        "In colour: families with several sizes; without any, the models that grew most. Dot: the "
        "last month of training text, as the makers state it; ring: as inferred from their papers."
    )
    title = growth_finding(site.query("published_gaps")[1].to_dicts())
    return Figure("published-rates", title, about, sql, rows, chart=_growth_lines(rows),
                  measured=site.facts_of("published_references"))  # fmt: skip


def _growth_lines(rows: pl.DataFrame) -> JsonObject:
    """Return a line per model, in the colour of its family, with its name and its cutoff."""
    x = time_axis(rows["month"].to_list())
    scale = {"domain": list(range(1, len(PALETTE) + 1)), "range": list(PALETTE)}
    colour = {"field": "place", "type": "ordinal", "legend": None, "scale": scale}
    y = {"field": "relative", "type": "quantitative",
         "title": "growth of the compressed size since the first year, %"}  # fmt: skip
    at = {"x": x, "y": y,
          "color": {"condition": {"test": "datum.place", **colour}, "value": SOFT}}  # fmt: skip
    width = {"condition": {"test": "datum.place", "value": 1.8}, "value": 0.8}
    tooltip = by_month("model", "rate", ".3f", title="% of the text")
    line = {**at, "detail": {"field": "model"}, "strokeWidth": width, "tooltip": tooltip}
    fills: dict[str, JsonObject] = {"stated": {"filled": True}, "inferred": {"fill": PAPER}}
    marks = [
        {"transform": [{"filter": f"datum.cutoff_here == '{provenance}'"}],
         "mark": {"type": "point", "size": 70, "opacity": 1} | fill, "encoding": at}
        for provenance, fill in fills.items()
    ]  # fmt: skip
    named = rows.filter("is_named")["model", "relative", "place"].rows()
    labels = {model: relative for model, relative, _ in named}
    colours = {model: PALETTE[place - 1] if place else SOFT for model, _, place in named}
    names = end_labels(labels, colours, extent_of(rows["relative"]), LABEL_SHARE)
    layers = [{"mark": "line", "encoding": line}, *marks, names]
    return {"width": 640, "height": 460, "layer": layers}


def _gaps(site: Site) -> Figure:
    """Return the table of published rates before and after the stated cutoff."""
    sql, rows = some(site.query("published_gaps"))
    first = rows["first_year"][0]
    last = rows["last_year"][0]
    before = span([first, last - 1], "d")
    percent = "% of the text"
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("stated_cutoff", "stated cutoff", "%Y-%m", why="stated_reason"),
        Column("cutoff_provenance", "which is", why="stated_reason"),
        Column("cutoff_text", "measured cutoff",
               about="Last month with training text, by these rates.", why="cutoff_reason"),
        Column("rate_before", before, ".3f", unit=percent),
        Column("rate_after", str(last), ".3f", unit=percent),
        Column("change", "change", "+.3f", unit="percentage points"),
        Column("parameters", "parameters", ",d", is_optional=True),
    ]  # fmt: skip
    title = published_gaps_finding(rows.to_dicts(), before, last)
    about = "Means over months. Published rates have no intervals, so no change is tested."
    return Figure(
        "published-gaps",
        title,
        about,
        sql,
        rows,
        columns,
        measured=site.facts_of("published_references"),
    )


def _tables(site: Site) -> Figure:
    """Return the table of all printed tables whose figures are in the database."""
    sql, rows = some(site.query("published_tables"))
    columns = [
        Column("reference", "paper"),
        Column("printed_table", "table"),
        Column("num_figures", "figures", ",d"),
        Column("num_models", "models", "d"),
        Column("columns", "columns"),
    ]
    about = "Every printed figure is a row of view published_figures, with all printed digits."
    num = rows["num_figures"].sum()
    papers = rows["reference"].n_unique()
    title = f"{num:,} printed figures of {papers} papers are in the database"
    return Figure("published-tables", title, about, sql, rows, columns, measured=ELSEWHERE)
