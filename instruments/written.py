"""The cells of losses that are written and not landed yet, found by the names of files.

Cells are computed on many machines, and one machine lands them all. This machine needs no list of
the computed cells. It lands each cell that has a file and is missing in the warehouse.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.cells.files import FoundCells, find_losses
from core.cells.losses import Cell
from core.corpus.partition import partition_of, read_seal
from core.errors import TidemarkError, UnknownName
from core.settings import Settings
from core.storage.store import Store
from instruments.backlog import CellName, read_name, sealed_text
from instruments.canary import land_canary_runs
from instruments.landing import describe_models, land_model
from instruments.models import entry_of
from models.catalogue import ModelEntry, find_model, list_models
from models.choice import chosen_models
from warehouse.database.writer import connected, locked
from warehouse.land.answers import land_answer_cells
from warehouse.land.losses import open_warehouse
from warehouse.land.puzzles import land_puzzle_cells
from warehouse.read.scored import scored_cells

_log = logging.getLogger(__name__)


@dataclass
class Unlanded:
    """The cells to land, by model, and the files that cannot be landed, with the reasons."""

    cells: list[tuple[ModelEntry, tuple[Cell, ...]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def find_unlanded(models: Sequence[str], settings: Settings) -> Unlanded:
    """Return the cells to land: of the newest versions of texts, each as it was computed last.

    ``models`` are names that may be missing in the catalogue, such as folders.
    """
    store = Store(settings.home)
    written = Unlanded()
    paths = _choose(store, settings, written.problems)
    landed = _list_landed(settings) if paths else set()
    found = find_losses(store, sorted(paths - landed), written.problems)
    by_model: dict[str, list[Cell]] = defaultdict(list)
    for cell in found:
        by_model[cell.model].append(cell)
    entries = _entries_of(models, settings)
    for model, cells in sorted(by_model.items()):
        if model in entries:
            written.cells.append((entries[model], tuple(cells)))
        else:
            _log.warning(
                "%s is not in the catalogue, so %d cells are not landed", model, len(cells)
            )
    return written


def _choose(store: Store, settings: Settings, problems: list[str]) -> set[str]:
    """Return the newest file of each model, text and protocol; former versions are left out.

    Each month whose manifest cannot be read is added to ``problems``, and its files are left out.
    """
    files: dict[str, dict[CellName, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in store.list(f"{Cell.ROOT}/model=*/source=*/month=*/*.parquet"):
        name = read_name(path)
        if name is not None:
            files[name.text[0]][name].append(path)
    chosen = set()
    for folder, cells in sorted(files.items()):
        try:
            seal = read_seal(store, partition_of(f"corpus/{folder}/"), settings.corpus_as_of)
        except TidemarkError as error:
            problems.append(str(error))
            continue
        if seal is None or not seal.num_documents:  # a takedown may have removed all documents
            continue
        current = sealed_text(seal)
        found = (paths for name, paths in cells.items() if name.text == current)
        chosen |= {_newest(store, paths) for paths in found}
    return chosen


def _newest(store: Store, paths: list[str]) -> str:
    """Return the path of the file that was written last; all are in one folder."""
    if len(paths) == 1:
        return paths[0]
    # The others are of former versions of the scorer, or of other dtypes.
    folder = paths[0].rpartition("/")[0]
    stamps = store.list_stamped(f"{folder}/*.parquet")
    return max(paths, key=lambda path: (stamps[path].modified_at, path))


def _list_landed(settings: Settings) -> set[str]:
    with locked(settings), connected(settings) as connection:
        return {cell.path for cell in scored_cells(connection)}


def _entries_of(models: Sequence[str], settings: Settings) -> dict[str, ModelEntry]:
    """Return the entries of the catalogue, of configured models and of ``models``, by name."""
    entries = {entry.name: entry for entry in list_models(settings)}
    for model in (*chosen_models(settings), *models):
        with contextlib.suppress(TidemarkError):  # the model's files may be on another machine
            entry = find_model(model, settings)
            entries[entry.name] = entry
    return entries


def land_facts(settings: Settings) -> None:
    """Land the catalogue entries of the landed models, and the runs of the canary."""
    with open_warehouse(settings) as warehouse:
        describe_models(warehouse, settings)
        land_canary_runs(warehouse, Store(settings.home))


def land_texts_of(model: str, found: FoundCells, settings: Settings) -> int:
    """Land a model, and its answers to questions and puzzles; return the number of new cells."""
    answers = [each for each in found.answers if each[0].model == model]
    puzzles = [cell for cell in found.puzzles if cell.model == model]
    revisions = [cell.revision for cell, _ in answers] + [cell.revision for cell in puzzles]
    with contextlib.suppress(UnknownName):  # the model was removed from the catalogue
        entry = entry_of(model, settings)
        if revisions:
            land_model(entry, revisions[0], settings)
    return land_answer_cells(settings, answers) + land_puzzle_cells(settings, puzzles)
