"""Pages of Common Crawl, by the month in which they were captured.

A month has the captures of all crawls that ran in it. Blocks of their indexes are drawn by the
seed, and of each block up to ``MAX_PAGES`` pages, in random order: whole HTML pages of status 200
whose language Common Crawl has found to be English (of crawls before 2018-08, which state none,
all). One range request fetches the record of a page.

A page is dated twice. ``event_time`` is the capture. ``extra.first_seen`` is its earliest capture
in the crawls that are asked (``earlier_crawls``): a page of this month may have had its text for
years. ``common_crawl:new`` has only pages that none of these crawls saw before the month.

Its terms (https://commoncrawl.org/terms-of-use) leave all rights with the sites, so texts are for
local use. Both hosts share one connection and one request in two seconds. Written from the
published index and its documentation; no response of the live site was at hand.
"""

from __future__ import annotations

import datetime as dt
import functools
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from core.errors import ItemFailed, ItemUnavailable
from core.month import Month, Period
from crawlers.apis.fields import read_item
from crawlers.contract import CrawlContext, Document, Drop, Item, Quota, SourceInfo, missing_item
from crawlers.text.warc import Record, captured_at, read_capture, read_records, require_allowed
from extras.common_crawl import index
from extras.common_crawl.index import Capture, Crawl, IndexBlock

NEW = "new"  # subset of the pages that no crawl saw before the month
INFO = SourceInfo(
    name="common_crawl",
    title="Common Crawl: pages of the web",
    licence="LicenseRef-unknown",
    language="en",
    category="web",
    sites={
        index.INDEX: "https://index.commoncrawl.org",
        index.DATA: "https://data.commoncrawl.org",
    },
    request_interval_s=2.0,
    shares_pace=True,
    lag_days=45,  # a crawl of two weeks that begins on the last day, and its index
    monthly_bytes=1_000_000,  # some 300 pages, 3,000 requests
    subset_kind="age",
    subset_names=(NEW,),
    whole_months="Common Crawl has no crawl in many half-months and weeks",
)
MAX_PAGES = 8  # of a block; its pages are of few sites
_ENGLISH = "eng"  # ISO 639-3, as in the index


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield pages of the month, block by block, until the sample is full."""
    crawls = index.list_crawls(context.fetcher)
    own = [each for each in crawls if each.start < month.end and each.end > month.start]
    if not own:
        yield Drop(f"crawl:{month}", "no_source", f"Common Crawl captured no page in {month}")
        return
    reader = _Reader(month, context, crawls)
    quota = context.quota()
    for block in index.draw_blocks(own, month, context):
        yield from reader.read(block, quota)
        if quota.is_full:
            return


@dataclass
class _Reader:
    month: Period
    context: CrawlContext
    crawls: Sequence[Crawl]
    _seen: set[str] = field(default_factory=set)  # URLs; two crawls may have the same page

    def read(self, block: IndexBlock, quota: Quota) -> Iterator[Item]:
        """Yield the pages of a block; those after the quota is full are not fetched."""
        try:
            captures = list(block.captures(self.context.fetcher))
        except (ItemUnavailable, ItemFailed) as error:
            yield missing_item(f"block:{block.name}", error)
            return
        for capture in self._choose(captures):
            if quota.is_full:
                yield Drop(capture.url, "sample_cap")
            else:
                yield quota.take(read_item(capture.url, functools.partial(self._page, capture)))

    def _choose(self, captures: Sequence[Capture]) -> list[Capture]:
        """Return at most ``MAX_PAGES`` new English pages of this month, chosen by rank."""
        pages: dict[str, Capture] = {}
        for each in captures:
            is_own = self.month.of(each.captured) == self.month
            is_english = each.languages.startswith(_ENGLISH) or not each.languages
            if is_own and is_english and each.url not in self._seen:
                pages.setdefault(each.url, each)
        chosen = sorted(pages.values(), key=lambda each: self.context.rank(each.url))[:MAX_PAGES]
        self._seen.update(each.url for each in chosen)
        return chosen

    def _page(self, capture: Capture) -> Item:
        """Return a captured page as a document, or why it is left out."""
        require_allowed(capture.url, self.context.settings.denied_hosts)
        is_new = self.context.subset == NEW
        if is_new:
            self._require_new(capture)
        last = capture.offset + capture.length - 1
        path = f"/{capture.filename}"
        fetched = self.context.fetcher.get(index.DATA, path, span=(capture.offset, last))
        page = read_capture(_record_of(fetched.body, capture))
        if not page.text.strip():
            return Drop(capture.url, "empty", "a page without an article or paragraphs")
        seen = {} if is_new else self._sight(capture)
        published = page.published.isoformat() if page.published else None
        return Document(
            native_id=capture.url,
            version_id=f"{capture.captured:%Y%m%d%H%M%S}",
            title=page.title or "",
            url=capture.url,
            event_time=capture.captured,
            date_kind="captured",
            text_as_of=capture.captured,
            retrieved_at=fetched.retrieved_at,
            licence=INFO.licence,
            attribution=f"{capture.url}, by Common Crawl",
            cluster_id=urlsplit(capture.url).hostname,
            extra={"crawl": capture.crawl.name, "published": published, **seen},
            text=page.text,
        )

    def _require_new(self, capture: Capture) -> None:
        """Raise ItemUnavailable if a page was seen before the month; the newest are asked first."""
        for crawl in reversed(index.earlier_crawls(self.crawls, capture)):
            seen = index.first_capture(self.context.fetcher, crawl, capture.url)
            if seen and seen < self.month.start:
                raise ItemUnavailable("outside_month", f"seen on {seen:%Y-%m-%d} by {crawl.name}")

    def _sight(self, capture: Capture) -> dict[str, object]:
        """Return the earliest capture in the crawls that are asked, the oldest first."""
        crawls = index.earlier_crawls(self.crawls, capture)
        first = capture.captured
        for crawl in crawls:
            seen = index.first_capture(self.context.fetcher, crawl, capture.url)
            if seen:
                first = min(first, seen)
                break
        return {"first_seen": first.isoformat(), "num_crawls_asked": len(crawls)}


def _record_of(packed: bytes, capture: Capture) -> Record:
    """Return the record of a page; raise ItemUnavailable if it is of another capture."""
    data = index.unpack_member(packed, capture.url)
    found = next(read_records(io.BytesIO(data)), None)
    if not isinstance(found, Record) or found.headers.get("warc-type") != "response":
        raise ItemUnavailable("damaged", f"{capture.filename}:{capture.offset} has no response")
    url = found.headers.get("warc-target-uri", "").strip("<>")
    captured = captured_at(found)
    if url != capture.url or captured is None or _whole(captured) != capture.captured:
        why = f"{capture.filename}:{capture.offset} is of {url[:200]}, captured {captured}"
        raise ItemUnavailable("damaged", why)
    return found


def _whole(time: dt.datetime) -> dt.datetime:
    return time.replace(microsecond=0)
