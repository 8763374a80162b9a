"""The partition that an import seals, and its documents and manifest."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

import pyarrow as pa

from core.corpus.partition import Content, Partition, list_sealed, tables_of
from core.corpus.sealing import Description
from core.errors import UsageError
from core.month import require_complete
from core.schemas.tables import DocumentRow
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.crawling import manifest


def require_target(partition: Partition, content: Content, store: Store) -> None:
    """Raise an error for a source without name or of other content, or an unfinished month."""
    if not partition.source.strip():
        raise UsageError("the source needs a name; say --source NAME")
    if partition.month is not None:
        require_complete(partition.month)
    for seal in list_sealed(store, partition.source):
        if seal.content != content and seal.partition != partition:
            raise UsageError(
                f"{seal.partition} is sealed as {seal.content}, so {content} needs a source of "
                "its own: figures over the months of a source must not mix the two"
            )


class Import:
    """The documents and the manifest of an import; the manifest includes the settings ``rules``.

    ``passed_over`` has items that were dropped before.
    """

    def __init__(
        self,
        name: str,
        partition: Partition,
        outcomes: Iterable[DocumentRow | Drop],
        rules: Mapping[str, object],
        passed_over: manifest.Ledger | None = None,
    ) -> None:
        self._name = name
        self._partition = partition
        self._outcomes = outcomes
        self._rules = rules
        self._ledger = manifest.Ledger(partition)
        if passed_over is not None:
            self._ledger.begin_with(passed_over)
        self._started_at = manifest.now()

    def documents(self) -> Generator[pa.Table]:
        """Yield the kept documents; raise MalformedInput if a file cannot be read."""
        yield from tables_of(filter(self._ledger.keeps, self._outcomes), self._partition)

    def finish(self) -> Description:
        """Return the manifest and the dropped items; raise EmptyPartition if all are dropped."""
        described = {
            "kind": "import",
            "code_version": manifest.code_version(),
            "file": self._name,
            **self._rules,
            "started_at": self._started_at,
            "ended_at": manifest.now(),
            **self._ledger.close(),
        }
        return Description(described, {manifest.DROPPED_FILE: self._ledger.dropped_items()})
