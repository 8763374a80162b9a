"""Find the cells of a data root by its files, without the models that computed the cells.

The name of a file contains only the first characters of digests. The full digest of a text or of
questions is read from the sealed version. The full revision is read from a column of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from core.cells.answers import AnswerCell
from core.cells.failures import SUFFIX
from core.cells.losses import Cell
from core.cells.puzzles import PuzzleCell
from core.cells.record import read_cell_record
from core.corpus.partition import Partition, Seal, list_versions, partition_of
from core.corpus.questions import QuestionSeal, list_questions
from core.errors import TidemarkError
from core.storage.store import Store, name_of_part

_HASH = re.compile(r".*-(?P<hash>[0-9a-f]+)$")


@dataclass
class FoundCells:
    """The newest cell of each key, and the files that could not be understood, with the reason."""

    losses: list[Cell] = field(default_factory=list)
    answers: list[tuple[AnswerCell, QuestionSeal]] = field(default_factory=list)
    puzzles: list[PuzzleCell] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def models(self) -> list[str]:
        """The names of the models, sorted."""
        names = {cell.model for cell in self.losses} | {cell.model for cell in self.puzzles}
        return sorted(names | {cell.model for cell, _ in self.answers})


def find_cells(store: Store) -> FoundCells:
    """Return the cells of a data root. If several have the same key, take the newest."""
    found = find_texts(store)
    paths = store.list("losses/model=*/source=*/month=*/*.parquet")
    found.losses = find_losses(store, paths, found.problems)
    return found


def find_texts(store: Store) -> FoundCells:
    """Return the cells of answers and of puzzles, as ``find_cells`` does."""
    found = FoundCells()
    found.answers = _find_answers(store, found.problems)
    found.puzzles = _find_puzzles(store, found.problems)
    return found


def find_losses(store: Store, paths: Sequence[str], problems: list[str]) -> list[Cell]:
    """Return the cells of some loss files. If several have the same key, take the newest.

    Files that are not understood are added to ``problems``, each with the reason.
    """
    versions: dict[Partition, list[Seal]] = {}

    def read(path: str) -> tuple[Cell, str] | None:
        """Return the cell of a file, and its time of scoring (ISO 8601; empty if unknown)."""
        model, *folders = path.split("/")[1:4]
        partition = partition_of("/".join(["corpus", *folders]))
        if partition not in versions:
            versions[partition] = list_versions(store, partition)
        key = _read_key(store, path)
        if key is None:
            return None
        # The path has only a part of the digest, so compare it with each version's path.
        for seal in reversed(versions[partition]):
            cell = Cell(
                model=_name_in(model), revision=key.revision, partition=partition,
                partition_digest=seal.digest, protocol=key.protocol,
                scoring=_hash_at_end(path), partition_version=seal.version,
            )  # fmt: skip
            if cell.path == path:
                record = read_cell_record(store, cell)
                return cell, record.scored_at.isoformat() if record else ""
        raise _Unknown(f"its text, {partition}, is not sealed here in this version")

    cells = _read_each(paths, read, problems)
    newest: dict[tuple[object, ...], tuple[str, Cell]] = {}
    for cell, scored_at in cells:
        key = (cell.model, cell.partition, cell.protocol)
        if key not in newest or newest[key][0] < scored_at:
            newest[key] = (scored_at, cell)
    return [cell for _, cell in newest.values()]


def _find_answers(store: Store, problems: list[str]) -> list[tuple[AnswerCell, QuestionSeal]]:
    """Return the newest answers to each month's present questions."""
    seals = {(seal.source, str(seal.month)): seal for seal in list_questions(store)}

    def read(path: str) -> tuple[AnswerCell, QuestionSeal] | None:
        """Return the cell of a file with its questions; None for answers to former questions."""
        model, source, month = map(_name_in, path.split("/")[1:4])
        seal = seals.get((source, month))
        key = _read_key(store, path)
        if key is None:
            return None
        if seal is None:
            raise _Unknown(f"the questions of {source} {month} are not sealed here")
        stem, _, missing = path.removesuffix(".parquet").partition("-lacks-")
        cell = AnswerCell(
            model=model, revision=key.revision, source=source, month=seal.month,
            questions_digest=seal.digest, protocol=key.protocol,
            answering=_hash_at_end(f"{stem}.parquet"), missing=missing,
        )  # fmt: skip
        return (cell, seal) if cell.path == path else None

    stamps = store.list_stamped("answers/model=*/source=*/month=*/*.parquet")
    found = _read_each(stamps, read, problems)
    newest: dict[tuple[object, ...], tuple[AnswerCell, QuestionSeal]] = {}
    for cell, seal in sorted(found, key=lambda each: stamps[each[0].path].modified_at):
        newest[cell.model, cell.source, cell.month, cell.protocol] = (cell, seal)
    return list(newest.values())


def _find_puzzles(store: Store, problems: list[str]) -> list[PuzzleCell]:
    """Return the newest puzzle cell of each model, puzzle and protocol."""

    def read(path: str) -> PuzzleCell:
        record = json.loads(store.read_bytes(path))
        keys = ("model", "revision", "puzzle", "protocol", "generation")
        cell = PuzzleCell(**{name: record[name] for name in keys})
        if cell.record_path != path:
            raise _Unknown("its name is not that of its content")
        return cell

    stamps = {
        path: stamp
        for path, stamp in store.list_stamped("puzzles/model=*/puzzle=*/*.json").items()
        if not path.endswith(SUFFIX)  # else the record of a failure
    }
    newest: dict[tuple[str, str, str], PuzzleCell] = {}
    found = _read_each(stamps, read, problems)
    for cell in sorted(found, key=lambda each: stamps[each.record_path].modified_at):
        newest[cell.model, cell.puzzle, cell.protocol] = cell
    return list(newest.values())


class _Unknown(TidemarkError):
    """The key of a file cannot be found."""


class _Key(NamedTuple):
    """The part of a cell's key that its path does not have."""

    revision: str
    protocol: str


def _read_each(
    paths: Iterable[str], read: Callable[[str], Any], problems: list[str]
) -> Iterator[Any]:
    """Yield each result of ``read`` but None; add a problem for each file that fails."""
    for path in paths:
        try:
            cell = read(path)
        except (TidemarkError, pa.ArrowException, ValueError, KeyError, OSError) as error:
            problems.append(f"{path}: {error}")
            continue
        if cell is not None:
            yield cell


def _read_key(store: Store, path: str) -> _Key | None:
    """Return revision and protocol from the first row of a file; None if it has no rows."""
    with store.open(path) as stream, pq.ParquetFile(stream) as file:
        for batch in file.iter_batches(1, columns=list(_Key._fields)):
            return _Key(**batch.to_pylist()[0])
    return None


def _name_in(part: str) -> str:
    """Return the decoded name in a folder such as ``model=<name>``."""
    return name_of_part(part.partition("=")[2])


def _hash_at_end(path: str) -> str:
    """Return the hash at the end of a file's name."""
    found = _HASH.fullmatch(path.removesuffix(".parquet"))
    if found is None:
        raise _Unknown("its name does not end with a hash")
    return found["hash"]
