"""The text of a README: its prose, headings, lists and code, in the markup that it is written in.

Markdown is kept, since that is how READMEs are written and read; what is left out says nothing in
words: images and badges, HTML tags, comments, link targets (a link's words stay), and definitions
of links. Of reStructuredText likewise: image directives, comments, targets. Code stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.errors import ItemUnavailable
from crawlers.cleaning import normalise, strip_markup

MAX_LINE_CHARS = 4000  # a longer line is left as it is: no one wrote it, and patterns take time

_NAMES = ("readme.md", "readme.markdown", "readme.rst", "readme.txt", "readme")

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_INLINE_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,500}?)(?<!`)\1(?!`)")
# Brackets in a link's words may be nested once; targets may hold parentheses, once nested, too.
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
    """Return the README among the files of a top folder, Markdown before others, or None."""
    by_name = {path.lower(): path for path in sorted(paths, reverse=True)}
    return next((by_name[name] for name in _NAMES if name in by_name), None)


def read_readme(path: str, content: bytes) -> str:
    """Return a README's text.

    Args:
        path: its end says which markup it is.
        content: as it is in the repository.

    Raises:
        ItemUnavailable: binary, or not in UTF-8.
    """
    if b"\0" in content:
        raise ItemUnavailable("binary", "contains NUL bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ItemUnavailable("parse_error", f"not UTF-8: {error}") from error
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
    """Add a line that is no code; what was cut out leaves one blank line, not several."""
    if line.strip() or (kept and kept[-1].strip()):
        kept.append(line.rstrip())


def _begins_code(kept: list[str]) -> bool:
    """Tell an indented block of code from the rest of a list's item: a blank line is before it."""
    before = next((line for line in reversed(kept) if line.strip()), "")
    is_list = re.match(r"\s*([-*+]|\d{1,9}[.)])\s", before) is not None
    return not is_list and (not kept or not kept[-1].strip() or kept[-1].startswith(("    ", "\t")))


def _plain(line: str) -> str:
    """Return a line without images and link targets; what is in backticks stays."""
    if len(line) > MAX_LINE_CHARS:
        return line
    pieces, position = [], 0
    for code in _INLINE_CODE.finditer(line):
        if _is_in_link(line, code.start()):
            continue
        pieces += [_unlink(line[position : code.start()]), code[0]]
        position = code.end()
    return "".join([*pieces, _unlink(line[position:])])


def _is_in_link(line: str, position: int) -> bool:
    """Whether a link's words are open at a position, so that it must be read as a whole."""
    return line.count("[", 0, position) > line.count("]", 0, position)


def _unlink(text: str) -> str:
    text = _IMAGE.sub("", text)
    text = _LINK.sub(lambda link: link[1].strip(), text)
    return _AUTOLINK.sub(r"\1", text)


def _read_rst(lines: list[str]) -> list[str]:
    kept: list[str] = []
    is_cut = False  # in a directive or comment that is left out, with what is indented under it
    for line in lines:
        if is_cut and (not line.strip() or line[0] in " \t"):
            continue
        is_cut = line == ".." or _RST_BLOCK.match(line) is not None
        if is_cut:
            continue
        if len(line) > MAX_LINE_CHARS:
            kept.append(line)
            continue
        line = _RST_CODE.sub("", line)
        line = _RST_ROLE.sub(r"\1", _RST_LINK.sub(r"\1", line))
        _append(kept, _RST_SUBSTITUTION.sub("", line))
    return kept
