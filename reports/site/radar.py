"""A radar chart: one spoke a source, one closed line a model, as Uncheatable Eval draws them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from reports.site.charts import GRID, INK, PALETTE, SOFT

MIN_SPOKES, MAX_LINES = 3, 6
_SIZE, _LABEL = 320, 1.06  # pixels; distance of names from the centre, in spokes
_RINGS = 4


def radar(spokes: Sequence[str], lines: Sequence[str], top: float) -> Mapping[str, Any]:
    """Return a chart of rows with columns source, model and bits_per_byte; the centre is zero.

    ``top`` is the value at the end of the spokes.
    """
    angles = {name: 2 * math.pi * i / len(spokes) for i, name in enumerate(spokes)}
    scale = {"domain": [-1.1 * top, 1.1 * top], "nice": False}
    x, y = ({"field": name, "type": "quantitative", "axis": None, "scale": scale} for name in "xy")
    turn = f"{2 * math.pi / len(spokes)} * indexof({json.dumps(list(spokes))}, datum.source)"
    place = [
        {"filter": {"field": "model", "oneOf": list(lines)}},
        {"calculate": turn, "as": "angle"},
        {"calculate": "datum.bits_per_byte * sin(datum.angle)", "as": "x"},
        {"calculate": "datum.bits_per_byte * cos(datum.angle)", "as": "y"},
    ]
    colour = {"field": "model", "type": "nominal",
              "legend": {"title": None, "symbolType": "stroke"},
              "scale": {"domain": list(lines), "range": list(PALETTE[: len(lines)])}}  # fmt: skip
    closed = {"type": "line", "interpolate": "linear-closed", "strokeWidth": 1.6}
    order = {"field": "angle", "type": "quantitative"}
    tooltip = [{"field": name} for name in ("model", "source", "bits_per_byte")]
    padding = {"left": 60, "right": 24, "top": 5, "bottom": 5}
    return {"width": _SIZE, "height": _SIZE, "padding": padding, "layer": [
        *_web(angles, top, x, y),
        {"transform": place, "mark": closed,
         "encoding": {"x": x, "y": y, "color": colour, "order": order}},
        {"transform": place, "mark": {"type": "point", "filled": True, "size": 20},
         "encoding": {"x": x, "y": y, "color": {**colour, "legend": None}, "tooltip": tooltip}},
    ]}  # fmt: skip


def _web(
    angles: Mapping[str, float], top: float, x: Mapping[str, Any], y: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return rings with their values, spokes, and the names of the spokes."""

    def at(angle: float, distance: float) -> dict[str, Any]:
        return {"x": distance * math.sin(angle), "y": distance * math.cos(angle)}

    rings = [top * (ring + 1) / _RINGS for ring in range(_RINGS)]
    web = [
        {**at(angle, ring), "ring": ring, "angle": angle}
        for ring in rings for angle in angles.values()
    ]  # fmt: skip
    spokes = [{**at(angle, top), "name": name} for name, angle in angles.items()]
    names: dict[str, list[dict[str, Any]]] = {}
    for name, angle in angles.items():
        side = round(math.sin(angle), 1)
        align = "center" if not side else "left" if side > 0 else "right"
        names.setdefault(align, []).append({**at(angle, _LABEL * top), "name": name})
    values = [{"x": 0, "y": ring, "value": f"{ring:.2g}"} for ring in rings]
    ring = {"type": "line", "interpolate": "linear-closed", "color": GRID, "strokeWidth": 1}
    spoke = {"x2": {"datum": 0}, "y2": {"datum": 0}}
    place = {"x": x, "y": y}
    return [
        {"data": {"values": web}, "mark": ring, "encoding": {
            **place, "detail": {"field": "ring"}, "order": {"field": "angle"}}},
        {"data": {"values": spokes}, "mark": {"type": "rule", "color": GRID},
         "encoding": {**place, **spoke}},
        *({"data": {"values": placed},
           "mark": {"type": "text", "color": INK, "limit": 150, "align": align},
           "encoding": {**place, "text": {"field": "name"}}} for align, placed in names.items()),
        {"data": {"values": values},
         "mark": {"type": "text", "color": SOFT, "fontSize": 9, "dx": 12},
         "encoding": {**place, "text": {"field": "value"}}},
    ]  # fmt: skip
