"""Charts for papers: PNG, SVG and PDF of a stated width, on white, each with its caption."""

from __future__ import annotations

import re
from pathlib import Path

import vl_convert as vlc

from core.errors import UsageError
from core.settings import Settings
from core.storage.store import explain_disk_errors
from reports.site import charts
from reports.site.build import chart_of, find_page, foot_of, opened_site

PNG_PER_INCH = 300
_MM = 25.4  # of an inch
_POINTS = 72.0
_SIZE = re.compile(r' width="([\d.]+)" height="([\d.]+)"')


def write_figures(settings: Settings, folder: Path, page: str, width_mm: float) -> list[str]:
    """Write the charts of a page; return their names.

    The widest chart has the width in millimetres. Letters of the others have the same size, so
    that narrower charts stay narrower. Beside each is ``<name>.txt``: its title, its note and a
    line that says where the numbers are from. Pictures of simulated text are marked.

    Raises:
        UsageError: there is no snapshot or no such page, or the page has no chart.
    """
    drawn: dict[str, str] = {}
    captions: dict[str, str] = {}
    with opened_site(settings) as site:
        for figure in find_page(site, page).figures:
            if figure.chart:
                drawn[figure.name] = charts.draw(figure.name, chart_of(site, figure)).svg
                texts = (f"{figure.title}.", figure.about, foot_of(site, figure))
                captions[figure.name] = "\n".join(filter(None, texts))
    if not drawn:
        raise UsageError(f"page {page!r} has no chart")
    widest = max(_size_of(svg)[0] for svg in drawn.values())
    with explain_disk_errors(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        for name, svg in drawn.items():
            _write(svg, folder / name, width_mm / widest)
            _file(folder / name, "txt").write_text(f"{captions[name]}\n", encoding="utf-8")
    return list(drawn)


def _size_of(svg: str) -> tuple[float, float]:
    """Return width and height in px."""
    found = _SIZE.search(svg)
    if found is None:
        raise ValueError(f"no width in {svg[:200]!r}")
    return float(found[1]), float(found[2])


def _write(svg: str, stem: Path, mm_per_px: float) -> None:
    """Write a chart as SVG, PDF and PNG of one size on paper."""
    width, height = _size_of(svg)
    points_per_px = mm_per_px / _MM * _POINTS

    def sized(unit: str, scale: float) -> str:
        new = f' width="{width * scale:.2f}{unit}" height="{height * scale:.2f}{unit}"'
        return _SIZE.sub(new, svg, count=1)

    _file(stem, "svg").write_text(sized("mm", mm_per_px), encoding="utf-8")
    _file(stem, "pdf").write_bytes(vlc.svg_to_pdf(sized("", points_per_px)))
    _file(stem, "png").write_bytes(vlc.svg_to_png(svg, scale=points_per_px, ppi=PNG_PER_INCH))


def _file(stem: Path, kind: str) -> Path:
    return stem.with_name(f"{stem.name}.{kind}")
