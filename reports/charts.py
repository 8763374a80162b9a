"""Charts as SVG text: no script, no font server, no browser needed to draw them."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl
import vl_convert as vlc

from core.month import Month, month_range

_WIDTH, _HEIGHT = 180, 110
# Okabe and Ito's blue and vermilion, apart with the common kinds of colour blindness; what is after
# the cutoff is hollow too, for print.
BEFORE, AFTER, UNKNOWN = "#0072b2", "#d55e00", "#5b6472"
INK, _GRID, _RULE = "#3a4150", "#e6e9ed", "#8a93a0"

STYLE: dict[str, Any] = {
    # The page says what each chart is; every point as a spoken label would be noise.
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "gridColor": _GRID,
        "labelColor": INK,
        "labelFontSize": 10,
        "tickColor": _GRID,
        "titleColor": INK,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    },
}


def monthly_chart(
    figures: Mapping[Month, float], window: tuple[Month, Month], cutoff: Month | None
) -> str:
    """Draw one model's bits per byte on one source over the months, with its cutoff.

    Each chart has a scale of its own, at least a fifth of the model's level high, so that models at
    very different levels are equally readable and mere noise looks small.

    Args:
        figures: bits per byte by month, at least one; months that are missing break the line.
        window: first and last month of the axis, the same for all charts of a page.
        cutoff: the last month that the model has seen, where that is known; written above the
            plot, with a dashed line at its end if it lies in the window.

    Returns:
        An SVG document without any text from outside.
    """
    first, last = window
    x = alt.X(
        "day:T",
        title=None,
        scale=alt.Scale(domain=[_date(first.first_day), _date((last + 1).first_day)]),
        axis=alt.Axis(
            values=[_date(_middle(month)) for month in _ticks(first, last)],
            format="%Y-%m",
            grid=False,
        ),
    )
    y = alt.Y(
        "bits_per_byte:Q",
        title="bits per byte",
        scale=alt.Scale(domain=_domain(list(figures.values())), nice=False),
        # Room for four characters in every chart, so that charts in a row line up.
        axis=alt.Axis(tickCount=4, minExtent=30),
    )
    line = alt.Chart(_frame(figures, window, cutoff)).encode(x=x, y=y)
    layers = [
        line.mark_line(color=_RULE, strokeWidth=1),
        line.mark_point(size=24, strokeWidth=1.4, opacity=1).encode(
            fill=alt.Fill("fill:N", scale=None), stroke=alt.Stroke("stroke:N", scale=None)
        ),
    ]
    layers += _cutoff_marks(cutoff, window, x)
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT).configure(**STYLE)
    return str(vlc.vegalite_to_svg(chart.to_dict(format="vega-lite")))


def as_png(svg: str) -> bytes:
    """Return a chart as a picture of twice its size in pixels, for places that take no SVG."""
    return bytes(vlc.svg_to_png(svg, scale=2))


def _frame(
    figures: Mapping[Month, float], window: tuple[Month, Month], cutoff: Month | None
) -> pl.DataFrame:
    """One row a month of the window: day, bits_per_byte (null where missing), fill, stroke."""
    rows = []
    for month in month_range(*window):
        is_after = cutoff is not None and month > cutoff
        stroke = AFTER if is_after else UNKNOWN if cutoff is None else BEFORE
        fill = "white" if is_after else stroke
        rows.append((_middle(month), figures.get(month), fill, stroke))
    return pl.DataFrame(
        rows,
        schema={
            "day": pl.Date,
            "bits_per_byte": pl.Float64,
            "fill": pl.String,
            "stroke": pl.String,
        },
        orient="row",
    )


def _cutoff_marks(cutoff: Month | None, window: tuple[Month, Month], x: alt.X) -> list[alt.Chart]:
    """The cutoff's name above the plot, and a dashed line at the end of its month."""
    first, last = window
    shown = min(max(cutoff, first - 1), last) if cutoff else first - 1
    text = f"cutoff {cutoff}" if cutoff else "no cutoff known"
    mark = alt.Chart(pl.DataFrame({"day": [(shown + 1).first_day], "text": [text]})).encode(x=x)
    is_left = 2 * shown.months_since(first) < last.months_since(first)
    label = mark.mark_text(
        align="left" if is_left else "right", baseline="bottom", color=INK, fontSize=11
    ).encode(y=alt.value(-3), text="text:N")
    if cutoff == shown:
        return [label, mark.mark_rule(strokeDash=[4, 3], color=INK)]
    return [label]


def _middle(month: Month) -> dt.date:
    """Where a month's point is drawn; far from its ends, so that no time zone moves its label."""
    return month.first_day.replace(day=15)


def _date(day: dt.date) -> alt.DateTime:
    return alt.DateTime(year=day.year, month=day.month, date=day.day)


def _ticks(first: Month, last: Month) -> list[Month]:
    """The months to label: four at most, at even steps of the calendar."""
    num_months = last.months_since(first) + 1
    steps = itertools.chain((1, 2, 3, 6), itertools.count(12, 12))
    step = next(step for step in steps if num_months <= 4 * step)
    return [month for month in month_range(first, last) if month.index % step == 0]


def _domain(values: list[float]) -> list[float]:
    """The range of the bits-per-byte axis, not below 0."""
    low, high = min(values), max(values)
    span = max(1.15 * (high - low), 0.2 * high) or 1.0
    bottom = max(0.0, (low + high - span) / 2)
    return [bottom, bottom + span]
