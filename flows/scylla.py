"""The flow of Scylla's puzzles: have models solve them, land the answers, and report."""

from __future__ import annotations

from functools import partial

from prefect import flow
from prefect.runtime import flow_run

from core.run_record import RunRecord
from core.storage.store import Store
from flows.dispatch import cancel_run
from flows.instrument import (
    InstrumentSummary,
    ask_for_run,
    ask_models,
    publish_and_report,
    run_model,
)
from instruments.forecasts import answering_models, begin_spending
from instruments.puzzles import plan_puzzles
from instruments.running.run_options import NO_PUZZLE_OPTIONS, PuzzleOptions
from tasks.cells import solve_puzzle
from tasks.prefect.server import ended, run_log
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced
from tasks.reporting import write_report


def _name() -> str:
    given = flow_run.parameters
    return (
        f"puzzles of Scylla for {', '.join(given['models'])}"
        if given["run"]
        else "puzzles of Scylla"
    )


@flow(name="scylla", on_cancellation=[cancel_run], flow_run_name=_name)
@traced("scylla")
def scylla(
    models: list[str] | None = None,
    puzzles: list[str] | None = None,
    run: str | None = None,
    options: PuzzleOptions = NO_PUZZLE_OPTIONS,
) -> InstrumentSummary:
    """Have models solve the puzzles that they have not solved, and publish the answers.

    Args:
        models: names of models; default: the setting ``models``, without compressors.
        puzzles: names of puzzles; default: all puzzles.
        run: name of the run that this one asks models for: it only asks, and stores the outcome.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    summary = InstrumentSummary()
    begin_spending(settings)
    chosen = models or answering_models(settings)

    def ask(model: str, summary: InstrumentSummary) -> None:
        plan = partial(plan_puzzles, model, puzzles, settings)
        run_model("solve", model, plan, solve_puzzle, settings, summary)

    if run is not None:
        ask_for_run("solve", chosen, ask, RunRecord(Store(settings.home), run), summary)
        return ended(summary, summary.holes)
    ask_models(
        "solve", chosen, ask, settings, summary, {"puzzles": puzzles, "options": options.given()}
    )
    if chosen:
        publish_and_report(write_report, settings, summary)
    else:
        run_log().warning("nothing to do: no model of TIDEMARK_MODELS can write")
    return ended(summary, summary.holes)
