"""Publish the warehouse, write the page, and end a run."""

from __future__ import annotations

from prefect import flow

from core.corpus import list_sealed
from core.errors import MalformedInput
from core.run_record import RunRecord
from core.settings import Settings
from core.storage import Store
from flows.run import RunSummary, report_on, summary_of
from flows.stages import ended
from tasks.events import emit_landed
from tasks.fan_out import Hole, fan_out
from tasks.landing import land_cells, publish_warehouse
from tasks.left_to_land import read_left
from tasks.storage_keys import worker_settings
from tasks.tracing import traced


@flow(name="report")
@traced("report")
def report(run: str | None = None, settings: Settings | None = None) -> RunSummary:
    """Land what scoring left, publish and write the report; a run has its result then.

    Args:
        run: the run that ends with this report; default: none.
        settings: default: read from the environment of the worker.
    """
    settings = settings or worker_settings()
    summary = RunSummary()
    if run:
        land_left(summary, run, settings)
    calls = [("publish", {"settings": settings})]
    summary.keep_holes(fan_out(publish_warehouse, calls, step="publish"))
    report_on(summary, settings)
    if run:
        record = RunRecord(Store(settings.home), run)
        summary = summary_of(record.finish(summary.report, list(map(str, summary.holes))))
    return ended(summary, summary.holes)


def land_left(summary: RunSummary, run: str, settings: Settings) -> None:
    """Land what was scored where the warehouse is not written; what cannot is a hole."""
    try:
        left = read_left(run, settings)
    except MalformedInput as error:
        summary.holes.append(Hole("land", str(error)))
        return
    # A partition may have been sealed anew since, and that version landed by another run.
    sealed = list_sealed(Store(settings.home), as_of=settings.corpus_as_of)
    newest = {seal.digest for seal in sealed}
    calls = [
        (
            f"land {entry.name}",
            {
                "entry": entry,
                "cells": tuple(cell for cell in cells if cell.partition_digest in newest),
                "settings": settings,
            },
        )
        for entry, cells in left
    ]
    results = fan_out(land_cells, calls, step="land", in_flight=1)
    for (entry, _), landed in zip(left, results, strict=True):
        if summary.keep_holes([landed]) and landed:
            emit_landed(entry.name, landed, 0)
