"""The end of a run: land the written cells, publish, and write the site; call it in a flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import Task

from core.cells.files import find_texts
from core.errors import TidemarkError
from core.settings import Settings
from core.storage.store import Store
from instruments.runner import Failure
from instruments.summary import RunSummary
from instruments.written import Unlanded, find_unlanded, land_facts
from tasks.landing import land_answers, land_cells, publish_warehouse, write_report
from tasks.prefect.fan_out import run_task
from tasks.prefect.telling import tell


def finish(
    summary: RunSummary,
    models: Sequence[str],
    settings: Settings,
    has_losses: bool = True,
    has_answers: bool = False,
) -> None:
    """Land the written cells, publish new rows, and write the site.

    Failures become holes of ``summary``. The catalogue may lack ``models`` of the run.
    """
    written = Unlanded()
    try:
        if has_losses:
            written = _land_losses(summary, models, settings)
        if has_answers:
            _land_answers(summary, settings)
    except TidemarkError as error:
        summary.holes.append(f"land: {error}")
    _do(summary, publish_warehouse, "publish", settings=settings)
    for entry, cells in written.cells:
        tell("shown", entry.name, cells, settings)
    summary.report = _do(summary, write_report, "report", settings=settings) or ""


def _land_losses(summary: RunSummary, models: Sequence[str], settings: Settings) -> Unlanded:
    """Land the losses that are written and not landed; return the cells that were found."""
    written = find_unlanded(models, settings)
    summary.holes += [f"land {problem}" for problem in written.problems]
    for entry, cells in written.cells:
        given = {"entry": entry, "cells": cells, "settings": settings}
        summary.cells += _do(summary, land_cells, f"land {entry.name}", **given) or 0
    land_facts(settings)
    return written


def _land_answers(summary: RunSummary, settings: Settings) -> None:
    found = find_texts(Store(settings.home))
    summary.holes += [f"land {problem}" for problem in found.problems]
    for model in found.models:
        given = {"model": model, "found": found, "settings": settings}
        summary.cells += _do(summary, land_answers, f"land answers of {model}", **given) or 0


def _do(summary: RunSummary, work: Task[..., Any], what: str, **given: Any) -> Any:
    """Run a task once; return its result, or None after a failure, which becomes a hole."""
    result = run_task(work, what, **given)
    if isinstance(result, Failure):
        summary.holes.append(str(result))
        return None
    return result
