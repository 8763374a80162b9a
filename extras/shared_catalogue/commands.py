"""Commands `models check` and `models propose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import fail_with, out, print_table
from cli.terminal.options import settings_of
from core.errors import TidemarkError, UsageError

if TYPE_CHECKING:
    from models.catalogue import ModelEntry


def models_check(
    context: typer.Context,
    names: Annotated[
        list[str] | None, Argument(help="Models. Default: all of the hub.", metavar="NAME")
    ] = None,
) -> None:
    """Compare the catalogue's facts with the hub, and tokenizers with their files.

    The hub is asked for release, size, licence and context: one request a model, one at a time. The
    exit code is 1 if a fact differs or a model is missing. Tokenizers are compared if their files
    are on this machine. Models are listed for which tokenizer.json is used, because transformers
    makes other tokens; earlier versions of tidemark scored those other tokens.
    """
    from extras.shared_catalogue.hub_facts import Difference, compare_with_hub
    from models.catalogue import find_model, list_models
    from models.weights.hub import is_on_hub

    settings = settings_of(context)
    if names:
        entries = [find_model(name, settings) for name in names]
    else:
        entries = [entry for entry in list_models(settings) if is_on_hub(entry)]
    failures = _compare_tokenizers(entries)
    asked = [entry for entry in entries if is_on_hub(entry)]
    differences: list[Difference] = []
    num_failed = 0
    for entry in asked:
        try:
            differences += compare_with_hub(entry, settings)
        except TidemarkError as error:
            failures.append(str(error))
            num_failed += 1
    print_table("differences from the hub", list(Difference._fields), differences)
    out.print(f"{len(asked) - num_failed} of {len(asked)} models compared")
    fail_with(failures + [f"{each.model}: {each.fact} differs" for each in differences])


def _compare_tokenizers(entries: list[ModelEntry]) -> list[str]:
    """List the models whose tokenizer.json replaces a class; return the failures."""
    from models.weights.checkpoint import find_tokenizer
    from models.weights.hub import local_folder
    from models.weights.tokenizer_choice import own_file

    rows: list[tuple[str, str, str]] = []
    failures = []
    num_compared = 0
    for entry in entries:
        folder = local_folder(entry)
        if folder is None:
            continue
        try:
            replaced = find_tokenizer(folder, entry.location).replaced
        except TidemarkError as error:
            failures.append(str(error))
            continue
        num_compared += 1
        if replaced:
            rows.append((entry.name, replaced, own_file(folder)))
    title = "tokenizers that transformers makes otherwise than their files"
    print_table(title, ["model", "transformers", "used"], rows)
    out.print(f"{num_compared} of {len(entries)} tokenizers are on this machine and were compared")
    return failures


def models_propose(
    context: typer.Context,
    name: Annotated[str, Argument(help="Name in your catalogue.")],
    output: Annotated[
        Path | None, Option(help="Write the entry to a new file, not to stdout.")
    ] = None,
) -> None:
    """Check the entry of a model, and write it in the form in which others can take it.

    Facts without an option of `models add` are edited in catalogue.yaml under the data root.
    """
    from extras.shared_catalogue.proposals import as_entry, list_lacks
    from models.catalogue import find_model, list_shipped

    entry = find_model(name, settings_of(context))
    lacks = list_lacks(entry, list_shipped())
    if lacks:
        raise UsageError(f"{name} is not ready to be proposed:\n" + "\n".join(lacks))
    text = as_entry(entry)
    if output is None:
        out.print(text, end="", soft_wrap=True, markup=False, highlight=False)
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from error


COMMANDS = {
    "Score models": {"models check": models_check, "models propose": models_propose},
}
