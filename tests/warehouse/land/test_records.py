import dataclasses
import datetime as dt
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.cells.canary import CanaryRecord
from core.cells.losses import Cell
from core.cells.record import CellRecord
from core.corpus.partition import Partition
from core.errors import MalformedInput
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from tests.warehouse.cells import CELL, NOON, RECORD, land_scored
from warehouse.land.losses import Landed, open_warehouse

pytestmark = pytest.mark.usefixtures("kept_open")

TABLES = ("cell_costs", "cell_milestones", "tokenizers", "byte_class_losses")


@pytest.fixture
def land_cell(settings: Settings, store: Store, losses: Any) -> Callable[..., Landed]:
    def land_cell(*rows: dict[str, Any], cell: Cell = CELL, record: CellRecord | None) -> Landed:
        if record is not None:
            store.write_bytes(cell.record_path, record.to_json())
        with open_warehouse(settings) as warehouse:
            return land_scored(warehouse, store, cell, losses(*rows))

    return land_cell


@pytest.fixture
def other_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def counts(peek: Any) -> list[int]:
    return [peek(f"select count(*) as n from {name}")[0]["n"] for name in TABLES]


@pytest.mark.usefixtures("other_time_zone")
def test_a_record_lands_with_its_cell(land_cell: Any, peek: Any) -> None:
    assert land_cell({}, record=RECORD) == Landed(1, 1)
    [costs] = peek("from cell_costs")
    assert json.loads(costs.pop("versions")) == RECORD.versions
    assert costs == {
        "model": "org/model", "revision": "r1", "source": "news", "month": dt.date(2024, 1, 1),
        "protocol": "default", "scored_at": NOON.replace(tzinfo=None),
        "device": "cuda: NVIDIA H200", "dtype": "bfloat16", "batch_tokens": 4096, "context": 1024,
        "seconds": 2.5, "num_tokens_read": 123, "peak_memory_bytes": 2**33, "energy_joules": None,
        "num_lossy_documents": 1, "active_parameters": 10**9, "matmul_flops": 6e14,
        "copied_from": None,
    }  # fmt: skip
    assert peek(
        "select model, month, milestone, num_documents, nll_nats, num_chars, num_bytes "
        "from cell_milestones order by milestone"
    ) == [
        {"model": "org/model", "month": dt.date(2024, 1, 1), **milestone.model_dump()}
        for milestone in RECORD.milestones
    ]
    assert peek(
        "select model, month, byte_class, nll_nats, num_bytes from byte_class_losses "
        "order by byte_class"
    ) == [
        {"model": "org/model", "month": dt.date(2024, 1, 1), **each.model_dump()}
        for each in RECORD.byte_classes
    ]
    assert RECORD.tokenizer is not None
    assert peek("from tokenizers") == [
        {"model": "org/model", "revision": "r1", **RECORD.tokenizer.model_dump()}
    ]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (RECORD, [1, 2, 1, 2]),
        (
            RECORD.model_copy(update={"tokenizer": None, "milestones": (), "byte_classes": ()}),
            [1, 0, 0, 0],
        ),
        (None, [0, 0, 0, 0]),
    ],
    ids=["model", "compressor", "none"],
)
def test_a_cell_lands_once_with_what_its_record_has(
    land_cell: Any, peek: Any, record: Any, expected: list[int]
) -> None:
    assert land_cell({}, record=record) == Landed(1, 1)
    assert land_cell({}, record=record) == Landed(0, 0)
    assert counts(peek) == expected


def test_a_damaged_record_lands_nothing(
    land_cell: Any, store: Store, peek: Any, settings: Settings
) -> None:
    store.write_bytes(CELL.record_path, RECORD.to_json()[:-20])
    with pytest.raises(MalformedInput, match=r"scoring-1\.json"):
        land_cell({}, record=None)
    assert peek("from internal.landed_cells") == []


def test_a_cell_that_was_scored_again_lands_again(land_cell: Any, peek: Any) -> None:
    land_cell({}, record=RECORD)
    later = {"scored_at": NOON + dt.timedelta(microseconds=1), "seconds": 3.0}
    again = RECORD.model_copy(update={**later, "milestones": RECORD.milestones[:1]})
    again = again.model_copy(update={"byte_classes": RECORD.byte_classes[1:]})
    assert land_cell({"nll_nats": 11.0}, record=again) == Landed(1, 1)
    [row] = peek("select seconds, nll_nats from cell_costs, chunk_losses")
    assert row == {"seconds": 3.0, "nll_nats": 11.0}
    assert counts(peek) == [1, 1, 1, 1]


@pytest.mark.long
def test_another_revision_takes_the_records_place(land_cell: Any, peek: Any) -> None:
    land_cell({}, record=RECORD)
    february = dataclasses.replace(CELL, partition=Partition("news", Month("2024-02")))
    land_cell({"month": dt.date(2024, 2, 1)}, cell=february, record=RECORD)
    newer = dataclasses.replace(CELL, revision="r2")
    land_cell({"revision": "r2"}, cell=newer, record=RECORD)
    for table, order, revisions in (("cell_costs", "month", "r2 r1"), ("tokenizers", 1, "r1 r2")):
        rows = peek(f"select revision from {table} order by {order}")
        assert [row["revision"] for row in rows] == revisions.split()
    newest = dataclasses.replace(february, revision="r2")
    land_cell({"revision": "r2", "month": dt.date(2024, 2, 1)}, cell=newest, record=None)
    assert peek("select revision from tokenizers") == [{"revision": "r2"}]
    assert counts(peek) == [1, 2, 1, 2]


def test_foreign_losses_keep_the_record_unless_they_take_the_place(
    land_cell: Any, land: Any, peek: Any
) -> None:
    land_cell({"document_id": "d0"}, record=RECORD)
    land({"document_id": "d1"})
    assert counts(peek) == [1, 2, 1, 2]
    land({"document_id": "d0", "nll_nats": 99.0}, replace=True)
    assert counts(peek) == [0, 0, 1, 0]
    assert land_cell({"document_id": "d0"}, record=RECORD) == Landed(0, 0)


RUN = CanaryRecord(
    run_at=NOON,
    device="cuda: NVIDIA H200",
    dtype="bfloat16",
    num_tokens=50,
    versions={"torch": "2.13.0"},
    nll_nats=100.0,
    expected_nats=100.0,
    drift=0.0,
)


def test_runs_of_the_canary_are_kept_once(settings: Settings, peek: Any) -> None:
    east = dt.timezone(dt.timedelta(hours=9))
    moment = dt.datetime(2026, 11, 21, 9, tzinfo=east)
    later = RUN.model_copy(update={"run_at": moment, "drift": float("nan")})
    for runs in ([RUN], [RUN, later], []):
        with open_warehouse(settings) as warehouse:
            warehouse.add_canary_runs(runs)
    first, second = peek("from canary_runs order by run_at")
    assert first == {
        **dict(RUN), "run_at": NOON.replace(tzinfo=None), "versions": '{"torch": "2.13.0"}',
    }  # fmt: skip
    assert second["run_at"] == (NOON + dt.timedelta(hours=12)).replace(tzinfo=None)
