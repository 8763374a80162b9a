"""The first page: every model over time against its cutoffs, and the board."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

import polars as pl

from core.json import JsonObject
from reports.site.board_parts import parts_file, parts_of, windows_figure
from reports.site.charts import INK, LANES, PALETTE, SOFT, by_month, time_axis
from reports.site.citation import TITLE, site_bibtex
from reports.site.context import Site, is_control, months_of, some
from reports.site.figure import Column, Figure, Page, Row, told
from reports.site.findings import ageing_finding, board_finding, rise_about
from reports.site.front import (
    HOW_TO_READ,
    REFUTED_BY,
    has_published_page,
    headline_finding,
    rises_figure,
    three_answers,
    trust,
)
from reports.site.labels import LANE_HEADER
from reports.site.pictures import lanes as drawn_lanes
from reports.site.pictures.trends import trends_of

ORDER = 0
NAVIGATION = ("index.html", "Overview")
PATHS = (NAVIGATION[0],)
MAX_ROWS = 60  # of the board in the page, so that 100 models have at most 150 kB
LEAST_FLOOR = 1e-6  # bits per byte; a smaller one is of models with equal losses
MAX_LANES = 12  # models in the picture; the board has all
MIN_MONTHS = 3  # curves of fewer months are not drawn, and rows are shown in grey


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the overview."""
    windows = site.make(windows_figure)
    figures = site.make(rises_figure, _curves, _board)
    board = next((figure for figure in figures if figure.name == "board"), None)
    parts = parts_of(site, board.columns, windows) if board else {}
    collected = site.query("sources_board", protocol=site.protocol)[1]
    fields = {
        "num_months": site.num_months,
        "has_scored": not (
            board or site.readable("data_unmeasured", protocol=site.protocol).is_empty()
        ),
        "num_documents": collected["num_documents"].sum(),
        "sources": collected["source"].to_list(),
        "parts": list(parts),
        "published": site.readable("published_span").to_dicts() if has_published_page() else [],
        "headline": headline_finding(_own_gaps(site), "models", _untold(site)),
        "how_to_read": HOW_TO_READ,
        "refuted_by": REFUTED_BY,
        "cards": three_answers(site),
        "trust": list(trust(site)),
        "cite": site_bibtex(site),
        "measured": sorted(
            name for name in site.monthly["model"].unique() if site.model_page(name)
        ),
    }
    files = {"figures/board.parts.js": parts_file(parts)} if parts else {}
    yield Page("index.html", TITLE, "overview.html.j2", [*figures, *windows], fields, files)


def _own_gaps(site: Site) -> Sequence[Row]:
    return site.readable("gaps", protocol=site.protocol).to_dicts()


def _untold(site: Site) -> Sequence[Row]:
    return site.readable("gaps_untold", protocol=site.protocol).to_dicts()


def _board(site: Site) -> Figure:
    """Return the board: one row per model, with levels, gaps, cutoffs and scores."""
    sql, rows = some(site.query("board", protocol=site.protocol))
    over_time = site.readable("over_time", protocol=site.protocol)
    is_drawn = bool(over_time.columns) and over_time["month"].n_unique() >= MIN_MONTHS
    trends = trends_of(over_time) if is_drawn else {}
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("rank_set", "rank", about="Models whose ranks overlap cannot be told apart.",
               why="rank_reason"),
        Column("bits_per_byte", "level", ".3f", "bits_per_byte_low", "bits_per_byte_high",
               "bits per byte", "Mean over what all models have; lower is better.",
               why="rank_reason"),
        Column("saved_share", "better than zstd by", ".1f", "saved_share_low", "saved_share_high",
               "% of its bits", "On the same months; below zero where zstd is better.", factor=100,
               why="share_reason"),
        Column("adjusted_gap", "gap", "+.3f", "adjusted_gap_low", "adjusted_gap_high",
               "bits per byte", "Losses after the cutoff less before it, less what models share.",
               why="gap_reason"),
        Column("trend", "over time", about="Losses less the level up to the cutoff; by the last.",
               draw=lambda row: trends.get(row["model"]), why="trend_reason"),
        Column("growth_per_year", "ageing", "+.3f", "growth_per_year_low", "growth_per_year_high",
               "bits per byte a year", "Growth of the gap with the age of the model.",
               why="ageing_reason"),
        Column("stated_cutoff", "stated cutoff", "%Y-%m", why="stated_reason"),
        Column("cutoff_text", "measured cutoff",
               about="Last month with training text, by the losses.", why="cutoff_reason"),
        Column("forecast_accuracy", "forecasts", ".1f", "forecast_accuracy_low",
               "forecast_accuracy_high", "% right", "Of questions opened after the cutoff.",
               factor=100, why="forecast_reason"),
        Column("expected_accuracy", "guessing", ".1f", unit="% right", is_optional=True, factor=100,
               about="Right answers expected from guessing at these questions.",
               why="forecast_reason"),
        Column("puzzle_score", "puzzles", "+.2f", unit="-1 to 1", why="puzzle_reason"),
        Column("family", "family", is_optional=True, is_facet=True),
        Column("weights", "weights", is_optional=True, is_facet=True),
        Column("size_class", "size", is_optional=True, is_facet=True),
        Column("parameters", "parameters", ",d", is_optional=True),
        Column("released", "released", "%Y-%m-%d", is_optional=True),
        Column("num_months", "months", "d", is_optional=True),
        Column("num_sources", "sources", "d", is_optional=True),
    ]  # fmt: skip
    shown = told([column for column in columns if trends or not column.draw], rows)
    [floor, basis] = rows.select(pl.col("resolution", "basis").drop_nulls().first()).row(0)
    is_over_time = "months" in rows["interval_basis"]
    months = "this month" if site.num_months == 1 else "these months"
    other = "months like these" if is_over_time else f"documents of {months}"
    about = f"Intervals are of 95 %: would other {other} say the same?"
    if floor is not None and floor >= LEAST_FLOOR:
        about += f" Half of the pairs could be told apart from {floor:.2g} bits per byte on."
    if rows["num_months"].min() < MIN_MONTHS:  # type: ignore[operator]
        about += f" Grey: fewer than {MIN_MONTHS} months to compare."
    if basis is not None:
        what = "Level and rank" if rows["rank"].is_not_null().any() else "Levels"
        num_sources = rows.select(pl.max("num_sources")).item()
        shared = f" of {num_sources} of {len(site.sources)} sources, which all of them have"
        shared = shared if num_sources != len(site.sources) else ""
        about = f"{what} are over {months_of(basis)}{shared}. {about}"
    title = board_finding(rows.to_dicts())
    return Figure("board", title, about, sql, rows, shown, row_class=_row_class, max_rows=MAX_ROWS)


def _row_class(row: Row) -> str:
    """Return the style of a row: ``compressor``, ``provisional`` for few months, or none."""
    if is_control(row["model"]):
        return "compressor"
    return "provisional" if row["num_months"] < MIN_MONTHS else ""


def _curves(site: Site) -> Figure | None:
    """Return the losses of the board's first models over time; None for few months."""
    sql, rows = site.query("over_time", protocol=site.protocol)
    if rows.is_empty() or rows["month"].n_unique() < MIN_MONTHS:
        return None
    board = site.query("board", protocol=site.protocol)[1]
    best = [name for name in board["model"].to_list() if not is_control(name)][:MAX_LANES]
    kept = [name for name in rows["model"].unique(maintain_order=True) if name in best]
    return Figure(
        "over-time",
        ageing_finding(_own_gaps(site), _untold(site)),
        f"{rise_about(rows)}{lane_marks_about(rows)}",
        sql,
        rows,
        chart=lanes("model", kept, rows["month"].to_list()),
        drawn_models=kept,
        has_months=True,
    )


def lane_marks_about(rows: pl.DataFrame, known_by: str = "known") -> str:
    """Return what the marks of a chart of lanes are, of those that it has."""
    texts = {
        "stated_end": f" Dashed: the {known_by} cutoff.",
        "measured_begin": " Band: the cutoff that the losses show.",
    }
    return "".join(text for name, text in texts.items() if rows[name].is_not_null().any())


def lanes(key: str, names: list[str], months: list[dt.date]) -> JsonObject:
    """Return a chart with one lane per value of column ``key`` over a common time axis.

    ``names`` are the values to draw, in order. The rows have the columns of ``over_time.sql``.
    """
    x = time_axis(months)
    ends = [min(months).isoformat(), max(months).isoformat()]
    x["scale"] |= {"domain": ends}
    y = {"field": "rise", "type": "quantitative", "title": None, "axis": drawn_lanes.axis()}
    tooltip = by_month(key, "rise", "+.3f")
    once = {"filter": "datum.is_first"}
    header = {**LANE_HEADER, "labelPadding": drawn_lanes.PADDING}
    return {
        "transform": [{"filter": {"field": key, "oneOf": names}}],
        "facet": {"row": {"field": key, "sort": names, "header": header}},
        "usermeta": {LANES: {"key": key, "names": names, "ends": ends}},
        "padding": {"left": 5, "right": 24, "top": 8, "bottom": 5},  # the topmost number is there
        "spacing": drawn_lanes.SPACING,
        "spec": {"width": drawn_lanes.WIDTH, "height": drawn_lanes.HEIGHT, "layer": [
            {
                "transform": [once],
                "mark": {"type": "rect", "color": PALETTE[0], "fillOpacity": 0.35, "clip": True},
                "encoding": {
                    "x": {"field": "measured_begin", "type": "temporal"},
                    "x2": {"field": "measured_end"},
                },
            },
            {
                "transform": [{"filter": "datum.is_after"}],
                "mark": {"type": "area", "color": PALETTE[1], "fillOpacity": 0.4, "clip": True},
                "encoding": {"x": x, "y": y, "y2": {"datum": 0}},
            },
            {
                "mark": {"type": "line", "color": INK, "strokeWidth": 1.3, "clip": True},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            {
                "transform": [once],
                "mark": {"type": "rule", "strokeDash": [4, 3], "color": SOFT, "clip": True},
                "encoding": {"x": {"field": "stated_end", "type": "temporal"}},
            },
        ]},
    }  # fmt: skip
