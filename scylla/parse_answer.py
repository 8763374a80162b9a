r"""Reading the answer off what a model wrote.

An answer counts where it is stated as one: after "the answer is", "Answer:", "final answer" and the
like, or in ``\boxed{}``. The last such statement decides; one that states no number and no list
("the answer is not obvious") is passed over, but one that states something else than an answer
("7.9", "7 or 8", "[1, 2" without an end) is no answer, and none before it is taken for it.

``strict`` stops there. The lenient reading goes on where nothing is stated at all: the last number
of the text, or its last list.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator

from scylla.number_text import NUMBER, read_integer, read_integers
from scylla.plain_text import plain_text
from scylla.puzzle import Answer, AnswerShape

# None: nothing is stated; False: something is that is no answer.
_Reading = Answer | bool | None
_REFUSED = False

_MARK = re.compile(
    r"\bboxed\s?\{"
    r"|\bfinal\s+answer\s+(?=[-+\d\[({<])"
    r"|\b(?:an(?:s|swers?)"
    r"|final\s(?:result|solution|output|value|list|tour|path|sequence|numbers?))\b"
    r"(?:[ ]?(?:(?=\n)|=|->)|(?P<between>[^.\n:=<>\[\]\d]{0,60}?)"
    r"(?:(?<!\w)(?:is|are|was|were|be|equals|becomes)\b|:))",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|cannot|never|wrong|incorrect)\b|n't\b", re.IGNORECASE)
_WORDS = (
    "therefore|thus|hence|then|so|simply|just|now|indeed|clearly|obviously|exactly|namely|that|it"
    "|here|the|a|an|my|our|is|are|as|follows|equals?|to|be|given|by|of|for|these|those|this|they"
    "|numbers?|integers?|values?|elements?|entry|entries|list|array|pair|triplet|triple|quadruple"
    "|quadruplet|set|subset|tuple|sequence|subsequence|subarray|tour|path|route|cycle|run|block"
    "|result|answer|solution|output|final|correct|following|one|two|three|four|only|unique|possible"
    "|valid|optimal|shortest|longest|common|increasing|consecutive|contiguous|ascending|order|in"
    "|sorted|minimum|maximum|smallest|largest|mode|most|frequent|number's|k-?th|json|python"
)
_SPELT = (  # out in words; the digits follow in parentheses: "twenty-one (21)"
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven"
    "|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|and"
)
# Said as the prompt asks, or at the beginning of a line: such a statement is not taken back by a
# later one of another form ("The answer is valid because 1 + 2 = 3."), nor by another answer that
# is right as well ("Another valid answer is [4, 5].").
_EXPLICIT = re.compile(
    r"\banswer is$|^\s*(?:the |my )?(?:final |correct )?answer(?: ?[:=]|\s+)$", re.IGNORECASE
)
_ANOTHER = re.compile(
    r"\b(?:another|alternative(?:ly)?|other|second)\b[^.\n]{0,20}$", re.IGNORECASE
)
_LINE_BEGINNING = 40  # characters before a marker, at most
_BARE = re.compile(r"[\s:=]*+(?:[-+]?\d|[\[({<])")
_TWO_NUMBERS = re.compile(r"[\s:=]*+[-+]?\d++(?:\s?,\s?|\s|\s?->\s?)[-+]?\d")
_FILLER = re.compile(
    rf"(?:\n[ ]*[-•][ ]+|\s+|[:=,]|->|(?:{_SPELT})(?:[ -](?:{_SPELT}))*+[ ]?(?=\()"
    rf"|(?:{_WORDS})(?![\w'-])|\d+[snrt][tdh]\b"
    r"|[a-zA-Z]{1,3}(?:_\{?\w\}?)?\s?=)*+",
    re.IGNORECASE,
)
_OPEN = {"[": "]", "(": ")", "{": "}", "<": ">"}
_BRACKET = re.compile(r"[\[\](){}<]|(?<!-)>")
_MOST_NESTED = 4
# Behind a number: it goes on as a sum or a product; it is one of several; it is part of a word.
_SUM = re.compile(r"\s?(?:[*/^×·÷]|\\(?:times|cdot|div|pm)|[-+]\s?[\d(])")
_MORE = re.compile(
    r"[\w%]|-[a-zA-Z]|\s?\\?%|(?:,|;|[ ]?(?:and|or|to|&|->)[ ])[ ]?[-+(\[]*\d"
    r"|[ ]?->[ ]?\d|[ ]+[-+]?\d|,?[ ]?\.\.\.|\s(?:hundred|thousand|million|billion|dozen)",
    re.IGNORECASE,
)
_OTHER_LIST = re.compile(r"\s?(?:,|;|,?\s?(?:or|and|&|\+))\s?[\[({]")
_NEXT_LIST = re.compile(r"\s?(?:=|->)\s?(?=[\[({<])")
_PLAIN_NUMBER = re.compile(r"[-+]?\d++(?:\.\d++)?", re.ASCII)
_SEPARATOR = re.compile(r"[ ]?(?:,[ ]?(?:and[ ])?|;|and[ ]|&|->|-(?=\d)|-[ ]|[ ])[ ]?(?=[-+]?\d)")
_NEXT_LINE = re.compile(r"[.)]?\s{1,3}(?:[-•][ ])?\d")  # a list of one number a line
_JOINED = re.compile(r"\}\s{0,3}(?:,\s?and|,|and|or)\s{0,3}boxed\s?\{")

_ANY_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)\]}])[-+])?"
    r"(?:[1-9]\d{0,2}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?(?!\w)",
    re.ASCII,
)
_ANY_GROUP = re.compile(r"[\[({]([^\[\](){}]*)[\])}]")
_ANY_RUN = re.compile(r"(?<![\w.,])[-+]?\d++(?: ?, ?[-+]?\d++)++", re.ASCII)


def parse_answer(text: str, shape: AnswerShape, strict: bool) -> Answer | None:
    """Return the numbers of the answer that a text gives, or None where it gives none.

    Args:
        text: as the model wrote it; of any length, read in linear time.
        shape: a number (one is returned) or a list.
        strict: only what is stated as the answer counts.
    """
    plain = _JOINED.sub(", ", plain_text(text))
    read = _read_number if shape == "number" else _read_list
    statements = list(_statements(plain))
    explicit = [each for each, is_explicit in statements if is_explicit and _begins(each, shape)]
    for statement in [*explicit, *(each for each, _ in statements)]:
        reading = read(statement)
        if reading is _REFUSED:
            return None
        if isinstance(reading, tuple):
            return reading
    if strict:
        return None
    return _last_number(plain) if shape == "number" else _last_list(plain)


def _statements(plain: str) -> Iterator[tuple[str, bool]]:
    """Yield what follows each marker, up to the next one, and if it is explicit; the last first."""
    end = len(plain)
    for mark in reversed(list(_MARK.finditer(plain))):
        statement = plain[mark.end() : end]
        end = mark.start()
        if plain[mark.end() - 1] == "{":
            # As a bracket it ends where the box does.
            yield "{" + statement, True
        elif not _DENIAL.search(mark["between"] or ""):
            before = plain[max(0, end - _LINE_BEGINNING) : end].rpartition("\n")
            begins = before[1] or end <= _LINE_BEGINNING
            line = f"{'' if begins else '…'}{before[2]}{mark[0]}"
            is_explicit = _EXPLICIT.search(line) and not _ANOTHER.search(before[2])
            yield statement, bool(is_explicit)


def _begins(statement: str, shape: AnswerShape) -> bool:
    """Whether an answer of that shape begins right behind the marker, without a word between."""
    begun = _BARE.match(statement)
    if begun is None:
        return False
    return shape == "number" or begun[0][-1] in _OPEN or _TWO_NUMBERS.match(statement) is not None


def _read_number(statement: str) -> _Reading:
    start = _FILLER.match(statement).end()  # type: ignore[union-attr] # matches nothing, too
    if statement[start : start + 1] in _OPEN:
        return _single(statement, start)
    number = NUMBER.match(statement, start)
    if number is None:
        return _behind_equals(statement, start, _read_number)
    if _SUM.match(statement, number.end()):
        reading = _behind_equals(statement, number.end(), _read_number)
        return _REFUSED if reading is None else reading
    value = read_integer(number[0])
    if value is None or _MORE.match(statement, number.end()):
        return _REFUSED
    return (value,)


def _single(statement: str, start: int) -> _Reading:
    """Return the number in brackets: alone, or stated there with other words."""
    group = _group(statement, start)
    if group is None:
        return _REFUSED if re.search(r"\d", statement[start:]) else None
    body, end = group
    numbers = read_integers(body)
    if numbers is None:
        return _within(statement[start], body, _read_number)
    if len(numbers) != 1 or _OTHER_LIST.match(statement, end):
        return _REFUSED
    return numbers


def _read_list(statement: str) -> _Reading:
    start = _FILLER.match(statement).end()  # type: ignore[union-attr] # matches nothing, too
    if statement[start : start + 1] in _OPEN:
        return _bracketed(statement, start)
    number = NUMBER.match(statement, start)
    if number is None:
        return _behind_equals(statement, start, _read_list)
    end = start
    while match := _PLAIN_NUMBER.match(statement, end):
        end = match.end()
        separator = _SEPARATOR.match(statement, end)
        if separator is None:
            break
        end = separator.end()
    if _SUM.match(statement, end) or _MORE.match(statement, end):
        return _REFUSED
    numbers = read_integers(statement[start:end])
    is_column = end == number.end() and _NEXT_LINE.match(statement, end)
    return _REFUSED if numbers is None or is_column else numbers


def _bracketed(statement: str, start: int) -> _Reading:
    """Return the list in brackets; the last of several that an arrow or an equals sign joins."""
    while True:
        group = _group(statement, start)
        if group is None:
            return _REFUSED if re.search(r"\d", statement[start:]) else None
        body, end = group
        following = _NEXT_LIST.match(statement, end)
        if following is None:
            break
        start = following.end()
    numbers = read_integers(body)
    if numbers is None:
        is_begun = NUMBER.match(body.lstrip()) is not None  # "[1, x]"
        return _REFUSED if is_begun else _within(statement[start], body, _read_list)
    return _REFUSED if _OTHER_LIST.match(statement, end) else numbers


def _within(bracket: str, body: str, read: Callable[[str], _Reading]) -> _Reading:
    """Return what a sentence in a box states; a remark in parentheses has no number."""
    if not re.search(r"\d", body):
        return None
    return _REFUSED if bracket == "[" else read(body)


def _group(statement: str, start: int) -> tuple[str, int] | None:
    """Return what stands between a bracket and its partner, and where that ends.

    Brackets that hold nothing but another pair are taken off. None where the partner is missing.
    """
    partners: list[tuple[str, int]] = []
    deepest, ends = 0, {}
    for bracket in _BRACKET.finditer(statement, start):
        if bracket[0] in _OPEN:
            partners.append((_OPEN[bracket[0]], bracket.start()))
            deepest = max(deepest, len(partners))
        elif not partners or partners[-1][0] != bracket[0]:
            return None
        else:
            ends[partners.pop()[1]] = bracket.start()
        if not partners:
            break
    if start not in ends or deepest > _MOST_NESTED:
        return None
    end = ends[start]
    body, first = statement[start + 1 : end], start + 1
    while body.strip()[:1] in _OPEN and body.strip():
        first += len(body) - len(body.lstrip())
        if ends.get(first) != first + len(body.strip()) - 1:
            break
        body, first = body.strip()[1:-1], first + 1
    return body, end + 1


def _behind_equals(statement: str, start: int, read: Callable[[str], _Reading]) -> _Reading:
    """Return what stands behind the last equals sign of the line: "3 + 4 = 7"."""
    line = statement[start:].lstrip().partition("\n")[0]
    _, equals, after = line.rpartition("=")
    return read(after) if equals else None


def _last_number(plain: str) -> Answer | None:
    found = deque(_ANY_NUMBER.finditer(plain), maxlen=1)
    value = read_integer(found[0][0]) if found else None
    return None if value is None else (value,)


def _last_list(plain: str) -> Answer | None:
    for group in reversed(list(_ANY_GROUP.finditer(plain))):
        numbers = read_integers(group[1])
        # One number in parentheses is a remark, or counts something.
        if numbers and (len(numbers) > 1 or group[0][0] == "["):
            return numbers
    found = deque(_ANY_RUN.finditer(plain), maxlen=1)
    return read_integers(found[0][0]) if found else None
