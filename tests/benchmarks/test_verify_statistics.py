import sys

import numpy as np
import pytest
from scipy import stats

from benchmarks.statistics import intervals as verify_statistics
from benchmarks.statistics.intervals import Figure, Tally, of_month
from benchmarks.statistics.worlds import CONTROL, NUM_MONTHS, simulate


def tally(covered: int, worlds: int) -> Tally:
    return Tally([True] * covered + [False] * (worlds - covered))


def test_the_coverage_has_an_interval_of_its_own() -> None:
    for covered, worlds in ((950, 1000), (10, 10), (33, 40)):
        oracle = stats.binomtest(covered, worlds).proportion_ci(method="wilson")
        assert tally(covered, worlds).wilson() == pytest.approx((oracle.low, oracle.high), abs=1e-9)


@pytest.mark.parametrize(
    ("covered", "worlds", "continuous", "discrete"),
    [
        (920, 1000, True, True),
        (919, 1000, False, False),
        (980, 1000, True, True),
        (981, 1000, False, True),
        (34, 40, True, True),  # chance explains it
        (33, 40, False, False),
        (40, 40, True, True),
    ],
)
def test_the_contract(covered: int, worlds: int, continuous: bool, discrete: bool) -> None:
    figures = [Figure("v", "c", of_month), Figure("v", "c", of_month, is_discrete=True)]
    kept = [tally(covered, worlds).keeps(figure.bounds) for figure in figures]
    assert kept == [continuous, discrete]


@pytest.mark.long
def test_wrong_intervals_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Figure("monthly_loss", "bits_per_byte", lambda world, row: 9.9)
    monkeypatch.setattr(verify_statistics, "FIGURES", (wrong,))
    monkeypatch.setattr(sys, "argv", ["verify_statistics", "--worlds", "1", "--documents", "3"])
    assert verify_statistics.main() == 1
    assert capsys.readouterr().out.count("OUTSIDE") == 2  # fresh documents, and pages


def test_a_world_is_the_same_beside_others() -> None:
    worlds, losses = simulate([3, 5], 4)
    [alone], apart = simulate([5], 4)
    half = losses.num_rows // 2
    assert losses.slice(half).to_pylist() == apart.to_pylist()
    assert np.array_equal(worlds[1].monthly, alone.monthly)
    assert not np.array_equal(worlds[0].monthly, alone.monthly)


def test_documents_are_drawn_around_the_truth() -> None:
    [world], losses = simulate([1], 2_000)
    columns = {name: losses[name].to_numpy() for name in ("model", "source", "month")}
    for source in ("fresh", "pages"):
        here = (columns["model"] == CONTROL) & (columns["source"] == world.name(source))
        documents = losses.filter(here)
        pages = len(set(documents["document_id"].to_pylist()))
        assert pages == (2_000 if source == "pages" else 2_000 * NUM_MONTHS)
        bits = documents["nll_nats"].to_numpy() / np.log(2)
        truth = world.monthly[2, ("fresh", "pages").index(source)].mean()
        assert bits.sum() / documents["num_bytes"].to_numpy().sum() == pytest.approx(
            truth, abs=0.03
        )
