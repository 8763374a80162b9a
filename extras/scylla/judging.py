"""Judgement of answers: correct, wrong, unparsed, truncated, or an error.

The rules of the paper (Qi et al. 2024) are also applied, so that results can be compared with the
paper's. The paper's rules read "1,234" as 1, "-5" as 5, and 7.9 as 7. If a text states no answer,
its last number is taken. If a puzzle has several right answers, only the stored answer is accepted.

The paper's rules search for lower-case phrases in a fixed order. If a number follows "answer is"
anywhere, "answer:" is ignored. A number consists of digits with an optional fraction, without a
sign. A list is JSON in square brackets. Line breaks are removed first.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.cells.puzzles import Status
from extras.scylla.list_puzzle import SumPuzzle
from extras.scylla.parsing import parse_answer
from extras.scylla.puzzle import Answer, AnswerShape, Instance, Puzzle

Finish = Literal["stop", "length", "error"]
PaperStatus = Literal["correct", "wrong", "unparsed", "error"]


@dataclass(frozen=True)
class Judgement:
    """The judgement of a text by strict parsing, lenient parsing and the paper's rules.

    Attributes:
        answer: the answer that the strict rules find, or None if they find none.
    """

    answer: Answer | None
    status: Status
    lenient_status: Status
    paper_status: PaperStatus


def judge(puzzle: Puzzle, instance: Instance, text: str, finish: Finish) -> Judgement:
    """Judge the text of a model.

    If the token limit cut off the text (``length``), a number at its end does not count. Without
    another answer, the status is "truncated". The paper's rules ignore that the text was cut off.
    """
    if finish == "error":
        return Judgement(None, "error", "error", "error")
    is_cut = finish == "length"
    answer = parse_answer(text, puzzle.answer_shape, strict=True)
    # If one more digit changes the answer, the answer is at the end and may lack digits.
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


_MOST_STORED = 6  # all orders of three numbers, as in the paper's code
_NUMBER_PHRASES = ("answer is", "answer:", "answer is:", "answer to the task is")
_LIST_PHRASES = (*_NUMBER_PHRASES, "numbers are", "numbers are:", "numbers:")
_NUMBER = r"([0-9]++\.?[0-9]*+)"
_LIST = r"(\[[^\]]*+\])"


def paper_answer(text: str, shape: AnswerShape) -> Answer | None:
    """Return the answer that the paper's rules find in a text, or None."""
    text = text.replace("\r", "").replace("\n", "")
    if shape == "number":
        return next(
            (_truncated([number]) for number in _found(text, _NUMBER_PHRASES, _NUMBER)), None
        )
    text = text[: text.rfind("]") + 1]  # a "[" after this would be searched in vain
    lists = map(_read_list, _found(text, _LIST_PHRASES, _LIST))
    return next((numbers for numbers in lists if numbers is not None), None)


def _found(text: str, phrases: Sequence[str], pattern: str) -> Iterator[str]:
    """Yield the last match directly after each phrase, then the last match anywhere."""
    for start in (*(re.escape(phrase) + r"\s*+" for phrase in phrases), ""):
        found = re.findall(start + pattern, text)
        if found:
            yield found[-1]


def paper_accepts(puzzle: Puzzle, instance: Instance, answer: Answer) -> bool:
    """Return True if an answer equals the stored answer, by the paper's rules.

    In sum puzzles, the numbers may have any order. A tour may have either direction.
    """
    stored = puzzle.solve(instance)
    if puzzle.input_shape == "matrix":
        return answer in (stored, stored[::-1])
    if isinstance(puzzle, SumPuzzle):
        return sorted(answer) == sorted(stored)
    return answer == stored


def list_stored_answers(puzzle: Puzzle, instance: Instance, rng: random.Random) -> list[Answer]:
    """Return the answers that ``paper_accepts`` accepts: at most six, drawn at random."""
    stored = puzzle.solve(instance)
    if puzzle.input_shape == "matrix":
        return list(dict.fromkeys([stored, stored[::-1]]))
    if not isinstance(puzzle, SumPuzzle):
        return [stored]
    orders = sorted(set(itertools.permutations(stored)))
    return orders if len(orders) <= _MOST_STORED else rng.sample(orders, _MOST_STORED)


def _read_list(text: str) -> Answer | None:
    """Return the values of a list in JSON; None if it is no JSON."""
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _truncated([str(value) for value in values])


def _truncated(values: list[str]) -> Answer | None:
    """Return the numbers without fractions, or None if a text is no number or is too long."""
    try:
        return tuple(int(value) if value.isdecimal() else int(float(value)) for value in values)
    except (ValueError, OverflowError):
        return None
