"""Articles that were new in the English Wikipedia in the month, as they stood at its end.

The month is that of a page's creation, from the creation log
(https://www.mediawiki.org/wiki/API:Logevents), which begins in June 2018. The text is the last
revision before the month's end, never today's. Two things cannot be had: articles deleted before
the crawl (their text is gone for the public, so survivors only are measured) and articles that
began as a draft (their creation is logged for the namespace Draft). In a log row ``pageid`` is the
page that has the title now, ``logpage`` the one that was created.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import UsageError
from core.month import Month
from crawlers import mediawiki
from crawlers.contract import CrawlContext, Document, Drop, SourceInfo
from crawlers.mediawiki import MediaWiki, Revision, take

INFO = SourceInfo(
    name="wikipedia_new",
    title="English Wikipedia: new articles",
    licence="CC-BY-SA-4.0",
    language="en",
    category="encyclopedia",
    sites={mediawiki.SITE: mediawiki.BASE_URL},
    request_interval_s=1.0,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
)
FIRST_MONTH = Month("2018-07")  # the first that the creation log has from its first day


@dataclass(frozen=True)
class Creation:
    """A row of the creation log."""

    page_id: int
    title: str
    created_at: dt.datetime


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Document | Drop]:
    """Yield the month's new articles by time of creation; a sample comes in the order drawn.

    Raises:
        UsageError: the month is before FIRST_MONTH.
        SourceUnavailable, AccessRefused, SourceChanged: see ``MediaWiki``.
    """
    if month < FIRST_MONTH:
        raise UsageError(
            f"wikipedia_new: {month} is not in the creation log, whose first month is {FIRST_MONTH}"
        )
    wiki = MediaWiki(context.fetcher)
    logged = list(_list_creations(wiki, month))
    yield from (item for item in logged if isinstance(item, Drop))
    creations = [item for item in logged if isinstance(item, Creation)]
    if context.limit is not None:
        creations.sort(key=lambda creation: _rank(creation, context.seed))
    start = num_kept = 0
    while start < len(creations) and (context.limit is None or num_kept < context.limit):
        size = mediawiki.BATCH
        if context.limit is not None:
            size = min(size, context.limit - num_kept)
        for result in _fetch_batch(wiki, creations[start : start + size], month):
            num_kept += isinstance(result, Document)
            yield result
        start += size
    for creation in creations[start:]:
        yield Drop(str(creation.page_id), "sample_cap")


def _rank(creation: Creation, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}|{creation.page_id}".encode()).digest()


def _list_creations(wiki: MediaWiki, month: Month) -> Iterator[Creation | Drop]:
    """Yield the rows of the creation log, each page once."""
    start, end = mediawiki.month_window(month)
    seen: set[int] = set()
    pieces = wiki.query(
        list="logevents",
        leaction="create/create",
        lenamespace=0,
        ledir="newer",
        lestart=start,
        leend=end,
        lelimit="max",
        leprop="ids|title|type|timestamp",
    )
    for piece, _ in pieces:
        for row in mediawiki.rows_of(piece, "logevents"):
            log_id = take(row, "logid", int)
            page_id = row.get("logpage")
            created_at = mediawiki.read_time(row)
            if row.get("actionhidden") or not page_id:
                yield Drop(f"log:{log_id}", "suppressed", "the log hides which page it was")
            elif created_at not in month:
                yield Drop(str(page_id), "outside_month", f"created {created_at.isoformat()}")
            elif page_id not in seen:
                seen.add(take(row, "logpage", int))
                yield Creation(page_id, take(row, "title", str), created_at)


def _fetch_batch(
    wiki: MediaWiki, creations: Sequence[Creation], month: Month
) -> Iterator[Document | Drop]:
    """Yield what became of up to BATCH pages, in their order."""
    pages = wiki.pages(
        prop="info|pageprops|revisions",
        ppprop="disambiguation",
        rvprop="ids|timestamp",
        pageids=mediawiki.join([creation.page_id for creation in creations]),
    )
    page_of = {page.get("pageid"): page for page in pages}
    found = [_month_end_revision(wiki, page_of.get(row.page_id), row, month) for row in creations]
    texts = wiki.texts([item.revision_id for item in found if isinstance(item, Revision)])
    for creation, item in zip(creations, found, strict=True):
        if isinstance(item, Drop):
            yield item
        elif (revision := texts.get(item.revision_id)) is None:
            yield Drop(str(creation.page_id), "deleted", f"revision {item.revision_id} is gone")
        else:
            title = take(page_of[creation.page_id], "title", str)
            dates = {"event_time": creation.created_at, "date_kind": "created"}
            yield mediawiki.document(creation.page_id, title, revision, **dates)


def _month_end_revision(
    wiki: MediaWiki, page: dict[str, Any] | None, creation: Creation, month: Month
) -> Revision | Drop:
    """Return the last revision of the month; the page's state is that of today."""
    native_id = str(creation.page_id)
    if page is None or page.get("missing"):
        return Drop(native_id, "deleted", creation.title)
    if (namespace := take(page, "ns", int)) != 0:
        return Drop(native_id, "withdrawn", f"moved out of the articles, to namespace {namespace}")
    if "disambiguation" in take(page, "pageprops", dict, default={}):
        return Drop(native_id, "disambiguation", creation.title)
    latest: Revision | None = page["revisions"][0] if page["revisions"] else None
    if latest is None or latest.timestamp >= month.end:
        latest = wiki.last_revision_before(creation.page_id, month.end)
    return latest or Drop(native_id, "deleted", "no revision of the month is left")
