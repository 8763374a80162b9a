"""One page per source: its months for all models, their difficulty, and what was collected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from core.json import JsonObject
from core.plugins import import_parts
from core.progress import counted
from reports.site.charts import INK, PALETTE, SOFT, by_month, time_axis
from reports.site.context import Site, is_control, of_name, some
from reports.site.figure import Column, Figure, Link, Page, Row, slug, told
from reports.site.findings import (
    collected_finding,
    difficulty_finding,
    lowest_finding,
    source_finding,
)
from reports.site.labels import end_labels, extent_of
from reports.site.pages.overview import MIN_MONTHS

ORDER = 11
NAVIGATION = ("sources.html", "Sources")
PATHS = ("sources.html", "sources/*")
MAX_LINES = 8  # models with a colour and a label
MAX_GREY = 16  # further models, in grey; the CSV has all
_BITS = "bits per byte"
LINES_ABOUT = {
    "compressor_difficulty": "A compressor has learned nothing.",
    "thermometer_difficulty": "Old models were trained before all of these months.",
}


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the list of sources and a page per source."""
    yield Page("sources.html", "Sources", "sources.html.j2", [_all(site)] if site.sources else [])
    known = {row["source"]: row for row in site.query("sources")[1].to_dicts()}
    for name in site.sources:
        makers = (_difficulty, _levels, _models, _documents, _collected)
        figures = site.make(*(of_name(make, name) for make in makers))
        fields = {"name": name, "known": known.get(name, {}), "links": _links(site, name)}
        yield Page(f"sources/{slug(name)}.html", name, "source.html.j2", figures, fields)


def _links(site: Site, source: str) -> list[Link]:
    """Return the links from a source's page to pages of extras."""
    linking = [part for part in import_parts("pages") if hasattr(part, "link_of_source")]
    found = [part.link_of_source(site, source) for part in linking]
    return [link for link in found if link is not None]


def _all(site: Site) -> Figure:
    """Return the list of sources with their facts."""
    sql, rows = site.query("sources_board", protocol=site.protocol)
    columns = [
        Column("source", "source", link=lambda row: site.source_page(row["source"])),
        Column("title", "what it is", why="fact_reason"),
        Column("category", "kind", why="fact_reason"),
        Column("language", "language", is_optional=True, why="fact_reason"),
        Column("first_month", "first month", "%Y-%m"),
        Column("last_month", "last month", "%Y-%m"),
        Column("num_documents", "documents", ",d"),
        Column("num_bytes", "bytes", ",d"),
        Column("num_models", "models", "d"),
        Column("licence", "licence", why="fact_reason"),
    ]
    num_documents = int(rows["num_documents"].sum())
    title = f"{counted(rows.height, 'source')}, {counted(num_documents, 'document')}"
    return Figure("sources", title, "", sql, rows, columns)


def _difficulty(site: Site, name: str) -> Figure | None:
    """Return how hard the months of a source are for all models, as a chart."""
    sql, rows = site.part("source_difficulty", "source", name, protocol=site.protocol)
    if rows["month"].n_unique() < MIN_MONTHS:
        return None
    x = time_axis(rows["month"].to_list())
    lines = [
        ("difficulty", "language models", INK),
        ("compressor_difficulty", "compressor", PALETTE[4]),
        ("thermometer_difficulty", "old models", PALETTE[3]),
    ]
    shown = [line for line in lines if rows[line[0]].is_not_null().any()]
    if not shown:
        return None
    band = {
        "mark": {"type": "area", "color": SOFT, "fillOpacity": 0.18},
        "encoding": {
            "x": x,
            "y": {"field": "difficulty_low", "type": "quantitative", "title": _BITS},
            "y2": {"field": "difficulty_high"},
        },
    }
    layers = [band, *_lines(rows, shown), *_regime_marks(site, name, x)]
    about = "Zero is the mean over months. Band: the 95 % interval for language models."
    about += "".join(f" {LINES_ABOUT[name]}" for name, _, _ in shown if name in LINES_ABOUT)
    title = difficulty_finding(rows.to_dicts(), len(site.sources))
    chart = {"width": 640, "height": 220, "layer": layers}
    return Figure(f"source-{slug(name)}-difficulty", title, about, sql, rows, chart=chart)


def _lines(rows: pl.DataFrame, lines: Sequence[tuple[str, str, str]]) -> list[JsonObject]:
    """Return a line per column (name, label, colour), and their labels at the last month."""
    x = time_axis(rows["month"].to_list())
    layers: list[JsonObject] = [
        {
            "mark": {"type": "line", "color": colour, "strokeWidth": 1.6},
            "encoding": {"x": x, "y": {"field": column, "type": "quantitative"}},
        }
        for column, _, colour in lines
    ]
    last = {label: rows[column].drop_nulls()[-1] for column, label, _ in lines}
    columns = ["difficulty_low", "difficulty_high", *(column for column, _, _ in lines)]
    values = rows.select(columns).unpivot()["value"].drop_nulls()
    colours = {label: colour for _, label, colour in lines}
    return [*layers, end_labels(last, colours, extent_of(values))]


def _regime_marks(site: Site, name: str, x: Mapping[str, Any]) -> list[JsonObject]:
    """Return a thin rule with a label at each month from which the source differs."""
    starts = site.part("source_regimes", "source", name)[1]
    values = [
        {"month": row["month"].isoformat(), "label": row["regime"]} for row in starts.to_dicts()
    ]
    if not values:
        return []
    at = {"x": {**x, "field": "month"}}
    text = {"type": "text", "align": "right", "dx": -4, "baseline": "top", "color": SOFT}
    return [
        {"data": {"values": values}, "mark": {"type": "rule", "color": SOFT}, "encoding": at},
        {
            "data": {"values": values},
            "mark": text,
            "encoding": {**at, "y": {"value": 0}, "text": {"field": "label"}},
        },
    ]


def _levels(site: Site, name: str) -> Figure | None:
    """Return the losses of the best models on a source by month, as a chart."""
    sql, rows = site.part("source_levels", "source", name, protocol=site.protocol)
    if rows["month"].n_unique() < MIN_MONTHS:
        return None
    means = rows.group_by("model").agg(pl.mean("bits_per_byte")).sort("bits_per_byte", "model")
    best = means["model"].to_list()[:MAX_LINES]
    others = means["model"].to_list()[MAX_LINES : MAX_LINES + MAX_GREY]
    chart = level_lines(best, rows.filter(pl.col("model").is_in([*best, *others])), others)
    chart["layer"] += _regime_marks(site, name, time_axis(rows["month"].to_list()))
    about = "Lower is better. " + (f"In grey: the next {len(others)} models." if others else "")
    return Figure(
        f"source-{slug(name)}-levels", lowest_new_finding(rows), about, sql, rows,
        chart=chart, drawn_models=[*best, *others],
    )  # fmt: skip


_OF_NEW = " (of those that are new to all models)"


def lowest_new_finding(rows: pl.DataFrame) -> str:
    """Return who is best in months that are new to all models of known cutoff."""
    # Without such months, those count that are new to two models or more; the title says so.
    dated = rows.filter(pl.col("is_new").is_not_null())
    models = dated.filter(~pl.col("model").str.starts_with("control:"))
    if models.is_empty():
        return lowest_finding(rows.to_dicts(), "month")
    by_month = models.group_by("month").agg(pl.all("is_new").alias("is_of_all"), pl.sum("is_new"))
    new_to_all = by_month.filter("is_of_all")["month"].to_list()
    if new_to_all:
        found = lowest_finding(dated.filter(pl.col("month").is_in(new_to_all)).to_dicts(), "month")
        first = min(new_to_all)
        is_whole = first == rows["month"].min()
        if is_whole:
            return found
        is_count = found.endswith("months")
        return f"{found} that are new to all models" if is_count else f"{found}{_OF_NEW}"
    new_to_two = by_month.filter(pl.col("is_new") > 1)["month"].to_list()
    if not new_to_two:
        return "No month is after the cutoffs of two models"
    new = dated.filter("is_new").filter(pl.col("month").is_in(new_to_two))
    return f"{lowest_finding(new.to_dicts(), 'month')}, among models to which they are new"


def level_lines(
    labelled: Sequence[str], rows: pl.DataFrame, others: Sequence[str] = ()
) -> JsonObject:
    """Return lines of bits per byte by month: with a colour and a label, and others in grey.

    ``rows`` has the columns model, month and bits_per_byte.
    """
    x = time_axis(rows["month"].to_list())
    y = {"field": "bits_per_byte", "type": "quantitative", "title": _BITS,
         "scale": {"zero": False}}  # fmt: skip
    is_labelled = {"field": "model", "oneOf": list(labelled)}
    scale = {"domain": list(labelled), "range": list(PALETTE[: len(labelled)])}
    colour = {"field": "model", "type": "nominal", "legend": None, "scale": scale}
    tooltip = by_month("model", "bits_per_byte", ".3f")
    drawn = rows.filter(pl.col("model").is_in([*labelled, *others]))
    newest = drawn.sort("month").group_by("model").last()
    levels = dict(newest.select("model", "bits_per_byte").iter_rows())
    last = {model: levels[model] for model in labelled}
    colours = dict(zip(labelled, PALETTE, strict=False))
    return {"width": 640, "height": 320, "layer": [
        {"transform": [{"filter": {"field": "model", "oneOf": list(others)}}],
         "mark": {"type": "line", "color": SOFT, "strokeWidth": 0.7, "strokeOpacity": 0.4},
         "encoding": {"x": x, "y": y, "detail": {"field": "model"}, "tooltip": tooltip}},
        {"transform": [{"filter": is_labelled}],
         "mark": {"type": "line", "strokeWidth": 1.6},
         "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip}},
        end_labels(last, colours, extent_of(drawn["bits_per_byte"])),
    ]}  # fmt: skip


def _models(site: Site, name: str) -> Figure:
    """Return level, gap, ageing and cutoff of each model on a source."""
    sql, rows = site.part("model_sources", "source", name, protocol=site.protocol)
    sql = f"{sql}\norder by bits_per_byte nulls last, model"
    rows = rows.sort("bits_per_byte", "model", nulls_last=True)
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("bits_per_byte", "level", ".3f", unit=_BITS,
               about="Mean over months after the cutoff; over all if the cutoff is unknown.",
               why="level_reason"),
        Column("bits_per_byte_seen", "up to the cutoff", ".3f", unit=_BITS, why="seen_reason"),
        Column("adjusted_gap", "gap", "+.3f", "adjusted_gap_low", "adjusted_gap_high", _BITS,
               why="gap_reason"),
        Column("growth_per_year", "ageing", "+.3f", "growth_per_year_low", "growth_per_year_high",
               f"{_BITS} a year", why="ageing_reason"),
        Column("cutoff_text", "measured cutoff", why="cutoff_reason"),
        Column("num_months", "months", "d"),
    ]  # fmt: skip
    title = source_finding(rows.to_dicts(), name)
    return Figure(f"source-{slug(name)}-models", title, "", sql, rows, told(columns, rows),
                  row_class=_row_class)  # fmt: skip


def _row_class(row: Row) -> str:
    return "compressor" if is_control(row["model"]) else ""


def _documents(site: Site, name: str) -> Figure:
    """Return the documents of each month of a source, and how much the texts change."""
    sql, rows = site.part("source_documents", "source", name, protocol=site.protocol)
    columns = [
        Column("month", "month", "%Y-%m"),
        Column("num_documents", "documents", ",d"),
        Column("num_bytes", "bytes", ",d"),
        Column("num_models", "models scored", "d"),
        Column("difference_from_previous", "change of the text", ".1f", unit="%", factor=100,
               about="How different the texts are from those of the month before."),
    ]  # fmt: skip
    months = [str(month)[:7] for month in rows["month"].to_list()]
    num = f"{rows.height} months, {months[-1]} to" if rows.height > 1 else "1 month,"
    title = f"What was scored: {num} {months[0]}"
    return Figure(f"source-{slug(name)}-documents", title, "", sql, rows, told(columns, rows))


COLLECTED = (
    Column("outcome", "outcome"),
    Column("num_items", "items", ",d"),
    Column("share", "share", ".1f", unit="%", factor=100),
    Column("num_months", "months", ",d"),
)


def _collected(site: Site, name: str) -> Figure:
    """Return what became of the items that crawls of a source found."""
    sql, rows = some(site.part("collected", "source", name, outcomes=site.outcomes))
    title = collected_finding(rows.to_dicts())
    about = scored_of(site, name)
    return Figure(f"source-{slug(name)}-collected", title, about, sql, rows, COLLECTED)


def scored_of(site: Site, name: str | None = None) -> str:
    """Return how many documents of a source, or of all, are scored; others may be kept, too."""
    rows = site.query("sources_board", protocol=site.protocol)[1]
    chosen = rows if name is None else rows.filter(pl.col("source") == name)
    num = counted(int(chosen["num_documents"].sum()), "document")
    return f"Figures are of the {num} with losses."
