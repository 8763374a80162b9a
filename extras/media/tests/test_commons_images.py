import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from core.corpus.lookup import find_documents
from core.corpus.partition import Partition, read_documents
from core.corpus.tombstones import item_key
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Failure, Item, Medium
from crawlers.crawling.crawl import crawl_partition
from extras.media import commons
from extras.media.commons import read_licence
from extras.media.simulator import commons as simulated
from extras.media.simulator.commons import PICTURE_ODDITIES, Upload, Uploads
from simulator.server import Fault, Web
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, reasons_of

SITE_KINDS = simulated.SITE_KINDS
MONTH = Month("2024-02")
WORLD = World(5, MONTH - 1, MONTH)
UPLOADS = Uploads(WORLD)
PICTURES = [file for file in UPLOADS.of_month(MONTH) if file.is_picture]
REASONS = {
    "plain": None, "small": "too_small", "huge": "too_large", "bomb": "too_large",
    "cut_off": "damaged", "misnamed": "unknown_format", "gfdl": "licence",
    "hidden": "suppressed", "gone": "deleted", "replaced": "edited_later",
    "reuploaded": "outside_month",
}  # fmt: skip


def media_of(items: list[Item]) -> dict[str, list[Medium]]:
    found = defaultdict(list)
    for item in items:
        if isinstance(item, Medium):
            found[str(item.cluster_id)].append(item)
    return found


def picture(oddity: str = "") -> Upload:
    return next(file for file in PICTURES if file.oddity == oddity)


def test_a_patch_is_a_part_of_the_picture_at_its_place(crawl: Crawl) -> None:
    found = media_of(crawl())
    assert found.keys() == {file.title for file in PICTURES if not file.oddity}
    for file in PICTURES:
        for item in found.get(file.title, []):
            top = item.extra["top"]
            left = item.extra["left"]
            grey = np.frombuffer(item.data, np.uint8).reshape(64, 128)
            assert (grey == file.pixels[top : top + 64, left : left + 128]).all()
            assert item.kind == "image" and len(item.data) == 8192
            assert item.event_time == file.uploaded
            assert item.licence == read_licence(file.licence)
            assert item.extra["made"] == f"{file.uploaded:%Y-%m-%d}"
            assert item.url.startswith("https://commons.wikimedia.org/wiki/File:Vue_de_l")
    assert {len(items) for items in found.values()} == {commons.MAX_PIECES}  # of a grid of 6


def test_the_seed_draws_the_patches(crawl: Crawl) -> None:
    drawn = [media_of(crawl(seed=seed)) for seed in (1, 1, 2)]
    places = [
        {name: [item.native_id for item in items] for name, items in each.items()} for each in drawn
    ]
    assert places[0] == places[1]
    assert sum(places[0][name] != places[2][name] for name in places[0]) > len(places[0]) / 2


def test_each_special_file_is_dropped_with_its_reason(crawl: Crawl) -> None:
    items = crawl()
    reasons = reasons_of(items)
    for oddity in PICTURE_ODDITIES:
        expected = REASONS.get(oddity)
        assert reasons.get(picture(oddity).title) == expected, oddity
    plain = [name for name in reasons if name.startswith(f"{picture('plain').title}#")]
    assert {reasons[name] for name in plain} == {"low_quality"} and len(plain) == 6
    assert count_drops(items)["suppressed"] == 1


def test_what_the_list_refuses_is_not_downloaded(crawl: Crawl, web: Web) -> None:
    crawl()
    asked = " ".join(path for key, _, path in web.requests if key == "commons_files")
    assert "a.jpg" in asked
    for oddity in ("_huge", "_gone", "_hidden", "gfdl", "replaced", "reuploaded", "drawing"):
        assert oddity not in asked


def test_a_sample_lists_some_moments_and_fetches_what_it_keeps(crawl: Crawl, web: Web) -> None:
    items = crawl(limit=5, seed=3)
    assert [len(found) for found in media_of(items).values()] == [4, 1]
    lists = [path for _, _, path in web.requests if "list=allimages" in path]
    assert len(lists) <= commons.NUM_WINDOWS
    assert sum(key == "commons_files" for key, _, _ in web.requests) <= 2 + 1 + 2  # robots, drops
    assert count_drops(items)["sample_cap"] > 0


def test_other_bytes_than_listed_are_requested_again_then_counted(crawl: Crawl, web: Web) -> None:
    file = picture()
    address = f"{file.number}%20a.jpg|{file.number}_a.jpg"
    web.faults.append(Fault("status", "commons_files", address, 1, 200, {}, b"\xff\xd8\xff other"))
    assert len(media_of(crawl())[file.title]) == 4
    web.faults[:] = [Fault("status", "commons_files", address, 99, 200, {}, b"\xff\xd8\xff other")]
    failures = [item for item in crawl() if isinstance(item, Failure)]
    assert [failure.native_id for failure in failures] == [file.title]


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("CC BY-SA 4.0", "CC-BY-SA-4.0"), ("CC BY 2.0", "CC-BY-2.0"),
        ("CC BY-SA 3.0 de", "CC-BY-SA-3.0-DE"), ("CC0", "CC0-1.0"),
        ("Public domain", "LicenseRef-public-domain"), ("GFDL", None), ("CC BY-NC 4.0", None),
        ("CC BY-SA 4.0 or GFDL", None), ("", None),
    ],
)  # fmt: skip
def test_licences(name: str, licence: str | None) -> None:
    assert read_licence(name) == licence


def test_the_answer_that_commons_documents_is_read(crawl: Crawl, web: Web) -> None:
    """Fields and values of Commons:Machine-readable data (stored copy, seen 2026-11), shortened."""
    file = picture()
    metadata = {
        "DateTime": {"value": "2009-09-30 07:19:49", "source": "mediawiki-metadata", "hidden": ""},
        "CommonsMetadataExtension": {"value": 1.2, "source": "extension", "hidden": ""},
        "LicenseShortName": {
            "value": "Public domain", "source": "commons-desc-page", "hidden": "",
        },
    }  # fmt: skip
    info = [{"timestamp": "2024-02-01T00:00:00Z", "sha1": file.sha1, "extmetadata": metadata}]
    page = {"pageid": 4193254, "ns": 6, "title": file.title, "imagerepository": "local"}
    body = json.dumps({"query": {"pages": [{**page, "imageinfo": info}]}}).encode()
    web.faults.append(Fault("status", "commons", "prop=imageinfo", 99, 200, {}, body))
    [items] = media_of(crawl()).values()
    assert {item.licence for item in items} == {"LicenseRef-public-domain"}
    assert all("made" not in item.extra for item in items)


@pytest.mark.long
def test_a_file_is_taken_down_with_all_its_patches(settings: Settings, web: Web) -> None:
    forget = pytest.importorskip("extras.takedown.forgetting").forget
    own = settings.model_copy(
        update={"sites": dict(web.urls), "monthly_bytes": {"commons_images": 0}}
    )
    store = Store(own.home)
    partition = Partition("commons_images", MONTH)
    before = crawl_partition("commons_images", MONTH, store, own)
    title, other = (file.title for file in [each for each in PICTURES if not each.oddity][:2])
    key = item_key("commons_images", title)
    assert len(find_documents(store, [key])) == 4
    assert len(forget(own, [key], "the author asks").document_ids) == 4
    again = crawl_partition("commons_images", MONTH, store, own, replace=True)
    found: Counter[Any] = Counter()
    for batch in read_documents(store, again, columns=["cluster_id"]):
        found.update(batch["cluster_id"].to_pylist())
    assert found[title] == 0 and found[other] == 4
    assert again.num_documents == before.num_documents - 4
    assert again.manifest["dropped"]["forgotten"] == 4  # type: ignore[index]
    assert again.partition == partition
