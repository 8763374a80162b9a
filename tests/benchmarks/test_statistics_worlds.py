"""A small ``make verify-statistics``: few worlds, so that only large deviations fail."""

from collections import defaultdict

import numpy as np
import pytest

from benchmarks.statistics import intervals, months
from benchmarks.statistics.tally import NO_EFFECT, OF_DOCUMENTS, OVER_TIME, Tally

pytestmark = pytest.mark.long

DESIGNS = (
    "no change, shocks AR(0.5) of models alone",
    "no change, drift of models alone",
    "no change, site break",
    "no change, compressor alone",
    "no change, a regime with other breaks",
    "step, two sources",
    "ramp of 6 months",
    "a seen month",
)


@pytest.fixture(scope="module")
def tallies() -> dict[str, list[Tally]]:
    """Return the tallies of all designs, of one warehouse, by design."""
    found = defaultdict(list)
    for tally in months.measure(DESIGNS, 6):
        found[tally.world].append(tally)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_no_share_is_outside_its_bound(tallies: dict[str, list[Tally]], name: str) -> None:
    rows = tallies[name]
    assert not [tally.row for tally in rows if tally.verdict.startswith("FAILED")]
    found = {tally.figure: tally.share for tally in rows if tally.hits}
    assert found.get("estimated_cutoff, found", 1) >= 0.8
    assert found.get("suspected_contamination, seen", 1) >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("view", ["train_test_gap", "control_adjusted_gap", "ageing"])
def test_intervals_over_time(tallies: dict[str, list[Tally]], view: str) -> None:
    """Errors of half their size would cover the truth in 68 %."""
    rows = [tally for each in tallies.values() for tally in each if tally.figure == view]
    covered = [hit for tally in rows if tally.kind == OVER_TIME for hit in tally.hits]
    covered += [not hit for tally in rows if tally.kind == NO_EFFECT for hit in tally.hits]
    assert len(covered) >= 30
    assert np.mean(covered) >= 0.88


@pytest.mark.slow
def test_intervals_for_other_documents() -> None:
    rows = intervals.measure(["30 documents a month"], 16)
    assert len({tally.figure for tally in rows}) == len(intervals.FIGURES)
    assert not [tally.row for tally in rows if tally.verdict.startswith("FAILED")]
    assert {len(tally.hits) for tally in rows} == {16}
    shares = [tally.share for tally in rows if tally.kind == OF_DOCUMENTS]
    assert 0.9 <= np.mean(shares) <= 0.99
