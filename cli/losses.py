"""Commands `score`, `land losses`, `check numerics` and `protocols`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import err, fail_with, out, print_table, progress_bars
from cli.terminal.options import (
    DEFAULT_MIB,
    FirstMonth,
    GivenMonth,
    LastMonth,
    MaxDownload,
    ModelNames,
    RetryFailed,
    Sources,
    settings_for_tasks,
    window,
)
from core.month import require_complete
from core.progress import counted

if TYPE_CHECKING:
    from core.settings import Settings

protocols_app = typer.Typer(no_args_is_help=True, help="Protocols: how text is cut and scored.")


def score_command(
    context: typer.Context,
    model: ModelNames = None,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    protocol: Annotated[
        list[str] | None,
        Option(
            help="See `tidemark protocols list`; repeat for several. Protocols with equal windows "
            "share forward passes.",
            metavar="NAME",
        ),
    ] = None,
    context_tokens: Annotated[
        int | None, Option("--context", min=2, help="Window length in tokens.")
    ] = None,
    stride: Annotated[int | None, Option(min=1, help="Tokens between window starts.")] = None,
    retry_failed: RetryFailed = False,
) -> None:
    """Score sealed partitions, land the losses and publish.

    Without --source or --month, everything that is sealed is scored. Finished cells are skipped.
    """
    settings = settings_for_tasks(context)
    from instruments.losses import score_and_land
    from models.choice import chosen_models
    from models.scoring.protocols import get_protocol

    names = protocol or [settings.protocol]
    chosen = dict.fromkeys(get_protocol(name, context_tokens, stride).name for name in names)
    months = window(month, first, last)
    if months:
        require_complete(months[-1])
    warn_of_inaccessible(model, settings)
    with progress_bars():
        landed, failures = score_and_land(
            settings,
            model or list(chosen_models(settings)),
            source,
            months,
            list(chosen),
            retry_failed,
        )
    out.print(f"{counted(landed, 'cell')} landed")
    fail_with(failures)


def warn_of_inaccessible(models: list[str] | None, settings: Settings) -> None:
    """Print a warning for each model that cannot be loaded; the run continues without it."""
    from models.unloaded import find_inaccessible

    for problem in find_inaccessible(models, settings):
        err.print(f"warning: {problem}", soft_wrap=True)


def land_command(
    context: typer.Context,
    files: Annotated[
        list[str],
        Argument(
            help="Parquet files in the LOSSES schema, or their addresses: https://…, "
            "s3://BUCKET/PATH or hf://datasets/OWNER/NAME@REVISION/PATH."
        ),
    ],
    replace: Annotated[
        bool, Option("--replace", help="Replace losses of chunks that are already landed.")
    ] = False,
    max_download: MaxDownload = DEFAULT_MIB,
) -> None:
    """Land losses that were computed elsewhere, and publish.

    Each file lands completely or not at all. Rows that have landed already are skipped. (Losses
    that tidemark has scored are landed by `tidemark score`.) Of an address, the SHA-256 and the
    pinned revision are printed.
    """
    settings = settings_for_tasks(context)
    from crawlers.imports.addresses import brought
    from instruments.landing import land_files

    with brought(files, settings, max_download * 2**20) as local:
        for origin in local.origins:
            facts = ", ".join(f"{name} {value}" for name, value in origin.describe().items())
            out.print(f"brought {facts}", soft_wrap=True)
        landed, failures = land_files(settings, local.paths, replace)
    out.print(f"{landed} of {counted(len(files), 'file')} landed")
    fail_with(failures)


def canary_command(context: typer.Context) -> None:
    """Score a frozen model on frozen texts, and record the drift.

    Run this after upgrades; a monthly run includes it. If the drift is above 1e-6, the exit code is
    1. View scored_cells then marks cells scored on this device since the last good canary run.
    """
    settings = settings_for_tasks(context)
    from instruments.canary import check_canary
    from warehouse.read.publish import publish

    run = check_canary(settings)
    publish(settings)
    out.print(f"canary on {run.device}, {run.dtype}: {run.nll_nats!r} nats, drift {run.drift:.1e}")
    fail_with([] if run.is_well else [str(run)])


@protocols_app.command("list")
def protocols_list() -> None:
    """List the scoring protocols, with a hash of each definition and a description."""
    from models.scoring.protocols import list_protocols

    print_table(
        "protocols",
        ["protocol", "hash", "description"],
        [(p.name, p.digest, p.description) for p in list_protocols()],
    )
