"""Scylla's puzzles: does a model solve a puzzle, or recall its inputs?"""

from __future__ import annotations

from collections.abc import Iterator

from reports.site.answer_findings import levels_finding, printed_levels_finding, valley_finding
from reports.site.charts import INK, PALETTE
from reports.site.context import Site, some
from reports.site.figure import CLIPPED, ELSEWHERE, P_VALUE, Column, Figure, Page

ORDER = 4
NAVIGATION = ("puzzles.html", "Puzzles")
PATHS = (NAVIGATION[0],)
MAX_PANELS = 12


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page about puzzles."""
    of_answers = (_board, _valley, _tokens) if site.has_puzzles else ()
    figures = site.make(*of_answers, _published, facts="puzzles_facts")
    yield Page("puzzles.html", "Puzzles", "puzzles.html.j2", figures)


def _board(site: Site) -> Figure:
    """Return the scores of models in puzzles, overall and by level."""
    sql, rows = some(site.query("puzzles_board"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("score", "score", "+.3f", "score_low", "score_high", "-1 to 1",
               "Right answers on other inputs, less the gap to the model's own inputs.",
               why="score_reason"),
        *(_level_column(level) for level in range(1, 6)),
        Column("critical_level", "critical level",
               about="Level of the largest gap, or levels; none if no gap is more than chance."),
        Column("joint_p_value", "p", P_VALUE),
        Column("num_puzzles", "puzzles", "d"),
        Column("num_expected", "of", "d", is_optional=True),
        Column("parameters", "parameters", ",d", is_optional=True),
        Column("protocol", "asked as", is_optional=True),
    ]  # fmt: skip
    shown = [c for c in columns if not c.is_optional or rows[c.name].is_not_null().any()]
    about = f"Levels of complexity: from scanning a list (1) to trying all subsets (5). {CLIPPED}"
    title = valley_finding(rows.to_dicts())
    return Figure("puzzles", title, about, sql, rows, shown)


def _level_column(level: int) -> Column:
    name = f"level_{level}"
    return Column(
        name, f"level {level}", "+.2f", f"{name}_low", f"{name}_high", why=f"{name}_reason"
    )


def _valley(site: Site) -> Figure:
    """Return the share of solved puzzles by level, on a model's own inputs and on others."""
    sql, rows = some(site.query("puzzles_levels"))
    names = rows["panel"].unique(maintain_order=True).to_list()[:MAX_PANELS]
    x = {"field": "level", "type": "ordinal", "title": "level", "axis": {"labelAngle": 0}}
    y = {"field": "accuracy", "type": "quantitative", "title": "right",
         "scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 3}}  # fmt: skip
    inputs = ["its own inputs", "other inputs"]
    kind = {"field": "inputs", "type": "nominal", "legend": None}
    colour = {**kind, "scale": {"domain": inputs, "range": list(PALETTE[:2])}}
    shape = {**kind, "scale": {"domain": inputs}}
    critical = {"transform": [{"filter": "datum.is_critical"}],
                "mark": {"type": "rule", "strokeDash": [4, 3], "color": INK},
                "encoding": {"x": x}}  # fmt: skip
    spec = {"width": 240, "height": 120, "layer": [
        critical,
        {"mark": {"type": "line"}, "encoding": {"x": x, "y": y, "color": colour}},
        {"mark": {"type": "point", "filled": True, "size": 30, "opacity": 1},
         "encoding": {"x": x, "y": y, "color": colour, "shape": shape}},
    ]}  # fmt: skip
    chart = {
        "transform": [{"filter": {"field": "panel", "oneOf": names}}],
        "facet": {"field": "panel", "type": "nominal", "sort": names, "title": None,
                  "header": {"labelAnchor": "start", "labelLimit": 200}},
        "columns": 3, "spacing": 18, "spec": spec,
    }  # fmt: skip
    about = (
        "Share solved by level. Blue circles: inputs that the model wrote itself. Orange squares: "
        "others. Dashed: largest gap."
    )
    title = levels_finding(site.query("puzzles_board")[1].to_dicts(), rows.to_dicts())
    return Figure("puzzles-levels", title, about, sql, rows, chart=chart)


def _tokens(site: Site) -> Figure:
    """Return how many tokens models write for an answer, by level."""
    sql, rows = some(site.query("puzzles_tokens"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        *(Column(f"level_{level}", f"level {level}", ",.0f") for level in range(1, 6)),
        Column("mean_right", "if right", ",.0f", about="Mean tokens of right answers."),
        Column("mean_wrong", "if wrong", ",.0f", about="Mean tokens of wrong answers."),
        Column("num_puzzles", "puzzles", "d"),
        Column("protocol", "asked as"),
    ]
    about = "Mean tokens of an answer with its reasoning, on inputs that the model did not write."
    return Figure("puzzles-tokens", "How much a model writes", about, sql, rows, columns)


def _published(site: Site) -> Figure:
    """Return the scores that the paper prints."""
    sql, rows = some(site.query("puzzles_published"))
    columns = [
        Column("model", "model"),
        *(Column(f"level_{level}", f"level {level}", "+.3f") for level in range(1, 6)),
        Column("critical_level", "critical level"),
    ]
    about = "As printed. Their scores and ours differ in how they count."
    title = printed_levels_finding(rows.to_dicts())
    measured = {**ELSEWHERE, "reference": "Qi et al. 2024, arXiv 2410.01769, Table 2"}
    return Figure("puzzles-published", title, about, sql, rows, columns, measured=measured)
