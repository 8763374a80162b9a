"""What becomes of an answer: correct, wrong, unparsed, truncated, or an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.puzzles import Status
from scylla.paper_rules import paper_accepts, paper_answer
from scylla.parse_answer import parse_answer
from scylla.puzzle import Answer, Instance, Puzzle

Finish = Literal["stop", "length", "error"]
PaperStatus = Literal["correct", "wrong", "unparsed", "error"]


@dataclass(frozen=True)
class Judgement:
    """What was made of a text.

    Attributes:
        answer: read by the strict rules; None: there is none.
        status: by the strict rules.
        lenient_status: by the lenient ones.
        paper_status: by the paper's own.
    """

    answer: Answer | None
    status: Status
    lenient_status: Status
    paper_status: PaperStatus


def judge(puzzle: Puzzle, instance: Instance, text: str, finish: Finish) -> Judgement:
    """Judge what a model wrote.

    Of a text that was cut (``length``) no last number counts, and no answer that the cut may have
    gone through: it is truncated. The paper's rules know of no cut.

    Args:
        puzzle: whose verifier decides.
        instance: what was asked.
        text: what was written; empty for an error.
        finish: how the text ended.
    """
    if finish == "error":
        return Judgement(None, "error", "error", "error")
    is_cut = finish == "length"
    answer = parse_answer(text, puzzle.answer_shape, strict=True)
    # A digit more would be another answer, so there may have been one more.
    if is_cut and parse_answer(text + "5", puzzle.answer_shape, strict=True) != answer:
        answer = None
    lenient = answer if is_cut else parse_answer(text, puzzle.answer_shape, strict=False)
    by_paper = paper_answer(text, puzzle.answer_shape)
    return Judgement(
        answer=answer,
        status=_status(puzzle, instance, answer, is_cut),
        lenient_status=_status(puzzle, instance, lenient, is_cut),
        paper_status=_paper_status(puzzle, instance, by_paper),
    )


def _status(puzzle: Puzzle, instance: Instance, answer: Answer | None, is_cut: bool) -> Status:
    if answer is None:
        return "truncated" if is_cut else "unparsed"
    return "correct" if puzzle.accepts(instance, answer) else "wrong"


def _paper_status(puzzle: Puzzle, instance: Instance, answer: Answer | None) -> PaperStatus:
    if answer is None:
        return "unparsed"
    return "correct" if paper_accepts(puzzle, instance, answer) else "wrong"
