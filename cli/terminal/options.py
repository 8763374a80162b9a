"""Options that several commands share, and functions that return the settings of a command."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from core.errors import UsageError
from core.month import Month, Period, month_range
from core.periods import parse_period

if TYPE_CHECKING:  # importing core.settings takes a fifth of a second
    from core.settings import Settings

Sources = Annotated[
    list[str] | None,
    Option("--source", "-s", help="Source; repeat for several. Default: all.", metavar="NAME"),
]
ModelNames = Annotated[
    list[str] | None,
    Option(
        "--model",
        "-m",
        help="Catalogue name, model folder, or control such as control:zstd; repeat for several. "
        "Default: TIDEMARK_MODELS, else models.yaml.",
        metavar="NAME|FOLDER",
    ),
]
GivenMonth = Annotated[
    str | None, Option("--month", help="One month; several: --from and --to.", metavar="YYYY-MM")
]
FirstMonth = Annotated[
    str | None,
    Option(
        "--from",
        help="First month, with --to. Of sources by half-month or week: 2024-03a, 2024-W10.",
        metavar="YYYY-MM",
    ),
]
DEFAULT_MIB = 2048
MaxDownload = Annotated[
    int, Option(min=1, help="Largest file that an address may bring.", metavar="MIB")
]
RetryFailed = Annotated[
    bool,
    Option(
        "--retry-failed",
        help="Try again also what failed for a lasting reason, such as a window that is too long.",
    ),
]
LastMonth = Annotated[str | None, Option("--to", help="Last month, inclusive.", metavar="YYYY-MM")]


def settings_of(context: typer.Context) -> Settings:
    """Return the settings that were read when the command line started."""
    settings: Settings = context.obj
    return settings


def settings_for_tasks(context: typer.Context, needs_server: bool = False) -> Settings:
    """Return the settings for a command that uses Prefect, after checking access to its server.

    Raises StorageError (no space for Prefect's files), UsageError (the server refuses access), or
    OrchestrationError (the command ``needs_server``, and it does not answer).
    """
    from cli.server import require_access
    from core.environment import prefect_server, set_library_defaults

    settings = settings_of(context)
    set_library_defaults(settings)
    require_access(needs_server)
    if prefect_server() and not settings.is_local:
        from tasks.prefect.given import take_credentials

        take_credentials(settings)
    return settings


@contextmanager
def nothing_kept(settings: Settings) -> Iterator[None]:
    """Let Prefect use a temporary folder during the ``with`` block; delete it at the end."""
    from core.environment import set_library_defaults

    with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
        set_library_defaults(settings.model_copy(update={"work_dir": Path(folder)}))
        yield


def window(
    month: str | None, first: str | None = None, last: str | None = None
) -> list[Period] | None:
    """Return the month of ``--month``, or those from ``--from`` to ``--to``; None if none is given.

    The months may be half-months or weeks instead, such as 2024-03a and 2024-W10.

    Raises UsageError for a malformed month, an empty range, or options that do not go together.
    """
    if month is not None:
        if first is not None or last is not None:
            raise UsageError("--month is one month: give it alone, or --from and --to")
        return [*month_range(parse_period(month), parse_period(month))]
    if first is None and last is None:
        return None
    if first is None:
        raise UsageError("--to needs --from; one month is --month")
    if last is None:
        raise UsageError("--from needs --to; one month is --month")
    return list(month_range(parse_period(first), parse_period(last)))


def month_window(month: str | None, first: str | None, last: str | None) -> list[Month] | None:
    """Return calendar months as ``window`` does; raise UsageError for other periods."""
    periods = window(month, first, last)
    return None if periods is None else [Month(str(period)) for period in periods]


def read_columns(given: list[str] | None) -> dict[str, str]:
    """Return the column by field of options ``FIELD=COLUMN``; raise UsageError if one is wrong."""
    columns: dict[str, str] = {}
    for each in given or []:
        name, equals, column = each.partition("=")
        if not (name and equals and column):
            raise UsageError(f"{each!r} is not FIELD=COLUMN, such as text=content")
        if name in columns:
            raise UsageError(f"the column of {name!r} is given twice")
        columns[name] = column
    return columns
