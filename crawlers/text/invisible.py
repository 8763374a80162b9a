"""Characters that are not seen, such as joiners: which of them belong to the spelling, and stay.

``docs/hygiene.md`` has the table. The rules follow the Unicode Standard, chapter 23 (joiners,
variation selectors, tags), and UTS #51 (emoji). Each rule looks at the neighbours of a run of such
characters. So all rules take linear time, and a second call changes nothing more.
"""

from __future__ import annotations

import functools
import re
import unicodedata

# Line ends that become a newline: CR, vertical tab, form feed, NEL, line and paragraph separators.
NEWLINE = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
# Removed in every place: control characters other than tab and newline, lone surrogates,
# non-characters, soft hyphens, direction marks, word joiners, byte order marks, annotations, and
# code points that Unicode keeps for signs that are not seen.
_PLANES = range(0, 0x110000, 0x10000)
_LAST_TWO = "".join(chr(plane + 0xFFFE) + chr(plane + 0xFFFF) for plane in _PLANES)
NEVER = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    "\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
    f"{_LAST_TWO}]"
)
# Kept in some places: the Mongolian vowel separator, zero-width space, joiners, tags, selectors.
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_OTHERS = "\u180e\u200b-\u200d\U000e0000-\U000e007f"
_FILLERS = re.compile("[\u3164\uffa0]")  # of old Korean encodings
_STROKES = "\U0001bca0-\U0001bca3"  # of shorthand
_BEAMS = "\U0001d173-\U0001d17a"  # of music
MAY_STAY = re.compile(f"[{_OTHERS}{_SELECTORS}{_STROKES}{_BEAMS}\u3164\uffa0]")

# Blocks of scripts whose spelling has joiners (ends included).
_JOINING_BLOCKS = (
    (0x0590, 0x08FF),  # Hebrew (beside points), Arabic, Syriac, Thaana, N'Ko, Mandaic
    (0x0900, 0x0DFF),  # Devanagari to Sinhala
    (0x0F00, 0x109F),  # Tibetan, Myanmar
    (0x1700, 0x18FF),  # Philippine scripts, Khmer, Mongolian
    (0x1900, 0x1CFF),  # Limbu to Vedic extensions
    (0xA800, 0xA8FF),  # Syloti Nagri, Phags-pa, Saurashtra, Devanagari
    (0xA930, 0xA9FF),  # Rejang, Javanese, Myanmar
    (0xAA00, 0xAAFF),  # Cham, Myanmar, Tai Viet, Meetei Mayek
    (0xABC0, 0xABFF),  # Meetei Mayek
    (0xFB1D, 0xFDFF),  # presentation forms of Hebrew and Arabic
    (0xFE70, 0xFEFE),
    (0x10A00, 0x10AFF),  # Kharoshthi, Manichaean, Psalter Pahlavi
    (0x10D00, 0x10FFF),  # Hanifi Rohingya, Sogdian, Chorasmian
    (0x11000, 0x11FFF),  # Brahmi and other scripts of India
    (0x16100, 0x1613F),  # Gurung Khema
    (0x16D40, 0x16D7F),  # Kirat Rai
    (0x1E900, 0x1E95F),  # Adlam
    (0x1EE00, 0x1EEFF),  # Arabic of mathematics
)
# Blocks of scripts that are written without spaces, and mark words by zero-width spaces.
_UNSPACED_BLOCKS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19FF), (0x1A20, 0x1AAF),
    (0x1B00, 0x1B7F), (0xA980, 0xA9FF), (0xAA00, 0xAADF),
)  # fmt: skip
# Symbols and pictographs; a superset of the emoji, most blocks whole.
_PICTURES = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299"
_PICTURE = re.compile(f"[{_PICTURES}\U0001f000-\U0001faff]")
_IDEOGRAPHS = (
    "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)

# A black flag, the letters of a region of a country, and the end of tags; nothing else has tags.
_TAGS = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
    "|[\U000e0000-\U000e007f]"
)
_STRAY_STROKE = re.compile(f"(?<![\U0001bc00-\U0001bc9f])[{_STROKES}]")
_SIGNS_OF_MUSIC = "\U0001d100-\U0001d172\U0001d17b-\U0001d1ff"
_STRAY_BEAM = re.compile(f"(?<![{_SIGNS_OF_MUSIC}])[{_BEAMS}](?![{_SIGNS_OF_MUSIC}])")
_VOWEL_SEPARATOR = re.compile("(?<![\u1820-\u18aa])\u180e|\u180e(?![\u1820-\u18aa])")
# The first selector after a sign that may have variants stays; a second one can only hide data.
_STRAY_SELECTOR = re.compile(
    f"(?<![^\\s{_OTHERS}{_SELECTORS}])[\ufe00-\ufe0f]|(?<![{_IDEOGRAPHS}])[\U000e0100-\U000e01ef]"
)
_JOINERS = re.compile("[\u200c\u200d]+")
_MAX_JOINERS = 3  # the longest run with a meaning: a ligature without joined forms, or the reverse


def drop_unseen(text: str) -> str:
    """Return an NFC text without the characters of ``MAY_STAY`` that no neighbour needs.

    Those of ``NEVER`` have been removed before.
    """
    # What is no base of a selector goes first.
    text = _FILLERS.sub("", text)
    text = _STRAY_STROKE.sub("", text)
    text = _STRAY_BEAM.sub("", text)
    text = _STRAY_SELECTOR.sub("", text)
    text = _TAGS.sub(r"\1", text)
    text = _VOWEL_SEPARATOR.sub("", text)
    text = _zero_width_spaces().sub(r"\1", text)
    return _JOINERS.sub(_joiners_that_stay, text)


def _joiners_that_stay(run: re.Match[str]) -> str:
    """Return what stays of a run of joiners between its two neighbours."""
    joiners = run[0]
    before = run.string[max(run.start() - 1, 0) : run.start()]
    after = run.string[run.end() : run.end() + 1]
    if _joined_letter().match(before) or _joined_letter().match(after):
        return joiners if len(joiners) <= _MAX_JOINERS else joiners[0]
    # A zero-width joiner between two pictures makes one emoji of them.
    is_picture = _PICTURE.match(before) or before in ("\ufe0f", "\U000e007f")
    if is_picture and _PICTURE.match(after) and "\u200d" in joiners:
        return "\u200d"
    return ""


@functools.cache
def _joined_letter() -> re.Pattern[str]:
    return re.compile(f"[{_letters(_JOINING_BLOCKS)}]")


@functools.cache
def _zero_width_spaces() -> re.Pattern[str]:
    """Match a run of zero-width spaces; group 1 is what stays of it between two letters."""
    letters = _letters(_UNSPACED_BLOCKS)
    return re.compile(f"(?<=[{letters}])(\u200b)\u200b*(?=[{letters}])|\u200b+")


def _letters(blocks: tuple[tuple[int, int], ...]) -> str:
    """Return the letters and marks of blocks, also those that this Python does not know yet."""
    points = (chr(point) for first, last in blocks for point in range(first, last + 1))
    kept = ("L", "M", "Cn")
    return "".join(char for char in points if unicodedata.category(char).startswith(kept))
