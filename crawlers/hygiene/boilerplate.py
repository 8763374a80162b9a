"""Removal of boilerplate: lines that a source repeats, such as notices, appeals and navigation.

A line of at least 20 characters is boilerplate if more than 30 % of a month's distinct texts (and
at least 5) contain it. Only prose is searched. Candidates are lines in 20 % of a sample: the 1,024
texts with the smallest hashes. So memory is bounded, and the order of documents has no effect. A
line in 30 % of the texts is missed in one of 10^12 months.
"""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections import Counter

import numpy as np

from crawlers.hygiene.tokens import Hashes

MIN_LINE_CHARS = 20
MAX_SHARE = 0.3
MIN_TEXTS = 5
_CANDIDATE_SHARE = 0.2
_SAMPLE_TEXTS = 1024
_SAMPLE_LINES = 4096  # maximum lines of a sampled text; their hashes take 32 kB
_LISTED = 100  # maximum number of lines listed in the manifest
_LISTED_CHARS = 200


class LineSample:
    """The lines of the 1,024 distinct texts with the smallest hashes."""

    def __init__(self) -> None:
        self._keys = array("Q")  # hashes of all texts
        self._heap: list[int] = []  # negated hashes of the sampled texts
        self._lines: dict[int, Hashes] = {}

    def add(self, text: str) -> None:
        """Add a text to the sample if its hash is among the 1,024 smallest."""
        key = _hash(text)
        self._keys.append(key)
        if key in self._lines or (len(self._heap) == _SAMPLE_TEXTS and key > -self._heap[0]):
            return
        heapq.heappush(self._heap, -key)
        self._lines[key] = np.array(sorted(_line_keys(text)), dtype=np.uint64)
        if len(self._heap) > _SAMPLE_TEXTS:
            del self._lines[-heapq.heappop(self._heap)]

    def count_candidates(self) -> LineCounts | None:
        """Return a counter of the sample's frequent lines, or None if no line is frequent."""
        if not self._lines:
            return None
        lines, counts = np.unique(np.concatenate(list(self._lines.values())), return_counts=True)
        is_whole = len(self._lines) < _SAMPLE_TEXTS
        share = MAX_SHARE if is_whole else _CANDIDATE_SHARE
        candidates = lines[counts >= max(MIN_TEXTS, share * len(self._lines))]
        return LineCounts(self._keys, frozenset(candidates.tolist())) if len(candidates) else None


class LineCounts:
    """Counts how many distinct texts of the month contain each candidate line."""

    def __init__(self, text_keys: array[int], candidates: frozenset[int]) -> None:
        """Set up a counter that skips repeated texts: ``text_keys`` are all texts' hashes."""
        _, firsts = np.unique(np.array(text_keys, dtype=np.uint64), return_index=True)
        self._is_first = np.zeros(len(text_keys), dtype=bool)
        self._is_first[firsts] = True
        self._candidates = candidates
        self._counts: Counter[int] = Counter()
        self._shown: dict[int, str] = {}
        self._row = 0

    def add(self, text: str) -> None:
        """Count a text's lines; texts must come in the same order as in ``LineSample.add``."""
        self._row += 1
        if not self._is_first[self._row - 1]:
            return
        found: set[int] = set()
        for line in text.split("\n"):
            if len(line) < MIN_LINE_CHARS:
                continue
            key = _line_key(line)
            if key in self._candidates:
                found.add(key)
                self._shown.setdefault(key, line.strip()[:_LISTED_CHARS])
        self._counts.update(found)

    def boilerplate(self) -> Boilerplate:
        """Return the lines in more than MAX_SHARE of the distinct texts and at least MIN_TEXTS."""
        most = MAX_SHARE * int(np.count_nonzero(self._is_first))
        return Boilerplate(
            {
                key: (self._shown[key], count)
                for key, count in self._counts.items()
                if count > most and count >= MIN_TEXTS
            }
        )


class Boilerplate:
    """The lines to remove; ``lines`` maps a line's hash to (line, number of texts with it)."""

    def __init__(self, lines: dict[int, tuple[str, int]]) -> None:
        self._lines = lines
        self._beginnings = {shown for shown, _ in lines.values()}  # spare the hashes of others

    def __bool__(self) -> bool:
        return bool(self._lines)

    def cut(self, text: str) -> str:
        """Return a text without its boilerplate lines; return it unchanged if it has none."""
        lines = text.split("\n")
        kept = [line for line in lines if len(line) < MIN_LINE_CHARS or not self._is_listed(line)]
        return text if len(kept) == len(lines) else "\n".join(kept).strip()

    def _is_listed(self, line: str) -> bool:
        has_beginning = line.strip()[:_LISTED_CHARS] in self._beginnings
        return has_beginning and _line_key(line) in self._lines

    def as_manifest(self) -> dict[str, object]:
        """Return the number of boilerplate lines, and the most frequent ones with their counts."""
        ranked = sorted(self._lines.values(), key=lambda each: (-each[1], each[0]))[:_LISTED]
        listed = [{"line": line, "texts": count} for line, count in ranked]
        return {"lines": len(self._lines), "most_frequent": listed}


def _line_keys(text: str) -> set[int]:
    """Return the hashes of a text's lines that are long enough, at most ``_SAMPLE_LINES``."""
    keys: set[int] = set()
    for line in text.split("\n"):
        key = _line_key(line)
        if key:
            keys.add(key)
        if len(keys) == _SAMPLE_LINES:
            break
    return keys


def _line_key(line: str) -> int:
    line = line.strip()
    return (_hash(line) or 1) if len(line) >= MIN_LINE_CHARS else 0


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
