"""Half-months and weeks of sources, as sources of their own."""

import dataclasses
import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import UnknownName, UsageError
from core.month import Month, Period
from core.periods import HalfMonth, Week
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.registry import list_sources, load_crawler
from simulator.server import Web, serve
from simulator.world import World
from tests.crawlers.conftest import rows_of
from tests.tiers import few

MONTH = Month("2024-02")
HALVES = HalfMonth("2024-02a"), HalfMonth("2024-02b")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(3, MONTH - 1, MONTH + 1, stories_per_month=24)) as running:
        yield running


def crawl(source: str, period: Period, folder: Path, web: Web) -> dict[str, str]:
    """Crawl a partition; return the texts by the site's ids."""
    store = Store(str(folder))
    settings = Settings(home=store.root, sites=dict(web.urls), request_interval_s=0)
    seal = crawl_partition(source, period, store, settings)
    assert seal.manifest["window"] == {
        "start": period.start.isoformat(), "end": period.end.isoformat()
    }  # fmt: skip
    rows = rows_of(store, seal)
    assert {(row["source"], row["month"]) for row in rows} == {(source, period.first_day)}
    assert all(row["event_time"] in period for row in rows)
    return {row["native_id"]: row["text"] for row in rows}


@pytest.mark.parametrize(
    ("source", "is_same_text"),
    few(
        [
            # A text may be as of the end of the first half, and older than that of the month.
            ("wikipedia_new", False),
        ],
        2,
    ),
)
def test_two_halves_are_the_month(
    source: str, is_same_text: bool, web: Web, tmp_path: Path
) -> None:
    whole = crawl(source, MONTH, tmp_path, web)
    first, second = (crawl(f"{source}:half-month", half, tmp_path, web) for half in HALVES)
    assert first
    assert second
    assert not first.keys() & second.keys()
    assert (first | second).keys() == whole.keys()
    assert not is_same_text or first | second == whole


def test_a_week_may_lie_in_two_months(web: Web, tmp_path: Path) -> None:
    week = Week("2024-W05")  # from 29 January to 4 February
    found = crawl("hackernews:week", week, tmp_path, web)
    months = [crawl("hackernews", month, tmp_path, web) for month in (MONTH - 1, MONTH)]
    assert found
    assert found.keys() <= months[0].keys() | months[1].keys()


def test_a_sample_is_in_proportion_to_the_period() -> None:
    names = ("hackernews", "hackernews:half-month", "hackernews:week")
    month, half, week = (load_crawler(name).INFO for name in names)
    sizes = [info.monthly_bytes for info in (month, half, week)]
    assert sizes == [4_000_000, 2_000_000, 4_000_000 * 12 // 52]
    assert half.name == "hackernews:half-month"


def test_the_bounds_of_a_source_are_instants() -> None:
    whole = dataclasses.replace(load_crawler("hackernews").INFO, last_month=Month("2026-04"))
    info = whole.by(HalfMonth)
    now = dt.datetime(2027, 1, 1, tzinfo=dt.UTC)
    assert info.lacks(HalfMonth("2017-01a"), now) is None
    assert info.lacks(HalfMonth("2026-04b"), now) is None
    assert info.lacks(HalfMonth("2016-12b"), now) == "hackernews:half-month begins with 2017-01"
    assert info.lacks(HalfMonth("2026-05a"), now) == "hackernews:half-month ended with 2026-04"


def test_sources_that_need_whole_months_say_why() -> None:
    names = [name for name in list_sources() if load_crawler(name).INFO.whole_months]
    for name in names:
        why = load_crawler(name).INFO.whole_months
        with pytest.raises(UsageError, match=f"no source {name}:week, only {name}: {why}"):
            load_crawler(f"{name}:week")


@pytest.mark.parametrize(
    "name", ["hackernews:month", "hackernews:half-month:week", "hackernews:week:de"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UnknownName):
        load_crawler(name)
