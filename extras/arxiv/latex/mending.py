"""Mending of the sentences of a paper from which citations and references were removed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from extras.arxiv.latex.shield import GONE, HOLE

_RUN = re.compile(rf"{GONE}(?:[\s,;&–—-]*(?:(?:and|or|to)\s+)?{GONE})+")
_PARENTHESIS = re.compile(
    r" ?(?:\((?P<round>(?:[^()\[\]]|\[[^()\[\]]*\])*+)\)|\[(?P<square>[^()\[\]]*)\])"
)
# Words that alone make no parenthesis, such as "(see also …, and references therein)".
_FILLER = re.compile(
    r"\b(?:see|also|and|or|e\.g|i\.e|cf|for|example|an?|the|in|as|by|recent|reviews?|overview"
    r"|references?|refs?|therein|hereafter|instance)\b|[\W_]+"
)
_EDGES = re.compile(r"\A[\s,;:]+|[\s,;:]+\Z")
_EMPTY = re.compile(r"(?<=\s)\([\s,;.]*\)")
_REPAIRS = (
    (re.compile(rf"([,;])\s*{GONE}\s*[,;]"), r"\1"),
    (re.compile(rf"[,;]\s*{GONE}\s*(?=[.:!?)]|\Z)"), ""),
    (re.compile(rf"(?<=\w\.)\s*{GONE}\s*\.(?![\w.])"), ""),  # "et al. [1]."
    (re.compile(GONE), ""),
    (_EMPTY, ""),
    (re.compile(r"\b(e\.g|i\.e|etc|al|vs|cf)\.\.(?!\.)"), r"\1."),
    (re.compile(r"(?<!\w)`([^`\n]{1,300}?)'(?!\w)"), "‘\\1’"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"\s(?=[,;:!?)\]](?!\w)|\.(?![\w.]))|(?<=[(\[])\s"), ""),
)
_SENTENCE_END = re.compile(r"[.!?][”’)\]]{0,2}\s(?=[\W\dA-Z])")
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|cf|figs?|eqs?|eqns?|sect?s?|refs?|tab|al|vs|etc|dr|st|resp|no|pp?|[a-z])\.\Z",
    re.IGNORECASE,
)
_IS_TEXT = re.compile("[^\\W_]|[\U000f0000-\U000ffffd]")


def mend(paragraph: str) -> str:
    """Return a paragraph, on one line, without marks of what was removed.

    Parentheses of which only fillers remain are removed, and so are spaces before punctuation. A
    reference without a number costs its parenthesis, else its sentence. The result is empty if no
    word or formula remains.
    """
    paragraph = _RUN.sub(GONE, " ".join(paragraph.split()))
    paragraph = _PARENTHESIS.sub(_mend_parenthesis, paragraph)
    if HOLE in paragraph:
        paragraph = " ".join(part for part in _split(paragraph) if HOLE not in part)
    for pattern, replacement in _REPAIRS:
        paragraph = pattern.sub(replacement, paragraph)
    return paragraph.strip() if _IS_TEXT.search(paragraph) else ""


def _mend_parenthesis(found: re.Match[str]) -> str:
    """Return a bracket without what was removed in it; drop it if nothing else is left."""
    inner = found["round"] or found["square"] or ""
    if GONE not in inner and HOLE not in inner:
        return found[0]
    if not _FILLER.sub("", inner):
        return f" {HOLE}" if HOLE in inner else ""  # "Eq. ()" is a hole in the sentence
    if HOLE in inner:
        return ""
    for pattern, replacement in _REPAIRS[:4]:
        inner = pattern.sub(replacement, inner)
    opening, closing = ("(", ")") if found["round"] else ("[", "]")
    return f" {opening}{_EDGES.sub('', inner)}{closing}"


def _split(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph."""
    start = 0
    for end in _SENTENCE_END.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph, max(start, end.start() - 10), end.start() + 1):
            yield paragraph[start : end.end() - 1]
            start = end.end()
    yield paragraph[start:]
