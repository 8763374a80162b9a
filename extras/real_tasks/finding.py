"""Places in a text at which a task can ask what comes next, and checks that nothing tells it.

A place has what stands before it, and the words that really follow. Places of one class have
options of the same form: numbers with as many digits, names of as many words, ends of lines of code
after the same sign, first sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_CHARS = 20_000  # of a text that are read
_LEAST_BEFORE = 120  # characters before a fact
_MOST_BEFORE = 800
_LEAD_CHARS = range(40, 301)
_LONG = 50  # characters of a sentence that tells a copy
_PART = 4  # characters of a word of a name that tells the name
_SHARED = 0.5  # of the words or groups of words that two texts share, at most

_NUMBER = re.compile(r"(?<= )\d[\d.,]*\d(?![\w%])")
_NUMBERS = re.compile(r"\d(?:[\d.,'’\u00a0\u202f]*\d)?")
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


def tells_answer(place: TextGap) -> bool:
    """Return True if what stands before a place has the answer, or most of a long answer.

    A part of a name, such as a surname, tells it, and so does a number that is written otherwise.
    """
    shown = words_between(place.before)
    answer = list_words(place.answer)
    if not answer or f" {' '.join(answer)} " in shown:
        return True
    if place.kind.startswith("name"):
        return any(f" {word} " in shown for word in answer if len(word) >= _PART)
    if place.kind.startswith("number"):
        return digits_of(place.answer) in map(digits_of, _NUMBERS.findall(place.before))
    groups = [f" {' '.join(answer[start : start + 3])} " for start in range(len(answer) - 2)]
    return len(groups) > 2 and sum(each in shown for each in groups) > _SHARED * len(groups)


def digits_of(text: str) -> str:
    """Return the digits of a text, without the signs that divide them."""
    return "".join(filter(str.isdigit, text))


def is_other(option: str, other: str) -> bool:
    """Return True if no option contains the other's words or has most of them."""
    first = words_between(option)
    second = words_between(other)
    if first in second or second in first:
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
