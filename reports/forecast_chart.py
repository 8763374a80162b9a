"""A model's accuracy over the quarters in which questions were opened, as SVG text."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl
import vl_convert as vlc

from reports.charts import AFTER, BEFORE, INK, STYLE, UNKNOWN

_WIDTH, _HEIGHT = 260, 120
_Z = 1.959963984540054


@dataclass(frozen=True)
class Point:
    """The questions opened in a quarter.

    Attributes:
        day: the quarter's first.
        num_correct: of ``num_questions``.
        expected: share that a guess gets right.
    """

    day: dt.date
    num_correct: int
    num_questions: int
    expected: float


def forecast_chart(
    points: Sequence[Point], window: tuple[dt.date, dt.date], known_until: dt.date | None
) -> str:
    """Draw accuracy with its 95 % interval (Wilson's), and what a guess gets as a dashed line.

    Args:
        points: at least one, in order.
        window: first and last day of the axis, the same for all charts of a page.
        known_until: the model's cutoff, or its release: a dashed rule, hollow points after it.

    Returns:
        An SVG document without any text from outside.
    """
    first, last = window
    domain = [_date(first), _date(last + dt.timedelta(days=92))]
    x = alt.X(
        "day:T", title=None, scale=alt.Scale(domain=domain),
        axis=alt.Axis(format="%Y", tickCount=6, grid=False),
    )  # fmt: skip
    y = alt.Y(
        "accuracy:Q", title="share right", scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(tickCount=4, format=".0%", minExtent=34),
    )  # fmt: skip
    base = alt.Chart(_frame(points, known_until)).encode(x=x)
    layers = [
        base.mark_rule(strokeWidth=1, opacity=0.45).encode(
            y=alt.Y("low:Q", title="share right"),
            y2="high:Q",
            color=alt.Color("stroke:N", scale=None),
        ),
        base.mark_line(strokeDash=[3, 3], strokeWidth=1, color=UNKNOWN).encode(y="expected:Q"),
        base.mark_point(size=26, strokeWidth=1.4, opacity=1).encode(
            y=y, fill=alt.Fill("fill:N", scale=None), stroke=alt.Stroke("stroke:N", scale=None)
        ),
    ]
    if known_until and first <= known_until <= last:
        rule = alt.Chart(pl.DataFrame({"day": [known_until]})).encode(x=x)
        layers.append(rule.mark_rule(strokeDash=[4, 3], color=INK))
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT).configure(**STYLE)
    return str(vlc.vegalite_to_svg(chart.to_dict(format="vega-lite")))


def _frame(points: Sequence[Point], known_until: dt.date | None) -> pl.DataFrame:
    rows = []
    for point in points:
        low, high = _wilson(point.num_correct, point.num_questions)
        is_after = known_until is not None and point.day > known_until
        stroke = AFTER if is_after else UNKNOWN if known_until is None else BEFORE
        accuracy = point.num_correct / point.num_questions
        middle = point.day + dt.timedelta(days=45)
        fill = "white" if is_after else stroke
        rows.append((middle, accuracy, low, high, point.expected, fill, stroke))
    names = ["day", "accuracy", "low", "high", "expected", "fill", "stroke"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _wilson(num_true: int, num_all: int) -> tuple[float, float]:
    """The 95 % interval of a share; as macro wilson_low of the warehouse."""
    share = num_true / num_all
    middle = share + _Z**2 / (2 * num_all)
    spread = _Z * math.sqrt(share * (1 - share) / num_all + _Z**2 / (4 * num_all**2))
    scale = 1 + _Z**2 / num_all
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def _date(day: dt.date) -> alt.DateTime:
    return alt.DateTime(year=day.year, month=day.month, date=day.day)
