"""A model's accuracy in and out of distribution over the levels of complexity, as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl
import vl_convert as vlc

from reports.charts import AFTER, BEFORE, INK, STYLE

_WIDTH, _HEIGHT = 240, 130


@dataclass(frozen=True)
class Level:
    """What a model did at one level; means over its puzzles.

    Attributes:
        level: 1 to 5.
        id_accuracy: share right in distribution.
        ood_accuracy: out of it.
    """

    level: int
    id_accuracy: float
    ood_accuracy: float


def valley_chart(levels: Sequence[Level], critical: int | None) -> str:
    """Draw both accuracies, the gap between them shaded, and the critical level as a dashed rule.

    Args:
        levels: at least one, in order; levels that are missing break nothing.
        critical: where the gap is largest; None: nowhere.

    Returns:
        An SVG document without any text from outside.
    """
    rows = [(each.level, each.id_accuracy, each.ood_accuracy) for each in levels]
    frame = pl.DataFrame(rows, schema=["level", "known", "new"], orient="row")
    axis = alt.Axis(values=[1, 2, 3, 4, 5], format="d", grid=False)
    x = alt.X("level:Q", title="level", scale=alt.Scale(domain=[0.8, 5.2]), axis=axis)
    title = "share right"
    y_axis = alt.Axis(tickCount=4, format=".0%", minExtent=34)

    def y(name: str) -> alt.Y:
        return alt.Y(f"{name}:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=y_axis)

    base = alt.Chart(frame).encode(x=x)
    layers = [
        base.mark_area(opacity=0.12, color=INK).encode(y=y("known"), y2="new:Q"),
        base.mark_line(color=BEFORE, strokeWidth=1.4).encode(y=y("known")),
        base.mark_point(color=BEFORE, fill=BEFORE, size=28, opacity=1).encode(y=y("known")),
        base.mark_line(color=AFTER, strokeWidth=1.4).encode(y=y("new")),
        base.mark_point(color=AFTER, fill="white", size=28, opacity=1).encode(y=y("new")),
    ]
    if critical is not None:
        rule = alt.Chart(pl.DataFrame({"level": [critical]})).encode(x=x)
        layers.append(rule.mark_rule(strokeDash=[4, 3], color=INK))
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT).configure(**STYLE)
    return str(vlc.vegalite_to_svg(chart.to_dict(format="vega-lite")))
