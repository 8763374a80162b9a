"""Commands that import users' own files and published data sets as sealed partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from cli.terminal.console import fail_with, out, progress_bars
from cli.terminal.options import DEFAULT_MIB, MaxDownload, read_columns, settings_of
from core.errors import UsageError
from core.periods import parse_period
from core.progress import counted
from core.storage.store import Store

if TYPE_CHECKING:
    from core.corpus.partition import Partition, Seal
    from crawlers.imports.documents import ImportOptions

SourceName = Annotated[str, Option(help="Name of the source to import as.", metavar="NAME")]
GivenMonth = Annotated[str | None, Option(help="Month of the content.", metavar="YYYY-MM")]
Undated = Annotated[bool, Option("--undated", help="The content has no month.")]
Replace = Annotated[bool, Option("--replace", help="Seal as the next version of a sealed month.")]
Clean = Annotated[
    bool, Option("--clean", help="Clean like crawled text. Default: keep every character.")
]
MinChars = Annotated[int, Option(min=1, help="Drop texts of fewer characters.")]
Regime = Annotated[
    str | None, Option(metavar="LABEL", help="How the texts came about, if months differ in it.")
]
Columns = Annotated[
    list[str] | None,
    Option(
        "--column",
        metavar="FIELD=COLUMN",
        help="Column of a field, such as text=content. Fields: text, id, title, url, date, "
        "licence, language, category. Default: the column of the field's name.",
    ),
]
TextFormat = Literal["auto", "json-list", "jsonl", "parquet", "folder"]


def import_texts_command(
    context: typer.Context,
    path: Annotated[
        str, Argument(help="A file or a folder of texts, or an address: see `import set`.")
    ],
    source: SourceName,
    month: GivenMonth = None,
    undated: Undated = False,
    format: Annotated[TextFormat, Option(help="How the texts are stored.")] = "auto",
    clean: Clean = False,
    min_chars: MinChars = 100,
    regime: Regime = None,
    column: Columns = None,
    replace: Replace = False,
    max_download: MaxDownload = DEFAULT_MIB,
) -> None:
    """Import your own texts as one sealed partition.

    Formats: json-list (a list of strings, as Uncheatable Eval publishes), jsonl (objects with a
    `text`), parquet (a `text` column), folder (one text a file). Records that are empty, shorter
    than --min-chars or longer than TIDEMARK_MAX_DOCUMENT_BYTES are dropped and counted. --clean
    also drops duplicates. If a file is malformed, the command fails and writes nothing.
    """
    from crawlers.imports.texts import ImportOptions, strict

    chosen = ImportOptions(
        format=format, clean=clean, min_chars=min_chars, regime=regime, replace=replace,
        columns=read_columns(column),
    )  # fmt: skip
    partition = partition_of(source, month, undated)
    import_files(context, [path], source, lambda it: strict(it, partition, chosen), max_download)


def import_html_command(
    context: typer.Context,
    folder: Annotated[Path, Argument(help="A folder of pages, saved from a browser.")],
    source: SourceName,
    replace: Replace = False,
) -> None:
    """Import web pages that you saved.

    Each month of their dates becomes a sealed partition. A page states its date and title in
    JSON-LD or meta elements, and its text in <article> or <main>. Texts are cleaned, and repeated
    ones dropped. Nothing is requested, so no permission is needed; whether you may use the pages is
    between you and the site.
    """
    from crawlers.imports.texts import options_for_pages

    import_files(context, [str(folder)], source, lambda _: options_for_pages(source, replace))


def import_files(
    context: typer.Context,
    given: Sequence[str],
    source: str,
    options_of: Callable[[Path], ImportOptions],
    max_download: int = DEFAULT_MIB,
) -> None:
    """Import as the settings say, and print the sealed months and the failures.

    ``options_of`` returns the options, given the first path. If ``given`` has an address, this is
    the path of the downloaded file.
    """
    import dataclasses

    from crawlers.imports.addresses import brought
    from crawlers.imports.sets import import_set

    settings = settings_of(context)
    store = Store(settings.home, settings.scratch)
    with brought(given, settings, max_download * 2**20) as files:
        options = dataclasses.replace(
            options_of(files.paths[0]),
            max_document_bytes=settings.max_document_bytes,
            denied_hosts=settings.denied_hosts,
            scratch=settings.scratch,
            origins=[origin.describe() for origin in files.origins],
        )
        with nullcontext() if options.is_strict else progress_bars():
            found = import_set(files.paths, source, store, options)
    for seal in found.seals:
        print_seal(seal)
    fail_with(found.failures)


def partition_of(source: str, month: str | None, undated: bool) -> Partition:
    """Return the partition that the options name; raise UsageError for both or none of them."""
    if (month is None) == (not undated):
        raise UsageError("say either --month YYYY-MM or --undated")
    from core.corpus.partition import Partition

    return Partition(source, parse_period(month) if month else None)


def print_seal(seal: Seal) -> None:
    """Print the number of documents of a sealed partition, and what was dropped."""
    out.print(f"{seal.partition}: {counted(seal.num_documents, 'document')}", soft_wrap=True)
    dropped = seal.manifest.get("dropped")
    if isinstance(dropped, dict) and dropped:
        counts = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()))
        out.print(f"dropped: {counts}", soft_wrap=True)
