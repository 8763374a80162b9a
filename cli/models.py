"""Commands `tidemark models`: the catalogue, the cache of hub models, and reference models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import fail_with, out, print_table
from cli.terminal.options import settings_of
from core.errors import TidemarkError, UsageError

if TYPE_CHECKING:
    from core.settings import Settings
    from models.catalogue import ModelEntry

Cutoff = Annotated[
    str | None, Option(help="Last month of the training data; none: unknown.", metavar="YYYY-MM")
]
Facts = Mapping[str, object]  # fields of an entry
Family = Annotated[str | None, Option(help="Name that models of several sizes share.")]
HubModels = Annotated[list[str], Argument(help="Catalogue names or hub ids.", metavar="NAME")]
Location = Annotated[
    str | None,
    Argument(
        help="Hub id, folder, .gguf or .pth file, or http://host:port. Default, with --trust: "
        "the catalogue's.",
        show_default=False,
    ),
]
Parameters = Annotated[int | None, Option(help="Number of weights.")]
Released = Annotated[str | None, Option(help="Day of the release.", metavar="YYYY-MM-DD")]
Role = Annotated[
    str | None, Option(help="model, thermometer (cutoff before all months) or known-cutoff.")
]
Tag = Annotated[str | None, Option(help="Only models with this tag, such as small-open.")]
Trust = Annotated[
    str | None,
    Option(
        help="code: run its own code, confined, at --revision, or the catalogue's, or newest.",
        metavar="code",
    ),
]

models_app = typer.Typer(no_args_is_help=True, help="The catalogue of models.")


@models_app.command("list")
def models_list(context: typer.Context, tag: Tag = None) -> None:
    """List the models of the catalogue: shipped models, yours, compressors, reference models."""
    from models.catalogue import list_models
    from models.choice import models_with

    entries = list_models(settings_of(context))
    rows = [
        (m.name, m.kind, m.location, m.released, m.cutoff, m.cutoff_provenance, m.parameters)
        for m in (entries if tag is None else models_with(tag, entries))
    ]
    columns = ["model", "kind", "location", "released", "cutoff", "provenance", "parameters"]
    print_table("models", columns, rows)


@models_app.command("show")
def models_show(context: typer.Context, name: str) -> None:
    """Show the entry of a model in the catalogue."""
    from dataclasses import fields

    from models.catalogue import find_model
    from models.choice import tags_of
    from models.weights.hub import is_on_hub

    entry = find_model(name, settings_of(context))
    rows = [(field.name, getattr(entry, field.name)) for field in fields(entry)]
    rows.append(("tags", ", ".join(tags_of(entry))))
    if is_on_hub(entry):
        rows.append(("cached", _cached(entry)))
    print_table(entry.name, ["field", "value"], rows)


def _cached(entry: ModelEntry) -> str:
    """Describe whether a hub model is in the local cache, with commit and size on disk."""
    from models.weights.cache import list_cached, readable_size
    from models.weights.hub import find_cached

    folder = find_cached(entry.location, entry.revision, entry.is_trusted)
    sizes = [model.num_bytes for model in list_cached() if model.location == entry.location]
    size = f"{readable_size(sum(sizes))} in the cache"
    if folder is not None:
        return f"yes, commit {folder.name}; {size}"
    return f"not whole, or not at this revision; {size}" if sizes else "no"


@models_app.command("fetch")
def models_fetch(context: typer.Context, names: HubModels) -> None:
    """Fetch the needed files of models from the hub into the local cache, and verify checksums.

    Without a pinned revision, the newest revision is fetched. Runs use the cached revision and do
    not ask the hub. An adapter's base model is also fetched. A repeated command continues a fetch.
    """
    from models.weights.cache import fetch_with_base, readable_size

    settings = settings_of(context)
    failures = []
    for entry in _hub_entries(names, settings):
        try:
            got_all = fetch_with_base(entry.location, entry.revision, settings, entry.is_trusted)
            for location, got in got_all:
                new = f"{readable_size(got.num_new_bytes)} fetched" if got.num_new_bytes else "here"
                size = readable_size(got.num_bytes)
                out.print(f"{location}: {size}, {new}, commit {got.commit}")
        except TidemarkError as error:
            failures.append(str(error))
    fail_with(failures)


@models_app.command("evict")
def models_evict(
    context: typer.Context,
    names: HubModels,
    old: Annotated[
        bool, Option("--old", help="Remove only revisions that runs do not use.")
    ] = False,
) -> None:
    """Remove models of the hub from the local cache."""
    from models.weights.cache import evict, list_cached, readable_size
    from models.weights.hub import find_cached

    settings = settings_of(context)
    entries = _hub_entries(names, settings)
    cached = {model.location for model in list_cached()}
    for entry in entries:
        used = find_cached(entry.location, entry.revision, entry.is_trusted)
        if entry.location not in cached:
            out.print(f"{entry.name}: not cached")
        elif old and used is None:
            out.print(f"{entry.name}: the revision that runs use is not cached; nothing removed")
        else:
            freed = evict(entry.location, keep=used.name if old and used else None)
            out.print(f"{entry.name}: {readable_size(freed)} freed")


@models_app.command("cache")
def models_cache(context: typer.Context) -> None:
    """Show the models in the local cache, least recently used first."""
    import datetime as dt

    from models.catalogue import list_models
    from models.weights.cache import list_cached, readable_size

    settings = settings_of(context)
    names = {entry.location: entry.name for entry in list_models(settings)}
    models = list_cached()
    rows = [
        (
            names.get(model.location, model.location),
            " ".join(commit[:12] for commit in model.commits),
            readable_size(model.num_bytes),
            dt.datetime.fromtimestamp(model.used_at, dt.UTC).date(),
        )
        for model in models
    ]
    print_table("model cache", ["model", "commits", "size", "last used"], rows)
    limit = settings.model_cache_bytes
    total = readable_size(sum(model.num_bytes for model in models))
    out.print(f"{total} of {'what the disk has' if limit is None else readable_size(limit)}")


@models_app.command("add")
def models_add(
    context: typer.Context,
    name: Annotated[str, Argument(help="Name in the catalogue.")],
    location: Location = None,
    cutoff: Cutoff = None,
    released: Released = None,
    parameters: Parameters = None,
    family: Family = None,
    role: Role = None,
    revision: Annotated[
        str | None, Option(help="Commit of the hub, or digest of the folder, to pin.")
    ] = None,
    trust: Trust = None,
    tokenizer: Annotated[
        str | None, Option(help="Hub id or folder of the tokenizer of a model on a server.")
    ] = None,
    served_name: Annotated[
        str | None, Option(help="Name of the model on its server. Default: the only model.")
    ] = None,
    dialect: Annotated[
        str | None,
        Option(help="Requests of the server: vllm, sglang or echo. Default: by its own name."),
    ] = None,
    api: Annotated[
        bool, Option("--api", help="The location is a chat API (http://host/v1).")
    ] = False,
    api_key: Annotated[
        str | None, Option(help="Use key TIDEMARK_API_KEYS__<NAME>.", metavar="NAME")
    ] = None,
    prices: Annotated[
        tuple[float, float] | None,
        Option(help="Dollars per million tokens: input, output.", metavar="IN OUT"),
    ] = None,
    notes: Annotated[str, Option(help="Free text.")] = "",
    replace: Annotated[bool, Option("--replace", help="Replace the entry of this name.")] = False,
) -> None:
    """Add a model to your own catalogue (catalogue.yaml under the data root)."""
    from models.weights.pins import first_facts, pin

    settings = settings_of(context)
    facts: dict[str, object] = {
        "released": released, "parameters": parameters, "family": family, "role": role,
        "revision": revision, "tokenizer": tokenizer, "served_name": served_name,
        "dialect": dialect, "api_key": api_key, "notes": notes or None, "trust": trust,
        "dollars_per_million_input_tokens": prices[0] if prices else None,
        "dollars_per_million_output_tokens": prices[1] if prices else None,
    }  # fmt: skip
    known = first_facts(name, location, api, settings, is_trusted=trust is not None)
    said = pin(known, facts, settings) if trust else ""
    _catalogue(known, cutoff, facts, settings, replace=replace or location is None)
    out.print(f"added {name}{said}", soft_wrap=True)


@models_app.command("edit")
def models_edit(
    context: typer.Context,
    name: Annotated[str, Argument(help="Name in the catalogue.")],
    cutoff: Cutoff = None,
    released: Released = None,
    parameters: Parameters = None,
    family: Family = None,
    role: Role = None,
) -> None:
    """Change facts of a model, in your own catalogue and in the published views at once.

    --cutoff none says that the cutoff is unknown.
    """
    from models.catalogue import find_model

    settings = settings_of(context)
    facts = {"released": released, "parameters": parameters, "family": family, "role": role}
    if all(fact is None for fact in (cutoff, *facts.values())):
        options = ", ".join(f"--{option}" for option in ("cutoff", *facts))
        raise UsageError(f"nothing to change about {name}: give at least one of {options}")
    _catalogue(vars(find_model(name, settings)), cutoff, facts, settings, replace=True)
    out.print(f"changed {name}")


def _hub_entries(names: list[str], settings: Settings) -> list[ModelEntry]:
    """Return the catalogue entries of models; raise UsageError if a model is not on the hub."""
    from models.catalogue import find_model
    from models.weights.hub import is_on_hub

    entries = [find_model(name, settings) for name in names]
    for entry in entries:
        if not is_on_hub(entry):
            raise UsageError(
                f"{entry.name} ({entry.location}) is not a model of the hub, so it is not in the "
                "cache; tidemark does not manage folders, and controls need no files"
            )
    return entries


def _catalogue(
    known: Facts, cutoff: str | None, facts: Facts, settings: Settings, replace: bool
) -> None:
    """Write an entry: known facts, overridden by facts that are not None and by the cutoff."""
    from instruments.landing import catalogue_model
    from models.catalogue import make_entry

    changed = {name: value for name, value in facts.items() if value is not None}
    given = {**known, **changed}
    if cutoff is not None:
        is_known = cutoff != "none"
        given |= {
            "cutoff": cutoff if is_known else None, "cutoff_url": None,
            "cutoff_provenance": "stated" if is_known else None,
            "cutoff_precision": "month" if is_known else None,
        }  # fmt: skip
    catalogue_model(make_entry(given), settings, replace)
