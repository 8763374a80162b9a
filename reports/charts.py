"""Charts as SVG text without scripts and without external fonts."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl
import vl_convert as vlc

from core.month import Month, month_range

# Blue and vermilion of Okabe and Ito, which colour-blind people can tell apart. Points after the
# cutoff are also hollow, for print without colours.
BEFORE, AFTER, UNKNOWN = "#0072b2", "#d55e00", "#5b6472"
INK, _GRID, _RULE = "#3a4150", "#e6e9ed", "#8a93a0"

_STYLE: dict[str, Any] = {
    # Screen readers should not read out every point; the page describes each chart.
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "domain": False, "gridColor": _GRID, "labelColor": INK, "labelFontSize": 10,
        "tickColor": _GRID, "titleColor": INK, "titleFontSize": 11, "titleFontWeight": "normal",
    },
}  # fmt: skip
_FILL, _STROKE = alt.Fill("fill:N", scale=None), alt.Stroke("stroke:N", scale=None)


def monthly_chart(
    figures: Mapping[Month, float],
    window: tuple[Month, Month],
    cutoff: Month | None,
    regimes: Iterable[Month] = (),
) -> str:
    """Draw one model's bits per byte on one source over the months, with its cutoff.

    Each chart has its own scale, so that models with very different losses are equally readable.
    The scale spans at least a fifth of the highest value, so that noise looks small.

    Args:
        figures: bits per byte by month, at least one; a missing month breaks the line.
        window: first and last month of the horizontal axis, the same for all charts of a page.
        cutoff: last month of the model's training data, drawn as a dashed line; None if unknown.
        regimes: first months of the source's regimes, drawn as thin lines.
    """
    first, last = window
    labels = [_date(_middle(month)) for month in _ticks(first, last)]
    x = alt.X(
        "day:T",
        title=None,
        scale=alt.Scale(domain=[_date(first.first_day), _date((last + 1).first_day)]),
        axis=alt.Axis(values=labels, format="%Y-%m", grid=False),
    )
    y = alt.Y(
        "bits_per_byte:Q",
        title="bits per byte",
        scale=alt.Scale(domain=_domain(list(figures.values())), nice=False),
        # All axis labels have the same width (30 pixels), so that charts in a row are aligned.
        axis=alt.Axis(tickCount=4, minExtent=30),
    )
    line = alt.Chart(_frame(figures, window, cutoff)).encode(x=x, y=y)
    points = line.mark_point(size=24, strokeWidth=1.4, opacity=1).encode(fill=_FILL, stroke=_STROKE)
    layers = [line.mark_line(color=_RULE, strokeWidth=1), points]
    layers += _cutoff_marks(cutoff, window, x)
    layers += _regime_marks([month for month in regimes if first < month <= last], x)
    return _draw(layers, width=180, height=110)


def _draw(layers: Sequence[alt.Chart], width: int, height: int) -> str:
    chart = alt.layer(*layers).properties(width=width, height=height).configure(**_STYLE)
    return str(vlc.vegalite_to_svg(chart.to_dict(format="vega-lite")))


def _point_colours(is_after: bool, is_split: bool) -> tuple[str, str]:
    stroke = AFTER if is_after else BEFORE if is_split else UNKNOWN
    return "white" if is_after else stroke, stroke


def as_png(svg: str) -> bytes:
    """Return a chart as PNG at twice the SVG's size in pixels, for programs without SVG support."""
    return bytes(vlc.svg_to_png(svg, scale=2))


def _frame(
    figures: Mapping[Month, float], window: tuple[Month, Month], cutoff: Month | None
) -> pl.DataFrame:
    """Return one row per month: day, bits_per_byte (null if missing), fill and stroke colour."""
    rows = []
    for month in month_range(*window):
        is_after = cutoff is not None and month > cutoff
        colours = _point_colours(is_after, cutoff is not None)
        rows.append((_middle(month), figures.get(month), *colours))
    types = {"day": pl.Date, "bits_per_byte": pl.Float64, "fill": pl.String, "stroke": pl.String}
    return pl.DataFrame(rows, schema=types, orient="row")


def _cutoff_marks(cutoff: Month | None, window: tuple[Month, Month], x: alt.X) -> list[alt.Chart]:
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


def _regime_marks(starts: list[Month], x: alt.X) -> list[alt.Chart]:
    rows = {"day": [month.first_day for month in starts], "text": [f"regime {m}" for m in starts]}
    mark = alt.Chart(pl.DataFrame(rows, schema={"day": pl.Date, "text": pl.String})).encode(x=x)
    label = mark.mark_text(align="right", baseline="top", dx=-2, color=UNKNOWN, fontSize=8)
    rule = mark.mark_rule(strokeWidth=0.6, color=UNKNOWN)
    return [rule, label.encode(y=alt.value(1), text="text:N")] if starts else []


def _middle(month: Month) -> dt.date:
    """Return the middle day of a month, so that no time zone moves the point to another month."""
    return month.first_day.replace(day=15)


def _date(day: dt.date) -> alt.DateTime:
    return alt.DateTime(year=day.year, month=day.month, date=day.day)


def _ticks(first: Month, last: Month) -> list[Month]:
    """Return the months to label on the axis: at most four, at equal distances."""
    num_months = last.months_since(first) + 1
    steps = itertools.chain((1, 2, 3, 6), itertools.count(12, 12))
    step = next(step for step in steps if num_months <= 4 * step)
    return [month for month in month_range(first, last) if month.index % step == 0]


def _domain(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    span = max(1.15 * (high - low), 0.2 * high) or 1.0
    bottom = max(0.0, (low + high - span) / 2)
    return [bottom, bottom + span]


@dataclass(frozen=True)
class Point:
    """A model's accuracy on the forecasting questions that were opened in one quarter."""

    day: dt.date  # first day of the quarter
    accuracy: float  # share of right answers, 0 to 1
    low: float  # lower end of the 95 % interval (Wilson's)
    high: float
    expected: float  # expected accuracy of a random guess


def forecast_chart(
    points: Sequence[Point], window: tuple[dt.date, dt.date], known_until: dt.date | None
) -> str:
    """Draw accuracy with 95 % intervals, and the accuracy of a random guess as a dashed line.

    ``points`` is sorted and not empty. ``window`` is the first and the last day of the axis, the
    same for all charts of a page. ``known_until`` is the model's cutoff or release date, drawn as a
    dashed line; points after this date are hollow.
    """
    first, last = window
    domain = [_date(first), _date(last + dt.timedelta(days=92))]
    x = alt.X(
        "day:T", title=None, scale=alt.Scale(domain=domain),
        axis=alt.Axis(format="%Y", tickCount=6, grid=False),
    )  # fmt: skip
    base = alt.Chart(_quarters_frame(points, known_until)).encode(x=x)
    layers = [
        base.mark_rule(strokeWidth=1, opacity=0.45).encode(
            y=alt.Y("low:Q", title="share right"),
            y2="high:Q",
            color=alt.Color("stroke:N", scale=None),
        ),
        base.mark_line(strokeDash=[3, 3], strokeWidth=1, color=UNKNOWN).encode(y="expected:Q"),
        base.mark_point(size=26, strokeWidth=1.4, opacity=1).encode(
            y=_share("accuracy"), fill=_FILL, stroke=_STROKE
        ),
    ]
    if known_until and first <= known_until <= last:
        rule = alt.Chart(pl.DataFrame({"day": [known_until]})).encode(x=x)
        layers.append(rule.mark_rule(strokeDash=[4, 3], color=INK))
    return _draw(layers, width=260, height=120)


def _share(name: str) -> alt.Y:
    axis = alt.Axis(tickCount=4, format=".0%", minExtent=34)
    return alt.Y(f"{name}:Q", title="share right", scale=alt.Scale(domain=[0, 1]), axis=axis)


def _quarters_frame(points: Sequence[Point], known_until: dt.date | None) -> pl.DataFrame:
    rows = []
    for point in points:
        is_after = known_until is not None and point.day > known_until
        middle = point.day + dt.timedelta(days=45)
        colours = _point_colours(is_after, known_until is not None)
        rows.append((middle, point.accuracy, point.low, point.high, point.expected, *colours))
    names = ["day", "accuracy", "low", "high", "expected", "fill", "stroke"]
    return pl.DataFrame(rows, schema=names, orient="row")


@dataclass(frozen=True)
class Level:
    """A model's mean accuracies over the puzzles of one level of complexity."""

    level: int  # level of complexity, 1 to 5
    id_accuracy: float  # share of right answers in distribution
    ood_accuracy: float  # share of right answers out of distribution


def valley_chart(levels: Sequence[Level], critical: int | None) -> str:
    """Draw both accuracies of each level, shade the gap between them, and mark the critical level.

    ``levels`` holds one to five levels. ``critical`` is None if no level is critical.
    """
    rows = [(each.level, each.id_accuracy, each.ood_accuracy) for each in levels]
    frame = pl.DataFrame(rows, schema=["level", "known", "new"], orient="row")
    axis = alt.Axis(values=[1, 2, 3, 4, 5], format="d", grid=False)
    x = alt.X("level:Q", title="level", scale=alt.Scale(domain=[0.8, 5.2]), axis=axis)
    base = alt.Chart(frame).encode(x=x)
    layers = [base.mark_area(opacity=0.12, color=INK).encode(y=_share("known"), y2="new:Q")]
    for name, color, fill in (("known", BEFORE, BEFORE), ("new", AFTER, "white")):
        curve = base.encode(y=_share(name))
        layers.append(curve.mark_line(color=color, strokeWidth=1.4))
        layers.append(curve.mark_point(color=color, fill=fill, size=28, opacity=1))
    if critical is not None:
        rule = alt.Chart(pl.DataFrame({"level": [critical]})).encode(x=x)
        layers.append(rule.mark_rule(strokeDash=[4, 3], color=INK))
    return _draw(layers, width=240, height=130)
