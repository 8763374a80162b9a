"""Mean and variance of ln p over the vocabulary at each token."""

from __future__ import annotations

import torch
from torch.nn import functional


def log_moments(logits: torch.Tensor) -> torch.Tensor:
    """Return mean and variance of ln p under p = softmax(logits) of each row, (n, 2) float64."""
    # The variance is the mean square of differences, since a difference of means would lose digits.
    logs = functional.log_softmax(logits, -1, dtype=torch.float64)
    weights = logs.exp()
    logs = torch.where(weights == 0, 0.0, logs)  # 0 ln 0 counts as 0
    mean = (weights * logs).sum(-1, keepdim=True)
    return torch.cat([mean, (weights * (logs - mean).square()).sum(-1, keepdim=True)], -1)
