"""Samples of sealed months, small enough to be scored in a given time.

A sample is sealed in a data root of its own, so that its figures never mix with those of whole
months. Its documents are the first ones by id. An id is a hash, so the choice depends neither on
chance nor on the text.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from core.corpus.partition import FIRST_REGIME, Partition, Seal, read_documents
from core.corpus.sealing import Description, seal_partition
from core.month import Month
from core.storage.store import Store
from warehouse.estimates.changes import MIN_MONTHS

LEAST_BYTES = 4 * 2**10  # of a source and month; less says nothing of a month
MOST_BYTES = 256 * 2**10
MOST_SOURCES = 5
MIN_DOCUMENTS = 2


@dataclass(frozen=True)
class TextSample:
    """The chosen partitions, and the bytes of text to take of each."""

    seals: tuple[Seal, ...]
    quota: int  # bytes of a source and month; a power of two

    @property
    def months(self) -> list[Month]:
        """The months, in order."""
        found = {_month_of(seal) for seal in self.seals}
        return sorted(found)

    @property
    def sources(self) -> list[str]:
        """The names of the sources, in order."""
        return sorted({seal.partition.source for seal in self.seals})

    @property
    def num_bytes(self) -> int:
        """The size of the whole sample, at most: a partition may have less text."""
        return sum(min(self.quota, seal.num_bytes) for seal in self.seals)

    @property
    def digest(self) -> str:
        """A hash of what is taken, as a name."""
        taken = [self.quota, *sorted(seal.content_digest for seal in self.seals)]
        return hashlib.sha256(json.dumps(taken).encode()).hexdigest()[:12]


def usable(seals: Sequence[Seal]) -> list[Seal]:
    """Return the partitions that are texts of calendar months, with enough documents."""
    return [
        seal
        for seal in seals
        if seal.is_text
        and isinstance(seal.partition.month, Month)
        and seal.num_documents >= MIN_DOCUMENTS
    ]


def choose_sample(seals: Sequence[Seal], budget: int) -> TextSample:
    """Choose sources, months and a quota, so that at most about ``budget`` bytes are taken.

    Sources with the most months come first, at most MOST_SOURCES. If the budget leaves less than
    LEAST_BYTES for each month, fewer sources are taken; of the last one, fewer months, evenly
    spaced, at least MIN_MONTHS if there are so many.
    """
    by_source: dict[str, list[Seal]] = defaultdict(list)
    for seal in seals:
        by_source[seal.partition.source].append(seal)
    order = sorted(by_source, key=lambda source: (-len(by_source[source]), source))
    enough = [source for source in order if len(by_source[source]) >= MIN_MONTHS]
    names = (enough or order)[:MOST_SOURCES]
    while len(names) > 1 and budget < LEAST_BYTES * _count(by_source, names):
        names.pop()
    chosen = [seal for name in names for seal in by_source[name]]
    most = max(MIN_MONTHS, budget // LEAST_BYTES)
    if len(names) == 1 and len(chosen) > most:
        chosen = _spread(sorted(chosen, key=_month_of), most)
    quota = max(LEAST_BYTES, min(MOST_BYTES, budget // max(1, len(chosen))))
    return TextSample(tuple(chosen), 2 ** (quota.bit_length() - 1))


def _count(by_source: dict[str, list[Seal]], names: Sequence[str]) -> int:
    return sum(len(by_source[name]) for name in names)


def _spread(seals: Sequence[Seal], number: int) -> list[Seal]:
    """Return ``number`` of the seals, evenly spaced, with the first and the last one."""
    last = len(seals) - 1
    return [seals[round(place * last / (number - 1))] for place in range(number)]


def _month_of(seal: Seal) -> Month:
    month = seal.partition.month
    if not isinstance(month, Month):
        raise TypeError(f"{seal.partition} is not of a calendar month")
    return month


def seal_sample(sample: TextSample, source: Store, target: Store) -> list[Partition]:
    """Seal the sample's documents in another store; return the partitions that are too thin.

    Documents longer than half of the quota are left out, so that one text does not make a month.
    A partition with fewer than MIN_DOCUMENTS others is not sealed.
    """
    thin = []
    for seal in sample.seals:
        ids = _chosen_ids(seal, sample.quota, source)
        if len(ids) < MIN_DOCUMENTS:
            thin.append(seal.partition)
            continue
        seal_partition(target, seal.partition, _contents(seal, ids, source), replace=True)
    return thin


def _chosen_ids(seal: Seal, quota: int, store: Store) -> list[str]:
    batches = read_documents(store, seal, columns=["document_id", "num_bytes"])
    rows = [row for batch in batches for row in batch.to_pylist()]
    chosen: list[str] = []
    taken = 0
    for row in sorted(rows, key=lambda row: str(row["document_id"])):
        if row["num_bytes"] > quota // 2:
            continue
        if taken >= quota:
            break
        chosen.append(row["document_id"])
        taken += row["num_bytes"]
    return chosen


def _contents(seal: Seal, ids: Sequence[str], store: Store) -> Iterator[pa.Table | Description]:
    wanted = pa.array(ids)
    for batch in read_documents(store, seal):
        rows = pa.Table.from_batches([batch])
        kept = rows.filter(pc.is_in(rows["document_id"], value_set=wanted))
        if kept.num_rows:
            yield kept
    described = {
        "kind": "sample",
        "sample_of": seal.digest,
        "status": "complete",
        "regime": seal.manifest.get("regime", FIRST_REGIME),
        "use": "local",  # a sample is nobody's corpus
    }
    yield Description(described)
