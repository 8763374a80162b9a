"""Command `import set`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from cli.imports import (
    Clean,
    Columns,
    GivenMonth,
    MinChars,
    Regime,
    Replace,
    SourceName,
    Undated,
    import_files,
)
from cli.terminal.options import DEFAULT_MIB, MaxDownload, read_columns
from cli.terminal.registry import FormerOption
from core.month import Month

Files = Annotated[
    list[str],
    Argument(
        help="Files, folders of files, or addresses: https://…, s3://BUCKET/PATH or "
        "hf://datasets/OWNER/NAME@REVISION/PATH.",
        metavar="PATH...",
    ),
]
DateColumn = Annotated[
    str | None, Option(metavar="COLUMN", help="Column of dates; each row has its month.")
]
MonthColumn = Annotated[
    str | None, Option(metavar="COLUMN", help="Column of months (YYYY-MM) or dates.")
]
MonthsInNames = Annotated[
    bool, Option("--months-in-names", help="The names of files or folders have the month.")
]
SourceColumn = Annotated[
    str | None,
    Option(metavar="COLUMN", help="Column whose values name sources: NAME:VALUE for each value."),
]
Sift = Annotated[
    bool | None,
    Option(
        "--sift/--no-sift",
        help="Filter as CCNet: repeated lines, length, language, quality. Default: for web "
        "archives.",
    ),
]
Language = Annotated[
    str | None,
    Option(help="Language of rows that state none; with --sift, the only one to keep."),
]
Licence = Annotated[str, Option(help="SPDX id of the licence of rows that state none.")]


def import_set_command(
    context: typer.Context,
    paths: Files,
    source: SourceName,
    column: Columns = None,
    source_column: SourceColumn = None,
    date_column: DateColumn = None,
    month_column: MonthColumn = None,
    months_in_names: MonthsInNames = False,
    month: GivenMonth = None,
    undated: Undated = False,
    sift: Sift = None,
    clean: Clean = False,
    min_chars: MinChars = 100,
    language: Language = None,
    licence: Licence = "LicenseRef-unknown",
    regime: Regime = None,
    replace: Replace = False,
    max_download: MaxDownload = DEFAULT_MIB,
) -> None:
    """Import a published data set of many files and months.

    Each of its months becomes a sealed partition; with --source-column, each month of each source
    NAME:VALUE. Files: Parquet, JSON lines, JSON lists, CSV, TSV, WARC, WET, also packed by gzip or
    zstd; EPUB and text files. Without an option for months, each row has the month of its `date`.
    Rows that are damaged, or have no date or source, are counted with their places; good rows are
    kept. See "Ready-made sets" in docs/sources.md.
    """
    from crawlers.imports.dating import Dating, one_of
    from crawlers.imports.documents import ImportOptions

    one_of(
        date_column=date_column, month_column=month_column, months_in_names=months_in_names,
        month=month, undated=undated,
    )  # fmt: skip
    columns = read_columns([*(column or []), *([f"date={date_column}"] if date_column else [])])
    dating = Dating(Month(month) if month else None, undated, month_column, months_in_names)
    options = ImportOptions(
        dating, columns, source_column, sift=sift, clean=clean, min_chars=min_chars,
        licence=licence, language=language, regime=regime, replace=replace,
    )  # fmt: skip
    import_files(context, paths, source, lambda _: options, max_download)


COMMANDS = {"Collect text": {"import set": import_set_command}}
FORMER = {"import-set": "import set"}
FORMER_OPTIONS = (FormerOption("--field", "--column", frozenset({"import set"})),)
