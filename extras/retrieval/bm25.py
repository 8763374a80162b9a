"""Search by BM25 among passages that were known at a given time.

Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond",
equations 3.15 and 3.3, with 1 added to the odds, so that no word has a negative weight. All counts
are over the passages that were known at the time of the search: their number, their mean length,
and those with a word. So a later text changes no earlier result.
"""

from __future__ import annotations

import datetime as dt
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

SATURATION = 1.2  # k1
LENGTH_SHARE = 0.75  # b


class Collector:
    """Passages as they are read, in any order; only the words of a vocabulary are kept."""

    def __init__(self, vocabulary: Collection[str]) -> None:
        self._vocabulary = frozenset(vocabulary)
        self._times = array("d")  # seconds since 1970
        self._lengths = array("I")  # words
        self._numbers: dict[str, array[int]] = {}  # passages that have a word
        self._counts: dict[str, array[int]] = {}  # how often they have it

    def __len__(self) -> int:
        return len(self._times)

    def add(self, known_at: dt.datetime, words: Sequence[str]) -> None:
        """Add the next passage; ``known_at`` is the time from which on it can be found."""
        number = len(self._times)
        self._times.append(known_at.timestamp())
        self._lengths.append(len(words))
        found = Counter(word for word in words if word in self._vocabulary)
        for word, count in found.items():
            self._numbers.setdefault(word, array("I")).append(number)
            self._counts.setdefault(word, array("I")).append(count)

    def index(self) -> PassageIndex:
        """Return the index of all passages that were added."""
        return PassageIndex(self._times, self._lengths, self._numbers, self._counts)


class PassageIndex:
    """Passages in the order of the time at which they were known."""

    def __init__(
        self,
        times: Sequence[float],
        lengths: Sequence[int],
        numbers: dict[str, array[int]],
        counts: dict[str, array[int]],
    ) -> None:
        order = np.argsort(np.asarray(times, dtype=float), kind="stable")
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        self._order = order  # number of the passage at each place
        self._times = np.asarray(times, dtype=float)[order]
        self._lengths = np.asarray(lengths, dtype=float)[order]
        self._total_lengths = np.cumsum(self._lengths)
        self._places: dict[str, NDArray[np.int64]] = {}
        self._counts: dict[str, NDArray[np.float64]] = {}
        for word, having in numbers.items():
            at = places[np.asarray(having, dtype=np.int64)]
            by_place = np.argsort(at)
            self._places[word] = at[by_place]
            self._counts[word] = np.asarray(counts[word], dtype=float)[by_place]

    def search(self, words: Iterable[str], before: dt.datetime) -> list[tuple[int, float]]:
        """Return number and score of each passage with a word of the query, the best first.

        Only passages that were known before ``before`` are found. Of equal scores, the passage that
        was known first comes first.
        """
        num_known = int(np.searchsorted(self._times, before.timestamp(), side="left"))
        if num_known == 0:
            return []
        mean_length = self._total_lengths[num_known - 1] / num_known
        scores = np.zeros(num_known)
        for word in sorted(set(words) & self._places.keys()):
            places = self._places[word]
            num_having = int(np.searchsorted(places, num_known))
            at = places[:num_having]
            counts = self._counts[word][:num_having]
            weight = math.log1p((num_known - num_having + 0.5) / (num_having + 0.5))
            share = 1 - LENGTH_SHARE + LENGTH_SHARE * self._lengths[at] / mean_length
            scores[at] += weight * counts * (SATURATION + 1) / (counts + SATURATION * share)
        found = np.flatnonzero(scores)
        best = found[np.argsort(-scores[found], kind="stable")]
        return [(int(self._order[place]), float(scores[place])) for place in best]
