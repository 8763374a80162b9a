"""Crawling one partition: from a source's month to sealed documents."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa

from core.corpus import Partition, Seal, read_seal, tables_of
from core.errors import EmptyPartition, SourceError, SourceUnavailable, UsageError
from core.month import Month, require_complete
from core.permissions import Permission, require_permission
from core.sealing import HELD_BECAUSE, seal_partition
from core.settings import Settings
from core.storage import Store
from core.tombstones import is_forgotten, item_key, list_tombstones
from crawlers import manifest
from crawlers.circuit import CircuitOpen
from crawlers.cleaning import MIN_CHARS, Gate, clean, normalise
from crawlers.contract import (
    CrawlContext,
    Crawler,
    Document,
    Drop,
    Item,
    Repeat,
    SourceInfo,
    load_crawler,
)
from crawlers.http import Fetcher
from crawlers.hygiene.pipeline import Hygiene
from crawlers.pacing import Turnstile
from crawlers.sealing_checks import Crawled, find_reasons_to_hold

_log = logging.getLogger(__name__)


def crawl_partition(  # noqa: PLR0913 - every choice that the command line offers
    source: str,
    month: Month,
    store: Store,
    settings: Settings,
    *,
    limit: int | None = None,
    seed: int = 0,
    replace: bool = False,
    reparse: bool = False,
    turnstile: Turnstile | None = None,
) -> Seal:
    """Crawl, clean and seal one month of one source.

    What is sealed already is returned as it is, without any request. A run that was stopped
    half-way has sealed nothing; the next one takes from the raw cache what was fetched before. A
    partial month is completed in the same way, with the sample that it was begun with; where
    nothing more can be had, it stays as it is.

    Args:
        source: name of a crawler.
        month: a month that is over.
        store: the data root.
        settings: base URLs, pace, cache folder, the longest document.
        limit: keep about this many documents, sampled with ``seed``; None keeps all.
        seed: of the sample.
        replace: ask for everything anew, and seal what differs as the next version.
        reparse: likewise, from the raw cache as far as it goes.
        turnstile: to share the pace of hosts with other machines.

    Raises:
        FutureMonth: the month is not over.
        UnknownName: there is no such source.
        UsageError: the source does not have this month, or is not in a language of the settings.
        AccessRefused: the source needs a permission, and none is in force; nothing is asked for.
        EmptyPartition: nothing was kept; the message counts the reasons.
        PartitionHeld: a check failed (``sealing_checks``); nothing is sealed, nor fetched in vain.
        SourceError: the site failed or has changed; nothing is sealed.
    """
    crawler = load_crawler(source)
    require_complete(month)
    partition = Partition(source, month)
    seal, is_again = read_seal(store, partition), replace or reparse
    if seal is not None and not seal.is_partial and not is_again:
        return seal
    begun = None if is_again else seal
    info, languages = crawler.INFO, settings.languages.get(source, ())
    if lack := info.lacks(month):
        if begun is not None:
            return begun
        raise UsageError(f"{source} {month}: {lack}")
    permission = require_permission(store, source, info.permission)
    fetcher = Fetcher(
        settings,
        info.all_sites(languages),
        info.request_interval_s,
        info.redirect_hosts,
        robots_exempt_paths=info.robots_exempt_paths,
        revalidates=replace,
        shares_pace=info.shares_pace,
        turnstile=turnstile,
    )
    budget = settings.monthly_bytes.get(source, info.monthly_bytes or 0) if limit is None else 0
    context = CrawlContext(settings, fetcher, limit, seed, budget or None, languages)
    if begun is not None:
        sample: Any = {name: begun.manifest.get(name) for name in ("limit", "seed", "max_bytes")}
        context = dataclasses.replace(context, **sample)
    crawl = _Crawl(crawler, month, context, store, begun, permission)
    try:
        with closing(crawl.tables()) as tables:
            return seal_partition(
                store, partition, tables, crawl.describe, seal is not None, crawl.beside
            )
    except EmptyPartition:
        fetcher.forget(last_only=False)
        raise
    except SourceUnavailable as error:
        if begun is None:
            raise
        _log.info("%s stays partial: %s", partition, error)
        return begun


class _Crawl:
    """One run: its tables, and what the manifest says of it once they are used up."""

    def __init__(
        self,
        crawler: Crawler,
        month: Month,
        context: CrawlContext,
        store: Store,
        begun: Seal | None,
        permission: Permission | None,
    ) -> None:
        self._crawler, self._month, self._context, self._begun = crawler, month, context, begun
        self._store, self._forgotten = store, list_tombstones(store)
        self._partition = Partition(crawler.INFO.name, month)
        self._ledger = manifest.Ledger(self._partition)
        # Which of several same texts stays is known when all are there.
        self._gate = Gate(MIN_CHARS, context.settings.max_document_bytes, keeps_duplicates=True)
        self._hygiene = Hygiene(self._partition, crawler.INFO, store, context.settings)
        self._seen: set[str] = set()  # native ids
        self._num_rows = 0  # before hygiene, which holds back what it gives until all are there
        self.describe: dict[str, object] = {}
        if permission is not None:
            self.describe["permission"] = permission.describe()
        self.beside: dict[str, bytes] = {}

    def tables(self) -> Generator[pa.Table]:
        started_at = manifest.now()
        outcomes = self._hygiene.sift(map(self._examine, self._items()))
        num_bytes = 0
        with closing(outcomes):
            for table in tables_of(self._ledger.sift(outcomes), self._partition):
                num_bytes += sum(table["num_bytes"].to_pylist())
                yield table
        fetcher = self._context.fetcher
        self.describe.update(
            kind="crawl",
            code_version=manifest.code_version(),
            window={"start": self._month.start.isoformat(), "end": self._month.end.isoformat()},
            started_at=started_at,
            ended_at=manifest.now(),
            limit=self._context.limit,
            seed=self._context.seed,
            max_bytes=self._context.max_bytes,
            languages=self._context.languages or (self._crawler.INFO.language,),
            min_chars=MIN_CHARS,
            max_document_bytes=self._context.settings.max_document_bytes,
            base_urls={key: fetcher.base_url(key) for key in self._crawler.INFO.sites},
            user_agent=fetcher.user_agent,
            requests=dict(fetcher.stats),
            **self._hygiene.describe,
            **self._ledger.close(),
        )
        crawled = Crawled(self._ledger.kept, num_bytes, self.describe)
        self.describe[HELD_BECAUSE] = find_reasons_to_hold(
            self._store, self._partition, self._crawler.INFO, crawled
        )
        self.beside.update(self._hygiene.beside)
        self.beside[manifest.DROPPED_FILE] = self._ledger.dropped_items()
        self._require_gain()

    def _require_gain(self) -> None:
        """Keep a partial month rather than seal another that has no more."""
        begun, kept = self._begun, self._ledger.kept
        if begun and self.describe["status"] == "partial" and kept <= begun.num_documents:
            raise SourceUnavailable(f"{kept} documents could be had, {begun.num_documents} before")

    def _items(self) -> Iterator[Item]:
        """Yield what the crawler finds; a site that gives out ends the month, but loses nothing."""
        num_items = 0
        try:
            for item in self._crawler.fetch_month(self._month, self._context):
                num_items += 1
                yield item
        except SourceError as error:
            # What a site said in error under status 200 must not be read again by the next run.
            self._context.fetcher.forget(last_only=True)
            has_some = num_items and (self._num_rows or not isinstance(error, CircuitOpen))
            if not isinstance(error, SourceUnavailable) or not has_some:
                raise
            self._ledger.ended_early = str(error)

    def _examine(self, item: Item) -> manifest.Outcome:
        """Return the row of a document, or why it has none."""
        source, version_id = self._partition.source, getattr(item, "version_id", None)
        if is_forgotten(self._forgotten, source, item.native_id, version_id):
            return Drop(item_key(source, item.native_id), "forgotten")
        if isinstance(item, Repeat):  # may come before the item itself
            return item
        if item.native_id in self._seen:
            return Repeat(item.native_id, "came before")
        self._seen.add(item.native_id)
        if not isinstance(item, Document):
            return item
        document = item
        if Month.of(document.event_time) != self._month:
            return Drop(document.native_id, "outside_month", document.event_time.isoformat())
        row = _row(document, self._crawler.INFO)
        if refusal := self._gate.refuse(document.native_id, row["text"]):
            return Drop(document.native_id, *refusal)
        self._num_rows += 1
        return row


def _row(document: Document, info: SourceInfo) -> dict[str, Any]:
    """Return the columns of DOCUMENTS that do not follow from others, text cleaned."""
    language = document.language or info.language
    return {
        "native_id": document.native_id,
        "version_id": document.version_id,
        "cluster_id": document.cluster_id,
        "event_time": document.event_time,
        "date_kind": document.date_kind,
        "text_as_of": document.text_as_of,
        "retrieved_at": document.retrieved_at,
        "url": normalise(document.url),
        "title": normalise(document.title),
        "category": document.category or info.category,
        "language": language,
        "licence": document.licence.strip() or info.licence.strip() or "LicenseRef-unknown",
        "attribution": normalise(document.attribution),
        "extra": json.dumps(document.extra, sort_keys=True) if document.extra else None,
        "text": clean(document.text, is_code=language.startswith("code:")),
    }
