"""Files of repositories: source code, licences and READMEs.

The text of a README is its prose, headings, lists and code, still in Markdown or reStructuredText.
Images, badges, HTML tags, comments, link targets, link definitions and image directives are
removed. The words of links are kept, and code stays unchanged.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from core.errors import ItemUnavailable
from crawlers.text.cleaning import normalise, strip_markup

MAX_LINE_CHARS = 1000  # a longer line is data or minified code
MAX_MEAN_LINE_CHARS = 100
LICENCE_FILE = re.compile(r"((MIT|BSD)-)?(LICEN[CS]E|COPYING)([.-].*)?", re.IGNORECASE)
# Languages by suffix. Other files (data, lock files, notebooks, pages) are not fetched.
LANGUAGES = {
    ".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cs": "csharp", ".cxx": "cpp", ".ex": "elixir",
    ".exs": "elixir", ".go": "go", ".h": "c", ".hh": "cpp", ".hpp": "cpp", ".java": "java",
    ".jl": "julia", ".js": "javascript", ".jsx": "javascript", ".kt": "kotlin",
    ".mjs": "javascript", ".php": "php", ".py": "python", ".rb": "ruby", ".rs": "rust",
    ".swift": "swift", ".ts": "typescript", ".tsx": "typescript",
}  # fmt: skip

_MAX_COMPARISONS = 200_000  # maximum comparisons of lines; difflib needs 0.1 s for them
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
    """The share of a file that has changed, from 0 (nothing) to 1 (everything)."""

    value: float
    is_lower_bound: bool


def language_of(path: str) -> str | None:
    """Return the programming language of a path's suffix, such as ``python``, or None."""
    return LANGUAGES.get(PurePosixPath(path).suffix.lower())


def blob_id(content: bytes) -> str:
    """Return the id (SHA-1) that git gives to a file's contents."""
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def changed_ratio(old: str, new: str) -> Ratio:
    """Return 1 - 2 * matching lines / (old lines + new lines).

    Matching lines are found by difflib (without autojunk), in quadratic time or more. In large
    files, lines are matched regardless of their order. This can only find more matches, so the
    ratio is then a lower bound.
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
    """Return the SPDX id of a repository's licence files: MIT, BSD-2-Clause or BSD-3-Clause.

    Return None for other licences, and if a file offers other terms (GPL, Apache, …) as a choice.
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
    """Return the text of a hand-written source file; ``content`` None means too large.

    Raise ItemUnavailable with a drop reason if the file is too large, binary, not UTF-8, vendored,
    generated or minified.
    """
    if content is None:
        raise ItemUnavailable("too_large", "larger than a source file that people write")
    text = _decode(content)
    if why := _why_not_written(path, text):
        raise ItemUnavailable("generated_code", why)
    return text


def _decode(content: bytes) -> str:
    if b"\0" in content:
        raise ItemUnavailable("binary", "contains NUL bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ItemUnavailable("parse_error", f"not UTF-8: {error}") from error


def _why_not_written(path: str, text: str) -> str | None:
    if vendored := _VENDORED.intersection(PurePosixPath(path).parts[:-1]):
        return f"vendored: lies in {min(vendored)}/"
    if ".min." in PurePosixPath(path).name:
        return "minified: its name says so"
    if text.lstrip()[:5].lower() == "<?xml":  # Qt's XML translations also end in .ts
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


_MAX_PATTERN_CHARS = 4000  # a longer line stays unchanged, to limit the time of matching

_NAMES = ("readme.md", "readme.markdown", "readme.rst", "readme.txt", "readme")

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_INLINE_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,500}?)(?<!`)\1(?!`)")
# Brackets in a link's words, and parentheses in its target, may be nested one level deep.
_TARGET = r"(?:\((?:[^()\n]|\([^()\n]{0,200}\)){0,1000}\)|\[[^\]\n]{0,200}\])"
_IMAGE = re.compile(rf"!\[(?:[^\[\]\n]|\[[^\[\]\n]{{0,200}}\]){{0,500}}\]{_TARGET}")
_LINK = re.compile(rf"(?<![!\\])\[((?:[^\[\]\n]|\[[^\[\]\n]{{0,200}}\]){{0,500}})\]{_TARGET}")
_DEFINITION = re.compile(r" {0,3}\[[^\]\n]{1,200}\]:[ \t]+\S.*")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>\s]{1,1000})>")

_RST_BLOCK = re.compile(
    r"\.\. (?:\|[^|\n]{1,200}\| )?(?:image|figure|raw|contents|toctree|include)::|\.\. \[|\.\. _"
    r"|\.\. (?!\S+::)"
)
_RST_CODE = re.compile(r"\.\. (code|code-block|sourcecode|note|tip|warning|important)::[ \t]*\S*")
_RST_LINK = re.compile(r"`([^`<\n]{1,300}?)[ \t]*<[^<>`\n]{1,1000}>`__?")
_RST_ROLE = re.compile(r":[a-z:+-]{1,40}:`~?([^`\n]{1,300})`")
_RST_SUBSTITUTION = re.compile(r"\|[A-Za-z0-9][^|\n]{0,100}\|_{0,2}")


def find_readme(paths: Iterable[str]) -> str | None:
    """Return the README among the paths of a top folder, preferably Markdown, or None."""
    by_name = {path.lower(): path for path in sorted(paths, reverse=True)}
    return next((by_name[name] for name in _NAMES if name in by_name), None)


def read_readme(path: str, content: bytes) -> str:
    """Return a README's text, or raise ItemUnavailable; ``.rst`` is reStructuredText."""
    text = _decode(content)
    lines = strip_markup(normalise(text)).split("\n")
    is_rst = path.lower().endswith(".rst")
    kept = _read_rst(lines) if is_rst else _read_markdown(lines)
    return "\n".join(kept).strip()


def _read_markdown(lines: list[str]) -> list[str]:
    kept, fence = [], ""
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            kept.append(line)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
            kept.append(line)
        elif line.startswith(("    ", "\t")) and _begins_code(kept):
            kept.append(line)
        elif not _DEFINITION.fullmatch(line):
            plain = _plain(line)
            if plain.strip(" \t|-*") or not line.strip() or plain == line:
                _append(kept, plain)
    return kept


def _append(kept: list[str], line: str) -> None:
    if line.strip() or (kept and kept[-1].strip()):
        kept.append(line.rstrip())


def _begins_code(kept: list[str]) -> bool:
    """Return True if an indented line is code: after a blank line, and not in a list item."""
    before = next((line for line in reversed(kept) if line.strip()), "")
    is_list = re.match(r"\s*([-*+]|\d{1,9}[.)])\s", before) is not None
    return not is_list and (not kept or not kept[-1].strip() or kept[-1].startswith(("    ", "\t")))


def _plain(line: str) -> str:
    """Return a line without images and link targets; text in backticks stays unchanged."""
    if len(line) > _MAX_PATTERN_CHARS:
        return line
    pieces, position = [], 0
    for code in _INLINE_CODE.finditer(line):
        if _is_in_link(line, code.start()):
            continue
        pieces += [_unlink(line[position : code.start()]), code[0]]
        position = code.end()
    return "".join([*pieces, _unlink(line[position:])])


def _is_in_link(line: str, position: int) -> bool:
    """Return True if a position is inside a link's brackets, where the line must not be split."""
    return line.count("[", 0, position) > line.count("]", 0, position)


def _unlink(text: str) -> str:
    text = _IMAGE.sub("", text)
    text = _LINK.sub(lambda link: link[1].strip(), text)
    return _AUTOLINK.sub(r"\1", text)


def _read_rst(lines: list[str]) -> list[str]:
    kept: list[str] = []
    is_cut = False  # True in a removed directive or comment, and in its indented lines
    for line in lines:
        if is_cut and (not line.strip() or line[0] in " \t"):
            continue
        is_cut = line == ".." or _RST_BLOCK.match(line) is not None
        if is_cut:
            continue
        if len(line) > _MAX_PATTERN_CHARS:
            kept.append(line)
            continue
        line = _RST_CODE.sub("", line)
        line = _RST_ROLE.sub(r"\1", _RST_LINK.sub(r"\1", line))
        _append(kept, _RST_SUBSTITUTION.sub("", line))
    return kept
