import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extras.scylla.parsing import parse_answer
from extras.scylla.puzzle import AnswerShape
from extras.scylla.tests.nasty_answers import LISTS, NUMBERS

SHAPES: tuple[AnswerShape, ...] = ("number", "list")
# What markers, numbers and LaTeX are made of: more likely to mislead than any characters.
PIECES = st.sampled_from(
    [
        "the answer is", "Answer:", "final answer", "\\boxed{", "\\text{", "}", "\\left[",
        "\\right]", "[", "]", "(", ")", "{", "}", "<", ">", "<think>", "</think>", "```", "**", "$",
        "\\", "\n", ",", ", ", ".", ";", " ", "-", "=", "->", "and", "or", "1", "23", "456", "7.0",
        "7.9", "\u2212", "\u202f", "\uff17", "1,234", "0", "not", "x", "1st", "&", "\\\\", "_", "'",
    ]
)  # fmt: skip
NUMBER = st.integers(-(10**18) + 1, 10**18 - 1)


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_number_is_read(is_strict: bool) -> None:
    for strict, lenient, texts in NUMBERS:
        number = strict if is_strict else lenient
        for text in texts:
            answer = None if number is None else (number,)
            assert parse_answer(text, "number", is_strict) == answer, text


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_list_is_read(is_strict: bool) -> None:
    for strict, lenient, texts in LISTS:
        for text in texts:
            answer = strict if is_strict else lenient
            assert parse_answer(text, "list", is_strict) == answer, text


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
@example("\\boxed{" * 50)
@example("the answer is (" * 50)
def test_any_text_is_read_or_is_not(text: str) -> None:
    for shape in SHAPES:
        strict = parse_answer(text, shape, True)
        lenient = parse_answer(text, shape, False)
        assert strict is None or strict == lenient
        for answer in (strict, lenient):
            assert answer is None or all(abs(number) < 10**18 for number in answer)
            assert answer is None or shape == "list" or len(answer) == 1


NUMBER_STYLES: list[Callable[[int], str]] = [
    str,
    "{:,}".format,
    lambda number: f"{number:,}".replace(",", " "),
    lambda number: f"{number:,}".replace(",", "\u202f"),
    lambda number: f"{number:,}".replace(",", "{,}"),
    "{:_}".format,
    "{}.0".format,
    "[{}]".format,
    "**{}**".format,
    "`{}`".format,
    "${}$".format,
    "\\({}\\)".format,
    "\\boxed{{{}}}".format,
    "$\\boxed{{\\text{{{}}}}}$".format,
    "<{}>".format,
    lambda number: str(number).replace("-", "\u2212"),
    lambda number: str(number).translate({48 + digit: 0xFF10 + digit for digit in range(10)}),
]
LIST_STYLES: list[Callable[[list[int]], str]] = [
    str,
    lambda numbers: str(numbers).replace(" ", ""),
    lambda numbers: str(numbers).replace(",", ""),
    lambda numbers: str(tuple(numbers)),
    lambda numbers: ", ".join(map(str, numbers)),
    lambda numbers: "; ".join(map(str, numbers)),
    lambda numbers: " -> ".join(map(str, numbers)),
    lambda numbers: " $\\to$ ".join(map(str, numbers)),
    lambda numbers: "[" + ", ".join(map("{:,}".format, numbers)) + "]",
    lambda numbers: "\\boxed{\\left[" + ", ".join(map(str, numbers)) + "\\right]}",
    lambda numbers: "$\\{" + ", ".join(map(str, numbers)) + "\\}$",
    lambda numbers: f"\n```json\n{numbers}\n```\n",
    lambda numbers: f"**{numbers}**",
    lambda numbers: "[" + ", ".join(f'"{number}"' for number in numbers) + "]",
]
ENDS = st.sampled_from(["", ".", "\n", ".\n\nI checked 3 times.", " (I checked 3 times)"])
BEGINS = st.sampled_from(
    ["The answer is ", "Answer: ", "**Final answer:** ", "12 and 34 remain.\nSo the answer is: "]
)


@pytest.mark.long
@given(BEGINS, NUMBER, st.sampled_from(NUMBER_STYLES), ENDS)
def test_a_number_of_each_style_is_read_back(
    begin: str, number: int, style: Callable[[int], str], end: str
) -> None:
    assert parse_answer(begin + style(number) + end, "number", True) == (number,)


@given(BEGINS, st.lists(NUMBER, min_size=2, max_size=12), st.sampled_from(LIST_STYLES), ENDS)
def test_a_list_of_each_style_is_read_back(
    begin: str, numbers: list[int], style: Callable[[list[int]], str], end: str
) -> None:
    assert parse_answer(begin + style(numbers) + end, "list", True) == tuple(numbers)


RUBBISH = [
    "[", "]", "(", "[(", "{{}", "1", "1,", "1 ", "1,234", "1 234 ", "-", " ", "\n", "=", "* ", "**",
    "\\", "\\boxed{", "\\boxed{1}, ", "\\text{", "\\left[", "<think>", "<a", "'", "```\n", "_", "$",
    "the answer is ", "answer ", "final answer ", "the answer is (", "the answer is 1 ", "[1] -> ",
    "the answer is [1, 2", "1.5", "and ", "1 and ", "a = ", "\u202f1", "\u0667", "answer: 1 = ",
    "# ",
]  # fmt: skip


@pytest.mark.long
def test_rubbish_takes_linear_time() -> None:
    for piece in RUBBISH:
        # Linear work on this length takes half a second, quadratic work ten seconds and more.
        text = "The answer is [" + piece * (20_000 // len(piece))
        assert _seconds(text) < 5, piece


@pytest.mark.slow  # the test before reads the same pieces, in shorter texts
@pytest.mark.parametrize("piece", ["1 234 ", "the answer is ("])
def test_a_megabyte_of_rubbish_takes_linear_time(piece: str) -> None:
    assert _seconds(piece * (1_000_000 // len(piece))) < 20


def _seconds(text: str) -> float:
    started = time.process_time()
    for shape in SHAPES:
        parse_answer(text, shape, strict=False)
    return time.process_time() - started


@pytest.mark.parametrize(
    "remark",
    [
        "Note that the answer is one of the 8 numbers.",
        "Confidence in answer: 90%",
        "(The other answers are 8 and 9.)",
        "Final list: [1, 2, 3, 7]",
    ],
)
def test_a_remark_does_not_take_a_number_back(remark: str) -> None:
    assert parse_answer(f"The answer is 7.\n\n{remark}", "number", strict=True) == (7,)
