import re
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import MalformedInput
from extras.scylla.puzzle import InputShape, Instance, Rows, list_puzzles, load_puzzle
from extras.scylla.tests.inputs import instances, instances_of
from extras.scylla.texts import STOP, extract_examples, probe_prompt, question_prompt, read_question

every_puzzle = pytest.mark.parametrize("name", list_puzzles())


@every_puzzle
@settings(max_examples=8)
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
        "longest_common_subarray": (Instance(((3, 1, 2), (1, 2))), "$l_1$ = 3 1 2, $l_2$ = 1 2"),
        "tsp": (
            Instance(((0, 5), (5, 0))),
            "$n$ = 2, $D$ =\n\\begin{bmatrix}\n0 & 5 \\\\\n5 & 0 \\\\\n\\end{bmatrix}",
        ),
    }
    for name, (instance, text) in texts.items():
        assert load_puzzle(name).render(instance) == text
        assert load_puzzle(name).parse(text) == instance


RUBBISH = [
    "", "no numbers", "1 -2 3", "1, 2, 3", "1.5 2 3", "[1 2 3]", "² 3 4", "9" * 5000, "$l$ = 1 2 3",
    "$l$ = , $k$ = 3", "$l$ = 1 2 3, $k$ = 3 4", "$l$ = 1 2 3, $m$ = 4",
    "$l$ = 1 2 3, $b$ = 4, $a$ = 5", "$l_1$ = 1 2, $l_2$ =",
    "$n$ = 2, $D$ =\n\\begin{bmatrix}\n0 & 1 \\\\\n1 & 0 & 2 \\\\\n\\end{bmatrix}",
    "$n$ = 3, $D$ =\n\\begin{bmatrix}\n0 & 1 \\\\\n1 & 0 \\\\\n\\end{bmatrix}",
    "$n$ = 2, $D$ =\n\\begin{bmatrix}\n0 & x \\\\\n1 & 0 \\\\\n\\end{bmatrix}",
    "$n$ = 2, $D$ =\n\\begin{bmatrix}\n0 & 1 2 \\\\\n1 & 0 \\\\\n\\end{bmatrix}",
    "$n$ = 2, $D$ =\n0 1\n1 0",
]  # fmt: skip


@every_puzzle
def test_rubbish_is_no_input(name: str) -> None:
    for text in RUBBISH:
        with pytest.raises(MalformedInput, match="expected"):
            load_puzzle(name).parse(text)


@every_puzzle
def test_a_question_is_read_back(name: str) -> None:
    puzzle = load_puzzle(name)
    for instance in instances_of(puzzle, 5):
        prompt = question_prompt(puzzle, instance)
        assert read_question(prompt) == (name, instance)
        for part in (puzzle.statement, puzzle.answer_rule, puzzle.render(instance)):
            assert part in prompt


@every_puzzle
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


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 7\n", "so the answer is 7.\nNext", "The answer is: 7\r\n",
        "The final answer is **7**.\n", "The answer is $\\boxed{7}$.\n",
        "The answer is \\boxed{\\text{7}}\n", "The answer is -5\n", "The answer is 1,234.\n",
        "The answer is $1{,}234$\n", "The answer is [1, 2, 3]\n", "The answer is [1 2 3].\n",
        "The answer is **[1, 2, 3]**\n", "The answer is $\\boxed{\\left[1, 2\\right]}$\n",
        "The answer is \\{1, 2\\}\n", "The answer is `[0, 2, 1, 0]`\n",
    ],
)  # fmt: skip
def test_a_text_stops_at_its_answer(text: str) -> None:
    before = "The answer is not obvious.\nFirst, 3 + 4 = 7.\n"
    found = re.search(STOP, before + text)
    assert found and found.end() == len(before) + text.index("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "The answer is not obvious\n", "The answer is 7", "The answer is [1, 2",
        "The answer is [1, 2\n", "The answer is 7 if nothing else is smaller\n",
        "The answer is the smaller of 3 and 7\n", "The answer is\n7", "The answer is:\n",
        "Answer\n", "The answer is 3 + 4\n", "The answer is <ANSWER>\n",
    ],
)  # fmt: skip
def test_a_text_goes_on_where_no_answer_is_given(text: str) -> None:
    assert re.search(STOP, text) is None


def test_looking_for_the_stop_takes_linear_time() -> None:
    for piece in ("[1, ", "1,", "{,}1", "**", "\\boxed{", "the answer is 1 ", " "):
        started = time.process_time()
        assert re.search(STOP, "the answer is " + piece * (200_000 // len(piece))) is None
        assert time.process_time() - started < 2, piece


def test_a_supposition_is_no_end() -> None:
    assert re.search(STOP, "Suppose the answer is 9.\n") is None
    assert re.search(STOP, "It is 4. So the answer is 4.\n")


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
    ("shape", "text", "examples"),
    [
        ("pair", "[[1, 2], [3]]", [PAIR]),
        ("pair", "[[[1, 2], [3]], [[1, 2], [3]]]", [PAIR] * 2),
        ("pair", "[[1, 2], [3]], [[3], [1, 2]]", [PAIR, PAIR[::-1]]),
        ("pair", "[1, 2], [3]\n[3], [1, 2]\n", [PAIR, PAIR[::-1]]),
        ("pair", "[1, 2] [3]", [PAIR]),
        ("pair", "([1, 2], [3])", [PAIR]),
        ("pair", "$l_1$ = [1, 2], $l_2$ = [3]", [PAIR]),
        ("pair", "l1 = [1, 2] and l2 = [3]", [PAIR]),
        ("pair", '{"l_1": [1, 2], "l_2": [3]}', [PAIR]),
        ("pair", "[[1, 2], [3], [4]]", []),
        ("pair", "[[1, 2]]", []),
        ("pair", "[1, 2]", []),
        ("pair", "[[1, 2], [x]]", []),
        ("pair", "[[1, 2], []]", []),
        ("pair", "[[1, 2], [3]", []),
        ("pair", "[1, 2]\n\n[3]", []),
        ("pair", "[1, 2] is unlike [3]", []),
        ("matrix", "[[0, 5], [5, 0]]", [MATRIX]),
        ("matrix", "[\n [0, 5],\n [5, 0]\n]\n", [MATRIX]),
        ("matrix", "[[[0, 5], [5, 0]], [[0, 5], [5, 0]]]", [MATRIX] * 2),
        ("matrix", "1. [[0, 5], [5, 0]]\n2. [[0]]", [MATRIX, ((0,),)]),
        ("matrix", "[[0, 5], [5, -1]]", []),
        ("matrix", "[[0, 5], [5, 0]", []),
        ("matrix", "[0, 5], [5, 0]", []),
        ("matrix", "[[0, 5], 7, [5, 0]]", []),
        ("matrix", "[0, 5]", []),
    ],
)
def test_pairs_and_matrices_are_found(shape: InputShape, text: str, examples: list[Rows]) -> None:
    assert extract_examples([text], shape).examples == Counter(examples)


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


@pytest.mark.long
def test_rubbish_takes_linear_time() -> None:
    pieces = ["[", "]", "[]", "[[1],", "[1, ", "1", "1, ", " ", ",", "[1", "[x", "[1,2]\n", "[1] "]
    for piece in pieces:
        # Quadratic work on this length takes ten seconds and more.
        text = "[1, " + piece * (40_000 // len(piece))
        started = time.process_time()
        extract_examples([text], "list")
        extract_examples([text], "pair")
        assert time.process_time() - started < 2, piece


def test_many_open_brackets_are_read() -> None:
    written = extract_examples(["[" * 200_000 + "1]"], "list")
    assert written.examples == Counter({((1,),): 1})
