"""Samples of sealed months, small enough to be scored in a given time.

A sample is sealed in a data root of its own, so that its figures never mix with those of whole
months. It has the beginnings of the first documents by id. An id is a hash, so the choice depends
neither on chance nor on the text.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from core.corpus.partition import FIRST_REGIME, Seal, read_documents, tables_of
from core.corpus.sealing import Description, seal_partition
from core.month import Month
from core.schemas.tables import DocumentRow
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
        taken = ["beginnings", self.quota, *sorted(seal.content_digest for seal in self.seals)]
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

    Sources with the most months come first, at most MOST_SOURCES, as long as LEAST_BYTES are left
    for each month. Of the last source, fewer months may be taken, evenly spaced, at least
    MIN_MONTHS if there are so many.
    """
    by_source: dict[str, list[Seal]] = defaultdict(list)
    for seal in seals:
        by_source[seal.partition.source].append(seal)
    order = sorted(by_source, key=lambda source: (-len(by_source[source]), source))
    enough = [source for source in order if len(by_source[source]) >= MIN_MONTHS]
    most = max(MIN_MONTHS, budget // LEAST_BYTES)
    chosen: list[Seal] = []
    for name in (enough or order)[:MOST_SOURCES]:
        left = most - len(chosen)
        if left < MIN_MONTHS:
            break
        chosen += _spread(sorted(by_source[name], key=_month_of), left)
    quota = max(LEAST_BYTES, min(MOST_BYTES, budget // max(1, len(chosen))))
    return TextSample(tuple(chosen), 2 ** (quota.bit_length() - 1))


def _spread(seals: Sequence[Seal], number: int) -> list[Seal]:
    """Return at most ``number`` of the seals, evenly spaced, with the first and the last one."""
    if len(seals) <= number:
        return list(seals)
    last = len(seals) - 1
    return [seals[round(place * last / (number - 1))] for place in range(number)]


def _month_of(seal: Seal) -> Month:
    month = seal.partition.month
    if not isinstance(month, Month):
        raise TypeError(f"{seal.partition} is not of a calendar month")
    return month


def seal_sample(sample: TextSample, source: Store, target: Store) -> None:
    """Seal the beginnings of the sample's documents in another store.

    A document gives at most the quota divided by MIN_DOCUMENTS, so that one text does not make a
    month.
    """
    for seal in sample.seals:
        seal_partition(target, seal.partition, _contents(seal, sample.quota, source), replace=True)


def _contents(seal: Seal, quota: int, store: Store) -> Iterator[pa.Table | Description]:
    """Yield the sampled documents, cut to their beginnings, and the sample's description."""
    most = quota // MIN_DOCUMENTS
    wanted = pa.array(_chosen_ids(seal, quota, most, store))
    for batch in read_documents(store, seal):
        rows = pa.Table.from_batches([batch])
        kept = cast(
            "list[DocumentRow]", rows.filter(pc.is_in(rows["document_id"], wanted)).to_pylist()
        )
        beginnings = ({**row, "text": _beginning(row["text"], most)} for row in kept)
        yield from tables_of(beginnings, seal.partition)
    described = {
        "kind": "sample",
        "sample_of": seal.digest,
        "status": "complete",
        "regime": seal.manifest.get("regime", FIRST_REGIME),
        "use": "local",  # a sample is nobody's corpus
    }
    yield Description(described)


def _chosen_ids(seal: Seal, quota: int, most: int, store: Store) -> list[str]:
    """Return the first documents by id whose beginnings of ``most`` bytes fill the quota."""
    batches = read_documents(store, seal, columns=["document_id", "num_bytes"])
    rows = [row for batch in batches for row in batch.to_pylist()]
    chosen: list[str] = []
    taken = 0
    for row in sorted(rows, key=lambda row: str(row["document_id"])):
        if taken >= quota:
            break
        chosen.append(row["document_id"])
        taken += min(row["num_bytes"], most)
    return chosen


def _beginning(text: str, most: int) -> str:
    """Return the beginning of a text, of at most ``most`` bytes of UTF-8."""
    return text.encode()[:most].decode(errors="ignore")
