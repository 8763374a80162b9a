"""The flow of Scylla's puzzles: have models solve them, land the answers, and report."""

from __future__ import annotations

from functools import partial

from prefect import flow

from flows.instrument import InstrumentSummary, publish_and_report, run_model
from instruments.forecasts import answering_models, begin_spending
from instruments.puzzles import plan_puzzles
from instruments.run_options import NO_ANSWER_OPTIONS, AnswerOptions
from tasks.cells import solve_puzzle
from tasks.prefect.server import ended, run_log
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced
from tasks.reporting import write_report


@flow(name="scylla", flow_run_name="puzzles of Scylla")
@traced("scylla")
def scylla(
    models: list[str] | None = None,
    puzzles: list[str] | None = None,
    options: AnswerOptions = NO_ANSWER_OPTIONS,
) -> InstrumentSummary:
    """Have models solve the puzzles that they have not solved, and publish the answers.

    Args:
        models: names of models; default: the setting ``models``, without compressors.
        puzzles: names of puzzles; default: all puzzles.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    summary = InstrumentSummary()
    begin_spending(settings)
    chosen = models or answering_models(settings)
    for model in chosen:
        plan = partial(plan_puzzles, model, puzzles, settings)
        run_model("solve", model, plan, solve_puzzle, settings, summary)
    if chosen:
        publish_and_report(write_report, settings, summary)
    else:
        run_log().warning("nothing to do: no model of TIDEMARK_MODELS can write")
    return ended(summary, summary.holes)
