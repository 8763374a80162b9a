"""The flow of Scylla's puzzles: have models solve them, land the answers, and report."""

from __future__ import annotations

from prefect import flow

from extras.scheduled_questions.asking import ask_models
from flows.begin import begin_run
from instruments.forecasts import answering_models
from instruments.running.run_options import PuzzleOptions
from instruments.summary import RunSummary
from tasks.prefect.given import worker_settings


@flow(name="scylla", flow_run_name="puzzles of Scylla")
def scylla(
    models: list[str] | None = None,
    puzzles: list[str] | None = None,
    options: PuzzleOptions = PuzzleOptions(),
) -> RunSummary:
    """Have models solve the puzzles that they have not solved, and publish the answers.

    Args:
        models: names of models; default: the setting ``models``, without compressors.
        puzzles: names of puzzles; default: all puzzles.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    chosen = models or answering_models(settings)
    given = {"puzzles": puzzles, "options": options.given()}
    return ask_models("solve", begin_run(), chosen, given, settings, RunSummary())
