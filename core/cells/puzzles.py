"""Answers of a model to one puzzle: a Parquet file of answers and a JSON record.

    puzzles/model=<m>/puzzle=<p>/<protocol>-<revision>-<generation>.parquet
    puzzles/model=<m>/puzzle=<p>/<protocol>-<revision>-<generation>.json

The path contains hashes of all inputs that influence the answers. The record is written last, so a
cell with a record is done. The next run repeats only the requests that failed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field, TypeAdapter

from core.cells import BaseCell
from core.errors import SchemaMismatch, StorageError
from core.json import JsonObject
from core.schemas.tables import PUZZLE_ANSWERS, PUZZLE_LIKELIHOODS
from core.schemas.validation import validate
from core.storage.store import Store, path_part

Split = Literal["id", "ood", "ood_near"]
SPLITS: tuple[Split, ...] = get_args(Split)
Level = Annotated[int, Field(ge=1, le=5)]
_AGAIN = "out of the data root and run `tidemark scylla run` (extra `scylla`) again"
Status = Literal["correct", "wrong", "unparsed", "truncated", "error"]
CellStatus = Literal["complete", "insufficient_id_data"]


@dataclass(frozen=True)
class PuzzleAnswer:
    """The answer of a model to one item of a puzzle, which is a row of PUZZLE_ANSWERS.

    Status ``unparsed`` (no answer found) and ``truncated`` (the text was cut) count as wrong.
    Status ``error`` (the request failed) is not scored.
    """

    split: Split  # in distribution, out of distribution (OOD), or OOD with small numbers
    item: int  # number from 0; item i has an input of the same shape in all splits
    input: str  # input of the item, as shown to the model
    response: str  # text that the model wrote; empty if the request failed
    answer: tuple[int, ...] | None  # numbers that the strict parsing rules find in the response
    status: Status  # verdict by the strict parsing rules
    lenient_status: Status
    # verdict by the rules of the Scylla paper (Qi et al. 2024)
    paper_status: Literal["correct", "wrong", "unparsed", "error"]
    num_tokens: int | None = None
    reason: str | None = None  # reason why the request failed


@dataclass(frozen=True)
class PuzzleLikelihood:
    """The likelihood of the right answer to an item: a row of PUZZLE_LIKELIHOODS.

    Of at most six right answers, ``answer`` has the highest probability per token.
    """

    split: Split
    item: int
    input: str
    num_answers: int  # number of right answers that were tried
    answer: str | None = None
    token_nats: tuple[float, ...] | None = None  # -ln p of each token of the answer
    prompt_nats: float | None = None  # sum of -ln p over the prompt's tokens but the first
    prompt_tokens: int | None = None  # number of these tokens
    reason: str | None = None  # reason why nothing was measured


@dataclass(frozen=True, order=True)
class PuzzleCell(BaseCell):
    """The key of the answers of one model to one puzzle.

    Attributes:
        protocol: name of the protocol, which determines the prompts.
        generation: short hash over prompts, decoding, sampling of items and the code's version.
    """

    ROOT: ClassVar[str] = "puzzles"

    puzzle: str
    protocol: str
    generation: str

    @property
    def folder(self) -> str:
        """The folder of the puzzle, relative to the folder of the model."""
        return f"puzzle={path_part(self.puzzle)}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the file name: protocol, revision, hash ``generation``."""
        return (self.protocol, self.revision[:12], self.generation)

    @property
    def done_path(self) -> str:
        """The path of the JSON record, which is written last."""
        return self.record_path

    def __str__(self) -> str:
        return f"{self.model} on {self.puzzle} under {self.protocol}"


@dataclass(frozen=True)
class PuzzleRecord:
    """The status and the counts of a cell of a puzzle.

    A model first writes example inputs, from which the puzzle's ID items are made. With status
    ``insufficient_id_data``, too few items could be made, so the model was asked nothing. ID means
    "in distribution".
    """

    status: CellStatus
    level: Level | None  # complexity level; None if algorithms of several levels solve the puzzle
    complexity: str  # complexity class of the puzzle
    num_completions: int  # number of texts of example inputs that the model wrote
    num_id_elements: int  # count of all numbers in the texts of example inputs
    num_distinct_elements: int
    num_id_examples: int  # number of distinct valid inputs, including repaired inputs
    num_repaired: int  # number of inputs that were valid only after a repair
    num_items: int  # number of items in each split
    num_errors: int  # number of failed requests, over all splits
    answers_digest: str | None  # SHA-256 of the Parquet file, or None without answers
    # number of anchors (puzzles with a level) at each level, 1 to 5
    num_anchors: Annotated[tuple[int, ...], Field(min_length=5, max_length=5)]


_RECORD = TypeAdapter(PuzzleRecord)


def write_puzzle_cell(
    store: Store,
    cell: PuzzleCell,
    record: PuzzleRecord,
    answers: Sequence[PuzzleAnswer | PuzzleLikelihood],
) -> PuzzleRecord:
    """Write the files of a cell, the record last; return the record with ``num_errors`` and digest.

    An item without a likelihood counts as no error, because another try would not find one.

    Raises:
        SchemaMismatch: a row is invalid, an item occurs twice, or a split lacks items.
    """
    key = {name: getattr(cell, name) for name in ("model", "revision", "puzzle", "protocol")}
    in_order = sorted(answers, key=lambda answer: (answer.split, answer.item))
    rows = [{**dataclasses.asdict(answer), **key} for answer in in_order]
    digest = None
    if rows:
        schema = PUZZLE_ANSWERS if isinstance(in_order[0], PuzzleAnswer) else PUZZLE_LIKELIHOODS
        table = _require_sound(pa.Table.from_pylist(rows, schema=schema), schema, cell, record)
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        store.write_bytes(cell.path, buffer.getvalue())
    num_errors = sum(isinstance(each, PuzzleAnswer) and each.status == "error" for each in answers)
    record = dataclasses.replace(record, num_errors=num_errors, answers_digest=digest)
    document = dataclasses.asdict(cell) | dataclasses.asdict(record)
    store.write_bytes(cell.record_path, json.dumps(document, indent=1).encode())
    return record


def read_puzzle_record(store: Store, cell: PuzzleCell) -> PuzzleRecord | None:
    """Return the record of a cell, or None if the cell is not done.

    Raises:
        StorageError: the record is damaged, or that of another cell.
    """
    if not store.exists(cell.record_path):
        return None
    try:
        document: JsonObject = json.loads(store.read_bytes(cell.record_path))
        record = _RECORD.validate_python(document)
        for name, value in dataclasses.asdict(cell).items():
            if document.get(name, value) != value:
                raise ValueError(f"{name} is {document[name]}; expected {value}")
        if (record.status == "complete") != (record.answers_digest is not None):
            raise ValueError("expected answers_digest where a cell is complete, and only there")
    except (ValueError, TypeError) as error:
        raise StorageError(
            f"{store.url(cell.record_path)} is damaged ({error}); bring it back from a "
            f"backup, or move it {_AGAIN}"
        ) from error
    return record


def read_puzzle_rows(
    store: Store, cell: PuzzleCell, record: PuzzleRecord, schema: pa.Schema
) -> pa.Table:
    """Read the rows of a cell, of schema PUZZLE_ANSWERS or PUZZLE_LIKELIHOODS.

    Raises:
        StorageError: the file is missing or damaged.
        SchemaMismatch: the rows are not those that the record describes.
    """
    if record.answers_digest is None:
        return schema.empty_table()
    remedy = f"bring it back from a backup, or move {cell.record_path} {_AGAIN}"
    if not store.exists(cell.path):
        raise StorageError(f"{store.url(cell.path)} is missing; {remedy}")
    content = store.read_bytes(cell.path)
    if hashlib.sha256(content).hexdigest() != record.answers_digest:
        raise StorageError(
            f"{store.url(cell.path)} is damaged: its SHA-256 is not the one that its record "
            f"names, {record.answers_digest}; {remedy}"
        )
    return _require_sound(pq.read_table(io.BytesIO(content)), schema, cell, record)


def _require_sound(
    rows: pa.Table, schema: pa.Schema, cell: PuzzleCell, record: PuzzleRecord
) -> pa.Table:
    """Validate the rows, and require that each split has each item once; return the rows."""
    rows = validate(rows, schema, str(cell))
    expected = list(range(record.num_items))
    for split in SPLITS:
        items = rows.filter(pc.equal(rows["split"], split))["item"].to_pylist()
        is_left_out = split == "ood_near" and not items  # this split is optional
        if sorted(items) != expected and not is_left_out:
            raise SchemaMismatch(
                f"{cell}: split {split} has {len(items)} items; expected 0 to "
                f"{record.num_items - 1}, each once"
            )
    return rows
