"""Well-known articles of the English Wikipedia, each month as they stood at the month's end.

The titles are in ``wikipedia_titles.txt``. The month is that of the last revision before the
month's end. Where a page was not edited in the month, the version that stood all month long is
that of an earlier one: ``event_time`` is then the month's first instant, ``text_as_of`` the true
time of the revision, and ``extra.is_new_this_month`` false, so that a view can leave it out.
A page not created before the month's end is dropped as ``not_yet_created``, a title that is no
page today as ``deleted``.

Histories are listed by calendar year: the twelve months of a backfill share one list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from core.month import Month
from crawlers import mediawiki
from crawlers.contract import CrawlContext, Document, Drop, SourceInfo
from crawlers.mediawiki import MediaWiki, Revision, take

INFO = SourceInfo(
    name="wikipedia_monitored",
    title="English Wikipedia: monitored articles",
    licence="CC-BY-SA-4.0",
    language="en",
    category="encyclopedia",
    sites={mediawiki.SITE: mediawiki.BASE_URL},
    request_interval_s=1.0,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
)
TITLES_FILE = Path(__file__).with_name("wikipedia_titles.txt")


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Document | Drop]:
    """Yield the month-end version of every monitored page, in the order of the titles.

    Raises:
        SourceUnavailable, AccessRefused, SourceChanged: see ``MediaWiki``.
    """
    wiki = MediaWiki(context.fetcher)
    titles = _read_titles()
    pages: dict[int, str] = {}
    for title, found in _resolve(wiki, titles).items():
        if found is None:
            yield Drop(title, "deleted", "no page of this title")
        elif found[0] in pages:
            yield Drop(title, "exact_dup", f"the same page as {pages[found[0]]!r}")
        else:
            pages[found[0]] = found[1]
    chosen = _sample(list(pages), context)
    revisions: dict[int, Revision] = {}
    for page_id in pages:
        if page_id not in chosen:
            yield Drop(str(page_id), "sample_cap")
        elif revision := _month_end_revision(wiki, page_id, month):
            revisions[page_id] = revision
        else:
            yield Drop(str(page_id), "not_yet_created", pages[page_id])
    texts = wiki.texts([revision.revision_id for revision in revisions.values()])
    for page_id, revision in revisions.items():
        if version := texts.get(revision.revision_id):
            yield _version(page_id, pages[page_id], version, month)
        else:
            yield Drop(str(page_id), "deleted", f"revision {revision.revision_id} is gone")


def _read_titles() -> list[str]:
    lines = TITLES_FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in map(str.strip, lines) if line and not line.startswith("#")]


def _sample(page_ids: Sequence[int], context: CrawlContext) -> set[int]:
    """Choose by a hash of seed and page, so that one page more does not change all the others."""
    ranked = sorted(page_ids, key=lambda i: hashlib.sha256(f"{context.seed}|{i}".encode()).digest())
    return set(ranked[: context.limit])


def _resolve(wiki: MediaWiki, titles: Sequence[str]) -> dict[str, tuple[int, str] | None]:
    """Return id and today's title of each title's page, redirects followed; None if missing."""
    target: dict[str, str] = {}
    pages: dict[str, tuple[int, str] | None] = {}
    for batch in mediawiki.batches(titles, mediawiki.BATCH):
        params: Mapping[str, str | int] = {"titles": mediawiki.join(batch), "redirects": 1}
        for piece, _ in wiki.query(prop="info", **params):
            for kind in ("normalized", "redirects"):
                rows = mediawiki.rows_of(piece, kind)
                target |= {take(row, "from", str): take(row, "to", str) for row in rows}
            for page in mediawiki.rows_of(piece, "pages"):
                title = take(page, "title", str)
                is_gone = page.get("missing") or page.get("invalid")
                pages[title] = None if is_gone else (take(page, "pageid", int), title)
    return {title: pages.get(_follow(title, target)) for title in titles}


def _follow(title: str, target: Mapping[str, str]) -> str:
    passed = {title}
    while (following := target.get(title)) is not None and following not in passed:
        passed.add(following)
        title = following
    return title


def _month_end_revision(wiki: MediaWiki, page_id: int, month: Month) -> Revision | None:
    """Return the last revision before the month's end; None where the page was not yet created."""
    january = Month(f"{month.first_day.year}-01")
    last = min(january + 11, max(month, Month.last_complete()))
    start, end = mediawiki.month_window(january)[0], mediawiki.month_window(last)[1]
    year = wiki.history(page_id, rvdir="newer", rvlimit="max", rvstart=start, rvend=end)
    ready = [revision for revision in year if revision.timestamp < month.end]
    if ready:
        return max(ready, key=lambda revision: (revision.timestamp, revision.revision_id))
    return wiki.last_revision_before(page_id, january.start)


def _version(page_id: int, title: str, revision: Revision, month: Month) -> Document | Drop:
    is_new = revision.timestamp in month
    return mediawiki.document(
        page_id,
        title,
        revision,
        event_time=revision.timestamp if is_new else month.start,
        date_kind="revised",
        extra={"is_new_this_month": is_new},
    )
