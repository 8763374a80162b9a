"""Commands `score`, `canary`, `protocols`, and commands that land results of other people."""

from __future__ import annotations

from pathlib import Path
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
    settings_of,
    window,
)
from core.errors import UsageError
from core.month import require_complete
from core.progress import counted

if TYPE_CHECKING:
    from core.settings import Settings
    from warehouse.land.keyed_rows import LandedRows

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
    from instruments.planning import find_inaccessible

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
    1. View suspect_cells then lists cells scored on this device since the last good canary run.
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


Table = Annotated[Path, Argument(metavar="PATH", help="CSV with a header, or Parquet.")]
Replace = Annotated[bool, Option("--replace", help="Replace landed values that differ.")]


def land_published_command(
    context: typer.Context,
    path: Annotated[
        Path | None, Argument(help="CSV with a header, or Parquet. Default: the shipped rates.")
    ] = None,
    reference: Annotated[
        str | None, Option(help="Publication of the rates, for rows without a reference.")
    ] = None,
    percent: Annotated[
        bool, Option("--percent", help="The rates are percentages, not fractions.")
    ] = False,
    replace: Replace = False,
) -> None:
    """Land published monthly compression rates, and publish.

    Columns: model, source, month (YYYY-MM or a date), compression_rate. The rate is compressed size
    / raw size, such as 0.078. Optional columns: num_bytes, is_text (false: images or recordings),
    reference. The file lands completely or not at all. The rates are rows of protocol `published`
    in monthly_loss. Without PATH, the shipped rates land: of Li et al. (2024), on Wikipedia.
    """
    if path is None and (reference or percent):
        raise UsageError("--reference and --percent are about a file; give its PATH")
    settings = settings_for_tasks(context)
    from instruments.landing import describe_published, land_shipped_rates
    from warehouse.land.literature import land_published
    from warehouse.read.publish import publish

    if path is None:
        landed = land_shipped_rates(settings, replace)
    else:
        landed = land_published(settings, path, reference, percent, replace)
        describe_published(landed, settings)
    publish(settings)
    print_landed(landed, "rates", "landed")


def load_benchmarks_command(context: typer.Context, path: Table, replace: Replace = False) -> None:
    """Land scores of models on benchmarks, and publish.

    Columns: model (as in monthly_loss), benchmark, score. Optional columns: reference, as_of
    (YYYY-MM or a date), ability (such as coding). The file is loaded completely or not at all.
    Views benchmark_correlation and benchmark_fit use the scores.
    """
    settings = settings_of(context)
    from warehouse.land.literature import load_benchmarks
    from warehouse.read.publish import publish

    loaded = load_benchmarks(settings, path, replace)
    publish(settings)
    print_landed(loaded, "scores", "loaded")


def print_landed(landed: LandedRows, what: str, verb: str) -> None:
    """Print how many rows of a file have landed, and which columns were ignored."""
    same = landed.num_rows - landed.num_changed
    already = f", {same:,} were {verb} already" if same else ""
    out.print(f"{landed.num_changed:,} {what} {verb}{already}")
    if landed.ignored:
        names = ", ".join(name or "(no name)" for name in landed.ignored)
        out.print(f"ignored columns: {names}", soft_wrap=True)
