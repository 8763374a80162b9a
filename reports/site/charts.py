"""Charts as Vega-Lite: one theme, drawn as SVG and PNG when the site is built.

A specification is a plain dict. The page shows the SVG; a reader who touches it gets the same
specification as an interactive chart. Colours are CSS variables in the SVG, so that a chart follows
the reader's light or dark theme.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, Self, cast

import polars as pl
import polars.selectors as cs
import vl_convert as vlc

from core.errors import TidemarkError
from core.json import JsonObject
from reports.site.pictures import lanes
from reports.site.pictures.cards import Frame, framed
from reports.site.pictures.paths import svg_path
from reports.site.pictures.watermarks import svg_size, with_watermark

VEGA_LITE = "6.4"
PNG_SCALE = 1.5
MAX_ALONE = 12  # charts that are drawn about as fast as processes start
MAX_PROCESSES = 4  # one core is left for the caller, which queries meanwhile
# Colour-blind people can tell these apart, and each from grey; the order is that of use. The first
# three are Okabe and Ito's, whose others are too pale for labels.
PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#c180b1", "#625913", "#273d70", "#9870f2", "#5e2f0e",
)  # fmt: skip
INK = "#1d2129"
SOFT = "#5b6472"
GRID = "#e3e7ec"
PAPER = "#ffffff"
# Colours of the theme become variables of the page's style sheet.
_VARIABLES = {
    INK: "--ink", SOFT: "--soft", GRID: "--line", PAPER: "--paper",
    PALETTE[0]: "--blue", PALETTE[1]: "--mark", PALETTE[2]: "--green", PALETTE[3]: "--pink",
    PALETTE[4]: "--olive", PALETTE[5]: "--navy", PALETTE[6]: "--violet", PALETTE[7]: "--brown",
}  # fmt: skip
_TAG = re.compile(r"<[^>]*>")
_WORD = re.compile(r"\w+")
_LINE = re.compile(r' d="(M[-\d.,]+(?:L[-\d.,]+)+Z?)"')
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
# What readers of screens do not need, since the page describes each chart, and what draws nothing.
_ATTRIBUTE = re.compile(r' (?:(?:role|aria-[a-z]+|class|pointer-events)="[^"]*"|opacity="1")')
_CLIP = re.compile(r'<clipPath id="([^"]+)">(.*?)</clipPath>')
_CLIPPED = re.compile(r' clip-path="url\(#([^)]+)\)"([^>]*>)((?:<(?:path|line) [^>]*/>)*)</g>')
_BOX = re.compile(  # a rectangle, or a rule
    r'(?:d="M|translate\()([-\d.]+),([-\d.]+)(?:h|\)" x2=")([-\d.]+)(?:v|" y2=")([-\d.]+)'
)
_GROUP = re.compile(r"</?g\b[^>]*>")
_EMPTY = re.compile(r'<path(?: [a-z-]+="[^"]*")* (?:d="M[\d.,-]+h0v[\d.]+h0Z"|display="none")/>')
_FONT = "system-ui, sans-serif"
WIDEST = 855  # pixels: at 0.85 of it, a tablet of 768 pixels shows the whole chart
LEAST_WIDTH = 240
TEXT_SIZE = 13  # pixels; the style sheet shows 0.85 of it where a chart does not fit
# Keys of ``usermeta`` in a specification.
MARK = "watermark"  # text over the picture
FRAME = "frame"  # texts of the card that the PNG is; without them it is the chart alone
LANES = "lanes"  # key, names and ends of a chart of lanes, whose marks are drawn without Vega

_LANE_COLOURS = lanes.Colours(INK, SOFT, PALETTE[1], PALETTE[0], GRID, _FONT)

THEME: JsonObject = {
    "aria": False,  # the page describes each chart; readers of screens have the table
    "background": None,
    "padding": {"left": 5, "right": 24, "top": 5, "bottom": 5},
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "domain": False, "gridColor": GRID, "labelColor": SOFT, "labelFontSize": TEXT_SIZE,
        "tickColor": GRID, "titleColor": SOFT, "titleFontSize": TEXT_SIZE,
        "titleFontWeight": "normal", "titlePadding": 8, "labelPadding": 4,
    },
    "text": {"color": INK, "fontSize": TEXT_SIZE, "font": _FONT},
    "legend": {"labelColor": INK, "titleColor": SOFT, "labelFontSize": TEXT_SIZE,
               "titleFontSize": TEXT_SIZE},
    "header": {"labelColor": INK, "titleColor": SOFT, "labelFontSize": TEXT_SIZE},
    "range": {"category": list(PALETTE)},
    "rule": {"color": SOFT},
}  # fmt: skip


def with_data(spec: Mapping[str, Any], rows: pl.DataFrame) -> JsonObject:
    """Return a complete specification: theme, schema and the figure's rows as data ``rows``."""
    words = {word for text in _texts(spec) for word in _WORD.findall(text)}
    used = rows.select(name for name in rows.columns if name in words)
    plain = used.with_columns(
        cs.float().round(6), cs.date().dt.to_string("iso"), cs.datetime().dt.to_string("iso:strict")
    )
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE.partition('.')[0]}.json",
        "config": THEME,
        **spec,
        "data": {"name": "rows", "values": plain.to_dicts()},
    }


def _texts(spec: object) -> Iterator[str]:
    """Yield the texts in a specification; those may name columns."""
    if isinstance(spec, Mapping):
        for value in spec.values():
            yield from _texts(value)
    elif isinstance(spec, list | tuple):
        for value in spec:
            yield from _texts(value)
    elif isinstance(spec, str):
        yield spec


@dataclass(frozen=True)
class Drawing:
    """One chart in the forms in which the site has it."""

    page: str  # SVG for a page: rounded numbers, colours as CSS variables
    svg: str  # SVG for a file: fixed colours on white
    png: bytes  # the chart as a card with title and scale
    vega: str  # Vega specification as JSON, which the page's script runs


def draw(name: str, spec: Mapping[str, Any]) -> Drawing:
    """Draw a complete specification (``with_data``); Vega escapes its untrusted texts."""
    # ``name`` is part of the names of clip paths, so that they are unique on a page.
    chart_spec = {part: spec[part] for part in spec if part != "usermeta"}
    meta = spec.get("usermeta", {})
    has_lanes = LANES in meta
    vega, drawn = _lanes(chart_spec, **meta[LANES]) if has_lanes else _drawn_to_fit(chart_spec)
    svg = _with_own_clips(drawn, name)
    mark = meta.get(MARK)
    if mark:
        svg = with_watermark(svg, mark, SOFT, TEXT_SIZE, _FONT)
    compact = json.dumps(vega, ensure_ascii=True, separators=(",", ":"))
    in_colour = svg.replace(">", f'><rect width="100%" height="100%" fill="{PAPER}"/>', 1)
    frame = meta.get(FRAME)
    if frame:
        card = framed(svg, Frame(**frame), INK, SOFT, PAPER, _FONT)
        png = bytes(vlc.svg_to_png(card, scale=1))
    else:
        png = bytes(vlc.svg_to_png(in_colour, scale=PNG_SCALE))
    return Drawing(_with_variables(svg), in_colour, png, _with_variables(compact))


def _drawn_to_fit(spec: Mapping[str, Any]) -> tuple[JsonObject, str]:
    """Return the Vega specification and the SVG of a chart that is at most ``WIDEST``."""
    # Only Vega knows how wide the labels are. If they take too much, the chart itself is narrower.
    vega = _vega(spec)
    svg = _slim(str(vlc.vega_to_svg(vega)))
    excess = svg_size(svg)[0] - WIDEST
    view = spec.get("spec", spec)
    if excess <= 0 or not isinstance(view.get("width"), int):
        return vega, svg
    width = view["width"] - math.ceil(excess / spec.get("columns", 1))
    narrow = {**view, "width": max(LEAST_WIDTH, width)}
    vega = _vega({**spec, "spec": narrow} if "spec" in spec else narrow)
    return vega, _slim(str(vlc.vega_to_svg(vega)))


def _lanes(
    spec: Mapping[str, Any], key: str, names: list[str], ends: list[str]
) -> tuple[JsonObject, str]:
    """Return a chart of lanes; Vega draws its frame, once for all charts alike."""
    frame = _drawn(json.dumps(lanes.frame_of(spec, key, names, ends[0])))
    svg = lanes.with_marks(frame, key, names, ends, spec["data"]["values"], _LANE_COLOURS)
    return _vega(spec), svg


@cache
def _drawn(spec: str) -> str:
    return _slim(str(vlc.vegalite_to_svg(spec, vl_version=VEGA_LITE)))


def _vega(spec: Mapping[str, Any]) -> JsonObject:
    """Return the Vega specification; those that differ only in their rows are compiled once."""
    rows = {"name": "rows", "values": []}
    vega: JsonObject = json.loads(_compiled(json.dumps({**spec, "data": rows})))
    place = next(data for data in vega["data"] if data["name"] == "rows")
    place["values"] = spec["data"]["values"]
    return vega


@cache
def _compiled(spec: str) -> str:
    return json.dumps(vlc.vegalite_to_vega(spec, vl_version=VEGA_LITE))


def _slim(svg: str) -> str:
    """Round coordinates to a tenth of a pixel, and remove attributes without effect."""

    def slim_tag(match: re.Match[str]) -> str:
        plain = _LINE.sub(lambda line: f' d="{_relative(line[1])}"', _ATTRIBUTE.sub("", match[0]))
        return _EMPTY.sub("", _NUMBER.sub(lambda number: f"{float(number[0]):.1f}", plain))

    return _without_plain_groups(_with_clips_once(_TAG.sub(slim_tag, _without_needless_clips(svg))))


def _without_needless_clips(svg: str) -> str:
    """Do not clip lines, areas and rectangles that stay inside: clips are slow to draw."""
    size = re.compile(r' width="([\d.]+)" height="([\d.]+)"')
    sizes = {name: size.search(body) for name, body in _CLIP.findall(svg)}

    def without_clip(found: re.Match[str]) -> str:
        inside = sizes[found[1]]
        points = [_points(shape) for shape in re.findall(r"<[^>]+>", found[3])]
        if inside is None or None in points:
            return found[0]
        points_inside = [point for each in points for point in each or ()]
        is_needless = all(
            0 <= x <= float(inside[1]) and 0 <= y <= float(inside[2]) for x, y in points_inside
        )
        return f"{found[2]}{found[3]}</g>" if is_needless else found[0]

    return _CLIPPED.sub(without_clip, svg)


def _points(shape: str) -> list[tuple[float, float]] | None:
    """Return corners of a path of lines, a rectangle or a rule; None of another shape."""
    line = _LINE.search(shape)
    if line:
        pairs = (point.split(",") for point in line[1].rstrip("Z")[1:].split("L"))
        return [(float(x), float(y)) for x, y in pairs]
    box = _BOX.search(shape)
    if box:
        x, y, width, height = map(float, box.groups())
        return [(x, y), (x + width, y + height)]
    return None


def _with_clips_once(svg: str) -> str:
    """Keep one of the clip paths that are alike."""
    first: dict[str, str] = {}
    names = {name: first.setdefault(body, name) for name, body in _CLIP.findall(svg)}
    kept = _CLIP.sub(lambda clip: clip[0] if names[clip[1]] == clip[1] else "", svg)
    return re.sub(r"url\(#([^)]+)\)", lambda use: f"url(#{names.get(use[1], use[1])})", kept)


def _with_own_clips(svg: str, name: str) -> str:
    """Name clip paths after the chart: Vega counts them over all charts of a process."""
    names = {clip: f"{name}-{number}" for number, (clip, _) in enumerate(_CLIP.findall(svg))}
    for clip, own in names.items():
        svg = svg.replace(f'id="{clip}"', f'id="{own}"').replace(f"url(#{clip})", f"url(#{own})")
    return svg


def _without_plain_groups(svg: str) -> str:
    """Remove empty groups, and the tags of groups without attributes."""
    is_kept: list[bool] = []

    def keep(tag: re.Match[str]) -> str:
        if tag[0].endswith("/>"):
            return ""
        if tag[0].startswith("</"):
            return tag[0] if is_kept.pop() else ""
        is_kept.append(tag[0] != "<g>")
        return tag[0] if is_kept[-1] else ""

    return _GROUP.sub(keep, svg)


def _relative(line: str) -> str:
    """Return a path of straight lines with relative coordinates, in tenths of a pixel."""
    pairs = (point.split(",") for point in line.rstrip("Z")[1:].split("L"))
    points = [(round(10 * float(x)), round(10 * float(y))) for x, y in pairs]
    return svg_path(points) + "Z" * line.endswith("Z")


class Drawer:
    """Draws charts, in other processes if there are more than ``MAX_ALONE``.

    The processes begin as soon as there are so many, while the caller makes further charts. They
    are commands, not ``multiprocessing``, which would run a user's script again.
    """

    def __init__(self) -> None:
        self._specs: dict[str, Mapping[str, Any]] = {}  # those that no process has yet
        self._processes: list[_Process] = []
        self._drawings: dict[str, Future[Drawing]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.close()

    def add(self, name: str, spec: Mapping[str, Any]) -> None:
        """Draw a complete specification (``with_data``) under a name of its own."""
        self._specs[name] = spec
        if not self._processes and len(self._specs) > MAX_ALONE:
            num = max(1, min(MAX_PROCESSES, (os.cpu_count() or 1) - 1))
            self._processes = [_Process() for _ in range(num)]
        if self._processes:
            for waiting in list(self._specs):
                process = self._processes[len(self._drawings) % len(self._processes)]
                self._drawings[waiting] = process.draw(waiting, self._specs.pop(waiting))

    def drawing(self, name: str) -> Drawing:
        """Return a chart that was added, once drawn; raise TidemarkError if a process ended."""
        if name in self._specs:
            return draw(name, self._specs[name])
        return self._drawings[name].result()


class _Process:
    """Another process that draws one chart at a time, and the thread that waits for it."""

    def __init__(self) -> None:
        command = f"import sys; sys.path[:] = sys.argv[1:]; import {__name__} as this; this.main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._thread = ThreadPoolExecutor(1)

    def draw(self, name: str, spec: Mapping[str, Any]) -> Future[Drawing]:
        return self._thread.submit(self._ask, name, spec)

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)
        self._process.communicate()

    def _ask(self, name: str, spec: Mapping[str, Any]) -> Drawing:
        stdin = cast("IO[bytes]", self._process.stdin)
        stdout = cast("IO[bytes]", self._process.stdout)
        try:
            stdin.write(json.dumps([name, spec]).encode() + b"\n")
            stdin.flush()
            page, svg, png, vega = json.loads(stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError) as error:
            raise TidemarkError(
                f"the process that draws charts ended ({self._process.wait()}), as it does when "
                "the memory is full; free some, then write the report again"
            ) from error
        return Drawing(page, svg, b64decode(png), vega)


def main() -> None:
    """Draw each chart of standard input, a line with its name and specification, as a line."""
    for line in sys.stdin:
        drawn = draw(*json.loads(line))
        answer = [drawn.page, drawn.svg, b64encode(drawn.png).decode(), drawn.vega]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def time_axis(months: Sequence[dt.date]) -> JsonObject:
    """Return the horizontal encoding of column ``month``: UTC, with few labels."""
    first = min(months)
    last = max(months)
    num_months = 12 * (last.year - first.year) + last.month - first.month + 1
    by_year = num_months > 24
    return {
        "field": "month",
        "type": "temporal",
        "title": None,
        "scale": {"type": "utc"},
        "axis": {
            "grid": False, "format": "%Y" if by_year else "%Y-%m", "labelFlush": True,
            "tickCount": {"interval": "year", "step": -(-num_months // 96)} if by_year
            else {"interval": "month", "step": -(-num_months // 6)},
        },
    }  # fmt: skip


def by_month(key: str, value: str, form: str, **titles: str) -> list[dict[str, str]]:
    """Return what a touched point tells: column ``key``, the month, and ``value`` in a format."""
    number = {"field": value, "type": "quantitative", "format": form, **titles}
    return [{"field": key}, {"field": "month", "type": "temporal", "format": "%Y-%m"}, number]


def _with_variables(text: str) -> str:
    for colour, variable in _VARIABLES.items():
        text = text.replace(f'"{colour}"', f'"var({variable})"')
    return text
