"""The only table of character encodings, for pages, archives, books and feeds.

Names mean what they mean to browsers (https://encoding.spec.whatwg.org): a page that says
``gb2312`` may have all characters of GB 18030, and one that says ``iso-8859-1`` is in Windows-1252.
Python's codecs of the same names are stricter, so the table names a wider codec. An error handler
(``_recover``) decodes the characters that the wider codec lacks.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Iterator, Mapping

from core.errors import ItemUnavailable
from crawlers.text.hong_kong import HONG_KONG

_HEAD = 4096  # bytes that show UTF-16
_PRESCAN = 16_384  # bytes that may state the encoding; browsers read 1024, or the page's head
_NAME = r"""["']?\s*([\w.:-]{2,40})"""
_STATED = re.compile(rf"charset\s*=\s*{_NAME}", re.IGNORECASE)
_DECLARATION = re.compile(
    rf"[\s\ufeff]*<\?xml[^<>]{{0,100}}?\sencoding\s*=\s*{_NAME}", re.IGNORECASE
)
# Elements "meta", and what may spell such an element without being one.
_META = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?P<raw>script|style|title|textarea)\b.*?(?:</(?P=raw)|\Z)"
    r"""|<meta[\s/](?P<attributes>(?:[^>"']++|"[^"]{0,2000}"|'[^']{0,2000}')*+)>""",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"""([^\s"'>/=]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Python's codec, and the names that stand for it. The names are those of the standard, and after
# "|" others that are in use.
_NAMES = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "cp866": "866 cp866 csibm866 ibm866",
    "iso8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 "
    "iso_8859-2:1987 l2 latin2",
    "iso8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 "
    "iso_8859-3:1988 l3 latin3",
    "iso8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 "
    "iso_8859-4:1988 l4 latin4",
    "iso8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 "
    "iso_8859-5 iso_8859-5:1988",
    "iso8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 "
    "iso-8859-6-e iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 "
    "iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek",
    "iso8859-8": "csiso88598e csiso88598i csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e "
    "iso-8859-8-i iso-ir-138 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 logical visual",
    "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9 | latin9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "mac-roman": "csmacintosh mac macintosh x-mac-roman | macroman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874 | cp874 tis620",
    "cp1250": "cp1250 windows-1250 x-cp1250 | cp-1250 win-1250 windows1250",
    "cp1251": "cp1251 windows-1251 x-cp1251 | cp-1251 win-1251 windows1251",
    "cp1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 "
    "iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252 "
    "| ansi latin-1 win-1252 windows1252",
    "cp1253": "cp1253 windows-1253 x-cp1253",
    "cp1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 "
    "iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254",
    "cp1255": "cp1255 windows-1255 x-cp1255",
    "cp1256": "cp1256 windows-1256 x-cp1256",
    "cp1257": "cp1257 windows-1257 x-cp1257",
    "cp1258": "cp1258 windows-1258 x-cp1258",
    "gb18030": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk "
    "gb18030 | cp936 euc-cn ms936 windows-936",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5 | big5hkscs big5-eten cp950",
    "euc_jp": "cseucpkdfmtjapanese euc-jp x-euc-jp | eucjp",
    "iso2022_jp": "csiso2022jp iso-2022-jp",
    "cp932": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis | cp932",
    "cp949": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 "
    "ksc_5601 windows-949 | cp949 euckr uhc x-windows-949",
    "utf-16-be": "unicodefffe utf-16be",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    # Encodings of 7 bits that browsers do not decode, since they can hide markup.
    "": "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement",
}
# Characters of Python's codec, and what the standard has in their place.
_OTHERWISE: Mapping[str, dict[int, int]] = {
    "gb18030": str.maketrans(
        "\ue5e5\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue7c7"
        "\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
        "\u3000\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19\u1e3f"
        "\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb",
    ),
    "euc_jp": str.maketrans(
        "\u301c\u2016\u2212\u00a2\u00a3\u00ac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2"
    ),
    "big5hkscs": str.maketrans(
        "\u2022\uff64\u203e\u223c\u2641\u2609\u00a5\u00a2\u00a3",
        "\u2027\ufe51\u00af\uff5e\u2295\u2299\uffe5\uffe0\uffe1",
    ),
    "koi8-u": str.maketrans("\u255d\u256c", "\u045e\u040e"),
    # Bytes that begin no character, and which Python takes for characters of private use.
    "cp932": str.maketrans("\uf8f0\uf8f1\uf8f2\uf8f3", "\ufffd" * 4),
}
_MAX_BAD = 1000  # one character of so many may be unreadable
_ONE_ZERO_IN = 20  # bytes of UTF-16 text: spaces and line ends are that frequent


def decode(payload: bytes, stated: str = "") -> str:
    """Decode a page, feed or part of a book; ``stated`` is the header Content-Type, or a name.

    Encodings are tried in this order: the mark of the order of bytes; ISO-2022-JP, if a row of its
    characters has both escapes; UTF-16, if every second byte of many is zero; UTF-8, since no
    other text is UTF-8 by accident; that of the header, of the text itself; Windows-1252, if none
    is stated.
    Raise ItemUnavailable (``damaged``) if none fits.
    """
    for mark, codec in _MARKS:
        if payload.startswith(mark):
            return _checked(payload[len(mark) :].decode(codec, "replace"), codec)
    names = list(_stated_names(payload, stated))
    named = [codec_of(name) for name in names]
    is_named = "iso2022_jp" in named and b"\x1b" in payload
    if is_named or _ESCAPED_ROW.search(payload):
        return _checked(_from_iso_2022_jp(payload), "iso2022_jp")
    if named and named[0] in ("utf-16-le", "utf-16-be") and b"\0" in payload[:_HEAD]:
        return _checked(payload.decode(named[0], "replace"), named[0])
    # An empty name stands for an encoding that browsers refuse.
    if named and named[0] == "":
        raise ItemUnavailable("damaged", f"in {names[0]}, which no browser reads")
    unmarked = _utf_16_of(payload)
    if unmarked:
        return _checked(payload.decode(unmarked, "replace"), unmarked)
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError:
        pass
    known = [codec for codec in named if codec and not codec.startswith("utf-")]
    for codec in [*known, "cp1252"]:
        text = _decoded(payload, codec)
        if _is_whole(text):
            return text
    raise ItemUnavailable("damaged", f"in no known encoding (stated: {names or 'none'})")


def codec_of(name: str) -> str | None:
    """Return Python's codec for the stated name of an encoding, or None for an unknown name.

    An empty text stands for an encoding that no browser reads, and that is not decoded here.
    """
    return _codecs().get(name.strip().lower())


@functools.cache
def _codecs() -> Mapping[str, str]:
    return {
        name: codec for codec, names in _NAMES.items() for name in names.replace("|", " ").split()
    }


def _stated_names(payload: bytes, stated: str) -> Iterator[str]:
    """Yield the names that the header and the first bytes state, the deciding one first."""
    if codec_of(stated) is not None:
        yield stated
    header = _STATED.search(stated)
    if header:
        yield header[1]
    head = payload[:_PRESCAN].decode("latin-1")
    names = list(_names_in_page(head))
    declaration = _DECLARATION.match(head)
    if declaration:
        is_html = "html" in stated.lower() and "xml" not in stated.lower()
        names.insert(len(names) if is_html else 0, declaration[1])
    yield from names


def _names_in_page(head: str) -> Iterator[str]:
    """Yield the names in a page's elements ``meta``, those that browsers ignore last."""
    ignored = []
    for found in _META.finditer(head):
        if found["attributes"] is None:
            continue
        attributes: dict[str, str] = {}
        for name, *values in _ATTRIBUTE.findall(found["attributes"]):
            attributes.setdefault(name.lower(), "".join(values).strip())
        if "charset" in attributes:
            name = _STATED.match(f"charset={attributes['charset']}")
            if name:
                yield name[1]
            continue
        content = attributes.get("content", "")
        name = _STATED.search(content)
        if name and attributes.get("http-equiv", "").lower() == "content-type":
            yield name[1]
        elif name and content.lower().startswith("text/html"):
            ignored.append(name[1])
    yield from ignored


def _utf_16_of(payload: bytes) -> str | None:
    """Return the codec of UTF-16 without a byte order mark; None for other texts."""
    # In UTF-16, spaces and markup have zero bytes in even places only, or in odd places only.
    head = payload[:_HEAD]
    first = head[::2].count(0)
    second = head[1::2].count(0)
    many = len(head) / _ONE_ZERO_IN
    if second > many and first == 0:
        return "utf-16-le"
    if first > many and second == 0:
        return "utf-16-be"
    return None


def _is_whole(text: str) -> bool:
    """Return True if hardly a character is unreadable, or a control character of U+0080 to 9F."""
    bad = text.count("\ufffd") + len(_CONTROLS.findall(text))
    return bad <= len(text) / _MAX_BAD


_CONTROLS = re.compile("[\x80-\x9f]")


def _checked(text: str, codec: str) -> str:
    if not _is_whole(text):
        raise ItemUnavailable("damaged", f"not {codec}, although it says so")
    return text


def _decoded(payload: bytes, codec: str) -> str:
    """Decode bytes as the standard says; what is unreadable becomes U+FFFD."""
    if codec == "iso2022_jp":
        return _from_iso_2022_jp(payload)
    if codec == "cp1255":  # of Hebrew, where Python's codec lacks a point
        parts = payload.split(b"\xca")
        return "\u05ba".join(part.decode(codec, "tidemark.charsets") for part in parts)
    text = payload.decode(codec, "tidemark.charsets")
    if codec in _OTHERWISE:
        text = text.translate(_OTHERWISE[codec])
    return text


_ESCAPED = re.compile(rb"\x1b(\$[@B]|\([BJI])")
_ESCAPED_ROW = re.compile(rb"\x1b\$[@B](?:[!-~]{2})++\x1b\([BJ]")  # other texts have none


_ROMAN = str.maketrans("\\~", "\u00a5\u203e")  # the Latin letters of JIS X 0201


def _from_iso_2022_jp(payload: bytes) -> str:
    """Decode ISO-2022-JP as EUC-JP, which has the same characters with the high bits set."""
    high = bytes(byte | 0x80 for byte in range(256))
    parts = _ESCAPED.split(payload)
    found = [_decoded(parts[0], "euc_jp")]
    for escape, part in zip(parts[1::2], parts[2::2], strict=True):
        if escape.startswith(b"$"):
            part = part.translate(high, b"\r\n")
        elif escape == b"(I":
            part = b"".join(b"\x8e" + bytes([byte | 0x80]) for byte in part)
        text = _decoded(part, "euc_jp")
        found.append(text.translate(_ROMAN) if escape == b"(J" else text)
    return "".join(found)


def _recover(error: UnicodeError) -> tuple[str, int]:
    """Decode the bytes at which Python's codec fails; return the text, and where to go on."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data = error.object[error.start : error.start + 2]
    codec = error.encoding.replace("-", "_").lower()
    if codec == "gb18030" and data[:1] == b"\x80":
        return "\u20ac", error.start + 1
    if codec == "euc_jp" and len(data) == 2 and min(data) >= 0xA1:
        found = _from_shift_jis(data)
    elif codec == "big5hkscs" and data in HONG_KONG:
        found = HONG_KONG[data]
    elif codec == "big5hkscs" and len(data) == 2:
        found = _pair(data, "cp950")
    elif _is_single_byte(codec):
        # The standard has the control characters of these bytes, so that no byte is lost.
        found = chr(data[0]) if data[0] < 0xA0 else ""
        return found or "\ufffd", error.start + 1
    else:
        found = ""
    if len(found) == 1:
        return found, error.start + 2
    # A trailing byte of ASCII stays: it may be the markup that follows.
    return "\ufffd", error.start + (2 if len(data) == 2 and data[1] >= 0x80 else 1)


def _pair(data: bytes, codec: str) -> str:
    """Decode the two bytes of one character; return an empty text if they are none."""
    try:
        found = data.decode(codec)
    except UnicodeDecodeError:
        return ""
    return found if len(found) == 1 else ""


def _is_single_byte(codec: str) -> bool:
    return codec in ("charmap", "cp874") or codec.startswith(("cp125", "iso8859", "mac", "koi8"))


def _from_shift_jis(data: bytes) -> str:
    """Decode two bytes of EUC-JP by CP932, which has more rows (those of NEC and IBM)."""
    # The arithmetic maps row and cell of JIS X 0208 to the two bytes of Shift JIS.
    if max(data) == 0xFF:
        return ""
    row = data[0] - 0xA1
    cell = data[1] - 0xA1
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    is_second = row % 2 == 1
    trail = cell + (0x9F if is_second else 0x40)
    if not is_second and cell >= 63:
        trail += 1  # 0x7F is no trailing byte
    return _pair(bytes([lead, trail]), "cp932")


codecs.register_error("tidemark.charsets", _recover)
