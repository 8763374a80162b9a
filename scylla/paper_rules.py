r"""Reading and judging answers as the paper does (Qi et al. 2024), for comparable figures.

Not as one should: "1,234" is 1, "-5" is 5, 7.9 passes for 7, and of a text that states no answer
the last number is taken. Of several right answers the one that was stored is right. See
``parse_answer.py`` and the puzzles' verifiers for what tidemark itself goes by.

Phrases are looked for in lower case only, one after another: where "answer is" is followed by a
number anywhere, "answer:" is not looked for. A number is digits and a fraction, without a sign; a
list is JSON in square brackets. Line breaks are dropped before.
"""

from __future__ import annotations

import json
import re
from typing import Any

from scylla.puzzle import Answer, AnswerShape, Instance, Puzzle
from scylla.sum_puzzle import SumPuzzle

_NUMBER_PHRASES = ("answer is", "answer:", "answer is:", "answer to the task is")
_LIST_PHRASES = (*_NUMBER_PHRASES, "numbers are", "numbers are:", "numbers:")
_ANYWHERE = ""
_NUMBER = r"([0-9]++\.?[0-9]*+)"
_LIST = r"(\[[^\]]*+\])"


def paper_answer(text: str, shape: AnswerShape) -> Answer | None:
    """Return the answer that the paper's rules read; None: none."""
    text = text.replace("\r", "").replace("\n", "")
    if shape == "number":
        return _read_number(text)
    text = text[: text.rfind("]") + 1]  # so that each bracket has an end, and is looked at once
    for phrase in (*_LIST_PHRASES, _ANYWHERE):
        found = re.findall(_after(phrase) + _LIST, text)
        numbers = _read_list(found[-1]) if found else None
        if numbers is not None:
            return numbers
    return None


def paper_accepts(puzzle: Puzzle, instance: Instance, answer: Answer) -> bool:
    """Whether an answer is the stored one.

    It may be in any order where numbers of a given sum are asked for, and a tour may be walked in
    either direction.
    """
    stored = puzzle.solve(instance)
    if puzzle.input_shape == "matrix":
        return answer in (stored, stored[::-1])
    if isinstance(puzzle, SumPuzzle):
        return sorted(answer) == sorted(stored)
    return answer == stored


def _read_number(text: str) -> Answer | None:
    for phrase in (*_NUMBER_PHRASES, _ANYWHERE):
        found = re.findall(_after(phrase) + _NUMBER, text)
        if found:
            return _truncated([found[-1]])
    return None


def _after(phrase: str) -> str:
    return re.escape(phrase) + r"\s*+" if phrase else ""


def _read_list(text: str) -> Answer | None:
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _truncated([str(value) for value in values])


def _truncated(values: list[str]) -> Answer | None:
    """Return numbers without their fractions; None where one is no number, or too long for one."""
    try:
        return tuple(int(value) if value.isdecimal() else int(float(value)) for value in values)
    except (ValueError, OverflowError):
        return None
