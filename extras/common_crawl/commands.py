"""Command `corpus thirds`."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

from typer import Argument, Context, Option

from cli.terminal.console import print_rows
from cli.terminal.options import settings_of
from core.errors import UsageError, did_you_mean
from core.storage.store import Store


def thirds_command(
    context: Context,
    source: Annotated[str, Argument(help="Source of texts that are scored.", metavar="SOURCE")],
    model: Annotated[
        str, Option("--model", "-m", help="Reference model, of whose losses thirds are made.")
    ],
    protocol: Annotated[str, Option(help="Protocol of the losses.")] = "default",
) -> None:
    """Show losses by thirds of quality: of perplexity under a reference model, month by month.

    So does CCNet, with a model of Wikipedia: head, middle and tail. No text is left out.
    """
    from core.corpus.partition import list_sealed_sources
    from models.catalogue import find_model
    from models.scoring.protocols import get_protocol
    from warehouse.read.query import query

    settings = settings_of(context)
    found = query(settings, thirds_statement(), [source, model, protocol]).to_pylist()
    if not found:
        find_model(model, settings)
        get_protocol(protocol)
        meant = did_you_mean(source, list_sealed_sources(Store(settings.home)))
        raise UsageError(
            f"{model} has no losses of months of {source} under the protocol {protocol}; {meant}"
            f"`tidemark score --model {model} --source {source} --protocol {protocol}` makes them"
        )
    print_rows(f"{source}: thirds of perplexity under {model}", found)


def thirds_statement() -> str:
    """Return the SQL of the thirds."""
    return files("extras.common_crawl").joinpath("thirds.sql").read_text(encoding="utf-8")


COMMANDS = {"Collect text": {"corpus thirds": thirds_command}}
