r"""Numbers of the sections, figures, formulas and so on that LaTeX's labels name.

Counters step and are reset as in LaTeX, without its packages and classes. So a number may differ
from the printed one, such as IV for 4, but all references to one thing agree.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from crawlers.text.latex.macros import match_braces


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
_STEP = re.compile(
    r"\\(?P<heading>chapter|(?:sub){0,2}section)(?P<is_unnumbered>\*?)\s*(?:\[[^\]]{0,500}\])?\s*(?=\{)"
    r"|\\begin\s*\{\s*(?P<begin>[A-Za-z]+)(?P<star>\*?)\s*\}|\\(?P<end>end)\s*\{[^{}]*\}"
    r"|\\label\s*(?:\[[^\]]{0,500}\])?\s*\{(?P<label>[^{}]*)\}|\\tag\*?\s*\{(?P<tag>[^{}]*)\}"
    r"|\\(?P<word>appendix|nonumber|notag|item|caption|subfloat|listingnumber)(?![A-Za-z])"
    r"|(?P<line>\\\\)(?!\s*\\end)|\\.",
    re.DOTALL,
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
        self._source, self._ends = source, match_braces(source)
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
        self._is_appendix, self._depth = False, 0  # depth of numbered lists
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
        title = self._source[start + 1 : self._ends.get(start, start) - 1]
        if is_unnumbered:
            self._current = self._current._replace(title=title)
            return
        kind = "Chapter" if level == "chapter" else "Section"
        self._step("Appendix" if self._is_appendix and level == self._top else kind, level, title)

    def _begin(self, name: str, has_star: bool) -> None:
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
        if word == "appendix":
            self._is_appendix, self._counts[self._top] = True, 0
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
        count = self._counts[counter]
        is_letter = counter in _LETTERS or (self._is_appendix and counter == self._top)
        own = chr(ord("a") + (count - 1) % 26) if is_letter else str(count)
        own = own.upper() if counter == self._top else own
        parent = self._parents.get(counter)
        if parent is None or depth > len(_PARENTS):
            return own
        return self._number(parent, depth + 1) + ("" if counter in _LETTERS else ".") + own
