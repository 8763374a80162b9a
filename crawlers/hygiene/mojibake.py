"""Marks of a text that was decoded by the wrong encoding (mojibake).

There are two measures. This module counts *places*: sequences of characters that occur in no
language:

- UTF-8 that was read as Windows-1252 or Windows-1251: pairs and triples such as those for an
  accented letter or a quotation mark.
- Another encoding that was read as an encoding of Latin letters: four and more signs of it in a
  row, most of them letters. Cyrillic, Greek, Arabic, Chinese and others all look so.
- UTF-8 that was read as Mac OS Roman, code page 437, KOI8-R or Windows-1251, in Latin words.
- An accented capital, or a sign such as a cedilla alone, within a word of small letters: text of
  Western Europe in one of Windows-1252, Mac OS Roman and code page 850, read as another of them.
- Cyrillic, Greek, Arabic or Hebrew in UTF-8, read as code page 437: lines of tables and letters in
  turn.
- UTF-8 that was read as Shift JIS, in Latin words.
- English contractions with a wrong sign for their apostrophe, as in "don?t".
- Characters that a decoder could not read.

A place is a word, or a part of a long row. Other wrongly decoded texts have correct letters that
form no words. `crawlers/hygiene/rereading.py` finds these texts. All expressions take linear time,
because the input is untrusted.
"""

from __future__ import annotations

import re

from crawlers.hygiene.rereading import find_rereading

MIN_PLACES = 3
MIN_RATE = 1 / 1000  # places a character
_SHORT = 4  # characters of the shortest row
_WORD = 12  # characters that a word of the wrong encoding has as a rule


def _signs(codec: str, first: int, last: int) -> str:
    """Return the characters of some bytes, as a class of a regular expression."""
    found = []
    for byte in range(first, last + 1):
        char = bytes([byte]).decode(codec, "ignore") or chr(byte)
        found.append(re.escape(char))
    return "".join(found)


_MIN_LETTERS = 3  # of a row that is no word
_MIN_DISTINCT = 3  # different characters of such a row
_LATIN_CODECS = ("cp1252", "cp1250", "cp1254", "iso8859-2")
_HIGH = "".join(_signs(codec, 0x80, 0xFF) for codec in _LATIN_CODECS)
_TAIL = _signs("cp1252", 0x80, 0xBF)
_LATIN = re.compile(
    f"[\u00c2-\u00c5][{_TAIL}]|(?:[\u00c6-\u00df][{_TAIL}]){{2,}}"
    f"|[\u00e2\u00ef][{_TAIL}]{{2}}|(?:[\u00e0-\u00ef][{_TAIL}]{{2}}){{2,}}|\u00f0[{_TAIL}]{{3}}"
    r"|\u00e2\?\?"  # a quotation mark whose last two bytes were lost
    # Quotation marks and dashes of an English text, read as Windows-1251, GB 18030 or Shift JIS.
    "|\u0432\u0402.|(?<=[A-Za-z ])[\u9225\u7ab6]."
)
# Accented letters within words, quotation marks and dashes.
_OTHERS = re.compile(
    "|".join(
        f"(?<=[A-Za-z])(?:[{_signs(codec, 0xC2, 0xC5)}][{_signs(codec, 0x80, 0xBF)}])+(?=[A-Za-z])"
        f"|{bytes([0xE2, 0x80]).decode(codec)}[{_signs(codec, 0x90, 0xAF)}]"
        for codec in ("mac-roman", "cp437", "koi8-r", "cp1251")
    )
)
# An apostrophe of Windows-1252 in Mac OS Roman, the reverse, in code page 437, KOI8-R and ASCII.
_APOSTROPHE = "[\u00ed\u00d5\u00c6\u2593?]"
_CONTRACTIONS = re.compile(
    rf"\b(?:(?:do|does|did|is|was|are|were|ca|wo|could|would|should|has|have|had)n{_APOSTROPHE}t"
    rf"|(?:it|that|there|what|let|he|she){_APOSTROPHE}s|(?:we|they|you){_APOSTROPHE}(?:re|ve|ll|d)"
    rf"|i{_APOSTROPHE}(?:m|ve|ll|d))(?![\w=])",
    re.IGNORECASE,
)
# In Irish, a capital may come after the first letter of a word.
_WITHIN = re.compile(
    "(?<=[a-z]{2})[\u00c0-\u00d6\u00d8-\u00de\u017d\u0160\u0152\u0178\u201a\u201e\u2020\u2021\u02c6\u2030"
    "\u00a2\u00b8\u00b3\u00be\u00a4\u00ac\u00af](?=[a-z])|(?<=[a-z])[\uff82-\uff85]"
)
_TABLES = re.compile(
    f"(?:[\u2568\u2564\u256c\u2567\u256b\u256a\u2518][{_signs('cp437', 0x80, 0xBF)}]){{3,}}"
)
_CYRILLIC = re.compile(f"(?:[\u0420\u0421][{_signs('cp1251', 0x80, 0xBF)}]){{3,}}")
_ROW = re.compile(f"[{_HIGH}]{{4,}}")
_LETTERS = re.compile("[\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017f]")
_UNREAD = re.compile("\ufffd+|\u951f\u65a4\u62f7")


def count_mojibake(text: str) -> int:
    """Return the number of places that were decoded by a wrong encoding."""
    places = len(_CONTRACTIONS.findall(text))
    if text.isascii():
        return places
    places += sum(_words(found) for found in _LATIN.finditer(text))
    places += sum(_words(found) for found in _OTHERS.finditer(text))
    places += sum(_words(found) for found in _CYRILLIC.finditer(text))
    places += sum(_words(found) for found in _TABLES.finditer(text))
    places += len(_WITHIN.findall(text))
    rows = [row[0] for row in _ROW.finditer(_LATIN.sub("", text)) if _is_no_word(row[0])]
    # A row of four may be a word, such as Polish for bile, and counts once.
    places += len({row.casefold() for row in rows if len(row) == _SHORT})
    places += sum(1 + len(row) // _WORD for row in rows if len(row) > _SHORT)
    return places + sum(_words(found) for found in _UNREAD.finditer(text))


def find_mojibake(text: str) -> str | None:
    """Return why a text is mojibake, or None if it is not."""
    places = count_mojibake(text)
    if places >= MIN_PLACES and places >= MIN_RATE * len(text):
        return f"{places} places of {len(text)} characters were decoded by a wrong encoding"
    found = find_rereading(text)
    if found is None:
        return None
    return f"it seems to be in {found[1]}, and was decoded as {found[0]}"


def _words(found: re.Match[str]) -> int:
    """Return the number of places of a match: some languages have no spaces."""
    return 1 + len(found[0]) // _WORD


def _is_no_word(row: str) -> bool:
    """Return True for a row of mostly letters that no word has, other than a repeated sign."""
    return len(_LETTERS.findall(row)) >= _MIN_LETTERS and len(set(row)) >= _MIN_DISTINCT
