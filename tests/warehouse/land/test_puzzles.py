import dataclasses
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.cells.puzzles import (
    PuzzleAnswer,
    PuzzleCell,
    PuzzleLikelihood,
    PuzzleRecord,
    Split,
    write_puzzle_cell,
)
from core.errors import SchemaMismatch, StorageError
from core.settings import Settings
from core.storage.store import Store
from warehouse.land.puzzles import NUM_REPLICATES, land_puzzle_cells

pytestmark = pytest.mark.usefixtures("kept_open")

ANCHORS = (3, 4, 3, 3, 4)
Statuses = Mapping[Split, Sequence[str]]
USUAL: Statuses = {
    "id": ["correct", "correct", "wrong", "unparsed"],
    "ood": ["correct", "truncated", "wrong", "error"],
}


@pytest.fixture
def land(settings: Settings) -> Callable[..., int]:
    return lambda *cells: land_puzzle_cells(settings, cells)


def make(model: str = "m", puzzle: str = "sort_numbers", **changes: Any) -> PuzzleCell:
    usual = {"revision": "r1", "protocol": "cot", "generation": "0" * 8}
    return PuzzleCell(model=model, puzzle=puzzle, **{**usual, **changes})


def write(
    store: Store,
    cell: PuzzleCell,
    statuses: Statuses = USUAL,
    level: int | None = 2,
    shown: str = "1 2",
) -> PuzzleCell:
    answers = [
        PuzzleAnswer(
            split, item, shown, "", None, status, status,  # type: ignore[arg-type]
            "unparsed" if status == "truncated" else status,  # type: ignore[arg-type]
            num_tokens=3, reason="timeout" if status == "error" else None,
        )
        for split, each in statuses.items()
        for item, status in enumerate(each)
    ]  # fmt: skip
    num_items = max((len(each) for each in statuses.values()), default=4)
    status = "complete" if answers else "insufficient_id_data"
    record = PuzzleRecord(status, level, "O(N)", 9, 80, 40, 20, 2, num_items, 0, None, ANCHORS)  # type: ignore[arg-type]
    write_puzzle_cell(store, cell, record, answers)
    return cell


def test_a_cell_lands_once(land: Any, store: Store, peek: Any) -> None:
    cells = [write(store, make()), write(store, make(puzzle="tsp"), {}, level=5)]
    assert [land(*cells) for _ in range(2)] == [2, 0]
    rows = peek("from internal.scylla_cells order by puzzle")
    assert [(r["puzzle"], r["status"], r["level"], r["num_errors"]) for r in rows] == [
        ("sort_numbers", "complete", 2, 1), ("tsp", "insufficient_id_data", 5, 0),
    ]  # fmt: skip
    assert (rows[0]["num_id_examples"], rows[0]["answer_cell"]) == (20, cells[0].path)
    answers = peek("from internal.scylla_answers order by split, item")
    assert [row["status"] for row in answers] == [*USUAL["id"], *USUAL["ood"]]
    assert answers[-1]["reason"] == "timeout"
    assert peek("select model from models") == [{"model": "m"}]


def test_replicates_follow_from_the_cell_alone(land: Any, store: Store, peek: Any) -> None:
    cells = [write(store, make(name)) for name in ("a", "b")]
    order = "from internal.scylla_replicates order by all"
    land(*cells[:1])
    alone = peek(order)
    assert len(alone) == 2 * NUM_REPLICATES  # strict and lenient; no data of near magnitude
    # The item with an error has no pair: three are drawn, of which two and one are right.
    assert {round(row["id_accuracy"] * 3, 9) for row in alone} == {0, 1, 2, 3}
    means = [sum(r[name] for r in alone) / len(alone) for name in ("id_accuracy", "ood_accuracy")]
    assert means == pytest.approx([2 / 3, 1 / 3], abs=0.05)
    assert all(row["id_accuracy"] >= row["ood_accuracy"] for row in alone), "pairs are together"
    land(*cells[::-1])
    rows = peek(order)
    assert [row for row in rows if row["model"] == "a"] == alone
    others = [row["id_accuracy"] for row in rows if row["model"] == "b"]
    assert others != [row["id_accuracy"] for row in alone]


def test_what_is_asked_again_takes_the_former_place(land: Any, store: Store, peek: Any) -> None:
    cell, other = write(store, make()), write(store, make(protocol="other"))
    land(cell, other)
    write(store, cell, {**USUAL, "ood": ["correct", "truncated", "wrong", "correct"]})
    assert land(cell, other) == 1
    rows = peek("from internal.scylla_answers where protocol = 'cot' and item = 3")
    assert {row["status"] for row in rows} == {"correct", "unparsed"}
    newer = write(store, make(revision="r2"), {})
    assert land(newer) == 1
    assert land(cell, newer) == 2, "the last one takes the place"
    assert len(peek("from internal.scylla_answers")) == 8, "of the other protocol"
    assert peek("from internal.scylla_replicates where protocol = 'cot'") == []


def test_damage_is_found_and_what_came_before_stays(land: Any, store: Store, peek: Any) -> None:
    sound, torn, lost = (write(store, make(puzzle=name)) for name in ("a", "b", "c"))
    content = store.read_bytes(torn.path)
    store.write_bytes(torn.path, content[:-9])
    with pytest.raises(
        StorageError,
        match=r"(?s)is damaged.*move .*json out of the data root and run `tidemark scyl",
    ):
        land(sound, torn)
    assert [row["puzzle"] for row in peek("from internal.scylla_cells")] == ["a"]
    store.delete(lost.path)
    with pytest.raises(StorageError, match=r"parquet is missing; bring it back"):
        land(lost)
    with pytest.raises(StorageError, match=r"json is missing.*not done"):
        land(make(puzzle="never"))


@pytest.mark.parametrize(
    ("statuses", "message"),
    [
        (
            {**USUAL, "ood": ["correct", "perhaps", "wrong", "wrong"]},
            "row 5: status must be one of correct, .*split='ood', item=1, status='perhaps'",
        ),
        ({**USUAL, "far": ["correct"] * 4}, "split must be one of id, ood, ood_near"),
        ({"id": ["correct"] * 2}, "split ood has 0 items; expected 0 to 1"),
        ({**USUAL, "ood_near": ["correct"]}, "split ood_near has 1 items; expected 0 to 3"),
    ],
)
def test_rows_that_are_not_sane_are_not_written(store: Store, statuses: Any, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        write(store, make(), statuses)
    assert not store.exists(make().path)


def test_each_verdict_of_an_answer_is_checked(store: Store) -> None:
    usual = PuzzleAnswer("id", 0, "1 2", "", None, "correct", "correct", "correct", num_tokens=3)
    other = dataclasses.replace(usual, split="ood")
    record = PuzzleRecord("complete", 2, "O(N)", 9, 80, 40, 20, 2, 1, 0, None, ANCHORS)
    for changes, message in (
        ({"lenient_status": "perhaps"}, "lenient_status must be one of"),
        ({"paper_status": "truncated"}, "paper_status must be one of"),
        ({"lenient_status": "error"}, "must be error where status is"),
        ({"paper_status": "error"}, "must be error where status is"),
        ({"num_tokens": -1}, "num_tokens must be >= 0"),
    ):
        answers = [dataclasses.replace(usual, **changes), other]
        with pytest.raises(SchemaMismatch, match=message):
            write_puzzle_cell(store, make(), record, answers)


def test_rows_are_checked_again_before_they_land(land: Any, store: Store, peek: Any) -> None:
    """As of a cell that another version wrote: its digest is right, and a verdict is not known."""
    cell = write(store, make())
    rows = pq.read_table(io.BytesIO(store.read_bytes(cell.path)))
    place = rows.column_names.index("status")
    rows = rows.set_column(place, "status", pa.array(["perhaps"] * rows.num_rows))
    buffer = io.BytesIO()
    pq.write_table(rows, buffer)
    store.write_bytes(cell.path, buffer.getvalue())
    document = json.loads(store.read_bytes(cell.record_path))
    document["answers_digest"] = hashlib.sha256(buffer.getvalue()).hexdigest()
    store.write_bytes(cell.record_path, json.dumps(document).encode())
    with pytest.raises(SchemaMismatch, match="row 0: status must be one of"):
        land(cell)
    assert peek("from internal.scylla_cells") == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_items": 5}, "split id has 4 items; expected 0 to 4, each once"),
        ({"num_items": 3}, "split id has 4 items; expected 0 to 2"),
        ({"level": 6}, "(?s)json is damaged.*level.*less than or equal to 5"),
        ({"status": "done"}, "(?s)json is damaged.*status.*'complete'"),
        ({"status": "insufficient_id_data"}, "expected answers_digest where a cell is complete"),
        ({"num_anchors": [1, 2]}, "(?s)json is damaged.*num_anchors"),
    ],
)
def test_records_that_contradict_their_answers_are_refused(
    land: Any, store: Store, changes: dict[str, Any], message: str
) -> None:
    cell = write(store, make())
    document = json.loads(store.read_bytes(cell.record_path))
    store.write_bytes(cell.record_path, json.dumps({**document, **changes}).encode())
    with pytest.raises((SchemaMismatch, StorageError), match=message):
        land(cell)


@pytest.mark.parametrize("content", [b"[]", b"7", b"{}", b"{"])
def test_a_record_of_another_form_is_damaged(land: Any, store: Store, content: bytes) -> None:
    cell = write(store, make())
    store.write_bytes(cell.record_path, content)
    with pytest.raises(StorageError, match=r"(?s)json is damaged"):
        land(cell)


def test_answers_of_another_cell_are_refused(land: Any, store: Store) -> None:
    cell, other = write(store, make()), write(store, make(revision="r2"))
    for path in ("path", "record_path"):
        store.write_bytes(getattr(cell, path), store.read_bytes(getattr(other, path)))
    with pytest.raises(StorageError, match="revision is r2; expected r1"):
        land(cell)


def test_a_row_of_a_cell_is_all_of_its_record(land: Any, peek: Any) -> None:
    land()
    names = [row["column_name"] for row in peek("describe internal.scylla_cells")]
    fields = [field.name for field in dataclasses.fields(PuzzleRecord)]
    assert [name for name in names if name in fields] == fields


def write_likelihoods(store: Store, nats: Sequence[tuple[float, ...] | None]) -> PuzzleCell:
    cell = make(protocol="mixed-2-likelihood-2")
    rows = [
        PuzzleLikelihood(split, item, "1 2", 1, "3", each, 7.0, 5, None if each else "too_long")
        for split in ("id", "ood")
        for item, each in enumerate(nats)
    ]
    record = PuzzleRecord("complete", 2, "O(N)", 9, 80, 40, 20, 2, len(nats), 0, None, ANCHORS)
    write_puzzle_cell(store, cell, record, rows)
    return cell


def test_likelihoods_land_once_and_are_no_answers(land: Any, store: Store, peek: Any) -> None:
    cells = [write_likelihoods(store, [(0.5, 0.25), None])]
    assert [land(*cells) for _ in range(2)] == [1, 0]
    rows = peek("from internal.scylla_likelihoods order by split, item")
    assert [(r["split"], r["item"], r["token_nats"], r["reason"]) for r in rows] == [
        (split, item, nats, reason)
        for split in ("id", "ood")
        for item, nats, reason in [(0, [0.5, 0.25], None), (1, None, "too_long")]
    ]
    assert {(r["level"], r["complexity"]) for r in rows} == {(2, "O(N)")}
    for table in ("cells", "answers", "replicates"):
        assert peek(f"from internal.scylla_{table}") == []
    assert peek("select model from models") == [{"model": "m"}]
    write_likelihoods(store, [(0.75,), (1.5,)])
    assert land(*cells) == 1
    assert [r["token_nats"] for r in peek("from internal.scylla_likelihoods where split = 'id'")]
    assert len(peek("from internal.scylla_likelihoods")) == 4


@pytest.mark.parametrize("nats", [(0.25, -0.5), (), (float("inf"),), (float("nan"),)])
def test_impossible_likelihoods_are_not_written(nats: tuple[float, ...], store: Store) -> None:
    with pytest.raises(SchemaMismatch, match="row 1: token_nats must be finite numbers"):
        write_likelihoods(store, [(0.5,), nats, None])


def test_steps_of_a_probe_are_its_k(land: Any, store: Store, peek: Any) -> None:
    shown = "$l$ = 31 29 366, $k$ = 2"
    cells = [
        write(store, make(puzzle="add_days"), level=None, shown=shown),
        write(store, make(puzzle="two_sum"), level=2, shown=shown),
        write(store, make(puzzle="plain"), level=None),
    ]
    assert land(*cells) == 3
    rows = peek("select puzzle, steps, count(*) as num from internal.scylla_steps group by all")
    assert rows == [{"puzzle": "add_days", "steps": 2, "num": 8}]
    write(store, make(puzzle="add_days"), {"id": ["correct"], "ood": ["wrong"]}, None, shown)
    assert land(*cells[:1]) == 1
    assert len(peek("from internal.scylla_steps")) == 2
