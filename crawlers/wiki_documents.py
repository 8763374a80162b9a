"""From the pages of a wiki to the items of a crawl: editions, samples, documents."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from core.errors import ItemUnavailable
from crawlers import wikitext
from crawlers.contract import CrawlContext, Document, Drop, DropReason, Item, SourceInfo
from crawlers.mediawiki import BATCH, SITE, Edition, Revision, unexpected

CC_BY_SA_4_SINCE = dt.datetime(2023, 6, 7, tzinfo=dt.UTC)  # licence of what was written from then

T = TypeVar("T")


def editions(
    info: SourceInfo, context: CrawlContext, site: str = SITE
) -> Iterator[tuple[Edition, CrawlContext]]:
    """Yield the wikis to crawl, each with its equal share of what is to be kept."""
    languages = context.languages or (info.language,)
    for number, language in enumerate(languages):
        share = dataclasses.replace(
            context,
            limit=_share(context.limit, number, len(languages)),
            max_bytes=_share(context.max_bytes, number, len(languages)),
        )
        is_home = language == info.language
        yield Edition(language, info.site_key(site, language), site, is_home), share


def _share(whole: int | None, number: int, num_shares: int) -> int | None:
    """Return the share of one of several; the shares add up to the whole."""
    if whole is None:
        return None
    return whole // num_shares + (number < whole % num_shares)


def take_sample(
    context: CrawlContext,
    candidates: Sequence[T],
    native_id: Callable[[T], str],
    fetch: Callable[[Sequence[T]], Iterable[Item]],
) -> Iterator[Item]:
    """Yield what becomes of the candidates, fetched in batches, until enough is kept.

    Args:
        context: of the crawl; where it asks for a part, the candidates come in the order of their
            ranks, and those that are not wanted are dropped as ``sample_cap``, unasked.
        candidates: in the site's order.
        native_id: of a candidate.
        fetch: yields one item for each of up to BATCH candidates.
    """
    if context.is_sampled:
        candidates = sorted(candidates, key=lambda each: context.rank(native_id(each)))
    quota = context.quota()
    start = num_kept = 0
    while start < len(candidates) and not quota.is_full:
        left = BATCH if context.limit is None else context.limit - num_kept
        batch = candidates[start : start + min(BATCH, left)]
        start += len(batch)
        for item in fetch(batch):
            if isinstance(item, Document) and quota.is_full:
                yield Drop(item.native_id, "sample_cap")
            elif isinstance(item, Document):
                num_kept += 1
                yield quota.take(item)
            else:
                yield item
    for each in candidates[start:]:
        yield Drop(native_id(each), "sample_cap")


def document(edition: Edition, title: str, revision: Revision, **fields: Any) -> Document | Drop:
    """Return a revision as a document, or why it is none.

    Args:
        edition: the wiki.
        title: of the page.
        revision: with its text, and the page's id, which stays the same when a page is moved.
        fields: ``event_time``, ``date_kind`` and more of the document; ``licence`` and
            ``shown_templates`` (see ``wikitext.to_text``) where they are not Wikipedia's.
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
