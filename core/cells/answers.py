"""Answers of a model to the questions of one source and month, as one Parquet file.

    answers/model=<m>/source=<s>/month=<YYYY-MM>/<protocol>-<revision>-<questions>-<answering>.parquet

The path contains hashes of all inputs of the work. If answers are missing, the name of the file
ends with ``-lacks-<count>-<digest of the missing ids>``. The next run replaces that file.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from core.cells import BaseCell
from core.corpus.questions import Question
from core.errors import SchemaMismatch
from core.month import Month
from core.schemas.tables import ANSWERS
from core.schemas.validation import validate
from core.storage.store import Store, path_part

_LACKS = "-lacks-"


@dataclass(frozen=True)
class Answer:
    """The answer of a model to a forecasting question.

    Attributes:
        probabilities: the probability of each option, in the question's order, with sum 1, or None
            if the model gives no probabilities.
        chosen_index: index of the chosen option, or None if the response contains no clear choice.
        reason: why a choice is missing. ``truncated`` together with a choice means that the prompt
            was cut to fit the model's context. None in all other cases.
        place_probabilities: the mean probability of the option that was shown first, second …, over
            all orders. For a written answer, 1 at the chosen option's place. None if unknown.
    """

    question_id: str
    probabilities: tuple[float, ...] | None
    chosen_index: int | None
    reason: str | None = None
    response: str | None = None
    place_probabilities: tuple[float, ...] | None = None


@dataclass(frozen=True)
class NoAnswer:
    """A question without an answer, because the request failed; the next run asks it again."""

    question_id: str
    reason: str


@dataclass(frozen=True, order=True)
class AnswerCell(BaseCell):
    """The key of a model's answers to the questions of a source and month.

    Attributes:
        month: the month in which the questions were resolved.
        questions_digest: the digest over the sealed questions of the source and month.
        answering: short hash over the protocol's definition, the prompt, and the code's version.
        missing: the number of missing answers and a short hash of their ids; empty if complete.
    """

    ROOT: ClassVar[str] = "answers"

    source: str
    month: Month
    questions_digest: str
    protocol: str
    answering: str
    missing: str = ""

    @property
    def folder(self) -> str:
        """The folders of the source and of the month, relative to the folder of the model."""
        return f"source={path_part(self.source)}/month={self.month}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the file name: protocol, revision, questions digest, hash ``answering``."""
        return (self.protocol, self.revision[:12], self.questions_digest[:12], self.answering)

    @property
    def path(self) -> str:
        """The path of the file of answers; the file name states how many answers are missing."""
        lack = f"{_LACKS}{self.missing}" if self.missing else ""
        return f"{self.stem}{lack}.parquet"

    def __str__(self) -> str:
        return f"{self.model} on questions of {self.source} {self.month} under {self.protocol}"


def find_answers(store: Store, cell: AnswerCell) -> AnswerCell | None:
    """Return the key of the complete file, or of the file that lacks fewest answers, or None."""
    if store.exists(cell.path):
        return cell
    # A killed run may leave two incomplete files of a cell. Choose the file with more answers.
    return min(_list_incomplete(store, cell), key=_num_missing, default=None)


def write_answers(
    store: Store,
    cell: AnswerCell,
    questions: Sequence[Question],
    answers: Iterable[Answer],
    missing: Iterable[NoAnswer] = (),
) -> int:
    """Write the file of a cell atomically, and return the number of answers in the file.

    Each question must be in ``answers`` or ``missing``, in any order. The file name states how many
    answers are missing. If all answers are missing, no file is written.

    Raises:
        SchemaMismatch: a question has no answer or several, or an answer does not fit its question.
    """
    asked = {question.question_id: question for question in questions}
    rows = [_row(cell, asked, answer) for answer in answers]
    missing_ids = sorted(each.question_id for each in missing)
    if sorted([*(str(row["question_id"]) for row in rows), *missing_ids]) != sorted(asked):
        raise SchemaMismatch(f"{cell}: {len(rows)} answers to {len(asked)} questions; one each")
    rows.sort(key=lambda row: str(row["question_id"]))
    if missing_ids:
        digest = hashlib.sha256("\n".join(missing_ids).encode()).hexdigest()[:8]
        cell = dataclasses.replace(cell, missing=f"{len(missing_ids)}-{digest}")
    if rows or not missing_ids:
        table = validate(pa.Table.from_pylist(rows, schema=ANSWERS), ANSWERS, str(cell))
        with store.writing(cell.path) as staged:
            pq.write_table(table, staged.path, compression="zstd", write_page_checksum=True)
        for other in _list_incomplete(store, cell):  # incomplete files of earlier runs
            if other != cell:
                store.delete(other.path)
    return len(rows)


def _list_incomplete(store: Store, cell: AnswerCell) -> list[AnswerCell]:
    return [
        dataclasses.replace(cell, missing=path.rpartition(_LACKS)[2].removesuffix(".parquet"))
        for path in store.list(f"{cell.stem}{_LACKS}*.parquet")
    ]


def _num_missing(cell: AnswerCell) -> int:
    return int(cell.missing.partition("-")[0])


def _row(cell: AnswerCell, asked: dict[str, Question], answer: Answer) -> dict[str, object]:
    """Return the row of an answer; raise an error if it does not fit its question."""
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
