import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from core.corpus.partition import Seal
from core.run_record import Outcome, RunRecord
from core.settings import Settings
from core.storage.store import Store
from flows.report import report
from flows.score import ScoreOutcome, score_model
from instruments.landing import leave, read_left
from instruments.losses import plan_scoring
from tasks.prefect.storage_keys import using
from tests.flows.support.deployed import begin_run
from warehouse.database.lock import is_writer, may_write

pytestmark = pytest.mark.usefixtures("prefect_api")
RUN = "monthly-1"


@pytest.fixture
def machines(home: Path, tmp_path: Path, seal: Callable[..., Seal]) -> tuple[Settings, Settings]:
    for month in ("2024-01", "2024-02"):
        seal("notes", month, num=5)
    return tuple(  # type: ignore[return-value]
        Settings(home=str(home), work_dir=tmp_path / name, device="cpu") for name in ("gpu", "rest")
    )


def begin(home: Path, model: str) -> RunRecord:
    record = begin_run(Store(str(home)), RUN, ["notes"], [model])
    record.settle("crawl", "notes", Outcome(done=2))
    record.settle("score", model, Outcome(done=2))
    return record


@flow
def score_elsewhere(model: str, settings: Settings) -> ScoreOutcome:
    return score_model(model, ["notes"], None, settings, RUN)


def test_the_report_lands_what_was_scored_elsewhere(
    machines: tuple[Settings, Settings],
    home: Path,
    tiny_model: Path,
    dump: Callable[..., Any],
    tmp_path: Path,
) -> None:
    gpu, rest = machines
    record = begin(home, str(tiny_model))
    outcome = score_elsewhere(str(tiny_model), gpu)
    assert (outcome.done, outcome.landed, outcome.holes) == (2, 0, [])
    assert not is_writer(gpu)  # or the other machine would be refused
    tiny_model.rename(tmp_path / "gone")  # the writer's machine need not have the model
    try:
        with using(rest):
            assert report(run=RUN).holes == []
    finally:
        (tmp_path / "gone").rename(tiny_model)
    result = record.result()
    assert result
    assert (result.cells, result.holes) == (2, ())
    assert is_writer(rest)
    assert not may_write(gpu)

    alone = Settings(home=str(tmp_path / "alone"), device="cpu")
    shutil.copytree(home / "corpus", tmp_path / "alone" / "corpus")
    assert score_elsewhere(str(tiny_model), alone).landed == 2  # its scratch is everybody's
    assert dump(work_dir=rest.work_dir) == dump(tmp_path / "alone")


def test_what_is_left_is_read_back_as_it_was(machines: tuple[Settings, Settings]) -> None:
    gpu, _ = machines
    plan = plan_scoring("control:gzip", ["default"], None, None, gpu)
    assert read_left(RUN, gpu) == []
    leave(RUN, plan.entry, plan.cells, gpu)
    assert read_left(RUN, gpu) == [(plan.entry, plan.cells)]
    [(_, cells)] = read_left(RUN, gpu)
    assert [cell.partition_version for cell in cells] == [1, 1]


def test_a_file_of_others_is_a_hole_and_the_page_is_written(
    machines: tuple[Settings, Settings], home: Path
) -> None:
    _, rest = machines
    record = begin(home, "control:gzip")
    Store(str(home)).write_bytes(f"runs/{RUN}/to-land/control.json", b'{"cells": 7}')
    with using(rest):
        summary = report(run=RUN)
    [hole] = [str(hole) for hole in summary.holes if "to-land/control.json" in str(hole)]
    assert "score the model again" in hole
    assert record.result() is not None
