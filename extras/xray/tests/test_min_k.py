import numpy as np
import pytest

from extras.xray.min_k import min_k, min_k_plus


def test_min_k_is_the_mean_of_the_least_likely_tokens() -> None:
    nats = np.array([1.0, 5.0, 2.0, 4.0, 3.0, 0.5, 0.1, 0.2, 0.3, 0.4])
    assert min_k(nats, 0.2) == pytest.approx(-4.5)
    assert min_k(nats, 0.29) == pytest.approx(-4.5)  # rounded down
    assert min_k(nats[:3], 0.2) == pytest.approx(-5.0)  # at least one token
    assert min_k(np.array([np.nan, 2.0]), 1.0) == pytest.approx(-2.0)
    assert min_k(nats[:0], 0.2) is None


def test_min_k_plus_standardises_each_token() -> None:
    nats = np.array([1.0, 3.0, 2.0, 7.0])
    moments = np.array([[-2.0, 4.0], [-2.0, 0.25], [np.nan, np.nan], [-7.0, 0.0]])
    # (-1 + 2) / 2 = 0.5 and (-3 + 2) / 0.5 = -2; the others have no spread.
    assert min_k_plus(nats, moments, 0.5) == pytest.approx(-2.0)
    assert min_k_plus(nats, moments, 1.0) == pytest.approx(-0.75)
    assert min_k_plus(nats[2:], moments[2:], 0.5) is None
