"""Min-K% and Min-K%++: scores that tell if a model has probably seen a text in training.

Min-K% (Shi et al. 2024, arXiv 2310.16789) is the mean ln p of the k % least likely tokens. Min-K%++
(Zhang et al. 2024, arXiv 2404.02936) first standardises ln p of each token: it subtracts the mean
of ln p over the vocabulary, and divides by its standard deviation, both under the model's
distribution at this token. Higher scores speak for training on the text.
"""

from __future__ import annotations

import numpy as np

from models.scoring.scorer import Losses

SHARES = (0.1, 0.2, 0.3)  # values of k; the papers' main tables have 0.2


def min_k(nats: Losses, share: float) -> float | None:
    """Return the mean ln p of the given share of tokens with the lowest; None without tokens.

    The number of tokens is rounded down, as in the papers' code, but is at least 1.
    """
    return _mean_of_lowest(-nats, share)


def min_k_plus(nats: Losses, moments: Losses, share: float) -> float | None:
    """Return the mean standardised ln p of the given share of tokens with the lowest.

    Tokens without moments, and tokens for which all probabilities are equal, are left out.
    """
    mean, variance = moments.T
    has_spread = variance > 0
    spread = np.sqrt(variance[has_spread])
    return _mean_of_lowest((-nats[has_spread] - mean[has_spread]) / spread, share)


def _mean_of_lowest(values: Losses, share: float) -> float | None:
    values = np.sort(values[np.isfinite(values)])
    return float(values[: max(1, int(len(values) * share))].mean()) if len(values) else None
