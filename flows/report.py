"""The flow that publishes the warehouse, writes the report page, and ends a run."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from core.corpus.partition import list_sealed
from core.errors import MalformedInput
from core.run_record import RunRecord
from core.settings import Settings
from core.storage.store import Store
from flows.run import RunSummary, report_on, summary_of
from instruments.landing import read_left
from tasks.landing import land_cells, publications_due, publish_warehouse
from tasks.prefect.events import tell_landed
from tasks.prefect.fan_out import fan_out
from tasks.prefect.server import ended
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced


def _name() -> str:
    run = flow_run.parameters["run"]
    return f"report of {run}" if run else "report"


@flow(name="report", flow_run_name=_name)
@traced("report")
def report(run: str | None = None) -> RunSummary:
    """Land cells that could not land before, publish, write the report, and end the run.

    Args:
        run: name of the run that ends with this report; default: no run.
    """
    settings = worker_settings()
    summary = RunSummary()
    if run:
        land_left(summary, run, settings)
    summary.keep_holes(fan_out(publish_warehouse, publications_due(settings), step="publish"))
    report_on(summary, settings)
    if run:
        record = RunRecord(Store(settings.home), run)
        summary = summary_of(record.finish(summary.report, summary.holes))
    return ended(summary, summary.holes)


def land_left(summary: RunSummary, run: str, settings: Settings) -> None:
    """Land cells scored on machines that cannot write the warehouse; failures become holes."""
    try:
        left = read_left(run, settings)
    except MalformedInput as error:
        summary.holes.append(f"land: {error}")
        return
    # Skip cells of older text versions, since another run may have landed a newer version.
    sealed = list_sealed(Store(settings.home), as_of=settings.corpus_as_of)
    newest = {seal.digest for seal in sealed}
    calls: list[tuple[str, dict[str, Any]]] = []
    for entry, cells in left:
        current = tuple(cell for cell in cells if cell.partition_digest in newest)
        landing = {"entry": entry, "cells": current, "settings": settings}
        calls.append((f"land {entry.name}", landing))
    results = fan_out(land_cells, calls, step="land", in_flight=1)
    for (entry, _), landed in zip(left, results, strict=True):
        if summary.keep_holes([landed]) and landed:
            tell_landed(entry.name, landed, 0)
