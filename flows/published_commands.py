"""`tidemark land-published`, `land-answers`, `load-benchmarks`: what others have measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.console import out, visible
from flows.options import settings_for_tasks, settings_of

if TYPE_CHECKING:
    from warehouse.keyed_rows import LandedRows

Table = Annotated[Path, typer.Argument(metavar="PATH", help="CSV with a header, or Parquet.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Put the file's values in the place of other ones.")
]


def land_published_command(
    context: typer.Context,
    path: Table,
    reference: Annotated[
        str | None, typer.Option(help="Where the rates were published, for rows that do not say.")
    ] = None,
    percent: Annotated[
        bool, typer.Option("--percent", help="The rates are percentages, not fractions.")
    ] = False,
    replace: Replace = False,
) -> None:
    """Land published monthly compression rates, and publish the warehouse.

    Columns: model, source, month (YYYY-MM or a date), compression_rate (compressed size / raw size,
    such as 0.078), and optionally num_bytes, is_text (false: images or recordings) and reference.
    All of the file lands or nothing. The rates are rows of protocol `published` in monthly_loss.
    """
    settings = settings_for_tasks(context)
    from tasks.landing import describe_published
    from warehouse.publish import publish
    from warehouse.published import land_published

    landed = land_published(settings, path, reference, percent, replace)
    describe_published(landed, settings)
    publish(settings)
    _print(landed, "rates", "landed")


def land_answers_command(
    context: typer.Context,
    path: Table,
    source: Annotated[
        str, typer.Option(help="Where the questions are from, for rows that do not say.")
    ] = "foreign",
    replace: Replace = False,
) -> None:
    """Land answers of models to forecasting questions, and publish the warehouse.

    Columns: model, release_date, question_id, opened, closed (YYYY-MM-DD), num_options, is_correct,
    and optionally source, resolved, probabilities ([0.7, 0.3], one an option), chosen_option and
    correct_option (counted from 0), p_correct (probability given to what came true) and tags (a|b).
    All of the file lands or nothing. The answers are rows of protocol `given` in the views
    forecast_tbi, forecast_recency, forecast_bias_test and so on.
    """
    settings = settings_for_tasks(context)
    from tasks.landing import describe_published
    from warehouse.foreign_answers import land_foreign_answers
    from warehouse.publish import publish

    landed = land_foreign_answers(settings, path, source, replace)
    describe_published(landed, settings)
    publish(settings)
    _print(landed, "answers", "landed")


def load_benchmarks_command(context: typer.Context, path: Table, replace: Replace = False) -> None:
    """Load scores of models on benchmarks, and publish the warehouse.

    Columns: model (as in monthly_loss), benchmark, score, and optionally reference and as_of
    (YYYY-MM or a date). All of the file is loaded or nothing. View benchmark_correlation shows
    what goes with them.
    """
    settings = settings_of(context)
    from warehouse.publish import publish
    from warehouse.published import load_benchmarks

    loaded = load_benchmarks(settings, path, replace)
    publish(settings)
    _print(loaded, "scores", "loaded")


def _print(landed: LandedRows, what: str, verb: str) -> None:
    same = landed.num_rows - landed.num_changed
    already = f", {same:,} were {verb} already" if same else ""
    out.print(f"{landed.num_changed:,} {what} {verb}{already}")
    if landed.ignored:
        names = ", ".join(name or "(no name)" for name in landed.ignored)
        out.print(visible(f"passed over: columns {names}"), soft_wrap=True)
