"""Charts as SVG text: no script, no font server, no browser needed to draw them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import altair as alt
import polars as pl
import vl_convert as vlc

_WIDTH, _HEIGHT = 640, 240
# Okabe and Ito's palette: distinguishable with the common kinds of colour blindness.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]


def monthly_chart(
    monthly: pl.DataFrame, cutoffs: Mapping[str, dt.date], models: list[str], title: str
) -> str:
    """Draw bits per byte over months, a line a model, a dashed rule at each model's cutoff.

    Args:
        monthly: columns model, month (date), bits_per_byte; one row a model and month.
        cutoffs: first day of the month after the cutoff, by model.
        models: all models of the page in one order, so that each keeps its colour.
        title: of the chart.

    Returns:
        An SVG document.
    """
    colour = alt.Color(
        "model:N",
        scale=alt.Scale(domain=models, range=_COLOURS * (1 + len(models) // len(_COLOURS))),
        legend=alt.Legend(title=None, orient="right"),
    )
    lines = (
        alt.Chart(monthly)
        .mark_line(point=alt.OverlayMarkDef(size=22), strokeWidth=2)
        .encode(
            x=alt.X("month:T", title=None, axis=alt.Axis(format="%b %Y", labelAngle=0)),
            y=alt.Y("bits_per_byte:Q", title="bits per byte", scale=alt.Scale(zero=False)),
            color=colour,
        )
    )
    marks = pl.DataFrame(
        {"model": list(cutoffs), "month": list(cutoffs.values())},
        schema={"model": pl.String, "month": pl.Date},
    )
    rules = (
        alt.Chart(marks)
        .mark_rule(strokeDash=[5, 4], strokeWidth=1.5)
        .encode(x="month:T", color=colour)
    )
    chart = (lines + rules).properties(width=_WIDTH, height=_HEIGHT, title=title)
    chart = chart.configure_view(stroke=None).configure_axis(gridColor="#e8e8e8", domain=False)
    return str(vlc.vegalite_to_svg(chart.to_dict(format="vega-lite")))
