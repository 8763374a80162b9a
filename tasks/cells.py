"""Tasks that compute cells: losses, answers to questions, and answers to puzzles."""

from __future__ import annotations

import datetime as dt

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.cells.losses import Cell
from core.cells.puzzles import PuzzleCell
from core.settings import Settings
from instruments.forecasts import AskedCell, answer_cell
from instruments.losses import score_group
from instruments.puzzles import solve_cell
from instruments.runner import Done
from models.catalogue import ModelEntry
from tasks.prefect.observe import observe, show_scored
from tasks.prefect.retries import OF_WRITES


@task(task_run_name="score {cells[0]}", **OF_WRITES)
def score_cells(cells: tuple[Cell, ...], entry: ModelEntry, settings: Settings) -> Done:
    """Score cells of one partition with one model; see ``score_group``."""
    observe()
    began = dt.datetime.now(dt.UTC)
    done = score_group(cells, entry, settings)
    show_scored(cells, began, settings)
    return done


@task(task_run_name="answer {cells[0]}", cache_policy=NO_CACHE, persist_result=False)
def answer_month(cells: tuple[AskedCell, ...], entry: ModelEntry, settings: Settings) -> Done:
    """Have a model answer the questions of one source and month; see ``answer_cell``."""
    observe()
    return answer_cell(entry, cells[0], settings)


@task(task_run_name="solve {cells[0]}", cache_policy=NO_CACHE, persist_result=False)
def solve_puzzle(cells: tuple[PuzzleCell, ...], entry: ModelEntry, settings: Settings) -> Done:
    """Have a model solve the items of one puzzle; see ``solve_cell``."""
    observe()
    return solve_cell(entry, cells[0], settings)
