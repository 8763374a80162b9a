"""Landing of models' answers to puzzles, with the bootstrap replicates of their accuracies."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.cells.puzzles import CellStatus, PuzzleCell, PuzzleRecord, read_puzzle_record
from core.errors import SchemaMismatch, StorageError
from core.schemas.tables import PUZZLE_ANSWERS, PUZZLE_LIKELIHOODS
from core.schemas.validation import validate
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, locked, transaction
from warehouse.land.landed import read_parquet

NUM_REPLICATES = 400
_RULES = {"strict": "status", "lenient": "lenient_status"}
_KEY = ("model", "puzzle", "protocol")
_OF_LIKELIHOODS = ("level", "complexity", "answers_digest")


def land_puzzle_cells(settings: Settings, cells: Sequence[PuzzleCell]) -> int:
    """Land cells of answers to puzzles; return the number of landed cells.

    Each cell lands in one transaction. A cell that has landed with the same record is skipped; the
    record contains the digest of the answers. Any other cell replaces the landed rows of its model,
    puzzle and protocol.

    Raises:
        StorageError: a file is missing or damaged; all earlier cells have landed.
        SchemaMismatch: a row or a record is invalid; all earlier cells have landed.
    """
    store = Store(settings.home)
    with locked(settings), connected(settings) as connection:
        statements = Statements(connection)
        columns = statements.columns("scylla_cells")
        num_landed = 0
        for cell in cells:
            record = _read_record(store, cell)
            has_likelihoods = is_likelihood(cell.protocol)
            table = "scylla_likelihoods" if has_likelihoods else "scylla_cells"
            land = _land_likelihoods if has_likelihoods else _land_answers
            if not statements.has(table, _facts(cell, record, columns)):
                num_landed += land(statements, store, cell, record)
        return num_landed


def is_likelihood(protocol: str) -> bool:
    """Return True if cells of a protocol have likelihoods in place of answers."""
    return "-likelihood" in protocol


def _facts(cell: PuzzleCell, record: PuzzleRecord, columns: pa.Schema) -> dict[str, object]:
    """Return the values of the columns by which a cell is known as landed."""
    if is_likelihood(cell.protocol):
        return {name: getattr(cell, name) for name in _KEY} | _facts_of_likelihoods(record)
    [row] = _row_of(cell, record, columns).to_pylist()
    return dict(row)


def _facts_of_likelihoods(record: PuzzleRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in _OF_LIKELIHOODS}


def _row_of(cell: PuzzleCell, record: PuzzleRecord, columns: pa.Schema) -> pa.Table:
    """Return the row of a cell in table ``scylla_cells``, which has the columns."""
    fields = dataclasses.asdict(cell) | dataclasses.asdict(record) | {"answer_cell": cell.path}
    return pa.Table.from_pylist([fields], schema=columns)


def _land_answers(
    statements: Statements, store: Store, cell: PuzzleCell, record: PuzzleRecord
) -> int:
    """Land the answers of a cell; return 1."""
    key = {name: getattr(cell, name) for name in _KEY}
    answers = _read(store, cell, record)
    columns = statements.columns("scylla_answers").names
    with statements.given(
        puzzle_to_land=_row_of(cell, record, statements.columns("scylla_cells")),
        puzzle_rows_to_land=answers,
        answers_of_puzzle=answers.select(columns),
    ):
        facts = {"num_items": record.num_items, "is_complete": record.status == "complete"}
        _require_sound(statements, store, cell, record, "answers", facts)
        statements.run("count_puzzle_steps")
        replicates = resample(cell, answers, statements.columns("scylla_replicates"))
        with (
            statements.given(puzzle_replicates=replicates),
            transaction(statements.connection, f"land {cell}"),
        ):
            statements.replace("scylla_cells", key, "puzzle_to_land")
            statements.replace("scylla_answers", key, "answers_of_puzzle")
            statements.replace("scylla_replicates", key, "puzzle_replicates")
            statements.replace("scylla_steps", key, "puzzle_steps")
            statements.add_names("models", "scylla_cells")
    return 1


def _land_likelihoods(
    statements: Statements, store: Store, cell: PuzzleCell, record: PuzzleRecord
) -> int:
    """Land the likelihoods of a cell and return 1; return 0 if it has none."""
    if record.answers_digest is None:
        return 0
    key = {name: getattr(cell, name) for name in _KEY}
    read = _read(store, cell, record, PUZZLE_LIKELIHOODS)
    columns = statements.columns("scylla_likelihoods")
    rows = read.select([name for name in columns.names if name in read.column_names])
    for name, value in _facts_of_likelihoods(record).items():
        values = pa.repeat(pa.scalar(value, columns.field(name).type), read.num_rows)
        rows = rows.append_column(name, values)
    with statements.given(puzzle_rows_to_land=read, likelihoods_of_puzzle=rows):
        _require_sound(statements, store, cell, record, "likelihoods")
        with transaction(statements.connection, f"land {cell}"):
            statements.replace("scylla_likelihoods", key, "likelihoods_of_puzzle")
            statements.add_names("models", "scylla_likelihoods")
    return 1


def resample(cell: PuzzleCell, answers: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return a cell's bootstrap replicates as rows of ``scylla_replicates``.

    Item i of split ``id`` and item i of the OOD split form a pair. Pairs with an error are left
    out. A replicate draws n of the n pairs, with replacement. The draws depend only on the cell's
    name, so they are equal for all parsing rules and splits. PCG64's raw integers, which they use,
    are equal in all versions of numpy.
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
            arrays = [pa.repeat(name, NUM_REPLICATES) for name in names]
            numbers = pa.array(range(1, NUM_REPLICATES + 1), pa.int16())
            arrays += [numbers, pa.array(drawn[:, 0]), pa.array(drawn[:, 1])]
            rows.append(pa.table(arrays, schema=columns))
    return pa.concat_tables([columns.empty_table(), *rows])


def _right(answers: pa.Table, split: str, column: str) -> np.ndarray:
    """Return, by item of a split: 1 for a right answer, 0 for a wrong answer, NaN for an error."""
    of_split = answers.filter(pc.equal(answers["split"], split)).sort_by("item")
    status = of_split[column].to_numpy(zero_copy_only=False)
    right: np.ndarray = np.where(status == "error", np.nan, status == "correct")
    return right


def _draw(cell: PuzzleCell, num_items: int) -> np.ndarray:
    """Return random item indices of shape (NUM_REPLICATES, num_items)."""
    name = "\0".join((cell.model, cell.puzzle, cell.protocol))
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")
    raw = np.random.PCG64(seed).random_raw(NUM_REPLICATES * num_items)
    drawn: np.ndarray = (raw % num_items).reshape(NUM_REPLICATES, num_items)
    return drawn


def _read(
    store: Store, cell: PuzzleCell, record: PuzzleRecord, schema: pa.Schema = PUZZLE_ANSWERS
) -> pa.Table:
    if record.answers_digest is None:
        return schema.empty_table()
    remedy = (
        f"bring it back from a backup, or move {cell.record_path} out of the data root and run "
        "`tidemark scylla run` again"
    )
    if not store.exists(cell.path):
        raise StorageError(f"{store.url(cell.path)} is missing; {remedy}")
    if store.sha256(cell.path) != record.answers_digest:
        raise StorageError(
            f"{store.url(cell.path)} is damaged: its SHA-256 is not the one that its record "
            f"names, {record.answers_digest}; {remedy}"
        )
    return validate(read_parquet(store, cell.path, remedy), schema, cell.path)


def _read_record(store: Store, cell: PuzzleCell) -> PuzzleRecord:
    """Read the record of a cell, and check that it is consistent.

    Raises:
        StorageError: there is no record.
        SchemaMismatch: states the record's value and the expected value.
    """
    record = read_puzzle_record(store, cell)
    if record is None:
        raise StorageError(
            f"{store.url(cell.record_path)} is missing, so {cell} is not done; run "
            "`tidemark scylla run` again"
        )
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
    return record


def _require_sound(
    statements: Statements,
    store: Store,
    cell: PuzzleCell,
    record: PuzzleRecord,
    kind: str,
    facts: Mapping[str, object] | None = None,
) -> None:
    """Raise SchemaMismatch unless all rows belong to the cell, and splits have equally many."""
    expected = {name: getattr(cell, name) for name in ("model", "revision", "puzzle", "protocol")}
    statements.run("judge_puzzle_rows", {**expected, "num_items": record.num_items})
    statements.run(f"judge_puzzle_{kind}", facts)
    bad = statements.first("find_problem")
    if bad:
        raise SchemaMismatch(
            f"{store.url(cell.path)}, row {bad['row_number']}: {bad['column_name']} is "
            f"{bad['given']}; expected {bad['expected']}. Nothing of the cell was landed"
        )
