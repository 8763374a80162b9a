"""Command `land answers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from cli.losses import Replace, Table, print_landed
from cli.terminal.options import settings_for_tasks
from core.errors import UsageError


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
    `given` in the views of forecasts, such as forecast_tbi.

    With --questions, the columns are those of FreshBench: model, Release Date, Question, Start
    Time, End Time, Acc and Right Possibility.
    """
    settings = settings_for_tasks(context)
    if options_by_text and questions is None:
        raise UsageError("--options-by-text is of the questions of --questions, which is missing")
    from extras.imported_answers.freshbench import read_freshbench
    from extras.imported_answers.landing import land_answer_table, land_imported_answers
    from instruments.landing import describe_published
    from warehouse.read.publish import publish

    if questions is None:
        landed = land_imported_answers(settings, path, source, replace)
    else:
        table = read_freshbench(path, questions, options_by_text)
        landed = land_answer_table(settings, table, source, replace)
    describe_published(landed, settings)
    publish(settings)
    print_landed(landed, "answers", "landed")


COMMANDS = {"Score models": {"land answers": land_answers_command}}
FORMER = {"land-answers": "land answers"}
