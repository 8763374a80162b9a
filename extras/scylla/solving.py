"""The third instrument (measurement): answers of models to the puzzles of the Scylla benchmark.

The flow of a worker, the demo and ``tidemark land ratings`` find this module by ``import_parts``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from core.cells.puzzles import (
    PuzzleAnswer,
    PuzzleCell,
    PuzzleLikelihood,
    PuzzleRecord,
    read_puzzle_record,
    write_puzzle_cell,
)
from core.errors import ModelError
from core.progress import counted
from core.settings import Settings
from core.storage.claims import Claims
from core.storage.store import Store, path_part
from extras.scylla.asking import Writer, ask, find_items, list_decodings, measure
from extras.scylla.demonstrations import draw_other_puzzles
from extras.scylla.journal import Journal
from extras.scylla.puzzle import count_anchors, list_puzzles, load_puzzle
from extras.scylla.texts import prompts_digest
from extras.scylla.variants import Variant, parse_variant
from instruments.driver import Summary, WorkRequest, work_and_land
from instruments.landing import land_model
from instruments.models import Load, entry_of, generation_ids, generator_of, held
from instruments.runner import Done, Plan
from instruments.running.stopping import go_on
from models.catalogue import ModelEntry
from models.generation import Generator
from warehouse.land.puzzles import land_puzzle_cells

if TYPE_CHECKING:  # torch takes seconds to import
    from extras.scylla.likelihoods import LikelihoodModel

_VERSION = "3"  # increase if a change of this extra changes items or verdicts
_VARIANTS_VERSION = "1"  # increase if a change of variants.py changes other prompts
_USUAL_ITEMS = 256
_IN_FLIGHT = 4


class PuzzlePlan(Plan[PuzzleCell]):
    """The cells of puzzles that one model must solve, one per puzzle."""

    verb = "solve"
    fatal = (ModelError,)

    def in_flight(self, settings: Settings) -> int:
        """Return the number of puzzles to solve concurrently."""
        return settings.in_flight or _IN_FLIGHT if self.entry.backend.is_server else 1

    def is_done(self, cell: PuzzleCell, store: Store) -> bool:
        """Return True if a cell has a record without errors."""
        return _is_done(store, cell)

    def attempt(self, cells: tuple[PuzzleCell, ...], settings: Settings) -> Done:
        """Have the model solve one puzzle; see ``solve_cell``."""
        return solve_cell(self.entry, cells[0], settings)

    def land(self, settings: Settings) -> int:
        """Land the cells that have a record; return the number of landed cells."""
        store = Store(settings.home)
        there = [cell for cell in self.cells if read_puzzle_record(store, cell)]
        if there:
            land_model(self.entry, there[0].revision, settings)
        return land_puzzle_cells(settings, there)


def plan_puzzles(model: str, puzzles: Sequence[str] | None, settings: Settings) -> PuzzlePlan:
    """List a model's cells over puzzles (None: all), without loading the model's weights.

    Raises:
        UnknownName: there is no such model or puzzle.
        ModelLoadError: the model's files are missing or broken.
        NotMeasurable: the model cannot write text.
    """
    names = [load_puzzle(name).name for name in puzzles or list_puzzles()]
    entry = entry_of(model, settings)
    variant = parse_variant(settings.puzzle_prompt)
    revision, ways = generation_ids(entry, list_decodings(variant), settings)
    if variant.is_likelihood:
        from extras.scylla.likelihoods import likelihood_id

        ways.append(likelihood_id(entry, settings))
    protocol = _protocol_of(settings)
    cells = tuple(
        PuzzleCell(entry.name, revision, name, protocol, _generation(name, ways, settings))
        for name in dict.fromkeys(names)
    )
    store = Store(settings.home)
    pending = tuple(cell for cell in cells if not _is_done(store, cell))
    return PuzzlePlan(entry, cells, pending)


def _protocol_of(settings: Settings) -> str:
    """Return the name of the protocol that the settings define."""
    parts = [
        settings.puzzle_prompt,
        "" if settings.puzzle_sampling == "unique" else settings.puzzle_sampling,
        "" if settings.puzzle_items == _USUAL_ITEMS else str(settings.puzzle_items),
        f"seed-{settings.puzzle_seed}" if settings.puzzle_seed else "",
    ]
    return "-".join(filter(None, parts))


def _generation(puzzle: str, ways: Sequence[str], settings: Settings) -> str:
    """Return a hash of all inputs, except the model, that influence a cell's items and verdicts."""
    asked = load_puzzle(puzzle)
    definition = [
        _VERSION,
        prompts_digest(),
        [asked.title, asked.statement, asked.answer_rule],
        list(ways),
        settings.puzzle_items,
        settings.puzzle_sampling,
        settings.puzzle_completions,
        settings.puzzle_seed,
    ]
    variant = parse_variant(settings.puzzle_prompt)
    if variant != Variant():
        shown = draw_other_puzzles(asked, variant.num_demonstrations, settings.puzzle_seed)
        others = [puzzle.name for puzzle, _ in shown] if variant.kind == "varied" else []
        definition += [_VARIANTS_VERSION, variant.name, others]
    return hashlib.sha256(json.dumps(definition).encode()).hexdigest()[:12]


def _is_done(store: Store, cell: PuzzleCell) -> bool:
    record = read_puzzle_record(store, cell)
    return record is not None and not record.num_errors


def solve_cell(entry: ModelEntry, cell: PuzzleCell, settings: Settings) -> Done:
    """Have a model solve the items (inputs) of a puzzle.

    A complete cell is skipped, and so is one that another process claims. If items of a cell failed
    with errors, only these items are repeated. Texts of a killed process are reused.

    Raises:
        ModelError: the model fails, or its spending limit is reached.
        StorageError: a file of the cell is damaged.
    """
    store = Store(settings.home, settings.scratch)
    with (
        held.hold(_loader_of(settings), entry, cell.revision, settings) as model,
        Claims(store).hold([cell.done_path]) as claimed,
    ):
        go_on()
        if not claimed:
            return Done(claimed=(cell,))
        record = read_puzzle_record(store, cell)
        if record is None or record.num_errors:  # else another process was faster
            record = solve(cell, model, settings, store)
    return _describe(record)


def _loader_of(settings: Settings) -> Load[Generator]:
    """Return the function that loads a model: to write answers, or to give likelihoods."""
    if not parse_variant(settings.puzzle_prompt).is_likelihood:
        return generator_of
    from extras.scylla.likelihoods import load_likelihoods

    return load_likelihoods


def _describe(record: PuzzleRecord) -> Done:
    """Return what became of a cell: answers, what is lacking, or too few inputs."""
    lack = ""
    if record.num_errors:
        lack = (
            f"without an answer: {counted(record.num_errors, 'item')}; run the same command again, "
            "and only these are asked"
        )
    if record.status == "complete":
        return Done(record.num_items, lack)
    remark = (
        f"insufficient ID data: {record.num_id_examples} inputs in {record.num_completions} texts, "
        f"of {record.num_distinct_elements} different numbers; nothing was asked"
    )
    return Done(lack=lack, remark=remark)


def solve_and_land(
    settings: Settings, models: Sequence[str], puzzles: Sequence[str] | None
) -> Summary:
    """Have models solve the puzzles that they have not solved, land the cells and publish.

    If a model fails, the puzzles solved before the failure still land.

    Raises:
        UsageError: a name is unknown.
    """
    held.begin(settings)
    for model in models:  # a wrong name must cost nothing
        entry_of(model, settings)
    for puzzle in puzzles or ():
        load_puzzle(puzzle)
    return work_and_land(puzzle_request(models, puzzles, settings), settings)


def puzzle_request(
    models: Iterable[str], puzzles: Sequence[str] | None, settings: Settings, **choices: Any
) -> WorkRequest:
    """Return the request to solve puzzles (None: all); ``choices`` are further fields of it."""
    return WorkRequest(
        models=tuple(models),
        plan=lambda model: plan_puzzles(model, puzzles, settings),
        root=PuzzleCell.ROOT,
        **choices,
    )


def list_complexities() -> dict[str, str]:
    """Return the complexity of each puzzle, such as O(N), by name."""
    return {name: load_puzzle(name).complexity for name in list_puzzles()}


def solve(cell: PuzzleCell, generator: Generator, settings: Settings, store: Store) -> PuzzleRecord:
    """Have the model generate inputs and answers, judge the answers, and write the cell's files.

    A model of likelihoods only writes inputs; the likelihoods of right answers are measured.

    Raises:
        ModelError: the model fails, or its spending limit is reached; received texts are stored.
        StorageError: the stored texts are damaged.
    """
    puzzle = load_puzzle(cell.puzzle)
    # The journal is common to all protocols, so each text is requested only once.
    names = (cell.model, cell.puzzle, cell.revision)
    path = settings.scratch / "puzzles" / "/".join(map(path_part, names))
    with Journal(path.with_name(f"{path.name}.jsonl")) as journal:
        writer = Writer(generator, journal)
        num_completions, data = find_items(cell, puzzle, writer, settings)
        answers: Sequence[PuzzleAnswer | PuzzleLikelihood]
        if parse_variant(settings.puzzle_prompt).is_likelihood:
            likelihoods = cast("LikelihoodModel", generator)
            answers = list(measure(cell, puzzle, data, likelihoods, settings))
        else:
            answers = list(ask(cell, puzzle, data, writer, settings))
    record = PuzzleRecord(
        status=data.status,
        level=puzzle.level,
        complexity=puzzle.complexity,
        num_completions=num_completions,
        num_id_elements=data.num_id_elements,
        num_distinct_elements=data.num_distinct_elements,
        num_id_examples=data.num_id_examples,
        num_repaired=data.num_repaired,
        num_items=settings.puzzle_items if data.status == "complete" else 0,
        num_errors=0,
        answers_digest=None,
        num_anchors=count_anchors(),
    )
    return write_puzzle_cell(store, cell, record, answers)
