"""Score sealed partitions with one model: the model is loaded once, cells fan out."""

from __future__ import annotations

from dataclasses import dataclass, field

from prefect import flow

from core.errors import TidemarkError
from core.month import Month, month_range
from core.settings import Settings
from tasks.fan_out import Hole, fan_out
from tasks.landing import land_cells, publish_warehouse
from tasks.scoring import load_model, plan_scoring, score_cells
from tasks.storage_keys import worker_settings


@dataclass
class ScoreOutcome:
    """How many cells landed in this run, and what did not."""

    landed: int = 0
    holes: list[Hole] = field(default_factory=list)


@flow(name="score", flow_run_name="score {model}")
def score(
    model: str,
    sources: list[str] | None = None,
    first: str | None = None,
    last: str | None = None,
    settings: Settings | None = None,
) -> ScoreOutcome:
    """Score and land every cell of a model that is not done; publish the warehouse.

    Args:
        model: catalogue name, folder, or control.
        sources: default: all that are sealed.
        first: YYYY-MM; default: all months that are sealed.
        last: YYYY-MM, included; default: ``first``.
        settings: default: read from the environment of the worker.
    """
    settings = settings or worker_settings()
    months = list(month_range(Month(first), Month(last or first))) if first else None
    outcome = ScoreOutcome()
    try:
        plan = plan_scoring(model, [settings.protocol], sources, months, settings)
        load_model(plan, settings)
    except TidemarkError as error:
        outcome.holes.append(Hole(f"score {model}", str(error)))
        return outcome
    outcome.holes += [Hole(f"score {model}", why) for why in plan.refused]
    calls = [
        (f"score {cells[0]}", {"cells": cells, "entry": plan.entry, "settings": settings})
        for cells in plan.groups
    ]
    results = list(fan_out(score_cells, calls, step=f"score {plan.entry.name}", in_flight=2))
    outcome.holes += [result for result in results if isinstance(result, Hole)]
    outcome.landed = land_cells(entry=plan.entry, cells=plan.cells, settings=settings)
    publish_warehouse(settings=settings)
    return outcome
