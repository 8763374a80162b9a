"""Command `corpus forget`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Context, Option

from cli.terminal.console import err, out, progress_bars
from cli.terminal.options import settings_of
from core.errors import UsageError, did_you_mean
from core.progress import counted
from core.storage.store import Store


def forget_command(
    context: Context,
    documents: Annotated[
        list[str] | None, Argument(help="Document ids (column document_id).", metavar="DOCUMENT")
    ] = None,
    native_id: Annotated[
        list[str] | None,
        Option(
            help="The site's id of an item, to remove all its versions. Repeat for several.",
            metavar="SOURCE:ID",
        ),
    ] = None,
    again: Annotated[
        bool, Option("--again", help="Repeat all earlier removals, after a restore.")
    ] = False,
    why: Annotated[str, Option(help="Who asked for the removal, and why; recorded.")] = "takedown",
) -> None:
    """Remove documents from the corpus, caches, losses, the warehouse and releases.

    Later crawls and imports drop these documents, too. If this command is killed, run it again.
    """
    from core.corpus.partition import list_sealed_sources
    from core.corpus.tombstones import item_key
    from extras.takedown.forgetting import forget

    items = [_item(each) for each in native_id or []]
    if again == bool(documents or items):
        raise UsageError("say which documents, by id or by --native-id; or say --again")
    keys = [*(documents or []), *(item_key(*each) for each in items)]
    settings = settings_of(context)
    known = list_sealed_sources(Store(settings.home))
    for source in sorted({source for source, _ in items} - {*known}):
        meant = did_you_mean(source, known)
        err.print(f"nothing is sealed of {source!r}; {meant}the removal is recorded all the same")
    with progress_bars():
        done = forget(settings, keys, why)
    out.print(
        f"{counted(len(done.document_ids), 'document')} forgotten; rewritten: "
        f"{counted(done.num_versions, 'version')} of partitions, "
        f"{counted(len(done.releases), 'release')}; "
        f"{counted(done.num_fetched, 'fetched response')} deleted"
    )
    if not done.num_versions:
        out.print("none of them is in the corpus (any more); the tombstones keep them out")
    out.print("Copies that you have made (backups, exports, trained models) are not changed.")


def _item(text: str) -> tuple[str, str]:
    source, colon, native_id = text.partition(":")
    if not (source and colon and native_id):
        raise UsageError(f"{text!r} is not SOURCE:ID, such as wikipedia_new:12345")
    return source, native_id


COMMANDS = {"Collect text": {"corpus forget": forget_command}}
