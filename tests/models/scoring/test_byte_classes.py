"""Each byte of a text has one class; losses are shared over bytes without a remainder."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from models.scoring import byte_classes
from models.scoring.byte_classes import CLASSES, NO_TEXT, ClassSums, classify, classify_all

# Texts with marked parts. Elsewhere, letters and digits are words, and marks punctuation.
_TEXTS = {
    "a sentence": "The mayor of {names|Paris} spoke.",
    "two sentences": "He left. She met {names|Ada}! Did {names|Bo}? “Yes.” It was.",
    "initials": "By {names|J}. {names|K}. {names|Rowling} and {names|Dr}. {names|Who}",
    "a pronoun": "So I came. I and {names|Io}",
    "dates": "On {digits|3} {digits|March} {digits|2024} or {digits|Jan} {digits|2}, {digits|9:30}",
    "a month alone": "In {names|March} again",
    "a month of another paragraph": "Of {digits|3}\n\nMarch on",
    "numbers": "{digits|3.14} {digits|1,000} {digits|10km} {digits|2nd} {digits|1980s}",
    "a day": "{digits|2024-03-01T12:30:05Z}, {digits|1/2/2024}",
    "a hash": "Commit {identifiers|3fa9c1}",
    "an address": "See {urls|https://a.org/b?x=1#y}. Now",
    "a link": "[it]({urls|https://a.org/x}), <{urls|http://b.org}>",
    "paths": "In {urls|/usr/share/doc} and {urls|src/main.py}, and/or",
    "an address in another script": "{urls|/файл/имя}",
    "code": "Def {identifiers|foo_bar}(x): {identifiers|__init__} ___",
    "calls": "Use {identifiers|print}() and {names|Use}()",
    "camels": "A {identifiers|camelCase} in {names|GitHub} of {identifiers|utf8}",
    "dots": "{identifiers|os.path.join}, e.g. this {names|U}.{names|S}. {names|Army}",
    "a list": "One of {names|Rome}\n- Item\n* Item\n\nTitle of {names|Rome}\n{names|Rome}",
    "Cyrillic": "{other_script|Привет}, {other_script|мир} of words",
    "Chinese": "The {other_script|漢字}。",
    "accents": "In {names|Ångström} café nai\u0308ve",
    "pictures": "Good 😀",
    "blanks": " \t\n\u00a0\u3000",
    "nothing": "",
    "one letter": "T",
    "one mark": "/",
    "two stops": "..",
}
_MARKED = re.compile(r"\{(\w+)\|([^}]*)\}")


def _expected(marked: str) -> tuple[str, list[str]]:
    """Return the text of a marked text, and the class of each of its code points."""
    text = ""
    classes: list[str] = []
    for place, part in enumerate(_MARKED.split(marked)):
        if place % 3 == 0:
            text += part
            classes += map(_usual, part)
        elif place % 3 == 1:
            kind = part
        else:
            text += part
            classes += [kind] * len(part)
    return text, classes


def _usual(character: str) -> str:
    if character.isspace():
        return "space"
    return "words" if character.isalnum() or character == "\u0308" else "punctuation"


@pytest.mark.parametrize("name", _TEXTS)
def test_classes(name: str) -> None:
    text, expected = _expected(_TEXTS[name])
    by_byte = [kind for kind, point in zip(expected, text, strict=True) for _ in point.encode()]
    assert [CLASSES[kind] for kind in classify(text)] == by_byte


def _own_pages() -> list[str]:
    folder = Path(__file__).parents[3] / "docs"
    return [page.read_text() for page in sorted(folder.glob("*.md"))]


def test_texts_together_have_the_classes_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [page[at : at + 900] for page in _own_pages()[:6] for at in range(0, len(page), 900)]
    texts = ["in 3", "March of", "", "end.", "Next", "\n", "(a", "é", "漢", " ", "Ab", *parts]
    for size in (1, 1000, 2**20):
        monkeypatch.setattr(byte_classes, "_GROUP", size)
        for text, classes in zip(texts, classify_all(texts), strict=True):
            assert classes.tolist() == classify(text).tolist(), f"{size}: {text!r}"


def test_any_text_has_a_class_for_each_byte() -> None:
    points = np.random.default_rng(3).integers(0, 0x3000, (300, 40))
    marks = list("./:_(I\n 3aZ-\u0301😀")
    for row in points:
        text = "".join(chr(point) if point > 0x1000 else marks[point % len(marks)] for point in row)
        classes = classify(text)
        assert len(classes) == len(text.encode())
        assert classes.max() < NO_TEXT


def test_losses_are_shared_over_the_bytes_of_a_token() -> None:
    text = "In Rome 12"
    ends = np.array([0, 2, 4, 7, 7, 10])  # "In", " R", "ome", nothing, " 12"
    sums = ClassSums()
    sums.add(classify(text), ends, 1, np.array([4.0, 6.0, 0.5, 9.0]), (0, 5))
    found = dict(zip(CLASSES, sums.nats.tolist(), strict=True))
    wanted = {"space": 2 + 3, "names": 2 + 6, "digits": 6, "no_text": 0.5}
    assert found == pytest.approx({name: wanted.get(name, 0) for name in CLASSES})
    sizes = dict(zip(CLASSES, sums.num_bytes.tolist(), strict=True))
    assert {name: size for name, size in sizes.items() if size} == {
        "words": 2, "space": 2, "names": 4, "digits": 2
    }  # fmt: skip


def test_sums_over_classes_are_the_sums_of_all_tokens() -> None:
    chance = np.random.default_rng(5)
    sums = ClassSums()
    total: list[float] = []
    num_bytes = 0
    for page in _own_pages()[:8]:
        size = len(page.encode())
        ends = np.concatenate([[0], np.sort(chance.integers(0, size, size // 4)), [size]])
        nats = chance.exponential(2, len(ends) - 1)
        half = len(nats) // 2
        for first, last in ((0, half), (half, len(nats))):
            sums.add(classify(page), ends, first, nats[first:last], (first, last))
        total += nats.tolist()
        num_bytes += size
    assert sums.nats.sum() == pytest.approx(math.fsum(total), rel=1e-12)
    assert sums.num_bytes.sum() == num_bytes
