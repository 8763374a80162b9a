"""Numbers and examples in what a model wrote."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scylla.examples import extract_examples
from scylla.puzzle import InputShape, Rows

PAIR = ((1, 2), (3,))
MATRIX = ((0, 5), (5, 0))


@pytest.mark.parametrize(
    ("text", "examples", "elements"),
    [
        ("[1, 2, 3]", [((1, 2, 3),)], [1, 2, 3]),
        ("1. [1,2]\n2. [ 3 , 4 ]\n", [((1, 2),), ((3, 4),)], [1, 2, 3, 4]),
        ("Input: [7, 7, 7]. Input: [7, 7, 7]", [((7, 7, 7),)] * 2, [7] * 6),
        ("[[1, 2], [3]]", [((1, 2),), ((3,),)], [1, 2, 3]),
        ("x = [\n1,\n2\n]", [((1, 2),)], [1, 2]),
        ("[]", [], []),
        ("[number, number, ..., number]", [], []),
        # Rejected, but the numbers in them were written.
        ("[1, -2, 3.5, 4]", [], [1, 4]),
        ('[1, "2", three, 4]', [], [1, 4]),
        ("[1, 2,]", [], [1, 2]),
        ("[1 2, 3]", [], [3]),
        ("[1, 2, ..., 9]", [], [1, 2, 9]),
        ("[1, [2, 3], 4]", [((2, 3),)], [1, 2, 3, 4]),
        ("[1e3, 0x1, 007, +5, 1_000, -0, true, null]", [], []),
        # Cut: the last number may be longer.
        ("[1, 2, 3", [], [1, 2]),
        ("[4, 5] [1, 2", [((4, 5),)], [4, 5, 1]),
        ("[4, 5], [", [((4, 5),)], [4, 5]),
        # Of nine digits at most.
        ("[999999999, 0]", [((999_999_999, 0),)], [999_999_999, 0]),
        ("[1000000000, 1]", [], [1]),
        (f"[{'9' * 6000}, 1]", [], [1]),
        ("[\uff11, \u0661, 1]", [], [1]),
        # No lists.
        ("1, 2, 3", [], []),
        ("] 1, 2 [", [], []),
        ("(1, 2)", [], []),
        ("", [], []),
    ],
)
def test_lists_are_found(text: str, examples: list[Rows], elements: list[int]) -> None:
    written = extract_examples([text], "list")
    assert written.examples == Counter(examples)
    assert written.elements == Counter(elements)


@pytest.mark.parametrize(
    ("text", "examples"),
    [
        ("[[1, 2], [3]]", [PAIR]),
        ("[[[1, 2], [3]], [[1, 2], [3]]]", [PAIR] * 2),
        ("[[1, 2], [3]], [[3], [1, 2]]", [PAIR, PAIR[::-1]]),
        ("[1, 2], [3]\n[3], [1, 2]\n", [PAIR, PAIR[::-1]]),
        ("[1, 2] [3]", [PAIR]),
        ("([1, 2], [3])", [PAIR]),
        ("$l_1$ = [1, 2], $l_2$ = [3]", [PAIR]),
        ("l1 = [1, 2] and l2 = [3]", [PAIR]),
        ('{"l_1": [1, 2], "l_2": [3]}', [PAIR]),
        ("[[1, 2], [3], [4]]", []),
        ("[[1, 2]]", []),
        ("[1, 2]", []),
        ("[[1, 2], [x]]", []),
        ("[[1, 2], []]", []),
        ("[[1, 2], [3]", []),
        ("[1, 2]\n\n[3]", []),
        ("[1, 2] is unlike [3]", []),
    ],
)
def test_pairs_are_found(text: str, examples: list[Rows]) -> None:
    assert extract_examples([text], "pair").examples == Counter(examples)


@pytest.mark.parametrize(
    ("text", "examples"),
    [
        ("[[0, 5], [5, 0]]", [MATRIX]),
        ("[\n [0, 5],\n [5, 0]\n]\n", [MATRIX]),
        ("[[[0, 5], [5, 0]], [[0, 5], [5, 0]]]", [MATRIX] * 2),
        ("1. [[0, 5], [5, 0]]\n2. [[0]]", [MATRIX, ((0,),)]),
        ("[[0, 5], [5, -1]]", []),
        ("[[0, 5], [5, 0]", []),
        ("[0, 5], [5, 0]", []),
        ("[[0, 5], 7, [5, 0]]", []),
        ("[0, 5]", []),
    ],
)
def test_matrices_are_found(text: str, examples: list[Rows]) -> None:
    assert extract_examples([text], "matrix").examples == Counter(examples)


NUMBERS = st.lists(st.integers(0, 10**9 - 1), min_size=1, max_size=8)


@given(st.lists(NUMBERS, max_size=6), st.sampled_from(["\n", ", ", " and ", "\n2. "]))
def test_what_is_written_is_extracted(lists: list[list[int]], between: str) -> None:
    written = extract_examples([between.join(map(str, lists))], "list")
    assert written.examples == Counter((tuple(numbers),) for numbers in lists)
    assert written.elements == Counter(number for numbers in lists for number in numbers)


@given(st.lists(st.lists(NUMBERS, min_size=2, max_size=2), max_size=5))
def test_pairs_that_are_written_are_extracted(pairs: list[list[list[int]]]) -> None:
    expected = Counter(tuple(map(tuple, pair)) for pair in pairs)
    assert extract_examples(["\n".join(map(str, pairs))], "pair").examples == expected
    assert extract_examples([str(pairs)], "pair").examples == expected


@given(st.lists(st.text('[]0123456789, -."x\n=', max_size=60), max_size=4))
def test_any_texts_give_the_same_in_any_order(texts: list[str]) -> None:
    shapes: tuple[InputShape, ...] = ("list", "pair", "matrix")
    for shape in shapes:
        written = extract_examples(texts, shape)
        assert written == extract_examples(reversed(texts), shape)
        for rows in written.examples:
            assert {number for row in rows for number in row} <= written.elements.keys()


@pytest.mark.parametrize(
    "piece", ["[", "]", "[]", "[[1],", "[1, ", "1", "1, ", " ", ",", "[1", "[x", "[1,2]\n", "[1] "]
)
def test_rubbish_takes_linear_time(piece: str) -> None:
    # What takes the square of this length takes minutes.
    text = "[1, " + piece * (100_000 // len(piece))
    started = time.process_time()
    extract_examples([text], "list")
    extract_examples([text], "pair")
    assert time.process_time() - started < 5


def test_megabytes_of_open_brackets_are_read() -> None:
    written = extract_examples(["[" * 2_000_000 + "1]"], "list")
    assert written.examples == Counter({((1,),): 1})
