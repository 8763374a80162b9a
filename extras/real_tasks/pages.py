"""The page of tasks that were made from the texts of each month."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from core.json import JsonObject
from reports.site.charts import PALETTE, SOFT, by_month, time_axis
from reports.site.context import Site, some
from reports.site.figure import WILSON, Column, Figure, Link, Page, Row, told
from reports.site.labels import LANE_HEADER

ORDER = 13
NAVIGATION = None
PATHS = ("tasks.html",)
MAX_DRAWN = len(PALETTE)  # models in the chart, each asked in one way; the table has all


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of tasks; nothing if no answer to a task has landed."""
    figures = site.make(_gaps, _months)
    if figures:
        yield Page(PATHS[0], "Tasks from texts", "tasks.html.j2", figures)


def link_of_source(site: Site, source: str) -> Link | None:
    """Return the link to the page of tasks; None if no model answered a task of the source."""
    rows = site.readable("tasks_gap")
    if not rows.columns or source not in rows["source"]:
        return None
    return Link(PATHS[0], "Tasks", "questions made from the texts of each month")


def _gaps(site: Site) -> Figure:
    """Return the table of shares of right answers before and after the cutoff."""
    sql, rows = some(site.query("tasks_gap"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"]), is_facet=True),
        Column("source", "texts of", is_facet=True),
        Column("task", "task", is_facet=True,
               about="cloze: a number or a name; code: the end of a line; lead: a first sentence."),
        Column("accuracy_before", "right, up to the cutoff", ".1f", "accuracy_before_low",
               "accuracy_before_high", "%", factor=100),
        Column("accuracy_after", "right, after it", ".1f", "accuracy_after_low",
               "accuracy_after_high", "%", factor=100),
        Column("gap", "difference", "+.1f", "gap_low_documents", "gap_high_documents",
               "points", factor=100),
        Column("num_before", "tasks up to it", ",d"),
        Column("num_after", "tasks after it", ",d"),
        Column("reason", "why there is none"),
        Column("protocol", "asked as", is_optional=rows["protocol"].n_unique() == 1),
    ]  # fmt: skip
    about = (
        "Intervals: 95 %, Wilson's of the shares and Newcombe's of the difference: would other "
        "documents of these months say the same? Months "
        "differ in difficulty, so a difference alone does not show that a model has grown stale. "
        "Compare it with that of a model with another cutoff."
    )
    return Figure("tasks", _gaps_title(rows.to_dicts()), about, sql, rows, told(columns, rows))


def _gaps_title(rows: Sequence[Row]) -> str:
    """Return how many differences exclude 0, which is all that their intervals tell."""
    told = [row for row in rows if row["gap"] is not None]
    if not told:
        return "No model has tasks from before and from after its cutoff"
    worse = sum(row["gap_high_documents"] < 0 for row in told)
    better = sum(row["gap_low_documents"] > 0 for row in told)
    noun = "comparison" if len(told) == 1 else "comparisons"
    return (
        f"After the cutoff, fewer tasks are right in {worse} of {len(told)} {noun}, and more in "
        f"{better}, each for itself"
    )


def _months(site: Site) -> Figure:
    """Return the figure of shares of right answers by month of the texts."""
    sql, rows = some(site.query("tasks_monthly"))
    shown = rows["series"].unique(maintain_order=True).to_list()[:MAX_DRAWN]
    drawn = rows.filter(pl.col("series").is_in(shown))
    about = (
        "By the month of the texts. Diamonds: after the model's cutoff. Dashed: the share that "
        f"guessing would get. {WILSON}"
    )
    title = _months_title(rows, len(shown))
    chart = _chart(drawn, shown)
    return Figure("tasks-by-month", title, about, sql, rows, chart=chart)


def _months_title(rows: pl.DataFrame, num_shown: int) -> str:
    """Return the title of the figure by month: how many models and months it has."""
    num_series = rows["series"].n_unique()
    num_months = rows["month"].n_unique()
    of = f"{num_shown} of {num_series}" if num_series > num_shown else str(num_series)
    models = "model" if num_series == 1 else "models"
    months = "month" if num_months == 1 else "months"
    return f"Right answers of {of} {models} in tasks from texts of {num_months} {months}"


def _chart(rows: pl.DataFrame, shown: Sequence[str]) -> JsonObject:
    """Return a lane per source and kind of task, with a point and an interval per model."""
    x = time_axis(rows["month"].to_list())
    share: JsonObject = {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".0%", "tickCount": 3},
        "title": None,
    }
    colour: JsonObject = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(shown), "range": list(PALETTE[: len(shown)])},
        "legend": {"orient": "top", "columns": 3, "labelLimit": 220},
    }
    shape = {"condition": {"test": "datum.is_after_cutoff", "value": "diamond"}, "value": "circle"}
    guessed: JsonObject = {
        "mark": {"type": "line", "strokeDash": [3, 3], "color": SOFT},
        "encoding": {"x": x, "y": {**share, "field": "expected_accuracy", "aggregate": "mean"}},
    }
    interval: JsonObject = {
        "mark": {"type": "rule", "opacity": 0.6},
        "encoding": {"x": x, "y": {**share, "field": "accuracy_low"},
                     "y2": {"field": "accuracy_high"}, "color": colour},
    }  # fmt: skip
    point: JsonObject = {
        "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
        "encoding": {"x": x, "y": {**share, "field": "accuracy"}, "color": colour, "shape": shape,
                     "tooltip": by_month("series", "accuracy", ".1%", title="right")},
    }  # fmt: skip
    spec = {"width": 620, "height": 90, "layer": [guessed, interval, point]}
    facet = {"row": {"field": "lane", "header": LANE_HEADER}}
    return {"transform": [{"filter": {"field": "series", "oneOf": list(shown)}}],
            "facet": facet, "spacing": 14, "spec": spec}  # fmt: skip
