"""Posts of discussion sites: from the HTML that a site makes of them to the text a reader sees.

Code keeps its lines and its indentation, formulas stay as they were typed (``$a<b$``), and what a
reader does not see goes: comments, scripts, pictures, attributes. The HTML may be anybody's; one
pass over it is all it gets, so the time is linear in its length whatever it holds.
"""

from __future__ import annotations

import html
import re

from crawlers.cleaning import strip_markup

# A tag of a name that we know; "a <b and c> d" is one by these rules, and "#include <stdio.h>" is
# none. Repetitions are possessive: a tag that never ends is not tried again from each of its signs.
_BLOCKS = (
    "p|div|blockquote|h[1-6]|hr|ul|ol|dl|table|thead|tbody|tfoot|section|article|details|summary"
    "|figure|figcaption|aside|header|footer|center|address"
)
_LINES = "br|li|dt|dd|tr|caption"
_CELLS = "td|th"
_HIDDEN = "script|style|template|iframe|noscript|svg|object|textarea|select|title|video|audio"
_INLINE = (
    "a|abbr|b|big|cite|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp|small|span|strike|strong"
    "|sub|sup|tt|u|var|wbr|input|label|button|meta|link|body|html|head|bdi|bdo|time|embed|form"
)
_TAG = re.compile(
    rf"<(?P<closing>/?)(?P<name>pre|{_BLOCKS}|{_LINES}|{_CELLS}|{_HIDDEN}|{_INLINE})(?=[\s/>])"
    r"""(?:(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+|[^<>]*+)>""",
    re.IGNORECASE,
)
_NEXT = re.compile(rf"<!--|{_TAG.pattern}", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_KIND = {
    name: kind
    for kind, names in {
        "block": _BLOCKS.replace("h[1-6]", "h1|h2|h3|h4|h5|h6"),
        "line": _LINES,
        "cell": _CELLS,
        "hidden": _HIDDEN,
        "pre": "pre",
    }.items()
    for name in names.split("|")
}
_BREAK = "\0"  # of a line, within a paragraph; the input's own are taken out first


def post_to_text(markup: str) -> str:
    """Return the text of a post: paragraphs apart by a blank line, code as it stands.

    Args:
        markup: HTML as the site gives it; tags may be left open or be none.
    """
    writer = _Writer()
    markup = markup.replace(_BREAK, "").replace("\r\n", "\n")
    position = 0
    while found := _NEXT.search(markup, position):
        writer.add_text(_unescape(markup[position : found.start()]))
        position = found.end()
        if found["name"] is None:  # a comment
            end = markup.find("-->", position)
            position = len(markup) if end < 0 else end + 3
            continue
        name, is_closing = found["name"].lower(), bool(found["closing"])
        if _KIND.get(name) == "hidden" and not is_closing:
            # What is never closed hides all that follows, as in a browser.
            closing = re.compile(rf"</{name}(?=[\s/>])[^<>]*>", re.I).search(markup, position)
            position = closing.end() if closing else len(markup)
        else:
            writer.add_tag(name, is_closing)
    writer.add_text(_unescape(markup[position:]))
    return writer.finish()


def one_line(markup: str) -> str:
    """Return a title as plain text on one line; character references are undone, tags go."""
    return " ".join(strip_markup(_unescape(markup)).split())


def _unescape(text: str) -> str:
    """Undo character references; one of thousands of digits is none (``int`` would refuse it)."""
    if "&" not in text:
        return text
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text).replace(_BREAK, "")


class _Writer:
    """Puts the pieces of text of one post into blocks, and the blocks below each other."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._pieces: list[str] = []  # of the block that is being read
        self._gap = ""  # what the next block is set apart by
        self._mark = ""  # what it begins with: the sign of a list's item
        self._counters: list[int | None] = []  # of the lists around; None where they have bullets
        self._is_pre = False

    def add_text(self, text: str) -> None:
        if text:
            self._pieces.append(text)

    def add_tag(self, name: str, is_closing: bool) -> None:
        kind = _KIND.get(name, "inline")
        if kind == "pre":
            self._end_block("\n\n")
            self._is_pre = not is_closing
        elif kind == "block":
            is_inner = name in {"ul", "ol"} and len(self._counters) > is_closing
            self._end_block("\n" if is_inner else "\n\n")
            self._count(name, is_closing)
        elif kind == "cell":
            if not is_closing and any(piece.strip() for piece in self._pieces):
                self._pieces.append(" | ")
        elif name == "br":
            self._pieces.append("\n" if self._is_pre else _BREAK)
        elif kind == "line":
            self._end_block("\n")
            if name == "li" and not is_closing:
                self._mark = self._next_mark()

    def finish(self) -> str:
        self._end_block("")
        return "".join(self._done)

    def _count(self, name: str, is_closing: bool) -> None:
        if name in {"ul", "ol"}:
            if not is_closing:
                self._counters.append(0 if name == "ol" else None)
            elif self._counters:
                self._counters.pop()
        self._mark = self._mark if name not in {"ul", "ol"} else ""

    def _next_mark(self) -> str:
        number = self._counters[-1] if self._counters else None
        if number is None:
            return "- "
        self._counters[-1] = number + 1
        return f"{number + 1}. "

    def _end_block(self, gap: str) -> None:
        """Close the block that is being read; the next one stands at least ``gap`` below it."""
        text = "".join(self._pieces)
        self._pieces.clear()
        if self._is_pre:
            text = text.strip("\n").rstrip()
        else:
            lines = (" ".join(line.split()) for line in text.split(_BREAK))
            text = "\n".join(lines).strip()
        if text:
            self._done += [self._gap if self._done else "", self._mark, text]
            self._gap = self._mark = ""
        self._gap = max(self._gap, gap, key=len)
