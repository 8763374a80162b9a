r"""Texts of puzzles: prompts, inputs in prompts, and examples in models' texts.

The folder ``prompts/`` has the templates of two prompts: a request for inputs of a puzzle, and a
question. A chat model gets the same text as a user message. An input in a question has these forms:

    3 1 2                                 a list without parameters
    $l$ = 3 1 2, $k$ = 4                  a list with parameters
    $l_1$ = 3 1 2, $l_2$ = 1 2            two lists
    $n$ = 4, $D$ =                        a matrix; its rows follow, one per line
    \begin{bmatrix} … \end{bmatrix}

A list in a model's text is a JSON list in square brackets. Each occurrence of a number in a list
counts, even if the list is incomplete. An example counts only if it is complete. A pair must have
both lists, in common brackets or next to each other. A matrix must have all rows. If the puzzle's
input is a list, a list of lists is several examples.

An integer has at most nine digits, so that sums fit into 64 bits. Longer numbers, and numbers with
a sign, a fraction or quotes, are ignored. Reading a text takes linear time.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import MalformedInput
from extras.scylla.puzzle import InputShape, Instance, Puzzle, Rows, list_puzzles, load_puzzle

BEGIN = r"\begin{bmatrix}"
END = r"\end{bmatrix}"
_N = r"[0-9]{1,4000}"  # Python's limit for int() is 4300 digits
_NUMBERS = rf"\s*({_N}(?:\s+{_N})*)\s*"
_ROW = rf"\s*{_N}\s*(?:&\s*{_N}\s*)*\\\\"
_MATRIX = re.compile(
    rf"\s*\$n\$ = ({_N}), \$D\$ =\s*{re.escape(BEGIN)}((?:{_ROW})+)\s*{re.escape(END)}\s*"
)
_SHOWN = 80  # maximum number of characters of a quoted text in an error message


def render_lists(names: Sequence[str], lists: Rows) -> str:
    """Return lists as text, each list after its name; without names, return the only list."""
    texts = [" ".join(map(str, numbers)) for numbers in lists]
    if not names:
        (text,) = texts
        return text
    return ", ".join(f"${name}$ = {text}" for name, text in zip(names, texts, strict=True))


def parse_lists(names: Sequence[str], text: str) -> Rows:
    """Return the lists from a text of ``render_lists`` with the same names.

    Raises:
        MalformedInput: the text does not have the form of ``render_lists``.
    """
    labels = [rf"\s*\${name}\$\s*=" for name in names] or [""]
    match = re.fullmatch(",".join(label + _NUMBERS for label in labels), text)
    if match is None:
        raise malformed(text, ", ".join(f"${name}$ = numbers" for name in names) or "numbers")
    return tuple(tuple(map(int, numbers.split())) for numbers in match.groups())


def render_matrix(rows: Rows) -> str:
    """Return a square matrix as text, preceded by its number of rows."""
    lines = [" & ".join(map(str, row)) + r" \\" for row in rows]
    return "\n".join([f"$n$ = {len(rows)}, $D$ =", BEGIN, *lines, END])


def parse_matrix(text: str) -> Rows:
    """Return the matrix from a text of ``render_matrix``.

    Raises:
        MalformedInput: the text is not a square matrix of numbers of the stated size.
    """
    match = _MATRIX.fullmatch(text)
    lines = match[2].split(r"\\")[:-1] if match else []
    rows = tuple(tuple(map(int, line.split("&"))) for line in lines)
    if match is None or {int(match[1])} != {len(rows), *map(len, rows)}:
        raise malformed(text, rf"$n$ = …, $D$ = {BEGIN} n rows of n numbers {END}")
    return rows


def malformed(text: str, wanted: str) -> MalformedInput:
    """Return the error for a text that is not the expected input."""
    return MalformedInput(
        f"{text[:_SHOWN]!r} is not the input of this puzzle: expected {wanted}; give a text that "
        "the same puzzle rendered"
    )


_BRACKET = re.compile(r"[\[\]]")
_INTEGER = r"(?:0|[1-9]\d{0,8})"
_ITEM = re.compile(rf"\s*+({_INTEGER})\s*+", re.ASCII)
_ALL = re.compile(rf"\s*+{_INTEGER}\s*+(?:,\s*+{_INTEGER}\s*+)*+", re.ASCII)
_DIGITS = re.compile(r"(?<!\d)\d{1,9}(?!\d)", re.ASCII)
_THOUSANDS = re.compile(r"(?<![\d,])[1-9]\d{0,2},\d{3}(?![\d,])", re.ASCII)
_COMMA = re.compile(r"\s*+,\s*+")
# Text between two lists of a pair, as in "[1], [2]" or "l_1 = [1] and l_2 = [2]".
_LABEL = r"""["'$]?\w{1,10}["'$]?\s?[:=]\s?\$?"""
_BETWEEN = re.compile(rf"\$?[ ]?(?:(?:,|;)\s?|and[ ]|&[ ]?)?(?:and[ ])?(?:{_LABEL})?", re.ASCII)


@dataclass(frozen=True)
class Written:
    """The numbers and examples in all texts of a model.

    Attributes:
        elements: counts of numbers in lists.
        examples: counts of examples.
        mentioned: all numbers in the texts, inside and outside of lists.
    """

    elements: Counter[int]
    examples: Counter[Rows]
    mentioned: frozenset[int] = frozenset()

    @property
    def known(self) -> Set[int]:
        """All distinct numbers that the model wrote."""
        return self.mentioned | self.elements.keys()


@dataclass
class _List:
    """A list without nested lists.

    Attributes:
        start: position of the opening bracket.
        end: position after the closing bracket.
        numbers: numbers of the list, or None if the list is empty or has other content.
        is_first: True if another opening bracket precedes the list.
        is_last: True if another closing bracket follows the list.
    """

    start: int
    end: int
    numbers: tuple[int, ...] | None
    is_first: bool
    is_last: bool = False


@dataclass
class _Reader:
    """Finds lists in texts, and counts the numbers in brackets in ``elements``."""

    elements: Counter[int]
    lists: list[_List] = field(default_factory=list)

    def read(self, text: str) -> list[_List]:
        """Return the lists of integers in a text, the innermost brackets."""
        self.lists = []
        depth = 0
        position = 0
        before = ""
        is_first = False
        for bracket in _BRACKET.finditer(text):
            between = text[position : bracket.start()]
            if bracket[0] == "[":
                self._count(between, depth)
                is_first = before == "[" and not between.strip()
                depth += 1
            elif before == "[":
                numbers = self._count(between, depth)
                self.lists.append(_List(position - 1, bracket.end(), numbers, is_first))
                depth -= 1
            else:
                self._count(between, depth)
                if self.lists and self.lists[-1].end == position and not between.strip():
                    self.lists[-1].is_last = True
                depth = max(0, depth - 1)
            position = bracket.end()
            before = bracket[0]
        self._count(text[position:].rpartition(",")[0], depth)  # the last number may be truncated
        return self.lists

    def _count(self, items: str, depth: int) -> tuple[int, ...] | None:
        """Count the numbers between two brackets; return them, or None if there is other text."""
        if depth == 0 or not items:
            return None
        if _ALL.fullmatch(items):
            numbers = tuple(map(int, items.split(",")))
            self.elements.update(numbers)
            return numbers
        found = map(_ITEM.fullmatch, items.split(","))
        self.elements.update(int(item[1]) for item in found if item)
        return None


def extract_examples(texts: Iterable[str], shape: InputShape) -> Written:
    """Return the numbers and examples of a model's texts; the texts' order has no effect."""
    elements: Counter[int] = Counter()
    examples: Counter[Rows] = Counter()
    mentioned: set[int] = set()
    reader = _Reader(elements)
    for text in texts:
        mentioned.update(map(int, set(_DIGITS.findall(text))))
        mentioned.update(int(each.replace(",", "")) for each in set(_THOUSANDS.findall(text)))
        lists = reader.read(text)
        if shape == "list":
            examples.update((each.numbers,) for each in lists if each.numbers)
            continue
        for group in _groups(text, lists, shape):
            rows = tuple(each.numbers for each in group if each.numbers)
            if len(rows) == len(group):
                examples[rows] += 1
    return Written(elements, examples, frozenset(mentioned))


def _groups(text: str, lists: list[_List], shape: InputShape) -> Iterator[list[_List]]:
    """Yield groups of lists that may be one input."""
    group: list[_List] = []
    for each in lists:
        if group and not _belongs(text, group[-1], each, shape):
            yield from _complete(group, shape)
            group = []
        group.append(each)
    yield from _complete(group, shape)


def _belongs(text: str, before: _List, each: _List, shape: InputShape) -> bool:
    """Return True if a list continues the input of the list before it."""
    if before.is_last or each.is_first:
        return False
    if _COMMA.fullmatch(text, before.end, each.start):
        return True
    return shape == "pair" and _BETWEEN.fullmatch(text, before.end, each.start) is not None


def _complete(group: list[_List], shape: InputShape) -> Iterator[list[_List]]:
    """Yield a group if it is a whole input of this shape."""
    if not group:
        return
    is_nested = group[0].is_first and group[-1].is_last
    is_bare = not group[0].is_first and not group[-1].is_last
    if (shape == "matrix" and is_nested) or (
        shape == "pair" and len(group) == 2 and (is_nested or is_bare)
    ):
        yield group


_FOLDER = Path(__file__).parent / "prompts"
_PLACE = "\x00"  # placeholder of the input; no statement or title contains it

_DRESS = r"(?:\\\(|\\\[|\\?boxed\{|\\text\{|\\left|[ \t*$`\"'<])*+"
_UNDRESS = r"(?:\\\)|\\\]|\\right|[ \t*$`\"'>}.!])*+"
_ANSWER = (
    r"(?:\\?[\[({][-+\u2212\d,;. ]*+(?:\\right)?\\?[\])}]"  # a list
    r"|[-+\u2212]?\d++(?:(?:[,.' ]|\{,\})\d++)*+)"
)
_BEGINNING = r"(?:^|[\n.!?:;,])[ \t*_#>\"]*+(?:(?:so|thus|therefore|hence|finally|then|and),?[ ])?"
STOP = rf"(?i){_BEGINNING}the (?:final |correct )?answer is:?{_DRESS}{_ANSWER}{_UNDRESS}\r?\n"
"""A regular expression that first matches where a line with an answer ends.

The statement begins a sentence: "suppose the answer is 9" does not match.
"""


def probe_prompt(puzzle: Puzzle) -> str:
    """Return the prompt that requests as many inputs of a puzzle as possible."""
    template = string.Template(_templates()[f"probe_{puzzle.input_shape}.txt"])
    return template.substitute(title=puzzle.title, statement=puzzle.statement)


def question_prompt(puzzle: Puzzle, instance: Instance) -> str:
    """Return the question: the input, a request for reasoning, and the format of the answer."""
    before, after = _around_input(puzzle)
    return before + puzzle.render(instance) + after


def read_question(prompt: str) -> tuple[str, Instance]:
    """Return the puzzle's name and the input from a prompt of ``question_prompt``.

    Raises:
        MalformedInput: the prompt is not from ``question_prompt``.
    """
    for name in list_puzzles():
        puzzle = load_puzzle(name)
        before, after = _around_input(puzzle)
        if prompt.startswith(before) and prompt.endswith(after):
            return name, puzzle.parse(prompt[len(before) : -len(after)])
    raise MalformedInput(
        f"{prompt[:80]!r} is not a question of a puzzle; give a prompt of question_prompt"
    )


@functools.cache
def prompts_digest() -> str:
    """Return eight hex digits of a digest of all prompt files."""
    return hashlib.sha256(json.dumps(_templates(), sort_keys=True).encode()).hexdigest()[:8]


@functools.cache
def _templates() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8").rstrip() for path in _FOLDER.glob("*.txt")}


def _around_input(puzzle: Puzzle) -> tuple[str, str]:
    """Return what a prompt has before and after the input."""
    text = string.Template(_templates()["question.txt"]).substitute(
        title=puzzle.title, statement=puzzle.statement, input=_PLACE, answer_rule=puzzle.answer_rule
    )
    before, _, after = text.partition(_PLACE)
    return before, after
