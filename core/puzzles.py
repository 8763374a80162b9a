"""Answers of a model to one puzzle, as a Parquet file and a record beside it.

    puzzles/model=<m>/puzzle=<p>/<protocol>-<revision>-<generation>.parquet
    puzzles/model=<m>/puzzle=<p>/<protocol>-<revision>-<generation>.json

The path is a pure function of what decides the content. The record is written last: where it is,
the cell is done, unless it counts errors, which the next run asks for again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import SchemaMismatch, StorageError
from core.schemas import PUZZLE_ANSWERS, validate
from core.storage import Store, path_part

Split = Literal["id", "ood", "ood_near"]
SPLITS: tuple[Split, ...] = get_args(Split)
Status = Literal["correct", "wrong", "unparsed", "truncated", "error"]
CellStatus = Literal["complete", "insufficient_id_data"]


@dataclass(frozen=True)
class PuzzleAnswer:
    """What a model made of one item; a row of PUZZLE_ANSWERS.

    Attributes:
        split: of data in or out of distribution; ``ood_near``: out of it, of its magnitude.
        item: from 0; items of one number in all splits are of one shape.
        input: as it was shown.
        response: what the model wrote; empty where there was an error.
        answer: the numbers read off by the strict rules; None where there is no answer.
        status: by the strict rules: correct, wrong; unparsed or truncated (no answer, the latter
            since the text was cut), which count as wrong; error: not asked with success, not
            scored.
        lenient_status: by the lenient rules.
        paper_status: correct, wrong or unparsed by the paper's own rules.
        num_tokens: written.
        reason: of an error.
    """

    split: Split
    item: int
    input: str
    response: str
    answer: tuple[int, ...] | None
    status: Status
    lenient_status: Status
    paper_status: Literal["correct", "wrong", "unparsed", "error"]
    num_tokens: int | None = None
    reason: str | None = None


@dataclass(frozen=True, order=True)
class PuzzleCell:
    """Who was asked which puzzle, and how.

    Attributes:
        model: name in the catalogue.
        revision: of its weights and tokenizer; of an API model, what its server calls it.
        puzzle: its name.
        protocol: name of the way of asking.
        generation: short hash over prompts, decoding, sampling of data and the code's version.
    """

    model: str
    revision: str
    puzzle: str
    protocol: str
    generation: str

    @property
    def stem(self) -> str:
        """Where its two files are (or will be), without their endings, under the data root."""
        folder = f"puzzles/model={path_part(self.model)}/puzzle={path_part(self.puzzle)}"
        parts = (self.protocol, self.revision[:12], self.generation)
        return f"{folder}/{'-'.join(map(path_part, parts))}"

    @property
    def path(self) -> str:
        """Of the answers."""
        return f"{self.stem}.parquet"

    @property
    def record_path(self) -> str:
        """Of the record."""
        return f"{self.stem}.json"

    def __str__(self) -> str:
        return f"{self.model} on {self.puzzle} under {self.protocol}"


@dataclass(frozen=True)
class PuzzleRecord:
    """How a cell came to be.

    Attributes:
        status: complete; or the model wrote too few inputs of the puzzle, and nothing was asked.
        level: of the puzzle; None: a probe.
        complexity: of the puzzle.
        num_completions: texts that the model wrote when asked for inputs.
        num_id_elements: numbers in them.
        num_distinct_elements: of these.
        num_id_examples: different inputs in them that make the puzzle, repaired ones included; no
            more are looked for than four times what is needed.
        num_repaired: of these.
        num_items: asked in each split.
        num_errors: of all items, those that have no answer since asking failed.
        answers_digest: SHA-256 of the file of answers; None where there is none.
        num_anchors: how many anchors there were at levels 1 to 5.
    """

    status: CellStatus
    level: int | None
    complexity: str
    num_completions: int
    num_id_elements: int
    num_distinct_elements: int
    num_id_examples: int
    num_repaired: int
    num_items: int
    num_errors: int
    answers_digest: str | None
    num_anchors: tuple[int, ...]


def write_puzzle_cell(
    store: Store, cell: PuzzleCell, record: PuzzleRecord, answers: Sequence[PuzzleAnswer]
) -> PuzzleRecord:
    """Write a cell's files, the record last; return the record with counts and digest filled in.

    Raises:
        SchemaMismatch: an item is there twice, or splits differ in their number of items.
    """
    rows = [_row(cell, answer) for answer in sorted(answers, key=lambda a: (a.split, a.item))]
    _require_regular(cell, answers, record.num_items)
    digest = None
    if rows:
        table = validate(pa.Table.from_pylist(rows, schema=PUZZLE_ANSWERS), PUZZLE_ANSWERS)
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        store.write_bytes(cell.path, buffer.getvalue())
    num_errors = sum(answer.status == "error" for answer in answers)
    record = dataclasses.replace(record, num_errors=num_errors, answers_digest=digest)
    document = dataclasses.asdict(cell) | dataclasses.asdict(record)
    store.write_bytes(cell.record_path, json.dumps(document, indent=1).encode())
    return record


def read_puzzle_record(store: Store, cell: PuzzleCell) -> PuzzleRecord | None:
    """Return a cell's record; None: it was not done yet.

    Raises:
        StorageError: the file is damaged.
    """
    if not store.exists(cell.record_path):
        return None
    names = {field.name for field in dataclasses.fields(PuzzleRecord)}
    try:
        document: dict[str, Any] = json.loads(store.read_bytes(cell.record_path))
        document["num_anchors"] = tuple(document["num_anchors"])
        return PuzzleRecord(**{name: document[name] for name in names})
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{store.url(cell.record_path)} is damaged ({error}); delete it and run "
            "`tidemark scylla run` again"
        ) from error


def _row(cell: PuzzleCell, answer: PuzzleAnswer) -> dict[str, object]:
    return {
        **dataclasses.asdict(answer),
        "model": cell.model,
        "revision": cell.revision,
        "puzzle": cell.puzzle,
        "protocol": cell.protocol,
    }


def _require_regular(cell: PuzzleCell, answers: Sequence[PuzzleAnswer], num_items: int) -> None:
    for split in SPLITS:
        items = sorted(answer.item for answer in answers if answer.split == split)
        if items and items != list(range(num_items)):
            raise SchemaMismatch(
                f"{cell}: split {split} has {len(items)} items; expected 0 to {num_items - 1}, "
                "each once"
            )
