"""Options that several commands share, and what every command is given."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from core.errors import UsageError
from core.month import Month, month_range
from core.settings import Settings, prefect_server, set_library_defaults

Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source", "-s", help="Source; repeat for several. Default: all.", metavar="NAME"
    ),
]
ModelNames = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="Catalogue name, model folder, or control:zstd; repeat for several. "
        "Default: TIDEMARK_MODELS.",
        metavar="NAME|FOLDER",
    ),
]
FirstMonth = Annotated[
    str | None, typer.Option("--month", help="Month, or the first of several.", metavar="YYYY-MM")
]
LastMonth = Annotated[
    str | None, typer.Option("--to", help="Last month, included.", metavar="YYYY-MM")
]


def settings_of(context: typer.Context) -> Settings:
    """Return the settings that were read when the command line started."""
    settings: Settings = context.obj
    return settings


def settings_for_tasks(context: typer.Context) -> Settings:
    """Return the settings, for a command that imports Prefect (``tasks`` and ``flows`` do).

    Raises:
        StorageError: there is no place for what Prefect keeps.
        UsageError: the Prefect server that is configured refuses us.
    """
    settings = settings_of(context)
    set_library_defaults(settings)
    if server := prefect_server():
        from flows.server_access import require_access

        require_access(server)
    if prefect_server() and not settings.is_local:
        from tasks.storage_keys import sign_in

        sign_in(settings)
    return settings


@contextmanager
def nothing_kept(settings: Settings) -> Iterator[None]:
    """As ``settings_for_tasks``, for a command that only looks: what Prefect keeps goes at the end.

    Raises:
        StorageError: there is no place for temporary files.
    """
    with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
        set_library_defaults(settings.model_copy(update={"work_dir": Path(folder)}))
        yield


def window(month: str | None, to: str | None) -> list[Month] | None:
    """Return the months from ``--month`` to ``--to``; None where neither is given.

    Raises:
        UsageError: not a month, an empty range, or ``--to`` alone.
    """
    if month is None:
        if to is not None:
            raise UsageError("--to needs --month")
        return None
    return list(month_range(Month(month), Month(month if to is None else to)))
