"""`tidemark corpus`: what is sealed, what is held back, how months differ, and takedown."""

from __future__ import annotations

from typing import Annotated

import typer

from core.corpus import Partition
from core.errors import UsageError
from core.month import Month
from core.storage import Store
from flows.console import out, print_table, progress_bars, visible
from flows.options import FirstMonth, LastMonth, settings_of, window

corpus_app = typer.Typer(no_args_is_help=True, help="The sealed text: look at it, take it down.")

SourceArgument = Annotated[str, typer.Argument(help="Source.", metavar="SOURCE")]
MonthArgument = Annotated[str, typer.Argument(help="Month, or undated.", metavar="YYYY-MM")]


def _partition(source: str, month: str) -> Partition:
    return Partition(source, None if month == "undated" else Month(month))


@corpus_app.command("show")
def show_command(
    context: typer.Context,
    source: SourceArgument,
    month: MonthArgument,
    version: Annotated[
        int | None, typer.Option(min=1, help="Default: the newest, or by TIDEMARK_CORPUS_AS_OF.")
    ] = None,
    held: Annotated[bool, typer.Option("--held", help="What is held back, instead.")] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="List each item that was not kept, and why.")
    ] = False,
    paths: Annotated[
        bool, typer.Option("--paths", help="Print the Parquet files alone, one a line.")
    ] = False,
) -> None:
    """Print what the manifest of a month says: where it came from, what was kept and what not."""
    from flows.partition_report import choose_seal, describe_seal, list_dropped

    settings = settings_of(context)
    store = Store(settings.home)
    partition = _partition(source, month)
    seal = choose_seal(store, partition, version, held, settings.corpus_as_of)
    if paths:
        for path in seal.parts:
            out.print(visible(store.url(path)), soft_wrap=True)
        return
    print_table(f"{partition}", ["manifest", "says"], describe_seal(store, seal))
    if dropped:
        columns = ["item", "outcome", "reason", "detail"]
        print_table("not kept", columns, list_dropped(store, seal))


@corpus_app.command("diff")
def diff_command(
    context: typer.Context,
    source: SourceArgument,
    month: FirstMonth = None,
    to: LastMonth = None,
    versions: Annotated[
        bool, typer.Option("--versions", help="Each version of a month with the one before.")
    ] = False,
) -> None:
    """Print how different months' texts are from the month before, and from the source's first.

    1 - similarity, as in appendix B of Li et al. 2024; computed anew, nothing lands (see
    `tidemark compare-texts` for that). With --versions: how the versions of one month differ.
    """
    from flows.partition_report import diff_months, diff_versions

    settings = settings_of(context)
    store = Store(settings.home)
    months = window(month, to)
    with progress_bars():
        if versions:
            rows = diff_versions(store, source, months)
        else:
            rows = diff_months(store, source, months, settings.corpus_as_of)
    columns = ["month", "against", "method", "documents", "bytes", "difference"]
    print_table(f"{source}: 1 - similarity", columns, rows)


@corpus_app.command("accept")
def accept_command(
    context: typer.Context,
    source: SourceArgument,
    month: MonthArgument,
    why: Annotated[str, typer.Option(help="Why it is right all the same; goes into the manifest.")],
) -> None:
    """Seal a month that is held back, after you have looked at it (`corpus show --held`)."""
    from core.sealing import accept_held

    partition = _partition(source, month)
    seal = accept_held(Store(settings_of(context).home), partition, why)
    out.print(f"{partition}: {seal.num_documents} documents, version {seal.version}")


@corpus_app.command("forget")
def forget_command(
    context: typer.Context,
    documents: Annotated[
        list[str] | None, typer.Argument(help="Ids (column document_id).", metavar="DOCUMENT")
    ] = None,
    native_id: Annotated[
        list[str] | None,
        typer.Option(
            help="A site's own id: all versions of an item. Repeat for several.",
            metavar="SOURCE:ID",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="All that was ever forgotten, as after a restore.")
    ] = False,
    why: Annotated[str, typer.Option(help="Who asked for it, and why; is recorded.")] = "takedown",
) -> None:
    """Take documents down: out of the corpus, caches, losses, the warehouse and releases.

    A tombstone for each keeps later crawls and imports from bringing it back. If this is killed,
    run it again.
    """
    from core.tombstones import item_key
    from flows.forgetting import forget

    items = [_item(each) for each in native_id or []]
    if again == bool(documents or items):
        raise UsageError("say which documents, by id or by --native-id; or say --again")
    keys = [*(documents or []), *(item_key(*each) for each in items)]
    with progress_bars():
        done = forget(settings_of(context), keys, why)
    out.print(
        f"{len(done.document_ids)} documents forgotten; rewritten: {done.num_versions} versions of "
        f"partitions, {len(done.releases)} releases; {done.num_fetched} fetched answers deleted"
    )
    if not done.num_versions:
        out.print("none of them is in the corpus (any more); the tombstones keep them out")
    out.print("Copies that you have made (backups, exports, trained models) are yours to look to.")


def _item(text: str) -> tuple[str, str]:
    source, colon, native_id = text.partition(":")
    if not (source and colon and native_id):
        raise UsageError(f"{text!r} is not SOURCE:ID, such as wikipedia_new:12345")
    return source, native_id
