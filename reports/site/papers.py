"""Charts for papers: PNG, SVG and PDF of a stated width, on white."""

from __future__ import annotations

import re
from pathlib import Path

import vl_convert as vlc

from core.errors import UsageError
from core.settings import Settings
from core.storage.store import explain_disk_errors
from reports.site import charts
from reports.site.build import find_page, opened_site

PNG_PER_INCH = 300
_MM = 25.4  # of an inch
_POINTS = 72.0
_SIZE = re.compile(r' width="([\d.]+)" height="([\d.]+)"')


def write_figures(settings: Settings, folder: Path, page: str, width_mm: float) -> list[str]:
    """Write the charts of a page at a width in millimetres; return their names.

    Raises:
        UsageError: there is no snapshot or no such page, or the page has no chart.
    """
    with opened_site(settings) as site:
        figures = [figure for figure in find_page(site, page).figures if figure.chart]
    if not figures:
        raise UsageError(f"page {page!r} has no chart")
    with explain_disk_errors(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            svg = charts.draw(figure.name, charts.with_data(figure.chart or {}, figure.drawn)).svg
            _write(svg, folder / figure.name, width_mm)
    return [figure.name for figure in figures]


def _write(svg: str, stem: Path, width_mm: float) -> None:
    found = _SIZE.search(svg)
    if found is None:
        raise ValueError(f"no width in {svg[:200]!r}")
    width = float(found[1])
    height = float(found[2])
    points = width_mm / _MM * _POINTS
    height_share = height / width

    def sized(unit: str, size: float) -> str:
        new = f' width="{size:.2f}{unit}" height="{size * height_share:.2f}{unit}"'
        return _SIZE.sub(new, svg, count=1)

    _file(stem, "svg").write_text(sized("mm", width_mm), encoding="utf-8")
    _file(stem, "pdf").write_bytes(vlc.svg_to_pdf(sized("", points)))
    _file(stem, "png").write_bytes(vlc.svg_to_png(svg, scale=points / width, ppi=PNG_PER_INCH))


def _file(stem: Path, kind: str) -> Path:
    return stem.with_name(f"{stem.name}.{kind}")
