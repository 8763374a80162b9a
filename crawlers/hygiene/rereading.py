"""Detection of wrongly decoded texts: decoded by another encoding, they have better words.

Czech in Windows-1250 that was read as Windows-1252 has no sign that is not a letter. Russian in
KOI8-R that was read as Windows-1251 has Cyrillic letters alone. So parts of a text are *read
again*: encoded by an encoding of their script, and decoded by each other one. A language classifier
decides whether another reading is clearer than the present text.

A text that only quotes such words is kept, because another reading must be clearer in half of its
parts. Parts with few characters beyond ASCII never count, because at most a few of their signs can
be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from crawlers.hygiene.quality import evidence

_PART = 400  # characters
_MAX_PARTS = 3  # of a text, at even distances
_MIN_SHARE = 0.01  # of the characters of a part that are not ASCII
_MIN_GAIN = 0.08  # nats a byte; readings of whole texts gain 0.05 at most, as a rule
_MIN_EVIDENCE = 1.5  # nats a byte; below, a reading is in no language that the model knows
_MAX_LOST = 0.03  # share of characters that an encoding lacks
# A part is of a script if at least one in so many characters that are not ASCII belongs to it.
_ONE_CYRILLIC_IN = 5
_ONE_LATIN_IN = 2
_ONE_ASIAN_IN = 10
_MIN_NOT_ASCII = 3  # characters of a part
_ONE_UNREADABLE_IN = 5  # most unreadable ones of a reading's characters that are not ASCII
_MIN_LETTERS = 0.6  # share of the readable ones among them

_LATIN = ("cp1252", "cp1250", "iso8859-2", "cp1254")
_CYRILLIC = ("cp1251", "koi8-r", "iso8859-5", "mac-cyrillic", "cp866")
_ASIAN = ("gb18030", "big5hkscs", "cp932", "euc_jp", "cp949")
_OTHER = ("cp1253", "cp1255", "cp1256", "cp1257", "cp874")
_MEANT = ("utf-8", *_LATIN, *_CYRILLIC, "koi8-u", *_ASIAN, *_OTHER)
# These differ in few letters, which are frequent in some languages that the model does not know.
_ALIKE = ({"cp1251", "mac-cyrillic"}, {"koi8-r", "koi8-u"})

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_OF_CYRILLIC = re.compile("[\u0400-\u04ff]")
_OF_ASIA = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_OF_LATIN = re.compile("[\u0080-\u024f\u02b0-\u02ff\u2000-\u25ff]")
# Letters and marks of words, and the signs that are frequent between them.
_OF_WORDS = re.compile("[^\\W\\d_]|[\u0e30-\u0e4e\u064b-\u0652\u2013-\u201d\u3001\u3002\uff0c]")


def find_rereading(text: str) -> tuple[str, str] | None:
    """Return the encoding that a text was decoded by, and its likely one; None for a good text."""
    if text.isascii():
        return None
    parts = _parts(text)
    found = []
    for number, part in enumerate(parts):
        # Parts are (decoded by, seems to be in); the first one with a finding stands for all.
        better = _better_reading(part)
        if better:
            found.append(better)
        if len(found) + len(parts) - number - 1 < len(parts) / 2:
            return None  # the other parts cannot outweigh
    return found[0] if found and len(found) >= len(parts) / 2 else None


def _parts(text: str) -> Sequence[str]:
    """Return up to ``_MAX_PARTS`` parts of a text, which begin at even distances."""
    count = min(_MAX_PARTS, max(1, len(text) // _PART))
    starts = [number * len(text) // count for number in range(count)]
    return [text[start : start + _PART] for start in starts]


def _better_reading(part: str) -> tuple[str, str] | None:
    """Return the encodings of the clearest reading, if it is clearer than the part itself."""
    readings = dict(_readings(part))
    if not readings:
        return None
    own, *others = evidence([part, *readings])
    best = max(others)
    if best < max(_MIN_EVIDENCE, own + _MIN_GAIN):
        return None
    return list(readings.values())[others.index(best)]


def _readings(part: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield other readings of a part, with the encoding to encode it and the one to decode it."""
    for read in _codecs_of(part):
        data = part.encode(read, "ignore")
        if len(data.decode(read, "ignore")) < (1 - _MAX_LOST) * len(part):
            continue
        for meant in _MEANT:
            if meant == read or {read, meant} in _ALIKE:
                continue
            reading = data.decode(meant, "replace")
            if reading != part and _is_made_of_words(reading):
                yield reading, (read, meant)


def _codecs_of(part: str) -> Sequence[str]:
    """Return the encodings of a part's scripts; none for a part that is nearly all ASCII."""
    num_not_ascii = len(_NOT_ASCII.findall(part))
    if num_not_ascii < max(_MIN_NOT_ASCII, _MIN_SHARE * len(part)):
        return ()
    codecs: list[str] = []
    if len(_OF_CYRILLIC.findall(part)) >= num_not_ascii / _ONE_CYRILLIC_IN:
        codecs.extend(_CYRILLIC)
    elif len(_OF_LATIN.findall(part)) >= num_not_ascii / _ONE_LATIN_IN:
        codecs.extend(_LATIN)
    if len(_OF_ASIA.findall(part)) >= num_not_ascii / _ONE_ASIAN_IN:
        codecs.extend(_ASIAN)
    return codecs


def _is_made_of_words(reading: str) -> bool:
    """Return True if most characters but ASCII are letters, and hardly one is unreadable."""
    others = "".join(_NOT_ASCII.findall(reading))
    num_unread = others.count("\ufffd")
    num_readable = len(others) - num_unread
    # The last comparison excludes a reading without any readable character.
    is_readable = num_unread <= len(others) / _ONE_UNREADABLE_IN
    return is_readable and len(_OF_WORDS.findall(others)) >= _MIN_LETTERS * num_readable > 0
