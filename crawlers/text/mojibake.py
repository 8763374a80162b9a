"""Marks of a text that was decoded by the wrong encoding (mojibake).

Four signs are counted, each with what it cannot be in a whole text:

- UTF-8 that was read as Windows-1252 or Windows-1251: pairs and triples such as those for an
  accented letter or a quotation mark.
- Another encoding that was read as Windows-1252: four and more signs of it in a row, most of them
  letters. No language writes so, but Cyrillic, Greek, Arabic, Chinese and others all look so.
- UTF-8 that was read as an encoding of East Asia: its signs are UTF-8 when they are encoded again.
- Characters that a decoder could not read.

A place is a word, or a part of a long row. All expressions take linear time, because the input is
untrusted.
"""

from __future__ import annotations

import re

MIN_PLACES = 3
MIN_RATE = 1 / 1000  # places a character
_WORD = 12  # signs of a wrong encoding, of a word as a rule
_MAX_RUNS = 2000  # runs of East Asian signs that are tried


def _signs(codec: str, first: int, last: int) -> str:
    """Return the characters of some bytes, as a class of a regular expression."""
    found = []
    for byte in range(first, last + 1):
        char = bytes([byte]).decode(codec, "ignore") or chr(byte)
        found.append(re.escape(char))
    return "".join(found)


_HIGH = _signs("cp1252", 0x80, 0xFF)
_TAIL = _signs("cp1252", 0x80, 0xBF)
_LATIN = re.compile(
    f"[\u00c2-\u00c5][{_TAIL}]|(?:[\u00c6-\u00df][{_TAIL}]){{2,}}"
    f"|[\u00e2\u00ef][{_TAIL}]{{2}}|(?:[\u00e0-\u00ef][{_TAIL}]{{2}}){{2,}}|\u00f0[{_TAIL}]{{3}}"
)
_CYRILLIC = re.compile(f"(?:[\u0420\u0421][{_signs('cp1251', 0x80, 0xBF)}]){{3,}}")
_ROW = re.compile(f"[{_HIGH}]{{4,}}")
_LETTERS = re.compile("[\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff]")
_UNREAD = re.compile("\ufffd+|\u951f\u65a4\u62f7")
_ASIAN = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff61-\uff9f]{3,}")
_ASIAN_CODECS = ("gb18030", "cp932", "cp949", "big5hkscs")


def count_mojibake(text: str) -> int:
    """Return the number of places that were decoded by a wrong encoding."""
    if text.isascii():
        return 0
    places = sum(_words(found) for found in _LATIN.finditer(text))
    places += sum(_words(found) for found in _CYRILLIC.finditer(text))
    rest = _LATIN.sub("", text)
    places += sum(_words(row) for row in _ROW.finditer(rest) if _is_no_word(row[0]))
    places += sum(_words(found) for found in _UNREAD.finditer(text))
    return places + _num_asian(text)


def find_mojibake(text: str) -> str | None:
    """Return why a text is mojibake, or None if it is not."""
    places = count_mojibake(text)
    if places < MIN_PLACES or places < MIN_RATE * len(text):
        return None
    return f"{places} places of {len(text)} characters were decoded by a wrong encoding"


def _words(found: re.Match[str]) -> int:
    """Return the number of places of a match: some languages have no spaces."""
    return 1 + len(found[0]) // _WORD


def _is_no_word(row: str) -> bool:
    """Return True for a row that has too many letters for signs, and is no row of one sign."""
    return len(_LETTERS.findall(row)) >= 3 and len(set(row)) >= 3


def _num_asian(text: str) -> int:
    found = 0
    for number, run in enumerate(_ASIAN.finditer(text)):
        if number == _MAX_RUNS:
            break
        if any(_is_utf8(run[0], codec) for codec in _ASIAN_CODECS):
            found += _words(run)
    return found


def _is_utf8(run: str, codec: str) -> bool:
    """Return True if a run is UTF-8 when it is encoded; signs at its ends may be cut."""
    data = run.encode(codec, "ignore")
    decoded = data.decode("utf-8", "replace")
    max_bad = 1 + len(decoded) // 8
    return len(data) >= 6 and decoded.count("\ufffd") <= max_bad and not decoded.isascii()
