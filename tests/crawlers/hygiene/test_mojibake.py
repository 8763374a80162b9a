"""Texts that were decoded by the wrong encoding are found, and others are not."""

import json
from pathlib import Path

import pytest

from crawlers.hygiene.mojibake import count_mojibake, find_mojibake
from crawlers.text.cleaning import drop_controls

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
    ("zh", "utf-8", "cp1252"), ("ko", "utf-8", "cp949"),
    ("el", "utf-8", "cp1252"), ("ar", "utf-8", "cp1252"), ("emoji", "utf-8", "cp1252"),
    ("ru", "cp1251", "cp1252"), ("ru", "koi8-r", "cp1252"), ("zh", "gb18030", "cp1252"),
    ("ko", "cp949", "cp1252"), ("el", "cp1253", "cp1252"), ("ar", "cp1256", "cp1252"),
    ("zh", "gb18030", "utf-8"),
]  # fmt: skip

# A text with apostrophes and quotation marks, and pairs of encodings that people mix up.
ENGLISH = (
    "It\u2019s late, and we don\u2019t know when they\u2019ll come; \u201cI\u2019m sure\u201d, "
    "said the director \u2013 who hasn\u2019t waited. "
)
OTHER_WRONG = [
    ("mac-roman", "cp1252"), ("cp1252", "mac-roman"), ("cp1252", "cp437"), ("cp1252", "cp850"),
    ("cp1252", "koi8-r"), ("utf-8", "mac-roman"), ("utf-8", "cp437"), ("utf-8", "koi8-r"),
    ("utf-8", "cp1251"),
]  # fmt: skip

# Sentences by language.
SENTENCES = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))
# The language, the encoding that its text was in, and the one by which it was read.
MISREAD = [
    ("cs", "cp1250", "cp1252"), ("pl", "cp1250", "cp1252"), ("pl", "iso8859-2", "cp1252"),
    ("cs", "cp1250", "cp1251"), ("cs", "iso8859-2", "cp1250"), ("tr", "cp1254", "cp1252"),
    ("fr", "cp1252", "cp1250"), ("fr", "cp1252", "cp1251"), ("ru", "koi8-r", "cp1251"),
    ("ru", "cp1251", "koi8-r"), ("ru", "cp866", "cp1251"), ("ru", "iso8859-5", "cp1251"),
    ("uk", "koi8-u", "cp1251"), ("uk", "cp1251", "koi8-u"), ("zht", "big5hkscs", "gb18030"),
    ("zh", "gb18030", "big5hkscs"), ("zh", "gb18030", "cp949"), ("ja", "cp932", "euc_jp"),
    ("ja", "euc_jp", "cp932"), ("ja", "euc_jp", "gb18030"), ("ja", "cp932", "gb18030"),
    ("ko", "cp949", "gb18030"), ("pl", "utf-8", "cp1250"), ("pl", "utf-8", "cp1251"),
    ("cs", "utf-8", "gb18030"), ("ru", "utf-8", "koi8-r"),
    ("ru", "utf-8", "gb18030"), ("ru", "utf-8", "cp437"), ("uk", "utf-8", "cp437"),
    ("fr", "cp1252", "mac-roman"), ("fr", "cp850", "cp1252"), ("pl", "utf-8", "cp932"),
]  # fmt: skip


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("times", [1, 9])
def test_good_letters_in_good_words_are_kept(language: str, times: int) -> None:
    assert find_mojibake(SENTENCES[language] * times) is None


@pytest.mark.parametrize(("language", "own", "wrong"), MISREAD)
@pytest.mark.parametrize("times", [1, 9])
def test_good_letters_in_bad_words_are_found(
    language: str, own: str, wrong: str, times: int
) -> None:
    data = (SENTENCES[language] * times).encode(own, "ignore")
    assert find_mojibake(drop_controls(data.decode(wrong, "replace")))


def test_an_article_may_quote_misread_words() -> None:
    word = SENTENCES["cs"][:40].encode("cp1250").decode("cp1252")
    assert (
        find_mojibake((f"It was read as {word!r}. " + "plain text of an article " * 40) * 9) is None
    )


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


@pytest.mark.parametrize(("own", "wrong"), OTHER_WRONG)
def test_english_with_wrong_apostrophes_is_found(own: str, wrong: str) -> None:
    assert find_mojibake((ENGLISH * 3).encode(own).decode(wrong, "replace"))


def test_apostrophes_that_became_question_marks_are_found() -> None:
    assert find_mojibake((ENGLISH * 3).encode("ascii", "replace").decode())
    assert find_mojibake("The lover\u00e2??s hand, \u00e2??said they\u00e2??. " * 3)
    assert not find_mojibake("Is it? So what? See /page?s=1, don't, and colou?r. " * 20)


@pytest.mark.parametrize("wrong", ["mac-roman", "cp437", "koi8-r", "cp1251"])
@pytest.mark.parametrize("language", ["fr", "is"])
def test_words_of_latin_letters_and_signs_are_found(language: str, wrong: str) -> None:
    assert find_mojibake((TEXTS[language] * 20).encode().decode(wrong, "replace"))


def test_a_word_of_four_letters_beyond_ascii_is_no_mark() -> None:
    """Polish for bile, by chance four letters of a Latin encoding in a row."""
    article = (
        "Watroba wytwarza \u017c\u00f3\u0142\u0107; \u017b\u00f3\u0142\u0107 jest w pecherzyku. "
    )
    assert count_mojibake(article * 20) == 1
    assert find_mojibake(article * 20) is None


def test_capitals_after_one_small_letter_and_tables_are_no_marks() -> None:
    irish = "I measc mhuintir na h\u00c9ireann, an t\u00c1rd-Rialt\u00f3ir agus an t\u00das. "
    units = "A volume of 20 m\u00b3 is sold at 50\u00a2 a piece\u2020, as \u201ehier\u201c. "
    top = "\u2554\u2550\u2550\u2564\u2550\u2550\u2557\n"
    table = f"{top}\u2551 a \u2502 b \u2551\n\u255a\u2550\u2550\u2567\u2550\u2550\u255d\n"
    for text in (irish, units, table):
        assert find_mojibake(text * 9) is None


def test_boxes_and_formulas_are_no_marks() -> None:
    box = "Title\u2500\u2510 a\u2502b x\u2248\u00b15 n\u221a\u03c0 \u250ca\u2510 "
    assert count_mojibake(box * 20) == 0
