"""The task that computes a group of cells, and the executor that runs groups as such tasks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from prefect import task

from core.settings import Settings
from instruments.losses import ScoringPlan
from instruments.runner import Done, Ended, Plan
from tasks.prefect.fan_out import run_tasks
from tasks.prefect.observe import observe
from tasks.prefect.retries import OF_WRITES
from tasks.prefect.telling import tell


@task(task_run_name="{plan.verb} {cells[0]}", **OF_WRITES)
def compute_cells(cells: tuple[Any, ...], plan: Plan[Any], settings: Settings) -> Done:
    """Compute cells that are computed together; see ``Plan.attempt``."""
    observe()
    began = dt.datetime.now(dt.UTC)
    done = plan.attempt(cells, settings)
    if isinstance(plan, ScoringPlan):
        tell("scored", cells, began, settings)
    return done


def as_tasks(
    plan: Plan[Any], groups: Iterable[tuple[Any, ...]], settings: Settings
) -> Iterator[Ended]:
    """Run each group of cells of a plan as a task run; see ``Execute``."""
    work = compute_cells if plan.is_retried else compute_cells.with_options(retries=0)
    bare = replace(plan, cells=(), pending=())  # Prefect searches parameters, which is slow
    taken: list[tuple[Any, ...]] = []

    def calls() -> Iterator[tuple[str, dict[str, Any]]]:
        for cells in groups:
            taken.append(cells)
            yield str(cells[0]), {"cells": cells, "plan": bare, "settings": settings}

    for number, result in run_tasks(work, calls(), plan.in_flight(settings), plan.fatal):
        yield taken[number], result
