"""`tidemark score`, `canary`, `protocols` and the commands that land foreign figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cli.console import err, fail_with, out, print_table, progress_bars, visible
from cli.options import (
    FirstMonth,
    LastMonth,
    ModelNames,
    Sources,
    settings_for_tasks,
    settings_of,
    window,
)
from core.month import require_complete

if TYPE_CHECKING:
    from core.settings import Settings
    from warehouse.land.keyed_rows import LandedRows

protocols_app = typer.Typer(no_args_is_help=True, help="The ways to cut and score text.")


def score_command(
    context: typer.Context,
    model: ModelNames = None,
    source: Sources = None,
    month: FirstMonth = None,
    to: LastMonth = None,
    protocol: Annotated[
        list[str] | None,
        Option(
            help="See `tidemark protocols list`; repeat for several, which share passes of the "
            "model where their windows are the same.",
            metavar="NAME",
        ),
    ] = None,
    context_tokens: Annotated[
        int | None, Option("--context", min=2, help="Another window, in tokens.")
    ] = None,
    stride: Annotated[int | None, Option(min=1, help="Slide the window by so many tokens.")] = None,
) -> None:
    """Score sealed partitions, land the losses and publish the warehouse.

    Without --source or --month: everything that is sealed. Cells that are done are skipped.
    """
    settings = settings_for_tasks(context)
    from instruments.losses import score_and_land
    from models.scoring.protocols import get_protocol

    names = protocol or [settings.protocol]
    chosen = dict.fromkeys(get_protocol(name, context_tokens, stride).name for name in names)
    months = window(month, to)
    if months:
        require_complete(months[-1])
    warn_of_inaccessible(model, settings)
    with progress_bars():
        landed, failures = score_and_land(
            settings, model or list(settings.models), source, months, list(chosen)
        )
    out.print(f"{landed} cells landed")
    fail_with(failures)


def warn_of_inaccessible(models: list[str] | None, settings: Settings) -> None:
    """Warn at once of models that will fail later; the rest of the run goes on."""
    from instruments.planning import find_inaccessible

    for problem in find_inaccessible(models, settings):
        err.print(visible(f"warning: {problem}"), soft_wrap=True)


def land_command(
    context: typer.Context,
    files: Annotated[list[Path], Argument(help="Parquet files in the LOSSES schema.")],
    replace: Annotated[
        bool, Option("--replace", help="Supersede chunks that are landed already.")
    ] = False,
) -> None:
    """Land losses that were computed elsewhere, and publish the warehouse.

    Each file lands whole or not at all; a bad one changes nothing. Landed rows are skipped. (Losses
    that tidemark has scored are landed by `tidemark score`.)
    """
    settings = settings_for_tasks(context)
    from instruments.landing import land_files

    landed, failures = land_files(settings, files, replace)
    out.print(f"{landed} of {len(files)} files landed")
    fail_with(failures)


def canary_command(context: typer.Context) -> None:
    """Rescore a frozen model on frozen texts, and record the drift of its loss.

    Run it after upgrades; the monthly run does. A drift above 1e-6 exits with 1. It makes the cells
    suspect that were scored on this device since its last good run (view suspect_cells).
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
    """List the scoring protocols, the hash of each one's definition, and their quirks."""
    from models.scoring.protocols import list_protocols

    print_table(
        "protocols",
        ["protocol", "hash", "description"],
        [(p.name, p.digest, p.description) for p in list_protocols()],
    )


Table = Annotated[Path, Argument(metavar="PATH", help="CSV with a header, or Parquet.")]
Replace = Annotated[bool, Option("--replace", help="Replace landed values by the file's.")]


def land_published_command(
    context: typer.Context,
    path: Table,
    reference: Annotated[
        str | None, Option(help="Where the rates were published, for rows that do not say.")
    ] = None,
    percent: Annotated[
        bool, Option("--percent", help="The rates are percentages, not fractions.")
    ] = False,
    replace: Replace = False,
) -> None:
    """Land published monthly compression rates, and publish the warehouse.

    Columns: model, source, month (YYYY-MM or a date), compression_rate. The rate is compressed size
    / raw size, such as 0.078. Optional columns: num_bytes, is_text (false: images or recordings),
    reference. All of the file lands or nothing. The rates are rows of protocol `published` in
    monthly_loss.
    """
    settings = settings_for_tasks(context)
    from instruments.landing import describe_published
    from warehouse.land.literature import land_published
    from warehouse.read.publish import publish

    landed = land_published(settings, path, reference, percent, replace)
    describe_published(landed, settings)
    publish(settings)
    _print_landed(landed, "rates", "landed")


def land_answers_command(
    context: typer.Context,
    path: Table,
    source: Annotated[
        str, Option(help="Where the questions are from, for rows that do not say.")
    ] = "foreign",
    replace: Replace = False,
) -> None:
    """Land answers of models to forecasting questions, and publish the warehouse.

    Columns: model, release_date, question_id, opened, closed (YYYY-MM-DD), num_options, is_correct.
    Optional columns: source, resolved, probabilities ([0.7, 0.3], one an option), tags (a|b).
    Also optional: chosen_option and correct_option (counted from 0), p_correct (probability of the
    correct option). All of the file lands or nothing. The answers are rows of protocol `given` in
    the views forecast_tbi, forecast_recency, forecast_bias_test and so on.
    """
    settings = settings_for_tasks(context)
    from instruments.landing import describe_published
    from warehouse.land.answers import land_imported_answers
    from warehouse.read.publish import publish

    landed = land_imported_answers(settings, path, source, replace)
    describe_published(landed, settings)
    publish(settings)
    _print_landed(landed, "answers", "landed")


def load_benchmarks_command(context: typer.Context, path: Table, replace: Replace = False) -> None:
    """Load scores of models on benchmarks, and publish the warehouse.

    Columns: model (as in monthly_loss), benchmark, score. Optional columns: reference, as_of
    (YYYY-MM or a date). All of the file is loaded or nothing. View benchmark_correlation reads the
    scores.
    """
    settings = settings_of(context)
    from warehouse.land.literature import load_benchmarks
    from warehouse.read.publish import publish

    loaded = load_benchmarks(settings, path, replace)
    publish(settings)
    _print_landed(loaded, "scores", "loaded")


def _print_landed(landed: LandedRows, what: str, verb: str) -> None:
    same = landed.num_rows - landed.num_changed
    already = f", {same:,} were {verb} already" if same else ""
    out.print(f"{landed.num_changed:,} {what} {verb}{already}")
    if landed.ignored:
        names = ", ".join(name or "(no name)" for name in landed.ignored)
        out.print(visible(f"passed over: columns {names}"), soft_wrap=True)
