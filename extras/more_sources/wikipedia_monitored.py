"""Well-known articles of Wikipedia, each month as of the month's end.

``wikipedia_titles.txt`` lists the titles. The first crawl resolves each title to a page id and
stores it in PAGES_FILE, since a title may later name another page. Later runs resolve only new
titles. The text is the last revision before the month's end. If a page was not edited in the month,
this revision is older. Then ``event_time`` is the month's first instant, and ``text_as_of`` is the
time of the revision. ``extra.is_new_this_month`` is false, so that a database view can exclude the
document. A page that did not exist before the month's end is dropped as ``not_yet_created``. A
deleted page, or a title without a page, is dropped as ``deleted``. A merged page is dropped as
``redirect_page``. To save requests, revisions of a page are listed by calendar year: the crawls of
twelve months share the cached list.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import ItemFailed, MalformedInput
from core.month import Month
from core.storage.store import Store
from crawlers.apis import mediawiki, wiki_documents
from crawlers.apis.mediawiki import MediaWiki, Piece, Revision, list_rows, take
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

INFO = SourceInfo(
    name="wikipedia_monitored",
    title="Wikipedia: monitored articles",
    licence="CC-BY-SA-4.0",
    language="en",
    category="encyclopedia",
    sites={mediawiki.SITE: mediawiki.BASE_URL},
    language_sites=mediawiki.LANGUAGE_SITES,
    shares_pace=mediawiki.PACE,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    needs_contact=mediawiki.NEEDS_CONTACT,
    keeps_versions=True,
    whole_months="its texts are those at the ends of months",
)
TITLES_FILE = Path(__file__).with_name("wikipedia_titles.txt")
PAGES_FILE = "sources/wikipedia_monitored/pages.json"  # path in the data folder (home)


@dataclass(frozen=True)
class KeptPage:
    """The page to which a title was resolved."""

    title: str  # English title, as in ``wikipedia_titles.txt``
    language: str  # language of the wiki that has the page
    page_id: int  # page id in that wiki
    page_title: str  # title in that wiki, after redirects
    resolved_at: str  # time at which the title was resolved; ISO 8601, UTC


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the month-end version of every monitored page, in the order of the titles."""
    english = MediaWiki(context.fetcher)
    for wiki, share in wiki_documents.editions(INFO, context):
        yield from _fetch_edition(wiki, english, month, share)


def _fetch_edition(
    wiki: MediaWiki, english: MediaWiki, month: Month, context: CrawlContext
) -> Iterator[Item]:
    """Yield the listed articles of one edition, as they were at the month's end."""
    edition = wiki.edition
    store = Store(context.settings.home)
    pages: dict[int, KeptPage] = {}
    found = resolve(wiki, english, _read_titles(), store)
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
    """Yield several pages as they were at the month's end."""
    listed = {page.page_id: _month_end_revision(wiki, page, month) for page in pages}
    found = wiki.add_texts(listed)
    for page in pages:
        item = found[page.page_id]
        yield _version(wiki, page, item, month) if isinstance(item, Revision) else item


def _month_end_revision(wiki: MediaWiki, page: KeptPage, month: Month) -> Revision | Drop | Failure:
    """Return the last revision of a page before a month's end, or why there is none."""
    native_id = wiki.edition.native_id(page.page_id)
    january = Month(f"{month.first_day.year}-01")
    last = min(january + 11, max(month, Month.last_complete()))
    start = mediawiki.month_window(january)[0]
    end = mediawiki.month_window(last)[1]
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
    """Return a revision as a document; one from before the month has the month's date."""
    is_new = revision.timestamp in month
    return wiki_documents.document(
        wiki.edition,
        page.page_title,
        revision,
        event_time=revision.timestamp if is_new else month.start,
        date_kind="revised",
        extra={"is_new_this_month": is_new},
    )


def resolve(
    wiki: MediaWiki, english: MediaWiki, titles: Sequence[str], store: Store
) -> dict[str, KeptPage | None]:
    """Return the page in ``wiki`` of each English title; PAGES_FILE stores pages found before."""
    language = wiki.edition.language
    known = _read_pages(store)
    missing = [title for title in titles if (language, title) not in known]
    if missing:
        found = _ask(wiki, english, missing)
        # The file is read again, to keep entries that a concurrent crawl of another month added.
        known = {**{(page.language, page.title): page for page in found}, **_read_pages(store)}
        if found:
            rows = [dataclasses.asdict(known[key]) for key in sorted(known)]
            text = json.dumps({"pages": rows}, ensure_ascii=False, indent=1) + "\n"
            store.write_bytes(PAGES_FILE, text.encode(errors="backslashreplace"))
    return {title: known.get((language, title)) for title in titles}


def _read_pages(store: Store) -> dict[tuple[str, str], KeptPage]:
    """Return the pages found for titles by former crawls, by language and title."""
    if not store.exists(PAGES_FILE):
        return {}
    try:
        pages = [KeptPage(**row) for row in json.loads(store.read_bytes(PAGES_FILE))["pages"]]
        names = [name for page in pages for name in (page.language, page.title, page.page_title)]
        if not all(isinstance(name, str) for name in names):
            raise ValueError("a language or title is no text")
        if not all(isinstance(page.page_id, int) for page in pages):
            raise ValueError("a page_id is no number")
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedInput(
            f"{store.url(PAGES_FILE)} is not the list of pages that a crawl wrote ({error}); "
            "bring it back from a backup, or move it out of the data root to have the titles "
            "looked up again"
        ) from error
    return {(page.language, page.title): page for page in pages}


def _ask(wiki: MediaWiki, english: MediaWiki, titles: Sequence[str]) -> Iterable[KeptPage]:
    """Return the pages of English titles in an edition, those that exist."""
    local = {title: title for title in titles}
    if wiki.edition != english.edition:
        local = _titles_in(english, titles, wiki.edition.language)
    pages, asked_at = _look_up(wiki, list(local.values()))
    resolved_at = asked_at.isoformat(timespec="seconds")
    return [
        KeptPage(title, wiki.edition.language, *page, resolved_at)
        for title, name in local.items()
        if (page := pages[name])
    ]


def _titles_in(english: MediaWiki, titles: Sequence[str], language: str) -> dict[str, str]:
    """Return the titles in another language of English titles, those that have one."""
    target: dict[str, str] = {}
    names: dict[str, str] = {}
    links = {"prop": "langlinks", "lllang": language, "lllimit": "max"}
    for piece, _ in _query_titles(english, titles, **links):
        target |= _renamings(piece)
        for page in list_rows(piece, "pages"):
            for link in list_rows(page, "langlinks"):
                names[take(page, "title", str)] = take(link, "title", str)
    return {title: names[end] for title in titles if (end := _follow(title, target)) in names}


def _look_up(
    wiki: MediaWiki, titles: Sequence[str]
) -> tuple[dict[str, tuple[int, str] | None], dt.datetime]:
    """Return page id and final title (after redirects) by title, and the time of the response."""
    target: dict[str, str] = {}
    pages: dict[str, tuple[int, str] | None] = {}
    asked_at = dt.datetime.now(dt.UTC)
    for piece, responded_at in _query_titles(wiki, titles, prop="info"):
        asked_at = responded_at
        target |= _renamings(piece)
        for page in list_rows(piece, "pages"):
            title = take(page, "title", str)
            is_gone = page.get("missing") or page.get("invalid")
            pages[title] = None if is_gone else (take(page, "pageid", int), title)
    return {title: pages.get(_follow(title, target)) for title in titles}, asked_at


def _query_titles(wiki: MediaWiki, titles: Sequence[str], **params: str) -> Iterator[Piece]:
    for batch in mediawiki.batches(titles, mediawiki.BATCH):
        yield from wiki.query(titles=mediawiki.join(batch), redirects=1, **params)


def _renamings(piece: Mapping[str, object]) -> dict[str, str]:
    rows = [*list_rows(piece, "normalized"), *list_rows(piece, "redirects")]
    return {take(row, "from", str): take(row, "to", str) for row in rows}


def _follow(title: str, target: Mapping[str, str]) -> str:
    """Return the title that a chain of redirects ends at."""
    passed = {title}
    while (following := target.get(title)) is not None and following not in passed:
        passed.add(following)
        title = following
    return title
