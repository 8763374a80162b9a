"""What models are asked, and the line at which they may stop."""

from __future__ import annotations

import re
import time

import pytest

from core.errors import MalformedInput
from scylla.prompts import STOP, probe_prompt, prompts_digest, question_prompt, read_question
from scylla.registry import list_puzzles, load_puzzle

from .posed import instances_of


@pytest.mark.parametrize("name", list_puzzles())
def test_a_question_is_read_back(name: str) -> None:
    puzzle = load_puzzle(name)
    for instance in instances_of(puzzle, 5):
        prompt = question_prompt(puzzle, instance)
        assert read_question(prompt) == (name, instance)
        for part in (puzzle.statement, puzzle.answer_rule, puzzle.render(instance)):
            assert part in prompt


@pytest.mark.parametrize("name", list_puzzles())
def test_inputs_are_asked_for_without_answers(name: str) -> None:
    puzzle = load_puzzle(name)
    prompt = probe_prompt(puzzle)
    assert puzzle.title in prompt and puzzle.statement in prompt
    assert puzzle.answer_rule not in prompt and "step by step" not in prompt
    assert "non-negative" in prompt and "no outputs" in prompt and "no code" in prompt
    assert prompt.count("[[") == (0 if puzzle.input_shape == "list" else 1)
    assert "$title" not in prompt and "$statement" not in prompt


def test_another_prompt_is_no_question() -> None:
    puzzle = load_puzzle("two_sum")
    prompt = question_prompt(puzzle, instances_of(puzzle, 1)[0])
    for other in ("", probe_prompt(puzzle), prompt[1:], prompt[:-1], prompt.replace("$k$ =", "k:")):
        with pytest.raises(MalformedInput):
            read_question(other)


def test_the_digest_is_of_the_texts() -> None:
    assert re.fullmatch("[0-9a-f]{8}", prompts_digest())


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 7\n",
        "so the answer is 7.\nNext",
        "The answer is: 7\r\n",
        "The final answer is **7**.\n",
        "The answer is $\\boxed{7}$.\n",
        "The answer is \\boxed{\\text{7}}\n",
        "The answer is -5\n",
        "The answer is 1,234.\n",
        "The answer is $1{,}234$\n",
        "The answer is [1, 2, 3]\n",
        "The answer is [1 2 3].\n",
        "The answer is **[1, 2, 3]**\n",
        "The answer is $\\boxed{\\left[1, 2\\right]}$\n",
        "The answer is \\{1, 2\\}\n",
        "The answer is `[0, 2, 1, 0]`\n",
    ],
)
def test_a_text_stops_at_its_answer(text: str) -> None:
    before = "The answer is not obvious.\nFirst, 3 + 4 = 7.\n"
    found = re.search(STOP, before + text)
    assert found and found.end() == len(before) + text.index("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "The answer is not obvious\n",
        "The answer is 7",
        "The answer is [1, 2",
        "The answer is [1, 2\n",
        "The answer is 7 if nothing else is smaller\n",
        "The answer is the smaller of 3 and 7\n",
        "The answer is\n7",
        "The answer is:\n",
        "Answer\n",
        "The answer is 3 + 4\n",
        "The answer is <ANSWER>\n",
    ],
)
def test_a_text_goes_on_where_no_answer_is_given(text: str) -> None:
    assert re.search(STOP, text) is None


@pytest.mark.parametrize("piece", ["[1, ", "1,", "{,}1", "**", "\\boxed{", "the answer is 1 ", " "])
def test_looking_for_the_stop_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    assert re.search(STOP, "the answer is " + piece * (200_000 // len(piece))) is None
    assert time.process_time() - started < 2


def test_a_supposition_is_no_end() -> None:
    assert re.search(STOP, "Suppose the answer is 9.\n") is None
    assert re.search(STOP, "It is 4. So the answer is 4.\n")
