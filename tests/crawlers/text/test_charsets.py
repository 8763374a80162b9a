"""Encodings as browsers read them; bytes and characters are of the standard's tables."""

import time

import pytest
from lxml import etree

from core.errors import ItemUnavailable
from crawlers.text import charsets

# A stated name, bytes in it, and the text that a browser shows (Chromium's TextDecoder).
SHOWN = [
    ("gb2312", b"\xd6\xec\xe9F\xbb\xf9", "\u6731\u9555\u57fa"),  # the second is of GBK only
    ("gbk", b"\x81\x30\x81\x34 \x80 \xa2\xe3", "\x84 \u20ac \u20ac"),  # four bytes of GB 18030
    ("GB_2312-80", b"\xa1\xb0\xd6\xd0\xa1\xb1", "\u201c\u4e2d\u201d"),
    ("x-gbk", b"\xa8\xbc\xa6\xd9\xfe\x59", "\u1e3f\ufe10\u9fb4"),
    ("euc-kr", b"\x8cc\xb0\xa2\xc7\xcf", "\ub620\uac01\ud558"),  # CP949 has the first
    ("ks_c_5601-1987", b"\x8cc", "\ub620"),
    ("shift_jis", b"\x87@\x87\x8a\xfb\xfc\xed\x95", "\u2460\u3231\u9ad9\ufa11"),
    ("x-sjis", b"\x81\x60\x81\x7c", "\uff5e\uff0d"),
    ("euc-jp", b"\xad\xa1\xad\xea\xa1\xc1\x8e\xb1\x8f\xb0\xa1", "\u2460\u3231\uff5e\uff71\u4e02"),
    ("iso-2022-jp", b"\x1b$BF|K\\-!\x1b(B abc \x1b(I1\x1b(B", "\u65e5\u672c\u2460 abc \uff71"),
    ("big5", b"\xa4\xa4\xfa\x40\x88\x62\xf9\xd6", "\u4e2d\U00020547\u00ca\u0304\u7881"),
    ("big5-hkscs", b"\x9d\xf5\xa1\x45", "\u55f0\u2027"),
    ("iso-8859-9", b"\x93\xf0\xfe\xfd\x94", "\u201c\u011f\u015f\u0131\u201d"),
    ("iso-8859-1", b"\x93a\x94\x80", "\u201ca\u201d\u20ac"),
    ("us-ascii", b"\x85\xe9", "\u2026\u00e9"),
    ("tis-620", b"\x93\xc0\xd2\xc9\xd2\x94", "\u201c\u0e20\u0e32\u0e29\u0e32\u201d"),
    ("iso-8859-11", b"\x80\xa1", "\u20ac\u0e01"),
    ("iso-8859-8-i", b"\xf9\xec\xe5\xed", "\u05e9\u05dc\u05d5\u05dd"),
    ("logical", b"\xf9\xec", "\u05e9\u05dc"),
    ("x-mac-cyrillic", b"\x8a\xa2\xb6\xff", "\u041a\u0490\u0491\u20ac"),
    ("koi8-u", b"\xeb\xbd\xae\xbe", "\u041a\u0490\u045e\u040e"),
    ("macintosh", b"\xd2\x8e\xd3", "\u201c\u00e9\u201d"),
    ("windows-1251", b"\xcf\xf0\xe8", "\u041f\u0440\u0438"),
    ("latin2", b"\xb3\xf3\xbf", "\u0142\u00f3\u017c"),
    ("ibm866", b"\x8f\xe0", "\u041f\u0440"),
]


@pytest.mark.parametrize(("name", "data", "text"), SHOWN, ids=[each[0] for each in SHOWN])
def test_stated_names_mean_what_they_mean_to_browsers(name: str, data: bytes, text: str) -> None:
    padding = b" plain" * 400  # so that a control character is no sign of damage
    for payload, header in (
        (padding + data, f"text/html; charset={name}"),
        (padding + data, f'text/html; Charset="{name.upper()}"'),
        (f"<meta charset='{name}'>".encode() + padding + data, "text/html"),
        (f'<?xml version="1.0" encoding="{name}"?>'.encode() + padding + data, ""),
    ):
        assert charsets.decode(payload, header).endswith(text)


def test_all_tables_agree_with_the_library_of_xml_where_it_has_them() -> None:
    """What libxml2's converters and ours both read is the same, for the one-byte encodings."""
    compared = 0
    for name in ("iso-8859-2", "iso-8859-5", "iso-8859-7", "iso-8859-15", "windows-1251", "koi8-r"):
        for byte in range(0xA0, 0x100):
            page = f'<?xml version="1.0" encoding="{name}"?><a>'.encode() + bytes([byte]) + b"</a>"
            try:
                theirs = etree.fromstring(page).text
            except etree.XMLSyntaxError:
                continue
            ours = charsets.decode(bytes([byte]) + b"x" * 2000, name)
            if ours[0] != "\ufffd":
                assert ours[0] == theirs, (name, byte)
                compared += 1
    assert compared > 500


def test_marks_and_unicode() -> None:
    text = "\u4e2d\u6587 \u201ca\u201d"
    marks = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    for codec, mark in marks.items():
        assert charsets.decode(mark + text.encode(codec), "text/html; charset=gbk") == text
    assert charsets.decode(text.encode("utf-16-le"), "text/html; charset=utf-16") == text
    assert charsets.decode(text.encode("utf-16-be"), "text/html; charset=utf-16be") == text
    assert charsets.decode(text.encode(), "text/html; charset=utf-16") == text  # it is not
    for stated in ("gbk", "iso-8859-1", "windows-1251", "x-unknown"):
        assert charsets.decode(text.encode(), f"text/html; charset={stated}") == text


def test_what_is_in_no_encoding_is_damaged() -> None:
    noise = b"\x81\x8d\x8f" * 99
    for stated in ("", "text/html; charset=utf-8", "text/html; charset=x-no"):
        with pytest.raises(ItemUnavailable, match="in no known encoding"):
            charsets.decode(noise, stated)
    with pytest.raises(ItemUnavailable, match="no browser reads"):
        charsets.decode(b"~{VPND~}", "text/html; charset=hz-gb-2312")
    for dangerous in ("utf-7", "unicode_escape", "rot13", "idna", "punycode", "base64"):
        assert charsets.codec_of(dangerous) is None
        assert charsets.decode(b"+AGE- \\u0041", f"charset={dangerous}") == "+AGE- \\u0041"


def test_a_bad_byte_costs_one_character_and_no_markup() -> None:
    whole = "\u4e2d\u6587".encode("gbk") * 1000
    text = charsets.decode(whole + b"\xff<p>" + whole, "charset=gb2312")
    assert text.count("\ufffd") == 1 and "\ufffd<p>\u4e2d" in text
    korean = "\uac01".encode("cp949") * 2000
    assert "\ufffd<b>" in charsets.decode(korean + b"\xfe<b>" + korean, "charset=euc-kr")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("word", ["caf\u00e9", "\u0434\u043e\u043c", "\u6d77"])
def test_utf_16_without_a_mark(codec: str, word: str) -> None:
    page = f"<html><p>{word} and {word}</p></html>"
    assert charsets.decode(page.encode(codec)) == page
    assert charsets.decode(f"{page} a\0b {page * 9}".encode()).count("\0") == 1


def test_iso_2022_jp_that_no_name_states() -> None:
    text = "<p>\u3059\u3079\u3066\u306e\u4eba\u9593\u306f</p>\n<p>\u5e73\u7b49</p>"
    assert charsets.decode(text.encode("iso2022_jp"), "text/html") == text
    paragraph = "\u3059\u3079\u3066\u306e\u4eba\u9593\u306f" * 50  # one row
    assert charsets.decode(paragraph.encode("iso2022_jp"), "text/html") == paragraph
    plain = "\x1b[1mbold\x1b[0m and \x1b$B as typed"
    assert charsets.decode(plain.encode(), "text/html") == plain


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("big5", b"\x87\x7a\x87\xa1\x8e\x69\xfe\xdd", "\u3875\U000258de\u7bb8\u7809"),
        ("big5", b"\xc6\xcf\xa3\xc0\xa3\xe1", "\u5ef4\u2400\u20ac"),
        ("windows-1255", b"\xf2\xca\xef", "\u05e2\u05ba\u05df"),
        ("iso-2022-jp", b"\x1b(J\\~a\x1b(B\\~", "\u00a5\u203ea\\~"),
    ],
)
def test_characters_that_only_browsers_have(name: str, data: bytes, text: str) -> None:
    assert charsets.decode(b" plain" * 400 + data, f"charset={name}").endswith(text)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        # Bytes that are no character: none becomes another one, and none is lost without a sign.
        ("big5", b"\x81.", "\ufffd."),
        ("big5", b"\xc7\x7f", "\ufffd\x7f"),
        ("big5", b"\xa0<", "\ufffd<"),
        ("euc-jp", b"\xa1\xff", "\ufffd"),
        ("euc-jp", b"\xa2\xaf", "\ufffd"),
        ("euc-jp", b"\xa9\xa8", "\ufffd"),
        ("euc-jp", b"\xfe\xe1", "\ufffd"),
        ("iso-2022-jp", b'\x1b$B"/\x1b(B', "\ufffd"),
        ("iso-2022-jp", b"\x1b$B)B\x1b(B", "\ufffd"),
        ("shift_jis", b"\xa0", "\ufffd"),
        ("shift_jis", b"\xfd<\xfe", "\ufffd<\ufffd"),
    ],
)
def test_pairs_without_a_character_are_unreadable(name: str, data: bytes, text: str) -> None:
    decoded = charsets.decode(b" plain" * 900 + data, f"charset={name}")
    assert decoded == " plain" * 900 + text


_RUSSIAN = "\u0421\u044a\u0435\u0448\u044c \u0435\u0449\u0451 \u0431\u0443\u043b\u043e\u043a. "
_MAIN = '<meta charset="windows-1251">'


@pytest.mark.parametrize(
    "head",
    [
        _MAIN + "<meta charset=utf-8>",
        '<!-- <meta charset="koi8-r"> -->' + _MAIN,
        "<script>var s = '<meta charset=\"koi8-r\">'</script>" + _MAIN,
        "<style>/* <meta charset=koi8-r> */</style><title><meta charset=koi8-r></title>" + _MAIN,
        '<link rel=stylesheet charset="utf-8"><script charset="koi8-r" src=b.js></script>' + _MAIN,
        '<meta name=description content="use charset=koi8-r">' + _MAIN,
        '<meta content="text/html; charset=koi8-r">' + _MAIN,
        '<meta name="a>b" content="charset=koi8-r" data-charset=koi8-r>' + _MAIN,
        "<meta content='text/html;CHARSET=\"windows-1251\"' HTTP-EQUIV=Content-Type>",
        "<script>" + "var a = 1;" * 400 + "</script>" + _MAIN,
        "<meta  charset =  windows-1251 />",
        # A browser would guess here; the mistake is common.
        '<meta name="Content-Type" content="text/html; charset=windows-1251">',
    ],
)
def test_only_elements_of_the_page_state_its_encoding(head: str) -> None:
    """Verdicts are Chromium's, beside the last one."""
    page = f"<html><head>{head}</head><body>{_RUSSIAN * 9}</body></html>"
    assert charsets.decode(page.encode("cp1251"), "text/html") == page


def test_a_declaration_of_xml_decides_for_xml_only() -> None:
    greek = "\u03b2\u03b4\u03b5\u03bb\u03c5\u03b3\u03bc\u03af\u03b1 " * 9
    declared = "<?xml version='1.0' encoding='%s'?><html><head><meta charset='%s'></head>%s</html>"
    page = declared % ("windows-1251", "iso-8859-7", greek)
    assert charsets.decode(page.encode("iso8859-7"), "text/html") == page
    page = declared % ("iso-8859-7", "windows-1251", greek)
    for header in ("application/xhtml+xml", "application/xml", ""):
        assert charsets.decode(page.encode("iso8859-7"), header) == page


@pytest.mark.parametrize(
    "part", [b"<meta ", b'<meta a="', b"<!--", b"<script>", b"<meta a=b ", b"<title", b"<meta a"]
)
def test_heads_of_any_shape_take_little_time(part: bytes) -> None:
    payload = part * 20_000 + b"\xe9"
    began = time.process_time()
    charsets.decode(payload, "text/html")
    assert time.process_time() - began < 2
