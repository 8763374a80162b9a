"""The page of charts that papers print, from figures that were measured here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from core.json import JsonObject
from core.progress import counted
from reports.site.charts import INK, PALETTE, SOFT, by_month, time_axis
from reports.site.context import Site, is_control, some
from reports.site.figure import P_VALUE, Column, Figure, Page, Row
from reports.site.findings import MAX_Q, span
from reports.site.labels import LANE_HEADER, end_labels, extent_of

ORDER = 6
NAVIGATION = ("papers.html", "As in the papers")
PATHS = (NAVIGATION[0],)
MAX_DRAWN = len(PALETTE)  # models in a chart of curves
MAX_RANKED = 6  # models in the chart of ranks
MAX_TICKS = 10  # of an axis of ranks
LEGEND: JsonObject = {"orient": "top", "columns": 4, "columnPadding": 18, "labelLimit": 170}
_OF_ANSWERS = "forecasts_facts"  # query of what figures of forecasts are from
_OF_PUZZLES = "puzzles_facts"  # the same of figures of puzzles
ZHU = "Zhu et al. 2024 (FreshBench)"
QI = "Qi et al. 2024 (Scylla)"


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of those charts that have figures."""
    figures = [
        *site.make(_losses),
        *site.make(_accuracy, _bias, facts=_OF_ANSWERS),
        *site.make(_benchmarks, _lengths, _genres),
        *site.make(_groups, facts=_OF_ANSWERS),
        *site.make(_ranks),
        *site.make(_probes, _likelihoods, facts=_OF_PUZZLES),
    ]
    yield Page(PATHS[0], NAVIGATION[1], "papers.html.j2", figures)


def _losses(site: Site) -> Figure:
    """Return the figure of smoothed losses by month."""
    sql, rows = some(site.query("papers_losses", protocol=site.protocol))
    shown = _first_models(site, rows)
    chart = _curves(rows.filter(pl.col("model").is_in(shown)), shown, "bits per character")
    about = (
        f"As Figures 3 and 4 of {ZHU}, which state no window. At the ends of a curve the window "
        "has two months. Months before a model's cutoff may have been in its training data."
    )
    return Figure("papers-losses", _curves_title(rows, shown, "Losses"), about, sql, rows,
                  chart=chart, drawn_models=shown)  # fmt: skip


def _accuracy(site: Site) -> Figure:
    """Return the figure of smoothed accuracy of forecasts by month."""
    sql, rows = some(site.query("papers_accuracy"))
    shown = _first_models(site, rows)
    chart = _curves(rows.filter(pl.col("model").is_in(shown)), shown, "adjusted score", "protocol")
    about = (
        f"As Figure 2 of {ZHU}: 0.5 is as by guessing, near 1 is better, by the month in which "
        "questions were opened. Those from before a model's cutoff may have been in its training "
        "data."
    )
    return Figure("papers-accuracy", _curves_title(rows, shown, "Forecasts"), about, sql, rows,
                  chart=chart, drawn_models=shown)  # fmt: skip


def _bias(site: Site) -> Figure:
    """Return the table of temporal bias indices of accuracy."""
    sql, rows = some(site.query("papers_bias"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("source", "questions of"),
        Column("tbi_x1000", "slope × 1000", "+.2f", "tbi_x1000_low", "tbi_x1000_high",
               why="reason"),
        Column("bias_class", "by the paper's rule"),
    ]  # fmt: skip
    about = (
        f"As Table 7 of {ZHU}: the temporal bias index of accuracy. Its rule ignores chance; the "
        "page Forecasting has a test."
    )
    return Figure("papers-bias", bias_title(rows.to_dicts()), about, sql, rows, columns)


def bias_title(rows: Sequence[Row]) -> str:
    """Return how many slopes have an interval without 0; a count, not a test."""
    told = [row for row in rows if row["tbi_x1000_low"] is not None]
    sure = sum(row["tbi_x1000_low"] > 0 or row["tbi_x1000_high"] < 0 for row in told)
    return f"{sure} of {len(told)} slopes of accuracy over time have an interval without 0"


def _first_models(site: Site, rows: pl.DataFrame) -> list[str]:
    """Return the models to draw: the board's first, then others by name."""
    there = set(rows["model"])
    ordered = [name for name in _board(site) if name in there]
    return list(dict.fromkeys([*ordered, *sorted(there)]))[:MAX_DRAWN]


def _board(site: Site) -> list[str]:
    board = site.readable("board", protocol=site.protocol)
    return board["model"].to_list() if board.columns else []


def _curves_title(rows: pl.DataFrame, shown: Sequence[str], what: str) -> str:
    told = counted_kinds(rows["model"].unique().to_list())
    if rows["model"].n_unique() > len(shown):
        told = f"{len(shown)} of {told}"
    return f"{what} of {told}, smoothed over three months"


def counted_kinds(names: Sequence[str]) -> str:
    """Return how many models and how many compressors there are."""
    num_compressors = sum(is_control(name) for name in names)
    num_models = len(names) - num_compressors
    told = [counted(num_models, "model")] if num_models or not num_compressors else []
    told += [counted(num_compressors, "compressor")] if num_compressors else []
    return " and ".join(told)


def _curves(
    rows: pl.DataFrame, shown: Sequence[str], title: str, detail: str | None = None
) -> JsonObject:
    """Return a lane per source, with a smoothed line per model in its colour."""
    scale = {"domain": list(shown), "range": list(PALETTE[: len(shown)])}
    colour = {"field": "model", "type": "nominal", "title": None, "scale": scale,
              "legend": LEGEND}  # fmt: skip
    y = {"field": "smoothed", "type": "quantitative", "scale": {"zero": False},
         "axis": {"tickCount": 4}, "title": None}  # fmt: skip
    encoding: JsonObject = {
        "x": time_axis(rows["month"].to_list()), "y": y, "color": colour,
        "tooltip": by_month("model", "smoothed", ".3f", title=title),
    }  # fmt: skip
    if detail:
        encoding["detail"] = {"field": detail}
    return {
        "title": _scale(title),
        "facet": {"row": {"field": "source", "header": LANE_HEADER}},
        "spacing": 14,
        "resolve": {"scale": {"y": "independent"}},
        "spec": {"width": 620, "height": 90, "mark": {"type": "line", "strokeWidth": 1.4},
                 "encoding": encoding},
    }  # fmt: skip


def _scale(text: str) -> JsonObject:
    """Return the title of a chart of lanes: what their axes show."""
    return {"text": text, "anchor": "start", "fontSize": 13, "fontWeight": "normal", "color": SOFT}


def _benchmarks(site: Site) -> Figure | None:
    """Return the table of correlations with benchmarks; None if no scores are loaded."""
    if not site.query("papers_scores")[1].item():
        return None
    sql, rows = some(site.query("papers_benchmarks", protocol=site.protocol))
    columns = [
        Column("against", "benchmark"),
        Column("pearson", "Pearson", "+.2f", "pearson_low", "pearson_high"),
        Column("p_value", "p", P_VALUE),
        Column("spearman", "Spearman", "+.2f"),
        Column("num_models", "models", "d"),
    ]
    about = (
        f"As Table 2 of {ZHU}: the board's level against loaded benchmark scores. The interval of "
        "a correlation reaches further towards 0."
    )
    title = benchmarks_finding(rows.to_dicts())
    return Figure("papers-benchmarks", title, about, sql, rows, columns)


def benchmarks_finding(rows: Sequence[Row]) -> str:
    """Return how many benchmarks correlate with the level by more than chance."""
    p_values = [row["p_value"] for row in rows if row["p_value"] is not None]
    if not p_values:
        return "Models are too few to tell whether benchmarks say the same"
    found = sum(p_value * len(p_values) <= MAX_Q for p_value in p_values)  # as Bonferroni
    if not found:
        return "No benchmark correlates with the level by more than chance"
    return f"{found} of {len(p_values)} benchmarks correlate with the level"


def _lengths(site: Site) -> Figure | None:
    """Return the figure of correlations by length of the text; None if no scores are loaded."""
    if not site.query("papers_scores")[1].item():
        return None
    sql, rows = some(site.query("papers_lengths", protocol=site.protocol))
    about = f"As Figures 5 and 6 of {ZHU}: Pearson's correlation over models."
    column = Column("milestone", "first tokens of a document", ",d", unit="tokens")
    return _heat_map("papers-lengths", "by length of the text", about, sql, rows, column)


def _genres(site: Site) -> Figure | None:
    """Return the figure of correlations by kind of text; None if no scores are loaded."""
    if not site.query("papers_scores")[1].item():
        return None
    sql, rows = some(site.query("papers_genres", protocol=site.protocol))
    about = f"As Figures 5 and 6 of {ZHU}: Pearson's correlation over models, by category."
    column = Column("category", "category of text")
    return _heat_map("papers-genres", "by kind of text", about, sql, rows, column)


def _heat_map(
    name: str, by: str, about: str, sql: str, rows: pl.DataFrame, column: Column
) -> Figure:
    """Return a figure whose cells are correlations with benchmarks, by one column."""
    x = {"field": column.name, "type": "ordinal", "title": column.header, "axis": {"labelAngle": 0}}
    y = {"field": "against", "type": "nominal", "title": None}
    scale = {"domain": [-1, 0, 1], "range": [PALETTE[0], "#ffffff", PALETTE[1]],
             "interpolate": "rgb"}  # fmt: skip
    colour = {"field": "pearson", "type": "quantitative", "legend": None, "scale": scale}
    tooltip = [{"field": field} for field in (column.name, "against", "pearson", "num_models")]
    cell = {"mark": "rect", "encoding": {"color": colour, "tooltip": tooltip}}
    text = {"mark": {"type": "text", "color": INK},
            "encoding": {"text": {"field": "pearson", "format": "+.2f"}}}  # fmt: skip
    chart = {"width": {"step": 64}, "height": {"step": 30}, "encoding": {"x": x, "y": y},
             "layer": [cell, text]}  # fmt: skip
    columns = [
        Column("against", "benchmark"),
        column,
        Column("pearson", "Pearson", "+.2f", "pearson_low", "pearson_high"),
        Column("num_models", "models", "d"),
    ]
    sure = sum(map(_excludes_zero, rows.to_dicts()))
    title = (
        f"{sure} of {rows.height} correlations of losses with benchmarks {by} exclude 0, each for "
        "itself"
    )
    return Figure(name, title, about, sql, rows, columns, chart)


def _excludes_zero(row: Row) -> bool:
    low = row["pearson_low"]
    high = row["pearson_high"]
    return low is not None and high is not None and (low > 0 or high < 0)


def _groups(site: Site) -> Figure:
    """Return the figure of correlations with benchmarks, by group of questions and quarter."""
    sql, rows = some(site.query("papers_groups"))
    encoding = {
        "x": time_axis(rows["month"].to_list()),
        "y": {"field": "spearman_smoothed", "type": "quantitative", "title": None,
              "scale": {"domain": [-1, 1]}, "axis": {"tickCount": 3}},
        "color": {"field": "benchmark", "type": "nominal", "title": None,
                  "scale": {"range": list(PALETTE)},
                  "legend": LEGEND},
        "detail": [{"field": "source"}, {"field": "protocol"}],
        "tooltip": by_month("benchmark", "spearman_smoothed", "+.2f", title="Spearman, smoothed"),
    }  # fmt: skip
    chart = {
        "title": _scale("Spearman's correlation, smoothed"),
        "facet": {"row": {"field": "question_group", "header": LANE_HEADER}},
        "spacing": 14,
        "spec": {"width": 620, "height": 70, "mark": {"type": "line", "strokeWidth": 1.4},
                 "encoding": encoding},
    }  # fmt: skip
    groups = rows["question_group"].n_unique()
    num_models = span(rows["num_models"].to_list(), "d")
    title = (
        f"Accuracy against benchmarks by quarter, in {groups} groups of questions: {num_models} "
        "models a point"
    )
    about = (
        f"As Figures 7 to 11 of {ZHU}: Spearman's correlation over models, smoothed over three "
        "quarters."
    )
    return Figure("papers-groups", title, about, sql, rows, chart=chart)


def _ranks(site: Site) -> Figure:
    """Return the figure of monthly ranks with and without Wikipedia."""
    sql, rows = some(site.query("papers_ranks"))
    moved = rows.filter(pl.col("rank") != pl.col("rank_without")).height
    means = rows.group_by("model").agg(pl.mean("rank_without")).sort("rank_without", "model")
    shown = means["model"].to_list()[:MAX_RANKED]
    drawn = rows.filter(pl.col("model").is_in(shown)).sort("month")
    last = dict(drawn.group_by("model").last().select("model", "rank_without").iter_rows())
    colours = dict(zip(shown, PALETTE, strict=False))
    x = time_axis(rows["month"].to_list())
    colour = {"field": "model", "type": "nominal", "legend": None,
              "scale": {"domain": shown, "range": list(colours.values())}}  # fmt: skip
    scale = {"reverse": True, "zero": False, "nice": False}
    num_ranks = max(map(max, rows["rank", "rank_without"].iter_rows()))
    ticks = list(range(1, num_ranks + 1, -(-num_ranks // MAX_TICKS)))
    layers: list[JsonObject] = [
        {"mark": {"type": "line", "strokeWidth": width, "strokeDash": dash, "clip": True},
         "encoding": {"x": x, "color": colour,
                      "y": {"field": field, "type": "quantitative", "scale": scale,
                            "title": "rank of the month",
                            "axis": {"values": ticks, "format": "d"}}}}
        for field, width, dash in (("rank", 1, [3, 3]), ("rank_without", 1.8, [1, 0]))
    ]  # fmt: skip
    labels = end_labels(last, colours, extent_of(drawn["rank_without"]))
    chart = {"width": 620, "height": 300, "layer": [*layers, labels]}
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("month", "month", "%Y-%m"),
        Column("rank", "rank", "d"),
        Column("rank_without", "without Wikipedia", "d"),
    ]
    title = f"Without Wikipedia, {moved} of {rows.height} monthly ranks differ"
    if not moved:
        title = f"No monthly rank differs without Wikipedia: {rows.height} in all"
    about = "As Uncheatable Eval ranks. Dashed: with Wikipedia. The months of the board."
    return Figure("papers-ranks", title, about, sql, rows, columns, chart, drawn_models=shown)


def _probes(site: Site) -> Figure | None:
    """Return the table of probes and the level that each is solved like; None without puzzles."""
    if not site.has_puzzles:
        return None
    sql, rows = some(site.query("papers_probes"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("probe", "probe"),
        Column("level_equivalent", "solved like level", ".1f"),
        Column("status", "status"),
    ]
    about = f"As {QI} place their probes: puzzles whose algorithms span several levels."
    return Figure("papers-probes", probes_finding(rows.to_dicts()), about, sql, rows, columns)


def probes_finding(rows: Sequence[Row]) -> str:
    """Return how many probes are solved like a level; a count, not a test."""
    levels = [row["level_equivalent"] for row in rows if row["level_equivalent"] is not None]
    if not levels:
        return "No probe is solved like a level yet"
    return f"{len(levels)} of {len(rows)} probes are solved like level {span(levels, '.1f')}"


def _likelihoods(site: Site) -> Figure:
    """Return the table of likelihoods of right answers to puzzles."""
    sql, rows = some(site.query("papers_likelihoods"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("id_probability", "own inputs", ".3f"),
        Column("ood_probability", "other inputs", ".3f"),
        Column("js_bits", "divergence", ".3f", about="Jensen-Shannon, in bits: 0 is equal."),
        Column("num_puzzles", "puzzles", "d"),
        Column("protocol", "asked as"),
    ]
    about = (
        f"As the code of {QI}: probability of a token of the right answer (geometric mean). No "
        "text is written."
    )
    title = "How probable the right answer is"
    return Figure("papers-likelihoods", title, about, sql, rows, columns)
