"""Marks of a chart of lanes: Vega would need ten times as long for them, once a model.

All such charts of a site share names, months and places. Vega draws these once, in a frame without
marks. This module adds to a frame what the rows give: scale, line, area, cutoffs. The places are
those at which Vega draws them, so that the picture stays when a reader touches it.
"""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.json import JsonObject
from reports.site.pictures.paths import Point, svg_path

WIDTH = 590  # pixels
HEIGHT = 36
SPACING = 14
EXTENT = 48  # of the numbers of the scale, whatever they are
PADDING = 27  # of the names, left of that
TICKS = 2  # about so many of a lane
_FORM = "+.2~f"
_LABEL_SIZE = 13
_NICE = 10  # Vega's number of steps of a scale that is rounded outwards
# Round factors of a power of ten, and the least multiple of it from which each is taken.
_FACTORS = ((10, math.sqrt(50)), (5, math.sqrt(10)), (2, math.sqrt(2)))
_ORIGIN = re.compile(r'transform="translate\(([-\d.]+),([-\d.]+)\)"')

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Colours:
    """Colours of the marks, as those of Vega's."""

    line: str
    text: str  # of numbers, and of the stated cutoff
    after: str  # area after the stated cutoff
    measured: str  # band of the measured cutoff
    grid: str
    font: str


def axis() -> JsonObject:
    """Return the vertical axis of a lane, as Vega draws it."""
    return {
        "tickCount": TICKS, "format": _FORM, "labelFontSize": _LABEL_SIZE,
        "minExtent": EXTENT, "maxExtent": EXTENT,
    }  # fmt: skip


def frame_of(spec: Mapping[str, Any], key: str, names: Sequence[str], first: str) -> JsonObject:
    """Return a chart of lanes without marks and scales: the same for all rows of these names."""
    frame: JsonObject = copy.deepcopy({name: spec[name] for name in spec if name != "data"})
    for layer in frame["spec"]["layer"]:
        if "y" in layer["encoding"]:
            layer["encoding"]["y"]["axis"] |= {"labels": False, "ticks": False, "grid": False}
    empty = {"rise": None, "is_first": True, "is_after": False, "measured_begin": None,
             "measured_end": None, "stated_end": None}  # fmt: skip
    rows = [{key: name, "month": first, **empty} for name in names]
    return {**frame, "data": {"name": "rows", "values": rows}}


def with_marks(
    frame: str, key: str, names: Sequence[str], ends: Sequence[str], rows: Rows, colours: Colours
) -> str:
    """Return the SVG of a frame with the marks of rows; ``ends`` are the first and last month."""
    origin = _ORIGIN.search(frame)
    if origin is None:
        raise ValueError(f"no lanes in {frame:.100}")
    values = [row["rise"] for row in rows if row["rise"] is not None]
    scale = Scale.of(values)
    times = _Times(_seconds(ends[0]), _seconds(ends[1]))
    lanes = []
    for number, name in enumerate(names):
        own = sorted((row for row in rows if row[key] == name), key=lambda row: row["month"])
        top = float(origin[2]) + number * (HEIGHT + SPACING)
        place = f'transform="translate({origin[1]},{top:g})"'
        marks = "".join(_marks(own, scale, times, colours))
        lanes.append(f'<g fill="none" stroke-miterlimit="10" {place}>{marks}</g>')
    return frame.removesuffix("</svg>") + "".join(lanes) + "</svg>"


@dataclass(frozen=True)
class Scale:
    """The vertical scale of all lanes: from ``low`` below to ``high`` above."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Scale:
        """Return the scale of values and zero, rounded outwards as d3 does."""
        low = min([0.0, *values])
        high = max([0.0, *values])
        before = 0.0
        for _ in range(10):
            step = _step(low, high, _NICE)
            if step in (0, before):
                break
            low = _times(math.floor(_over(low, step)), step)
            high = _times(math.ceil(_over(high, step)), step)
            before = step
        return cls(low, high)

    def place(self, value: float) -> float:
        """Return the distance from the top of a lane in pixels."""
        span = self.high - self.low
        return HEIGHT * (1 - (value - self.low) / span) if span else HEIGHT / 2

    def ticks(self) -> list[float]:
        """Return about ``TICKS`` round values."""
        step = _step(self.low, self.high, TICKS)
        if not step:
            return [self.low]
        first = round(_over(self.low, step))
        first += _times(first, step) < self.low
        last = round(_over(self.high, step))
        last -= _times(last, step) > self.high
        return [_times(number, step) for number in range(first, last + 1)]


def _step(low: float, high: float, count: int) -> float:
    """Return d3's step between round values; below 1 its negative inverse, 0 without a span."""
    if low == high:
        return 0
    rough = (high - low) / count
    power = math.floor(math.log10(rough))
    error = rough / 10.0**power
    factor = next((number for number, least in _FACTORS if error >= least), 1)
    return factor * 10.0**power if power >= 0 else -(10.0**-power) / factor


def _over(value: float, step: float) -> float:
    return value / step if step > 0 else value * -step


def _times(number: int, step: float) -> float:
    return number * step if step > 0 else number / -step


@dataclass(frozen=True)
class _Times:
    first: float  # seconds
    last: float

    def place(self, time: str) -> float:
        """Return the distance from the left end of a lane in pixels."""
        return WIDTH * (_seconds(time) - self.first) / (self.last - self.first)


def _seconds(time: str) -> float:
    return dt.datetime.fromisoformat(time).replace(tzinfo=dt.UTC).timestamp()


def _marks(rows: Rows, scale: Scale, times: _Times, colours: Colours) -> Iterator[str]:
    """Yield the scale of a lane and its marks, from the lowest layer up."""
    for value in scale.ticks():
        yield from _tick(value, scale.place(value), colours)
    yield from _band(rows[:1], times, colours)
    for part in _unbroken([row for row in rows if row["is_after"]], scale, times):
        zero = 10 * scale.place(0)
        base = [(part[-1][0], round(zero)), (part[0][0], round(zero))]
        yield f'<path d="{svg_path([*part, *base])}Z" fill="{colours.after}" fill-opacity="0.4"/>'
    lines = [svg_path(part) for part in _unbroken(rows, scale, times) if len(part) > 1]
    if lines:
        yield f'<path d="{"".join(lines)}" stroke="{colours.line}" stroke-width="1.3"/>'
    yield from _rule(rows[:1], times, colours)


def _tick(value: float, y: float, colours: Colours) -> Iterator[str]:
    """Yield a line over the lane, a short one left of it, and the number."""
    text = f"{value:+.2f}".rstrip("0").rstrip(".").replace("-", "−")
    at = math.floor(y) + 0.5
    line = f'stroke="{colours.grid}" stroke-width="1"'
    yield f'<line x1="-4.5" y1="{at:g}" x2="{WIDTH + 0.5}" y2="{at:g}" {line}/>'
    yield (
        f'<text text-anchor="end" x="-8.5" y="{round(y + 4.5, 1):g}" font-family="{colours.font}" '
        f'font-size="{_LABEL_SIZE}px" fill="{colours.text}">{text}</text>'
    )


def _band(rows: Rows, times: _Times, colours: Colours) -> Iterator[str]:
    """Yield the measured cutoff, as far as it is inside the lane."""
    for row in rows:
        if row["measured_begin"] is not None and row["measured_end"] is not None:
            left = max(0.0, times.place(row["measured_begin"]))
            right = min(float(WIDTH), times.place(row["measured_end"]))
            if left < right:
                yield (
                    f'<path d="M{left:.1f},0h{right - left:.1f}v{HEIGHT}h{left - right:.1f}Z" '
                    f'fill="{colours.measured}" fill-opacity="0.35"/>'
                )


def _rule(rows: Rows, times: _Times, colours: Colours) -> Iterator[str]:
    """Yield the stated cutoff, if it is inside the lane."""
    for row in rows:
        if row["stated_end"] is not None:
            x = times.place(row["stated_end"])
            if 0 <= x <= WIDTH:
                yield (
                    f'<line x1="{x:.1f}" x2="{x:.1f}" y2="{HEIGHT}" stroke="{colours.text}" '
                    'stroke-dasharray="4,3"/>'
                )


def _unbroken(rows: Rows, scale: Scale, times: _Times) -> Iterator[list[Point]]:
    """Yield the points of successive rows with a value, in tenths of a pixel."""
    for is_there, group in itertools.groupby(rows, lambda row: row["rise"] is not None):
        if is_there:
            yield [
                (round(10 * times.place(row["month"])), round(10 * scale.place(row["rise"])))
                for row in group
            ]
