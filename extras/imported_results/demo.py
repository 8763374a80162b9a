"""Results that the demo lands."""

from __future__ import annotations

from core.settings import Settings
from extras.imported_results.figures import SHIPPED_SCORES, land_shipped_rates, load_benchmarks


def land_for_demo(settings: Settings) -> None:
    """Land the rates on Wikipedia and the benchmark scores of Li et al. (2024)."""
    land_shipped_rates(settings)
    load_benchmarks(settings, SHIPPED_SCORES)
