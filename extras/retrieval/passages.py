"""Passages of a text, and the words that are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_CHARS = 800
"""Length of the longest passage, in characters."""

# Chinese, Japanese and Korean have no spaces between words, so each character is a word.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+")
_PARAGRAPH = re.compile(r"\S(?:.*\S)?")  # a line without the white space around it


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(text.casefold())


def spans_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each passage, in characters, in order.

    A passage is a run of whole lines of at most MAX_CHARS characters. A longer line is cut at its
    last space within the limit, or at the limit if it has no space there.
    """
    start = end = 0
    for line in _PARAGRAPH.finditer(text):
        for first, last in _cut(text, *line.span()):
            if end > start and last - start > MAX_CHARS:
                yield start, end
                start = first
            elif end == start:
                start = first
            end = last
    if end > start:
        yield start, end


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield spans of at most ``MAX_CHARS`` characters, cut at spaces."""
    while end - start > MAX_CHARS:
        space = text.rfind(" ", start + 1, start + MAX_CHARS)
        stop = space if space > 0 else start + MAX_CHARS
        yield start, stop
        start = stop + 1 if space > 0 else stop
    if end > start:
        yield start, end
