"""Articles that were new in Wikipedia in the month, as they stood at its end.

The month is that of a page's creation, from the creation log
(https://www.mediawiki.org/wiki/API:Logevents), which begins in June 2018; for earlier months from
the dumps of all events (``mediawiki_history.py``). The text is the last revision before the month's
end, never today's. Two things cannot be had: articles deleted before the crawl (their text is gone
for the public, so survivors only are measured) and articles that began as a draft (their creation
is logged for the namespace Draft). In a log row ``pageid`` is the page that has the title now,
``logpage`` the one that was created.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.month import Month
from crawlers import mediawiki, mediawiki_history, wiki_documents
from crawlers.contract import CrawlContext, Drop, Item, Repeat, SourceInfo
from crawlers.mediawiki import MediaWiki, take

INFO = SourceInfo(
    name="wikipedia_new",
    title="Wikipedia: new articles",
    licence="CC-BY-SA-4.0",
    language="en",
    category="encyclopedia",
    sites={
        mediawiki.SITE: mediawiki.BASE_URL,
        mediawiki_history.SITE: mediawiki_history.BASE_URL,
    },
    language_sites=mediawiki.LANGUAGE_SITES,
    request_interval_s=1.0,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    monthly_bytes=23_000_000,  # Li et al. 2024, Table 1
)
FIRST_LOGGED = Month("2018-07")  # the first that the creation log has from its first day


@dataclass(frozen=True)
class Creation:
    """A page that was new: ``page_id`` and ``title`` as of its creation."""

    page_id: int
    title: str
    created_at: dt.datetime


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the month's new articles by time of creation; a sample comes in the order drawn.

    Raises:
        SourceUnavailable, AccessRefused, SourceChanged: see ``MediaWiki`` and
            ``mediawiki_history.list_creations``.
    """
    for edition, share in wiki_documents.editions(INFO, context):
        wiki = MediaWiki(context.fetcher, edition)
        yield from _fetch_edition(wiki, month, share)


def _fetch_edition(wiki: MediaWiki, month: Month, context: CrawlContext) -> Iterator[Item]:
    is_logged = month >= FIRST_LOGGED
    rows = _read_log(wiki, month) if is_logged else _read_dump(wiki, month, context)
    creations: dict[int, Creation] = {}
    for row in rows:
        if not isinstance(row, Creation):
            yield row
        elif row.page_id in creations:
            yield Repeat(wiki.edition.native_id(row.page_id), "listed twice")
        elif row.created_at not in month:
            detail = f"created {row.created_at.isoformat()}"
            yield Drop(wiki.edition.native_id(row.page_id), "outside_month", detail)
        else:
            creations[row.page_id] = row
    yield from wiki_documents.Sample(context).take(
        list(creations.values()),
        lambda creation: wiki.edition.native_id(creation.page_id),
        lambda batch: _fetch_batch(wiki, batch, month),
    )


def _read_log(wiki: MediaWiki, month: Month) -> Iterator[Creation | Drop]:
    """Yield the rows of the creation log."""
    start, end = mediawiki.month_window(month)
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
            if row.get("actionhidden") or not row.get("logpage"):
                hidden = "the log hides which page it was"
                yield Drop(wiki.edition.native_id(f"log:{log_id}"), "suppressed", hidden)
            else:
                page_id, title = take(row, "logpage", int), take(row, "title", str)
                yield Creation(page_id, title, mediawiki.read_time(row))


def _read_dump(wiki: MediaWiki, month: Month, context: CrawlContext) -> Iterator[Creation | Drop]:
    """Yield the creations of articles among the dumped events of a month."""
    database = f"{wiki.edition.language.replace('-', '_')}wiki"
    for row in mediawiki_history.list_creations(context.fetcher, database, month):
        if row.is_deleted or not row.page_id:
            native_id = wiki.edition.native_id(row.page_id or f"title:{row.title}")
            yield Drop(native_id, "deleted", row.title)
        else:
            yield Creation(row.page_id, row.title, row.created_at)


def _fetch_batch(wiki: MediaWiki, creations: Sequence[Creation], month: Month) -> Iterator[Item]:
    """Yield what became of up to BATCH pages, in their order."""
    ids = [creation.page_id for creation in creations]
    found = wiki_documents.at_month_end(wiki, ids, month)
    for creation in creations:
        version = found[creation.page_id]
        if isinstance(version, tuple):
            yield wiki_documents.document(
                wiki.edition, *version, event_time=creation.created_at, date_kind="created"
            )
        else:
            yield version
