"""Command `tidemark import-set`, for published data sets of many files and months."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cli.sources import Replace, SourceName
from cli.terminal.console import fail_with, out, progress_bars
from cli.terminal.options import read_columns, settings_of
from core.month import Month
from core.storage.store import Store

if TYPE_CHECKING:
    from core.corpus.partition import Seal


def import_set_command(
    context: typer.Context,
    paths: Annotated[list[Path], Argument(help="Files, or folders of files.", metavar="PATH...")],
    source: SourceName,
    column: Annotated[
        list[str] | None,
        Option(
            "--column",
            "--field",
            metavar="FIELD=COLUMN",
            help="Column of a field, such as text=content. Fields: text, id, title, url, date, "
            "licence, language, category. Default: the column of the field's name.",
        ),
    ] = None,
    date_column: Annotated[
        str | None, Option(metavar="COLUMN", help="Column of dates; each row has its month.")
    ] = None,
    month_column: Annotated[
        str | None, Option(metavar="COLUMN", help="Column of months (YYYY-MM) or dates.")
    ] = None,
    months_in_names: Annotated[
        bool, Option("--months-in-names", help="The names of files or folders have the month.")
    ] = False,
    month: Annotated[str | None, Option(metavar="YYYY-MM", help="Month of all rows.")] = None,
    undated: Annotated[bool, Option("--undated", help="The rows have no month.")] = False,
    sift: Annotated[
        bool | None,
        Option(
            "--sift/--no-sift",
            help="Filter as CCNet: repeated lines, length, language, quality. Default: for web "
            "archives.",
        ),
    ] = None,
    clean: Annotated[bool, Option("--clean", help="Clean like crawled text.")] = False,
    min_chars: Annotated[int, Option(min=1, help="Drop texts of fewer characters.")] = 100,
    language: Annotated[
        str | None,
        Option(help="Language of rows that state none; with --sift, the only one to keep."),
    ] = None,
    licence: Annotated[
        str, Option(help="SPDX id of the licence of rows that state none.")
    ] = "LicenseRef-unknown",
    regime: Annotated[str | None, Option(metavar="LABEL", help="How the texts came about.")] = None,
    replace: Replace = False,
) -> None:
    """Import a published data set; each of its months becomes a sealed partition.

    Files: Parquet, JSON lines, JSON lists, CSV, TSV, WARC, WET, also packed by gzip or zstd; EPUB
    and text files. Without an option for months, each row has the month of its `date`. Rows that
    are damaged, or have no date, are counted with their places; good rows are kept. See
    "Ready-made sets" in docs/sources.md.
    """
    from crawlers.imports.dating import Dating, one_of
    from crawlers.imports.sets import SetOptions, import_set

    settings = settings_of(context)
    one_of(
        date_column=date_column, month_column=month_column, months_in_names=months_in_names,
        month=month, undated=undated,
    )  # fmt: skip
    columns = read_columns([*(column or []), *([f"date={date_column}"] if date_column else [])])
    options = SetOptions(
        Dating(Month(month) if month else None, undated, month_column, months_in_names),
        columns,
        sift=sift,
        clean=clean,
        min_chars=min_chars,
        max_document_bytes=settings.max_document_bytes,
        licence=licence,
        language=language,
        regime=regime,
        replace=replace,
        denied_hosts=settings.denied_hosts,
    )
    store = Store(settings.home, settings.scratch)
    with progress_bars():
        found = import_set(paths, source, store, settings.scratch, options)
    for seal in found.seals:
        out.print(
            f"{seal.partition}: {seal.num_documents} documents{_dropped(seal)}", soft_wrap=True
        )
    fail_with(found.failures)


def _dropped(seal: Seal) -> str:
    dropped = seal.manifest.get("dropped")
    if not isinstance(dropped, dict) or not dropped:
        return ""
    return "; dropped: " + ", ".join(f"{num} {reason}" for reason, num in sorted(dropped.items()))
