"""Articles that were changed in the month, as they were right after the change.

The English Wikipedia has millions of edits a month, and its API returns no random sample. So the
month is cut at random (seeded) times into ``NUM_WINDOWS`` windows, which are read in random order.
Of each window, the first ``ROWS_OF_WINDOW`` revisions are read
(https://www.mediawiki.org/wiki/API:Allrevisions), until enough text is kept. If a page is found
again, only the first edit found is kept. Frequently edited pages are found more often. A small wiki
has fewer revisions, so all edits of the month are read. A crawl without a size limit
(``TIDEMARK_MONTHLY_BYTES__WIKIPEDIA_CHANGES=0``) reads the whole month in chronological order.
Edits marked as minor (most bot edits) and page creations (see ``wikipedia_new``) are left out. The
text is that right after the edit, so ``event_time`` equals ``text_as_of``. ``list=recentchanges``
is not used: it covers only 30 days, so it never covers a whole past month.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.errors import ItemFailed
from core.json import JsonObject
from core.month import Period
from crawlers.apis import mediawiki, wiki_documents
from crawlers.apis.mediawiki import MediaWiki, Revision, take
from crawlers.contract import CrawlContext, Document, Drop, Item, Repeat, SourceInfo, missing_item

INFO = SourceInfo(
    name="wikipedia_changes",
    title="Wikipedia: latest changes",
    licence="CC-BY-SA-4.0",
    language="en",
    category="encyclopedia",
    sites={mediawiki.SITE: mediawiki.BASE_URL},
    language_sites=mediawiki.LANGUAGE_SITES,
    shares_pace=mediawiki.PACE,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    needs_contact=mediawiki.NEEDS_CONTACT,
    monthly_bytes=23_000_000,  # bytes of text per month in Li et al. 2024, table 1
    whole_months=None,
)
# The API limits a window's rows before it filters by namespace. So of 50 rows, some 25 are edits of
# articles. All windows together have twice the 23 MB needed.
NUM_WINDOWS = 240
ROWS_OF_WINDOW = mediawiki.BATCH

_SECOND = dt.timedelta(seconds=1)


@dataclass(frozen=True)
class Edit:
    """A revision of an article that is not its first revision."""

    page_id: int
    revision_id: int
    timestamp: dt.datetime


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield articles that were changed in the month, each as of one edit."""
    for wiki, share in wiki_documents.editions(INFO, context):
        yield from _fetch_edition(wiki, month, share)


def _fetch_edition(wiki: MediaWiki, month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield pages that were edited in a month; a sample takes random windows."""
    sample = wiki_documents.Sample(context)
    seen: set[int] = set()
    windows = _draw_windows(month, context) if context.is_sampled else [(month.start, month.end)]
    for window in windows:
        if sample.is_full:
            return
        edits: list[Edit] = []
        for edit in _list_edits(wiki, window, month, is_part=context.is_sampled):
            if edit.page_id in seen:
                yield Repeat(wiki.edition.native_id(edit.page_id), f"{edit.revision_id}")
            else:
                seen.add(edit.page_id)
                edits.append(edit)
        yield from sample.take(
            edits,
            lambda edit: wiki.edition.native_id(edit.page_id),
            lambda batch: _fetch_batch(wiki, batch),
        )


def _draw_windows(month: Period, context: CrawlContext) -> list[tuple[dt.datetime, dt.datetime]]:
    """Return the month in windows with random ends, in random order."""
    step = (month.end - month.start) / NUM_WINDOWS
    cuts = [month.start]
    for number in range(1, NUM_WINDOWS):
        drawn = int.from_bytes(context.rank(f"{month}/cut/{number}")[:8]) / 2**64
        cuts.append((month.start + (number + drawn - 0.5) * step).replace(microsecond=0))
    pairs = zip(cuts, [*cuts[1:], month.end], strict=True)
    windows = [(start, end) for start, end in pairs if start < end]
    return sorted(windows, key=lambda window: context.rank(f"window/{window[0].isoformat()}"))


def _list_edits(
    wiki: MediaWiki, window: tuple[dt.datetime, dt.datetime], month: Period, is_part: bool
) -> list[Edit]:
    """Return the edits of a window by time; if ``is_part``, read only the first response."""
    edits: list[Edit] = []
    pieces = wiki.query(
        list="allrevisions",
        arvnamespace=0,
        arvdir="newer",
        arvstart=mediawiki.stamp(window[0]),
        arvend=mediawiki.stamp(window[1] - _SECOND),
        arvlimit=ROWS_OF_WINDOW if is_part else "max",
        arvprop="ids|timestamp|flags",
    )
    for piece, _ in pieces:
        pages = mediawiki.list_rows(piece, "allrevisions")
        rows = [edit for page in pages for edit in _edits_of(page)]
        edits += [edit for edit in rows if edit.timestamp in month]
        if is_part and pages:
            break
    return edits


def _edits_of(page: JsonObject) -> Iterator[Edit]:
    """Yield the edits of a page, without its creation and minor ones."""
    page_id = take(page, "pageid", int)
    for row in mediawiki.list_rows(page, "revisions"):
        is_first = take(row, "parentid", int, default=-1) == 0
        if not is_first and not row.get("minor"):
            yield Edit(page_id, take(row, "revid", int), mediawiki.read_time(row))


def _fetch_batch(wiki: MediaWiki, edits: Sequence[Edit]) -> Iterator[Item]:
    """Yield the revisions of several edits, asked for at once."""
    try:
        pages = wiki.pages(
            prop="info|pageprops|revisions",
            ppprop="disambiguation",
            rvprop="ids|timestamp|content",
            rvslots="main",
            revids=mediawiki.join([edit.revision_id for edit in edits]),
        )
    except ItemFailed as error:
        for edit in edits:
            yield missing_item(wiki.edition.native_id(edit.page_id), error)
        return
    found: dict[int, tuple[JsonObject, Revision]] = {}
    for page in pages:
        found |= {revision.revision_id: (page, revision) for revision in page["revisions"]}
    for edit in edits:
        native_id = wiki.edition.native_id(edit.page_id)
        if edit.revision_id not in found:
            yield Drop(native_id, "deleted", f"revision {edit.revision_id} is gone")
            continue
        page, revision = found[edit.revision_id]
        if "disambiguation" in take(page, "pageprops", dict, default={}):
            yield Drop(native_id, "disambiguation")
        else:
            yield _version(wiki, take(page, "title", str), revision)


def _version(wiki: MediaWiki, title: str, revision: Revision) -> Document | Drop:
    dates = {"event_time": revision.timestamp, "date_kind": "revised"}
    return wiki_documents.document(wiki.edition, title, revision, **dates)
