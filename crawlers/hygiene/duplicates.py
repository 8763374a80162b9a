"""Duplicates, exact and near: within a month, and between its texts and another month's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from core.month import Month
from crawlers.contract import DropReason
from crawlers.hygiene.month_texts import Digests, MonthTexts
from crawlers.hygiene.signatures import Index, Rows, clusters, similarity
from crawlers.hygiene.sketches import SketchBatch

_BLOCK_ROWS = 2**16  # texts indexed at a time


class Hit(NamedTuple):
    """A text of the month and one of another month that is its duplicate."""

    row: int
    month: Month
    document_id: str
    native_id: str
    similarity: float
    is_exact: bool

    @property
    def rank(self) -> tuple[bool, Month, float, str]:
        """Which of several hits of a text to name: the least."""
        return not self.is_exact, self.month, -self.similarity, self.document_id


def drop_exact(texts: MonthTexts) -> None:
    """Drop texts that are the same as an earlier one of the month."""
    rows = texts.kept()
    _, firsts, places = np.unique(texts.digests[rows], return_index=True, return_inverse=True)
    heads = rows[firsts[places]]
    for row, head in zip(rows.tolist(), heads.tolist(), strict=True):
        if row != head:
            texts.drops[row] = ("exact_dup", f"same text as {texts.native_ids[head]}")


def drop_duplicates(texts: MonthTexts, hits: Mapping[int, Hit]) -> None:
    """Drop all but the earliest text of each cluster of near duplicates.

    A cluster that reaches into an earlier month is dropped whole: its earliest text is there.

    Args:
        texts: without exact duplicates within the month.
        hits: the duplicate in an earlier month, by row.
    """
    rows = texts.kept()
    rows = rows[texts.is_signed(rows)]
    firsts = clusters(texts.signatures[rows])
    is_old = np.zeros(len(rows), dtype=bool)
    for place, row in enumerate(rows.tolist()):
        is_old[firsts[place]] |= row in hits
    for place, first in enumerate(firsts.tolist()):
        row = int(rows[place])
        if hit := hits.get(row):
            texts.drops[row] = _as_drop(hit)
        elif is_old[first]:
            texts.drops[row] = ("near_dup", "its cluster reaches into an earlier month")
        elif place != first:
            head = int(rows[first])
            both = texts.signatures[[row]], texts.signatures[[head]]
            alike = f"{float(similarity(*both)[0]):.2f} similar to {texts.native_ids[head]}"
            texts.drops[row] = ("near_dup", alike)
    for row, hit in hits.items():  # those without a signature can be exact duplicates
        texts.drops.setdefault(row, _as_drop(hit))


class Block:
    """Some texts of the month, indexed so that those of other months can be looked up."""

    def __init__(self, texts: MonthTexts, rows: Rows) -> None:
        self._rows = rows
        self._signed = rows[texts.is_signed(rows)]
        self._index = Index(texts.signatures[self._signed])
        digests = texts.digests[rows]
        self._order = np.argsort(_prefixes(digests), kind="stable")
        self._digests = digests[self._order]

    def hits(self, batch: SketchBatch) -> Iterator[Hit]:
        """Yield the duplicates among some texts of another month."""
        ids, native_ids = batch.document_ids, batch.native_ids
        for theirs, place in self._same_text(batch.digests):
            row = int(self._rows[self._order[place]])
            yield Hit(row, batch.month, ids[theirs], native_ids[theirs], 1.0, is_exact=True)
        for signed, place, alike in self._index.similar_to(batch.signatures):
            theirs, row = int(batch.signed[signed]), int(self._signed[place])
            yield Hit(row, batch.month, ids[theirs], native_ids[theirs], alike, is_exact=False)

    def _same_text(self, digests: Digests) -> Iterator[tuple[int, int]]:
        known, wanted = _prefixes(self._digests), _prefixes(digests)
        firsts = np.searchsorted(known, wanted, "left")
        lasts = np.searchsorted(known, wanted, "right")
        for theirs in np.flatnonzero(lasts > firsts).tolist():
            for place in range(int(firsts[theirs]), int(lasts[theirs])):
                if self._digests[place] == digests[theirs]:
                    yield theirs, place


def blocks_of(texts: MonthTexts, rows: Rows) -> Iterator[Block]:
    """Index rows, so many at a time that memory stays bounded."""
    for begin in range(0, len(rows), _BLOCK_ROWS):
        yield Block(texts, rows[begin : begin + _BLOCK_ROWS])


def _as_drop(hit: Hit) -> tuple[DropReason, str]:
    if hit.is_exact:
        return "exact_dup", f"same text as {hit.native_id} of {hit.month}"
    return "near_dup", f"{hit.similarity:.2f} similar to {hit.native_id} of {hit.month}"


def _prefixes(digests: Digests) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The first eight bytes of each digest."""
    return np.frombuffer(digests.tobytes(), dtype="<u8")[:: digests.dtype.itemsize // 8]
