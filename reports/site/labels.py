"""Labels of charts: names at the ends of lines, beside lanes and beside points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from core.json import JsonObject

_LEAST_EXTENT = 1e-9  # so that equal values do not divide by zero
_POINT_SHARE = 0.75  # of a label's height: the distance to keep from a point
LABEL_HEIGHT = 16  # pixels; the gap is between point and label
LETTER_WIDTH = 8
LABEL_GAP = 4
# Names left of lanes, where a phone shows them with the axis.
LANE_HEADER: JsonObject = {
    "title": None, "labelAngle": 0, "labelAlign": "left", "labelLimit": 165, "labelFontSize": 13,
    "labelPadding": 34,  # the labels of the axis are there
}  # fmt: skip
LABEL_SHARE = 0.065  # of the height of a chart of 220 pixels or more


def extent_of(values: pl.Series) -> tuple[float, float]:
    """Return least and greatest value."""
    return float(values.min() or 0), float(values.max() or 0)  # type: ignore[arg-type]


def end_labels(
    last: Mapping[str, float], colours: Mapping[str, str], extent: tuple[float, float],
    share: float = LABEL_SHARE,
) -> JsonObject:  # fmt: skip
    """Return a layer with a label per line, right of its last value, without overlaps."""
    values = [
        {"at": at, "label": label, "colour": colours[label]}
        for label, at in spread(last, extent, share).items()
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "text", "align": "left", "dx": 6, "limit": 180},
        "encoding": {
            "x": {"value": "width"},
            "y": {"field": "at", "type": "quantitative"},
            "text": {"field": "label"},
            "color": {"field": "colour", "type": "nominal", "scale": None},
        },
    }


def spread(
    values: Mapping[str, float], extent: tuple[float, float], share: float = LABEL_SHARE
) -> dict[str, float]:
    """Return positions of labels near their values, so far apart that they do not overlap."""
    # ``extent`` is the range of the axis; labels are at least ``share`` of it apart.
    low, high = extent
    gap = share * (high - low)
    placed: dict[str, float] = {}
    last = low - gap
    for name, value in sorted(values.items(), key=lambda item: (item[1], item[0])):
        placed[name] = last = max(value, last + gap)
    excess = last - high
    if excess > 0:  # the topmost labels move down together, as far as there is room
        last = high + gap
        for name in reversed(placed):
            placed[name] = last = min(placed[name], last - gap)
    return placed


def with_room(points: Sequence[tuple[str, float, float]], width: float, height: float) -> list[str]:
    """Return the names whose labels, right of their points, overlap no earlier label, and no point.

    ``width`` and ``height`` are those of the chart in pixels; points are name, x and y.
    """
    if not points:
        return []
    _, xs, ys = zip(*points, strict=True)
    x_extent, y_extent = (max(max(v) - min(v), _LEAST_EXTENT) for v in (xs, ys))
    at = [(name, x / x_extent * width, y / y_extent * height) for name, x, y in points]
    # Places that are taken: begin, end, middle, and the vertical distance to keep.
    taken = [(x, x, y, _POINT_SHARE * LABEL_HEIGHT) for _, x, y in at]
    named = []
    for name, left, middle in at:
        begin = left + LABEL_GAP
        end = left + LETTER_WIDTH * len(name)
        if all(abs(middle - y) > far or end < x or last < begin for x, last, y, far in taken):
            taken.append((begin, end, middle, LABEL_HEIGHT))
            named.append(name)
    return named
