"""Comparisons: every two models, the plane of level and gap, ranks over months, tokenizers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import polars as pl
import polars.selectors as cs

from core.json import JsonObject
from reports.site.charts import INK, PALETTE, SOFT, time_axis
from reports.site.context import Site, is_control, months_of, some
from reports.site.figure import NOTHING, P_VALUE, Column, Figure, Page, Row, shown, told
from reports.site.findings import (
    contexts_finding,
    lowest_finding,
    months_finding,
    neighbours_finding,
    pair_finding,
    plane_finding,
    ranks_finding,
    span,
)
from reports.site.labels import LANE_HEADER, end_labels, extent_of, with_room
from reports.site.pages.overview import MIN_MONTHS
from reports.site.radar import MAX_LINES, MIN_SPOKES, radar

ORDER = 2
NAVIGATION = ("compare.html", "Compare")
PATHS = (NAVIGATION[0],)
MAX_LABELS = 24  # models with a label in the plane
MAX_RANKED = 6  # models in the chart of ranks
MAX_NEIGHBOURS = 24  # in the page itself
MAX_DOTS = 36  # months of a line with a dot for each
MAX_PAIRED_MONTHS = 6000  # differences by month: of as many of the board's first models
_BITS = "bits per byte"
_ABOUT_PLANE = (
    "Generalisation against robustness. Each model is shown over its own months on both sides of "
    "its cutoff, so the months of two models differ."
)


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of comparisons; its script reads all pairs from ``figures/pairs.data.js``."""
    figures = site.make(_months, _plane, _ranks, _profile, _neighbours, _tokenizers, _contexts)
    pairs = with_months(site.readable("compare_pairs", protocol=site.protocol))
    paired: set[str] = set()
    if pairs.columns:
        paired = {*pairs["model"], *pairs["other"]}
    models = [name for name in site.models if name in paired]
    months = next((figure for figure in figures if figure.name == "pair-months"), None)
    board = site.readable("board", protocol=site.protocol)
    ranked = [name for name in board["model"] if name in paired] if board.columns else []
    # The board leaves some models out. A pair of models says more than one with a compressor.
    first = sorted(dict.fromkeys([*ranked, *models]), key=is_control)
    pair = months.drawn["model", "other"].row(0) if months else first[:2]
    verdict = verdict_of(pairs, *pair) if len(pair) > 1 else None
    fields = {"models": models, "pair": pair, "verdict": verdict}
    files = {"figures/pairs.data.js": _data("pairs", pairs)} if models else {}
    if months:
        files["figures/pair-months.data.js"] = _data(months.name, months.rows)
    yield Page("compare.html", "Compare", "compare.html.j2", figures, fields, files)


def with_months(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return pairs with their basis in words."""
    if not pairs.columns:
        return pairs
    bases = pairs["basis"].drop_nulls().unique().to_list()
    words = {basis: months_of(basis) for basis in bases}
    return pairs.with_columns(pl.col("basis").replace(words))


def verdict_of(pairs: pl.DataFrame, one: str, other: str) -> dict[str, object] | None:
    """Return title and table of a pair, as the page's script makes them; None without rows."""
    is_pair = (pl.col("model") == one) & (pl.col("other") == other)
    is_turned = (pl.col("model") == other) & (pl.col("other") == one)
    rows = pairs.filter(is_pair | is_turned).to_dicts()
    if not rows:
        return None
    sign_of_one = 1 if rows[0]["model"] == one else -1
    overall = rows[0]
    basis = f"Over {overall['basis']}."
    if overall["difference"] is None:
        title = f"{one} and {other} cannot be compared: {overall['reason']}"
        return {"title": title, "about": basis, "rows": []}
    return {
        "title": pair_finding(overall, one, other),
        "about": f"{basis} Negative: {one} is better.{_untested(overall)}",
        "rows": [_pair_cells(row, sign_of_one) for row in rows],
        "reasons": [_own_reason(row, overall) for row in rows],
    }


def _own_reason(row: Row, overall: Row) -> str | None:
    """Return why a source has no p-value, unless the text above the table says so."""
    known = row["p"] is not None or (overall["p"] is None and row["reason"] == overall["reason"])
    return None if known else row["reason"]


def _untested(row: Row) -> str:
    """Return why a pair has no p-value, and what its interval is over then; empty if it has one."""
    if row["p"] is not None:
        return ""
    reason = (row["reason"] or "").removeprefix("no interval: ")
    untested = f" No p-value: {reason}." if reason else " No p-value."
    if row["low"] is None:
        return untested
    return f"{untested} The interval is what other documents of these months may give."


def _pair_cells(row: Row, sign: int) -> list[str]:
    """Return the cells of a source's difference."""
    difference, *ends = (
        None if row[name] is None else shown(sign * row[name], Column("", "", ".4f"))
        for name in ("difference", "low", "high")
    )
    interval = " to ".join(end or NOTHING for end in ends[::sign])
    p_value = NOTHING if row["p"] is None else shown(float(row["p"]), Column("", "", P_VALUE))
    return [
        row["source"] or "all sources",
        difference or NOTHING,
        interval,
        p_value,
        f"{row['n']:,}",
    ]


def _data(name: str, pairs: pl.DataFrame) -> bytes:
    """Return all pairs as a script, which a page that is opened from disk can load, too."""
    whole = pairs.with_columns(cs.decimal().cast(int), cs.date().dt.to_string("iso"))
    columns = whole.with_columns(cs.float().round(5).fill_nan(None)).to_dict(as_series=False)
    return f"tidemark['{name}']({json.dumps(columns, separators=(',', ':'))});\n".encode()


def _months(site: Site) -> Figure | None:
    """Return the differences of pairs of models by month, for the board's first models."""
    board = site.query("board", protocol=site.protocol)[1]
    measured = board.filter(pl.col("bits_per_byte").is_not_null())["model"].to_list()
    names = sorted(measured, key=is_control)
    num_cells = site.monthly.select("source", "month").n_unique()
    while len(names) > 2 and len(names) * (len(names) - 1) / 2 * num_cells > MAX_PAIRED_MONTHS:
        names.pop()
    sql, rows = site.query("compare_months", protocol=site.protocol, models=json.dumps(names))
    if rows["month"].n_unique() < MIN_MONTHS:
        return None
    figure = Figure("pair-months", "", "", sql, rows, drawn_pair=names[:2])
    shown = figure.drawn.to_dicts()
    about = (
        f"Bits per byte of {shown[0]['model']} less those of {shown[0]['other']}, on the documents "
        "that both were scored on. Band: would other documents of the month say the same (95 %)? "
        f"Any two of the board's first {len(names)} rows can be chosen above."
    )
    title = months_finding(shown)
    return replace(figure, title=title, about=about, chart=_month_lanes(figure.drawn))


def _month_lanes(rows: pl.DataFrame) -> JsonObject:
    """Return a chart with a lane per source: the difference of two models by month."""
    x: JsonObject = time_axis(rows["month"].to_list())
    y = {"field": "difference", "type": "quantitative", "title": None,
         "axis": {"tickCount": 2, "format": "+.2~f"}}  # fmt: skip
    is_dotted = rows["month"].n_unique() <= MAX_DOTS
    numbers = [{"field": name, "format": "+.4f"} for name in ("difference", "low", "high")]
    tooltip = [{"field": "month", "type": "temporal", "format": "%Y-%m"}, *numbers]
    return {
        "facet": {"row": {"field": "source", "header": LANE_HEADER}},
        "spacing": 14,
        "spec": {"width": 640, "height": 48, "layer": [
            {"mark": {"type": "area", "color": PALETTE[0], "fillOpacity": 0.25},
             "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}},
            {"data": {"values": [{}]}, "mark": {"type": "rule", "color": SOFT},
             "encoding": {"y": {"datum": 0}}},
            {"mark": {"type": "line", "color": PALETTE[0], "strokeWidth": 1.3,
                      "point": is_dotted and {"size": 12, "color": PALETTE[0]}},
             "encoding": {"x": x, "y": y, "tooltip": tooltip}},
        ]},
    }  # fmt: skip


def _contexts(site: Site) -> Figure:
    """Return level, time and memory by length of the window."""
    sql, rows = some(site.query("compare_contexts"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("source", "source", link=lambda row: site.source_page(row["source"])),
        Column("protocol", "protocol"),
        Column("context", "context", ",d", unit="tokens"),
        Column("stride", "stride", ",d", unit="tokens"),
        Column("bits_per_byte", "level", ".3f", unit=_BITS),
        Column("seconds_per_megabyte", "time", ",.1f", unit="s a megabyte"),
        Column("peak_memory_gb", "peak memory", ".2f", unit="GB"),
        Column("num_cells", "months", ",d"),
    ]
    about = "What a longer window gains and costs, on the months that all of these protocols have."
    return Figure("contexts", contexts_finding(rows.to_dicts()), about, sql, rows, columns)


def _neighbours(site: Site) -> Figure:
    """Return the tests of each model against the next on the board."""
    sql, rows = some(site.query("compare_neighbours", protocol=site.protocol))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("other", "against the next on the board",
               link=lambda row: site.model_page(row["other"])),
        Column("difference", "difference", "+.4f", "difference_low", "difference_high", _BITS),
        Column("p_value_adjusted", "p", P_VALUE, about="Bonferroni's, over ranked models",
               why="reason"),
        Column("num_months", "months", "d"),
        Column("reason", "no p: reason"),
    ]  # fmt: skip
    about = (
        "On the months of the board. Negative: the first of the two is better. This test is of the "
        "board's levels and corrects for its rows. That of two chosen models pairs documents and "
        "corrects for all pairs. So one of them may tell what the other does not."
    )
    return Figure("neighbours", neighbours_finding(rows.to_dicts()), about, sql, rows,
                  told(columns, rows), max_rows=MAX_NEIGHBOURS)  # fmt: skip


def _plane(site: Site) -> Figure:
    """Return level against gap, a point per model, with the names that have room."""
    sql, rows = some(site.query("compare_plane", protocol=site.protocol))
    x = {"field": "bits_per_byte_after", "type": "quantitative", "scale": {"zero": False},
         "axis": {"tickCount": 8, "labelOverlap": True},
         "title": "level after the cutoff, bits per byte (left: generalises better)"}  # fmt: skip
    y = {"field": "bits_per_byte_gap", "type": "quantitative",
         "title": "gap, bits per byte (lower: more robust)"}  # fmt: skip
    points = rows.select("model", "bits_per_byte_after", "bits_per_byte_gap").rows()
    ends = rows.select(cs.starts_with("bits_per_byte_gap")).unpivot()["value"].drop_nulls()
    lowest, highest = extent_of(pl.concat([ends, pl.Series([0.0])]))  # the axis begins at zero
    gaps = extent_of(rows["bits_per_byte_gap"])
    height = 360 if rows.height > MAX_LABELS else 240
    spanned = height * (gaps[1] - gaps[0]) / (highest - lowest or 1)
    named = with_room(points, 580, spanned)[:MAX_LABELS]
    error = {"mark": {"type": "rule", "color": SOFT, "strokeOpacity": 0.6}, "encoding": {
        "x": x, "y": {**y, "field": "bits_per_byte_gap_low"},
        "y2": {"field": "bits_per_byte_gap_high"},
    }}  # fmt: skip
    tooltip = [{"field": name} for name in ("model", "bits_per_byte_after", "bits_per_byte_gap")]
    point = {"mark": {"type": "circle", "size": 60, "color": PALETTE[0], "opacity": 1},
             "encoding": {"x": x, "y": y, "tooltip": tooltip}}  # fmt: skip
    label = {"transform": [{"filter": {"field": "model", "oneOf": named}}],
             "mark": {"type": "text", "align": "left", "dx": 8, "color": INK, "limit": 180},
             "encoding": {"x": x, "y": y, "text": {"field": "model"}}}  # fmt: skip
    chart = {"width": 640, "height": height, "layer": [error, point, label]}
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("bits_per_byte_after", "after the cutoff", ".3f", unit=_BITS),
        Column("bits_per_byte_gap", "gap", "+.3f", "bits_per_byte_gap_low",
               "bits_per_byte_gap_high", _BITS, why="reason"),
        Column("q_value", "q", P_VALUE, why="reason"),
        Column("num_months_after", "months after", "d"),
    ]  # fmt: skip
    return Figure("plane", plane_finding(rows.to_dicts()), _ABOUT_PLANE,
                  sql, rows, columns, chart)  # fmt: skip


def _ranks(site: Site) -> Figure | None:
    """Return the mean ranks of the first models by month."""
    sql, rows = site.query("compare_ranks", protocol=site.protocol)
    if rows.is_empty() or rows["month"].n_unique() < MIN_MONTHS:
        return None
    means = rows.group_by("model").agg(pl.mean("mean_rank")).sort("mean_rank", "model")
    shown = means["model"].to_list()[:MAX_RANKED]
    x: JsonObject = time_axis(rows["month"].to_list())
    y = {"field": "mean_rank", "type": "quantitative", "title": "mean rank over sources",
         "scale": {"reverse": True, "zero": False, "nice": False}}  # fmt: skip
    drawn = rows.filter(pl.col("model").is_in(shown)).sort("month")
    last = dict(drawn.group_by("model").last().select("model", "mean_rank").iter_rows())
    colours = dict(zip(shown, PALETTE, strict=False))
    scale = {"domain": shown, "range": list(colours.values())}
    colour = {"field": "model", "type": "nominal", "legend": None, "scale": scale}
    line = {"transform": [{"filter": {"field": "model", "oneOf": shown}}],
            "mark": {"type": "line", "strokeWidth": 1.5, "clip": True},
            "encoding": {"x": x, "y": y, "color": colour}}  # fmt: skip
    labels = end_labels(last, colours, extent_of(drawn["mean_rank"]))
    chart = {"width": 640, "height": 300, "layer": [line, labels]}
    about = "Rank 1 is the lowest loss of a month, on the months of the board. A mean over sources."
    title = ranks_finding(rows.to_dicts())
    return Figure("ranks", title, about, sql, rows, chart=chart, drawn_models=shown,
                  has_months=True)  # fmt: skip


def _profile(site: Site) -> Figure | None:
    """Return the losses of the board's first models by source, as a radar chart."""
    sql, rows = site.query("compare_profile")
    sources = rows["source"].unique().sort().to_list()
    if len(sources) < MIN_SPOKES:
        return None
    board = site.query("board", protocol=site.protocol)[1]["model"].to_list()[:MAX_LINES]
    shown = rows.filter(pl.col("model").is_in(board))
    low, top = extent_of(shown["bits_per_byte"])
    centre = max(0.0, 2 * low - top) if low < top else 0.0  # like values would be one line
    about = "Bits per byte by source: nearer to the centre is better. The board's first models. "
    about += f"The centre is {centre:.3g}, not zero." if centre else ""
    title = lowest_finding(rows.to_dicts(), "source")
    return Figure("profile", title, about, sql, rows, chart=radar(sources, board, (centre, top)),
                  drawn_models=board)  # fmt: skip


def _tokenizers(site: Site) -> Figure:
    """Return the tokenizers' sizes and bytes per token."""
    sql, rows = some(site.query("compare_tokenizers"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("vocabulary_size", "vocabulary", ",d", unit="tokens"),
        Column("bytes_per_token", "bytes a token", ".2f"),
        Column("start_token", "start token"),
        Column("is_lossy", "loses text"),
    ]
    about = (
        "More bytes a token make a longer context and fewer steps; bits per byte compare fairly."
    )
    sizes = rows["bytes_per_token"].drop_nulls().to_list()
    title = f"A token is {span(sizes, '.2f')} bytes" if sizes else "No token is measured yet"
    return Figure("tokenizers", title, about, sql, rows, columns)
