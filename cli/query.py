"""Commands `tidemark sql`, `shell`, `export` and `report`, which show results."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from cli.terminal.console import err, out
from cli.terminal.options import settings_of
from core.errors import UsageError
from core.plugins import import_parts
from core.storage.store import Store

if TYPE_CHECKING:
    from core.settings import Settings

_MISSING = (
    "there is no DuckDB client: neither `duckdb` on the PATH nor the package duckdb-cli; get it by "
    "`pip install 'duckdb-cli>=1.5'`, or from duckdb.org. `tidemark sql` needs none"
)
# The client would download an extension that a statement needs; `install NAME` still does.
_OFFLINE = "set autoinstall_known_extensions = false"
export_app = typer.Typer(
    help="Write results to files that other programs read.", no_args_is_help=True
)


def sql_command(
    context: typer.Context,
    query: Annotated[
        str | None, Argument(help="One statement, e.g. 'from monthly_loss'; - reads from stdin.")
    ] = None,
    file: Annotated[
        Path | None, Option("--file", "-f", help="Read the statement from a file.")
    ] = None,
    format: Annotated[
        Literal["table", "csv", "json", "parquet"], Option(help="Output format.")
    ] = "table",
    output: Annotated[Path | None, Option(help="Write to a file; required for parquet.")] = None,
) -> None:
    """Query the published warehouse, read-only.

    Rows are written as they are read, so large results need little memory. An output file appears
    when it is complete. If a table is wider than the terminal, or in a pipe than 200 columns, each
    row is a block of lines. If there is no row, hints on stderr say why.
    """
    from cli.terminal.tables import write_table
    from warehouse.read.empty import explain_empty
    from warehouse.read.query import local_snapshot, opened, run_statement

    statement = _statement(query, file)
    with local_snapshot(settings_of(context)) as path, opened(path) as connection:
        if not write_table(run_statement(connection, statement), format, output):
            for sentence in explain_empty(connection, statement):
                err.print(f"hint: {sentence}", soft_wrap=True)


def _statement(query: str | None, file: Path | None) -> str:
    """Return the SQL statement of the argument, of ``--file``, or of stdin."""
    if (query is None) == (file is None):
        raise UsageError("give one statement: as an argument, as --file FILE, or - for stdin")
    try:
        if query is not None and query != "-":
            raw = query.encode(errors="surrogateescape")
        else:
            raw = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {file or 'stdin'}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        where = file or ("stdin" if query == "-" else "the statement")
        raise UsageError(f"{where} is not UTF-8: {error}") from error


def shell_command(context: typer.Context) -> None:
    """Open the DuckDB client on the published warehouse, read-only.

    Arguments after -- are passed to the client: tidemark shell -- -json -c 'from headline'. A
    snapshot in an object store is fetched first.
    """
    raise typer.Exit(run_client(settings_of(context), context.args))


@export_app.command("figures")
def figures_command(
    context: typer.Context,
    format: Annotated[Literal["csv", "parquet"], Option(help="Format of the files.")] = "csv",
    output: Annotated[
        Path, Option(help="Folder to create; an earlier export in it is replaced.")
    ] = Path("tidemark-figures"),
) -> None:
    """Write each view of the published warehouse to a file.

    A manifest describes each column and lists the checksums of the files. Exports of the same
    warehouse have identical CSV files.
    """
    from reports.exports.figures import export_figures

    num_files = export_figures(settings_of(context), format, output)
    out.print(f"{num_files} views in {output}", soft_wrap=True)


def run_client(settings: Settings, arguments: Sequence[str]) -> int:
    """Run the DuckDB client read-only until it ends; return its exit code."""
    from warehouse.read.query import local_snapshot, opened

    client = find_client()
    with local_snapshot(settings) as path, _ignoring_interrupts():
        with opened(path):  # raises errors with a remedy, unlike the client
            pass
        command = [str(client), "-readonly", "-cmd", _OFFLINE, str(path.absolute()), *arguments]
        code = subprocess.run(command, check=False).returncode
    return code if code >= 0 else 128 - code  # shells also return 128 + signal number


def find_client() -> Path:
    """Return the path of the DuckDB client: from PATH, or from the package duckdb-cli."""
    found = shutil.which("duckdb") or shutil.which("duckdb", path=str(Path(sys.executable).parent))
    if found is None:
        raise UsageError(_MISSING)
    return Path(found).absolute()


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C in this process during the ``with`` block; the DuckDB client handles it."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def report_command(
    context: typer.Context,
    page: Annotated[
        str | None,
        Option(help="Write this page alone, such as compare or models/NAME.", metavar="NAME"),
    ] = None,
    figures: Annotated[
        Path | None,
        Option(help="Write the page's charts to a folder instead, as PNG, SVG and PDF for papers."),
    ] = None,
    width: Annotated[
        float, Option(min=20, max=2000, help="Width of charts for papers.", metavar="MM")
    ] = 170,
    with_sql: Annotated[
        bool, Option("--with-sql", help="Also write site.duckdb, for DuckDB 1.4 and DuckDB-WASM.")
    ] = False,
) -> None:
    """Write the site: pages, and the files of their figures."""
    settings = settings_of(context)
    if figures is not None:
        names = _site_files("--figures").write_figures(settings, figures, page or "index", width)
        out.print(f"{', '.join(names)} in {figures}", soft_wrap=True)
        return
    from reports.site.build import write_site

    if with_sql:  # first, so that the page of data links it
        small = _site_files("--with-sql").write_small_database(settings)
        out.print(f"small     {small}", soft_wrap=True)
    print_paths(settings, write_site(settings, page))


def _site_files(option: str) -> ModuleType:
    """Return the module of an extra that writes files beside the site, or raise UsageError."""
    for part in import_parts("site_files"):
        return part
    raise UsageError(f"{option} needs extras/report_files, and that folder is missing")


def print_paths(settings: Settings, report: str) -> None:
    """Print the addresses of the published snapshot and the report."""
    out.print(f"database  {Store(settings.home).url('warehouse.duckdb')}", soft_wrap=True)
    out.print(f"report    {report}", soft_wrap=True)
