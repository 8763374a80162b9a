r"""References and citations of LaTeX papers, replaced by what a reader sees.

``\ref`` and its kin become numbers. A label that the paper lacks leaves a HOLE. A citation beside a
sentence leaves GONE. In "as in \cite{a}", it is a word of the sentence. Then it becomes the authors
and the year if the bibliography states them, else a number in brackets.

Counters of sections, figures and so on step and are reset as in LaTeX, without its packages and
classes. So a number may differ from the printed one, such as IV for 4, but all references to one
thing agree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from extras.arxiv.latex.macros import match_braces
from extras.arxiv.latex.scanning import next_token
from extras.arxiv.latex.shield import GONE, HOLE

_REFERENCE = re.compile(
    r"\\(?P<page>pageref)\*?\s*\{[^{}]*\}"
    r"|\\(?P<macro>(?:eq|auto|Auto|c|C|v|V|f|F|labelc|sub|name|Name|full)?ref|[cC]refrange)\*?"
    r"\s*(?:\[[^\]]{0,500}\])?\s*\{(?P<keys>[^{}]*)\}(?:(?<=[^f])\s*\{(?P<last>[^{}]*)\})?"
)
_ON_PAGE = re.compile(r"(?:\b(?:on|see)[\s~]{1,9})?\bp(?:age|\.)[\s~]{0,9}\Z")
_MAX_ON_PAGE = 25  # characters
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
    pieces = []
    position = 0
    for found in _REFERENCE.finditer(source):
        before = source[position : found.start()]
        on_page = None
        if found["page"]:
            on_page = _ON_PAGE.search(before, max(0, len(before) - _MAX_ON_PAGE))
            text = GONE if on_page else HOLE
        else:
            text = _refer(found, marks)
        # The braces keep a number apart from the name of a macro, as in \S\ref{a}.
        pieces += [before[: on_page.start()] if on_page else before, f"{{{text}}}"]
        position = found.end()
    return "".join([*pieces, source[position:]])


def _refer(found: re.Match[str], marks: Mapping[str, Mark]) -> str:
    """Return the text of a reference such as "Figures 1 and 2"; HOLE if a label is unknown."""
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
            work = _AUTHORS_AND_YEAR.match(label)
            if work:
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
    pieces = []
    position = 0
    was_noun = False
    for found in _CITATION.finditer(source):
        macro = found["macro"].lower()
        given = ",".join(_KEYS.findall(found["groups"]))
        keys = [key.strip() for key in given.split(",") if key.strip()]
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
        position = found.end()
        was_noun = is_noun
    return "".join([*pieces, source[position:]])


def _is_noun(source: str, start: int, citation: re.Match[str]) -> bool:
    """Return True if a sentence needs a citation; ``start`` is where the text before it begins."""
    before = source[start : citation.start()]
    if _BEFORE_NOUN.search(before.rstrip(" \n\t~")):
        return True
    return bool(_SENTENCE_START.search(before) and _VERB.match(source, citation.end()))


class Mark(NamedTuple):
    """The thing that a label names; the number is empty if nothing is numbered yet."""

    kind: str  # such as Figure
    number: str
    title: str = ""  # of a section, as markup


_COUNTERS = {  # environments that are numbered: kind, counter
    **dict.fromkeys(("equation", "multline", "dmath"), ("Equation", "equation")),
    **dict.fromkeys(("figure", "wrapfigure", "sidewaysfigure"), ("Figure", "figure")),
    **dict.fromkeys(("table", "wraptable", "sidewaystable", "longtable"), ("Table", "table")),
    "deluxetable": ("Table", "table"),
    "subfigure": ("Figure", "subfigure"),
    "subtable": ("Table", "subtable"),
    "algorithm": ("Algorithm", "algorithm"),
    "listing": ("Listing", "listing"),
}
_ALIGNED = ("align", "gather", "eqnarray", "flalign", "alignat", "IEEEeqnarray")
_COUNTERS |= dict.fromkeys(_ALIGNED, ("Equation", "equation"))  # each line is numbered
_PARENTS = {"subsection": "section", "subsubsection": "subsection"}
_PARENTS |= {"subfigure": "figure", "subtable": "table"}
_LETTERS = ("subfigure", "subtable")
_STEP = next_token(
    r"\\(?P<heading>chapter|(?:sub){0,2}section)(?P<is_unnumbered>\*?)\s*(?:\[[^\]]{0,500}\])?\s*(?=\{)"
    r"|\\begin\s*\{\s*(?P<begin>[A-Za-z]+)(?P<star>\*?)\s*\}|\\(?P<end>end)\s*\{[^{}]*\}"
    r"|\\label\s*(?:\[[^\]]{0,500}\])?\s*\{(?P<label>[^{}]*)\}|\\tag\*?\s*\{(?P<tag>[^{}]*)\}"
    r"|\\(?P<word>appendix|nonumber|notag|item|caption|subfloat|listingnumber)(?![A-Za-z])"
    r"|(?P<line>\\\\)(?!\s*\\end)",
    "",
    r"chapter|(?:sub){0,2}section|begin|end|label|tag|appendix|nonumber|notag|item|caption|subfloat"
    r"|listingnumber|\\",
)
_THEOREM = re.compile(
    r"\\(?:newtheorem|spnewtheorem)\s*\{\s*(?P<name>\w+)\s*\}\s*(?:\[\s*(?P<shared>\w+)\s*\])?"
    r"\s*\{(?P<title>[^{}]*)\}\s*(?:\[\s*(?P<within>\w+)\s*\])?"
)
_WITHIN = re.compile(r"\\(?:numberwithin|counterwithin)\s*\{(\w+)\}\s*\{(\w+)\}")


def number_labels(source: str) -> dict[str, Mark]:
    """Return what each label of a paper names."""
    counters = _Counters(source)
    for step in _STEP.finditer(source):
        counters.take(step)
    return counters.marks


class _Counters:
    def __init__(self, source: str) -> None:
        self.marks: dict[str, Mark] = {}
        self._source = source
        self._ends = match_braces(source)
        self._counts: Counter[str] = Counter()
        self._parents = dict(_PARENTS)
        self._environments = dict(_COUNTERS)
        self._top = "chapter" if re.search(r"\\chapter\b", source) else "section"
        if self._top == "chapter":
            inner = ("section", "figure", "table", "equation")
            self._parents |= dict.fromkeys(inner, "chapter")
        for name, within in _WITHIN.findall(source):
            self._parents[name] = within
        for found in _THEOREM.finditer(source):
            name = found["name"]
            shared = self._environments.get(found["shared"] or "", ("", found["shared"] or name))
            self._environments[name] = (found["title"].strip() or name, shared[1])
            if found["within"]:
                self._parents[name] = found["within"]
        # depth of numbered lists
        self._is_appendix = False
        self._depth = 0
        self._current = Mark("", "")
        # Environments, with what was current before each and at its beginning.
        self._open: list[tuple[str, Mark, Mark]] = []

    def take(self, step: re.Match[str]) -> None:
        """Move the counters on by one heading, environment, label or line."""
        if step["heading"]:
            self._head(step["heading"], step.end(), bool(step["is_unnumbered"]))
        elif step["begin"]:
            self._begin(step["begin"], bool(step["star"]))
        elif step["end"] and self._open:
            name, self._current, _ = self._open.pop()
            self._depth -= name == "enumerate"
        elif step["label"]:
            self.marks[step["label"].strip()] = self._current
        elif step["tag"]:
            self._current = Mark("Equation", step["tag"])
        elif step["word"]:
            self._word(step["word"])
        elif step["line"] and self._open and self._open[-1][0] in _ALIGNED:
            self._step("Equation", "equation")

    def _head(self, level: str, start: int, is_unnumbered: bool) -> None:
        """Count a chapter or section; an unnumbered one only has a title."""
        title = self._source[start + 1 : self._ends.get(start, start) - 1]
        if is_unnumbered:
            self._current = self._current._replace(title=title)
            return
        kind = "Chapter" if level == "chapter" else "Section"
        self._step("Appendix" if self._is_appendix and level == self._top else kind, level, title)

    def _begin(self, name: str, has_star: bool) -> None:
        """Count the beginning of an environment; equations with a star have no number."""
        before = self._current
        kind, counter = self._environments.get(name, ("", ""))
        if kind and not (kind == "Equation" and has_star):
            self._step(kind, counter)
        elif name == "enumerate":
            self._depth += 1
            self._counts[f"item{self._depth}"] = 0
        elif name == "appendices":
            self._word("appendix")
        self._open.append((name if not has_star else f"{name}*", before, self._current))

    def _word(self, word: str) -> None:
        r"""Change the counts as a command such as ``\appendix`` or ``\item`` does."""
        if word == "appendix":
            self._is_appendix = True
            self._counts[self._top] = 0
        elif word == "listingnumber":
            self._step("Listing", "listing")
        elif word == "subfloat":
            self._step(
                self._current.kind, "subtable" if self._current.kind == "Table" else "subfigure"
            )
        elif word == "caption" and self._open:
            self._current = self._open[-1][2]
        elif word == "item" and self._open and self._open[-1][0] == "enumerate":
            self._step("item", f"item{self._depth}")
        elif word in {"nonumber", "notag"} and self._current.kind == "Equation":
            self._counts["equation"] -= 1

    def _step(self, kind: str, counter: str, title: str = "") -> None:
        self._counts[counter] += 1
        self._reset(counter)
        self._current = Mark(kind, self._number(counter), title)

    def _reset(self, counter: str, depth: int = 0) -> None:
        for child, parent in self._parents.items():
            if parent == counter and depth < len(_PARENTS):  # a paper may form a cycle of counters
                self._counts[child] = 0
                self._reset(child, depth + 1)

    def _number(self, counter: str, depth: int = 0) -> str:
        """Return the number of a counter as LaTeX prints it: ``2.1``, ``A.3`` or ``4b``."""
        count = self._counts[counter]
        letter = chr(ord("a") + (count - 1) % 26)
        if counter in _LETTERS:
            own = letter
        elif counter == self._top and self._is_appendix:
            own = letter.upper()
        else:
            own = str(count)
        parent = self._parents.get(counter)
        if parent is None or depth > len(_PARENTS):
            return own
        dot = "" if counter in _LETTERS else "."
        return f"{self._number(parent, depth + 1)}{dot}{own}"
