"""Gaps in wikitext: places from which a template, footnote or formula was removed.

The scanner leaves a mark at each place. ``fill`` replaces the marks of a line. A gap may show
nothing (a footnote), its text, or something unknown. The neighbours of an unknown gap tell if words
are missing: a footnote follows a word without a space, and words stand between two spaces. Missing
words without a guess are a hole. A hole costs its part of a parenthesis, or else its sentence.

All expressions take linear time, because the input is untrusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Marks are noncharacters of Unicode; ``strip_marks`` removes them from the page first.
GONE = "\ufdd0"  # nothing was to be seen here
# _INLINE or _UNKNOWN, a text, and _END
_INLINE = "\ufdd1"
_UNKNOWN = "\ufdd2"
_END = "\ufdd3"
# signs that separate no arguments of a template
_PIPE = "\ufdd4"
_EQUALS = "\ufdd5"
HOLE = "\ufdd6"  # words were here, and they are lost
_MARK = re.compile("[\ufdd0-\ufdd6]")
_GAP = re.compile("(?P<kind>[\ufdd1\ufdd2])(?P<text>[^\ufdd1-\ufdd3]*)\ufdd3")
_SIGNS = {ord(_PIPE): "|", ord(_EQUALS): "="}
_PROTECT = str.maketrans("|=", _PIPE + _EQUALS)

_LAST_WORD_CHARS = 20  # before the end of a sentence, among which abbreviations are searched
_CONTEXT = 60  # characters before and after a gap that are looked at
_OPENING = frozenset("([{“‘„«‹¿¡$£€¥₹#~≈<>=+−–—-/×")  # signs before a word, without a space
_ENDED = re.compile(r"[.!?…。！？:][\"'”’»)\]]*$")
_STOP = re.compile(r"[.!?…][\ufdd0\"'”’»)\]]* (?=[\"'“‘«(\[¿¡\ufdd0\ufdd6]*[^\W_a-zß-ÿ])|[。！？]")
_ABBREVIATION = re.compile(
    r"[(\"“]*(?:(?:\w\.)+|[A-Z][a-z]\.|(?:ca|cf|fl|vs|[Nn]os?|pp|[Vv]ol|Mrs|Rev|Gen|Col|Sgt|Capt)\.)"
)
_TIDYING = (
    (re.compile("^([*#:; ]*)(?= ?\ufdd0)[ \ufdd0]+[,.;:]+"), r"\1"),
    (re.compile(" ?\\((?=[ ,;:]*\ufdd0)[ ,;:\ufdd0]*\\)"), GONE),
    (re.compile("\\((?=[ ,;:]*\ufdd0)[ ,;:\ufdd0]+"), "("),
    (re.compile("(?<![ ,;:\ufdd0])(?=[ ,;:]*\ufdd0)[ ,;:\ufdd0]+\\)"), ")"),
    (re.compile("[,;](?= ?\ufdd0)[ \ufdd0]+(?=[,;.])"), ""),
    (re.compile("(?<![ \ufdd0])(?= ?\ufdd0)[ \ufdd0]+(?=[,.;:!?)])"), ""),
)
_ASIDE = re.compile("\\(([^()\ufdd6]*\ufdd6[^()]*)\\)")


def strip_marks(text: str) -> str:
    """Remove the characters that serve as marks."""
    return _MARK.sub("", text)


def protect(text: str) -> str:
    """Return a text whose pipes and equals signs separate no arguments of a template."""
    return text.translate(_PROTECT)


def inline(text: str) -> str:
    """Mark a text that is shown between words, but not if it stands alone on its line."""
    return f"{_INLINE}{_one_line(text)}{_END}"


def unknown(guess: str = "") -> str:
    """Mark a gap of unknown meaning; ``guess`` is shown if words are missing."""
    return f"{_UNKNOWN}{'' if _UNKNOWN + _END in guess else _one_line(guess)}{_END}"


def _one_line(text: str) -> str:
    text = text.strip()
    if text.isalnum():  # neither a mark nor a sign
        return text
    return "" if "\n" in text else protect(strip_marks(text.translate(_SIGNS)))


def fill(line: str) -> str:
    """Return a line without marks: gaps are filled or closed, sentences with a hole dropped."""
    if not _MARK.search(line):
        return line
    is_alone = not any(map(str.isalnum, _GAP.sub("", line)))
    line = _GAP.sub(_filled_alone, line) if is_alone else "".join(_filled(line))
    if HOLE in line:
        line = _without_holes(_ASIDE.sub(_rest_of_aside, line))
    return _tidied(line).translate(_SIGNS)


def _filled_alone(gap: re.Match[str]) -> str:
    """Return what is shown of a gap on a line without words."""
    text = gap["text"]
    is_formula = text.startswith("$")
    is_country = text.isalpha() and not text.islower()  # {{USA}} in a list of countries
    return text if is_formula or (is_country and gap.string.startswith(("*", "#"))) else GONE


def _filled(line: str) -> Iterator[str]:
    """Yield the parts of a line, with each gap filled by its text, HOLE or GONE."""
    before = ""
    end = 0
    for gap in _GAP.finditer(line):
        text = line[end : gap.start()]
        yield text
        before = (before + text)[-_CONTEXT:]
        end = gap.end()
        after = strip_marks(_GAP.sub("", line[end : end + _CONTEXT]))
        is_shown = (gap["kind"] == _INLINE and gap["text"]) or _is_word_missing(
            strip_marks(before), after
        )
        shown = (gap["text"] or HOLE) if is_shown else GONE
        if before.endswith("[") and after.startswith("]"):  # [{{IPA|…}}]
            shown = shown.removeprefix("[").removesuffix("]")
        yield shown
        before += shown
    yield line[end:]


def _is_word_missing(before: str, after: str) -> bool:
    """Return True if words stood between two texts, False if it was a footnote or a picture."""
    before = before.lstrip("*#:;= ")
    if not before:
        is_apart = after.startswith(" ") and (after[1:2].islower() or after[1:2] in tuple("–—-("))
        return is_apart or after.startswith((":", ",", " :"))
    ahead = after.lstrip().lstrip("\"'“‘«([")
    if not before.endswith(" "):
        is_quote = before.endswith('"') and before[-2:-1] in ("", " ", "(")
        return (before[-1] in _OPENING or is_quote) and not after[:1].isalpha()
    if not ahead:
        return False
    return ahead[0].islower() or not _ENDED.search(before.rstrip())


def _rest_of_aside(aside: re.Match[str]) -> str:
    """Return a parenthesis without its parts that have a hole."""
    separator = ";" if ";" in aside[1] else ","
    parts = aside[1].split(separator)
    kept = [part for part in parts if HOLE not in part]
    lost = (part.strip(f" {GONE}") for part in parts if HOLE in part)
    if separator == "," and any(part != HOLE for part in lost):
        return GONE
    rest = separator.join(kept).strip(f" ,;{GONE}")
    return f"({rest})" if rest else GONE


def _without_holes(line: str) -> str:
    """Return a line without the sentences that have a hole; a dot may end an abbreviation."""
    kept = []
    start = 0
    for stop in _STOP.finditer(line):
        last_word = line[max(start, stop.end() - _LAST_WORD_CHARS) : stop.end()].split(" ")[-2:][0]
        if not _ABBREVIATION.fullmatch(last_word):
            kept.append(line[start : stop.end()])
            start = stop.end()
    kept.append(line[start:])
    return "".join(sentence for sentence in kept if HOLE not in sentence)


def _tidied(line: str) -> str:
    """Return a line without GONE, and without the brackets, signs and spaces that it has left."""
    for pattern, rest in _TIDYING:
        line = pattern.sub(rest, line)
    return re.sub(" {2,}", " ", line.replace(GONE, ""))
