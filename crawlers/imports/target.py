"""The partition that an import seals, and its documents and manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from core.corpus.partition import Content, Partition, list_sealed, tables_of
from core.corpus.sealing import Description
from core.errors import UsageError
from core.month import require_complete
from core.schemas.tables import DocumentRow
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.crawling import manifest
from crawlers.imports.naming import require_source_name


def require_target(partition: Partition, content: Content, store: Store) -> None:
    """Raise an error for an unusable name, a source of other content, or an unfinished month."""
    require_source_name(partition.source, store)
    if partition.month is not None:
        require_complete(partition.month)
    for seal in list_sealed(store, partition.source):
        if seal.content != content and seal.partition != partition:
            raise UsageError(
                f"{seal.partition} is sealed as {seal.content}, so {content} needs a source of "
                "its own: figures over the months of a source must not mix the two"
            )


def contents_of(
    name: str,
    partition: Partition,
    outcomes: Iterable[DocumentRow | Drop],
    rules: Mapping[str, object],
    passed_over: manifest.Ledger | None = None,
) -> Iterator[pa.Table | Description]:
    """Yield the kept documents of an import, then the manifest and the dropped items.

    The manifest includes the settings ``rules``. ``passed_over`` has items that were dropped
    before. Raise MalformedInput if a file cannot be read, and EmptyPartition if all are dropped.
    """
    ledger = manifest.Ledger(partition)
    if passed_over is not None:
        ledger.begin_with(passed_over)
    started_at = manifest.now()
    yield from tables_of(filter(ledger.keeps, outcomes), partition)
    described = {
        "kind": "import",
        "code_version": manifest.code_version(),
        "file": name,
        **rules,
        "started_at": started_at,
        "ended_at": manifest.now(),
        **ledger.close(),
    }
    yield Description(described, {manifest.DROPPED_FILE: ledger.dropped_items()})
