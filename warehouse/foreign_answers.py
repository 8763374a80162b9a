"""Landing of foreign answers to forecasting questions: files of people who asked models themselves.

They are rows of protocol ``given``. Of their questions the dates and the number of options land;
what a file leaves open stays as it was.
"""

from __future__ import annotations

from pathlib import Path

from core.settings import Settings
from warehouse.keyed_rows import (
    LandedRows,
    put,
    refuse_first,
    require_agreement,
    require_sound,
    run,
    staged,
    summarise,
)
from warehouse.text_table import read_text_table
from warehouse.writer import transaction

_REQUIRED = (
    "model", "release_date", "question_id", "opened", "closed", "num_options", "is_correct",
)  # fmt: skip
_OPTIONAL = (
    "source", "resolved", "probabilities", "chosen_option", "correct_option", "p_correct", "tags",
)  # fmt: skip
_ORPHANED = "with --replace, give the answers of all models to a question that changes"


def land_foreign_answers(
    settings: Settings, path: Path, source: str, replace: bool = False
) -> LandedRows:
    """Land answers of models to forecasting questions, all of a file or nothing.

    Args:
        settings: say where the warehouse is.
        path: CSV or Parquet with model, release_date, question_id, opened, closed, num_options and
            is_correct, and optionally source, resolved, probabilities (one an option),
            chosen_option and correct_option (from 0), p_correct (probability given to what came
            true) and tags.
        source: of the questions, for rows that do not say; tells same ids of two sites apart.
        replace: the file's values take the place of landed ones that differ.

    Raises:
        MalformedInput, SchemaMismatch: says which row, what it holds, and what was expected.
        CellConflict: something else is landed of an answer or of its question.
    """
    table = read_text_table(path, _REQUIRED, _OPTIONAL, lists=("probabilities", "tags"))
    with staged(settings, table, "foreign_answers", {"source": source}) as connection:
        require_sound(connection, path, "foreign_answers")
        run(connection, "derive_foreign_answers")
        refuse_first(connection, path, "find_contradiction")
        refuse_first(connection, path, "find_own_question")
        run(connection, "match_foreign_answers")
        if not replace:
            require_agreement(connection, path, "find_conflicting_foreign_answers")
        require_agreement(connection, path, "find_orphaned_answer", _ORPHANED)
        with transaction(connection, f"land {path}"):
            num_questions = put(connection, "foreign_questions")
            num_answers = put(connection, "foreign_answers")
            run(connection, "update_foreign_releases")
            run(connection, "name_answering_models")
    return summarise(table, max(num_questions, num_answers))
