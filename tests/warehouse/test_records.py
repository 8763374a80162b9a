"""What scoring took lands with the losses, and goes with them; the runs of the canary."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from core.cell_record import CellRecord, Milestone, TokenizerFacts
from core.cells import Cell
from core.corpus import Partition
from core.errors import MalformedInput, SchemaMismatch
from core.month import Month
from core.settings import Settings
from core.storage import Store
from warehouse.land import Landed, open_warehouse

CELL = Cell(
    "org/model", "r1", Partition("news", Month("2024-01")), "digest-1", "default", "scoring-1"
)
TABLES = ("cell_costs", "cell_milestones", "tokenizers")
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
RECORD = CellRecord(
    scored_at=NOON,
    device="cuda: NVIDIA H200",
    dtype="bfloat16",
    batch_tokens=4096,
    context=1024,
    versions={"torch": "2.13.0", "tidemark": "0.1.0"},
    seconds=2.5,
    num_tokens_read=123,
    peak_memory_bytes=2**33,
    energy_joules=None,
    num_lossy_documents=1,
    tokenizer=TokenizerFacts(vocabulary_size=8192, start_token=None, has_byte_tokens=True),
    milestones=(
        Milestone(milestone=10, num_documents=2, nll_nats=3.5, num_chars=60, num_bytes=61),
        Milestone(milestone=30, num_documents=1, nll_nats=4.5, num_chars=90, num_bytes=92),
    ),
)


@pytest.fixture
def land_cell(
    settings: Settings, store: Store, losses: Callable[..., pa.Table]
) -> Callable[..., Landed]:
    """Write a cell's record, if it has one, and land it with the rows given."""

    def land_cell(*rows: dict[str, Any], cell: Cell = CELL, record: CellRecord | None) -> Landed:
        if record is not None:
            store.write_bytes(cell.record_path, record.to_json())
        with open_warehouse(settings) as warehouse:
            return warehouse.land_cell(cell, losses(*rows))

    return land_cell


@pytest.fixture
def other_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def counts(ask: Any) -> list[int]:
    return [ask(f"select count(*) as n, 0 as x, 0 as y from {name}")[0]["n"] for name in TABLES]


@pytest.mark.usefixtures("other_time_zone")
def test_a_record_lands_with_its_cell(land_cell: Any, ask: Any) -> None:
    assert land_cell({}, record=RECORD) == Landed(1, 1)
    [costs] = ask("from cell_costs")
    assert json.loads(costs.pop("versions")) == RECORD.versions
    assert costs == {
        "model": "org/model", "revision": "r1", "source": "news", "month": dt.date(2024, 1, 1),
        "protocol": "default", "scored_at": NOON.replace(tzinfo=None),
        "device": "cuda: NVIDIA H200", "dtype": "bfloat16", "batch_tokens": 4096, "context": 1024,
        "seconds": 2.5, "num_tokens_read": 123, "peak_memory_bytes": 2**33, "energy_joules": None,
        "num_lossy_documents": 1,
    }  # fmt: skip
    assert ask(
        "select model, month, milestone, num_documents, nll_nats, num_chars, num_bytes "
        "from cell_milestones order by milestone"
    ) == [
        {"model": "org/model", "month": dt.date(2024, 1, 1), **milestone.model_dump()}
        for milestone in RECORD.milestones
    ]
    assert RECORD.tokenizer is not None
    assert ask("from tokenizers") == [
        {"model": "org/model", "revision": "r1", **RECORD.tokenizer.model_dump()}
    ]


def test_a_cell_without_a_record_lands_its_losses(land_cell: Any, ask: Any) -> None:
    assert land_cell({}, record=None) == Landed(1, 1)
    assert counts(ask) == [0, 0, 0]


def test_a_compressor_has_neither_tokenizer_nor_milestones(land_cell: Any, ask: Any) -> None:
    land_cell({}, record=RECORD.model_copy(update={"tokenizer": None, "milestones": ()}))
    assert counts(ask) == [1, 0, 0]


def test_a_damaged_record_lands_nothing(
    land_cell: Any, store: Store, ask: Any, settings: Settings
) -> None:
    store.write_bytes(CELL.record_path, RECORD.to_json()[:-20])
    with pytest.raises(MalformedInput, match=r"scoring-1\.json"):
        land_cell({}, record=None)
    assert ask("from landed_cells") == []


def test_what_is_landed_stays_as_it_is(land_cell: Any, ask: Any) -> None:
    land_cell({}, record=RECORD)
    assert land_cell({}, record=RECORD) == Landed(0, 0)
    assert counts(ask) == [1, 2, 1]


def test_a_cell_that_was_scored_again_lands_again(land_cell: Any, ask: Any) -> None:
    """Such as one whose losses the canary has made suspect."""
    land_cell({}, record=RECORD)
    again = RECORD.model_copy(
        update={
            "scored_at": NOON + dt.timedelta(microseconds=1),
            "seconds": 3.0,
            "milestones": RECORD.milestones[:1],
        }
    )
    assert land_cell({"nll_nats": 11.0}, record=again) == Landed(1, 1)
    [row] = ask("select seconds, nll_nats from cell_costs, chunk_losses")
    assert row == {"seconds": 3.0, "nll_nats": 11.0}
    assert counts(ask) == [1, 1, 1]


def test_another_revision_takes_the_records_place(land_cell: Any, ask: Any) -> None:
    land_cell({}, record=RECORD)
    february = dataclasses.replace(CELL, partition=Partition("news", Month("2024-02")))
    land_cell({"month": dt.date(2024, 2, 1)}, cell=february, record=RECORD)
    newer = dataclasses.replace(CELL, revision="r2")
    land_cell({"revision": "r2"}, cell=newer, record=RECORD)
    revisions = "select list(revision order by month) as r, 0, 0 from cell_costs"
    assert ask(revisions)[0]["r"] == ["r2", "r1"]
    assert ask("select revision from tokenizers order by 1") == [
        {"revision": "r1"},
        {"revision": "r2"},
    ]
    newest = dataclasses.replace(february, revision="r2")
    land_cell({"revision": "r2", "month": dt.date(2024, 2, 1)}, cell=newest, record=None)
    assert ask("select revision from tokenizers") == [{"revision": "r2"}]
    assert counts(ask) == [1, 2, 1]


def test_foreign_losses_keep_the_record_unless_they_take_the_place(
    land_cell: Any, land: Any, ask: Any
) -> None:
    land_cell({"document_id": "d0"}, record=RECORD)
    land({"document_id": "d1"})
    assert counts(ask) == [1, 2, 1]
    land({"document_id": "d0", "nll_nats": 99.0}, replace=True)
    assert counts(ask) == [0, 0, 1]
    # The user's replacement stays, as before.
    assert land_cell({"document_id": "d0"}, record=RECORD) == Landed(0, 0)


@pytest.mark.parametrize(("num_documents", "lossy"), [(160, True), (1000, False)])
def test_more_than_one_in_a_thousand_is_lossy(
    land_cell: Any, ask: Any, num_documents: int, lossy: bool
) -> None:
    land_cell(*({"document_id": f"d{i}"} for i in range(num_documents)), record=RECORD)
    [row] = ask("select num_documents, num_lossy_documents, is_lossy from tokenizer_comparison")
    assert row == {
        "num_documents": num_documents, "num_lossy_documents": 1, "is_lossy": lossy,
    }  # fmt: skip
    assert [row["model"] for row in ask("from headline")] == ([] if lossy else ["org/model"])


RUN: dict[str, Any] = {
    "run_at": NOON,
    "device": "cuda: NVIDIA H200",
    "dtype": "bfloat16",
    "versions": {"torch": "2.13.0"},
    "nll_nats": 100.0,
    "expected_nats": 100.0,
    "drift": 0.0,
    "num_tokens": 50,
}


def test_runs_of_the_canary_are_kept_once(settings: Settings, ask: Any) -> None:
    east = dt.timezone(dt.timedelta(hours=9))
    later = {**RUN, "run_at": dt.datetime(2026, 11, 21, 9, tzinfo=east), "drift": float("nan")}
    for run in (RUN, later, RUN):
        with open_warehouse(settings) as warehouse:
            warehouse.add_canary_run(run)
    first, second = ask("from canary_runs order by run_at")
    assert first == {
        **RUN, "run_at": NOON.replace(tzinfo=None), "versions": '{"torch": "2.13.0"}',
    }  # fmt: skip
    assert second["run_at"] == (NOON + dt.timedelta(hours=12)).replace(tzinfo=None)


def test_a_drift_makes_the_losses_suspect(land_cell: Any, settings: Settings, ask: Any) -> None:
    land_cell({}, record=RECORD)
    with open_warehouse(settings) as warehouse:
        warehouse.add_canary_run({**RUN, "run_at": NOON + dt.timedelta(days=1)})
    assert ask("from suspect_cells") == []
    again = RECORD.model_copy(update={"scored_at": NOON + dt.timedelta(days=2)})
    land_cell({}, record=again)
    bad = {**RUN, "run_at": NOON + dt.timedelta(days=3), "drift": float("nan")}
    with open_warehouse(settings) as warehouse:
        warehouse.add_canary_run(bad)
    [suspect] = ask("from suspect_cells")
    assert (suspect["model"], suspect["source"]) == ("org/model", "news")
    assert ask("from headline") == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"run_at": NOON.replace(tzinfo=None)}, "run_at has to be a time with its zone"),
        ({"run_at": "2026-11-20T12:00:00Z"}, "run_at has to be a time with its zone"),
        ({"drift": None, "dtype": None}, "the run lacks dtype, drift"),
        ({"num_tokens": "many"}, "canary_runs: .*many"),
    ],
)
def test_a_run_that_is_none_is_refused(
    settings: Settings, ask: Any, wrong: dict[str, Any], message: str
) -> None:
    with (
        open_warehouse(settings) as warehouse,
        pytest.raises(SchemaMismatch, match=message),
    ):
        warehouse.add_canary_run({**RUN, **wrong})
    assert ask("from canary_runs") == []
