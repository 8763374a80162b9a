"""Having models solve Scylla's puzzles: planning, the task of one cell, and landing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.claims import Claims
from core.errors import ModelLoadError
from core.puzzles import PuzzleCell, PuzzleRecord, read_puzzle_record
from core.settings import Settings
from core.storage import Store
from models.catalogue import ModelEntry, find_model
from scylla.prompts import prompts_digest
from scylla.registry import list_puzzles, load_puzzle
from scylla.scripted import PREFIX, ScriptedModel
from tasks.landing import describe_model
from tasks.observe import observe
from tasks.puzzle_cell import ASKING, PROBING, solve
from tasks.puzzle_models import loaded_generator, model_identity
from tasks.retries import retrying
from tasks.server import writer_slot
from tasks.tracing import span
from warehouse.own_puzzles import land_own_puzzles

_VERSION = "1"  # raised when a change of scylla/ or puzzle_cell.py changes items or verdicts
_PROTOCOL = "zero-shot-cot"
_USUAL_ITEMS = 256
_IN_FLIGHT = 4


@dataclass(frozen=True)
class PuzzlePlan:
    """What one model has to solve: its cells, one a puzzle.

    Attributes:
        entry: the model.
        cells: all that were asked for.
        pending: of these, what is not done, or has items whose asking failed.
        in_flight: how many to solve at a time.
    """

    entry: ModelEntry
    cells: tuple[PuzzleCell, ...]
    pending: tuple[PuzzleCell, ...]
    in_flight: int


def plan_puzzles(model: str, puzzles: Sequence[str] | None, settings: Settings) -> PuzzlePlan:
    """List a model's cells, without loading its weights.

    Args:
        model: catalogue name, folder, or ``scripted:<name>``.
        puzzles: None takes all.
        settings: the data root, the device, and how many items are drawn in which way.

    Raises:
        UnknownName: no such model or puzzle.
        ModelLoadError: the model's files are missing or broken.
        NotMeasurable: it cannot write.
    """
    names = [load_puzzle(name).name for name in puzzles or list_puzzles()]
    entry = _find_model(model, settings)
    revision, *ways = model_identity(entry, [PROBING, ASKING], settings)
    protocol = _protocol_of(settings)
    cells = tuple(
        PuzzleCell(entry.name, revision, name, protocol, _generation(name, ways, settings))
        for name in dict.fromkeys(names)
    )
    store = Store(settings.home)
    pending = tuple(cell for cell in cells if not _is_done(store, cell))
    is_local = entry.kind in ("causal_lm", "reference")
    in_flight = 1 if is_local else settings.in_flight or _IN_FLIGHT
    return PuzzlePlan(entry, cells, pending, in_flight)


def _protocol_of(settings: Settings) -> str:
    """Return the name of the way of asking: figures of different ones are never put together."""
    parts = [
        _PROTOCOL,
        "" if settings.puzzle_sampling == "unique" else settings.puzzle_sampling,
        "" if settings.puzzle_items == _USUAL_ITEMS else str(settings.puzzle_items),
    ]
    return "-".join(filter(None, parts))


def _find_model(model: str, settings: Settings) -> ModelEntry:
    """Return a model's entry; a scripted one is a control.

    Raises:
        UnknownName: no such model.
    """
    if not model.startswith(PREFIX):
        return find_model(model, settings)
    script = ScriptedModel(model, settings.puzzle_items).script
    return ModelEntry(
        name=model,
        kind="control",
        location=model,
        parameters=script.parameters,
        notes="Solves a planted share of Scylla's puzzles.",
    )


def _generation(puzzle: str, ways: Sequence[str], settings: Settings) -> str:
    """Return what names a cell, beside its model: all that decides its items and verdicts."""
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
    return hashlib.sha256(json.dumps(definition).encode()).hexdigest()[:12]


def _is_done(store: Store, cell: PuzzleCell) -> bool:
    record = read_puzzle_record(store, cell)
    return record is not None and not record.num_errors


def solve_cell(entry: ModelEntry, cell: PuzzleCell, settings: Settings) -> PuzzleRecord:
    """Have a model solve a puzzle's items, and return the cell's record.

    A cell that is there is left alone, unless some of its items have no answer: these are asked
    again. One process at a time does it, and what a killed one was told is not asked again.

    Raises:
        ModelError: the model fails, or may not spend more.
        StorageError: what is kept of it is damaged.
    """
    store = Store(settings.home, settings.scratch)
    claims = Claims(store)
    while (record := read_puzzle_record(store, cell)) is None or record.num_errors:
        with claims.hold([cell.record_path]) as ours:
            if ours and not _is_done(store, cell):
                generator = loaded_generator(entry, settings)
                if generator.revision != cell.revision:
                    raise ModelLoadError(
                        f"{entry.name}: its files have revision {generator.revision}, expected "
                        f"{cell.revision}; they changed since the cells were planned, so run again"
                    )
                return solve(cell, generator, settings, store)
        claims.wait(cell.record_path, is_done=lambda: _is_done(store, cell))
    return record


@task(task_run_name="solve {cell}", cache_policy=NO_CACHE, persist_result=False)
def solve_puzzle(entry: ModelEntry, cell: PuzzleCell, settings: Settings) -> PuzzleRecord:
    """Have a model solve one puzzle's items; see ``solve_cell``."""
    observe()
    with span("puzzle", model=entry.name, puzzle=cell.puzzle):
        return solve_cell(entry, cell, settings)


def ended_without_answer(record: PuzzleRecord) -> str | None:
    """Say why a cell has no items, if it has none."""
    if record.status == "complete":
        return None
    return (
        f"insufficient ID data: {record.num_id_examples} inputs in {record.num_completions} texts, "
        f"of {record.num_distinct_elements} different numbers; nothing was asked"
    )


def land_puzzles(plan: PuzzlePlan, settings: Settings) -> int:
    """Land the cells of a plan that are there; return how many landed."""

    def land_once() -> int:
        store = Store(settings.home)
        there = [cell for cell in plan.cells if read_puzzle_record(store, cell)]
        with writer_slot():
            if there:
                describe_model(plan.entry, there[0].revision, settings)
            return land_own_puzzles(settings, there)

    return retrying(f"land puzzles of {plan.entry.name}", land_once)


@task(task_run_name="land puzzles of {model}", cache_policy=NO_CACHE, persist_result=False)
def land_model_puzzles(model: str, puzzles: list[str] | None, settings: Settings) -> int:
    """Land a model's cells; see ``land_puzzles``."""
    observe()
    with span("land", model=model):
        return land_puzzles(plan_puzzles(model, puzzles, settings), settings)
