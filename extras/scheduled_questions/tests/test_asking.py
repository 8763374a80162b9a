"""The holes of runs that ask models."""

import datetime as dt
from typing import Any

import pytest

from core.cells.failures import CellFailure
from extras.scheduled_questions.asking import concerns

FORECAST = {"run": "now", "first": "2024-02", "last": "2024-03", "sources": ["manifold"]}
SCYLLA = {"run": "now", "puzzles": None}
ANSWER = "answers/model=m/source={}/month={}/letter-1-2-3"


def failed(run: str, may_pass: bool) -> CellFailure:
    return CellFailure(
        run=run, cell="c", reason="why", error="ModelError", may_pass=may_pass, attempts=1,
        failed_at=dt.datetime(2024, 4, 1, tzinfo=dt.UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stem", "given", "is_hole"),
    [
        (ANSWER.format("manifold", "2024-02"), FORECAST, True),
        (ANSWER.format("manifold", "2024-01"), FORECAST, False),
        (ANSWER.format("kalshi", "2024-02"), FORECAST, False),
        ("answers/model=m/model", FORECAST, True),
        ("puzzles/model=m/puzzle=a/p-1-2", SCYLLA, True),
        ("puzzles/model=m/puzzle=a/p-1-2", {**SCYLLA, "puzzles": ["b"]}, False),
    ],
)
def test_a_lasting_failure_is_a_hole_of_runs_that_ask_for_its_cell(
    stem: str, given: dict[str, Any], is_hole: bool
) -> None:
    """Else a cell that failed once for good makes every later run partial, with an alarm."""
    assert concerns(stem, failed("before", may_pass=False), given) == is_hole
    assert not concerns(stem, failed("before", may_pass=True), given), "it is tried again"
    assert concerns(stem, failed("now", may_pass=True), given)
