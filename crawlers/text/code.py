"""Files of repositories: source code, licences and READMEs.

The text of a README is its prose, headings, lists and code, still in Markdown or reStructuredText.
Images, badges, HTML tags, comments, link targets, link definitions, image directives and the rules
of tables are removed. The words of links are kept, and code stays unchanged.
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
from crawlers.text.cleaning import drop_controls, strip_markup

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
    """Return the share of lines that differ: 1 - 2 * matching lines / (old lines + new lines)."""
    before = old.splitlines()
    after = new.splitlines()
    total = len(before) + len(after)
    if total == 0:
        return Ratio(0.0, is_lower_bound=False)
    counts = Counter(before)
    other_counts = Counter(after)
    is_large = sum(n * other_counts[line] for line, n in counts.items()) > _MAX_COMPARISONS
    if is_large:  # difflib takes quadratic time; matching in any order finds more matches
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
    text = decode_text(content)
    why = _why_not_written(path, text)
    if why:
        raise ItemUnavailable("generated_code", why)
    return text


def is_lfs_pointer(content: bytes) -> bool:
    """Return True for the file that Git LFS keeps in place of a large one."""
    return _LFS_POINTER.match(content) is not None


def decode_text(content: bytes) -> str:
    """Return UTF-8 text, or raise ItemUnavailable: ``binary`` or ``parse_error``."""
    if b"\0" in content:
        raise ItemUnavailable("binary", "contains NUL bytes")
    if is_lfs_pointer(content):
        raise ItemUnavailable("binary", "a pointer of Git LFS, which stands for another file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ItemUnavailable("parse_error", f"not UTF-8: {error}") from error


def _why_not_written(path: str, text: str) -> str | None:
    """Return why people did not write a source file (vendored, minified, …), or None."""
    vendored = _VENDORED.intersection(PurePosixPath(path).parts[:-1])
    if vendored:
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


_MAX_PATTERN_CHARS = 4000  # longer text stays unchanged, to limit the time of matching

_NAMES = ("readme.md", "readme.markdown", "readme.rst", "readme.txt", "readme")

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})")
_INDENTED = re.compile(r" {4}|\t")
_WORD = re.compile(r"\w")
_LFS_POINTER = re.compile(
    rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v\d+\r?\n"
    rb"(?:ext-[^\n]{1,200}\n){0,10}oid sha256:[0-9a-f]{64}\s"
)
_LIST_ITEM = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s")
_INLINE_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,500}?)(?<!`)\1(?!`)", re.DOTALL)
# Blocks between fences and words between backticks, in which tags are words.
_CODE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^[ \t]*(?P=fence)|\Z)"
    r"|(?<!`)(?P<ticks>`{1,3})(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL | re.MULTILINE,
)
_HIDDEN = str.maketrans("<&", "\ufdd0\ufdd1")  # noncharacters, which ``drop_controls`` removes
_SHOWN = str.maketrans("\ufdd0\ufdd1", "<&")
# Brackets in a link's words, and parentheses in its target, may be nested one level deep.
_TARGET = r"(?:\((?:[^()]|\([^()]{0,200}\)){0,1000}\)|\[[^\]]{0,200}\])"
_WORDS = r"\[((?:[^\[\]]|\[[^\[\]]{0,200}\]){0,500})\]"
_IMAGE = re.compile(rf"!{_WORDS}{_TARGET}")
_LINK = re.compile(rf"(?<![!\\]){_WORDS}{_TARGET}")
_DEFINITION = re.compile(r" {0,3}\[((?!\^)[^\]\n]{1,200})\]:[ \t]+\S.*")
_SHORT_LINK = re.compile(r"(?<![\\\w])(!?)\[([^\[\]]{1,200})\](?![\[(:])")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>\s]{1,1000})>")
_TABLE_RULE = re.compile(r"\s*(?:\|\s*)?(?::?-+:?\s*\|\s*)+(?::?-+:?\s*)?|\s*>\s*\[!\w{1,20}\]\s*")
_BREAK = re.compile(r" {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})")

_RST_BLOCK = re.compile(
    r"\.\. (?:\|[^|\n]{1,200}\| )?(?:image|figure|raw|contents|toctree|include|meta)::|\.\. \["
    r"|\.\. _|\.\. (?!\S+::)|__ "
)
_RST_DIRECTIVE = re.compile(r"\.\. [\w-]{1,40}::[ \t]*")
_RST_CODE = re.compile(r"\.\. (?:code|code-block|sourcecode|highlight|parsed-literal)::.*")
_RST_OPTION = re.compile(r"[ \t]+:[\w-]{1,40}:.*")
_RST_LINK = re.compile(r"`([^`<]{1,300}?)\s*<[^<>`]{1,1000}>`__?")
_RST_ROLE = re.compile(r":[a-z:+-]{1,40}:`~?([^`]{1,300})`")
_RST_NAME = re.compile(
    r"(?<![`\w:])`([^`<>\n]{1,200})`__?(?!\w)|\b([A-Za-z][\w.-]{0,100})__?(?!\w)"
)
_RST_TARGET = re.compile(r"\.\. _`?([^:`\n]{1,200})`?:")
_RST_REPLACEMENT = re.compile(r"\.\. \|([^|\n]{1,200})\| (?:replace::[ \t]*(.*)|\w+::.*)")
_MAX_REPLACEMENT = 200  # characters; a longer one, put in often, would fill the memory
_RST_SUBSTITUTION = re.compile(r"\|([^\s|][^|]{0,100})\|_{0,2}")
_RST_MARKS = re.compile(r"[`|]|[^\W_]_|[.-]_")  # all that is not plain text has one of them
_RST_TABLE_RULE = re.compile(r"\s*(?:=+(?:\s+=+)+|\+[-=+]+\+)\s*")


def find_readme(paths: Iterable[str]) -> str | None:
    """Return the README among the paths of a top folder, preferably Markdown, or None."""
    by_name = {path.lower(): path for path in sorted(paths, reverse=True)}
    return next((by_name[name] for name in _NAMES if name in by_name), None)


def read_readme(path: str, content: bytes) -> str:
    """Return a README's text, or raise ItemUnavailable; ``.rst`` is reStructuredText."""
    text = _CODE.sub(lambda code: code[0].translate(_HIDDEN), drop_controls(decode_text(content)))
    lines = strip_markup(text).translate(_SHOWN).split("\n")
    reader = _RstReader(lines) if path.lower().endswith(".rst") else _MarkdownReader(lines)
    for line in lines:
        reader.take(line)
    return reader.finish()


class _Reader:
    """Lines of a README that are kept; links may go over the lines of a paragraph."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._paragraph: list[str] = []
        self._num_chars = 0  # of the paragraph

    def finish(self) -> str:
        self._end_paragraph()
        return "\n".join(self._kept).strip()

    def _add(self, line: str) -> None:
        """Add a line to the paragraph; items of lists, and lines too many, begin another."""
        self._num_chars += len(line) + 1
        if self._num_chars > _MAX_PATTERN_CHARS or _LIST_ITEM.match(line):
            self._end_paragraph()
            self._num_chars = len(line) + 1
        self._paragraph.append(line)

    def _keep(self, line: str) -> None:
        """Keep a line as it is, but no more than one blank line after another."""
        if self._paragraph:
            self._end_paragraph()
        if line.strip() or (self._kept and self._kept[-1].strip()):
            self._kept.append(line.rstrip())

    def _end_paragraph(self) -> None:
        """Keep the paragraph's lines, with links and images replaced."""
        lines = self._paragraph
        text = "\n".join(lines)
        self._paragraph = []
        self._num_chars = 0
        plain = self._plain(text) if len(text) <= _MAX_PATTERN_CHARS else text
        if plain != text:
            # A line is left out if its links and pictures were all that it had.
            before = set(lines)
            lines = [line for line in plain.split("\n") if line in before or _WORD.search(line)]
        self._kept += [line.rstrip() for line in lines]

    def _plain(self, text: str) -> str:
        raise NotImplementedError


class _MarkdownReader(_Reader):
    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__()
        found = filter(None, map(_DEFINITION.fullmatch, lines))
        self._names = {definition[1].lower() for definition in found}
        self._fence = ""
        self._last = ""  # the last line that is not blank

    def take(self, line: str) -> None:
        """Keep a line, if it is not a link definition or a rule; code stays unchanged."""
        if not (line.strip() or self._fence):
            self._keep("")
            return
        mark = _FENCE.match(line)
        is_after_blank = not self._paragraph and not (self._kept and self._kept[-1].strip())
        if self._fence:
            self._kept.append(line)
            if mark and mark[1].startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
        elif mark:
            self._end_paragraph()
            self._fence = mark[1]
            self._kept.append(line)
        elif _INDENTED.match(line) and self._begins_code(is_after_blank):
            self._keep(line)
        elif not (
            _DEFINITION.fullmatch(line)
            or _TABLE_RULE.fullmatch(line)
            or (is_after_blank and _BREAK.fullmatch(line))
        ):
            self._add(line)
        self._last = line

    def _begins_code(self, is_after_blank: bool) -> bool:
        """Return True if an indented line is code: after a blank line, and not in a list item."""
        is_in_code = not self._paragraph and _INDENTED.match(self._last) is not None
        return (is_after_blank or is_in_code) and not _LIST_ITEM.match(self._last)

    def _plain(self, text: str) -> str:
        """Return text without images and link targets; text in backticks stays unchanged."""
        if "]" not in text and "<" not in text:
            return text
        pieces = []
        position = 0
        for code in _INLINE_CODE.finditer(text):
            if text.count("[", 0, code.start()) > text.count("]", 0, code.start()):
                continue  # in a link's brackets, where the text must not be split
            pieces += [self._unlink(text[position : code.start()]), code[0]]
            position = code.end()
        return "".join([*pieces, self._unlink(text[position:])])

    def _unlink(self, text: str) -> str:
        text = _LINK.sub(lambda link: self._shorten(link[1].strip()), _IMAGE.sub("", text))
        return _AUTOLINK.sub(r"\1", self._shorten(text))

    def _shorten(self, text: str) -> str:
        """Replace links of one pair of brackets by their words, and remove such images."""
        return _SHORT_LINK.sub(self._words_of, text)

    def _words_of(self, link: re.Match[str]) -> str:
        """Return a defined link's words, nothing for an image, and other brackets unchanged."""
        if link[2].lower() not in self._names:
            return link[0]
        return "" if link[1] else link[2]


class _RstReader(_Reader):
    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__()
        self._names: set[str] = set()
        self._replacements: dict[str, str] = {}
        for line in lines:
            target = _RST_TARGET.match(line)
            new = _RST_REPLACEMENT.match(line)
            if target:
                self._names.add(target[1].lower())
            elif new and len(new[2] or "") <= _MAX_REPLACEMENT:
                self._replacements[new[1].lower()] = new[2] or ""
        self._is_cut = False  # in a removed directive or comment, and in its indented lines
        self._is_code = False
        self._is_after_directive = False

    def take(self, line: str) -> None:
        """Keep a line, if it is not part of a removed directive or comment, or a table's rule."""
        if not line.strip():
            self._take_blank()
            return
        if self._is_cut and line[0] in " \t":
            return
        self._is_cut = line == ".." or _RST_BLOCK.match(line) is not None
        if self._is_cut or (self._is_after_directive and _RST_OPTION.fullmatch(line)):
            return
        if self._is_code and line[0] in " \t":
            self._keep(line)
            return
        directive = _RST_DIRECTIVE.match(line)
        is_code = _RST_CODE.fullmatch(line) is not None
        self._is_after_directive = directive is not None
        self._is_code = is_code or (directive is None and line.rstrip().endswith("::"))
        if is_code or line.strip() == "::":
            line = ""
        elif directive:
            line = line[directive.end() :]
        if not line.strip():
            self._keep("")
        elif not _RST_TABLE_RULE.fullmatch(line):
            self._add(line)

    def _take_blank(self) -> None:
        if self._is_cut:
            return
        if not self._is_code:
            self._is_after_directive = False
        self._keep("")

    def _plain(self, text: str) -> str:
        """Return text without roles, link targets and substitutions."""
        if not _RST_MARKS.search(text):
            return text
        text = _RST_ROLE.sub(r"\1", _RST_LINK.sub(r"\1", text))
        text = _RST_SUBSTITUTION.sub(
            lambda name: self._replacements.get(" ".join(name[1].lower().split()), name[0]), text
        )
        return _RST_NAME.sub(self._name, text)

    def _name(self, link: re.Match[str]) -> str:
        """Return the words of a link, without its marks; other matches stay unchanged."""
        name = link[1] or link[2]
        is_link = link[1] is not None or name.lower() in self._names
        return name if is_link else link[0]
