"""Search by BM25 among passages that were known when each query was asked.

Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond",
equations 3.15 and 3.3, with 1 added to the odds, so that no word has a negative weight. All counts
are over the passages that were known at the time of the query: their number, their mean length,
and those with a word. So a later text changes no earlier result.

The passages are read twice: first they are counted, then they are scored. Only the words of the
queries are kept, not the passages.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

SATURATION = 1.2  # k1
LENGTH_SHARE = 0.75  # b

Floats = NDArray[np.float64]


class Queries:
    """The words and times of queries, and counts of the passages that each of them may see.

    Queries are numbered in the given order. Passages may come in any order.
    """

    def __init__(self, queries: Sequence[tuple[Collection[str], dt.datetime]]) -> None:
        times = np.array([asked.timestamp() for _, asked in queries], dtype=float)
        self._order = np.argsort(times, kind="stable")  # number of the query at each place
        self._times = times[self._order]
        places: dict[str, list[int]] = {}  # of the queries that have a word, ascending
        for place, number in enumerate(self._order):
            for word in set(queries[number][0]):
                places.setdefault(word, []).append(place)
        self._places = {word: np.array(having) for word, having in places.items()}
        # For each query, the passages that the query before it could not see; sums come later.
        self._num_passages = np.zeros(len(queries))
        self._num_words = np.zeros(len(queries))
        self._num_having = {word: np.zeros(len(having)) for word, having in self._places.items()}
        self._mean_words: Floats = np.zeros(0)
        self._weights: dict[str, Floats] = {}

    def count(self, known_at: dt.datetime, words: Sequence[str]) -> None:
        """Count a passage, which is known from ``known_at`` on."""
        first = self._first_after(known_at)
        if first == len(self._times):
            return
        self._num_passages[first] += 1
        self._num_words[first] += len(words)
        for word in set(words) & self._places.keys():
            place = int(np.searchsorted(self._places[word], first))
            if place < len(self._num_having[word]):
                self._num_having[word][place] += 1

    def weigh(self) -> None:
        """Compute the weights of words for each query, from all passages that were counted."""
        num_passages = np.cumsum(self._num_passages)
        self._mean_words = np.cumsum(self._num_words) / np.maximum(num_passages, 1)
        for word, places in self._places.items():
            having = np.cumsum(self._num_having[word])
            odds = (num_passages[places] - having + 0.5) / (having + 0.5)
            self._weights[word] = np.log1p(odds)

    def score(self, known_at: dt.datetime, words: Sequence[str]) -> Iterator[tuple[int, float]]:
        """Yield number and score of each query that may see a passage and shares a word with it.

        Call ``weigh`` before, after all passages were counted.
        """
        first = self._first_after(known_at)
        found = Counter(word for word in words if word in self._places)
        if not found or first == len(self._times):
            return
        share = 1 - LENGTH_SHARE + LENGTH_SHARE * len(words) / self._mean_words[first:]
        scores = np.zeros(len(share))
        for word in sorted(found):
            start = int(np.searchsorted(self._places[word], first))
            at = self._places[word][start:] - first
            saturated = found[word] * (SATURATION + 1) / (found[word] + SATURATION * share[at])
            scores[at] += self._weights[word][start:] * saturated
        for place in np.flatnonzero(scores):
            yield int(self._order[first + place]), float(scores[place])

    def _first_after(self, known_at: dt.datetime) -> int:
        """Return the place of the first query after a time."""
        return int(np.searchsorted(self._times, known_at.timestamp(), side="right"))
