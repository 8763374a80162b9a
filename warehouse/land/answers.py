"""Landing of answers to forecasting questions, together with the questions."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa

from core.cells.answers import AnswerCell
from core.corpus.questions import QuestionSeal
from core.schemas.reading import REMEDY, read_valid
from core.schemas.tables import ANSWERS, QUESTIONS
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, locked, transaction

_log = logging.getLogger(__name__)


def land_answer_cells(
    settings: Settings, answered: Sequence[tuple[AnswerCell, QuestionSeal]]
) -> int:
    """Land cells of answers, together with their questions; return the number of landed cells.

    Each cell lands in one transaction; cells that have landed are skipped. A cell replaces landed
    answers of the same model, source, month and protocol. If a question occurs in two months, the
    later month counts. A crawled question replaces the same question of imported files. Imported
    answers that contradict the crawled question are counted in a warning, and no view shows them.

    Raises:
        StorageError: a file is missing or damaged; all earlier cells have landed.
        SchemaMismatch: a row of questions or answers violates its schema.
    """
    store = Store(settings.home)
    with locked(settings), connected(settings) as connection:
        statements = Statements(connection)
        # A cell's path contains the digests of all inputs, so equal paths mean equal answers.
        paths = connection.table("forecast_answers").select("answer_cell").distinct()
        landed = set(paths.fetchall())
        missing = [(cell, seal) for cell, seal in answered if (cell.path,) not in landed]
        num_landed = sum(_land(statements, store, cell, seal) > 0 for cell, seal in missing)
        for source in sorted({cell.source for cell, _ in missing}):
            _warn_of_unfitting(statements, source)
        return num_landed


def _warn_of_unfitting(statements: Statements, source: str) -> None:
    """Log a warning about landed answers that contradict the crawled questions."""
    found = statements.first("find_unfitting_answers", {"source": source})
    if found:
        _log.warning(
            "%d landed answers of %s to %d questions of %s (one is %s) contradict the crawled "
            "questions, so no view counts them; correct the answers and run `tidemark "
            "land answers --replace` (extra `imported_results`), or land them under another "
            "--source",
            found["num_answers"],
            ", ".join(found["models"]),
            found["num_questions"],
            source,
            found["question_id"],
        )


def _land(statements: Statements, store: Store, cell: AnswerCell, seal: QuestionSeal) -> int:
    """Replace a cell's answers and questions in one transaction; return the number of answers."""
    remedy = f"{REMEDY} and run `tidemark forecast` again"
    questions = read_valid(store, seal.path, QUESTIONS, remedy)
    # Convert times to days in UTC here: DuckDB would use the session's time zone.
    for name in ("opened_at", "closed_at", "resolved_at"):
        place = questions.column_names.index(name)
        days = questions[name].cast(pa.date32(), safe=False)
        questions = questions.set_column(place, name, days)
    answers = read_valid(store, cell.path, ANSWERS, remedy)
    month = {"month": cell.month.first_day}
    partition = {"source": cell.source, **month}
    run = statements.run
    with (
        statements.given(questions_to_land=questions, answers_to_land=answers),
        transaction(statements.connection, f"land {cell}"),
    ):
        run("delete_cell_answers", {**partition, "model": cell.model, "protocol": cell.protocol})
        run("mark_imported_answers", partition)
        run("delete_crawled_questions", partition)
        run("insert_crawled_questions", month)
        [(num_answers,)] = run("insert_cell_answers", {**month, "answer_cell": cell.path})
        statements.add_names("models", "forecast_answers")
    return int(num_answers)
