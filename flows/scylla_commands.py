"""`tidemark scylla`: have models solve generated puzzles, and look at what came of it."""

from __future__ import annotations

from typing import Annotated

import typer

from core.errors import UsageError
from flows.console import fail_with, out, progress_bars, visible
from flows.options import settings_for_tasks, settings_of

scylla_app = typer.Typer(
    help="Scylla's puzzles: generalisation against memorisation.", no_args_is_help=True
)

WriterNames = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="Catalogue name, model folder, or scripted:valley; repeat for several. "
        "Default of run: TIDEMARK_MODELS; of show: all.",
        metavar="NAME|FOLDER",
    ),
]
PuzzleNames = Annotated[
    list[str] | None,
    typer.Option(
        "--puzzle", "-p", help="Puzzle; repeat for several. Default: all.", metavar="NAME"
    ),
]


@scylla_app.command("run")
def scylla_run(
    context: typer.Context, model: WriterNames = None, puzzle: PuzzleNames = None
) -> None:
    """Have models solve the puzzles, land what came of it, publish, and write the page.

    What is solved is not asked again; a run that was killed goes on where it was. Scripted models,
    whose scores are known beforehand, are controls: -m scripted:small -m scripted:large.
    """
    settings = settings_for_tasks(context)
    from flows.direct import solve_and_land
    from reports.puzzles import write_puzzles
    from scylla.scripted import PREFIX, list_scripted
    from tasks.answering import answering_models, spent_by

    models = model or answering_models(settings)
    if not models:
        raise UsageError(
            "no model that can write: name one with --model, or in TIDEMARK_MODELS; to look at how "
            f"it works, one of {', '.join(list_scripted())}"
        )
    with progress_bars():
        solved = solve_and_land(settings, models, puzzle)
    for remark in solved.remarks:
        out.print(visible(remark), soft_wrap=True)
    out.print(f"{solved.num_items:,} items a split solved, {solved.num_landed} puzzles landed")
    bought = [name for name in models if not name.startswith(PREFIX)]
    for name, spent in spent_by(bought, settings).items():
        out.print(visible(f"{name} has taken so far: {spent}"), soft_wrap=True)
    if solved.num_cells:
        out.print(f"report    {write_puzzles(settings)}", soft_wrap=True)
    fail_with(solved.failures)


@scylla_app.command("show")
def scylla_show(
    context: typer.Context, model: WriterNames = None, puzzle: PuzzleNames = None
) -> None:
    """Print what is published: scores by level and critical complexity.

    With --puzzle, a model's items of it: what was asked, what it wrote, and the verdict.
    """
    settings = settings_of(context)
    from flows.scylla_tables import print_items, print_scores

    if puzzle:
        print_items(settings, model, puzzle)
    else:
        print_scores(settings, model)
