r"""What a model wrote, without reasoning, LaTeX, Markdown and typography, so that it can be read.

Numbers come through unchanged: ``1{,}234`` and ``1\,234`` are 1234, a minus of any kind is ``-``,
digits of any script are ASCII. A superscript is no digit. All steps take linear time.
"""

from __future__ import annotations

import re
import unicodedata

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
# Thin, no-break and figure spaces between digits are separators of thousands, nothing else.
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
    "\u3010": "[",
    "\u3011": "]",
    "\u3001": ",",
    "\u3002": ".",
    "\u2026": "...",
    "\t": " ",
}
_LATEX = (
    (re.compile(r"\\f?boxed(?![a-zA-Z])|\\fbox(?![a-zA-Z])"), "boxed"),
    (re.compile(r"\\begin\s?\{\w*(?:matrix|array)\*?\}(?:\{[clr| ]{0,40}\})?"), "["),
    (re.compile(r"\\end\s?\{\w*(?:matrix|array)\*?\}"), "]"),
    (re.compile(r"\\(?:begin|end)\s?\{\w*\*?\}"), " "),
    (re.compile(r"\\(?:text\w*|mathrm|mathbf|mbox)\s?\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\\\|&"), ","),
    (re.compile(r"\\[\[\]()]|\\[,;:!> ]|\\q?quad(?![a-zA-Z])|[~$]"), " "),
    (
        re.compile(
            r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|text\w*|math\w+|bf|rm|it|tt|mbox|emph"
            r"|boldsymbol|underline|large|Large)(?![a-zA-Z])"
        ),
        "",
    ),
    (re.compile(r"\\(?:[lr]?brace(?![a-zA-Z])|(?=[{}]))"), ""),
    (re.compile(r"\\langle(?![a-zA-Z])"), "<"),
    (re.compile(r"\\rangle(?![a-zA-Z])"), ">"),
    (re.compile(r"\\(?:long)?(?:[rR]ightarrow|to|implies)(?![a-zA-Z])"), "->"),
    (re.compile(r"\\[lc]?dots(?![a-zA-Z])"), "..."),
)
_MARKUP = (
    (re.compile(r"^ *(?:```|~~~)\w* *$", re.MULTILINE), ""),
    (re.compile(r"^ *(?:#{1,6} +|> ?)", re.MULTILINE), ""),
    (re.compile(r"<answer>", re.IGNORECASE), "\nanswer: "),
    (re.compile(r"<(?=[a-zA-Z/])[^<>\n]{0,60}>"), " "),
    # Not within a word or a sum: "1_234" and "3*4" stay what they are.
    (re.compile(r"(?<![\w*`])[*_`]+|(?<![*_`])[*_`]++(?!\w)"), ""),
    (re.compile(r"\"|(?<!\w)'|'(?!\w)"), ""),
    (re.compile(r" {2,}"), " "),
)


class _Characters(dict[int, str]):
    """Replacements of characters, found out when one occurs for the first time."""

    def __missing__(self, code: int) -> str:
        self[code] = replacement = self._replacement(chr(code))
        return replacement

    @staticmethod
    def _replacement(character: str) -> str:
        if character in _KNOWN:
            return _KNOWN[character]
        if character.isdecimal():
            return str(unicodedata.decimal(character))
        category = unicodedata.category(character)
        if category == "Zs":
            return " "
        if category == "Cf":  # zero-width
            return ""
        if "\uff01" <= character <= "\uff5e":
            return chr(ord(character) - 0xFEE0)
        return character


_CHARACTERS = _Characters()


def plain_text(text: str) -> str:
    """Return the text without anything that only dresses it; ``boxed{`` stays, as a word.

    What stands between ``<think>`` and ``</think>`` is left out; so is all of a thought without an
    end, which was cut.
    """
    text = _END_OF_THOUGHT.split(_THOUGHT.sub("", text))[-1]  # the prompt may hold the opening tag
    text = _GROUPING.sub("", text).translate(_CHARACTERS)
    for pattern, replacement in _LATEX + _MARKUP:
        text = pattern.sub(replacement, text)
    return text
