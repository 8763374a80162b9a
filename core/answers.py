"""Answers of a model to the questions of one source and month, as one Parquet file.

    answers/model=<m>/source=<s>/month=<YYYY-MM>/<protocol>-<revision>-<questions>-<answering>.parquet

The path is a pure function of what decides the content, so a file that exists is done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import SchemaMismatch
from core.month import Month
from core.questions import Question
from core.schemas import ANSWERS, validate
from core.storage import Store, path_part


@dataclass(frozen=True)
class Answer:
    """What a model made of a question.

    Attributes:
        question_id: of the question.
        probabilities: one an option, in the question's order, of sum 1; None where the model gives
            none.
        chosen_index: of the option chosen; None where no choice could be read off.
        reason: why there is no choice; ``truncated`` beside a choice for which the prompt was cut
            to fit the model's context; else None.
        response: what a model that generates wrote.
    """

    question_id: str
    probabilities: tuple[float, ...] | None
    chosen_index: int | None
    reason: str | None = None
    response: str | None = None


@dataclass(frozen=True, order=True)
class AnswerCell:
    """Who answered what, and how.

    Attributes:
        model: name in the catalogue.
        revision: of its weights and tokenizer; of a remote model, what its server calls it.
        source: of the questions.
        month: in which they were resolved.
        questions_digest: of their seal.
        protocol: name of the answering protocol.
        answering: short hash over the protocol's definition, its prompt, and the code's version.
    """

    model: str
    revision: str
    source: str
    month: Month
    questions_digest: str
    protocol: str
    answering: str

    @property
    def path(self) -> str:
        """Where the answers are (or will be), under the data root."""
        folder = f"source={path_part(self.source)}/month={self.month}"
        parts = (self.protocol, self.revision[:12], self.questions_digest[:12], self.answering)
        name = "-".join(map(path_part, parts))
        return f"answers/model={path_part(self.model)}/{folder}/{name}.parquet"

    def __str__(self) -> str:
        return f"{self.model} on questions of {self.source} {self.month} under {self.protocol}"


def write_answers(
    store: Store, cell: AnswerCell, questions: Sequence[Question], answers: Iterable[Answer]
) -> int:
    """Write a cell's file, whole or not at all, and return how many answers it has.

    Args:
        store: the data root.
        cell: names the file.
        questions: that were asked.
        answers: one to each of them, in any order.

    Raises:
        SchemaMismatch: a question has no answer, or more than one, or an answer does not fit it.
    """
    asked = {question.question_id: question for question in questions}
    rows = [_row(cell, asked, answer) for answer in answers]
    if sorted(row["question_id"] for row in rows) != sorted(asked):  # type: ignore[type-var]
        raise SchemaMismatch(f"{cell}: {len(rows)} answers to {len(asked)} questions; one each")
    rows.sort(key=lambda row: str(row["question_id"]))
    table = validate(pa.Table.from_pylist(rows, schema=ANSWERS), ANSWERS, str(cell))
    with store.writing(cell.path) as staged:
        pq.write_table(table, staged.path, compression="zstd", write_page_checksum=True)
    return len(rows)


def _row(cell: AnswerCell, asked: dict[str, Question], answer: Answer) -> dict[str, object]:
    question = asked.get(answer.question_id)
    if question is None:
        raise SchemaMismatch(f"{cell}: answers {answer.question_id!r}, which was not asked")
    num_options = len(question.options)
    has_fit = answer.probabilities is None or len(answer.probabilities) == num_options
    if not has_fit or not 0 <= (answer.chosen_index or 0) < num_options:
        raise SchemaMismatch(f"{cell}: {answer} does not fit a question of {num_options} options")
    is_parsed = answer.chosen_index is not None
    is_resolved = question.answer_index is not None
    return {
        **dataclasses.asdict(answer),
        "model": cell.model,
        "revision": cell.revision,
        "source": cell.source,
        "protocol": cell.protocol,
        "is_parsed": is_parsed,
        "is_correct": answer.chosen_index == question.answer_index if is_resolved else None,
    }
