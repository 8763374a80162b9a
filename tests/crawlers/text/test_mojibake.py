"""Texts that were decoded by the wrong encoding are found, and others are not."""

import pytest

from crawlers.text.mojibake import count_mojibake, find_mojibake

# Words of each language, as escapes or as code points of their letters.
TEXTS = {
    "fr": "L\u2019\u00e9t\u00e9 d\u00e9j\u00e0 \u2013 \u201cgar\u00e7on\u201d, c\u0153ur. ",
    "ru": "".join(map(chr, (*range(0x430, 0x438), 0x20, *range(0x410, 0x418), 0x20))),
    "zh": "\u6211\u4eec\u4eca\u5929\u53bb\u5b66\u6821\uff0c\u56e0\u4e3a\u5929\u6c14",
    "ko": "\uc548\ub155\ud558\uc138\uc694 \uc624\ub298\uc740 \ub0a0\uc528. ",
    "el": "".join(map(chr, (*range(0x3B1, 0x3B8), 0x20, *range(0x3BA, 0x3BF), 0x20))),
    "ar": "".join(map(chr, (*range(0x627, 0x62D), 0x20, *range(0x633, 0x638), 0x20))),
    "is": "\u00de\u00f3r\u00f0ur \u00e1 h\u00fd\u00f0i\u00f0 \u2014 \u00ab\u00a0oui\u00a0\u00bb ",
    "et": "j\u00e4\u00e4\u00e4\u00e4r, voil\u00e0\u00a0! ",
    "emoji": "hi \U0001f600 there \U0001f44d. ",
}
# The encoding that a text was in, and the one by which it was read.
WRONG = [
    ("fr", "utf-8", "cp1252"), ("ru", "utf-8", "cp1252"), ("ru", "utf-8", "cp1251"),
    ("zh", "utf-8", "cp1252"), ("ru", "utf-8", "gb18030"), ("ko", "utf-8", "cp949"),
    ("el", "utf-8", "cp1252"), ("ar", "utf-8", "cp1252"), ("emoji", "utf-8", "cp1252"),
    ("ru", "cp1251", "cp1252"), ("ru", "koi8-r", "cp1252"), ("zh", "gb18030", "cp1252"),
    ("ko", "cp949", "cp1252"), ("el", "cp1253", "cp1252"), ("ar", "cp1256", "cp1252"),
    ("zh", "gb18030", "utf-8"),
]  # fmt: skip


@pytest.mark.parametrize("language", TEXTS)
def test_whole_texts_are_kept(language: str) -> None:
    assert find_mojibake(TEXTS[language] * 20) is None


@pytest.mark.parametrize(("language", "own", "wrong"), WRONG)
def test_texts_of_a_wrong_encoding_are_found(language: str, own: str, wrong: str) -> None:
    assert find_mojibake((TEXTS[language] * 20).encode(own).decode(wrong, "replace"))


def test_a_few_places_in_a_long_text_are_kept() -> None:
    """A text may quote it."""
    quoted = "The sign \u00c3\u00a9 stands for \u00e9. "
    assert count_mojibake(quoted) == 1
    assert find_mojibake(quoted * 2) is None
    assert find_mojibake(quoted * 3 + "plain text " * 400) is None
    assert find_mojibake(quoted * 3)
