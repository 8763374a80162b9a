import numpy as np

from crawlers.hygiene import sketches
from crawlers.hygiene.sketches import GramSample, SeenShares, sampled


def test_shares_are_those_of_the_sets() -> None:
    rng = np.random.default_rng(1)
    old = rng.integers(0, 2**64, size=50_000, dtype=np.uint64)
    sample = GramSample()
    expected = []
    for row in range(3000):
        num_old = int(rng.integers(0, 400))
        own = rng.integers(0, 2**64, size=400 - num_old, dtype=np.uint64)
        grams = np.concatenate([rng.choice(old, num_old, replace=False), own, own[:5]])
        sample.add(row, grams)
        expected.append(num_old / 400)
    shares = SeenShares(sample)
    shares.meet(sampled(old[:30_000], sample.bound), sample.bound)
    shares.meet(sampled(old[30_000:], sample.bound), sample.bound)
    found, totals = shares.shares(3001)
    errors = found[:3000] - np.array(expected)
    assert abs(errors.mean()) < 0.005
    assert errors.std() < 0.07  # at most 0.5 / sqrt(50)
    assert abs(totals[:3000].mean() - 50) < 1
    assert np.isnan(found[3000])


def test_a_sample_stays_below_its_bound() -> None:
    """Months of any size can be compared: the sparser sample counts."""
    rng = np.random.default_rng(2)
    texts = rng.integers(0, 2**64, size=(500, 800), dtype=np.uint64)
    small, whole = GramSample(max_grams=3000), GramSample()
    for row, grams in enumerate(texts):
        small.add(row, grams)
        whole.add(row, grams)
    rows, grams = small.all()
    assert 1000 < len(grams) <= 3000
    assert small.bound < whole.bound
    all_rows, all_grams = whole.all()
    is_in = all_grams < np.uint64(small.bound)
    assert np.array_equal(grams, all_grams[is_in])
    assert np.array_equal(rows, all_rows[is_in])
    for mine, other in ((small, whole), (whole, small)):
        shares = SeenShares(mine)
        shares.meet(other.all()[1], other.bound)
        found, totals = shares.shares(500)
        assert set(found[totals > 0].tolist()) == {1.0}
        assert totals.sum() == len(grams)


def test_nothing_is_seen_in_nothing() -> None:
    shares = SeenShares(GramSample())
    shares.meet(np.array([1, 2], dtype=np.uint64), sketches.FIRST_BOUND)
    found, totals = shares.shares(2)
    assert np.isnan(found).all()
    assert totals.tolist() == [0, 0]
