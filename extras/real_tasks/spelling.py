"""Other ways to write a word or a number: plain Latin letters, number words, Roman numerals."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
# Letters without an accent that are not in ASCII.
_CYRILLIC = dict(zip("абвгдезиклмнопрстуфыэієґј", "abvgdeziklmnoprstufyeiegj", strict=True))
_CYRILLIC |= {
    "ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ю": "yu", "я": "ya",
    "љ": "lj", "њ": "nj", "ђ": "dj", "ћ": "c", "џ": "dz", "ъ": "", "ь": "",
}  # fmt: skip
_GREEK = dict(zip("αβγδεζηικλμνοπρστυω", "abgdeziiklmnoprstyo", strict=True))
_GREEK |= {"ς": "s", "θ": "th", "ξ": "x", "φ": "ph", "χ": "ch", "ψ": "ps"}
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "a", "œ": "o"} | _CYRILLIC | _GREEK)
_TWO_DOTS = re.compile("(?<=[aou])e")  # a vowel that stands for one with two dots
# Sounds that alphabets and languages write by different letters.
_SOUNDS = (("ph", "f"), ("kh", "k"), ("ch", "k"), ("ck", "k"), ("ts", "z"), ("tz", "z"))
_ALIKE = str.maketrans("cqwyjs", "kkviiz")


def plain_letters(text: str) -> str:
    """Return a text in lower case; letters of similar sound become the same Latin letters.

    ``Müller`` and ``Mueller`` give the same, and so do ``Москва`` and ``Moskva``.
    """
    parts = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(each for each in parts if not unicodedata.combining(each))
    letters = letters.translate(_LETTERS)
    letters = _TWO_DOTS.sub("", letters)
    for written, sound in _SOUNDS:
        letters = letters.replace(written, sound)
    return letters.translate(_ALIKE)


def spellings(number: int) -> Iterator[str]:
    """Yield a number from 0 to 9999 in English words without ``and``, and in Roman numerals.

    Of 1998, these are a thousand and its hundreds, nineteen hundreds, and a year.
    """
    for words in _cardinals(number):
        yield words
        begin, _, last = words.rpartition(" ")
        yield f"{begin} {_ordinal(last)}".lstrip()
    if number:
        yield _roman(number)


def _cardinals(number: int) -> Iterator[str]:
    """Yield the spellings of a number below 10,000: hundreds, thousands, or as years."""
    high, low = divmod(number, 100)
    if not high:
        yield _below_hundred(low)
        return
    rest = f" {_below_hundred(low)}" if low else ""
    thousands, hundreds = divmod(high, 10)
    if thousands:
        middle = f" {_UNITS[hundreds]} hundred" if hundreds else ""
        yield f"{_UNITS[thousands]} thousand{middle}{rest}"
    if hundreds:
        yield f"{_below_hundred(high)} hundred{rest}"
    if thousands and low:
        zero = " oh" if low < 10 else ""
        yield f"{_below_hundred(high)}{zero}{rest}"


def _below_hundred(number: int) -> str:
    if number < len(_UNITS):
        return _UNITS[number]
    tens = _TENS[number // 10 - 2]
    return f"{tens} {_UNITS[number % 10]}" if number % 10 else tens


def _ordinal(word: str) -> str:
    if word.endswith("y"):
        return f"{word[:-1]}ieth"
    return _ORDINALS.get(word, f"{word}th")


def _roman(number: int) -> str:
    """Return a number in Roman numerals."""
    letters = []
    for value, letter in _ROMAN:
        count, number = divmod(number, value)
        letters.append(letter * count)
    return "".join(letters)
