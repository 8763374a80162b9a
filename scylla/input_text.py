r"""The text of a puzzle's input, as a prompt shows it, and back.

3 1 2                                 a list of which nothing else is asked
$l$ = 3 1 2, $k$ = 4                  a list with parameters
$l_1$ = 3 1 2, $l_2$ = 1 2            two lists
$n$ = 4, $D$ =                        a matrix; its rows follow, one a line
\begin{bmatrix} … \end{bmatrix}
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.errors import MalformedInput
from scylla.puzzle import Rows

BEGIN = r"\begin{bmatrix}"
END = r"\end{bmatrix}"
_MATRIX = re.compile(
    rf"\s*\$n\$ = ([0-9]+), \$D\$ =\s*{re.escape(BEGIN)}(.*){re.escape(END)}\s*", re.DOTALL
)
_NUMBER = re.compile(r"[0-9]+")
_SHOWN = 80  # characters of a text in a message


def render_lists(names: Sequence[str], lists: Rows) -> str:
    """Return lists (a parameter is a list of one), each after its name; without names, one bare."""
    texts = [" ".join(map(str, numbers)) for numbers in lists]
    if not names:
        (text,) = texts
        return text
    return ", ".join(f"${name}$ = {text}" for name, text in zip(names, texts, strict=True))


def parse_lists(names: Sequence[str], text: str) -> Rows:
    """Return the lists of a text that ``render_lists`` gave for these names.

    Raises:
        MalformedInput: names or numbers are not where they were expected.
    """
    if not names:
        return (_parse_numbers(text, text),)
    parts = text.split(",")
    if len(parts) != len(names):
        raise malformed(text, f"{len(names)} lists, separated by commas: {', '.join(names)}")
    return tuple(_parse_named(name, part, text) for name, part in zip(names, parts, strict=True))


def render_matrix(rows: Rows) -> str:
    """Return a square matrix, and before it its number of rows."""
    lines = [" & ".join(map(str, row)) + r" \\" for row in rows]
    return "\n".join([f"$n$ = {len(rows)}, $D$ =", BEGIN, *lines, END])


def parse_matrix(text: str) -> Rows:
    """Return the matrix of a text that ``render_matrix`` gave.

    Raises:
        MalformedInput: it is not square, of another size than is said, or no matrix of numbers.
    """
    match = _MATRIX.fullmatch(text)
    if match is None:
        raise malformed(text, rf"$n$ = …, $D$ = {BEGIN} … {END}")
    lines = match[2].strip().removesuffix(r"\\").split(r"\\")
    rows = tuple(
        tuple(_parse_numbers(cell, text, most=1)[0] for cell in line.split("&")) for line in lines
    )
    (size,) = _parse_numbers(match[1], text, most=1)
    if {size} != {len(rows), *map(len, rows)}:
        raise malformed(text, f"{size} rows of {size} numbers")
    return rows


def malformed(text: str, wanted: str) -> MalformedInput:
    """Return the error of a text in which something else was expected."""
    return MalformedInput(
        f"{text[:_SHOWN]!r} is not the input of this puzzle: expected {wanted}; give a text that "
        "the same puzzle rendered"
    )


def _parse_named(name: str, part: str, text: str) -> tuple[int, ...]:
    before, equals, after = part.partition("=")
    if before.strip() != f"${name}$" or not equals:
        raise malformed(text, f"${name}$ = … in place of {part.strip()[:_SHOWN]!r}")
    return _parse_numbers(after, text)


def _parse_numbers(part: str, text: str, most: int | None = None) -> tuple[int, ...]:
    words = part.split()
    if not words or not all(map(_NUMBER.fullmatch, words)) or len(words) > (most or len(words)):
        wanted = "numbers separated by spaces" if most is None else "one number"
        raise malformed(text, f"{wanted} in place of {part.strip()[:_SHOWN]!r}")
    try:
        return tuple(map(int, words))
    except ValueError as error:  # Python converts a few thousand digits at most.
        raise malformed(text, "numbers of fewer digits") from error
