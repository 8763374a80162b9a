"""Reading integers and lists of them from text, as people and models write them.

An integer may have a sign, separators of thousands ("1,234", "1 234", "1'234", "1_234") and a
fraction of zeros ("7.0"). What is no integer, or has more than MOST_DIGITS digits, is not read: it
is never truncated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_DIGITS = 18  # fits into 64 bits

# One to three digits, then groups of three, all split alike.
_GROUPS = r"[1-9]\d{0,2}(?:(?:,\d{3})++|(?: \d{3})++|(?:'\d{3})++|(?:_\d{3})++)(?![\d])"
NUMBER = re.compile(rf"[-+]?(?:{_GROUPS}|\d++)(?:\.\d++)?", re.ASCII)
_INTEGER = re.compile(rf"([-+]?(?:{_GROUPS}|\d++))(?:\.0*+)?", re.ASCII)
_NO_DIGIT = str.maketrans("", "", ", '_+")

_ARROWS = re.compile(r"->|;|\|")
_AND = re.compile(r",? and (?=[-+\d])")
_HYPHENS = re.compile(r"\d++(?:(?:-\d++){2,}+|(?: - \d++){2,}+)", re.ASCII)
_SPACED_COMMA = re.compile(r", | ,")
# A comma with three digits behind it and no space is of thousands, where others have a space.
_LIST_COMMA = re.compile(r" ?, | ,|,(?!\d{3}(?!\d))|(?<!\d),", re.ASCII)
_ZEROS = re.compile(r"[1-9],0\d\d(?!\d)", re.ASCII)  # no number begins so
_BARE_THOUSANDS = re.compile(r"(?<![\d,])\d{4,}", re.ASCII)


def read_integer(text: str) -> int | None:
    """Return the integer that a text is, or None."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    digits = match[1].translate(_NO_DIGIT)
    return int(digits) if len(digits.lstrip("-")) <= MOST_DIGITS else None


def read_integers(body: str) -> tuple[int, ...] | None:
    """Return the integers of what stands between brackets, or None where it is no list of them.

    Split by commas, semicolons, arrows, ``and``, hyphens (three or more numbers) or spaces. Commas
    are of thousands only where the list's own are told apart from them by a space, or by "1,045".
    """
    body = _AND.sub(", ", " ".join(body.split()))
    if not body:
        return ()
    parts = _split(body)
    if len(parts) > 1 and not parts[-1].strip():
        parts = parts[:-1]  # a trailing comma
    numbers = [read_integer(part.strip()) for part in parts]
    known = tuple(number for number in numbers if number is not None)
    return known if len(known) == len(numbers) else None


def _split(body: str) -> Sequence[str]:
    if _ARROWS.search(body):
        return _ARROWS.split(body)
    if "," in body:
        is_told_apart = _SPACED_COMMA.search(body) or _ZEROS.search(body)
        has_thousands = is_told_apart and not _BARE_THOUSANDS.search(body)
        return _LIST_COMMA.split(body) if has_thousands else body.split(",")
    if _HYPHENS.fullmatch(body):
        return body.split("-")  # not "1 -2 -3": signs
    return body.split()
