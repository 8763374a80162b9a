"""`tidemark models`, `sources` and `protocols`: what there is to crawl and to score, and how."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import ValidationError

from core.corpus import list_sealed
from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from flows.console import out, print_table, progress_bars
from flows.options import Sources, settings_for_tasks, settings_of

models_app = typer.Typer(no_args_is_help=True, help="The catalogue of models.")
sources_app = typer.Typer(no_args_is_help=True, help="The sources of text.")
protocols_app = typer.Typer(no_args_is_help=True, help="The ways to cut and score text.")


@sources_app.command("list")
def sources_list(context: typer.Context) -> None:
    """List the sources: what they are, their sites, and what is sealed."""
    from crawlers.contract import list_sources, load_crawler

    store = Store(settings_of(context).home)
    sealed: dict[str, list[str]] = {}
    for seal in list_sealed(store):
        sealed.setdefault(seal.partition.source, []).append(str(seal.partition.month or "undated"))
    rows = []
    for name in list_sources():
        info = load_crawler(name).INFO
        months = sealed.pop(name, [])
        sites = " ".join(f"{key}={url}" for key, url in info.sites.items())
        rows.append((name, info.title, info.licence, sites, _span(months)))
    rows += [(name, "imported", "", "", _span(months)) for name, months in sorted(sealed.items())]
    print_table("sources", ["source", "title", "licence", "sites", "sealed"], rows)


def _span(months: list[str]) -> str | None:
    if not months:
        return None
    return months[0] if len(months) == 1 else f"{months[0]} … {months[-1]} ({len(months)})"


@protocols_app.command("list")
def protocols_list() -> None:
    """List the scoring protocols and their quirks."""
    from models.protocols import list_protocols

    print_table(
        "protocols",
        ["protocol", "description"],
        [(p.name, p.description) for p in list_protocols()],
    )


@models_app.command("list")
def models_list(context: typer.Context) -> None:
    """List the catalogue: shipped, your own, controls and reference models."""
    from models.catalogue import list_models

    rows = [
        (m.name, m.kind, m.location, m.released, m.cutoff, m.cutoff_provenance, m.parameters)
        for m in list_models(settings_of(context))
    ]
    columns = ["model", "kind", "location", "released", "cutoff", "provenance", "parameters"]
    print_table("models", columns, rows)


@models_app.command("show")
def models_show(context: typer.Context, name: str) -> None:
    """Show all that the catalogue knows of a model."""
    from dataclasses import fields

    from models.catalogue import find_model

    entry = find_model(name, settings_of(context))
    rows = [(field.name, getattr(entry, field.name)) for field in fields(entry)]
    print_table(entry.name, ["field", "value"], rows)


@models_app.command("add")
def models_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name in the catalogue.")],
    location: Annotated[str, typer.Argument(help="Hub id or folder of the model.")],
    cutoff: Annotated[
        str | None, typer.Option(help="Last month the model has seen.", metavar="YYYY-MM")
    ] = None,
    released: Annotated[
        str | None, typer.Option(help="Day of the release.", metavar="YYYY-MM-DD")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Commit of the hub to pin.")] = None,
    notes: Annotated[str, typer.Option(help="Anything worth knowing.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in place of an entry of that name.")
    ] = False,
) -> None:
    """Add a model to your own catalogue (catalogue.yaml under the data root)."""
    _add_to_catalogue(
        settings_of(context),
        replace,
        name=name,
        location=location,
        cutoff=cutoff,
        released=released,
        revision=revision,
        notes=notes,
    )
    out.print(f"added {name}")


@models_app.command("train")
def models_train(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the reference model.")],
    cutoff: Annotated[
        str, typer.Option(help="Train up to this month, included.", metavar="YYYY-MM")
    ],
    source: Sources = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the corpus.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of weights and order.")] = 0,
) -> None:
    """Train a small reference model on the sealed corpus up to a month.

    Its cutoff is known, so its gap must appear in the figures: a control with a planted truth.
    """
    settings = settings_for_tasks(context)
    from models.reference import Recipe
    from tasks.training import train

    recipe = Recipe(name=name, cutoff=Month(cutoff), seed=seed, epochs=epochs)
    with progress_bars():
        entry = train(recipe, source, settings)
    out.print(f"{entry.name}: cutoff {entry.cutoff}, saved at {entry.location}")


def _add_to_catalogue(settings: Settings, replace: bool, **fields: object) -> None:
    """Add a model; fields that are None are left out, a cutoff counts as stated to the month.

    Raises:
        UsageError: a field is not valid, or the name is taken.
    """
    from models.catalogue import ModelEntry, add_model

    given = {name: value for name, value in fields.items() if value is not None}
    if "cutoff" in given:
        given |= {"cutoff_provenance": "stated", "cutoff_precision": "month"}
    try:
        entry = ModelEntry(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
        )
        raise UsageError(f"not a valid model: {problems}") from error
    add_model(entry, settings, replace)
