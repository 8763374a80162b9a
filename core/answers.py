"""Answers of a model to the questions of one source and month, as one Parquet file.

    answers/model=<m>/source=<s>/month=<YYYY-MM>/<protocol>-<revision>-<questions>-<answering>.parquet

The path is a pure function of what decides the content, so a file that exists is done. A file that
lacks questions which could not be asked has a longer name, ``…-lacks-<how many>-<digest of
which>.parquet``, until one that lacks fewer, or none, takes its place.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import SchemaMismatch
from core.month import Month
from core.questions import Question
from core.schemas import ANSWERS, validate
from core.storage import Store, path_part

_LACKS = "-lacks-"


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


@dataclass(frozen=True)
class NoAnswer:
    """A question that was asked without success: nothing is scored, and it is asked again."""

    question_id: str
    reason: str


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
        missing: of a cell that lacks questions: how many, and a short hash of which; else empty.
    """

    model: str
    revision: str
    source: str
    month: Month
    questions_digest: str
    protocol: str
    answering: str
    missing: str = ""

    @property
    def path(self) -> str:
        """Where the answers are (or will be), under the data root."""
        folder = f"source={path_part(self.source)}/month={self.month}"
        parts = (self.protocol, self.revision[:12], self.questions_digest[:12], self.answering)
        name = "-".join(map(path_part, parts))
        lack = f"{_LACKS}{self.missing}" if self.missing else ""
        return f"answers/model={path_part(self.model)}/{folder}/{name}{lack}.parquet"

    def __str__(self) -> str:
        return f"{self.model} on questions of {self.source} {self.month} under {self.protocol}"


def find_answers(store: Store, cell: AnswerCell) -> AnswerCell | None:
    """Return the cell if it is done, else with what it lacks; None: nothing of it is answered."""
    if store.exists(cell.path):
        return cell
    # Of two, the next run had no time to delete the one that lacks more.
    return min(_lacking(store, cell), key=_num_missing, default=None)


def write_answers(
    store: Store,
    cell: AnswerCell,
    questions: Sequence[Question],
    answers: Iterable[Answer],
    missing: Iterable[NoAnswer] = (),
) -> int:
    """Write a cell's file, whole or not at all, and return how many answers it has.

    Args:
        store: the data root.
        cell: names the file.
        questions: that were asked.
        answers: one to each of them, in any order.
        missing: or this. The file then is that of a cell that lacks something; there is none if
            nothing was answered.

    Raises:
        SchemaMismatch: a question has no answer, or more than one, or an answer does not fit it.
    """
    asked = {question.question_id: question for question in questions}
    rows = [_row(cell, asked, answer) for answer in answers]
    lack = sorted(each.question_id for each in missing)
    if sorted([*(str(row["question_id"]) for row in rows), *lack]) != sorted(asked):
        raise SchemaMismatch(f"{cell}: {len(rows)} answers to {len(asked)} questions; one each")
    rows.sort(key=lambda row: str(row["question_id"]))
    if lack:
        digest = hashlib.sha256("\n".join(lack).encode()).hexdigest()[:8]
        cell = dataclasses.replace(cell, missing=f"{len(lack)}-{digest}")
    if rows or not lack:
        table = validate(pa.Table.from_pylist(rows, schema=ANSWERS), ANSWERS, str(cell))
        with store.writing(cell.path) as staged:
            pq.write_table(table, staged.path, compression="zstd", write_page_checksum=True)
        for other in _lacking(store, cell):
            if other != cell:
                store.delete(other.path)
    return len(rows)


def _lacking(store: Store, cell: AnswerCell) -> list[AnswerCell]:
    """Return what is there of a cell with something missing."""
    stem = dataclasses.replace(cell, missing="").path.removesuffix(".parquet")
    return [
        dataclasses.replace(cell, missing=path.rpartition(_LACKS)[2].removesuffix(".parquet"))
        for path in store.list(f"{stem}{_LACKS}*.parquet")
    ]


def _num_missing(cell: AnswerCell) -> int:
    return int(cell.missing.partition("-")[0])


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
