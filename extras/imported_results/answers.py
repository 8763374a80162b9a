"""Landing of files of answers to forecasting questions, with the questions that they state."""

from __future__ import annotations

from pathlib import Path

from core.settings import Settings
from extras.imported_results.keyed_rows import LandedRows, Target, staged, summarise
from extras.imported_results.text_table import TextTable, read_text_table
from warehouse.database.writer import transaction

_REQUIRED = (
    "model", "release_date", "question_id", "opened", "closed", "num_options", "is_correct",
)  # fmt: skip
# A list may be written as JSON, or with | or ; between the values.
_NUMBERS = (
    r"list_transform(string_split_regex(trim({0}, '[] '), '\s*[,;|]\s*'), "
    "lambda part: try_cast(part as double))"
)
_TEXTS = (
    "list_filter(list_transform(string_split_regex(trim({0}, '[] '), "
    "if(trim({0}) like '[%', '[;|,]', '[;|]')), lambda part: trim(part, ' ''\"')), "
    "lambda part: part <> '')"
)
_IMPORTED = Target(
    "imported_answers",
    key={"model": "text", "source": "text", "question_id": "text"},
    values={
        "is_correct": "truth",
        "release_date": "day or month",
        "p_correct": "number",
        "probabilities": _NUMBERS,
        "chosen_option": "number",
        "correct_option": "number",
        "opened": "day",
        "closed": "day",
        "resolved": "day",
        "num_options": "number",
        "tags": _TEXTS,
    },
)
_ORPHANED = "with --replace, give the answers of all models to a question that changes"


def land_imported_answers(
    settings: Settings, path: Path, source: str, replace: bool = False
) -> LandedRows:
    """Land models' answers to forecasting questions from a file: see ``land_answer_table``."""
    columns = [*_IMPORTED.key, *_IMPORTED.values]
    optional = [name for name in columns if name not in _REQUIRED]
    table = read_text_table(path, _REQUIRED, optional, lists=("probabilities", "tags"))
    return land_answer_table(settings, table, source, replace)


def land_answer_table(
    settings: Settings, table: TextTable, source: str, replace: bool = False
) -> LandedRows:
    """Land models' answers to forecasting questions, all rows or none.

    ``table`` has texts of model, release_date, question_id, opened, closed, num_options and
    is_correct. Optional columns: source, resolved, probabilities (one per option), chosen_option
    and correct_option (from 0), p_correct (of the true option) and tags. ``source`` is that of rows
    without one. With ``replace``, landed values that differ are overwritten.

    Raises:
        MalformedInput, SchemaMismatch: the file is invalid; the message states the row, its
            content, and the expected content.
        CellConflict: an answer or its question has landed with other values.
    """
    with staged(settings, table, _IMPORTED, {"source": source}) as rows:
        run = rows.statements.run
        run("derive_imported_answers")
        rows.require_sound("outcomes")
        rows.refuse_first("find_crawled_question")
        run("match_imported_answers")
        if not replace:
            rows.require_landed_values()
        rows.require_agreement(rows.statements.first("find_orphaned_answer"), _ORPHANED)
        with transaction(rows.statements.connection, f"land {table.path}"):
            run("complete_imported_questions")
            num_questions = rows.statements.upsert(
                "forecast_questions", "completed_questions", ("source", "question_id")
            )
            run("complete_imported_answers")
            num_answers = rows.statements.upsert(
                "forecast_answers", "completed_answers", (*_IMPORTED.key, "protocol")
            )
            run("update_imported_releases")
            rows.statements.add_names("models", "forecast_answers")
    return summarise(table, max(num_questions, num_answers))
