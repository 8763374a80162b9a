"""Commands `land rates`, `land benchmarks`, `land ratings` and `land answers`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from cli.terminal.console import out
from cli.terminal.options import settings_for_tasks, settings_of
from core.errors import UsageError
from core.plugins import import_parts

if TYPE_CHECKING:
    from extras.imported_results.keyed_rows import LandedRows

Table = Annotated[Path, Argument(metavar="PATH", help="CSV with a header, or Parquet.")]
Replace = Annotated[bool, Option("--replace", help="Replace landed values that differ.")]


def land_published_command(
    context: Context,
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
    from extras.imported_results.figures import land_published, land_shipped_rates
    from extras.imported_results.keyed_rows import describe_names
    from warehouse.read.publish import publish

    if path is None:
        landed = land_shipped_rates(settings, replace)
    else:
        landed = land_published(settings, path, reference, percent, replace)
        describe_names(landed, settings)
    publish(settings)
    print_landed(landed, "rates", "landed")


def load_benchmarks_command(context: Context, path: Table, replace: Replace = False) -> None:
    """Land scores of models on benchmarks, and publish.

    Columns: model (as in monthly_loss), benchmark, score. Optional columns: reference, as_of
    (YYYY-MM or a date), ability (such as coding). The file is loaded completely or not at all.
    Views `papers.benchmark_correlation` and `papers.benchmark_fit` use the scores.
    """
    settings = settings_of(context)
    from extras.imported_results.figures import load_benchmarks
    from warehouse.read.publish import publish

    loaded = load_benchmarks(settings, path, replace)
    publish(settings)
    print_landed(loaded, "scores", "loaded")


def land_ratings_command(
    context: Context,
    path: Table,
    replace: Annotated[
        bool, Option("--replace", help="Replace loaded values that differ.")
    ] = False,
) -> None:
    """Land people's ratings of the difficulty of puzzles, and publish.

    Columns: puzzle, complexity (as in scylla_tokens, such as O(N)), rating (higher is more
    difficult). Optional columns: num_raters, reference. The file is loaded completely or not at
    all. View scylla_human_difficulty has the ratings beside models' accuracies.
    """
    settings = settings_of(context)
    from extras.imported_results.figures import load_ratings
    from warehouse.read.publish import publish

    loaded = load_ratings(settings, path, _complexities(), replace)
    publish(settings)
    same = loaded.num_rows - loaded.num_changed
    out.print(f"{loaded.num_changed:,} ratings loaded, {same:,} were loaded already")
    print_ignored(loaded)


def _complexities() -> dict[str, str]:
    """Return the complexities of all puzzles, such as O(N), by name."""
    for part in import_parts("solving"):
        complexities: dict[str, str] = part.list_complexities()
        return complexities
    raise UsageError("ratings are of puzzles, and the folder extras/scylla is missing: install it")


def land_answers_command(
    context: Context,
    path: Table,
    source: Annotated[
        str, Option(help="Source of the questions, for rows without a source.")
    ] = "foreign",
    questions: Annotated[
        Path | None, Option(help="FreshBench's gjo.json; PATH is one of its files of answers.")
    ] = None,
    options_by_text: Annotated[
        bool,
        Option("--options-by-text", help="Count options as FreshBench's published figures do."),
    ] = False,
    replace: Replace = False,
) -> None:
    """Land answers to forecasting questions, and publish.

    Columns: model, release_date, question_id, opened, closed (YYYY-MM-DD), num_options, is_correct.
    Optional columns: source, resolved, probabilities ([0.7, 0.3], one per option), tags (a|b). Also
    optional: chosen_option and correct_option (counted from 0), p_correct (probability of the
    correct option). The file lands completely or not at all. The answers are rows of protocol
    `given` in the views of forecasts, such as forecast_accuracy.

    With --questions, the columns are those of FreshBench: model, Release Date, Question, Start
    Time, End Time, Acc and Right Possibility.
    """
    settings = settings_for_tasks(context)
    if options_by_text and questions is None:
        raise UsageError("--options-by-text is of the questions of --questions, which is missing")
    from extras.imported_results.answers import land_answer_table, land_imported_answers
    from extras.imported_results.freshbench import read_freshbench
    from extras.imported_results.keyed_rows import describe_names
    from warehouse.read.publish import publish

    if questions is None:
        landed = land_imported_answers(settings, path, source, replace)
    else:
        table = read_freshbench(path, questions, options_by_text)
        landed = land_answer_table(settings, table, source, replace)
    describe_names(landed, settings)
    publish(settings)
    print_landed(landed, "answers", "landed")


def print_landed(landed: LandedRows, what: str, verb: str) -> None:
    """Print how many rows of a file have landed, and which columns were ignored."""
    same = landed.num_rows - landed.num_changed
    already = f", {same:,} were {verb} already" if same else ""
    out.print(f"{landed.num_changed:,} {what} {verb}{already}")
    print_ignored(landed)


def print_ignored(landed: LandedRows) -> None:
    """Print the names of a file's columns that were ignored, if there are any."""
    if landed.ignored:
        names = ", ".join(name or "(no name)" for name in landed.ignored)
        out.print(f"ignored columns: {names}", soft_wrap=True)


COMMANDS = {
    "Score models": {
        "land rates": land_published_command,
        "land benchmarks": load_benchmarks_command,
        "land ratings": land_ratings_command,
        "land answers": land_answers_command,
    }
}
FORMER = {
    "land-answers": "land answers",
    "land-published": "land rates",
    "load-benchmarks": "land benchmarks",
    "scylla load-ratings": "land ratings",
}
