from collections.abc import Callable
from dataclasses import replace

import pytest

from core.corpus.partition import Partition, Seal, read_seal
from core.errors import SourceChanged, SourceUnavailable
from core.month import Month, Period
from core.settings import Settings
from core.storage.store import Store
from instruments.crawling import crawl_all, crawl_source
from instruments.planning import Request
from instruments.runner import Failure
from instruments.running.stopping import Stopped, go_on, stop_with_flow

MONTHS = (Month("2024-01"), Month("2024-02"), Month("2024-03"))
REQUEST = Request(months=MONTHS, sources=("wikipedia_new", "hackernews"), models=())


def test_a_source_that_does_not_answer_is_tried_for_one_month_and_others_go_on(
    settings: Settings, seal: Callable[..., Seal]
) -> None:
    seal("wikipedia_new", "2024-03")
    asked: list[tuple[str, Period]] = []

    def crawl(source: str, month: Period, settings: Settings) -> Seal | Failure:
        asked.append((source, month))
        if source == "wikipedia_new":
            raise SourceUnavailable(f"wikipedia_new {month}: 503")
        return seal(source, str(month))

    crawled = crawl_all(REQUEST, settings, crawl)
    expected = [*(("hackernews", month) for month in MONTHS), ("wikipedia_new", MONTHS[0])]
    assert sorted(asked) == expected
    assert crawled.partitions == 4, "what is sealed counts, also of a source that is away"
    assert crawled.holes == [
        "crawl wikipedia_new 2024-01: 503",
        "crawl wikipedia_new 2024-02: not tried, since crawl wikipedia_new 2024-01: 503",
    ]


@pytest.mark.parametrize("is_raised", [True, False])
def test_other_failures_are_of_their_month_alone(
    settings: Settings, seal: Callable[..., Seal], is_raised: bool
) -> None:
    failure = Failure("crawl hackernews 2024-02", "no list", error="SourceChanged")

    def crawl(source: str, month: Period, settings: Settings) -> Seal | Failure:
        if month != MONTHS[1]:
            return seal(source, str(month))
        if is_raised:
            raise SourceChanged("no list")
        return failure

    results = list(crawl_source("hackernews", MONTHS, settings, crawl))
    assert results[1] == failure
    store = Store(settings.home)
    for number in (0, 2):
        assert results[number] == read_seal(store, Partition("hackernews", MONTHS[number]))


def test_what_ends_the_process_ends_all_sources(settings: Settings) -> None:
    def crawl(source: str, month: Period, settings: Settings) -> Seal:
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            crawl_all(replace(REQUEST, sources=("hackernews",)), settings, crawl)
        with pytest.raises(Stopped):
            go_on()
    finally:
        with stop_with_flow():  # work of other tests may go on
            pass
