"""The commands of analysts: queries, the DuckDB client, and exports."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from core.errors import UsageError
from core.month import Month
from flows.console import err, out, visible
from flows.options import settings_of

export_app = typer.Typer(
    help="Export figures as tidy files, or a sealed month as a benchmark.", no_args_is_help=True
)


class TableFormat(StrEnum):
    """Formats that `sql` writes."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class FigureFormat(StrEnum):
    """Formats that `export figures` writes."""

    CSV = "csv"
    PARQUET = "parquet"


def sql_command(
    context: typer.Context,
    query: Annotated[
        str | None,
        typer.Argument(help="One statement, e.g. 'from monthly_loss'; - reads it from stdin."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Read the statement from a file instead.")
    ] = None,
    format: Annotated[TableFormat, typer.Option(help="How to print.")] = TableFormat.TABLE,
    output: Annotated[
        Path | None, typer.Option(help="Write to a file instead; needed for parquet.")
    ] = None,
) -> None:
    """Query the published warehouse, read-only.

    Rows are written as they are read, so a large result needs no memory. A file takes its place
    when it is whole.
    """
    from flows.tables import write_table
    from warehouse.query import query_batches

    with query_batches(settings_of(context), _statement(query, file)) as reader:
        write_table(reader, format.value, output)


def _statement(query: str | None, file: Path | None) -> str:
    if (query is None) == (file is None):
        raise UsageError("give one statement: as an argument, as --file FILE, or - for stdin")
    if query is not None and query != "-":
        return query
    try:
        raw = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {file or 'stdin'}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file or 'stdin'} is not UTF-8: {error}") from error


def shell_command(context: typer.Context) -> None:
    """Open the DuckDB client on the published warehouse, read-only.

    What follows -- goes to the client: tidemark shell -- -json -c 'from headline'. A data root in
    an object store is fetched first.
    """
    from flows.duckdb_client import run_client

    raise typer.Exit(run_client(settings_of(context), context.args))


@export_app.command("figures")
def figures_command(
    context: typer.Context,
    format: Annotated[FigureFormat, typer.Option(help="Of the files.")] = FigureFormat.CSV,
    output: Annotated[
        Path, typer.Option(help="Folder to make; one of an earlier export is replaced.")
    ] = Path("tidemark-figures"),
) -> None:
    """Write every view of the published warehouse to a file of its own.

    With a manifest that describes each column and has the files' checksums. The same warehouse
    gives the same CSV files, byte for byte.
    """
    from reports.export_figures import export_figures

    num_files = export_figures(settings_of(context), format.value, output)
    out.print(visible(f"{num_files} views in {output}"), soft_wrap=True)


@export_app.command("lm-eval")
def lm_eval_command(
    context: typer.Context,
    source: Annotated[str, typer.Option("--source", "-s", help="Source.", metavar="NAME")],
    month: Annotated[str, typer.Option(help="A sealed month, or undated.", metavar="YYYY-MM")],
    output: Annotated[
        Path | None,
        typer.Option(help="Folder to make. Default: tidemark-lm-eval/ and the task's name."),
    ] = None,
) -> None:
    """Write a sealed month as a task of lm-evaluation-harness.

    lm_eval --include_path FOLDER --tasks NAME then gives what protocol lm-eval gives here.
    """
    from reports.export_lm_eval import export_lm_eval

    chosen = None if month == "undated" else Month(month)
    task = export_lm_eval(settings_of(context), source, chosen, output)
    out.print(
        visible(f"task {task.name} of {task.num_documents} documents in {task.folder}"),
        soft_wrap=True,
    )
    if task.num_restricted:
        err.print(
            f"warning: {task.num_restricted} documents have no licence that lets others pass their "
            "text on; keep this copy to yourself (the README of the folder lists licences)",
            soft_wrap=True,
        )
