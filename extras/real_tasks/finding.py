"""Places in a text at which a task can ask what comes next, and checks that nothing tells it.

A place has what stands before it, and the words that really follow. Places of one class have
options of the same form: numbers with as many digits, names of as many words, ends of lines of code
after the same sign, first sentences.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from extras.real_tasks.spelling import plain_letters, spellings

MAX_CHARS = 20_000  # of a text that are read
_LEAST_BEFORE = 120  # characters before a fact
_MOST_BEFORE = 800
_LEAD_CHARS = range(40, 301)
_LONG = 50  # characters of a sentence that tells a copy
_PART = 4  # characters of a word of a name that tells the name, at least
_ENDING = 2  # characters at the end of a word that another form of it may lack
_SHARED = 0.5  # of the words or groups of words that two texts share, at most

_NUMBER = re.compile(r"(?<= )\d[\d.,]*\d(?![\w%])")
_NUMBERS = re.compile(r"\d(?:[\d.,'’\u00a0\u202f]*\d)?")
_THOUSANDS = re.compile(r"(\d[\d.,]*) ?(?:k|thousand|tausend|tsd|mille|тыс\w*)\b", re.IGNORECASE)
_NO_CENTS = re.compile(r"[.,]00?$")
_NAME = re.compile(r"(?<=[^\W\d_] )[A-ZÀ-ÞΑ-ΩА-Я][^\W\d_]{2,}(?: [A-ZÀ-ÞΑ-ΩА-Я][^\W\d_]{2,}){0,2}")
_SIGNS = r"return|import|=>|->|[-+*/|:]?="
_LINE_END = re.compile(
    rf"^[^\S\n]*(?P<begin>(?:\S[^\n]*?)?(?:{_SIGNS})) (?P<end>\S[^\n]{{4,58}}\S)$", re.MULTILINE
)
_SIGN = re.compile(r"\S+$")
_SENTENCE = re.compile(r"[^\n]+?[.!?。！？](?=\s|$)")
# Chinese, Japanese and Korean have no spaces between words, so each character is a word.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CAPITALS = re.compile(r"\b(?:[A-ZÀ-ÞΑ-ΩА-Я]\.?){2,}")
# A date in another form tells a month or a day of the week, and a date in numbers.
_DATE = re.compile(r"\d{1,2}[.]\d{1,2}[.](?:\d{4}|\d{2})")
_CALENDAR = {
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december", "monday", "tuesday", "wednesday", "thursday", "friday",
    "saturday", "sunday",
}  # fmt: skip


@dataclass(frozen=True)
class TextGap:
    """A place in a document at which a task may ask what comes next."""

    document_id: str
    kind: str  # options of one task are of one kind
    before: str
    answer: str


def list_words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(text.casefold())


def words_between(text: str) -> str:
    """Return the words of a text with a space around each, to search words in it."""
    return f" {' '.join(list_words(text))} "


def find_facts(document_id: str, text: str) -> Iterator[TextGap]:
    """Yield places before numbers and names of a text."""
    for pattern, name in ((_NUMBER, "number"), (_NAME, "name")):
        for found in pattern.finditer(text):
            before = _end_of(text[: found.start()])
            answer = found[0]
            size = sum(map(str.isdigit, answer)) if name == "number" else answer.count(" ") + 1
            if len(before) >= _LEAST_BEFORE:
                yield TextGap(document_id, f"{name} of {size}", before, answer)


def find_code(document_id: str, text: str) -> Iterator[TextGap]:
    """Yield places in lines of code, after an assignment, an arrow, ``return`` or ``import``."""
    for found in _LINE_END.finditer(text):
        before = _end_of(text[: found.end("begin")])
        sign = _SIGN.search(found["begin"])
        has_word = any(len(word) > 2 for word in list_words(found["end"]))
        if sign and has_word and "  " not in found["end"] and len(before) >= _LEAST_BEFORE:
            yield TextGap(document_id, f"code after {sign[0][-6:]}", before, found["end"])


def find_leads(document_id: str, text: str) -> Iterator[TextGap]:
    """Yield one place: after the text without its first sentence, which sums it up."""
    first = _SENTENCE.match(text.lstrip())
    if first is None or len(first[0]) not in _LEAD_CHARS:
        return
    rest = text.lstrip()[first.end() :].strip()[:_MOST_BEFORE]
    if len(rest) >= _LEAST_BEFORE:
        yield TextGap(document_id, "lead", f"{rest.rsplit(' ', 1)[0]}\n\nIn short:", first[0])


FINDERS: dict[str, Callable[[str, str], Iterator[TextGap]]] = {
    "cloze": find_facts,
    "code": find_code,
    "lead": find_leads,
}


def _end_of(text: str) -> str:
    """Return the last characters of a text, from the beginning of a word on."""
    text = text.rstrip()
    if len(text) <= _MOST_BEFORE:
        return text.lstrip()
    return re.sub(r"^\S*\s*", "", text[-_MOST_BEFORE:])


class Shown:
    """A text, in the forms in which answers are searched in it."""

    def __init__(self, text: str) -> None:
        # The text itself, then the text without entities and percent signs, as a browser shows it.
        shown = unquote(html.unescape(text))
        self.text = text if shown == text else f"{text}\n{shown}"

    @cached_property
    def words(self) -> str:
        """Its words with a space around each."""
        return words_between(self.text)

    @cached_property
    def code_words(self) -> str:
        """Its words, where a capital within a word begins another one."""
        return words_between(_CAMEL.sub(" ", self.text))

    @cached_property
    def letters(self) -> str:
        """Its words in plain letters."""
        return plain_letters(self.words)

    @cached_property
    def abbreviations(self) -> frozenset[str]:
        """Its words of capitals alone, without dots, in plain letters."""
        found = _CAPITALS.findall(self.text)
        return frozenset(plain_letters(each.replace(".", "")) for each in found)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Its numbers, without the signs that divide them."""
        return frozenset(digits_of(each) for each in _NUMBERS.findall(self.text))

    @cached_property
    def digit_groups(self) -> frozenset[str]:
        """Its groups of digits, such as those of a date, without zeros in front."""
        return frozenset(_digit_groups(self.text))

    def tells(self, kind: str, answer: str) -> bool:
        """Return True if the text has an answer, or most of a long one.

        Args:
            kind: kind of its place. A name is told by a part of it, such as a surname, by other
                forms of that part, and by its first letters; a number by other ways to write it.
            answer: the words that follow at the place.
        """
        words = list_words(answer)
        if not words or f" {' '.join(words)} " in self.words:
            return True
        if kind.startswith("name"):
            return self._tells_name(words)
        if kind.startswith("number"):
            return self._tells_number(answer)
        if kind.startswith("code") and words_between(_CAMEL.sub(" ", answer)) in self.code_words:
            return True
        groups = [f" {' '.join(words[start : start + 3])} " for start in range(len(words) - 2)]
        num_told = sum(each in self.words for each in groups)
        return len(groups) > 2 and num_told > _SHARED * len(groups)

    def _tells_name(self, words: list[str]) -> bool:
        first_letters = plain_letters("".join(each[0] for each in words))
        if len(words) > 1 and first_letters in self.abbreviations:
            return True
        return any(_stem(each) in self.letters for each in words if len(each) >= _PART)

    def _tells_number(self, answer: str) -> bool:
        """Return True if the text shows the number, in digits, groups, thousands or words."""
        digits = digits_of(answer)
        if digits in self.numbers or self.digit_groups.issuperset(_digit_groups(answer)):
            return True
        if digits.endswith("000"):  # 1.5 million
            return digits.rstrip("0") in {each.rstrip("0") for each in self.numbers}
        thousands = {digits_of(each).rstrip("0") for each in _THOUSANDS.findall(self.text)}
        if len(digits) > 3 and digits.rstrip("0") in thousands:
            return True
        words = self.words.replace(" and ", " ")
        return len(digits) <= 4 and any(f" {each} " in words for each in spellings(int(digits)))


def tells_answer(place: TextGap) -> bool:
    """Return True if what stands before a place has the answer, or most of a long answer."""
    is_month_or_day = place.kind == "name of 1" and place.answer.casefold() in _CALENDAR
    is_calendar = is_month_or_day or _DATE.fullmatch(place.answer) is not None
    return is_calendar or Shown(place.before).tells(place.kind, place.answer)


def _stem(word: str) -> str:
    """Return the letters that other forms of a word begin with, such as ``germa`` of Germany."""
    letters = plain_letters(word)
    return letters[: max(_PART, len(letters) - _ENDING)]


def _digit_groups(text: str) -> list[str]:
    return [each.lstrip("0") for each in re.findall(r"\d+", text)]


def digits_of(text: str) -> str:
    """Return the digits of a number, without the signs that divide them and ``.00`` at its end."""
    return "".join(filter(str.isdigit, _NO_CENTS.sub("", text)))


def is_other(kind: str, option: str, other: str) -> bool:
    """Return True if no option of a kind tells the other or has most of its words."""
    if Shown(option).tells(kind, other) or Shown(other).tells(kind, option):
        return False
    own = set(list_words(option))
    shared = own & set(list_words(other))
    longest = max(len(own), len(set(list_words(other))))
    return longest < 3 or len(shared) <= _SHARED * longest


def marks_of(text: str) -> frozenset[str]:
    """Return the words of each long sentence or line of a text, by which copies are told."""
    sentences = map(words_between, re.split(r"(?<=[.!?。！？])\s|\n", text))
    return frozenset(each for each in sentences if len(each) >= _LONG)


def are_copies(marks: frozenset[str], others: frozenset[str]) -> bool:
    """Return True if one of two texts has at least half of its long sentences from the other."""
    num_shared = len(marks & others)
    return num_shared > 0 and num_shared >= _SHARED * min(len(marks), len(others))
