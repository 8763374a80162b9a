"""Landing of models' answers to puzzles, with the bootstrap replicates of their accuracies."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.cells.puzzles import PuzzleCell, PuzzleRecord, read_puzzle_record, read_puzzle_rows
from core.errors import StorageError
from core.schemas.tables import PUZZLE_ANSWERS, PUZZLE_LIKELIHOODS
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, locked, transaction

NUM_REPLICATES = 400
_RULES = {"strict": "status", "lenient": "lenient_status"}
_KEY = ("model", "puzzle", "protocol")


def land_puzzle_cells(settings: Settings, cells: Sequence[PuzzleCell]) -> int:
    """Land cells of answers to puzzles; return the number of landed cells.

    Each cell lands in one transaction. A cell that has landed with the same record is skipped; the
    record contains the digest of the answers. Any other cell replaces the landed rows of its model,
    puzzle and protocol.

    Raises:
        StorageError: a file is missing or damaged; all earlier cells have landed.
        SchemaMismatch: a row is invalid; all earlier cells have landed.
    """
    store = Store(settings.home)
    with locked(settings), connected(settings) as connection:
        statements = Statements(connection)
        num_landed = 0
        for cell in cells:
            record = read_puzzle_record(store, cell)
            if record is None:
                raise StorageError(
                    f"{store.url(cell.record_path)} is missing, so {cell} is not done; run "
                    "`tidemark scylla run` (extra `scylla`) again"
                )
            land = _land_likelihoods if "-likelihood" in cell.protocol else _land_answers
            num_landed += land(statements, store, cell, record)
        return num_landed


def _land_answers(
    statements: Statements, store: Store, cell: PuzzleCell, record: PuzzleRecord
) -> bool:
    """Land the answers of a cell; return False if it has landed with the same record."""
    fields = dataclasses.asdict(cell) | dataclasses.asdict(record) | {"answer_cell": cell.path}
    row = pa.Table.from_pylist([fields], schema=statements.columns("scylla_cells"))
    if statements.has("scylla_cells", row.to_pylist()[0]):
        return False
    key = {name: fields[name] for name in _KEY}
    answers = read_puzzle_rows(store, cell, record, PUZZLE_ANSWERS)
    tables = {
        "scylla_cells": row,
        "scylla_answers": answers.select(statements.columns("scylla_answers").names),
        "scylla_replicates": resample(cell, answers, statements.columns("scylla_replicates")),
    }
    with (
        statements.given(puzzle_rows_to_land=answers),
        transaction(statements.connection, f"land {cell}"),
    ):
        for name, table in tables.items():
            with statements.given(rows_to_land=table):
                statements.replace(name, key, "rows_to_land")
        statements.run("count_puzzle_steps", {"level": record.level})
        statements.replace("scylla_steps", key, "puzzle_steps")
        statements.add_names("models", "scylla_cells")
    return True


def _land_likelihoods(
    statements: Statements, store: Store, cell: PuzzleCell, record: PuzzleRecord
) -> bool:
    """Land the likelihoods of a cell; return False if they have landed, or it has none."""
    key = {name: getattr(cell, name) for name in _KEY}
    facts = {name: getattr(record, name) for name in ("level", "complexity", "answers_digest")}
    if record.answers_digest is None or statements.has("scylla_likelihoods", key | facts):
        return False
    rows = read_puzzle_rows(store, cell, record, PUZZLE_LIKELIHOODS)
    columns = statements.columns("scylla_likelihoods")
    rows = rows.select([name for name in columns.names if name in rows.column_names])
    for name, value in facts.items():
        values = pa.repeat(pa.scalar(value, columns.field(name).type), rows.num_rows)
        rows = rows.append_column(name, values)
    with statements.given(rows_to_land=rows), transaction(statements.connection, f"land {cell}"):
        statements.replace("scylla_likelihoods", key, "rows_to_land")
        statements.add_names("models", "scylla_likelihoods")
    return True


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
            scores = [_score_items(answers, split, column) for split in ("id", ood_split)]
            if not len(scores[0]) == len(scores[1]) > 0:  # the OOD split is missing
                continue
            pairs = np.stack(scores, axis=1)
            pairs = pairs[~np.isnan(pairs).any(axis=1)]  # without errors
            if not len(pairs):
                continue
            drawn = pairs[_draw(cell, len(pairs))].mean(axis=1)
            names = [cell.model, cell.puzzle, cell.protocol, ood_split, rules]
            arrays = [pa.repeat(name, NUM_REPLICATES) for name in names]
            numbers = pa.array(range(1, NUM_REPLICATES + 1), pa.int16())
            arrays += [numbers, pa.array(drawn[:, 0]), pa.array(drawn[:, 1])]
            rows.append(pa.table(arrays, schema=columns))
    return pa.concat_tables([columns.empty_table(), *rows])


def _score_items(answers: pa.Table, split: str, column: str) -> np.ndarray:
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
