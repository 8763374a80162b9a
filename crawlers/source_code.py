"""Source files: under which licence, written by people or not, and how much of them is new."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from pathlib import PurePosixPath
from typing import NamedTuple

from core.errors import ItemUnavailable

MAX_LINE_CHARS = 1000  # a longer line is data or minified code
MAX_MEAN_LINE_CHARS = 100
LICENCE_FILE = re.compile(r"((MIT|BSD)-)?(LICEN[CS]E|COPYING)([.-].*)?", re.IGNORECASE)
# By the end of a file's name; what has another is not asked for: data, lockfiles, notebooks, pages.
LANGUAGES = {
    ".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cs": "csharp", ".cxx": "cpp", ".ex": "elixir",
    ".exs": "elixir", ".go": "go", ".h": "c", ".hh": "cpp", ".hpp": "cpp", ".java": "java",
    ".jl": "julia", ".js": "javascript", ".jsx": "javascript", ".kt": "kotlin",
    ".mjs": "javascript", ".php": "php", ".py": "python", ".rb": "ruby", ".rs": "rust",
    ".swift": "swift", ".ts": "typescript", ".tsx": "typescript",
}  # fmt: skip

_MAX_COMPARISONS = 200_000  # of lines; difflib needs about 0.1 s for them
_VENDORED = {
    "_vendor", "_vendored", "extern", "externals", "node_modules", "site-packages", "third-party",
    "third_party", "vendor", "vendored",
}  # fmt: skip
_GENERATED = re.compile(
    r"^\W.*(@generated|\bgenerated (by|from|with|automatically)|(auto|automatically)[- ]?generated"
    r"|do not edit|don't edit)",
    re.IGNORECASE,
)
_GENERATED_WITHIN_LINES = 10
_MIT = re.compile(r"permission is hereby granted, free of charge, to any person obtaining a copy")
_BSD = re.compile(
    r"redistribution and use in source and binary forms.{0,60}, with or without modification"
)
_OTHER_TERMS = re.compile(
    r"general public license|apache license|mozilla public license|all advertising materials"
    r"|commons clause|non-?commercial"
)


class Ratio(NamedTuple):
    """How much of a file has changed: 0 nothing, 1 everything."""

    value: float
    is_lower_bound: bool


def language_of(path: str) -> str | None:
    """Return the programming language that a file's name tells, such as ``python``, or None."""
    return LANGUAGES.get(PurePosixPath(path).suffix.lower())


def blob_id(content: bytes) -> str:
    """Return git's id of a file's contents."""
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def changed_ratio(old: str, new: str) -> Ratio:
    """Return 1 - 2 * matching lines / (old lines + new lines).

    Matching lines are those of difflib's matching blocks (autojunk off). Its time grows with the
    square of repeated lines and worse; files beyond a bound on that are compared without regard to
    the order of lines, which can only find more matches: the ratio is then a lower bound.
    """
    before, after = old.splitlines(), new.splitlines()
    total = len(before) + len(after)
    if total == 0:
        return Ratio(0.0, is_lower_bound=False)
    counts, other_counts = Counter(before), Counter(after)
    is_large = sum(n * other_counts[line] for line, n in counts.items()) > _MAX_COMPARISONS
    if is_large:
        matching = (counts & other_counts).total()
    else:
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        matching = sum(block.size for block in matcher.get_matching_blocks())
    return Ratio(1 - 2 * matching / total, is_large)


def find_licence(texts: list[str]) -> str | None:
    """Return the SPDX identifier of a repository's licence files, where it is MIT or BSD.

    Args:
        texts: all licence files of the top folder; where one of them names other terms
            (GPL, Apache, …), the repository is not taken, even if it offers a choice.

    Returns:
        MIT, BSD-2-Clause or BSD-3-Clause; None for anything else.
    """
    plain = [re.sub(r"[\s*#>]+", " ", text).lower() for text in texts]
    if any(_OTHER_TERMS.search(text) for text in plain):
        return None
    for text in plain:
        if _BSD.search(text):
            return "BSD-3-Clause" if "endorse or promote" in text else "BSD-2-Clause"
        if _MIT.search(text):
            return "MIT"
    return None


def read_source(path: str, content: bytes | None) -> str:
    """Return the text of a source file that people wrote.

    Args:
        path: in its repository.
        content: None where it is too large.

    Raises:
        ItemUnavailable: too large, binary, not UTF-8, vendored, generated or minified; the reason
            is a drop reason.
    """
    if content is None:
        raise ItemUnavailable("too_large", "larger than a source file that people write")
    if b"\0" in content:
        raise ItemUnavailable("binary", "contains NUL bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ItemUnavailable("parse_error", f"not UTF-8: {error}") from error
    if why := _why_not_written(path, text):
        raise ItemUnavailable("generated_code", why)
    return text


def _why_not_written(path: str, text: str) -> str | None:
    if vendored := _VENDORED.intersection(PurePosixPath(path).parts[:-1]):
        return f"vendored: lies in {min(vendored)}/"
    if ".min." in PurePosixPath(path).name:
        return "minified: its name says so"
    if text.lstrip()[:5].lower() == "<?xml":  # translations of Qt end in .ts, too
        return "data: XML"
    lines = text.splitlines()
    if any(_GENERATED.match(line) for line in lines[:_GENERATED_WITHIN_LINES]):
        return "generated: says so at its top"
    longest = max(map(len, lines), default=0)
    if longest > MAX_LINE_CHARS:
        return f"minified: a line of {longest} characters"
    if lines and len(text) / len(lines) > MAX_MEAN_LINE_CHARS:
        return f"minified: {len(text) / len(lines):.0f} characters a line"
    return None
