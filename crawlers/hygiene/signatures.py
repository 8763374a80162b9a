"""MinHash signatures: 128 numbers per text; the share of equal numbers estimates the similarity.

The numbers are the lower 16 bits of rensa's R-MinHash (algorithm version 2, seed 1). Two numbers
are equal by chance once in 65,536; the estimate's standard error is far larger (0.035 at similarity
0.8). The first 125 numbers form 25 bands of five. Two texts are compared only if all numbers of a
band are equal. At similarity 0.8, 5 in 100,000 pairs are missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from crawlers.hygiene.tokens import Hashes

SIMILAR = 0.8  # minimum estimated Jaccard similarity of two sets of 5-grams
SHINGLE = 5  # length of the n-grams, in words (prose) or tokens (code)
NUM_PERMUTATIONS = 128
SIGNATURE_BYTES = 2 * NUM_PERMUTATIONS
ALGORITHM = f"rensa-{RMinHash.ALGORITHM_VERSION}-1"
NUM_BANDS = 25

Signatures = npt.NDArray[np.uint16]
Rows = npt.NDArray[np.int64]

_ROWS = 5  # number of signature values in a band
_SEED = 1
_MIX_SHIFT = np.uint64(29)  # carries high bits down between two multiplications
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_PAIRS = 2**15  # pairs compared at a time
_MAX_IN_BAND = 16  # maximum candidates per text and band, to limit the time if many texts are alike


def sign(gram_sets: Sequence[Hashes]) -> Signatures:
    """Return the signature of each non-empty set of n-gram hashes; shape (num_sets, 128)."""
    offsets = np.zeros(len(gram_sets) + 1, dtype=np.uint64)
    np.cumsum([len(grams) for grams in gram_sets], out=offsets[1:])
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(
        np.concatenate([*gram_sets, np.empty(0, np.uint64)]), offsets, NUM_PERMUTATIONS, _SEED
    )
    rows = np.array(matrix.to_rows(), dtype=np.uint32).reshape(-1, NUM_PERMUTATIONS)
    return rows.astype("<u2")


def similarity(left: Signatures, right: Signatures) -> npt.NDArray[np.float32]:
    """Estimate the Jaccard similarity of row i of ``left`` and ``right``; shape (num_rows,)."""
    shares: npt.NDArray[np.float32] = np.mean(left == right, axis=1, dtype=np.float32)
    return shares


def band_keys(signatures: Signatures, band: int) -> Hashes:
    """Return a hash of each text's numbers in one band; shape (num_texts,)."""
    keys = np.zeros(len(signatures), dtype=np.uint64)
    for column in range(band * _ROWS, (band + 1) * _ROWS):
        keys = (keys ^ signatures[:, column]) * _PRIME
        keys ^= keys >> _MIX_SHIFT
    return keys


def clusters(signatures: Signatures) -> Rows:
    """Return the first row of each row's cluster; clusters are chains of similar pairs."""
    # In each band, a text is compared with at most 16 earlier texts with the same key. Texts of
    # similarity 0.8 share eight bands on average, so a pair missed in one band is found in another.
    links = _Links(len(signatures))
    for band in range(NUM_BANDS):
        keys = band_keys(signatures, band)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        roots = links.roots()
        for distance in range(1, _MAX_IN_BAND + 1):
            places = np.flatnonzero(keys[distance:] == keys[:-distance])
            if not len(places):
                break
            left = order[places]
            right = order[places + distance]
            is_new = roots[left] != roots[right]
            for one, other, _ in _verified(signatures, signatures, left[is_new], right[is_new]):
                links.join(one, other)
    return links.roots()


class _Links:
    """A union-find data structure over rows."""

    def __init__(self, size: int) -> None:
        self._parents = np.arange(size, dtype=np.int64)

    def _root(self, row: int) -> int:
        """Return the lowest row of a row's set; shorten the path to it on the way."""
        while (parent := int(self._parents[row])) != row:
            self._parents[row] = self._parents[parent]
            row = int(self._parents[row])
        return row

    def join(self, one: int, other: int) -> None:
        """Join the sets of two rows."""
        low, high = sorted((self._root(one), self._root(other)))
        self._parents[high] = low

    def roots(self) -> Rows:
        """Return, for each row, the lowest row of its set."""
        while not np.array_equal(parents := self._parents[self._parents], self._parents):
            self._parents = parents
        return self._parents.copy()


def _verified(
    left: Signatures, right: Signatures, left_rows: Rows, right_rows: Rows
) -> Iterator[tuple[int, int, float]]:
    """Yield (left row, right row, similarity) of each pair with at least SIMILAR similarity."""
    for begin in range(0, len(left_rows), _PAIRS):
        rows = left_rows[begin : begin + _PAIRS], right_rows[begin : begin + _PAIRS]
        estimates = similarity(left[rows[0]], right[rows[1]])
        for hit in np.flatnonzero(estimates >= SIMILAR).tolist():
            yield int(rows[0][hit]), int(rows[1][hit]), float(estimates[hit])


class Index:
    """An index of texts by the keys of their bands; it takes 300 bytes per text."""

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._orders = []  # by band: the rows in the order of their keys
        self._keys = []  # by band: sorted
        for band in range(NUM_BANDS):
            keys = band_keys(signatures, band)
            order = np.argsort(keys, kind="stable").astype(np.int32)
            self._orders.append(order)
            self._keys.append(keys[order])

    def similar_to(self, others: Signatures) -> Iterator[tuple[int, int, float]]:
        """Yield each similar pair: row in ``others``, row in the index, similarity."""
        pairs = [self._candidates(others, band) for band in range(NUM_BANDS)]
        packed = np.unique(np.concatenate(pairs))  # see ``_candidates``
        theirs, ours = np.divmod(packed, max(len(self._signatures), 1))
        yield from _verified(others, self._signatures, theirs, ours)

    def _candidates(self, others: Signatures, band: int) -> Rows:
        """Return the pairs of rows with equal keys in a band, each as theirs * num_ours + ours."""
        keys = band_keys(others, band)
        first = np.searchsorted(self._keys[band], keys, "left")
        num = np.minimum(np.searchsorted(self._keys[band], keys, "right") - first, _MAX_IN_BAND)
        theirs = np.repeat(np.arange(len(others), dtype=np.int64), num)
        # Position of each candidate in the band's order: its run's start, then one by one.
        starts = np.repeat(first - (np.cumsum(num) - num), num)
        ours = self._orders[band][starts + np.arange(len(theirs))]
        return theirs * len(self._signatures) + ours
