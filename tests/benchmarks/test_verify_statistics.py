import csv
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.statistics import __main__ as verify_statistics
from benchmarks.statistics import intervals
from benchmarks.statistics.intervals import Figure
from benchmarks.statistics.months import COLUMNS, truths
from benchmarks.statistics.panels import designs
from benchmarks.statistics.tally import (
    NEAR_EDGE,
    NO_EFFECT,
    OVER_TIME,
    TRUE_REASON,
    UNTOLD,
    Kind,
    Known,
    Tally,
)
from benchmarks.statistics.worlds import CONTROL, NUM_MONTHS, simulate
from warehouse.database.schema import list_views


@pytest.mark.parametrize(
    ("kind", "hits", "worlds", "verdict"),
    [
        (OVER_TIME, 279, 300, "ok"),
        (OVER_TIME, 294, 300, "conservative"),
        (OVER_TIME, 273, 300, "within chance"),
        (OVER_TIME, 270, 300, "FAILED"),
        (OVER_TIME, 35, 40, "within chance"),
        (OVER_TIME, 33, 40, "FAILED"),
        (OVER_TIME, 0, 0, "FAILED: never told"),
        (NEAR_EDGE, 0, 0, "never told"),
        (NEAR_EDGE, 20, 40, "FAILED"),
        (TRUE_REASON, 25, 25, "ok"),
        (TRUE_REASON, 24, 25, "FAILED"),
        (NO_EFFECT, 18, 300, "ok"),
        (NO_EFFECT, 24, 300, "within chance"),
        (NO_EFFECT, 30, 300, "FAILED"),
        (NO_EFFECT, 0, 0, "never told"),
        (UNTOLD, 1, 300, "FAILED"),
    ],
)
def test_a_share_is_outside_with_its_whole_interval(
    kind: Kind, hits: int, worlds: int, verdict: str
) -> None:
    assert tally(kind, hits, worlds).verdict == verdict


def test_a_known_exception_fails_below_its_own_bound() -> None:
    known = Known(0.8, "few months")
    assert tally(OVER_TIME, 240, 300, known).verdict == "known: few months"
    assert "| ≥ 80 % | known: few months |" in tally(OVER_TIME, 250, 300, known).row
    assert tally(OVER_TIME, 220, 300, known).verdict == "FAILED"
    assert tally(NO_EFFECT, 60, 300, Known(0.2, "few months")).verdict == "known: few months"
    assert tally(NO_EFFECT, 80, 300, Known(0.2, "few months")).verdict == "FAILED"


def tally(kind: Kind, hits: int, worlds: int, known: Known | None = None) -> Tally:
    return Tally("world", "figure", kind, [number < hits for number in range(worlds)], known)


def test_recorded_figures_are_of_views_of_today() -> None:
    rows = csv.DictReader(verify_statistics.SHARES.read_text(encoding="utf-8").splitlines())
    views = {re.split("[., ]", row["figure"].removeprefix("internal."))[0] for row in rows}
    assert views <= set(list_views())


def test_designs_name_figures_that_exist() -> None:
    for name, design in designs().items():
        assert set(design.untold) <= set(COLUMNS), name
        for figure, known in design.known.items():
            assert known.reason, f"{name}, {figure}"


def test_truths_follow_the_design() -> None:
    step = truths(designs()["step, then growth 0.001"])
    assert step["control_adjusted_gap"] == pytest.approx(0.03 + 0.001 * np.arange(1, 19).mean())
    assert step["train_test_gap"] == pytest.approx(step["control_adjusted_gap"])
    assert step["decay_by_horizon"] == pytest.approx(3 + 0.1 * np.arange(1, 13).mean())
    assert truths(designs()["no change, drift 0.003"])["tbi_likelihood"] == 0.003
    assert truths(designs()["a seen month"]) == {}
    before = truths(designs()["cutoff before the window"])
    assert before == {"ageing": 0, "tbi_likelihood": 0}


@pytest.mark.long
def test_wrong_intervals_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = Figure("monthly_loss", "bits_per_byte", lambda world, row: 9.9)
    monkeypatch.setattr(intervals, "FIGURES", (wrong,))
    shares = tmp_path / "simulations.csv"
    monkeypatch.setattr(verify_statistics, "SHARES", shares)
    header = "world,figure,truth,num_worlds,num_right,bound,verdict,commit"
    former = ["step,ageing,truth,2,1,–,ok,c", '"30 documents a month, fresh",f,truth,2,1,–,ok,c']
    shares.write_text("\n".join([header, *former, ""]))
    arguments = ["--worlds", "1", "--designs", "30 documents a month", "--record"]
    assert verify_statistics.main(arguments) == 1
    assert capsys.readouterr().out.count("| FAILED |") == 2  # fresh documents, and pages
    assert shares.read_text().splitlines()[:2] == [header, former[0]]
    assert former[1] not in shares.read_text()
    assert shares.read_text().count(",0,≥ 93 %,FAILED,") == 2


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
