"""Steps that the flows of forecasts and of puzzles share; call them inside a flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from prefect import Task

from core.settings import Settings
from instruments.runner import Failure, Plan, plan_or_failure, run
from instruments.stopping import stop_with_flow
from tasks.landing import land_plan, publish_warehouse
from tasks.prefect.fan_out import as_tasks, fan_out
from tasks.prefect.server import run_log


@dataclass
class Holes:
    """A list of holes (missing work, with the reason); base class of the outcomes of flows."""

    holes: list[str] = field(default_factory=list)

    def keep_holes(self, results: Iterable[Any]) -> list[Any]:
        """Add each Failure in ``results`` to the list of holes, and return the other results."""
        results = list(results)
        self.holes += [str(result) for result in results if isinstance(result, Failure)]
        return [result for result in results if not isinstance(result, Failure)]


@dataclass
class InstrumentSummary(Holes):
    """The numbers of sealed months of questions, of answered items, and of landed cells."""

    months: int = 0
    items: int = 0
    landed: int = 0
    report: str = ""

    def __str__(self) -> str:
        return f"{self.items} items answered, {self.landed} cells landed, report {self.report}"


def run_model(
    verb: str,
    model: str,
    make_plan: Callable[[], Plan[Any]],
    work: Task[..., Any],
    settings: Settings,
    summary: InstrumentSummary,
) -> None:
    """Compute the pending cells of one model as tasks, and land the results.

    The task ``work`` computes one cell. Failures, also of ``make_plan``, become holes (missing
    work) of ``summary``. The text of each hole begins with ``verb``.
    """
    plan = plan_or_failure(model, make_plan)
    if isinstance(plan, Failure):
        summary.holes.append(f"{verb} {model}: {plan.why}")
        return
    with stop_with_flow():
        done = run(plan, settings, as_tasks(work))
    summary.items += done.num_items
    summary.holes += [f"{verb} {failure}" for failure in done.failures]
    for remark in done.remarks:
        run_log().warning("%s", remark)
    landing = [(f"land {model}", {"plan": plan, "settings": settings})]
    summary.landed += sum(summary.keep_holes(fan_out(land_plan, landing, step=None)))


def publish_and_report(
    write_page: Task[..., Any], settings: Settings, summary: InstrumentSummary
) -> None:
    """Publish the warehouse, and write the report page with task ``write_page``."""
    for work in (publish_warehouse, write_page):
        calls = [(str(work.name), {"settings": settings})]
        for address in summary.keep_holes(fan_out(work, calls, step=None)):
            summary.report = str(address) if work is write_page else ""
