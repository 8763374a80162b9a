"""What a model wrote when it was asked for inputs of a puzzle: numbers, and examples made of them.

Lists are found by their brackets, as JSON writes them. A number counts as often as it was written,
in whatever list, complete or not. An example counts where all of it is right: a list of integers;
of a pair both lists, within brackets of their own or next to each other; of a matrix all rows.
A list of lists is, where lists are asked for, several examples.

An integer has at most nine digits, so that sums of many fit into 64 bits; what is longer, has a
sign, a fraction or quotes is none. One pass without recursion: any text takes linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from scylla.puzzle import InputShape, Rows

_BRACKET = re.compile(r"[\[\]]")
_INTEGER = r"(?:0|[1-9]\d{0,8})"
_ITEM = re.compile(rf"\s*+({_INTEGER})\s*+", re.ASCII)
_ALL = re.compile(rf"\s*+{_INTEGER}\s*+(?:,\s*+{_INTEGER}\s*+)*+", re.ASCII)
_DIGITS = re.compile(r"(?<!\d)\d{1,9}(?!\d)", re.ASCII)
_THOUSANDS = re.compile(r"(?<![\d,])[1-9]\d{0,2},\d{3}(?![\d,])", re.ASCII)
_COMMA = re.compile(r"\s*+,\s*+")
# Between two lists that are no JSON together: "[1], [2]", "l_1 = [1] and l_2 = [2]".
_LABEL = r"""["'$]?\w{1,10}["'$]?\s?[:=]\s?\$?"""
_BETWEEN = re.compile(rf"\$?[ ]?(?:(?:,|;)\s?|and[ ]|&[ ]?)?(?:and[ ])?(?:{_LABEL})?", re.ASCII)


@dataclass(frozen=True)
class Written:
    """What all texts of a model together hold.

    Attributes:
        elements: how often each number was written in a list.
        examples: how often each example was.
        mentioned: all numbers anywhere in the texts, however they were written.
    """

    elements: Counter[int]
    examples: Counter[Rows]
    mentioned: frozenset[int] = frozenset()

    @property
    def known(self) -> Set[int]:
        """All numbers that the model wrote."""
        return self.mentioned | self.elements.keys()


@dataclass
class _List:
    """A list without lists in it.

    Attributes:
        start: of its bracket.
        end: behind the other one.
        numbers: None where anything in it is no number, or nothing is.
        is_first: stands right behind another opening bracket.
        is_last: right before another closing one.
    """

    start: int
    end: int
    numbers: tuple[int, ...] | None
    is_first: bool
    is_last: bool = False


@dataclass
class _Reader:
    """Finds lists in a text, and counts the numbers in brackets."""

    elements: Counter[int]
    lists: list[_List] = field(default_factory=list)

    def read(self, text: str) -> list[_List]:
        """Return the lists of a text in their order."""
        self.lists = []
        depth, position, before, is_first = 0, 0, "", False
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
            position, before = bracket.end(), bracket[0]
        self._count(text[position:].rpartition(",")[0], depth)  # the last number may be cut
        return self.lists

    def _count(self, items: str, depth: int) -> tuple[int, ...] | None:
        """Count the numbers between two brackets; return them where there is nothing else."""
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
    """Return numbers and examples of texts, whatever their order.

    Args:
        texts: as the model wrote them.
        shape: of the puzzle's inputs.
    """
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
    """Yield the lists that make an example together."""
    group: list[_List] = []
    for each in lists:
        if group and not _belongs(text, group[-1], each, shape):
            yield from _complete(group, shape)
            group = []
        group.append(each)
    yield from _complete(group, shape)


def _belongs(text: str, before: _List, each: _List, shape: InputShape) -> bool:
    if before.is_last or each.is_first:
        return False
    if _COMMA.fullmatch(text, before.end, each.start):
        return True
    return shape == "pair" and _BETWEEN.fullmatch(text, before.end, each.start) is not None


def _complete(group: list[_List], shape: InputShape) -> Iterator[list[_List]]:
    """Yield the group if it is one: a matrix has brackets of its own, of a pair there are two."""
    if not group:
        return
    is_nested = group[0].is_first and group[-1].is_last
    is_bare = not group[0].is_first and not group[-1].is_last
    if (shape == "matrix" and is_nested) or (
        shape == "pair" and len(group) == 2 and (is_nested or is_bare)
    ):
        yield group
