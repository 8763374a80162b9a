from pathlib import Path

import pytest

from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.registry import load_crawler
from extras.media.simulator.commons import SITE_KINDS
from instruments.losses import score_and_land
from simulator.server import serve, serve_sites
from simulator.world import World
from tests.crawlers.test_live import check_source
from tests.models.conftest import byte_fallback_bpe, llama_config, save_model
from warehouse.database.writer import connected

MONTH = Month("2024-03")


@pytest.mark.parametrize(
    ("source", "control", "has_bytes"),
    [
        ("commons_images", "control:png", False),
        pytest.param("commons_images", "control:png", True, marks=pytest.mark.slow),
        pytest.param("commons_audio", "control:flac", True, marks=pytest.mark.slow),
    ],
)
def test_a_crawled_month_of_media_is_scored_and_landed(
    source: str, control: str, has_bytes: bool, settings: Settings, tmp_path: Path
) -> None:
    models = ["control:zstd", control]
    if has_bytes:
        folder = tmp_path / "bytes"
        models += [save_model(folder, llama_config(), byte_fallback_bpe(), bos_token="<s>")]
    with serve_sites([kind(World(3, MONTH - 1, MONTH)) for kind in SITE_KINDS]) as web:
        own = settings.model_copy(update={"sites": dict(web.urls)})
        seal = crawl_partition(source, MONTH, Store(own.home), own, limit=2)
    assert score_and_land(own, models, [source], None, ["default"]) == (len(models), [])
    with connected(own) as connection:
        figures = connection.sql(
            "select model, num_bytes, num_chars, bits_per_byte from monthly_loss where not is_text"
        ).fetchall()
        [counts] = connection.sql(
            "select count(*), count(distinct cluster_id), sum(num_bytes) from documents"
        ).fetchall()
    assert counts == (2, 1, seal.num_bytes)
    assert {row[0] for row in figures} == {Path(name).name for name in models}
    bits = {row[0]: row[3] for row in figures}
    assert 0 < bits[control] < bits["control:zstd"]
    assert all(0 < figure < 20 for figure in bits.values())
    assert {row[2] for row in figures} == {0}
    assert all(row[1] == seal.num_bytes for row in figures)


@pytest.mark.long
def test_a_site_that_has_not_changed_is_found_as_it_was(settings: Settings, tmp_path: Path) -> None:
    crawler = load_crawler("commons_images")
    with serve(World(7, MONTH - 1, MONTH)) as web:
        asked = settings.model_copy(update={"sites": web.urls})
        differences, faults = check_source(crawler, MONTH, asked, tmp_path / "work")
    assert faults == []
    assert {each.what for each in differences} <= {"new", "not seen", "not asked"}


@pytest.mark.parametrize("name", ["commons_audio", "commons_images"])
def test_whole_months_are_needed(name: str) -> None:
    with pytest.raises(UsageError, match=f"no source {name}:week, only {name}: "):
        load_crawler(f"{name}:week")
