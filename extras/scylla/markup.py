"""Removal of reasoning, LaTeX, Markdown and typography from models' texts."""

from __future__ import annotations

import re
import unicodedata

from core.responses import answering_part

# Thin, no-break and figure spaces between digits separate thousands.
_GROUPING = re.compile(r"(?<=\d)(?:[\u00a0\u2007\u2009\u202f]|\{,\}|\\[,!;: ]|,\\!)(?=\d{3}(?!\d))")
_KNOWN = {
    **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\u02d7\ufe63\u207b", "-"),
    **dict.fromkeys("\u2014\u2015", " - "),
    **dict.fromkeys("\u2192\u21d2\u27f6\u27f9\u2794", "->"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2018\u2019\u201a\u2032", "'"),
    **dict.fromkeys("\u27e8\u3008\u300a", "<"),
    **dict.fromkeys("\u27e9\u3009\u300b", ">"),
    **dict.fromkeys("\u2028\u2029\u0085\r\x0b\x0c", "\n"),
    **{"\u3010": "[", "\u3011": "]", "\u3001": ",", "\u3002": ".", "\u2026": "...", "\t": " "},
}
_REPLACEMENTS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Patterns of LaTeX.
        (r"\\f?boxed(?![a-zA-Z])|\\fbox(?![a-zA-Z])", "boxed"),
        (r"\\begin\s?\{\w*(?:matrix|array)\*?\}(?:\{[clr| ]{0,40}\})?", "["),
        (r"\\end\s?\{\w*(?:matrix|array)\*?\}", "]"),
        (r"\\(?:begin|end)\s?\{\w*\*?\}", " "),
        (r"\\(?:text\w*|mathrm|mathbf|mbox)\s?\{([^{}]*)\}", r"\1"),
        (r"\\\\|&", ","),
        (r"\\[\[\]()]|\\[,;:!> ]|\\q?quad(?![a-zA-Z])|[~$]", " "),
        (r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|text\w*|math\w+|bf|rm|it|tt|mbox|emph"
         r"|boldsymbol|underline|large|Large)(?![a-zA-Z])", ""),
        (r"\\(?:[lr]?brace(?![a-zA-Z])|(?=[{}]))", ""),
        (r"\\langle(?![a-zA-Z])", "<"),
        (r"\\rangle(?![a-zA-Z])", ">"),
        (r"\\(?:long)?(?:[rR]ightarrow|to|implies)(?![a-zA-Z])", "->"),
        (r"\\[lc]?dots(?![a-zA-Z])", "..."),
        # Patterns of Markdown and HTML.
        (r"(?m)^ *(?:```|~~~)\w* *$", ""),
        (r"(?m)^ *(?:#{1,6} +|> ?)", ""),
        (r"(?i)<answer>", "\nanswer: "),
        (r"<(?=[a-zA-Z/])[^<>\n]{0,60}>", " "),
        (r"(?m)^ *\* +(?=[-+]?\d)", "- "),
        # Remove *, _ and ` around words, but not within a word or a product ("1_234", "3*4").
        (r"(?<![\w*`])[*_`]+|(?<![*_`])[*_`]++(?!\w)", ""),
        (r"\"|(?<!\w)'|'(?!\w)", ""),
        (r" {2,}", " "),
    )
]  # fmt: skip


class _Characters(dict[int, str]):
    def __missing__(self, code: int) -> str:
        """Return a plain character for one with another form, and remember it."""
        character = chr(code)
        category = unicodedata.category(character)
        replacement = character
        if character in _KNOWN:
            replacement = _KNOWN[character]
        elif character.isdecimal():
            replacement = str(unicodedata.decimal(character))
        elif category in ("Zs", "Cf"):  # spaces, and characters without width
            replacement = " " if category == "Zs" else ""
        elif "\uff01" <= character <= "\uff5e":
            replacement = chr(code - 0xFEE0)
        self[code] = replacement
        return replacement


_CHARACTERS = _Characters()


def plain_text(text: str) -> str:
    """Return the text without markup and reasoning; keep ``boxed{`` as a marker."""
    text = _GROUPING.sub("", answering_part(text)).translate(_CHARACTERS)
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text
