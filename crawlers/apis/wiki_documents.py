"""Conversion of wiki pages in one or several languages to crawl items, with sampling."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from core.errors import ItemFailed, ItemUnavailable
from core.json import JsonObject
from core.month import Period
from crawlers.apis.mediawiki import (
    BATCH,
    SITE,
    Edition,
    MediaWiki,
    Revision,
    join,
    take,
    unexpected,
)
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    DropReason,
    Failure,
    Item,
    SourceInfo,
    missing_item,
)
from crawlers.text import wikitext

CC_BY_SA_4_SINCE = dt.datetime(2023, 6, 7, tzinfo=dt.UTC)  # texts are under CC BY-SA 4.0 since then

T = TypeVar("T")
Version = tuple[str, Revision] | Drop | Failure  # title and revision, or why there are none


def editions(
    info: SourceInfo, context: CrawlContext, site: str = SITE
) -> Iterator[tuple[MediaWiki, CrawlContext]]:
    """Yield a client of each language's wiki, and a context with the wiki's share of the limits."""
    languages = context.languages or (info.language,)
    for number, language in enumerate(languages):
        share = dataclasses.replace(
            context,
            limit=_share(context.limit, number, len(languages)),
            max_bytes=_share(context.max_bytes, number, len(languages)),
        )
        is_home = language == info.language
        edition = Edition(language, info.site_key(site, language), site, is_home)
        yield MediaWiki(context.fetcher, edition), share


def _share(whole: int | None, number: int, num_shares: int) -> int | None:
    """Return share ``number`` (from 0) of ``num_shares`` equal shares that add up to ``whole``."""
    if whole is None:
        return None
    return whole // num_shares + (number < whole % num_shares)


class Sample:
    """A sample of pages within the crawl's limits of documents and bytes."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._quota = context.quota()
        self._num_kept = 0

    @property
    def is_full(self) -> bool:
        """True if the limit of documents or of bytes is reached."""
        return self._quota.is_full

    def take(
        self,
        candidates: Sequence[T],
        native_id: Callable[[T], str],
        fetch: Callable[[Sequence[T]], Iterable[Item]],
    ) -> Iterator[Item]:
        """Fetch candidates in batches, and yield their items until the limits are reached.

        With limits, candidates are taken in random order (``CrawlContext.rank``); candidates beyond
        the limits become drops (``sample_cap``). ``fetch`` yields an item for each candidate.
        """
        if self._context.is_sampled:
            candidates = sorted(candidates, key=lambda each: self._context.rank(native_id(each)))
        start = 0
        while start < len(candidates) and not self.is_full:
            limit = self._context.limit
            size = BATCH if limit is None else min(BATCH, limit - self._num_kept)
            batch = candidates[start : start + size]
            start += len(batch)
            yield from map(self._count, fetch(batch))
        for each in candidates[start:]:
            yield Drop(native_id(each), "sample_cap")

    def _count(self, item: Item) -> Item:
        """Count a document as kept; return a Drop in its place if the limits are reached."""
        if not isinstance(item, Document):
            return item
        if self.is_full:
            return Drop(item.native_id, "sample_cap")
        self._num_kept += 1
        return self._quota.take(item)


def sample_at_month_end(
    wiki: MediaWiki,
    month: Period,
    context: CrawlContext,
    dates: Mapping[int, dt.datetime],  # date of each page by page id, in the site's order
    make: Callable[[dt.datetime, str, Revision], Item],  # called with date, current title, revision
) -> Iterator[Item]:
    """Yield a sample of pages as of a month's end; ``make`` converts a page to an item."""

    def fetch(page_ids: Sequence[int]) -> Iterator[Item]:
        found = _at_month_end(wiki, page_ids, month)
        for page_id in page_ids:
            version = found[page_id]
            yield make(dates[page_id], *version) if isinstance(version, tuple) else version

    return Sample(context).take(list(dates), wiki.edition.native_id, fetch)


def _at_month_end(wiki: MediaWiki, page_ids: Sequence[int], month: Period) -> dict[int, Version]:
    """Return the last revision before a month's end of at most BATCH pages, by page id."""
    try:
        pages = wiki.pages(
            prop="info|pageprops|revisions",
            ppprop="disambiguation",
            rvprop="ids|timestamp",
            pageids=join(page_ids),
        )
    except ItemFailed as error:
        return {key: missing_item(wiki.edition.native_id(key), error) for key in page_ids}
    page_of = {page.get("pageid"): page for page in pages}
    found = wiki.add_texts(
        {key: _month_end_revision(wiki, key, page_of.get(key), month) for key in page_ids}
    )
    return {
        key: (take(page_of[key], "title", str), row) if isinstance(row, Revision) else row
        for key, row in found.items()
    }


def _month_end_revision(
    wiki: MediaWiki, page_id: int, page: JsonObject | None, month: Period
) -> Revision | Drop | Failure:
    """Return a page's last revision before the month's end, or why the page is not sampled."""
    native_id = wiki.edition.native_id(page_id)
    if page is None or page.get("missing"):
        return Drop(native_id, "deleted")
    namespace = take(page, "ns", int)
    if namespace != 0:
        detail = f"moved out of the articles, to namespace {namespace}"
        return Drop(native_id, "withdrawn", detail)
    if "disambiguation" in take(page, "pageprops", dict, default={}):
        return Drop(native_id, "disambiguation")
    # The query returns only the newest revision, which may be from after the month.
    latest: Revision | None = page["revisions"][0] if page["revisions"] else None
    if latest is None or latest.timestamp >= month.end:
        try:
            latest = wiki.last_revision_before(page_id, month.end)
        except ItemFailed as error:
            return missing_item(native_id, error)
    return latest or Drop(native_id, "deleted", "no revision of the month is left")


def document(edition: Edition, title: str, revision: Revision, **fields: Any) -> Document | Drop:
    """Convert a revision to a document, or to a drop if its text cannot be used.

    ``fields`` are further fields of the document, such as ``event_time``. ``licence`` and
    ``shown_templates`` (see ``wikitext.to_text``) default to Wikipedia's values.
    """
    page_id = revision.page_id
    native_id = edition.native_id(page_id)
    shown = fields.pop("shown_templates", frozenset())
    if revision.is_hidden:
        return Drop(native_id, "suppressed", f"revision {revision.revision_id}")
    if revision.wikitext is None:
        raise unexpected(f"revision {revision.revision_id}", "its text", revision)
    if wikitext.is_redirect(revision.wikitext):
        return Drop(native_id, "redirect_page", title)
    try:
        text = wikitext.to_text(revision.wikitext, edition.language, shown)
    except ItemUnavailable as error:
        return Drop(native_id, cast(DropReason, error.reason), str(error))
    index = f"{edition.address}/w/index.php"
    version = "4.0" if revision.timestamp >= CC_BY_SA_4_SINCE else "3.0"
    contributors = f"{edition.project.capitalize()} contributors"
    return Document(
        native_id=native_id,
        version_id=str(revision.revision_id),
        cluster_id=f"page:{native_id}",
        language=edition.language,
        text=text,
        title=title,
        url=f"{index}?oldid={revision.revision_id}",
        text_as_of=revision.timestamp,
        retrieved_at=revision.retrieved_at,
        attribution=f"{contributors}, “{title}”: {index}?curid={page_id}&action=history",
        **{"licence": f"CC-BY-SA-{version}", **fields},
    )
