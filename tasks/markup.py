"""Text from outside, for places that read Markdown: it is shown as it is."""

from __future__ import annotations

import hashlib
import re

# With a backslash before it, ASCII punctuation is itself: CommonMark, section 2.4.
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# What may begin markup, an entity or a link that nobody wrote. A dash, a dot or an underscore
# within a word does not: names stay readable where a table's cells are shown as plain text.
_RISKY = re.compile(
    r"([!\"#$%&'*+<=>?@\[\\\]^`{|}~]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|://|^[-+.)])"
)
_WWW = re.compile(r"(www)(?=\.)", re.IGNORECASE)
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_KEY_CHARS = 60


def plain(text: str) -> str:
    """Escape all that Markdown or HTML could read as anything but text; one line."""
    return _PUNCTUATION.sub(r"\\\1", _one_line(text))


def plain_cell(text: str) -> str:
    """As ``plain``, for a cell of a table: as few backslashes as safety allows.

    Prefect's older pages read cells as Markdown, its newer ones show them as they are.
    """
    return _WWW.sub(r"\1\\", _RISKY.sub(r"\\\1", _one_line(text)))


def _one_line(text: str) -> str:
    # Lone surrogates, of names typed in another encoding, have no UTF-8.
    shown = text.encode("utf-8", "replace").decode()
    return _SPACES.sub(" ", shown).strip()


def key_of(*parts: str) -> str:
    """Return the key of an artifact: lower case, digits, dashes; the same for the same parts.

    Where that says less than the parts did, the digest at its end tells it from others.
    """
    words = "-".join(("tidemark", *parts))
    slug = re.sub("[^a-z0-9]+", "-", words.lower()).strip("-")
    if slug == words and len(slug) <= _KEY_CHARS:
        return slug
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[:_KEY_CHARS].rstrip('-')}-{digest}"
