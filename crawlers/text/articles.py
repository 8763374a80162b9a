"""Conversion of HTML articles and posts to plain text, in time and memory linear in the HTML.

Articles are untrusted and may be nested deeply, so no tree is built. libxml2's parser reports
elements one by one, and a counter tracks excluded elements. Only text is kept. Few attributes are
read, such as ``class``. Only HTML's own entities are expanded. Nothing is fetched, and no script is
run. HTML of MAX_CHARS characters takes at most a second.

The text has paragraphs, headings, list items and quotations, each a block between blank lines.
Excluded are pictures with captions, tables, forms, navigation, embedded posts of other sites and
share links. Footnotes, contact and download boxes, and struck-out or hidden text are excluded, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lxml import etree

from core.errors import ItemUnavailable
from crawlers.text.cleaning import clean, drop_controls, strip_markup, unescape

# _TAG matches tags with known names only: "<b and c>" is a tag, "<stdio.h>" is not. Repetitions are
# possessive, so that an unclosed tag causes no quadratic backtracking.
_BLOCK_TAGS = (
    "p|div|blockquote|h[1-6]|hr|ul|ol|dl|table|thead|tbody|tfoot|section|article|details|summary"
    "|figure|figcaption|aside|header|footer|center|address"
)
_LINES = "br|li|dt|dd|tr|caption"
_CELLS = "td|th"
_HIDDEN = "script|style|template|iframe|noscript|svg|object|textarea|select|title|video|audio"
_INLINE = (
    "a|abbr|b|big|cite|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp|small|span|strike|strong"
    "|sub|sup|tt|u|var|wbr|input|label|button|meta|link|body|html|head|bdi|bdo|time|embed|form"
    "|nobr|ruby|rb|rt|rp|acronym|data|picture|source"
)
_TAG = re.compile(
    rf"<(?P<closing>/?)(?P<name>pre|{_BLOCK_TAGS}|{_LINES}|{_CELLS}|{_HIDDEN}|{_INLINE})(?=[\s/>])"
    r"""(?:(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+|[^<>]*+)>""",
    re.IGNORECASE,
)
_NEXT = re.compile(rf"<!--|{_TAG.pattern}", re.IGNORECASE)
_KIND = {
    name: kind
    for kind, names in {
        "block": _BLOCK_TAGS.replace("h[1-6]", "h1|h2|h3|h4|h5|h6"),
        "line": _LINES,
        "cell": _CELLS,
        "hidden": _HIDDEN,
        "pre": "pre",
    }.items()
    for name in names.split("|")
}
_BREAK = "\0"  # stands for a line break within a paragraph; removed from the input


def post_to_text(markup: str) -> str:
    """Return the text of a post, with blank lines between paragraphs; code stays unchanged."""
    writer = _Writer()
    markup = markup.replace(_BREAK, "").replace("\r\n", "\n")
    position = 0
    while found := _NEXT.search(markup, position):
        writer.add_text(unescape(markup[position : found.start()]))
        position = found.end()
        if found["name"] is None:  # a comment
            end = markup.find("-->", position)
            position = len(markup) if end < 0 else end + 3
            continue
        name = found["name"].lower()
        is_closing = bool(found["closing"])
        if _KIND.get(name) == "hidden" and not is_closing:
            # An unclosed element hides all text after it, as in a browser.
            closing = re.compile(rf"</{name}(?=[\s/>])[^<>]*>", re.I).search(markup, position)
            position = closing.end() if closing else len(markup)
        else:
            writer.add_tag(name, is_closing)
    writer.add_text(unescape(markup[position:]))
    return writer.finish()


def one_line(markup: str) -> str:
    """Return an HTML title as plain text on one line."""
    return " ".join(strip_markup(unescape(markup).replace(_BREAK, "")).split())


class _Writer:
    """Collects the text of a post from its tags and texts, in their order."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._pieces: list[str] = []  # text pieces of the current block
        self._has_words = False  # True if a piece is more than space
        self._gap = ""  # line breaks to insert before the next block
        self._mark = ""  # list mark to insert before the next block
        self._counters: list[int | None] = []  # last item number per open list; None for bullets
        self._is_pre = False

    def add_text(self, text: str) -> None:
        text = text.replace(_BREAK, "")  # decoded text may contain _BREAK
        self._pieces.append(text)
        self._has_words = self._has_words or bool(text.strip())

    def add_tag(self, name: str, is_closing: bool) -> None:
        """Note a tag: it may end a block, open or close a list, or begin a cell or line."""
        kind = _KIND.get(name, "inline")
        if kind == "pre":
            self._end_block("\n\n")
            self._is_pre = not is_closing
        elif kind == "block":
            # Items of nested lists follow each other without a blank line.
            is_inner = name in {"ul", "ol"} and len(self._counters) > is_closing
            self._end_block("\n" if is_inner else "\n\n")
            self._count(name, is_closing)
        elif kind == "cell":
            if not is_closing and self._has_words:
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
        """Open or close a list, to number its items."""
        if name in {"ul", "ol"}:
            if not is_closing:
                self._counters.append(0 if name == "ol" else None)
            elif self._counters:
                self._counters.pop()
        self._mark = self._mark if name not in {"ul", "ol"} else ""

    def _next_mark(self) -> str:
        """Return the mark of the next list item: its number, or a dash."""
        number = self._counters[-1] if self._counters else None
        if number is None:
            return "- "
        self._counters[-1] = number + 1
        return f"{number + 1}. "

    def _end_block(self, gap: str) -> None:
        """End the current block; at least the line breaks ``gap`` precede the next block."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._has_words = False
        if self._is_pre:
            text = text.strip("\n").rstrip()
        else:
            lines = (" ".join(line.split()) for line in text.split(_BREAK))
            text = "\n".join(lines).strip()
        if text:
            self._done += [self._gap if self._done else "", self._mark, text]
            self._gap = self._mark = ""
        self._gap = max(self._gap, gap, key=len)


MAX_CHARS = 1_000_000  # maximum characters of HTML; articles have fewer than 200,000
_CHUNK = 2**14  # characters that libxml2 reads before it stops at an error of the reader
MAX_DEPTH = 1000  # of open elements, all of which libxml2 visits at each end tag; browsers: 512

_LEFT_OUT = frozenset({
    "applet", "aside", "audio", "button", "canvas", "del", "dialog", "embed", "fieldset",
    "figcaption", "figure", "footer", "form", "frameset", "head", "header", "iframe", "map", "math",
    "menu", "nav", "noembed", "noframes", "noscript", "object", "picture", "s", "script", "select",
    "style", "svg", "table", "template", "textarea", "video",
})  # fmt: skip
_LEFT_OUT_CLASSES = frozenset({
    # GOV.UK
    "attachment", "contact", "footnote", "footnotes", "gem-c-attachment",
    "gem-c-related-navigation", "gem-c-share-links", "govuk-visually-hidden", "visually-hidden",
    # classes of WordPress, its usual plug-ins, and Global Voices
    "addtoany_share_save_container", "gallery", "gv-rss-footer", "jp-relatedposts",
    "originally-published", "postmeta", "related", "related-posts", "relatedposts",
    "screen-reader-text", "share", "share-links", "sharedaddy", "tagline", "wp-block-embed",
    "wp-block-footnotes", "wp-block-gallery", "wp-block-image", "wp-caption", "wp-caption-text",
    "wp-playlist", "wp-video", "yarpp", "yarpp-related",
    # classes of embedded posts of other sites
    "bluesky-embed", "fb-post", "fb-video", "instagram-media", "mastodon-embed", "tiktok-embed",
    "twitter-tweet", "twitter-video", "wp-embedded-content",
})  # fmt: skip
_LEFT_OUT_ATTRIBUTES = frozenset({"hidden", "data-fn"})  # data-fn marks the number of a footnote
_BLOCKS = frozenset({
    "address", "article", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "h1",
    "h2", "h3", "h4", "h5", "h6", "hr", "html", "li", "main", "ol", "p", "pre", "section",
    "summary", "ul",
})  # fmt: skip
_HIDDEN_STYLE = re.compile(r"display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden", re.I)
_SPACE = re.compile(r"\s+")
_POINTER = re.compile(  # label that begins a block of links to other articles
    r"(?:read (?:more|also|next)|also read|related(?: \w{1,20})?"
    r"|see (?:also|our(?: \w{1,20}){1,3})"
    r"|more (?:from|on)\b[^:]{0,60})\s?(?::|\Z)",
    re.IGNORECASE,
)
_ATTRIBUTE_CHARS = 1000  # of an attribute that are read
_LINK_SHARE = 0.8  # a block counts as links if this share of its text is linked


def to_text(html: str) -> str:
    """Return the text of an article's HTML as blocks, separated by blank lines.

    Raise ItemUnavailable: ``too_large`` (more than MAX_CHARS characters), or ``parse_error``, also
    for more than MAX_DEPTH open elements.
    """
    if len(html) > MAX_CHARS:
        raise ItemUnavailable("too_large", f"{len(html)} characters of HTML, at most {MAX_CHARS}")
    html = drop_controls(html)  # removes NUL characters, at which libxml2 would stop
    if not html.strip():
        return ""
    parser = etree.HTMLParser(target=_Reader(), recover=True)
    try:
        for start in range(0, len(html), _CHUNK):
            parser.feed(html[start : start + _CHUNK])
        blocks: list[str] = parser.close()
    except etree.LxmlError as error:
        raise ItemUnavailable("parse_error", f"HTML that cannot be read: {error}") from error
    return "\n\n".join(blocks)


def to_line(html: str) -> str:
    """Return a heading's HTML as one line of plain text; raise the errors of ``to_text``."""
    return " ".join(clean(to_text(html)).split())


class _Reader:
    """Parser target that collects text blocks; lxml prescribes its public methods."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._parts: list[str] = []  # text pieces of the current block
        self._num_open = 0
        self._num_left_out = 0  # depth within excluded elements; 0: text is kept
        self._num_links = 0
        self._link_chars = 0
        self._is_pointing = False  # True if the last block linked to other articles

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._num_open += 1
        if self._num_open > MAX_DEPTH:
            raise ItemUnavailable("parse_error", f"more than {MAX_DEPTH} open elements")
        if self._num_left_out or tag in _LEFT_OUT or _is_left_out(attributes):
            if not self._num_left_out:
                self._separate(tag)
            self._num_left_out += 1
        elif tag == "br":
            self._parts.append("\n")
        elif tag == "a":
            self._num_links += 1
        elif tag in _BLOCKS:
            self._end_block()

    def end(self, tag: str) -> None:
        self._num_open -= 1
        if self._num_left_out:
            self._num_left_out -= 1
        elif tag == "a":
            self._num_links = max(0, self._num_links - 1)
        elif tag in _BLOCKS:
            self._end_block()

    def data(self, text: str) -> None:
        if not self._num_left_out:
            self._parts.append(_SPACE.sub(" ", text))
            self._link_chars += len(text) if self._num_links else 0

    def close(self) -> list[str]:
        self._end_block()
        return self._blocks

    def _separate(self, tag: str) -> None:
        """End the block at an excluded element, unless it is inline, like a footnote's number."""
        if tag not in {"a", "button", "del", "s", "span", "sup"}:
            self._end_block()

    def _end_block(self) -> None:
        """End the current block; leave it out if it only links to other articles."""
        if not self._parts:
            return
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        block = "\n".join(line for line in lines if line)
        if block:
            label = _POINTER.match(block)
            text = block[label.end() :].strip() if label else block
            is_links = self._link_chars >= _LINK_SHARE * len(text)
            self._is_pointing = is_links and (label is not None or self._is_pointing)
            if not self._is_pointing:
                self._blocks.append(block)
        self._parts.clear()
        self._link_chars = 0


def _is_left_out(attributes: Mapping[str, str]) -> bool:
    """Return True if the attributes mark an element as hidden, or as no part of the article."""
    if not attributes:
        return False
    classes = attributes.get("class", "")[:_ATTRIBUTE_CHARS].lower().split()
    return (
        not _LEFT_OUT_CLASSES.isdisjoint(classes)
        or not _LEFT_OUT_ATTRIBUTES.isdisjoint(attributes)
        or attributes.get("aria-hidden", "").lower() == "true"
        or _HIDDEN_STYLE.search(attributes.get("style", "")[:_ATTRIBUTE_CHARS]) is not None
    )
