"""Answers and questions in the layout of FreshBench's files, as a table that lands.

The answers are a CSV file of its folder ``answer_csv``, the questions its ``gjo.json``, which has
one JSON object a line: https://github.com/FreedomIntelligence/FreshBench.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.json as pa_json

from core.errors import MalformedInput, SchemaMismatch
from core.storage.regular import require_regular
from extras.imported_results.text_table import TextTable, read_text_table
from warehouse.database.statements import OFFLINE, Statements

_ANSWERS = ("model", "Release Date", "Question", "Start Time", "End Time", "Acc")
_MAX_BYTES = 64 * 2**20  # theirs has 3
_QUESTIONS = pa.schema(
    [
        pa.field("Question", pa.string()),
        pa.field("Started_time", pa.string()),
        pa.field("Closed_time", pa.string()),
        pa.field("Tags_list", pa.list_(pa.string())),
        pa.field("choices", pa.list_(pa.string())),
    ]
)


def read_freshbench(path: Path, questions: Path, options_by_text: bool) -> TextTable:
    """Read FreshBench's answers, and join its questions to them.

    ``path`` is a CSV file of answers, and ``questions`` has JSON lines. The options are those of
    the question that opened and closed on the same days. With ``options_by_text``, they are those
    of the last question of the same text, as in the published figures. The table has the columns
    that ``land_imported_answers`` expects, in the file's order of rows.

    Raises:
        MalformedInput: a file is damaged or too large.
        SchemaMismatch: a column, or the question of an answer, is missing.
    """
    answers = read_text_table(path, _ANSWERS, ("Right Possibility",))
    asked = _read_questions(questions)
    with duckdb.connect(config=OFFLINE) as connection:
        connection.register("freshbench_answers", answers.rows)
        connection.register("freshbench_questions", asked)
        statements = Statements(connection)
        statements.run("map_freshbench", {"by_text": options_by_text})
        lost = statements.first("find_freshbench_orphan")
        if lost:
            raise SchemaMismatch(
                f"{path}, row {lost['row_number']}: {questions} has no question "
                f"{lost['question']!r} that opened and closed on the same days; "
                f"{lost['num_rows']:,} rows have none. Give the questions of these answers"
            )
        rows = connection.sql("from mapped order by row_number").to_arrow_table()
    return TextTable(path, rows, answers.ignored)


def _read_questions(path: Path) -> pa.Table:
    """Return the questions with their places in the file."""
    require_regular(path)
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise MalformedInput(
                f"{path} has {size / 2**20:,.0f} MiB; expected at most {_MAX_BYTES // 2**20}"
            )
        table = pa_json.read_json(
            path,
            pa_json.ReadOptions(block_size=_MAX_BYTES, use_threads=False),
            pa_json.ParseOptions(_QUESTIONS, unexpected_field_behavior="ignore"),
        )
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read: {error.strerror}") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise MalformedInput(
            f"{path} cannot be read as JSON lines with {', '.join(_QUESTIONS.names)}: {error}"
        ) from error
    return table.append_column("place", pa.array(range(table.num_rows), pa.int64()))
