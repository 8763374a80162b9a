"""Text over a picture that says where its figures are from."""

from __future__ import annotations

import re

MARK_HEIGHT = 16  # pixels of a sentence below a picture
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def svg_size(svg: str) -> tuple[float, float]:
    """Return width and height of a picture."""
    size = _SIZE.search(svg)
    if size is None:
        raise ValueError(f"no size in {svg:.100}")
    return float(size[1]), float(size[2])


def with_watermark(svg: str, mark: str, colour: str, text_size: int, font: str) -> str:
    """Return a picture with a text: one word across it, or a sentence in a line below it."""
    width, height = svg_size(svg)
    style = f'font-family="{font}" fill="{colour}"'
    if " " in mark:
        bottom = height + MARK_HEIGHT
        taller = f'height="{bottom:g}" viewBox="0 0 {width:g} {bottom:g}"'
        svg = re.sub(f'height="[^"]*" {_SIZE.pattern}', taller, svg, count=1)
        place = f'x="{width - 4}" y="{height + 11:g}" text-anchor="end" font-size="{text_size}"'
    else:
        x = width / 2
        y = height / 2
        letters = min(0.9 * width / len(mark), 0.45 * height)  # stays inside when it is turned
        place = (
            f'x="{x}" y="{y}" text-anchor="middle" dominant-baseline="middle" font-weight="bold" '
            f'font-size="{letters:.0f}" fill-opacity="0.2" transform="rotate(-8 {x} {y})"'
        )
    text = f'<text class="watermark" aria-hidden="true" {place} {style}>{mark}</text>'
    return svg.removesuffix("</svg>") + text + "</svg>"
