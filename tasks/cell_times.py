"""How long cells of a model took, from their records; without Prefect or torch."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def fit(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return seconds a cell and seconds a byte, neither negative, by least squares.

    Args:
        points: bytes and seconds of cells; at least one.
    """
    sizes, times = zip(*points, strict=True)
    total, mean_size, mean_time = sum(sizes), statistics.fmean(sizes), statistics.fmean(times)
    spread = sum((size - mean_size) ** 2 for size in sizes)
    if len(points) >= 3 and spread > 0:
        slope = sum((x - mean_size) * (y - mean_time) for x, y in points) / spread
        start = mean_time - slope * mean_size
        if slope >= 0 and start >= 0:
            return start, slope
        if slope < 0:
            return mean_time, 0.0
    return (0.0, sum(times) / total) if total else (mean_time, 0.0)
