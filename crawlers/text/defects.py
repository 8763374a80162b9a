r"""Detectors of two defects of a cleaned text, in any source: holes and leftover markup.

A hole is a place that lacks words, since a parser removed a template, formula or reference. It is
found by what is left behind: "()", "(, also", "(Greek: )", "total area of , all", "located at  (",
"$ million", "Eq. ,". Markup is what wikitext, HTML, LaTeX or Markdown have and prose has not: "{{",
"[[", "'''", "<ref>", "&nbsp;", "== Title ==", "\cite", "](https://".

Both show drift between months of a source, and do not judge one text: prose about code has both.
Others have cleaned 960 articles of the English Wikipedia (3.1 million characters). Of these, 8 have
a hole. 20 have markup, mostly "{{cite web}}" of an error message.

All expressions take linear time, because the input is untrusted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

# After such a word, a space and a comma lack the words between.
_NEEDS_WORDS = (
    "a", "an", "the", "of", "in", "at", "by", "to", "from", "with", "for", "on", "is", "are", "was",
    "were", "than", "about", "between", "over", "and", "or", "as", "near", "approximately",
    "roughly", "around", "called", "named", "its", "their",
)  # fmt: skip
_AFTER_WORD = "|".join(rf"(?<=\b{word}.)" for word in _NEEDS_WORDS)
# Each begins with fixed signs, which a search finds fast; what must precede them follows.
_HOLES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\((?<!\S.)[ ,;:]*\)(?! ?(?:[-=]>|\{))",  # not a call such as f(), not () => x
        r"\([ \t]?[,;](?=[ \w])",
        r"[,;:](?<=\w.)[ \t]\)",
        rf"[ \t](?=[ \t]{{0,8}}[,.;)](?:\s(?!\.)|\Z)|[ \t]{{1,8}}\()(?:{_AFTER_WORD})",
        r"[$£€][ \t](?:m|b|tr)illion\b",
        r"(?:Fig|Eq|Sec|Ref)s?\.[ \t~]?(?:and\b|[,);])",
    )
)
_TAGS = (
    "abbr|big|blockquote|br|center|cite|code|dd|div|dl|dt|em|font|gallery|h[1-6]|hr|i|img"
    "|includeonly|li|math|noinclude|nowiki|ol|p|poem|pre|q|ref|references|section|small|span"
    "|strike|strong|sub|sup|table|tbody|td|th|tr|tt|ul|var"
)
_MARKUP = tuple(
    re.compile(pattern)
    for pattern in (
        r"\{\{|\}\}|\[\[|\]\]",
        r"''(?:'|(?<![\w'`]..)(?=\w))",
        r"__[A-Z]{3,30}__",
        rf"</?(?:{_TAGS})(?:\s[^<>]{{0,200}})?>",
        r"&(?:nbsp|amp|lt|gt|quot|[mn]dash|#\d{1,6});",
        r"=(?<!..)={1,5}[^=\n]{1,200}={2,6}(?!.)",
        r"[{|](?<!..)[-|}](?!\w)",
        r"\\(?:begin|end|cite[a-z]{0,9}|(?:eq)?ref|label|text[a-z]{2}|emph|section|footnote|item)\b",
        r"\]\(https?://",
        r"#(?<!..)#{0,5} \w",
        r"```(?<!....)",
    )
)
_FORMULA = re.compile(r"\$\$?[^$\n]+\$")
MAX_PLACES = 20  # of one text that count, as a text about code has hundreds


def count_holes(text: str) -> int:
    """Return the number of places that lack words."""
    return _count(_HOLES, text)


def count_markup(text: str) -> int:
    """Return the number of marks of a markup language, outside of ``$formulas$``."""
    return _count(_MARKUP, _FORMULA.sub("", text))


def _count(patterns: Iterable[re.Pattern[str]], text: str) -> int:
    return sum(1 for pattern in patterns for _ in pattern.finditer(text))


DETECTORS: dict[str, Callable[[str], int]] = {"hole": count_holes, "markup": count_markup}


class DefectCounts:
    """Counts of the defects of many texts."""

    def __init__(self) -> None:
        self._num_texts = self._num_chars = 0
        self._num_with: Counter[str] = Counter()  # texts with a defect, by detector
        self._num_places: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count the defects of a text, at most MAX_PLACES of each kind."""
        self._num_texts += 1
        self._num_chars += len(text)
        for name, count in DETECTORS.items():
            places = min(count(text), MAX_PLACES)
            self._num_with[name] += places > 0
            self._num_places[name] += places

    def as_manifest(self) -> dict[str, object]:
        """Return the counts, and for each detector its rates; a rate of no text is None."""
        kinds = {
            name: {
                "texts": self._num_with[name],
                "places": self._num_places[name],
                "share_of_texts": _ratio(self._num_with[name], self._num_texts),
                "per_million_chars": _ratio(1e6 * self._num_places[name], self._num_chars),
            }
            for name in DETECTORS
        }
        return {"texts": self._num_texts, "chars": self._num_chars, **kinds}


def _ratio(part: float, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
