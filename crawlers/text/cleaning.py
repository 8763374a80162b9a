"""Cleaning of extracted text, and the rules that drop texts by length and as duplicates.

Unicode is normalised in every text. Markup is removed from prose only, since in code it is content.
All regular expressions take linear time, because the input is untrusted.
"""

from __future__ import annotations

import functools
import html
import re
import unicodedata

from crawlers.contract import DropReason
from crawlers.text import invisible

# Raise by 1 with a change of this package or of hygiene that changes texts of crawled documents:
# months of different versions are of different regimes (docs/adr/0033-regimes.md).
CLEANER_VERSION = 6
MIN_CHARS = 100  # code points; scores of shorter texts depend more on the protocol than the model

_MAX_MARKS = 30  # maximum combining marks on one letter, as in UAX #15 (stream-safe text)
_MAYBE_MARKS = re.compile(rf"[^\x00-\u02ff]{{{_MAX_MARKS + 1}}}")  # marks are above U+02FF

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ELEMENTS = (
    "a|abbr|acronym|article|aside|audio|b|bdi|bdo|big|blockquote|body|br|button|caption|center|cite|code"
    "|col|colgroup|dd|del|details|dfn|div|dl|dt|em|embed|figcaption|figure|font|footer|form|h[1-6]"
    "|head|header|hr|html|i|iframe|img|input|ins|kbd|label|li|link|main|mark|math|meta|nav|nobr|nowiki"
    "|object|ol|option|p|param|picture|poem|pre|q|ref|references|rp|rt|ruby|s|samp|script|section"
    "|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template"
    "|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr"
)
_SWITCHES = "allowfullscreen|checked|controls|disabled|hidden|noshade|nowrap|open|reversed"
# Only known elements with attributes like name=value are tags: "a < b and c > d" is no tag.
_TAG = re.compile(
    rf"</?(?:{_ELEMENTS})(?:\s[^<>=]{{0,200}}=[^<>]{{0,2000}}|\s{{0,9}}(?:{_SWITCHES})?\s{{0,9}}/?)>",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"</?(?:br|p|div|li|ul|ol|dl|dd|dt|tr|table|h[1-6]|hr)\b", re.IGNORECASE)
_HIDDEN = (
    (re.compile("<!--"), re.compile("-->")),
    (re.compile(r"<script(?:\s[^<>]{0,2000})?>", re.I), re.compile(r"</script\s{0,9}>", re.I)),
    (re.compile(r"<style(?:\s[^<>]{0,2000})?>", re.I), re.compile(r"</style\s{0,9}>", re.I)),
)
_MARKUP_PASSES = 3  # maximum passes over a text, as the removal of a tag may form another tag


def clean(text: str, is_code: bool = False, is_plain: bool = False) -> str:
    """Return normalised text; prose also loses its markup, while code keeps all white space."""
    # Plain text loses none: a tag that its reader has left is one that a person wrote.
    if is_code:
        return normalise(text)
    if not is_plain:
        text = strip_markup(drop_controls(text))
    return normalise(text).strip()


def normalise(text: str) -> str:
    r"""Return NFC text with ``\n`` as line end, without control and needless zero-width characters.

    Other white space is kept, ``\t`` included. A second call changes nothing more.
    """
    text = drop_controls(text)
    if text.isascii():
        return text
    text = _compose(text)
    if invisible.MAY_STAY.search(text):
        text = _compose(invisible.drop_unseen(text))
    return text


def _compose(text: str) -> str:
    # Long runs of combining marks are shortened: NFC takes quadratic time in their length.
    if _MAYBE_MARKS.search(text):
        text = _long_runs_of_marks().sub(r"\1", text)
    return unicodedata.normalize("NFC", text)


def drop_controls(text: str) -> str:
    r"""Return a text with ``\n`` as line end, without the characters that are always removed.

    Call this for markup before its parser. Which joiners are spelling is decided later, since tags
    and character references may stand between two letters.
    """
    if text.replace("\n", "").isprintable():  # what is removed is not printable
        return text
    return invisible.NEVER.sub("", invisible.NEWLINE.sub("\n", text))


@functools.cache
def _long_runs_of_marks() -> re.Pattern[str]:
    marks = "".join(filter(unicodedata.combining, map(chr, range(0x110000))))
    return re.compile(f"([{marks}]{{{_MAX_MARKS}}})[{marks}]+")


def unescape(text: str) -> str:
    """Decode HTML character references, except invalid ones with too many digits."""
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def strip_markup(text: str) -> str:
    """Return prose without HTML: no tags, comments, scripts or character references."""
    # Text between tags is kept, and block tags become line ends. Escaped tags (``&lt;b&gt;``) are
    # also removed, since some extractors decode them and others do not.
    text = unescape(text)
    for _ in range(_MARKUP_PASSES):
        if "<" not in text:
            break
        for opening, closing in _HIDDEN:
            text = _cut(text, opening, closing)
        text, count = _TAG.subn(_what_remains, text)
        if not count:
            break
    return text


def _what_remains(tag: re.Match[str]) -> str:
    return "\n" if _BLOCK.match(tag[0]) else ""


def _cut(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Remove the text from each opening match to its closing match; keep unclosed openings."""
    kept = []
    position = 0
    while (start := opening.search(text, position)) and (end := closing.search(text, start.end())):
        kept.append(text[position : start.start()])
        position = end.end()
    return "".join(kept) + text[position:]


def refuse_length(text: str, max_bytes: int, min_chars: int) -> tuple[DropReason, str] | None:
    """Return the reason to drop a cleaned text for its length, and a detail; None to keep it."""
    if not text.strip():
        return "empty", "no text"
    if len(text) < min_chars:
        return "too_short", f"{len(text)} characters, at least {min_chars} are needed"
    num_bytes = len(text.encode())
    return ("too_long", too_long(num_bytes, max_bytes)) if num_bytes > max_bytes else None


def too_long(num_bytes: int, max_bytes: int) -> str:
    """Return the detail of a ``too_long`` drop, with the name of the setting that allows more."""
    return f"{num_bytes} bytes, at most {max_bytes} are kept; see TIDEMARK_MAX_DOCUMENT_BYTES"
