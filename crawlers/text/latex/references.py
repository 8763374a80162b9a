r"""References and citations of LaTeX papers, replaced by what a reader sees.

``\ref`` and its kin become numbers. A label that the paper lacks leaves a HOLE. A citation beside a
sentence leaves GONE. In "as in \cite{a}", it is a word of the sentence. Then it becomes the authors
and the year if the bibliography states them, else a number in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from crawlers.text.latex.numbers import Mark, number_labels
from crawlers.text.latex.shield import GONE, HOLE

_REFERENCE = re.compile(
    r"(?P<on_page>(?:\b(?:on|see)[\s~]{1,9})?\bp(?:age|\.)[\s~]{0,9})?\\(?P<page>pageref)\*?"
    r"\s*\{[^{}]*\}"
    r"|\\(?P<macro>(?:eq|auto|Auto|c|C|v|V|f|F|labelc|sub|name|Name|full)?ref|[cC]refrange)\*?"
    r"\s*(?:\[[^\]]{0,500}\])?\s*\{(?P<keys>[^{}]*)\}(?:(?<=[^f])\s*\{(?P<last>[^{}]*)\})?"
)
_BIBITEM = re.compile(
    r"\\bibitem\s*(?:\[(?P<label>(?:[^\[\]{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*+)\])?"
    r"\s*\{(?P<key>[^{}]+)\}"
)
_AUTHORS_AND_YEAR = re.compile(r"(?P<authors>[^()]+?)\s*\((?P<year>\d{4}[a-z]?)\)")
_CITATION = re.compile(
    r"\\(?P<macro>[A-Za-z]*[cC]ite[A-Za-z]*)\*?"
    r"(?P<groups>(?:(?:\s*\[[^\]]{0,500}\]){0,2}\s*\{[^{}]*\})+)"
)
_TEXTUAL = re.compile(r"citet|citeau|citeas|citeyear|textcite|shortcite")
_KEYS = re.compile(r"\{([^{}]*)\}")
# Words after which a citation is a noun.
_BEFORE_NOUN = re.compile(
    r"(?:\A|[\s~(])(?:also|and|another|are|as|at|both|by|cf\.|e\.g\.,?|following|for|from|i\.e\.,?"
    r"|in|is|like|of|on|or|references?|refs?\.|see|than|that|through|to|under|using|via|were"
    r"|whereas|while|with)\Z",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(r"(?:\A|[.:;?!][\s~]|\n\s*\n|\\item(?:\s|\[[^\]]{0,500}\]))[\s~]*\Z")
_VERB = re.compile(r"[\s~]*[a-z]")
_BETWEEN = re.compile(r"[\s~]*(?:,?[\s~]*(?:and|or)|[,;&]|-{1,2})?[\s~]*")
_CONTEXT = 60  # characters before a citation that are looked at


def resolve_references(source: str) -> str:
    """Replace references by numbers, and page numbers by GONE."""
    marks = number_labels(source)
    # The braces keep a number apart from the name of a macro, as in \S\ref{a}.
    return _REFERENCE.sub(lambda found: f"{{{_refer(found, marks)}}}", source)


def _refer(found: re.Match[str], marks: Mapping[str, Mark]) -> str:
    if found["page"]:
        return GONE if found["on_page"] else HOLE
    macro = found["macro"].lower()
    named = [marks.get(key.strip()) for key in f"{found['keys']},{found['last'] or ''}".split(",")
             if key.strip()]  # fmt: skip
    known = [mark for mark in named if mark is not None and mark.number]
    if macro == "nameref" and named and named[0] is not None and named[0].title:
        return named[0].title
    if not known or len(known) < len(named) or macro == "nameref":
        return HOLE
    if macro in {"ref", "labelcref", "vref", "subref"}:
        return _list([mark.number for mark in known])
    if macro == "eqref":
        return _list([f"({mark.number})" for mark in known])
    is_range = macro == "crefrange"
    numbers = [f"({mark.number})" if mark.kind == "Equation" else mark.number for mark in known]
    kind = known[0].kind if len(known) == 1 else _plural(known[0].kind)
    return f"{kind} {' to '.join(numbers) if is_range else _list(numbers)}"


def _plural(kind: str) -> str:
    return re.sub("ys$", "ies", re.sub("ixs$", "ices", f"{kind}s"))


def _list(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class Bibliography:
    """Numbers of works in the order of the bibliography, else of their first citation."""

    def __init__(self, sources: Iterable[str]) -> None:
        self._numbers: dict[str, int] = {}
        self._works: dict[str, tuple[str, str]] = {}  # key: authors and year
        for item in (item for source in sources for item in _BIBITEM.finditer(source)):
            key = item["key"].strip()
            self._numbers.setdefault(key, len(self._numbers) + 1)
            label = re.sub(
                r"[{}]|\\(?:citenamefont|natexlab|bibnamefont)\s*", "", item["label"] or ""
            )
            if work := _AUTHORS_AND_YEAR.match(label):
                self._works[key] = (work["authors"].strip(), work["year"])

    def cite(self, keys: list[str], macro: str) -> str:
        """Return the words that a citation within a sentence shows."""
        works = [self._works[key] for key in keys if key in self._works]
        for key in keys:
            self._numbers.setdefault(key, len(self._numbers) + 1)
        if "year" in macro:
            return _list([year for _, year in works]) if works else GONE
        if not works or len(works) < len(keys):
            return f"[{', '.join(str(self._numbers[key]) for key in keys)}]"
        if "author" in macro:
            return _list([authors for authors, _ in works])
        return _list([f"{authors} ({year})" for authors, year in works])


def resolve_citations(source: str, bibliography: Bibliography) -> str:
    """Replace citations by names or numbers where a sentence needs them, else by GONE."""
    pieces, position, was_noun = [], 0, False
    for found in _CITATION.finditer(source):
        macro = found["macro"].lower()
        keys = [
            key.strip()
            for keys in _KEYS.findall(found["groups"])
            for key in keys.split(",")
            if key.strip()
        ]
        if "no" in macro:  # \nocite and the like
            is_noun = False
        elif _TEXTUAL.match(macro):
            is_noun = True
        elif position and _BETWEEN.fullmatch(source, position, found.start()):
            is_noun = was_noun
        else:
            is_noun = _is_noun(source, max(position, found.start() - _CONTEXT), found)
        text = bibliography.cite(keys, macro)
        pieces += [source[position : found.start()], f"{{{text}}}" if is_noun else GONE]
        position, was_noun = found.end(), is_noun
    return "".join([*pieces, source[position:]])


def _is_noun(source: str, start: int, citation: re.Match[str]) -> bool:
    """Return True if a sentence needs a citation; ``start`` is where the text before it begins."""
    before = source[start : citation.start()]
    if _BEFORE_NOUN.search(before.rstrip(" \n\t~")):
        return True
    return bool(_SENTENCE_START.search(before) and _VERB.match(source, citation.end()))
