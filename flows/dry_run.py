"""`backfill --dry-run`: what a run would do and what it would take, for people."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from core.month import Month
from core.settings import Settings
from flows.console import out, print_table, visible
from flows.readable import duration, size
from tasks.estimate import Estimate, estimate_run
from tasks.markup import plain, plain_cell
from tasks.planning import Request
from tasks.run_plan import STATES, RunPlan, months_of, plan_run

_CELL_COLUMNS = ["model", "done", "to score", "score", "land, publish", "based on"]
_WHAT = {
    "sealed": "sealed",
    "partial": "partial, asked again",
    "held": "held back, crawled again",
    "to crawl": "to crawl",
    "lacking": "not to be had",
}


def print_dry_run(request: Request, settings: Settings) -> None:
    """Print the plan of a run and its estimated cost; nothing is written, crawled or fetched."""
    plan = plan_run(request, settings)
    estimate = estimate_run(plan, settings)
    for title, columns, rows in _tables(plan, estimate):
        print_table(title, columns, rows)
    for line in _totals(plan, estimate, settings):
        out.print(visible(line), soft_wrap=True)


def announce_dry_run(request: Request, settings: Settings) -> State[str]:
    """Show the plan of a run on the server: as the state's message, and as an artifact."""
    plan = plan_run(request, settings)
    estimate = estimate_run(plan, settings)
    parts = [
        f"## {title}\n\n{_markdown(columns, rows)}"
        for title, columns, rows in _tables(plan, estimate)
    ]
    totals = _totals(plan, estimate, settings)
    create_markdown_artifact(
        "\n\n".join([*map(plain, totals), *parts]), key="backfill-dry-run", description=totals[0]
    )
    return Completed(name="Completed (dry run)", message="\n".join(totals), data=totals[0])


def _tables(
    plan: RunPlan, estimate: Estimate
) -> Iterator[tuple[str, list[str], list[Sequence[object]]]]:
    yield "months", ["source", "state", "months", "number"], list(_source_rows(plan))
    yield "cells", _CELL_COLUMNS, list(_model_rows(plan, estimate))
    once = [step for step in estimate.steps if not step.model]
    yield (
        "once",
        ["step", "time", "based on"],
        [(step.name, duration(step.seconds), step.basis) for step in once],
    )


def _model_rows(plan: RunPlan, estimate: Estimate) -> Iterator[Sequence[object]]:
    for model in plan.models:
        score, land = (step for step in estimate.steps if step.model == model.asked)
        times = duration(score.seconds), duration(land.seconds)
        yield model.asked, len(model.done), model.num_to_score, *times, score.basis


def _source_rows(plan: RunPlan) -> Iterator[Sequence[object]]:
    for source in plan.request.sources:
        planned = plan.of_source(source)
        for state in STATES:
            months = months_of(planned, state)
            if months:
                yield source, _WHAT[state], spans(months), len(months)


def _totals(plan: RunPlan, estimate: Estimate, settings: Settings) -> list[str]:
    crawled = sum(each.state in ("to crawl", "held", "partial") for each in plan.partitions)
    cells = sum(model.num_to_score for model in plan.models)
    done = sum(len(model.done) for model in plan.models)
    lines = [
        f"total: {crawled} partitions to crawl, {cells} cells to score ({done} done); about "
        f"{duration(estimate.seconds)}, GPU {estimate.gpu_seconds / 3600:.2g} h, "
        f"disk {size(estimate.disk_bytes)}{_free(settings)}"
    ]
    if estimate.unknown:
        names = ", ".join(f"{step.name} {step.model}" for step in estimate.unknown)
        lines.append(f"not in the total, because nothing is known of it: {names}")
    if not 0.8 <= estimate.slowness <= 1.25:
        lines.append(
            f"this machine is, at this moment, {estimate.slowness:.1f} times as slow as the one "
            "that the assumptions are from; they are scaled"
        )
    return lines


def _free(settings: Settings) -> str:
    folder = Path(settings.home) if settings.is_local else settings.scratch
    while not folder.exists():
        folder = folder.parent
    return f" of {size(shutil.disk_usage(folder).free)} free"


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    def line(cells: Sequence[object]) -> str:
        return f"| {' | '.join(plain_cell(str(cell)) for cell in cells)} |"

    return "\n".join([line(columns), "|---" * len(columns) + "|", *map(line, rows)])


def spans(months: Sequence[Month]) -> str:
    """Return months in order as spans: ``2024-01 … 2024-05, 2024-08``."""
    found: list[list[Month]] = []
    for month in months:
        if found and month == found[-1][-1] + 1:
            found[-1].append(month)
        else:
            found.append([month])
    return ", ".join(
        str(span[0]) if len(span) == 1 else f"{span[0]} … {span[-1]}" for span in found
    )
