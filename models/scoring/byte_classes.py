"""Classes of bytes: a fixed partition of a text, for losses by kind of text.

``classify`` gives each byte of a text one class. The rules look at code points and their neighbours
alone, so they are the same for every language model. They know no words but the names of months.
All bytes of a code point have one class. The rules are in docs/metrics.md (Losses by class of
byte).

``ClassSums`` adds the losses of tokens to these classes. A token's loss is shared equally over the
bytes that the token covers. A token that covers no byte belongs to class ``no_text``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

CLASSES = (
    "space",
    "punctuation",
    "digits",
    "names",
    "words",
    "urls",
    "identifiers",
    "other_script",
    "no_text",
)
SPACE, PUNCTUATION, DIGITS, NAMES, WORDS, URLS, IDENTIFIERS, OTHER_SCRIPT, NO_TEXT = range(9)

Classes = npt.NDArray[np.uint8]
_Losses = npt.NDArray[np.float64]
_Truths = npt.NDArray[np.bool_]
_Places = npt.NDArray[np.int64]
_BMP = 0x10000  # number of code points up to U+FFFF

# Kinds of code points, as bits. One code point has exactly one of them.
_LOWER = 1  # a letter of the Latin script that is no capital, or an accent
_UPPER = 2  # a capital letter of the Latin script
_DIGIT = 4
_LINE = 8  # the low line "_"
_OTHER = 16  # a letter of another script
_BLANK = 32
_MARK = 64  # anything else
_IN_RUN = _LOWER | _UPPER | _DIGIT | _LINE
_LETTER = _LOWER | _UPPER

# Uses of single code points, as bits.
_STOP = 1  # ends a sentence, before a blank
_JOINT = 2  # belongs to a number, between two digits
_LIMIT = 4  # ends an address
_NEWLINE = 8
_BRACKET = 16
_DOT = 32
_SLASH = 64
_PRONOUN = 128  # if alone, a word that is a capital everywhere
_USES = {
    _STOP: ".!?\u2026",
    _JOINT: ".,:/-\u2013",
    _LIMIT: "()[]<>{}\"'`|,;\u2018\u2019\u201c\u201d\u00ab\u00bb",
    _NEWLINE: "\n",
    _BRACKET: "(",
    _DOT: ".",
    _SLASH: "/",
    _PRONOUN: "I",
}

_MAX_ENDING = 2  # letters of a number with a unit or an ending, such as 10km and 2nd
_MAX_INITIAL = 2  # letters of an abbreviated name, such as J. and Dr.
_MONTHS = frozenset(
    [
        "January", "February", "March", "April", "May", "June", "July", "August", "September",
        "October", "November", "December", "Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug", "Sep",
        "Sept", "Oct", "Nov", "Dec",
    ]
)  # fmt: skip
_BETWEEN = "\n\n"  # ends a paragraph, and so every rule that looks at neighbours
_GROUP = 2**17  # characters of texts that are classified together


def classify(text: str) -> Classes:
    """Return the class of each byte of the UTF-8 of a text, an index of CLASSES, uint8 (bytes,)."""
    if text.isascii():
        raw = text.encode()
        kinds = np.frombuffer(raw.translate(_tables().kinds_of_ascii), dtype=np.uint8)
        uses = np.frombuffer(raw.translate(_tables().uses_of_ascii), dtype=np.uint8)
        return _Text(text, kinds, uses).classes()
    points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    # The tables end at U+FFFF; the few code points beyond are looked up one by one.
    low_points = np.minimum(points, _BMP - 1)
    kinds = _tables().kinds[low_points]
    beyond = np.flatnonzero(points >= _BMP)
    kinds[beyond] = [_kind(chr(point)) for point in points[beyond]]
    return np.repeat(_Text(text, kinds, _tables().uses[low_points]).classes(), sizes)


def classify_all(texts: Sequence[str]) -> list[Classes]:
    """Return ``classify`` of each text; many short texts take less time together."""
    found: list[Classes] = []
    group: list[str] = []
    size = 0
    for text in texts:
        group.append(text)
        size += len(text)
        if size >= _GROUP:
            found += _classify_group(group)
            group = []
            size = 0
    return found + _classify_group(group)


def _classify_group(texts: Sequence[str]) -> list[Classes]:
    """Classify texts that are joined by ``_BETWEEN``; return the classes of each."""
    classes = classify(_BETWEEN.join(texts))
    found = []
    begin = 0
    for text in texts:
        end = begin + len(text if text.isascii() else text.encode())
        found.append(classes[begin:end])
        begin = end + len(_BETWEEN)
    return found


class ClassSums:
    """Sums of losses and numbers of bytes by class, over the chunks of a cell.

    ``nats`` is float64 and ``num_bytes`` int64, (classes,), in the order of CLASSES.
    """

    def __init__(self) -> None:
        self.nats = np.zeros(len(CLASSES))
        self.num_bytes = np.zeros(len(CLASSES), dtype=np.int64)

    def add(
        self, classes: Classes, ends: _Places, first: int, nats: _Losses, covered: tuple[int, int]
    ) -> None:
        """Add one chunk of a text, in which all losses are finite.

        Args:
            classes: class of each byte of the text, (bytes,).
            ends: number of bytes that the first i tokens of the text cover, (tokens + 1,).
            first: index of the first scored token.
            nats: losses of the scored tokens, (scored,).
            covered: first token whose text counts, and the token after the last one.
        """
        bounds = ends[first : first + len(nats) + 1]
        sizes = np.diff(bounds)
        shares = nats / np.maximum(sizes, 1)
        weights = np.repeat(shares, sizes)
        own = classes[bounds[0] : bounds[-1]]
        self.nats += np.bincount(own, weights, len(CLASSES))
        self.nats[NO_TEXT] += nats[sizes == 0].sum()
        text = classes[ends[covered[0]] : ends[covered[1]]]
        self.num_bytes += np.bincount(text, minlength=len(CLASSES))


class _Text:
    """A text as arrays over its code points; all indices are of code points.

    A run is a series of Latin letters, digits and low lines. Run i is [begins[i], ends[i]).
    """

    def __init__(self, text: str, kinds: Classes, uses: Classes) -> None:
        self._text = text
        self._kinds = kinds
        self._used = np.flatnonzero(uses != 0)
        self._uses = uses[self._used]
        in_run = (kinds & _IN_RUN) != 0
        self._edges = np.flatnonzero(np.diff(in_run, prepend=False, append=False))
        self._begins = self._edges[::2]
        self._ends = self._edges[1::2]
        self._lengths = self._ends - self._begins
        self._has_letter = np.zeros(0, dtype=bool)  # by run
        self._is_broken = np.zeros(0, dtype=bool)  # by run

    def classes(self) -> Classes:
        """Return the class of each code point."""
        classes = _LONE[self._kinds]
        if len(self._begins):
            of_runs = self._classify_runs(np.bitwise_or.reduceat(self._kinds, self._begins))
            # Runs and the text between them, which begins and ends the text, take turns.
            turns = np.zeros(2 * len(of_runs) + 1, dtype=np.uint8)
            turns[1::2] = of_runs
            sizes = np.diff(self._edges, prepend=0, append=len(self._kinds))
            classes += np.repeat(turns, sizes)
            self._join_dots(classes, of_runs)
            self._join_numbers(classes)
        self._mark_addresses(classes)
        return classes

    def _classify_runs(self, bits: Classes) -> Classes:
        """Return the class of each run; ``bits`` are the kinds of its code points and of others."""
        has_letter = (bits & _LETTER) != 0
        has_digit = (bits & _DIGIT) != 0
        has_line = (bits & _LINE) != 0
        first = self._kinds[self._begins]
        self._has_letter = has_letter
        self._is_broken = self._breaks()
        found = np.full(len(first), WORDS, dtype=np.uint8)
        is_capital = first == _UPPER
        found[is_capital & ~self._begin_sentences(is_capital) & ~self._are_pronouns()] = NAMES
        found[(first == _LOWER) & self._are_code()] = IDENTIFIERS
        found[(has_letter & has_digit) | has_line] = IDENTIFIERS
        found[has_line & ~has_letter & ~has_digit] = PUNCTUATION
        found[(first == _DIGIT) & ~has_letter & ~has_line] = DIGITS
        mixed = np.flatnonzero((first == _DIGIT) & has_letter & ~has_line)
        found[mixed[self._count_letters(mixed) <= _MAX_ENDING]] = DIGITS
        found[self._find_months(is_capital, found == DIGITS)] = DIGITS
        return found

    def _places(self, use: int) -> _Places:
        """Return the places of code points with a use."""
        places: _Places = self._used[(self._uses & use) != 0]
        return places

    def _before(self, places: _Places) -> _Places:
        """Return the index of the last run that begins at or before each place; -1: none."""
        return np.searchsorted(self._begins, places, "right") - 1

    def _follows(self, places: _Places, mask: int) -> _Truths:
        """Return True for each place before a code point of one of the kinds of ``mask``."""
        following = self._kinds[np.minimum(places + 1, len(self._kinds) - 1)]
        follows: _Truths = ((following & mask) != 0) & (places + 1 < len(self._kinds))
        return follows

    def _breaks(self) -> _Truths:
        """Return True for runs with the end of a paragraph or a marked line in front."""
        places = self._places(_NEWLINE)
        is_double = np.zeros(len(places), dtype=bool)
        is_double[:-1] = np.diff(places) == 1
        places = places[is_double | self._follows(places, _MARK)]
        is_broken = np.zeros(len(self._begins) + 1, dtype=bool)
        is_broken[self._before(places) + 1] = True
        is_broken[0] = True
        return is_broken[:-1]

    def _begin_sentences(self, is_capital: _Truths) -> _Truths:
        """Return True for runs at the beginning of a sentence, a paragraph or an item of a list."""
        is_first = self._is_broken.copy()
        stops = self._places(_STOP)
        # A quotation mark or a bracket may stand between a stop and the blank.
        closed = stops + self._follows(stops, _MARK)
        stops = stops[self._follows(closed, _BLANK)]
        runs = self._before(stops)
        # A short capitalised run before a dot is an initial or an abbreviation: "J. Smith".
        is_dot = np.isin(stops, self._places(_DOT), assume_unique=True)
        is_initial = is_dot & is_capital[runs] & (self._lengths[runs] <= _MAX_INITIAL)
        runs = runs[~is_initial & (runs + 1 < len(is_first))]
        is_first[runs + 1] = True
        return is_first

    def _are_pronouns(self) -> _Truths:
        """Return True for the English pronoun I, which is a capital everywhere."""
        is_pronoun = np.zeros(len(self._begins), dtype=bool)
        runs = self._before(self._places(_PRONOUN))
        is_pronoun[runs[self._lengths[runs] == 1]] = True
        return is_pronoun

    def _are_code(self) -> _Truths:
        """Return True for runs with a capital after a small letter, or a bracket right after."""
        is_code = np.zeros(len(self._begins), dtype=bool)
        kinds = self._kinds
        inner = 1 + np.flatnonzero((kinds[1:] == _UPPER) & (kinds[:-1] == _LOWER))
        is_code[self._before(inner)] = True
        brackets = self._places(_BRACKET)
        runs = self._before(brackets)
        is_code[runs[(runs >= 0) & (self._ends[runs] == brackets)]] = True
        return is_code

    def _count_letters(self, runs: _Places) -> _Places:
        """Return the number of letters in some runs."""
        if not len(runs):
            return runs
        lengths = self._lengths[runs]
        starts = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(self._begins[runs] - starts, lengths)
        is_letter = (self._kinds[places] & _LETTER) != 0
        return np.add.reduceat(is_letter, starts, dtype=np.int64)

    def _find_months(self, is_capital: _Truths, is_number: _Truths) -> list[int]:
        """Return the runs that are names of months beside a number of the same paragraph."""
        is_near = ~self._is_broken[1:]
        beside = np.zeros(len(is_number), dtype=bool)
        beside[1:] = is_near & is_number[:-1]
        beside[:-1] |= is_near & is_number[1:]
        return [
            place
            for place in np.flatnonzero(beside & is_capital).tolist()
            if self._text[self._begins[place] : self._ends[place]] in _MONTHS
        ]

    def _join_dots(self, classes: Classes, of_runs: Classes) -> None:
        """Make identifiers of words that a dot joins, such as ``os.path``, if longer than one."""
        dots = self._places(_DOT)
        dots = dots[self._follows(dots, _IN_RUN)]
        left = self._before(dots)
        is_joined = (left >= 0) & (self._ends[left] == dots)
        is_word = ((of_runs == WORDS) | (of_runs == NAMES)) & (self._lengths > 1)
        is_word |= of_runs == IDENTIFIERS
        left = left[is_joined]
        for run in left[is_word[left] & is_word[left + 1]]:
            classes[self._begins[run] : self._ends[run + 1]] = IDENTIFIERS

    def _join_numbers(self, classes: Classes) -> None:
        """Give marks between two digits of numbers, as in 3.14 and 2024-03-01, their class."""
        places = self._places(_JOINT)
        places = places[self._follows(places, _DIGIT) & (places > 0)]
        is_joined = self._kinds[places - 1] == _DIGIT
        is_joined &= (classes[places - 1] == DIGITS) & (classes[places + 1] == DIGITS)
        classes[places[is_joined]] = DIGITS

    def _mark_addresses(self, classes: Classes) -> None:
        """Give addresses of the web and paths of files their class."""
        # An address is a field between blanks, brackets, quotation marks, commas and semicolons. It
        # has a letter, and two slashes, or a slash and a dot within. Marks at its end are left out.
        slashes = self._places(_SLASH)
        if not len(slashes):
            return
        is_limit = self._kinds == _BLANK
        is_limit[self._places(_LIMIT)] = True
        inner = np.flatnonzero(is_limit)
        limits = np.concatenate([[-1], inner, [len(self._kinds)]])
        fields, counts = np.unique(np.searchsorted(limits, slashes), return_counts=True)
        begins = limits[fields - 1] + 1
        ends = limits[fields]
        dots = self._places(_DOT)
        dots = dots[self._follows(dots, _IN_RUN) & (dots > 0)]
        dots = dots[(self._kinds[dots - 1] & _IN_RUN) != 0]
        has_letter = _between(self._begins[self._has_letter], begins, ends)
        has_letter |= _between(np.flatnonzero(self._kinds == _OTHER), begins, ends)
        is_address = has_letter & ((counts > 1) | _between(dots, begins, ends))
        for begin, end in zip(begins[is_address], ends[is_address], strict=True):
            last = end - 1
            while self._kinds[last] == _MARK and self._text[last] != "/":
                last -= 1
            classes[begin : last + 1] = URLS


def _between(places: _Places, begins: _Places, ends: _Places) -> _Truths:
    """Return True for each range that holds one of the sorted places."""
    return np.searchsorted(places, begins) < np.searchsorted(places, ends)


class _Tables(NamedTuple):
    """Kinds and uses by code point up to U+FFFF; for ASCII, also in the form of bytes.translate."""

    kinds: Classes
    uses: Classes
    kinds_of_ascii: bytes
    uses_of_ascii: bytes


@cache
def _tables() -> _Tables:
    """Return the kinds and uses of all code points up to U+FFFF; made once."""
    kinds = np.array([_kind(chr(point)) for point in range(_BMP)], dtype=np.uint8)
    uses = np.zeros(_BMP, dtype=np.uint8)
    for use, characters in _USES.items():
        uses[list(map(ord, characters))] |= use
    ascii_size = 256  # ``bytes.translate`` takes a table for all bytes
    return _Tables(kinds, uses, kinds[:ascii_size].tobytes(), uses[:ascii_size].tobytes())


def _kind(character: str) -> int:
    """Return the kind of a character, one of the bits from _LOWER to _MARK."""
    if character == "_":
        return _LINE
    if character.isspace() or character == "\ufeff":
        return _BLANK
    category = unicodedata.category(character)
    if category == "Nd":
        return _DIGIT
    if category[0] not in "LM":
        return _MARK
    is_accent = category[0] == "M" and character < "\u0370"
    if is_accent or character in "\u00aa\u00ba":
        return _LOWER
    if not unicodedata.name(character, "").startswith("LATIN "):
        return _OTHER
    return _UPPER if category in ("Lu", "Lt") else _LOWER


# The class of code points outside runs, by kind. Others have 0, to which the runs' are added.
_LONE = np.zeros(128, dtype=np.uint8)
_LONE[_MARK] = PUNCTUATION
_LONE[_BLANK] = SPACE
_LONE[_OTHER] = OTHER_SCRIPT
