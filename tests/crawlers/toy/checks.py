"""The toy source against its site: texts, dates, drops, and the site's traps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.corpus.partition import read_documents
from core.errors import SourceUnavailable
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from simulator.server import Web, serve
from simulator.world import World

MONTH = Month("2024-03")
WORLD = World(4, MONTH - 1, MONTH, stories_per_month=12)


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(WORLD) as running:
        yield running


@pytest.fixture
def toy_settings(settings: Settings, web: Web) -> Settings:
    return settings.model_copy(update={"sites": web.urls})


def test_all_letters_of_the_month_are_kept(store: Store, toy_settings: Settings) -> None:
    seal = crawl_partition("toy", MONTH, store, toy_settings)
    rows = [row for batch in read_documents(store, seal) for row in batch.to_pylist()]
    assert [row["text"] for row in rows] == [
        "\n\n".join(story.paragraphs) for story in WORLD.stories(MONTH, "toy")
    ]
    assert all(row["event_time"] in MONTH for row in rows)


def test_a_letter_that_moves_between_pages_is_kept_once(
    store: Store, toy_settings: Settings, web: Web
) -> None:
    web.sites["toy"].quirks["moving_items"] = 1
    manifest = crawl_partition("toy", MONTH, store, toy_settings).manifest
    assert (manifest["kept"], manifest["repeated"]) == (12, 1)


def test_an_empty_page_of_the_list_is_no_empty_month(
    store: Store, toy_settings: Settings, web: Web
) -> None:
    web.sites["toy"].quirks["empty_page"] = 1
    with pytest.raises(SourceUnavailable, match="page 1 is empty, 12 letters expected"):
        crawl_partition("toy", MONTH, store, toy_settings)
