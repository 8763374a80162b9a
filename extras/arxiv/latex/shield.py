r"""Shielding of LaTeX's code and formulas from the steps that read markup.

Each piece of code and each formula is replaced by one character of a private plane of Unicode. So a
dollar sign or a brace in a listing cannot open a formula or a group. ``Shield.restore`` puts the
pieces back at the end. Code in which a backslash remains is left out, unless it stands in a line of
text. So outside of formulas, a backslash in a text means that markup was not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from core.errors import ItemUnavailable
from extras.arxiv.latex.macros import match_braces
from extras.arxiv.latex.scanning import after, next_token

GONE = "\ue000"  # stands for a removed citation, footnote or label
HOLE = "\ue001"  # stands for a reference whose number is unknown
PRIVATE = re.compile("[\ue000\ue001\U000f0000-\U000fffff]")  # characters that sources must not have
_PLACE = re.compile("[\U000f0000-\U000ffffd]")
_FIRST = 0xF0000
_LAST = 0xFFFFD


class Shield:
    """Pieces of one paper that are not in its text for the time being."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def keep(self, piece: str) -> str:
        """Store a piece of text, and return the character that stands for it.

        Raise ItemUnavailable (``too_large``) if the private plane has no character left.
        """
        if _FIRST + len(self._pieces) > _LAST:
            raise ItemUnavailable("too_large", f"over {_LAST - _FIRST} formulas and code pieces")
        self._pieces.append(self.restore(piece))
        return chr(_FIRST + len(self._pieces) - 1)

    def restore(self, text: str) -> str:
        """Return a text with the pieces back in their places."""
        return _PLACE.sub(lambda match: self._pieces[ord(match[0]) - _FIRST], text)


_CODE = frozenset({
    "verbatim", "verbatim*", "Verbatim", "Verbatim*", "BVerbatim", "LVerbatim", "SaveVerbatim",
    "lstlisting", "minted", "alltt", "tcblisting", "spverbatim", "pyglist",
})  # fmt: skip
_IGNORED = frozenset({"comment", "filecontents", "filecontents*", "VerbatimOut"})
_INLINE = frozenset({"verb", "Verb", "spverb", "lstinline", "mintinline", "mint"})
_PLAIN = frozenset({"verbatim", "verbatim*", "alltt", "comment"})  # take no options
_DEFINITIONS = re.compile(  # of environments and macros for code
    r"\\(?:lstnewenvironment|(?:Define|Recustom)VerbatimEnvironment|(?:re)?newtcblisting"
    r"|(?:New|Declare)TCBListing)\s*(?:\[[^\]]{0,500}\])?\s*\{\s*(?P<code>[A-Za-z]+\*?)\s*\}"
    r"|\\newminted\s*(?:\[\s*(?P<named>\w+)\s*\])?\s*\{\s*(?P<minted>\w+)\s*\}"
    r"|\\newenvironment\*?\s*\{(?P<wrapper>[A-Za-z]+)\}(?:\[[^\]]{0,500}\])*\s*\{[^{}]*"
    r"\\(?:[BL]?[vV]erbatim|lstlisting|minted|alltt)(?![A-Za-z])"
    r"|\\excludecomment\s*\{\s*(?P<ignored>\w+)\s*\}"
    r"|\\newmintinline\s*(?:\[\s*(?P<inline>\w+)\s*\])?\s*\{\s*(?P<language>\w+)\s*\}"
    r"|\\(?:MakeShortVerb\*?|lstMakeShortInline(?:\[[^\]]{0,500}\])?|DefineShortVerb)"
    r"\s*\{?\\?(?P<bar>[^\sA-Za-z{}\\%])"
)
_DELIMITER = re.compile(r"\\.|[\[\]{}]", re.DOTALL)
_MAX_OPTIONS = 2000
_LABEL = re.compile(r"\blabel\s*=\s*\{?\s*([^,{}\[\]\s]+)")
_OPTION = re.compile(r"\[[^\]\n]{0,1000}\]")
_GROUP = re.compile(r"\{\w*\}")
_PIECE = re.compile(
    r"\{((?:[^{}\n]|\{[^{}\n]*\}|\n(?!\s*\n))*+)\}|\{([^}\n]{0,1000})\}"
    r"|(?P<bar>[^\sA-Za-z{])(?P<text>[^\n]{0,1000}?)(?P=bar)"
)
_MACRO_IN_ALLTT = re.compile(r"\\([{}\\])|\\[A-Za-z]+\*?(?:\{\}| )?|[{}]")
_ADDRESS_ESCAPE = re.compile(r"\\([%#_&~{}$])")


def shield_code(files: Mapping[str, str], shield: Shield) -> dict[str, str]:
    """Return a paper's files without comments, and with code and web addresses in the shield."""
    scanner = _Scanner(files.values(), shield)
    return {name: "".join(scanner.scan(text)) for name, text in files.items()}


class _Scanner:
    def __init__(self, texts: Iterable[str], shield: Shield) -> None:
        self._shield = shield
        self._code = {*_CODE}
        self._ignored = {*_IGNORED}
        bars = ""
        inline = {*_INLINE}
        for found in (found for text in texts for found in _DEFINITIONS.finditer(text)):
            bars += re.escape(found["bar"] or "")
            self._ignored |= {found["ignored"] or "comment"}
            self._code |= {found["code"] or found["named"] or found["wrapper"] or "verbatim"}
            if found["minted"] and not found["named"]:
                self._code.add(f"{found['minted']}code")
            elif found["language"]:
                inline.add(found["inline"] or f"{found['language']}inline")
        names = "|".join(sorted(inline))
        self._token = next_token(
            r"\\begin\s*\{(?P<environment>[A-Za-z]+\*?)\}"
            rf"|\\(?P<inline>{names})(?![A-Za-z])\*?"
            r"|\\(?:url|path|nolinkurl|href)\s*(?:\[[^\]\n]{0,500}\])?\{(?P<address>[^{}\n]+)\}"
            r"|(?P<comment>%[^\n]*(?:\n(?![ \t]*\n)[ \t]*)?)"  # ends before a blank line
            + (rf"|(?P<short>[{bars}])(?P<shorted>[^\n]+?)(?P=short)" if bars else ""),
            f"%{bars}",
            f"begin|{names}|url|path|nolinkurl|href",
        )

    def scan(self, text: str) -> Iterator[str]:
        """Yield the text; code and addresses in it are replaced by marks, comments left out."""
        position = 0
        unclosed = set[str]()
        while position < len(text) and (found := self._token.match(text, position)):
            yield found["passed"]
            position = found.end()
            name = found["environment"] or ""
            if name in self._code or name in self._ignored:
                last = re.compile(rf"\\end\s*\{{{re.escape(name)}\}}")
                end = None if last.pattern in unclosed else last.search(text, position)
                if end is None:  # then none of the later ones is closed, either
                    unclosed.add(last.pattern)
                elif name in self._code:
                    yield self._display(name, text[position : end.start()])
                position = end.end() if end else position
            elif found["inline"]:
                piece, position = self._inline(found["inline"], text, position)
                yield piece
            elif found["address"]:
                address = self._shield.keep(_ADDRESS_ESCAPE.sub(r"\1", found["address"]))
                yield f"{text[found.end('passed') : found.start('address')]}{address}}}"
            elif not found["comment"]:
                yield self._short(found)

    def _short(self, found: re.Match[str]) -> str:
        is_code = found.re.groupindex.get("short") and found["short"]
        return self._shield.keep(found["shorted"]) if is_code else after(found)

    def _display(self, name: str, inner: str) -> str:
        """Return a block of code as a mark between blank lines, with the label in its options."""
        label = ""
        if name == "alltt":
            inner = _MACRO_IN_ALLTT.sub(lambda match: match[1] or "", inner)
        elif name not in _PLAIN:
            end = _end_of_options(inner)
            found = _LABEL.search(inner, 0, end)
            if found:
                label = rf"\listingnumber\label{{{found[1]}}}"
            inner = inner[end:]
        code = "\n".join(line.rstrip() for line in inner.strip("\n").split("\n"))
        kept = self._shield.keep(code) if code.strip() and "\\" not in code else ""
        return f"\n\n{label}{kept}\n\n"

    def _inline(self, name: str, text: str, position: int) -> tuple[str, int]:
        """Return code within a line as a mark, and the position after it."""
        options = None if name in {"verb", "spverb"} else _OPTION.match(text, position)
        if options:
            position = options.end()
        language = _GROUP.match(text, position) if name in {"mint", "mintinline"} else None
        if language:
            position = language.end()
        piece = _PIECE.match(text, position)
        if piece is None:
            return "", position
        return self._shield.keep(piece[1] or piece[2] or piece["text"] or ""), piece.end()


def _end_of_options(text: str) -> int:
    """Return the index after the options and arguments at the beginning of an environment."""
    depth = 0
    end = len(text) - len(text.lstrip(" \t"))
    for sign in _DELIMITER.finditer(text, end, end + _MAX_OPTIONS):
        if depth == 0 and (sign.start() != end or sign[0] not in "[{"):
            break
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign[0], 0)
        if depth == 0:
            end = sign.end()
    return end


_FORMULA = next_token(
    r"\\begin\s*\{\s*(?P<name>(?:equation|x?alignat|align|flalign|gather|multline|eqnarray"
    r"|displaymath|math|dmath|IEEEeqnarray|empheq)\*?)\s*\}"
    r"|\\(?P<bracket>[\[(])|(?P<dollars>\$\$?)|(?P<ensured>\\ensuremath\s*(?=\{))",
    "$",
    r"begin|[\[(]|ensuremath",
)
_ARGUMENTS = re.compile(r"\s*(?:\[[^\]\n]{0,500}\])?\{[^{}\n]*\}")
# A formula in dollar signs has no blank line, and dollar signs only in \text{…} and the like.
_IN_DOLLARS = re.compile(
    r"(?:\\(?:text[a-z]*|[mh]box)\s*\{[^{}]*\}|\\.|[^\\$\n]|\n(?![ \t]*\n))++", re.DOTALL
)
_ENSURED = re.compile(r"(?<![_^])\\ensuremath\s*\{([^{}]*)\}")
_NOT_IN_FORMULA = re.compile(rf"[{GONE}{HOLE}]|\\(?:ensuremath|nonumber|notag)(?![A-Za-z])")


def shield_formulas(text: str, shield: Shield) -> str:
    """Return markup with each formula, as LaTeX in dollar signs, in the shield.

    Dollar signs and beginnings of formulas that have no end are removed.
    """
    kept = []
    position = 0
    ends = match_braces(text) if "\\ensuremath" in text else {}
    unclosed: set[str] = set()
    while position < len(text) and (found := _FORMULA.match(text, position)):
        kept.append(found["passed"])
        position = found.end()
        if found.lastgroup == "passed":
            kept.append(after(found))
            continue
        span = _find_formula(found, text, ends, unclosed)
        if span:
            source = _ENSURED.sub(r"\1 ", text[slice(*span[:2])])
            source = " ".join(_NOT_IN_FORMULA.sub("", source).split())
            place = shield.keep(f"${source}$") if source else ""
            is_inline = found["ensured"] or after(found) in {"$", r"\("} or found["name"] == "math"
            kept.append(place if is_inline else f" {place} ")
            position = span[2]
    return "".join(kept)


def _find_formula(
    found: re.Match[str], text: str, ends: Mapping[int, int], unclosed: set[str]
) -> tuple[int, int, int] | None:
    """Return where a formula's source begins and ends, and where the text goes on, or None."""
    start = found.end()
    if found["ensured"]:
        group_end = ends.get(start)
        return (start + 1, group_end - 1, group_end) if group_end else None
    mark = found["dollars"]
    if mark:
        inner = _IN_DOLLARS.match(text, start)
        is_closed = inner and text.startswith(mark, inner.end())
        return (start, inner.end(), inner.end() + len(mark)) if inner and is_closed else None
    name = found["name"] or ""
    closing = rf"\\end\s*\{{\s*{re.escape(name)}\s*\}}"
    if not name:
        closing = r"(?<!\\)\\\]" if found["bracket"] == "[" else r"(?<!\\)\\\)"
    end = None if closing in unclosed else re.compile(closing).search(text, start)
    if end is None:  # then none of the later ones has an end, either
        unclosed.add(closing)
        return None
    if name.startswith(("alignat", "xalignat", "IEEEeqnarray", "empheq")):
        arguments = _ARGUMENTS.match(text, start)
        start = arguments.end() if arguments else start
    return min(start, end.start()), end.start(), end.end()
