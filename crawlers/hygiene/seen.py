"""How much of a text stood in earlier months: its 13-grams against theirs, by samples.

An n-gram is in the sample if its hash lies below a bound, so that all months sample the same
n-grams: one in 8, or fewer where a month has very many.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlers.hygiene.tokens import Hashes, distinct

SEEN_GRAM = 13  # words; tokens in code
SEEN_BEFORE = 0.5  # share from which on a document is flagged
MIN_SAMPLED = 8  # n-grams of a document, for a flag
FLAG = "seen_before"
FIRST_BOUND = 2**64 // 8
_GATHERED = 1024  # documents
MAX_GRAMS = 4_000_000  # in the sample of a month: 32 MB


class GramSample:
    """The sampled n-grams of a month's documents."""

    def __init__(self, max_grams: int = MAX_GRAMS) -> None:
        self.bound = FIRST_BOUND
        self._max_grams = max_grams
        self._rows = [np.empty(0, np.int32)]
        self._grams = [np.empty(0, np.uint64)]
        self._new: list[tuple[int, Hashes]] = []
        self._size = 0

    def add(self, row: int, grams: Hashes) -> None:
        """Take the sample of one document; where there are too many, halve that of the month."""
        sample = sampled(grams, self.bound)
        self._new.append((row, sample))
        self._size += len(sample)
        if len(self._new) == _GATHERED:
            self._gather()
        while self._size > self._max_grams:
            self.bound //= 2
            rows, values = self.all()
            is_kept = values < np.uint64(self.bound)
            self._rows, self._grams = [rows[is_kept]], [values[is_kept]]
            self._size = len(self._grams[0])

    def all(self) -> tuple[npt.NDArray[np.int32], Hashes]:
        """Row and hash of each sampled n-gram; ordered by row, then by hash."""
        self._gather()
        self._rows, self._grams = [np.concatenate(self._rows)], [np.concatenate(self._grams)]
        return self._rows[0], self._grams[0]

    def _gather(self) -> None:
        """Put the samples of many documents into one array: small arrays take much memory."""
        if self._new:
            rows, samples = zip(*self._new, strict=True)
            self._rows.append(np.repeat(np.array(rows, np.int32), [*map(len, samples)]))
            self._grams.append(np.concatenate(samples))
            self._new = []


def sampled(grams: Hashes, bound: int) -> Hashes:
    """Return the distinct n-grams that lie below a bound, sorted."""
    return distinct(grams[grams < np.uint64(bound)])


class SeenShares:
    """Which sampled n-grams of a month's documents were met in other months."""

    def __init__(self, sample: GramSample) -> None:
        self._rows, grams = sample.all()
        self._known, self._places = np.unique(grams, return_inverse=True)
        self._is_seen = np.zeros(len(self._known), dtype=bool)
        self._bound = sample.bound

    def meet(self, grams: Hashes, bound: int) -> None:
        """Compare with a part of another month.

        Args:
            grams: sampled n-grams of that part.
            bound: below which its month sampled.
        """
        self._bound = min(self._bound, bound)
        if len(self._known):
            grams = np.sort(grams)  # neighbours are looked up fast
            places = np.minimum(np.searchsorted(self._known, grams), len(self._known) - 1)
            self._is_seen[places[self._known[places] == grams]] = True

    def shares(self, num_rows: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Return each document's share of n-grams seen, NaN where there are none, and of how many.

        Both have the shape (num_rows,).
        """
        in_sample = (self._known < np.uint64(self._bound))[self._places]
        rows = self._rows[in_sample]
        totals = np.bincount(rows, minlength=num_rows)
        seen = np.bincount(rows[self._is_seen[self._places][in_sample]], minlength=num_rows)
        with np.errstate(invalid="ignore"):
            return (seen / totals).astype(np.float32), totals
