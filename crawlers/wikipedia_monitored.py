"""Well-known articles of Wikipedia, each month as they stood at the month's end.

The titles are in ``wikipedia_titles.txt``; the first live run finds the page of each, and keeps its
id (``kept_pages.py``). The month is that of the last revision before the month's end. Where a page
was not edited in the month, the version that stood all month long is that of an earlier one:
``event_time`` is then the month's first instant, ``text_as_of`` the true time of the revision, and
``extra.is_new_this_month`` false, so that a view can leave it out. A page not created before the
month's end is dropped as ``not_yet_created``, one that is gone, and a title that never was a page,
as ``deleted``; one that was merged into another is a ``redirect_page``.

Two passes, so that a backfill needs few requests: the revisions of a page are listed by calendar
year, and the twelve months of the year share that list; texts come fifty to a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from core.errors import ItemFailed
from core.month import Month
from core.storage import Store
from crawlers import kept_pages, mediawiki, wiki_documents
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Failure,
    Item,
    Repeat,
    SourceInfo,
    missing_item,
)
from crawlers.kept_pages import KeptPage
from crawlers.mediawiki import MediaWiki, Revision

INFO = SourceInfo(
    name="wikipedia_monitored",
    title="Wikipedia: monitored articles",
    licence="CC-BY-SA-4.0",
    language="en",
    category="encyclopedia",
    sites={mediawiki.SITE: mediawiki.BASE_URL},
    language_sites=mediawiki.LANGUAGE_SITES,
    request_interval_s=1.0,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    keeps_versions=True,
)
TITLES_FILE = Path(__file__).with_name("wikipedia_titles.txt")
PAGES_FILE = "sources/wikipedia_monitored/pages.json"  # under the data root


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the month-end version of every monitored page, in the order of the titles.

    In another language than English, it is the pages that the English ones link to as the same.

    Raises:
        SourceUnavailable, AccessRefused, SourceChanged: see ``MediaWiki``.
        MalformedInput: the file of kept pages is damaged.
    """
    english = MediaWiki(context.fetcher)
    for edition, share in wiki_documents.editions(INFO, context):
        wiki = MediaWiki(context.fetcher, edition)
        yield from _fetch_edition(wiki, english, month, share)


def _fetch_edition(
    wiki: MediaWiki, english: MediaWiki, month: Month, context: CrawlContext
) -> Iterator[Item]:
    edition, store = wiki.edition, Store(context.settings.home)
    pages: dict[int, KeptPage] = {}
    found = kept_pages.resolve(wiki, english, _read_titles(), store, PAGES_FILE)
    for title, page in found.items():
        if page is None:
            yield Drop(edition.native_id(title), "deleted", "no page of this title")
        elif page.page_id in pages:
            detail = f"{title!r} is the same page as {pages[page.page_id].title!r}"
            yield Repeat(edition.native_id(page.page_id), detail)
        else:
            pages[page.page_id] = page
    yield from wiki_documents.Sample(context).take(
        list(pages.values()),
        lambda page: edition.native_id(page.page_id),
        lambda batch: _fetch_batch(wiki, batch, month),
    )


def _read_titles() -> list[str]:
    lines = TITLES_FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in map(str.strip, lines) if line and not line.startswith("#")]


def _fetch_batch(wiki: MediaWiki, pages: Sequence[KeptPage], month: Month) -> Iterator[Item]:
    listed = {page.page_id: _month_end_revision(wiki, page, month) for page in pages}
    found = wiki.add_texts(listed)
    for page in pages:
        item = found[page.page_id]
        yield _version(wiki, page, item, month) if isinstance(item, Revision) else item


def _month_end_revision(wiki: MediaWiki, page: KeptPage, month: Month) -> Revision | Drop | Failure:
    """Return the last revision before the month's end, or why there is none."""
    native_id = wiki.edition.native_id(page.page_id)
    january = Month(f"{month.first_day.year}-01")
    last = min(january + 11, max(month, Month.last_complete()))
    start, end = mediawiki.month_window(january)[0], mediawiki.month_window(last)[1]
    window = {"rvstart": start, "rvend": end}
    try:
        year = wiki.history(page.page_id, rvdir="newer", rvlimit="max", **window)
        if year is None:
            return Drop(native_id, "deleted", page.page_title)
        ready = [revision for revision in year if revision.timestamp < month.end]
        if ready:
            return max(ready, key=lambda revision: (revision.timestamp, revision.revision_id))
        earlier = wiki.last_revision_before(page.page_id, january.start)
    except ItemFailed as error:
        return missing_item(native_id, error)
    return earlier or Drop(native_id, "not_yet_created", page.page_title)


def _version(wiki: MediaWiki, page: KeptPage, revision: Revision, month: Month) -> Document | Drop:
    is_new = revision.timestamp in month
    return wiki_documents.document(
        wiki.edition,
        page.page_title,
        revision,
        event_time=revision.timestamp if is_new else month.start,
        date_kind="revised",
        extra={"is_new_this_month": is_new},
    )
