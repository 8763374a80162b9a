"""Landing of models' answers to puzzles, with the bootstrap replicates of their accuracies."""

from __future__ import annotations

import dataclasses
import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import SchemaMismatch, StorageError
from core.puzzles import CellStatus, PuzzleCell, PuzzleRecord, read_puzzle_record
from core.schemas import PUZZLE_ANSWERS, validate
from core.settings import Settings
from core.storage import Store
from warehouse.keyed_rows import first_row, run
from warehouse.writer import connected, locked, transaction

NUM_REPLICATES = 400
_RULES = {"strict": "status", "lenient": "lenient_status"}
_CELLS = pa.schema(
    [(name, pa.string()) for name in ("model", "revision", "puzzle", "protocol", "status")]
    + [("level", pa.int32()), ("complexity", pa.string())]
    + [
        (name, pa.int32())
        for name in (
            "num_completions", "num_id_elements", "num_distinct_elements", "num_id_examples",
            "num_repaired", "num_items", "num_errors",
        )
    ]
    + [("answers_digest", pa.string()), ("answer_cell", pa.string())]
    + [("num_anchors", pa.list_(pa.int32()))]
)  # fmt: skip
_REPLICATES = pa.schema(
    [(name, pa.string()) for name in ("model", "puzzle", "protocol", "ood_split", "rules")]
    + [("replicate", pa.int16()), ("id_accuracy", pa.float64()), ("ood_accuracy", pa.float64())]
)


def land_own_puzzles(settings: Settings, cells: Sequence[PuzzleCell]) -> int:
    """Land cells of answers to puzzles, each in a transaction; return how many landed.

    A cell that is landed just so is passed over: its record is the same, and with it the digest
    of its answers. Another takes the place of what was landed of its model, puzzle and protocol.

    Args:
        settings: say where data root and warehouse are.
        cells: whose records are written, those of too few inputs included.

    Raises:
        StorageError: a file is missing or damaged; what came before has landed.
        SchemaMismatch: a row or a record is not sane; what came before has landed.
    """
    store = Store(settings.home)
    with locked(settings), connected(settings) as connection:
        return sum(_land(connection, store, cell) for cell in cells)


def _land(connection: duckdb.DuckDBPyConnection, store: Store, cell: PuzzleCell) -> bool:
    """Land one cell; return whether it was not landed just so."""
    record = read_puzzle_record(store, cell)
    if record is None:
        raise StorageError(
            f"{store.url(cell.record_path)} is missing, so {cell} is not done; run "
            "`tidemark scylla run` again"
        )
    _require_sound_record(store, cell, record)
    with _registered(connection, "puzzle_to_land", _row_of(cell, record)):
        if run(connection, "find_landed_puzzle"):
            return False
        answers = _read(store, cell, record)
        whose = {"model": cell.model, "puzzle": cell.puzzle, "protocol": cell.protocol}
        with _registered(connection, "puzzle_answers_to_land", answers):
            _require_sound_answers(connection, store, cell, record)
            with (
                _registered(connection, "puzzle_replicates_to_land", resample(cell, answers)),
                transaction(connection, f"land {cell}"),
            ):
                for table in ("cells", "answers", "replicates"):
                    run(connection, f"delete_puzzle_{table}", whose)
                    run(connection, f"insert_puzzle_{table}")
                run(connection, "name_puzzled_models")
    return True


def resample(cell: PuzzleCell, answers: pa.Table) -> pa.Table:
    """Return the rows of ``scylla_replicates`` of a cell.

    Item i of both splits is drawn together, with replacement, as often as there are items; those
    of which either has no answer (an error) are left out before. The draws follow from the cell's
    name alone, so that both rules and both kinds of data out of distribution are compared on the
    same items. Of PCG64 the raw stream is used, which is the same in every version of numpy.

    Args:
        cell: whose answers they are.
        answers: rows of PUZZLE_ANSWERS.
    """
    rows: list[pa.Table] = []
    for ood_split in ("ood", "ood_near"):
        for rules, column in _RULES.items():
            right = [_right(answers, split, column) for split in ("id", ood_split)]
            if not len(right[0]) == len(right[1]) > 0:
                continue
            pairs = np.stack(right, axis=1)
            pairs = pairs[~np.isnan(pairs).any(axis=1)]
            if not len(pairs):
                continue
            drawn = pairs[_draw(cell, len(pairs))].mean(axis=1)
            names = [cell.model, cell.puzzle, cell.protocol, ood_split, rules]
            columns = [pa.repeat(name, NUM_REPLICATES) for name in names]
            numbers = pa.array(range(1, NUM_REPLICATES + 1), pa.int16())
            columns += [numbers, pa.array(drawn[:, 0]), pa.array(drawn[:, 1])]
            rows.append(pa.table(columns, schema=_REPLICATES))
    return pa.concat_tables([_REPLICATES.empty_table(), *rows])


def _right(answers: pa.Table, split: str, column: str) -> np.ndarray:
    """Return 1 for every right item of a split, in order, 0 for another, NaN for an error."""
    of_split = answers.filter(pc.equal(answers["split"], split)).sort_by("item")
    status = of_split[column].to_numpy(zero_copy_only=False)
    right: np.ndarray = np.where(status == "error", np.nan, status == "correct")
    return right


def _draw(cell: PuzzleCell, num_items: int) -> np.ndarray:
    """Return which items each replicate has, one row a replicate."""
    name = "\0".join((cell.model, cell.puzzle, cell.protocol))
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")
    raw = np.random.PCG64(seed).random_raw(NUM_REPLICATES * num_items)
    drawn: np.ndarray = (raw % num_items).reshape(NUM_REPLICATES, num_items)
    return drawn


def _row_of(cell: PuzzleCell, record: PuzzleRecord) -> pa.Table:
    row = dataclasses.asdict(cell) | dataclasses.asdict(record) | {"answer_cell": cell.path}
    return pa.Table.from_pylist([row], schema=_CELLS)


def _read(store: Store, cell: PuzzleCell, record: PuzzleRecord) -> pa.Table:
    if record.answers_digest is None:
        return PUZZLE_ANSWERS.empty_table()
    remedy = f"delete {cell.record_path} and run `tidemark scylla run` again"
    if not store.exists(cell.path):
        raise StorageError(f"{store.url(cell.path)} is missing; {remedy}")
    content = store.read_bytes(cell.path)
    if hashlib.sha256(content).hexdigest() != record.answers_digest:
        raise StorageError(
            f"{store.url(cell.path)} is damaged: its SHA-256 is not the one that its record "
            f"names, {record.answers_digest}; {remedy}"
        )
    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowInvalid, OSError) as error:
        raise StorageError(f"{store.url(cell.path)} is damaged ({error}); {remedy}") from error
    return validate(table, PUZZLE_ANSWERS, cell.path)


def _require_sound_record(store: Store, cell: PuzzleCell, record: PuzzleRecord) -> None:
    """Refuse a record that contradicts itself.

    Raises:
        SchemaMismatch: what it says, and what was expected.
    """
    problem = None
    if record.status not in get_args(CellStatus):
        problem = f"status is {record.status!r}; expected one of {', '.join(get_args(CellStatus))}"
    elif record.level is not None and record.level not in range(1, 6):
        problem = f"level is {record.level}; expected 1 to 5, or none for a probe"
    elif (record.status == "complete") != (record.answers_digest is not None):
        problem = (
            f"status is {record.status} with answers_digest {record.answers_digest}; expected "
            "answers where a cell is complete, and only there"
        )
    elif len(record.num_anchors) != 5:
        problem = f"num_anchors has {len(record.num_anchors)} numbers; expected 5, one a level"
    if problem:
        raise SchemaMismatch(f"{store.url(cell.record_path)}: {problem}")


def _require_sound_answers(
    connection: duckdb.DuckDBPyConnection, store: Store, cell: PuzzleCell, record: PuzzleRecord
) -> None:
    """Refuse what is not a cell's answers, all splits of as many items.

    Raises:
        SchemaMismatch: the first such row, what it holds and what was expected.
    """
    names = {name: getattr(cell, name) for name in ("model", "revision", "puzzle", "protocol")}
    given = {**names, "num_items": record.num_items, "is_complete": record.status == "complete"}
    if bad := first_row(connection, "find_bad_puzzle_answers", given):
        raise SchemaMismatch(
            f"{store.url(cell.path)}, row {bad['row_number']}: {bad['column_name']} is "
            f"{bad['given']}; expected {bad['expected']}. Nothing of the cell was landed"
        )


@contextmanager
def _registered(
    connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table
) -> Iterator[None]:
    connection.register(name, table)
    try:
        yield
    finally:
        connection.unregister(name)
