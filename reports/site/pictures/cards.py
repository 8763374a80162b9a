"""The form of a chart that is passed on: a picture with its title, its scale and where it is from.

It is 1200 pixels wide and at least 630 high, as pages that show a link expect it.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from html import escape

WIDTH = 1200  # pixels
HEIGHT = 630
MARGIN = 30
MAX_SCALE = 1.6  # of a small chart
_TITLE_SIZE = 34
_TITLE_LETTERS = 62  # of a line
_TITLE_LINES = 3
_NOTE_SIZE = 19
_NOTE_LETTERS = 118
_NOTE_LINES = 2
_FOOT_SIZE = 17
_SIZE = re.compile(
    r'<svg([^>]*?) width="[\d.]+" height="[\d.]+"([^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*)>'
)


@dataclass(frozen=True)
class Frame:
    """The texts of a card."""

    title: str
    note: str  # what the scale is
    foot: str  # where it is from


def framed(svg: str, frame: Frame, ink: str, soft: str, paper: str, font: str) -> str:
    """Return a drawn chart inside a card, as SVG."""
    found = _SIZE.match(svg)
    if found is None:
        raise ValueError(f"no size in {svg[:200]!r}")
    width = float(found[3])
    height = float(found[4])
    title = _wrapped(frame.title, _TITLE_LETTERS, _TITLE_LINES)
    note = _wrapped(frame.note, _NOTE_LETTERS, _NOTE_LINES)
    top = MARGIN + 1.2 * _TITLE_SIZE * len(title) + 1.35 * _NOTE_SIZE * len(note) + 14
    bottom = MARGIN + _FOOT_SIZE + 12
    scale = min((WIDTH - 2 * MARGIN) / width, MAX_SCALE)
    room = HEIGHT - top - bottom
    if 1 <= room / height < scale:
        scale = room / height  # rather smaller than a higher card
    whole = max(HEIGHT, round(top + scale * height + bottom))
    left = (WIDTH - scale * width) / 2
    # A chart draws nothing outside of its size. To cut that off takes half the time of a picture.
    placed = (
        f'<svg{found[1]} overflow="visible" x="{left:.1f}" y="{top:.1f}" '
        f'width="{scale * width:.1f}" '
        f'height="{scale * height:.1f}"{found[2]}>{svg[found.end() :]}'
    )
    lines = [
        *_texts(title, MARGIN + _TITLE_SIZE, _TITLE_SIZE, 1.2, f'fill="{ink}" font-weight="600"'),
        *_texts(note, top - 14 - 1.35 * _NOTE_SIZE * (len(note) - 1), _NOTE_SIZE, 1.35,
                f'fill="{soft}"'),
        *_texts([frame.foot], whole - MARGIN, _FOOT_SIZE, 1, f'fill="{soft}"'),
    ]  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{whole}" '
        f'viewBox="0 0 {WIDTH} {whole}" font-family="{font}">'
        f'<rect width="100%" height="100%" fill="{paper}"/>{"".join(lines)}{placed}</svg>'
    )


def _wrapped(text: str, letters: int, lines: int) -> list[str]:
    return textwrap.wrap(text, letters, max_lines=lines, placeholder=" …")


def _texts(lines: list[str], first: float, size: int, leading: float, style: str) -> list[str]:
    """Return lines of text, the first with its baseline at ``first``."""
    return [
        f'<text x="{MARGIN}" y="{first + number * leading * size:.1f}" font-size="{size}" {style}>'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    ]


def size_of(png: bytes) -> tuple[int, int]:
    """Return width and height of a PNG, in pixels."""
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])
