"""Only what may be well a moment later is tried again."""

from __future__ import annotations

import asyncio

import pytest
from prefect.states import Failed

from core.errors import (
    AccessRefused,
    DiskFull,
    EmptyPartition,
    SourceChanged,
    SourceUnavailable,
    TidemarkError,
)
from core.month import Month
from core.settings import Settings
from core.storage import Store
from simulator.server import serve
from simulator.world import World
from tasks.crawling import crawl_month, may_pass


@pytest.mark.parametrize(
    ("error", "is_tried_again"),
    [
        (SourceUnavailable("503"), True),
        (SourceChanged("a new layout"), False),
        (AccessRefused("robots.txt"), False),
        (EmptyPartition("nothing kept"), False),
        (DiskFull("no space left"), False),
        (ZeroDivisionError("a bug"), False),
    ],
)
def test_what_is_tried_again(error: Exception, is_tried_again: bool) -> None:
    assert asyncio.run(may_pass(None, None, Failed(data=error))) is is_tried_again


def test_a_month_is_sealed_once(settings: Settings, store: Store) -> None:
    month = Month("2024-01")
    with serve(World(0, month, month, stories_per_month=3)) as web:
        there = settings.model_copy(update={"sites": web.urls})
        seal = crawl_month.fn("wikipedia_new", month, there)
        asked = len(web.requests)
        assert crawl_month.fn("wikipedia_new", month, there) == seal
        assert len(web.requests) == asked
    assert seal.num_documents == 3
    assert store.exists(seal.parts[0])


def test_a_month_without_text_is_an_error(settings: Settings) -> None:
    world = World(0, Month("2024-01"), Month("2024-01"), stories_per_month=3)
    with serve(world) as web, pytest.raises(TidemarkError, match="nothing to keep"):
        there = settings.model_copy(update={"sites": web.urls})
        crawl_month.fn("wikipedia_new", Month("2024-02"), there)
