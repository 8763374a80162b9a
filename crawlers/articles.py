"""HTML of an article to plain text, in time and memory linear in it.

Whoever writes for a site may write anything. So nothing is built from the HTML: libxml2's parser
reports elements as they come, a counter tells whether they are inside something that is left out,
and all that is kept is text. Nesting costs nothing, attributes but for ``class`` and a few more are
not looked at, entities are HTML's own only, nothing is fetched and no script is run. The one bound
needed is that on the length: MAX_CHARS of the worst markup take a second.

Kept: paragraphs, headings, list items and quotations, each a block of its own between blank lines.
Left out: pictures with their captions, tables, forms, navigation, posts of other sites that are
embedded, share links, footnotes, boxes of contacts and of downloads, what is struck out or hidden.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lxml import etree

from core.errors import ItemUnavailable
from crawlers.cleaning import clean, normalise

MAX_CHARS = 1_000_000  # of HTML; articles have fewer than 200,000

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
    # WordPress, its usual plug-ins, and Global Voices
    "addtoany_share_save_container", "gallery", "gv-rss-footer", "jp-relatedposts",
    "originally-published", "postmeta", "related", "related-posts", "relatedposts",
    "screen-reader-text", "share", "share-links", "sharedaddy", "tagline", "wp-block-embed",
    "wp-block-footnotes", "wp-block-gallery", "wp-block-image", "wp-caption", "wp-caption-text",
    "wp-playlist", "wp-video", "yarpp", "yarpp-related",
    # what other sites offer to be embedded
    "bluesky-embed", "fb-post", "fb-video", "instagram-media", "mastodon-embed", "tiktok-embed",
    "twitter-tweet", "twitter-video", "wp-embedded-content",
})  # fmt: skip
_LEFT_OUT_ATTRIBUTES = frozenset({"hidden", "data-fn"})  # data-fn: number of a footnote
_BLOCKS = frozenset({
    "address", "article", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "h1",
    "h2", "h3", "h4", "h5", "h6", "hr", "html", "li", "main", "ol", "p", "pre", "section",
    "summary", "ul",
})  # fmt: skip
_HIDDEN_STYLE = re.compile(r"display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden", re.I)
_SPACE = re.compile(r"\s+")
_POINTER = re.compile(  # to other articles: where the rest of the block is their links, or nothing
    r"(?:read (?:more|also|next)|also read|related(?: \w{1,20})?"
    r"|see (?:also|our(?: \w{1,20}){1,3})"
    r"|more (?:from|on)\b[^:]{0,60})\s?(?::|\Z)",
    re.IGNORECASE,
)
_LINK_SHARE = 0.8  # of the characters of a block that is nothing but links


def to_text(html: str) -> str:
    """Return the blocks of an article's HTML, a blank line between two.

    Raises:
        ItemUnavailable: longer than MAX_CHARS (``too_large``), or nothing that can be parsed
            (``parse_error``).
    """
    if len(html) > MAX_CHARS:
        raise ItemUnavailable("too_large", f"{len(html)} characters of HTML, at most {MAX_CHARS}")
    html = normalise(html)  # a NUL would end the page for libxml2
    if not html.strip():
        return ""
    parser = etree.HTMLParser(target=_Reader(), recover=True)
    try:
        parser.feed(html)
        blocks: list[str] = parser.close()
    except etree.LxmlError as error:
        raise ItemUnavailable("parse_error", f"HTML that cannot be read: {error}") from error
    return "\n\n".join(blocks)


def to_line(html: str) -> str:
    """Return HTML of a heading as one line of plain text.

    Raises:
        ItemUnavailable: as ``to_text``.
    """
    return " ".join(clean(to_text(html)).split())


class _Reader:
    """Takes the parser's events; ``start``, ``end``, ``data`` and ``close`` are lxml's names."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._parts: list[str] = []  # of the block that is being read
        self._num_left_out = 0  # elements around us of which the outermost is left out
        self._num_links = 0
        self._link_chars = 0
        self._is_pointing = False  # the last block named other articles

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
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
        """A figure between two texts parts them; a footnote's number does not."""
        if tag not in {"a", "button", "del", "s", "span", "sup"}:
            self._end_block()

    def _end_block(self) -> None:
        if not self._parts:
            return
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        block = "\n".join(line for line in lines if line)
        if block:
            label = _POINTER.match(block)
            rest = block[label.end() :].strip() if label else block
            is_links = self._link_chars >= _LINK_SHARE * len(rest)
            self._is_pointing = is_links and (label is not None or self._is_pointing)
            if not self._is_pointing:
                self._blocks.append(block)
        self._parts.clear()
        self._link_chars = 0


def _is_left_out(attributes: Mapping[str, str]) -> bool:
    if not attributes:
        return False
    classes = attributes.get("class", "")[:1000].lower().split()
    return (
        not _LEFT_OUT_CLASSES.isdisjoint(classes)
        or not _LEFT_OUT_ATTRIBUTES.isdisjoint(attributes)
        or attributes.get("aria-hidden", "").lower() == "true"
        or _HIDDEN_STYLE.search(attributes.get("style", "")[:1000]) is not None
    )
