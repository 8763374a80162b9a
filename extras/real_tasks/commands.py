"""Commands `tasks make`, `tasks answer` and `tasks show`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from typer import Context, Option

from cli.terminal.console import fail_with, out, print_rows, progress_bars
from cli.terminal.options import (
    FirstMonth,
    GivenMonth,
    LastMonth,
    ModelNames,
    Sources,
    month_window,
    settings_for_tasks,
)
from core.errors import UsageError
from core.progress import counted
from core.storage.store import Store

LIKELIHOOD = "task-text-byte"
WRITTEN = "task-generate"

tasks_app = typer.Typer(
    help="Make tasks from each month's texts; have models solve them.", no_args_is_help=True
)


@tasks_app.command("make")
def make_command(
    context: Context,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    number: Annotated[
        int, Option("--number", help="Tasks of a kind, source and month, at most.", min=1)
    ] = 100,
    seed: Annotated[int, Option(help="Another seed gives other tasks.", min=0)] = 0,
    replace: Annotated[
        bool, Option("--replace", help="Replace tasks that are sealed and differ.")
    ] = False,
) -> None:
    """Make tasks from the sealed texts: facts, code and summaries, each with four options.

    They are sealed as the sources NAME:task-cloze, NAME:task-code and NAME:task-lead.
    """
    settings = settings_for_tasks(context)
    from extras.real_tasks.making import make_tasks

    store = Store(settings.home, settings.scratch)
    months = month_window(month, first, last) or []
    sealed = make_tasks(store, source or [], months, number, seed, replace)
    for seal in sealed:
        tasks = counted(seal.num_questions, "task")
        out.print(f"{seal.source} {seal.month}: {tasks}", soft_wrap=True)
    if not sealed:
        out.print("no text gave a task with four options")


@tasks_app.command("answer")
def answer_command(
    context: Context,
    model: ModelNames = None,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    protocol: Annotated[
        list[str] | None,
        Option(
            "--protocol",
            "-p",
            help=f"Such as {LIKELIHOOD}, task-letter or {WRITTEN}; repeat for several. "
            f"Default: {LIKELIHOOD}; for models behind an API: {WRITTEN}.",
            metavar="NAME",
        ),
    ] = None,
) -> None:
    """Have models solve the sealed tasks, land the answers and publish the warehouse.

    --source wikinews means all tasks of its texts; wikinews:task-cloze means those of one kind.
    """
    settings = settings_for_tasks(context)
    from instruments.forecasts import answer_and_land, answering_models
    from models.catalogue import find_model

    months = month_window(month, first, last)
    models = model or answering_models(settings)
    if not models:
        raise UsageError("no model that can answer: name one with --model")
    by_protocol: dict[str, list[str]] = {}
    for name in models:
        usual = WRITTEN if find_model(name, settings).backend.is_paid else LIKELIHOOD
        for asked in protocol or [usual]:
            by_protocol.setdefault(asked, []).append(name)
    failures: list[str] = []
    sources = _with_tasks(source or [])
    for asked, names in by_protocol.items():
        with progress_bars():
            found = answer_and_land(settings, names, [asked], sources, months)
        num_answers, num_landed, failed = found
        says = f"{counted(num_answers, 'task')} answered, {counted(num_landed, 'cell')} landed"
        out.print(f"{asked}: {says}", soft_wrap=True)
        failures += failed
    fail_with(failures)


def _with_tasks(sources: Sequence[str]) -> list[str]:
    """Return sources of tasks; a source of texts stands for all of its tasks."""
    from core.corpus.questions import task_source
    from extras.real_tasks.finding import FINDERS

    tasks = [task_source(each, kind) for each in sources for kind in FINDERS]
    return [*sources, *tasks]


@tasks_app.command("show")
def show_tasks_command(context: Context) -> None:
    """Print accuracy before and after each model's cutoff, from the published snapshot."""
    settings = settings_for_tasks(context)
    from warehouse.read.query import query

    found = query(
        settings,
        "select model, source, task, protocol, cutoff, num_before, num_after, accuracy_before, "
        "accuracy_after, gap, gap_low_documents, gap_high_documents, reason from tasks.task_gap "
        "order by source, task, protocol, model",
    ).to_pylist()
    if not found:
        raise UsageError("no model has solved tasks; see `tidemark tasks answer`")
    print_rows("accuracy in tasks, after the cutoff less before", found)


COMMANDS = {"Other instruments": {"tasks": tasks_app}}
