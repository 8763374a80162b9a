"""Inputs as prompts show them, and read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import MalformedInput
from scylla.puzzle import Instance
from scylla.registry import list_puzzles, load_puzzle
from tests.scylla.inputs import instances

every_puzzle = pytest.mark.parametrize("name", list_puzzles())


@every_puzzle
@settings(max_examples=20)
@given(data=st.data())
def test_an_input_is_read_as_it_was_shown(name: str, data: st.DataObject) -> None:
    puzzle = load_puzzle(name)
    instance = data.draw(instances(puzzle, longest=12))
    text = puzzle.render(instance)
    assert puzzle.parse(text) == instance
    assert puzzle.parse(f"\n {text} \n") == instance


def test_texts_of_inputs() -> None:
    texts = {
        "find_mode": (Instance(((3, 1, 3),)), "3 1 3"),
        "two_sum": (Instance(((3, 1, 2),), (4,)), "$l$ = 3 1 2, $k$ = 4"),
        "three_sum_in_range": (
            Instance(((3, 1, 2, 9),), (6, 13)),
            "$l$ = 3 1 2 9, $a$ = 6, $b$ = 13",
        ),
        "longest_common_subarray": (
            Instance(((3, 1, 2), (1, 2))),
            "$l_1$ = 3 1 2, $l_2$ = 1 2",
        ),
        "tsp": (
            Instance(((0, 5), (5, 0))),
            "$n$ = 2, $D$ =\n\\begin{bmatrix}\n0 & 5 \\\\\n5 & 0 \\\\\n\\end{bmatrix}",
        ),
    }
    for name, (instance, text) in texts.items():
        assert load_puzzle(name).render(instance) == text
        assert load_puzzle(name).parse(text) == instance


RUBBISH = [
    "",
    "no numbers",
    "1 -2 3",
    "1, 2, 3",
    "1.5 2 3",
    "[1 2 3]",
    "² 3 4",
    "9" * 5000,
    "$l$ = 1 2 3",
    "$l$ = , $k$ = 3",
    "$l$ = 1 2 3, $k$ = 3 4",
    "$l$ = 1 2 3, $m$ = 4",
    "$l$ = 1 2 3, $b$ = 4, $a$ = 5",
    "$l_1$ = 1 2, $l_2$ =",
    "$n$ = 2, $D$ =\n\\begin{bmatrix}\n0 & 1 \\\\\n1 & 0 & 2 \\\\\n\\end{bmatrix}",
    "$n$ = 3, $D$ =\n\\begin{bmatrix}\n0 & 1 \\\\\n1 & 0 \\\\\n\\end{bmatrix}",
    "$n$ = 2, $D$ =\n\\begin{bmatrix}\n0 & x \\\\\n1 & 0 \\\\\n\\end{bmatrix}",
    "$n$ = 2, $D$ =\n\\begin{bmatrix}\n0 & 1 2 \\\\\n1 & 0 \\\\\n\\end{bmatrix}",
    "$n$ = 2, $D$ =\n0 1\n1 0",
]


@every_puzzle
def test_rubbish_is_no_input(name: str) -> None:
    for text in RUBBISH:
        with pytest.raises(MalformedInput, match="expected"):
            load_puzzle(name).parse(text)
