"""Landing of our own answers to forecasting questions, with the questions that they answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core.answers import AnswerCell
from core.errors import StorageError
from core.questions import QuestionSeal
from core.schemas import ANSWERS, QUESTIONS, validate
from core.settings import Settings
from core.storage import Store
from warehouse.keyed_rows import first_row, run
from warehouse.writer import connected, locked, transaction

_log = logging.getLogger(__name__)


def land_own_answers(
    settings: Settings, answered: Sequence[tuple[AnswerCell, QuestionSeal]]
) -> int:
    """Land cells of answers, each with its questions in one transaction; return how many landed.

    A cell that is landed just so is passed over. It takes the place of what was landed of its
    model, source, month and protocol. Of a question that was resolved in two months, the later one
    counts. What was crawled of a question takes the place of what foreign files told of it; a
    warning counts foreign answers that do not fit it, which no view shows.

    Args:
        settings: say where data root and warehouse are.
        answered: each cell with the seal of the questions that it answers.

    Raises:
        StorageError: a file is missing or damaged; what came before has landed.
        SchemaMismatch: a row is not of its schema.
    """
    store = Store(settings.home)
    with locked(settings), connected(settings) as connection:
        landed = {path for (path,) in run(connection, "list_landed_answers")}
        missing = [pair for pair in answered if pair[0].path not in landed]
        num_landed = sum(_land(connection, store, cell, seal) > 0 for cell, seal in missing)
        for source in sorted({cell.source for cell, _ in missing}):
            _warn_of_unfitting(connection, source)
        return num_landed


def _warn_of_unfitting(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    if found := first_row(connection, "find_unfitting_answers", {"source": source}):
        _log.warning(
            "%d landed answers of %s to %d questions of %s (one is %s) contradict what was crawled "
            "of these questions, so no view counts them; if they are right otherwise, give them "
            "to `tidemark land-answers --replace` as they should be, or under another --source",
            found["num_answers"],
            ", ".join(found["models"]),
            found["num_questions"],
            source,
            found["question_id"],
        )


def _land(
    connection: duckdb.DuckDBPyConnection, store: Store, cell: AnswerCell, seal: QuestionSeal
) -> int:
    """Land one cell; return how many of its answers count."""
    questions = validate(_read(store, seal.path), QUESTIONS, seal.path)
    # Days are in UTC, whatever the zone of the session.
    for name in ("opened_at", "closed_at", "resolved_at"):
        place = questions.column_names.index(name)
        day = questions[name].cast(pa.date32(), safe=False)
        questions = questions.set_column(place, name, day)
    connection.register("questions_to_land", questions)
    connection.register("answers_to_land", validate(_read(store, cell.path), ANSWERS, cell.path))
    month = {"source": cell.source, "month": cell.month.first_day}
    whose = {**month, "model": cell.model, "protocol": cell.protocol}
    try:
        with transaction(connection, f"land {cell}"):
            run(connection, "delete_own_answers", whose)
            run(connection, "mark_foreign_answers", month)
            run(connection, "delete_own_questions", month)
            run(connection, "insert_own_questions", {"month": month["month"]})
            named = {"month": month["month"], "answer_cell": cell.path}
            [(num_answers,)] = run(connection, "insert_own_answers", named)
            run(connection, "name_answering_models")
    finally:
        connection.unregister("questions_to_land")
        connection.unregister("answers_to_land")
    return int(num_answers)


def _read(store: Store, path: str) -> pa.Table:
    try:
        with store.open(path) as file:
            return pq.read_table(file, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise StorageError(
            f"{store.url(path)} is damaged ({error}); delete it and run `tidemark forecast` again"
        ) from error
