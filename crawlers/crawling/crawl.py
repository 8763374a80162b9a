"""Crawl one partition (a month of a source) and seal its documents."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any, TypeGuard

import pyarrow as pa

from core.corpus import simulated
from core.corpus.partition import Partition, Seal, read_seal, tables_of
from core.corpus.permissions import Permission, require_permission
from core.corpus.sealing import Description, seal_partition
from core.corpus.tombstones import is_forgotten, item_key, list_tombstones
from core.errors import EmptyPartition, ItemUnavailable, SourceError, SourceUnavailable, UsageError
from core.month import Period, require_complete
from core.schemas.tables import DocumentRow
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import (
    CrawlContext,
    Crawler,
    Document,
    Drop,
    Item,
    Medium,
    Repeat,
    SourceInfo,
)
from crawlers.crawling import manifest
from crawlers.crawling.checks import CrawlResult, find_reasons_to_hold
from crawlers.hygiene.pipeline import Hygiene, drop_repeated_pieces
from crawlers.pieces import PIECES, media_columns
from crawlers.registry import load_crawler
from crawlers.text.cleaning import MIN_CHARS, clean, normalise, refuse_length
from crawlers.web.fetcher import Fetcher
from crawlers.web.pacing import CircuitOpen, Turnstile

_log = logging.getLogger(__name__)


def crawl_partition(  # noqa: PLR0913 - every option of the command line
    source: str,
    month: Period,
    store: Store,
    settings: Settings,
    *,
    limit: int | None = None,  # approximate number of documents; None: sample ``monthly_bytes``
    seed: int = 0,
    replace: bool = False,  # request all pages again; seal changed text as the next version
    reparse: bool = False,  # like ``replace``, but use responses from the raw cache
    turnstile: Turnstile | None = None,  # shares the hosts' rate limits with other machines
) -> Seal:
    """Crawl, clean and seal one month of one source (a half-month or week, if it has those).

    A sealed, complete month is returned unchanged. A run after an interruption uses cached
    responses. A partial month is completed with its original seed and limits.

    Raises:
        FutureMonth: the month is not over. UnknownName: there is no such source. UsageError: the
        source does not offer this month, or a language of the settings. AccessRefused: the source
        needs a permission, and none is in force; nothing is requested. EmptyPartition: no document
        was kept; the message counts the reasons. PartitionHeld: a check in ``checks`` failed.
        Nothing is sealed; cached responses are kept. SourceError: the site failed or has changed;
        nothing is sealed.
    """
    crawler = load_crawler(source)
    partition = Partition(source, month)
    require_complete(month)
    seal = read_seal(store, partition)
    is_new_version = replace or reparse
    if seal is not None and not seal.is_partial and not is_new_version:
        return seal
    partial_seal = None if is_new_version else seal
    lack = crawler.INFO.lacks(month)
    if lack:
        if partial_seal is not None:
            return partial_seal
        raise UsageError(f"{source} {month}: {lack}")
    permission = require_permission(store, source, crawler.INFO.permission)
    languages = settings.languages.get(source, ())
    fetcher = crawler.INFO.open_fetcher(settings, languages, replace=replace, turnstile=turnstile)
    context = _context_of(crawler.INFO, fetcher, settings, partial_seal, limit=limit, seed=seed)
    crawl = _Crawl(crawler, month, context, store, partial_seal, permission)
    return crawl.seal(replace=seal is not None)


def _context_of(
    info: SourceInfo, fetcher: Fetcher, settings: Settings, begun: Seal | None, **sample: Any
) -> CrawlContext:
    """Return the crawler's context; completing a partial month reuses its seed and limits."""
    budget = settings.monthly_bytes.get(info.name, info.monthly_bytes or 0)
    sample["max_bytes"] = budget or None if sample["limit"] is None else None
    if begun is not None:
        sample = {name: begun.manifest.get(name) for name in sample}
    return CrawlContext(
        settings, fetcher, languages=settings.languages.get(info.name, ()), **sample
    )


class _Crawl:
    """A crawl of one partition: examines, cleans and counts its items, and seals the kept ones."""

    def __init__(
        self,
        crawler: Crawler,
        month: Period,
        context: CrawlContext,
        store: Store,
        begun: Seal | None,
        permission: Permission | None,
    ) -> None:
        self._crawler = crawler
        self._month = month
        self._context = context
        self._begun = begun
        self._store = store
        self._forgotten = list_tombstones(store)
        self._partition = Partition(crawler.INFO.name, month)
        self._ledger = manifest.Ledger(self._partition)
        self._sift = drop_repeated_pieces
        if crawler.INFO.content == "text":
            self._sift = Hygiene(self._partition, crawler.INFO, store, context.settings).sift
        self._seen: set[str] = set()  # native ids
        self._num_rows = 0  # rows passed to hygiene, which reads all rows before it yields one
        self._permission = permission
        self._started_at = manifest.now()

    def seal(self, replace: bool) -> Seal:
        """Seal the month; if the site fails, return the seal of an earlier partial crawl."""
        try:
            with closing(self._contents()) as contents:
                return seal_partition(self._store, self._partition, contents, replace=replace)
        except EmptyPartition:
            self._context.fetcher.forget(last_only=False)
            raise
        except SourceUnavailable as error:
            if self._begun is None:
                raise
            _log.info("%s stays partial: %s", self._partition, error)
            return self._begun

    def _contents(self) -> Generator[pa.Table | Description]:
        """Yield the kept documents, then their description.

        Raises:
            EmptyPartition: no document was kept.
            SourceUnavailable: the site failed, and the existing seal has as many documents or more.
        """
        num_bytes = 0
        with closing(self._sift(map(self._examine, self._items()))) as outcomes:
            for item in tables_of(filter(self._is_sealed, outcomes), self._partition):
                if isinstance(item, Description):
                    yield self._describe_and_check(item, num_bytes)
                else:
                    num_bytes += sum(item["num_bytes"].to_pylist())
                    yield item

    def _is_sealed(
        self, item: manifest.Outcome | Description
    ) -> TypeGuard[DocumentRow | Description]:
        """Count an outcome; return True for a kept document, and for the description."""
        return isinstance(item, Description) or self._ledger.keeps(item)

    def _describe_and_check(self, found: Description, num_bytes: int) -> Description:
        """Return the manifest, the dropped items, and the reasons to hold the month back."""
        described = self._describe(found.manifest)
        self._require_gain(is_partial=described["status"] == "partial")
        crawled = CrawlResult(self._ledger.kept, num_bytes, described)
        reasons = find_reasons_to_hold(self._store, self._partition, crawled)
        files = {**found.files, manifest.DROPPED_FILE: self._ledger.dropped_items()}
        return Description(described, files, reasons)

    def _describe(self, hygiene: Mapping[str, object]) -> dict[str, object]:
        """Return the manifest: the crawl's settings, the facts of ``hygiene``, the item counts."""
        context = self._context
        fetcher = self._context.fetcher
        change = self._crawler.INFO.regime_of(self._month)
        is_text = self._crawler.INFO.content == "text"
        return {
            **({"permission": self._permission.describe()} if self._permission else {}),
            "kind": "crawl",
            "regime": manifest.cleaned_regime(change) if is_text else change or PIECES,
            "code_version": manifest.code_version(),
            "window": {"start": self._month.start.isoformat(), "end": self._month.end.isoformat()},
            "started_at": self._started_at,
            "ended_at": manifest.now(),
            "limit": context.limit,
            "seed": context.seed,
            "max_bytes": context.max_bytes,
            "languages": context.languages or (self._crawler.INFO.language,),
            **(self._text_limits() if is_text else {}),
            "base_urls": {key: fetcher.base_url(key) for key in self._crawler.INFO.sites},
            "user_agent": fetcher.user_agent,
            "requests": dict(fetcher.stats),
            **hygiene,
            **self._ledger.close(),
        }

    def _text_limits(self) -> dict[str, object]:
        max_bytes = self._context.settings.max_document_bytes
        return {"min_chars": MIN_CHARS, "max_document_bytes": max_bytes}

    def _require_gain(self, is_partial: bool) -> None:
        """Raise SourceUnavailable if a partial month would have no more documents than before."""
        begun = self._begun
        kept = self._ledger.kept
        if begun and is_partial and kept <= begun.num_documents:
            raise SourceUnavailable(f"{kept} documents were found, {begun.num_documents} before")

    def _items(self) -> Iterator[Item]:
        """Yield the requested items; if the site fails after some of them, record why and stop."""
        num_items = 0
        try:
            for item in self._requested():
                num_items += 1
                yield item
        except SourceError as error:
            # The last response may be an error with status 200; it must not stay in the cache.
            self._context.fetcher.forget(last_only=True)
            # If the fetcher gave up, failed items alone are no reason to seal a partial month.
            has_some = num_items and (self._num_rows or not isinstance(error, CircuitOpen))
            if not isinstance(error, SourceUnavailable) or not has_some:
                raise
            self._ledger.ended_early = str(error)

    def _requested(self) -> Iterator[Item]:
        """Yield the crawler's items; raise SourceUnavailable if the site lacks a list of items."""
        try:
            yield from self._crawler.fetch_month(self._month, self._context)
        except ItemUnavailable as error:
            raise SourceUnavailable(f"{self._partition}: {error}") from error

    def _examine(self, item: Item) -> manifest.Outcome:
        """Return the row of an item to keep, or the Drop, Failure or Repeat that stands for it."""
        source = self._partition.source
        version_id = getattr(item, "version_id", None)
        file = item.cluster_id if isinstance(item, Medium) else None
        for name in filter(None, (item.native_id, file)):
            if is_forgotten(self._forgotten, source, name, version_id):
                return Drop(item_key(source, item.native_id), "forgotten")
        if isinstance(item, Repeat):  # not added to ``_seen``, since the item itself may follow
            return item
        if item.native_id in self._seen:
            return Repeat(item.native_id, "came before")
        self._seen.add(item.native_id)
        if not isinstance(item, Document | Medium):
            return item
        if self._month.of(item.event_time) != self._month:
            return Drop(item.native_id, "outside_month", item.event_time.isoformat())
        row = _row(item, self._crawler.INFO)
        if self._context.fetcher.is_simulated():
            row["licence"] = simulated.LICENCE
            row["attribution"] = simulated.ATTRIBUTION
        if isinstance(item, Medium):
            self._num_rows += 1
            return row
        max_bytes = self._context.settings.max_document_bytes
        refusal = refuse_length(row["text"], max_bytes, MIN_CHARS)
        if refusal:
            return Drop(item.native_id, *refusal)
        self._num_rows += 1
        return row


def _row(item: Document | Medium, info: SourceInfo) -> DocumentRow:
    """Return the columns of an item; texts are normalised, and gaps filled from its source."""
    language = item.language or info.language if isinstance(item, Document) else None
    return {
        "native_id": item.native_id,
        "version_id": item.version_id,
        "cluster_id": item.cluster_id,
        "event_time": item.event_time,
        "date_kind": item.date_kind,
        "text_as_of": item.text_as_of,
        "retrieved_at": item.retrieved_at,
        "url": normalise(item.url),
        "title": normalise(item.title),
        "category": item.category or info.category,
        "language": language,
        "licence": item.licence.strip() or info.licence.strip() or "LicenseRef-unknown",
        "attribution": normalise(item.attribution),
        "extra": json.dumps(item.extra, sort_keys=True) if item.extra else None,
        **_content(item, language or ""),
    }


def _content(item: Document | Medium, language: str) -> DocumentRow:
    if isinstance(item, Medium):
        return media_columns(item.kind, item.data)
    return {"text": clean(item.text, language.startswith("code:"), item.is_plain)}
