"""What becomes of an answer."""

from __future__ import annotations

import pytest

from scylla.judging import Finish, Judgement, judge
from scylla.puzzle import Instance
from scylla.registry import list_puzzles, load_puzzle

from .posed import instances_of


@pytest.mark.parametrize(
    ("text", "finish", "answer", "statuses"),
    [
        ("The answer is 3\n", "stop", (3,), ("correct", "correct", "correct")),
        ("The answer is 7\n", "stop", (7,), ("wrong", "wrong", "wrong")),
        ("It is 3", "stop", None, ("unparsed", "correct", "correct")),
        ("I cannot tell", "stop", None, ("unparsed", "unparsed", "unparsed")),
        ("", "stop", None, ("unparsed", "unparsed", "unparsed")),
        ("The answer is 3.9", "stop", None, ("unparsed", "unparsed", "correct")),
        ("The answer is -3", "stop", (-3,), ("wrong", "wrong", "correct")),
        ("Answer: 3 (I checked 7 times)", "stop", (3,), ("correct", "correct", "wrong")),
        # A text that was cut.
        ("First I compare 7 with 3", "length", None, ("truncated", "truncated", "correct")),
        ("The answer is 3", "length", None, ("truncated", "truncated", "correct")),
        ("The answer is 3.", "length", None, ("truncated", "truncated", "correct")),
        ("The answer is 3.\nAs", "length", (3,), ("correct", "correct", "correct")),
        ("The answer is \\boxed{3}", "length", (3,), ("correct", "correct", "correct")),
        ("The answer is", "length", None, ("truncated", "truncated", "unparsed")),
        # No text.
        ("", "error", None, ("error", "error", "error")),
    ],
)
def test_a_minimum_is_judged(
    text: str, finish: Finish, answer: tuple[int, ...] | None, statuses: tuple[str, str, str]
) -> None:
    judgement = judge(load_puzzle("find_minimum"), Instance(((7, 3, 9),)), text, finish)
    assert (judgement.answer, _statuses(judgement)) == (answer, statuses)


@pytest.mark.parametrize("text", ["The answer is [1, 2]", "The answer is [3, 4]."])
def test_each_right_answer_is_correct(text: str) -> None:
    puzzle, instance = load_puzzle("longest_increasing_subsequence"), Instance(((3, 4, 1, 2),))
    judgement = judge(puzzle, instance, text, "stop")
    assert (judgement.status, judgement.lenient_status) == ("correct", "correct")


@pytest.mark.parametrize("name", list_puzzles())
def test_what_the_solver_says_is_correct(name: str) -> None:
    puzzle = load_puzzle(name)
    for instance in instances_of(puzzle, 5):
        answer = puzzle.solve(instance)
        shown = str(answer[0]) if puzzle.answer_shape == "number" else str(list(answer))
        judgement = judge(puzzle, instance, f"I thought.\nThe answer is {shown}.\n", "stop")
        assert (judgement.answer, _statuses(judgement)) == (answer, ("correct",) * 3)


def test_the_paper_takes_one_of_them() -> None:
    puzzle, instance = load_puzzle("longest_increasing_subsequence"), Instance(((3, 4, 1, 2),))
    texts = ("The answer is [1, 2]", "The answer is [3, 4]")
    judged = [judge(puzzle, instance, text, "stop").paper_status for text in texts]
    assert sorted(judged) == ["correct", "wrong"]


def test_a_list_that_was_cut_is_truncated() -> None:
    puzzle, instance = load_puzzle("sort_numbers"), Instance(((2, 1),))
    assert judge(puzzle, instance, "The answer is [1, 2", "length").status == "truncated"
    assert judge(puzzle, instance, "The answer is [1, 2]", "length").status == "correct"


def _statuses(judgement: Judgement) -> tuple[str, str, str]:
    return judgement.status, judgement.lenient_status, judgement.paper_status
