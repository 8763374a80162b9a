r"""Parsing of answers in models' texts, after removal of reasoning, LaTeX and Markdown.

An answer counts if it follows a marker such as "the answer is", "Answer:" or "final answer", or is
in ``\boxed{}``. The last marker decides. A statement without a number or a list ("the answer is
not obvious") is skipped. A malformed statement ("7.9", "7 or 8", "[1, 2" without an end) is no
answer, and no earlier statement replaces it.

If no marker states an answer, a text that is nothing but a number or a list is the answer. Of other
texts, strict parsing returns None. Lenient parsing returns the last number or list of the text.
An answer before a further question, which the model asks itself, decides.

Number words up to ninety-nine are read if they are the whole statement ("The answer is seven."). A
list may have one number per bullet ("- 1", "* 1", "• 1").

An integer may have a sign, separators of thousands ("1,234", "1 234", "1'234", "1_234") and a
fraction of zeros ("7.0"). A number with more than MOST_DIGITS digits is ignored, never truncated.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from core.responses import before_next_question
from extras.scylla.markup import plain_text
from extras.scylla.puzzle import Answer, AnswerShape

# None means that no answer is stated, False that the stated answer is not valid.
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
_SPELT = (  # number words before digits in parentheses: "twenty-one (21)"
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven"
    "|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|and"
)
# Explicit markers: the form requested in the prompt, or a marker at the beginning of a line. Later
# markers of another form ("The answer is valid because 1 + 2 = 3.") do not override an explicit
# marker. Neither does an alternative ("Another valid answer is [4, 5].").
_EXPLICIT = re.compile(
    r"\banswer is$|^\s*(?:the |my )?(?:final |correct )?answer(?: ?[:=]|\s+)$", re.IGNORECASE
)
_ANOTHER = re.compile(
    r"\b(?:another|alternative(?:ly)?|other|second)\b[^.\n]{0,20}$", re.IGNORECASE
)
_LINE_BEGINNING = 40  # maximum number of characters examined before a marker
_BARE = re.compile(r"[\s:=]*+(?:[-+]?\d|[\[({<])")
_TWO_NUMBERS = re.compile(r"[\s:=]*+[-+]?\d++(?:\s?,\s?|\s|\s?->\s?)[-+]?\d")
_FILLER = re.compile(
    rf"(?:\n[ ]*[-•][ ]+|\s|[:=,]|->|(?:{_SPELT})(?:[ -](?:{_SPELT}))*+[ ]?(?=\()"
    rf"|(?:{_WORDS})(?![\w'-])|\d+[snrt][tdh]\b"
    r"|[a-zA-Z]{1,3}(?:_\{?\w\}?)?\s?=)*+",
    re.IGNORECASE,
)
_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SPELT_NUMBER = re.compile(
    rf"[\s:=]*+(?:(?P<tens>{'|'.join(_TENS)})(?:[ -](?=\w)|(?!\w)))?"
    rf"(?:(?P<units>{'|'.join(_UNITS[::-1])})(?!\w))?(?<=\w)(?:[.!]?\s*\Z|[.!]\s|\n)",
    re.IGNORECASE,
)
_BULLETS = re.compile(
    r"[ :]*\n+(?:[ ]*[-•][ ]+[-+]?\d[\d,]*+[.,;]?[ ]*(?:\n+|\Z))++(?![ ]*(?:[-•]|[-+]?\d))"
)
_BULLET = re.compile(r"[-•][ ]+([-+]?\d[\d,]*+(?<!,))")
_OPEN = {"[": "]", "(": ")", "{": "}", "<": ">"}
_BRACKET = re.compile(r"[\[\](){}<]|(?<!-)>")
_MOST_NESTED = 4
# Text after a number: the rest of a sum or product (_SUM); more numbers, or part of a word (_MORE).
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
_NEXT_LINE = re.compile(r"[.)]?\s{1,3}(?:[-•][ ])?\d")  # a list with one number per line
_JOINED = re.compile(r"\}\s{0,3}(?:,\s?and|,|and|or)\s{0,3}boxed\s?\{")

_ANY_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)\]}])[-+])?"
    r"(?:[1-9]\d{0,2}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?(?!\w)",
    re.ASCII,
)
_ANY_GROUP = re.compile(r"[\[({]([^\[\](){}]*)[\])}]")
_ANY_RUN = re.compile(r"(?<![\w.,])[-+]?\d++(?: ?, ?[-+]?\d++)++", re.ASCII)


def parse_answer(text: str, shape: AnswerShape, strict: bool) -> Answer | None:
    """Return the numbers of a text's answer (one for shape "number"), or None, in linear time."""
    own = before_next_question(text)
    answer = None if own == text else parse_answer(own, shape, strict=True)
    if answer is not None:
        return answer
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
    whole = _whole(plain.strip(), shape)
    if strict or whole is not None:
        return whole
    return _last_number(plain) if shape == "number" else _last_list(plain)


def _whole(plain: str, shape: AnswerShape) -> Answer | None:
    """Return the answer that is the whole text, or None."""
    if shape == "number":
        value = read_integer(plain.removesuffix("."))
        return _in_words(plain) if value is None else (value,)
    bullets = _BULLETS.fullmatch(f"\n{plain}")
    if bullets:
        return _in_bullets(bullets[0])
    body = plain.removesuffix(".")
    if body and body[0] in _OPEN:
        group = _group(body, 0)
        return read_integers(group[0]) if group and group[1] == len(body) else None
    is_list = _ANY_RUN.fullmatch(body) or _INTEGER.fullmatch(body)
    return read_integers(body) if is_list else None


def _in_words(statement: str) -> Answer | None:
    """Return the number that is spelt out from the beginning to the end of a sentence, or None."""
    spelt = _SPELT_NUMBER.match(statement)
    if spelt is None:
        return None
    number = 0
    if spelt["tens"]:
        number += 20 + 10 * _TENS.index(spelt["tens"].lower())
    if spelt["units"]:
        number += _UNITS.index(spelt["units"].lower())
    return (number,)


def _in_bullets(lines: str) -> Answer | None:
    numbers = [read_integer(each) for each in _BULLET.findall(lines)]
    known = tuple(number for number in numbers if number is not None)
    return known if len(known) == len(numbers) else None


def _statements(plain: str) -> Iterator[tuple[str, bool]]:
    """Yield the text after each marker and whether the marker is explicit, last marker first."""
    end = len(plain)
    for mark in reversed(list(_MARK.finditer(plain))):
        statement = plain[mark.end() : end]
        end = mark.start()
        if plain[mark.end() - 1] == "{":
            # Keep the brace, so that the statement ends at the closing brace.
            yield "{" + statement, True
        elif not _DENIAL.search(mark["between"] or ""):
            before = plain[max(0, end - _LINE_BEGINNING) : end].rpartition("\n")
            begins = before[1] or end <= _LINE_BEGINNING
            line = f"{'' if begins else '…'}{before[2]}{mark[0]}"
            is_explicit = _EXPLICIT.search(line) and not _ANOTHER.search(before[2])
            yield statement, bool(is_explicit)


def _begins(statement: str, shape: AnswerShape) -> bool:
    begun = _BARE.match(statement)
    if begun is None:
        return False
    return shape == "number" or begun[0][-1] in _OPEN or _TWO_NUMBERS.match(statement) is not None


def _read_number(statement: str) -> _Reading:
    """Return the number that a statement gives; None if it gives none."""
    spelt = _in_words(statement)
    if spelt is not None:
        return spelt
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
    """Return the number in the brackets at ``start``; words around the number are allowed."""
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
    """Return the list that a statement gives, in brackets, bullets or a line."""
    start = _FILLER.match(statement).end()  # type: ignore[union-attr] # matches nothing, too
    bullets = _BULLETS.match(statement)
    if bullets:
        return _in_bullets(bullets[0])
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
    """Return the list in the brackets at ``start``, or the last list of "[…] -> […]"."""
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
    """Return the answer from a sentence in brackets, or None if the sentence has no digit."""
    if not re.search(r"\d", body):
        return None
    return _REFUSED if bracket == "[" else read(body)


def _group(statement: str, start: int) -> tuple[str, int] | None:
    """Return the text between a bracket and its closing bracket, and the end position.

    Redundant inner brackets are removed. The result is None if the closing bracket is missing.
    """
    partners: list[tuple[str, int]] = []
    deepest = 0
    ends = {}
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
    body = statement[start + 1 : end]
    first = start + 1
    while body.strip()[:1] in _OPEN and body.strip():
        first += len(body) - len(body.lstrip())
        if ends.get(first) != first + len(body.strip()) - 1:
            break
        body = body.strip()[1:-1]
        first = first + 1
    return body, end + 1


def _behind_equals(statement: str, start: int, read: Callable[[str], _Reading]) -> _Reading:
    """Return the answer after the line's last equals sign, as in "3 + 4 = 7"."""
    line = statement[start:].lstrip().partition("\n")[0]
    _, equals, after = line.rpartition("=")
    return read(after) if equals else None


def _last_number(plain: str) -> Answer | None:
    value = read_integer(_last(_ANY_NUMBER, plain))
    return None if value is None else (value,)


def _last_list(plain: str) -> Answer | None:
    """Return the last list of a response, in brackets or bare; None if there is none."""
    for group in reversed(list(_ANY_GROUP.finditer(plain))):
        numbers = read_integers(group[1])
        # One number in parentheses is a remark or a count, not a list.
        if numbers and (len(numbers) > 1 or group[0][0] == "["):
            return numbers
    return read_integers(_last(_ANY_RUN, plain)) or None


def _last(pattern: re.Pattern[str], plain: str) -> str:
    found = deque(pattern.finditer(plain), maxlen=1)
    return found[0][0] if found else ""


MOST_DIGITS = 18  # integers of 18 digits fit into 64 bits
# Numbers with separators: one to three digits, then groups of three with the same separator.
_GROUPS = r"[1-9]\d{0,2}(?:(?:,\d{3})++|(?: \d{3})++|(?:'\d{3})++|(?:_\d{3})++)(?![\d])"
NUMBER = re.compile(rf"[-+]?(?:{_GROUPS}|\d++)(?:\.\d++)?", re.ASCII)
_INTEGER = re.compile(rf"([-+]?(?:{_GROUPS}|\d++))(?:\.0*+)?", re.ASCII)
_NO_DIGIT = str.maketrans("", "", ", '_+")

_ARROWS = re.compile(r"->|;|\|")
_AND = re.compile(r",? and (?=[-+\d])")
_HYPHENS = re.compile(r"\d++(?:(?:-\d++){2,}+|(?: - \d++){2,}+)", re.ASCII)
_SPACED_COMMA = re.compile(r", | ,")
# If other commas have a space, a comma directly before three digits separates thousands.
_LIST_COMMA = re.compile(r" ?, | ,|,(?!\d{3}(?!\d))|(?<!\d),", re.ASCII)
_ZEROS = re.compile(r"[1-9],0\d\d(?!\d)", re.ASCII)  # such as "1,045": no list, because of the 0
_BARE_THOUSANDS = re.compile(r"(?<![\d,])\d{4,}", re.ASCII)


def read_integer(text: str) -> int | None:
    """Return the integer value of a text, or None."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    digits = match[1].translate(_NO_DIGIT)
    return int(digits) if len(digits.lstrip("-")) <= MOST_DIGITS else None


def read_integers(body: str) -> tuple[int, ...] | None:
    """Return the integers of a text between brackets, or None if it is not a list of integers.

    Separators are commas, semicolons, arrows, ``and``, hyphens (three or more numbers) or spaces.
    In a list with "1,045", or with spaces at the other commas, such commas separate thousands.
    """
    body = _AND.sub(", ", " ".join(body.split()))
    if not body:
        return ()
    parts = _split(body)
    if len(parts) > 1 and not parts[-1].strip():
        parts = parts[:-1]  # remove the empty part after a trailing comma
    numbers = [read_integer(part.strip()) for part in parts]
    known = tuple(number for number in numbers if number is not None)
    return known if len(known) == len(numbers) else None


def _split(body: str) -> Sequence[str]:
    """Split a list at its arrows, commas, hyphens or spaces; commas may be of thousands."""
    if _ARROWS.search(body):
        return _ARROWS.split(body)
    if "," in body:
        is_told_apart = _SPACED_COMMA.search(body) or _ZEROS.search(body)
        has_thousands = is_told_apart and not _BARE_THOUSANDS.search(body)
        return _LIST_COMMA.split(body) if has_thousands else body.split(",")
    if _HYPHENS.fullmatch(body):
        return body.split("-")  # in "1 -2 -3" the hyphens are signs
    return body.split()
