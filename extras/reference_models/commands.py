"""Commands `demo` and `models train`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from cli.query import print_paths
from cli.run import print_gaps
from cli.terminal.console import fail_with, out, progress_bars
from cli.terminal.options import Sources, settings_for_tasks
from core.month import Month


def demo_command(
    context: typer.Context,
    seed: Annotated[int, Option(help="Seed of the simulated world and of the models.")] = 0,
    home: Annotated[
        str | None, Option(help="Folder of the demo. Default: tidemark-demo.", metavar="ROOT")
    ] = None,
) -> None:
    """Run all steps on a simulated web, offline.

    Four simulated sources are crawled over loopback HTTP. Three small models are trained up to a
    known month each, one of them before the first. The models and three compressors are scored on
    every month. The report shows whether the cutoffs are found. A second run reuses finished work.
    """
    before = context.parent.params["home"] if context.parent else None  # of tidemark --home X demo
    given = before if home is None else home
    from core.settings import load_settings

    context.obj = load_settings(home="tidemark-demo" if given is None else given)
    settings = settings_for_tasks(context)
    from extras.reference_models.demonstration import run_demo

    with progress_bars():
        summary = run_demo(settings, seed)
    if summary.report:
        print_gaps(settings)
        out.print("SIMULATED: a program made up the texts; no real site or model is measured")
        print_paths(settings, summary.report)
    fail_with(summary.holes)


def train_command(
    context: typer.Context,
    name: Annotated[str, Argument(help="Name of the reference model.")],
    cutoff: Annotated[str, Option(help="Last month of the corpus.", metavar="YYYY-MM")],
    source: Sources = None,
    epochs: Annotated[int, Option(min=1, help="Passes over the corpus.")] = 2,
    seed: Annotated[int, Option(help="Seed of weights and shuffling.")] = 0,
) -> None:
    """Train a small reference model on the sealed corpus up to a month.

    The model is a control: its cutoff is known, so its loss must rise after this month.
    """
    settings = settings_for_tasks(context)
    from extras.reference_models.reference import Recipe
    from extras.reference_models.training import train

    recipe = Recipe(name=name, cutoff=Month(cutoff), seed=seed, epochs=epochs)
    with progress_bars():
        entry = train(recipe, source, settings)
    out.print(f"{entry.name}: cutoff {entry.cutoff}, saved at {entry.location}")


COMMANDS = {"Start": {"demo": demo_command}, "Score models": {"models train": train_command}}
