"""The coverage of the views' intervals, by simulation."""

from __future__ import annotations

import numpy as np

from benchmarks.verify_statistics import FIGURES, measure


def test_intervals_hold_what_they_promise() -> None:
    """``make verify-statistics`` in small: what fails here is far off."""
    tallies = measure(range(40), num_documents=30)
    assert {figure for figure, _ in tallies} == set(FIGURES)
    assert {design for _, design in tallies} == {"fresh", "pages", "both"}
    for (figure, design), tally in tallies.items():
        # A cutoff counts where one was found.
        assert len(tally.covered) == 40 or figure.view == "estimated_cutoff"
        assert tally.keeps(figure.bounds), f"{figure.view}.{figure.column}, {design}"
    coverages = [tally.coverage for (figure, _), tally in tallies.items() if not figure.is_discrete]
    assert 0.92 <= np.mean(coverages) <= 0.98
