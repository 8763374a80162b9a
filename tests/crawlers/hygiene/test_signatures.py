import time

import numpy as np
import pytest

from crawlers.hygiene.signatures import SIMILAR, Index, Signatures, clusters, sign, similarity
from crawlers.hygiene.tokens import Hashes


def _pair(rng: np.random.Generator, size: int, jaccard: float) -> tuple[Hashes, Hashes]:
    common = round(2 * size * jaccard / (1 + jaccard))
    drawn = rng.integers(0, 2**64, size=2 * size - common, dtype=np.uint64)
    return drawn[:size], np.concatenate([drawn[:common], drawn[size:]])


def _jaccard(one: Hashes, other: Hashes) -> float:
    left, right = set(one.tolist()), set(other.tolist())
    return len(left & right) / len(left | right)


@pytest.mark.parametrize("size", [12, 100, 1000])
@pytest.mark.parametrize("jaccard", [0.2, 0.5, 0.8, 0.95])
def test_signatures_estimate_the_exact_jaccard(size: int, jaccard: float) -> None:
    rng = np.random.default_rng(size)
    pairs = [_pair(rng, size, jaccard) for _ in range(200)]
    left, right = sign([one for one, _ in pairs]), sign([other for _, other in pairs])
    errors = similarity(left, right) - np.array([_jaccard(*pair) for pair in pairs])
    assert abs(errors.mean()) < 0.012  # four standard errors of a mean of 200
    assert np.abs(errors).max() < 0.2


def test_repeats_and_order_do_not_matter() -> None:
    grams = np.arange(50, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    twice = np.concatenate([grams[::-1], grams])
    assert np.array_equal(sign([grams]), sign([twice]))
    assert np.array_equal(sign([grams, twice])[1], sign([twice])[0])  # beside others or not


def test_clusters_are_those_of_the_exact_jaccard() -> None:
    rng = np.random.default_rng(3)
    far = [_pair(rng, 300, 0.6) for _ in range(300)]
    near = [_pair(rng, 300, 0.92) for _ in range(300)]
    sets = [one for pair in near + far for one in pair]
    roots = clusters(sign(sets))
    expected = np.arange(len(sets))
    expected[1:600:2] -= 1
    assert np.array_equal(roots, expected)


def test_chains_are_one_cluster_under_its_first() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(0, 2**64, size=400, dtype=np.uint64)
    chain = [values[start : start + 300] for start in (0, 20, 40, 60, 80, 100)]
    assert _jaccard(chain[0], chain[-1]) < SIMILAR - 0.2
    assert clusters(sign(chain)).tolist() == [0] * 6
    assert clusters(sign(chain[:1])).tolist() == [0]


def _crowd(rng: np.random.Generator, size: int, share: float) -> Signatures:
    """Return signatures of which any two agree in at least ``share`` squared of their numbers."""
    pattern = rng.integers(0, 2**16, size=128)
    own = rng.integers(0, 2**16, size=(size, 128))
    return np.where(rng.random((size, 128)) < share, pattern, own).astype(np.uint16)


@pytest.mark.long
def test_a_crowd_of_half_alike_texts_costs_no_squares() -> None:
    """Texts of one template share the keys of many bands without being duplicates."""
    rng = np.random.default_rng(5)
    crowd = _crowd(rng, 20_000, 0.75)
    crowd[15_000] = crowd[100]  # an exact one among them
    began = time.process_time()
    roots = clusters(crowd)
    found = {(theirs, ours) for theirs, ours, _ in Index(crowd).similar_to(crowd[:500])}
    assert time.process_time() - began < 20
    assert np.flatnonzero(roots != np.arange(20_000)).tolist() == [15_000]
    assert {(row, row) for row in range(500)} <= found | {(100, 100), (100, 15_000)}


def test_a_thousand_copies_are_one_cluster() -> None:
    rng = np.random.default_rng(6)
    base = rng.integers(0, 2**16, size=128)
    changed = rng.random((1000, 128)) < 0.04
    copies = np.where(changed, rng.integers(0, 2**16, size=(1000, 128)), base).astype(np.uint16)
    assert set(clusters(copies).tolist()) == {0}


def test_another_months_texts_are_looked_up() -> None:
    rng = np.random.default_rng(7)
    pairs = [_pair(rng, 300, 0.92) for _ in range(200)]
    index = Index(sign([one for one, _ in pairs]))
    others = sign([other for _, other in pairs[::-1]])
    found = list(index.similar_to(others))
    assert {(theirs, ours) for theirs, ours, _ in found} == {(i, 199 - i) for i in range(200)}
    assert all(alike >= SIMILAR for _, _, alike in found)


def test_nothing_is_like_nothing() -> None:
    none = sign([])
    assert none.shape == (0, 128)
    assert clusters(none).tolist() == []
    one = sign([np.array([1], dtype=np.uint64)])
    assert list(Index(none).similar_to(one)) == []
    assert list(Index(one).similar_to(none)) == []
