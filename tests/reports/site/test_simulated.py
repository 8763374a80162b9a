"""Marks of simulated text: on a site with two simulated sources and a real one, and on others."""

import io
import json
import re
from pathlib import Path

import polars as pl
import pytest
from PIL import Image, ImageChops

from core.corpus.simulated import LICENCE
from core.settings import Settings
from reports.exports import figures
from reports.site import build, charts
from reports.site.pictures.cards import size_of
from reports.site.pictures.watermarks import with_watermark
from tests.tiers import few

BAR = '<aside class="simulated"'


def test_every_page_has_the_bar_and_names_what_is_simulated(mixed_site: Path) -> None:
    for path in mixed_site.rglob("*.html"):
        text = read(path)
        assert text.count(BAR) == 1
        is_published = path.name == "published.html"  # figures of real models alone
        assert ("<title>SIMULATED · " in text) is not is_published
        assert "made up the texts of arxiv, govuk; those of news are real" in text


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_licence_of_a_simulated_source_is_the_simulator_s(mixed_site: Path) -> None:
    pages = {name: read(mixed_site / f"sources/{name}.html") for name in ("arxiv", "news")}
    licences = {
        name: re.search(r"<dt>licence</dt><dd>(.*?)</dd>", page) for name, page in pages.items()
    }
    assert {name: found and found[1] for name, found in licences.items()} == {
        "arxiv": LICENCE, "news": "CC-BY-4.0",
    }  # fmt: skip


def test_every_form_of_a_picture_has_the_watermark(mixed_site: Path) -> None:
    drawn = sorted(path.stem for path in (mixed_site / "figures").glob("*.svg"))
    assert "over-time" in drawn
    for name in drawn:
        figure = mixed_site / "figures" / name
        metadata = json.loads(Path(f"{figure}.metadata.json").read_text())
        mark = ">SIMULATED</text>" if metadata["simulated"] else ">not simulated: figures of "
        svg = Path(f"{figure}.svg").read_text()
        if name == "methods-simulations":  # of worlds that test the method, and not of real models
            assert "watermark" not in svg
            continue
        assert svg.count('class="watermark"') == 1
        assert mark in svg
        assert mark in next(
            read(page) for page in mixed_site.rglob("*.html") if f'id="{name}"' in read(page)
        )


def test_the_mark_of_quoted_figures_is_below_the_picture() -> None:
    picture = '<svg width="838" height="66" viewBox="0 0 838 66"></svg>'
    marked = with_watermark(picture, "not simulated", charts.SOFT, charts.TEXT_SIZE, "serif")
    assert marked.startswith('<svg width="838" height="82" viewBox="0 0 838 82">')
    assert ' y="77" ' in marked


def test_a_picture_is_a_card_with_title_scale_and_watermark(mixed_site: Path) -> None:
    for path in sorted((mixed_site / "figures").glob("*.png")):
        width, height = size_of(path.read_bytes())
        assert (width, height >= 630) == (1200, True), path
    spec = {"data": {"values": [{"x": 1}]}, "mark": "bar", "width": 300, "height": 200,
            "encoding": {"x": {"field": "x", "type": "quantitative"}}}  # fmt: skip
    frame = {"title": "A & B", "note": "bits per byte", "foot": "from here"}
    drawn = [
        Image.open(io.BytesIO(charts.draw("card", {**spec, "usermeta": meta}).png)).convert("RGB")
        for meta in (
            {charts.FRAME: frame},
            {charts.FRAME: {**frame, "title": "C"}},
            {charts.FRAME: {**frame, "note": "%"}},
            {charts.FRAME: frame, charts.MARK: "SIMULATED"},
        )
    ]
    assert {each.size for each in drawn} == {(1200, 630)}
    for other in drawn[1:]:
        assert ImageChops.difference(drawn[0], other).getbbox()


def test_files_of_figures_tell_which_rows_are_simulated(mixed_site: Path) -> None:
    rows = {
        "csv": pl.read_csv(mixed_site / "figures/sources.csv"),
        "json": pl.read_json(mixed_site / "figures/sources.json"),
        "parquet": pl.read_parquet(mixed_site / "figures/sources.parquet"),
    }
    for each in rows.values():
        found = dict(each.select("source", "simulated").iter_rows())
        assert found == {"arxiv": True, "govuk": True, "news": False}
    board = pl.read_csv(mixed_site / "figures/board.csv")  # over all sources
    assert board["simulated"].to_list() == [True] * 2
    peers = pl.read_csv(mixed_site / "figures/methods-peers.csv")
    assert not peers["simulated"].any()
    metadata = json.loads((mixed_site / "figures/board.metadata.json").read_text())
    assert metadata["simulated_sources"] == ["arxiv", "govuk"]
    assert metadata["columns"][-1]["name"] == "simulated"


@pytest.mark.parametrize("format", few(["csv", "parquet"], 1))
def test_exported_views_tell_it_too(
    mixed: Settings, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = figures.exported_views()
    few_views = {name: views[name] for name in ("coverage", "headline", "monthly_loss")}
    monkeypatch.setattr(figures, "exported_views", lambda: few_views)
    folder = tmp_path / "figures"
    figures.export_figures(mixed, format, folder)
    table = {"csv": pl.read_csv, "parquet": pl.read_parquet}[format]
    monthly = table(folder / f"monthly_loss.{format}")
    found = dict(monthly.select("source", "simulated").unique().iter_rows())
    assert found == {"arxiv": True, "govuk": True, "news": False}
    assert table(folder / f"headline.{format}")["simulated"].all()
    for path in folder.glob(f"*.{format}"):
        assert "simulated" in table(path).columns
    assert "made up the texts of arxiv, govuk" in (folder / "README.md").read_text()


@pytest.mark.slow
def test_a_site_of_real_text_has_no_mark(usual: Settings) -> None:
    index = Path(build.write_site(usual, only="index"))
    assert BAR not in read(index)
    assert "SIMULATED" not in read(index)
    assert "watermark" not in (index.parent / "figures/over-time.svg").read_text()
    assert not pl.read_csv(index.parent / "figures/board.csv")["simulated"].any()
