"""The shapes of a live or simulated site's responses, by kind of request (``request_kinds.py``)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from core.corpus.questions import Question
from core.errors import SourceError
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Crawler, Document, Medium
from crawlers.questions.contract import QuestionContext, QuestionCrawler, QuestionSourceInfo
from crawlers.web.fetcher import Fetched, Fetcher
from simulator.shapes import Shape
from tests.crawlers.request_kinds import kind_of

NUM_ITEMS = 3  # asked for, to see what a site answers


class ShapingFetcher(Fetcher):
    def __init__(self, source: str, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._source = source
        self.shapes: dict[str, Shape] = {}

    def get(self, key: str, path: str, *arguments: Any, **options: Any) -> Fetched:
        fetched = super().get(key, path, *arguments, **options)
        params = options.get("params") or (arguments[0] if arguments else None) or {}
        target = f"{path}{'&' if '?' in path else '?'}{'&'.join(f'{name}=' for name in params)}"
        kind = f"{key} {kind_of(target, self._source)}"
        self.shapes.setdefault(kind, Shape()).add(fetched)
        return fetched


@dataclass(frozen=True)
class Watched:
    """The responses of a site to the requests for a few items.

    ``error`` ended the crawl before ``num_items`` sufficed; its response is among the shapes.
    """

    shapes: dict[str, Shape]
    num_items: int
    error: SourceError | None = None


def watch(crawler: Crawler | QuestionCrawler, month: Month, settings: Settings) -> Watched:
    """Request a few items of a month; neither read nor write the cache."""
    info = crawler.INFO
    fetcher = ShapingFetcher(
        f"questions.{info.name}" if isinstance(info, QuestionSourceInfo) else info.name,
        settings,
        info.all_sites(()),
        info.request_interval_s,
        info.redirect_hosts,
        use_cache=False,
        robots_exempt_paths=info.robots_exempt_paths,
        shares_pace=info.shares_pace,
    )
    items = (item for item in _items(crawler, month, settings, fetcher) if _is_kept(item))
    num_items = 0
    try:
        for _ in islice(items, NUM_ITEMS):
            num_items += 1
    except SourceError as error:
        return Watched(fetcher.shapes, num_items, error)
    return Watched(fetcher.shapes, num_items)


def _items(
    crawler: Crawler | QuestionCrawler, month: Month, settings: Settings, fetcher: Fetcher
) -> Iterator[object]:
    if isinstance(crawler.INFO, QuestionSourceInfo):
        walk = cast(QuestionCrawler, crawler)
        found = walk.fetch_questions([month], QuestionContext(settings, fetcher))
        return (item for _, item in found)
    return cast(Crawler, crawler).fetch_month(
        month, CrawlContext(settings, fetcher, limit=NUM_ITEMS)
    )


def _is_kept(item: object) -> bool:
    return isinstance(item, Document | Medium | Question)
