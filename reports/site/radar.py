"""A radar chart: one spoke a source, one closed line a model, as Uncheatable Eval draws them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.json import JsonObject
from reports.site.charts import GRID, INK, PALETTE, SOFT

MIN_SPOKES = 3
MAX_LINES = 6
_SIZE = 320  # pixels; distance of names from the centre, in spokes
_LABEL = 1.06
_RINGS = 4


def radar(spokes: Sequence[str], lines: Sequence[str], ends: tuple[float, float]) -> JsonObject:
    """Return a chart of rows with columns source, model and bits_per_byte.

    ``ends`` are the values at the two ends of the spokes, that in the centre first.
    """
    angles = {name: 2 * math.pi * i / len(spokes) for i, name in enumerate(spokes)}
    centre = ends[0]
    reach = ends[1] - ends[0]
    lowest = min(math.cos(angle) for angle in angles.values())  # of three spokes, not -1
    x, y = (
        {"field": name, "type": "quantitative", "axis": None,
         "scale": {"domain": [(low - 0.1) * reach, 1.1 * reach], "nice": False}}
        for name, low in (("x", -1), ("y", lowest))
    )  # fmt: skip
    turn = f"{2 * math.pi / len(spokes)} * indexof({json.dumps(list(spokes))}, datum.source)"
    place = [
        {"filter": {"field": "model", "oneOf": list(lines)}},
        {"calculate": turn, "as": "angle"},
        {"calculate": f"(datum.bits_per_byte - {centre}) * sin(datum.angle)", "as": "x"},
        {"calculate": f"(datum.bits_per_byte - {centre}) * cos(datum.angle)", "as": "y"},
    ]
    colour = {"field": "model", "type": "nominal",
              "legend": {"title": None, "symbolType": "stroke", "orient": "bottom",
                         "columns": 2, "columnPadding": 16, "rowPadding": 4},
              "scale": {"domain": list(lines), "range": list(PALETTE[: len(lines)])}}  # fmt: skip
    closed = {"type": "line", "interpolate": "linear-closed", "strokeWidth": 1.6}
    order = {"field": "angle", "type": "quantitative"}
    tooltip = [{"field": name} for name in ("model", "source", "bits_per_byte")]
    padding = {"left": 60, "right": 24, "top": 5, "bottom": 5}
    height = round(_SIZE * (1.2 - lowest) / 2.2)
    return {"width": _SIZE, "height": height, "padding": padding, "layer": [
        *_web(angles, centre, reach, {"x": x, "y": y}),
        {"transform": place, "mark": closed,
         "encoding": {"x": x, "y": y, "color": colour, "order": order}},
        {"transform": place, "mark": {"type": "point", "filled": True, "size": 20},
         "encoding": {"x": x, "y": y, "color": {**colour, "legend": None}, "tooltip": tooltip}},
    ]}  # fmt: skip


def _web(
    angles: Mapping[str, float], centre: float, reach: float, place: Mapping[str, Any]
) -> list[JsonObject]:
    """Return rings with their values, spokes, and the names of the spokes."""

    def at(angle: float, distance: float) -> JsonObject:
        return {"x": distance * math.sin(angle), "y": distance * math.cos(angle)}

    rings = [reach * (ring + 1) / _RINGS for ring in range(_RINGS)]
    web = []
    for distance in rings:
        for angle in angles.values():
            web.append({**at(angle, distance), "ring": distance, "angle": angle})
    spokes = [{**at(angle, reach), "name": name} for name, angle in angles.items()]
    names: dict[str, list[JsonObject]] = {}
    for name, angle in angles.items():
        side = round(math.sin(angle), 1)
        align = "center"
        if side:
            align = "left" if side > 0 else "right"
        names.setdefault(align, []).append({**at(angle, _LABEL * reach), "name": name})
    # The name of a spoke is where the value of the last ring would be.
    values = [{"x": 0, "y": ring, "value": f"{centre + ring:.3g}"} for ring in [0, *rings[:-1]]]
    ring = {"type": "line", "interpolate": "linear-closed", "color": GRID, "strokeWidth": 1}
    spoke = {"x2": {"datum": 0}, "y2": {"datum": 0}}
    return [
        {"data": {"values": web}, "mark": ring, "encoding": {
            **place, "detail": {"field": "ring"}, "order": {"field": "angle"}}},
        {"data": {"values": spokes}, "mark": {"type": "rule", "color": GRID},
         "encoding": {**place, **spoke}},
        *({"data": {"values": placed},
           "mark": {"type": "text", "color": INK, "limit": 150, "align": align},
           "encoding": {**place, "text": {"field": "name"}}} for align, placed in names.items()),
        {"data": {"values": values},
         "mark": {"type": "text", "color": SOFT, "align": "left", "dx": 4},
         "encoding": {**place, "text": {"field": "value"}}},
    ]  # fmt: skip
