import time

import pytest

from extras.scylla.judging import Finish, Judgement, judge, paper_accepts, paper_answer
from extras.scylla.puzzle import Answer, Instance, list_puzzles, load_puzzle
from extras.scylla.tests.inputs import instances_of


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
        ("First I compare 7 with 3", "length", None, ("truncated", "truncated", "correct")),
        ("The answer is 3", "length", None, ("truncated", "truncated", "correct")),
        ("The answer is 3.", "length", None, ("truncated", "truncated", "correct")),
        ("The answer is 3.\nAs", "length", (3,), ("correct", "correct", "correct")),
        ("The answer is \\boxed{3}", "length", (3,), ("correct", "correct", "correct")),
        ("The answer is", "length", None, ("truncated", "truncated", "unparsed")),
        ("", "error", None, ("error", "error", "error")),
    ],
)
def test_a_minimum_is_judged(
    text: str, finish: Finish, answer: tuple[int, ...] | None, statuses: tuple[str, str, str]
) -> None:
    judgement = judge(load_puzzle("find_minimum"), Instance(((7, 3, 9),)), text, finish)
    assert (judgement.answer, _statuses(judgement)) == (answer, statuses)


@pytest.mark.parametrize("name", list_puzzles())
def test_what_the_solver_says_is_correct(name: str) -> None:
    puzzle = load_puzzle(name)
    for instance in instances_of(puzzle, 5):
        answer = puzzle.solve(instance)
        shown = str(answer[0]) if puzzle.answer_shape == "number" else str(list(answer))
        judgement = judge(puzzle, instance, f"I thought.\nThe answer is {shown}.\n", "stop")
        assert (judgement.answer, _statuses(judgement)) == (answer, ("correct",) * 3)


def test_each_right_answer_is_correct_and_the_paper_takes_one_of_them() -> None:
    puzzle = load_puzzle("longest_increasing_subsequence")
    instance = Instance(((3, 4, 1, 2),))
    texts = ("The answer is [1, 2]", "The answer is [3, 4].")
    judged = [_statuses(judge(puzzle, instance, text, "stop")) for text in texts]
    assert sorted(judged) == [("correct",) * 3, ("correct", "correct", "wrong")]


def test_a_list_that_was_cut_is_truncated() -> None:
    puzzle = load_puzzle("sort_numbers")
    instance = Instance(((2, 1),))
    assert judge(puzzle, instance, "The answer is [1, 2", "length").status == "truncated"
    assert judge(puzzle, instance, "The answer is [1, 2]", "length").status == "correct"


def _statuses(judgement: Judgement) -> tuple[str, str, str]:
    return judgement.status, judgement.lenient_status, judgement.paper_status


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 7", 7), ("the answer is 3. No, the answer is 7.", 7), ("answer: 7", 7),
        ("The answer is 7, I checked 3 times", 7), ("The answer is 1,234", 1),
        ("The answer is -5", 5), ("-5", 5), ("The answer is 7.9", 7), ("7.9", 7),
        ("Answer: 7 (I checked 3 times)", 3), ("12\n34", 1234),
        ("First I compare 12 with 9, then", 9), ("answer: 3. The answer is 7", 7),
        ("the answer is 3. answer: 7", 3), ("\\boxed{7}", 7), ("The answer is **7** of 9", 9),
        ("seven", None), ("", None), ("9" * 5000, None),
    ],
)  # fmt: skip
def test_a_number_as_the_paper_reads_it(text: str, answer: int | None) -> None:
    assert paper_answer(text, "number") == (None if answer is None else (answer,))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is [1, 2, 3]", (1, 2, 3)), ("the answer is [1, 2], as in [3, 4]", (1, 2)),
        ("The numbers are [1, 2]. Not [3, 4].", (1, 2)), ("Answer: [1, 2], from [3, 4]", (3, 4)),
        ("[1.9, -2]", (1, -2)), ("[1,\n2]", (1, 2)), ("[1 2 3]", None),
        ("The answer is [1 2 3], of [4, 5]", (4, 5)), ("(1, 2)", None), ("1, 2", None),
        ("[[1, 2]]", None), ("[1, x]", None), ('["x"]', None), ("[" * 5000 + "]", None),
    ],
)  # fmt: skip
def test_a_list_as_the_paper_reads_it(text: str, answer: Answer | None) -> None:
    assert paper_answer(text, "list") == answer


@pytest.mark.parametrize("piece", ["[", " ", "1", "[1] ", "answer is ", "answer is", "\n"])
def test_the_paper_reads_rubbish_in_linear_time(piece: str) -> None:
    started = time.process_time()
    for end in ("", "]"):
        paper_answer(piece * (200_000 // len(piece)) + end, "number")
        paper_answer(piece * (200_000 // len(piece)) + end, "list")
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("name", "instance", "right", "wrong"),
    [
        ("two_sum", Instance(((1, 2, 5),), (7,)), [(5, 2), (2, 5)], [(1, 5)]),
        ("sort_numbers", Instance(((2, 1),)), [(1, 2)], [(2, 1)]),
        ("tsp", Instance(((0, 1, 9, 2), (1, 0, 3, 9), (9, 3, 0, 4), (2, 9, 4, 0))),
         [(0, 1, 2, 3, 0), (0, 3, 2, 1, 0)], [(0, 2, 1, 3, 0)]),
    ],
)  # fmt: skip
def test_the_paper_takes_any_order_that_means_the_same(
    name: str, instance: Instance, right: list[Answer], wrong: list[Answer]
) -> None:
    puzzle = load_puzzle(name)
    assert all(paper_accepts(puzzle, instance, answer) for answer in right)
    assert not any(paper_accepts(puzzle, instance, answer) for answer in wrong)
