"""The paper's own reading of answers, faults included."""

from __future__ import annotations

import time

import pytest

from scylla.paper_rules import paper_accepts, paper_answer
from scylla.puzzle import Answer, Instance
from scylla.registry import load_puzzle


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 7", 7),
        ("the answer is 3. No, the answer is 7.", 7),
        ("answer: 7", 7),
        ("The answer is 7, I checked 3 times", 7),
        ("The answer is 1,234", 1),
        ("The answer is -5", 5),
        ("-5", 5),
        ("The answer is 7.9", 7),
        ("7.9", 7),
        ("Answer: 7 (I checked 3 times)", 3),
        ("12\n34", 1234),
        ("First I compare 12 with 9, then", 9),
        ("answer: 3. The answer is 7", 7),
        ("the answer is 3. answer: 7", 3),
        ("\\boxed{7}", 7),
        ("The answer is **7** of 9", 9),
        ("seven", None),
        ("", None),
        ("9" * 5000, None),
    ],
)
def test_a_number_as_the_paper_reads_it(text: str, answer: int | None) -> None:
    assert paper_answer(text, "number") == (None if answer is None else (answer,))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is [1, 2, 3]", (1, 2, 3)),
        ("the answer is [1, 2], as in [3, 4]", (1, 2)),
        ("The numbers are [1, 2]. Not [3, 4].", (1, 2)),
        ("Answer: [1, 2], from [3, 4]", (3, 4)),
        ("[1.9, -2]", (1, -2)),
        ("[1,\n2]", (1, 2)),
        ("[1 2 3]", None),
        ("The answer is [1 2 3], of [4, 5]", (4, 5)),
        ("(1, 2)", None),
        ("1, 2", None),
        ("[[1, 2]]", None),
        ("[1, x]", None),
        ('["x"]', None),
        ("[" * 5000 + "]", None),
    ],
)
def test_a_list_as_the_paper_reads_it(text: str, answer: Answer | None) -> None:
    assert paper_answer(text, "list") == answer


@pytest.mark.parametrize("piece", ["[", " ", "1", "[1] ", "answer is ", "answer is", "\n"])
def test_the_paper_reads_rubbish_in_linear_time(piece: str) -> None:
    started = time.process_time()
    for end in ("", "]"):
        paper_answer(piece * (200_000 // len(piece)) + end, "number")
        paper_answer(piece * (200_000 // len(piece)) + end, "list")
    assert time.process_time() - started < 3


def test_the_stored_answer_alone_is_right() -> None:
    puzzle = load_puzzle("longest_increasing_subsequence")
    instance = Instance(((3, 4, 1, 2),))
    right = [answer for answer in ((3, 4), (1, 2)) if puzzle.accepts(instance, answer)]
    assert len(right) == 2
    assert [paper_accepts(puzzle, instance, answer) for answer in right].count(True) == 1


def test_numbers_of_a_sum_come_in_any_order() -> None:
    puzzle, instance = load_puzzle("two_sum"), Instance(((1, 2, 5),), (7,))
    assert paper_accepts(puzzle, instance, (5, 2)) and paper_accepts(puzzle, instance, (2, 5))
    assert not paper_accepts(puzzle, instance, (1, 5))


def test_a_sorted_list_has_one_order() -> None:
    puzzle, instance = load_puzzle("sort_numbers"), Instance(((2, 1),))
    assert paper_accepts(puzzle, instance, (1, 2))
    assert not paper_accepts(puzzle, instance, (2, 1))


def test_a_tour_is_walked_in_either_direction() -> None:
    rows = ((0, 1, 9, 2), (1, 0, 3, 9), (9, 3, 0, 4), (2, 9, 4, 0))
    puzzle, instance = load_puzzle("tsp"), Instance(rows)
    assert paper_accepts(puzzle, instance, (0, 1, 2, 3, 0))
    assert paper_accepts(puzzle, instance, (0, 3, 2, 1, 0))
    assert not paper_accepts(puzzle, instance, (0, 2, 1, 3, 0))
