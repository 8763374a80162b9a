"""Marks of simulated text: on a site with two simulated sources and a real one, and on others."""

import io
import json
import math
import re
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from PIL import Image, ImageChops

from core.corpus.partition import Partition, document_id, tables_of
from core.corpus.sealing import seal_partition
from core.corpus.simulated import LICENCE
from core.month import month_range
from core.schemas.tables import LOSSES
from core.settings import Settings
from core.storage.store import Store
from reports.exports import figures
from reports.site import build, charts
from reports.site.cards import size_of
from reports.site.pages import methods, overview, source
from tests.losses import loss_row
from tests.reports.curves import FIRST
from tests.tiers import few
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

LICENCES = {"arxiv": LICENCE, "govuk": LICENCE, "news": "CC0-1.0"}
BAR = '<aside class="simulated"'
TEXT = "sand and tide, " * 20


def publish_home(home: Path, sources: list[str]) -> Settings:
    settings, store = Settings(home=str(home)), Store(str(home))
    rows = []
    with open_warehouse(settings) as warehouse:
        for source in sources:
            for number, month in enumerate(month_range(FIRST, FIRST + 3)):
                partition = Partition(source, month)
                documents = [
                    {"native_id": f"{month}-{each}", "date_kind": "given", "text": TEXT,
                     "licence": LICENCES[source]}
                    for each in range(2)
                ]  # fmt: skip
                seal = seal_partition(store, partition, tables_of(documents, partition))
                warehouse.land_documents(seal)
                rows += [
                    loss_row(model, source, month.first_day,
                             document_id(source, str(each["native_id"]), None),
                             nll_nats=(level + number / 10) * math.log(2) * len(TEXT),
                             num_chars=len(TEXT), num_bytes=len(TEXT))
                    for each in documents
                    for model, level in (("early", 1.0), ("late", 1.5))
                ]  # fmt: skip
        warehouse.land_losses(pa.Table.from_pylist(rows, schema=LOSSES), "losses")
        warehouse.upsert_sources([{"name": source, "licence": "CC-BY-4.0"} for source in sources])
    publish(settings)
    return settings


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return publish_home(tmp_path_factory.mktemp("mixed") / "home", ["arxiv", "govuk", "news"])


@pytest.fixture(scope="module")
def site(mixed: Settings) -> Path:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "page_modules", lambda: [overview, source, methods])
        return Path(build.write_site(mixed)).parent


def test_every_page_has_the_bar_and_names_what_is_simulated(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = read(path)
        assert text.count(BAR) == 1
        assert "<title>SIMULATED · " in text
        assert "made up the texts of arxiv, govuk; those of news are real" in text


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_licence_of_a_simulated_source_is_the_simulator_s(site: Path) -> None:
    licences = {
        name: re.search(r"<dt>licence</dt><dd>(.*?)</dd>", read(site / f"sources/{name}.html"))
        for name in ("arxiv", "news")
    }
    assert {name: found and found[1] for name, found in licences.items()} == {
        "arxiv": LICENCE, "news": "CC-BY-4.0",
    }  # fmt: skip


def test_every_form_of_a_picture_has_the_watermark(site: Path) -> None:
    drawn = sorted(path.stem for path in (site / "figures").glob("*.svg"))
    assert "over-time" in drawn
    for name in drawn:
        figure = site / "figures" / name
        metadata = json.loads(Path(f"{figure}.metadata.json").read_text())
        mark = ">SIMULATED</text>" if metadata["simulated"] else ">not simulated: figures of "
        svg = Path(f"{figure}.svg").read_text()
        assert svg.count('class="watermark"') == 1
        assert mark in svg
        assert mark in next(
            read(page) for page in site.rglob("*.html") if f'id="{name}"' in read(page)
        )


def test_a_picture_is_a_card_with_title_scale_and_watermark(site: Path) -> None:
    for path in sorted((site / "figures").glob("*.png")):
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


def test_files_of_figures_tell_which_rows_are_simulated(site: Path) -> None:
    rows = {
        "csv": pl.read_csv(site / "figures/sources.csv"),
        "json": pl.read_json(site / "figures/sources.json"),
        "parquet": pl.read_parquet(site / "figures/sources.parquet"),
    }
    for each in rows.values():
        found = dict(each.select("source", "simulated").iter_rows())
        assert found == {"arxiv": True, "govuk": True, "news": False}
    board = pl.read_csv(site / "figures/board.csv")  # over all sources
    assert board["simulated"].to_list() == [True] * 2
    peers = pl.read_csv(site / "figures/methods-peers.csv")
    assert not peers["simulated"].any()
    metadata = json.loads((site / "figures/board.metadata.json").read_text())
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
