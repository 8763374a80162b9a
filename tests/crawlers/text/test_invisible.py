"""What stays of characters that are not seen; expected texts are examples of Unicode's chapters."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlers.text import articles
from crawlers.text.cleaning import clean, normalise
from crawlers.text.invisible import MAY_STAY, NEVER, NEWLINE

ZWNJ = "\u200c"
ZWJ = "\u200d"

# Spelling in which an unseen character is one of the word's own; each is kept as it is.
KEPT = {
    "Persian: a prefix": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Persian: a plural of letters of another script": "CD\u200c\u0647\u0627",
    "Persian: an abbreviation that ends joined": "\u06f1\u06f3\u06f5\u06f7 \u0647\u200d. \u0634.",
    "Arabic: a joined form that stands alone": "\u0640 \u200d\u0647\u200d \u0640",
    "Kurdish": "\u062f\u06d5\u200c\u0686\u0645",
    "Urdu": "\u0628\u06d2\u200c\u062d\u062f",
    "Arabic: joined forms without the ligature": "\u0644\u200d\u200c\u200d\u0627",
    "Arabic: after a vowel sign": "\u0645\u064e\u200c\u0646",
    "Hindi: a half form": "\u0915\u094d\u200d\u0937",
    "Hindi: a virama that is seen": "\u0915\u094d\u200c\u0937",
    "Marathi: the eyelash ra": "\u0926\u0930\u094d\u200d\u092f\u093e",
    "Bengali: ya-phalaa after ra": "\u09b0\u200d\u09cd\u09af\u09be\u09ae",
    "Malayalam: chillu n": "\u0d28\u0d28\u0d4d\u200d\u0d26\u0d3f",
    "Malayalam: chillu at a word's end": "\u0d05\u0d35\u0d28\u0d4d\u200d.",
    "Sinhala: rakaaraansaya": "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
    "Kannada": "\u0cb0\u0ccd\u200c\u0c95",
    "Telugu": "\u0c15\u0c4d\u200c\u0c37",
    "Tamil": "\u0b95\u0bcd\u200c\u0bb7",
    "Syriac": "\u0712\u200c\u0712",
    "Khmer: words": "\u1797\u17b6\u179f\u17b6\u200b\u1781\u17d2\u1798\u17c2\u179a",
    "Thai: words": "\u0e20\u0e32\u0e29\u0e32\u200b\u0e44\u0e17\u0e22",
    "Mongolian: a separated vowel": "\u1822\u180e\u1820",
    "Mongolian: a variant": "\u1820\u180b\u1828",
    "a family": "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "a heart in colour": "\u2764\ufe0f\u200d\U0001f525",
    "a flag": "\U0001f3f3\ufe0f\u200d\U0001f308",
    "a profession with a skin tone": "\U0001f9d1\U0001f3fd\u200d\U0001f4bb",
    "a sign of sex": "\U0001f937\u200d\u2640\ufe0f",
    "a phoenix, a direction": "\U0001f426\u200d\U0001f525 \U0001f3c3\u200d\u27a1\ufe0f",
    "Scotland": "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "a keycap": "1\ufe0f\u20e3",
    "text style": "\u263a\ufe0e",
    "an ideograph's variant": "\u845b\U000e0100\u98fe",
    "a mathematical variant": "\u2229\ufe00",
    "Tulu": "\U00011392\U000113d0\u200d\U00011392",
    "Gurung Khema": "\U00016101\u200d\U00016102",
    "Kirat Rai": "\U00016d43\u200c\U00016d44",
    "old Korean": "\u115f\u1161 \u1100\u1160",
    "shorthand: an overlap": "\U0001bc02\U0001bca0\U0001bc03",
    "music: a beam": "\U0001d173\U0001d158\U0001d174",
    "a grapheme joiner": "a\u034f\u0308",
}

REMOVED = [
    ("Latin: a ligature that is not wanted", "Auf\u200clage", "Auflage"),
    ("Latin", "pass\u200dword", "password"),
    ("Cyrillic", "\u043f\u0430\u200d\u0440", "\u043f\u0430\u0440"),
    ("Chinese", "\u4e2d\u200d\u6587", "\u4e2d\u6587"),
    ("a joiner at the start and the end", "\u200ca b\u200d", "a b"),
    ("between a picture and a word", "\U0001f469\u200dand", "\U0001f469and"),
    ("a non-joiner between pictures", "\U0001f469\u200c\U0001f467", "\U0001f469\U0001f467"),
    ("bits spelled in joiners", "\u0645" + "\u200c\u200d" * 20 + "\u06cc", "\u0645\u200c\u06cc"),
    ("a space of no width in Latin", "zero\u200bwidth", "zerowidth"),
    ("a space of no width beside a space", "\u1781\u200b \u1781", "\u1781 \u1781"),
    ("two of them", "\u1781\u200b\u200b\u1781", "\u1781\u200b\u1781"),
    ("a vowel separator elsewhere", "a\u180eb", "ab"),
    ("a soft hyphen", "Donau\u00addampf", "Donaudampf"),
    ("marks of direction", "\u200fabc\u200e \u202eright\u202c \u2066x\u2069\u061c", "abc right x"),
    ("a word joiner and a byte order mark", "a\u2060b\ufeffc", "abc"),
    ("tags that spell a hidden text", "Hi\U000e0049\U000e0067\U000e006e", "Hi"),
    ("tags without their end", "\U0001f3f4\U000e0067\U000e0062", "\U0001f3f4"),
    ("bytes in variation selectors", "\u263a\ufe0f\ufe01\U000e0154", "\u263a\ufe0f"),
    ("a supplementary selector in Latin", "a\U000e0132b", "ab"),
    ("a selector without a base", "a \ufe0fb", "a b"),
    ("fillers of Korean", "\uac00\u3164\ub098\uffa0", "\uac00\ub098"),
    ("bytes in code points for unseen signs", "a\U000e0080\U000e01f0\U000e0fff\ufff0b", "ab"),
    ("a stroke of shorthand in Latin", "a\U0001bca0b", "ab"),
    ("bits in strokes", "\U0001bc02\U0001bca0\U0001bca1\U0001bca0", "\U0001bc02\U0001bca0"),
    ("a beam without a note", "a\U0001d173b", "ab"),
    ("a non-character of another plane", "a\U0001fffeb", "ab"),
]


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_what_is_spelling_stays(text: str) -> None:
    assert normalise(text) == text
    assert clean(f"<p>{text}</p>") == text
    assert articles.to_text(f"<p>{text}</p>") == text


@pytest.mark.parametrize(("raw", "expected"), [each[1:] for each in REMOVED])
def test_elsewhere_it_is_removed(raw: str, expected: str) -> None:
    assert normalise(raw) == expected


def test_letters_may_be_character_references() -> None:
    assert clean("&#1605;&#1740;\u200c&#1582;") == "\u0645\u06cc\u200c\u062e"
    assert clean("\u0645\u06cc&zwnj;\u062e, Auf&zwnj;lage") == "\u0645\u06cc\u200c\u062e, Auflage"
    assert clean("&#128104;\u200d&#128187;") == "\U0001f468\u200d\U0001f4bb"


UNSEEN = st.sampled_from(
    [
        *"\u3164\U0001bca0\U0001d173\u00ad\u180e\u200b\u200c\u200d\u200e\ufe0f\ufe00\U000e0100\U000e0067\U000e007f"
    ]
)
SEEN = st.sampled_from(
    [
        *"ae \n\u0301\u0323\u0338\u0645\u064e\u0915\u094d\u1781\u1820\u2190\u2329\u2adc\u263a",
        *"\u845b\uf900\U0001f469\U0001f3f4\U0001f3fd\u20e3\ufb1d\u212b\U0001bc02\U0001d158",
    ]
)


@given(st.lists(UNSEEN | SEEN, max_size=12).map("".join))
def test_a_second_call_changes_nothing(text: str) -> None:
    normal = normalise(text)
    assert normalise(normal) == normal
    assert unicodedata.is_normalized("NFC", normal)


def test_what_is_searched_for_only_in_unprintable_text_is_unprintable() -> None:
    """Printable text is not searched for what is removed in every place."""
    every = "".join(map(chr, range(0x110000)))
    removed = [*NEVER.findall(every), *NEWLINE.findall(every)]
    assert len(removed) > 2000
    assert not any(char.isprintable() for char in removed)
    assert len(MAY_STAY.findall(every)) == 1 + 3 + 128 + 256 + 4 + 8 + 2
