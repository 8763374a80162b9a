r"""Macros that a paper defines, replaced by their definitions.

Definitions with up to nine arguments are read: ``\newcommand`` and its kin, ``\def`` and ``\let``.
Macros of LaTeX are never replaced, even if a paper redefines them. A macro whose definition is a
program (conditions, internal macros) is replaced by its last argument.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from core.errors import ItemUnavailable

MAX_CHARACTERS = 20_000_000  # maximum after expansion of inputs and macros; most papers: < 200,000
_MAX_BODY = 2_000  # maximum characters of a definition; longer ones are drawings or programs
_ROUNDS = 8  # maximum nesting of macros in macros

# The next brace, after text and escapes without one; at the end of the text, no brace.
BRACE = re.compile(r"(?:[^\\{}]++|\\.)*+(?:([{}])|\\?\Z)", re.DOTALL)
_DEFINITION = re.compile(
    r"\\(?:(?P<command>newcommand|providecommand|renewcommand|DeclareRobustCommand"
    r"|DeclareSIUnit)\*?\s*(?:\{\s*\\(?P<braced>[A-Za-z@]+)\s*\}|\\(?P<bare>[A-Za-z@]+))"
    r"\s*(?:\[\s*(?P<number>\d)\s*\]\s*(?P<default>\[(?:[^\[\]{}]|\{[^{}]*\})*+\])?)?"
    r"|[gex]?def\s*\\(?P<plain>[A-Za-z@]+)\s*(?P<parameters>(?:\#\d)*))\s*(?=\{)"
    r"|\\(?:New|Renew|Provide|Declare)(?:Expandable)?DocumentCommand\s*"
    r"(?:\{\s*\\(?P<xbraced>[A-Za-z@]+)\s*\}|\\(?P<xbare>[A-Za-z@]+))"
    r"\s*\{\s*(?:(?P<optional>o)|O\{(?P<preset>[^{}]*)\})?(?P<mandatory>[m\s]*)\}\s*(?=\{)"
    r"|\\let\s*\\(?P<alias>[A-Za-z@]+)\s*=?\s*(?P<target>\\[A-Za-z@]+)"
)
_ABBREVIATIONS = {
    "eg": "e.g.", "Eg": "E.g.", "ie": "i.e.", "Ie": "I.e.", "cf": "cf.", "Cf": "Cf.",
    "etc": "etc.", "vs": "vs.", "wrt": "w.r.t.", "dof": "d.o.f.", "etal": "et al.",
    "iid": "i.i.d.", "aka": "a.k.a.",
}  # fmt: skip
_WORDS = re.compile(  # a group without parameters and programs
    r"\{(?=[^{}]*[A-Za-z])(?:[^\\#@$&~^]|\\(?:xspace|onedot|emph|mbox|text[a-z]{2})(?![A-Za-z]))*+"
)
_MAX_WORDS = 200  # characters
_NAMES = ("alias", "braced", "bare", "plain", "xbraced", "xbare")
_PROGRAM = re.compile(
    r"@[A-Za-z]|[A-Za-z]@|\\(?:if|else|fi(?![A-Za-z])|csname|expandafter|futurelet|let(?![A-Za-z])|[gex]?def(?![A-Za-z])"
    r"|(?:re)?newcommand|If(?:NoValue|Value|Boolean)|catcode|advance|(?:ref)?stepcounter|setcounter|(?:begin|end)\{document)"
)
# Macros that other steps read. Of these, only references and citations may be redefined.
_KEPT = re.compile(
    r"(?:sub)*section|paragraph|chapter|part|begin|end|item|label|footnote|caption|title|author"
    r"|maketitle|abstract|appendix|bibliography|todo|input|include|url|href|onedot|today"
    r"|(?:new|renew|provide)command|[gex]?def|let"
)
_POINTER = re.compile(r"[A-Za-z]*(?:[cC]ite[A-Za-z]*|[rR]ef)")
_NAME = re.compile(r"\\([A-Za-z@]+)")
_PARAMETER = re.compile(r"#(\d)")
_NAME_AT_END = re.compile(r"\\[A-Za-z]+\Z")
_SPACE = re.compile(r"[ \t]*\n?[ \t]*")
_AFTER_NAME = re.compile(r"\{\}|[ \t]*")
_TOKEN = re.compile(r"\\[A-Za-z@]+|\\.|[^\s{}\\]", re.DOTALL)


def match_braces(text: str) -> dict[int, int]:
    """Return the index after the closing brace by the index of each opening brace that has one."""
    ends = {}
    opened = []
    for found in BRACE.finditer(text):
        brace = found[1]
        end = found.end()
        if brace == "{":
            opened.append(end - 1)
        elif brace and opened:
            ends[opened.pop()] = end
    return ends


class _Macro(NamedTuple):
    body: str
    num_arguments: int
    default: str | None  # of the first argument, if it is optional
    has_xspace: bool  # keeps the spaces after its name


def expand_macros(text: str) -> str:
    r"""Replace the macros that the paper defines (``\def\eg{e.g.}``), and remove definitions.

    Raise ItemUnavailable (``too_large``) if the result has more than MAX_CHARACTERS.
    """
    macros, text = _take_definitions(text)
    if not macros:
        return text
    names = "|".join(sorted(macros, key=lambda name: (-len(name), name)))
    use = re.compile(rf"\\({names})(?![A-Za-z@])")
    for _ in range(_ROUNDS):
        expanded = _expand_once(text, macros, use)
        if expanded == text:
            break
        text = expanded
    return text


def find_words(styles: Iterable[str]) -> str:
    """Return definitions of macros for mere words: usual ones of conferences, and of these styles.

    The other macros of a style are programs. A paper's own definitions come later, and win.
    """
    found = [
        f"\\providecommand{{\\{name}}}{{{words}\\xspace}}" for name, words in _ABBREVIATIONS.items()
    ]
    for text in styles:
        ends = match_braces(text)
        for match in _DEFINITION.finditer(text):
            end = ends.get(match.end(), 0)
            if _WORDS.fullmatch(text, match.end(), min(end, match.end() + _MAX_WORDS)):
                found.append(text[match.start() : end])
    return "\n".join([*found, ""])


def _take_definitions(text: str) -> tuple[dict[str, _Macro], str]:
    """Return the macros that a text defines, and the text without the definitions."""
    macros: dict[str, _Macro] = {}
    rest = []
    position = 0
    ends = match_braces(text)
    for found in _DEFINITION.finditer(text):
        end = found.end() if found["alias"] else ends.get(found.end())
        if found.start() < position or end is None or end - found.end() > _MAX_BODY:
            continue
        rest.append(text[position : found.start()])
        position = end
        name = next(filter(None, found.group(*_NAMES)))
        body = found["target"] or text[found.end() + 1 : end - 1]
        is_new = found["command"] != "renewcommand" or name in macros
        if _POINTER.fullmatch(name):
            is_new = any(macro != name for macro in re.findall(rf"\\({_POINTER.pattern})", body))
        if _KEPT.fullmatch(name) or not is_new:
            continue
        number, default = _arguments(found)
        if _PROGRAM.search(body):
            body = f"#{number}" if number else ""
        has_xspace = (
            "\\xspace" in body
            or "\\onedot" in body
            or any(macros[used].has_xspace for used in _NAME.findall(body) if used in macros)
        )
        macros[name] = _Macro(
            body.replace("\\xspace", "").replace("\\onedot", "."), number, default, has_xspace
        )
    return macros, "".join([*rest, text[position:]])


def _arguments(definition: re.Match[str]) -> tuple[int, str | None]:
    """Return the number of a macro's arguments, and the default of an optional one."""
    if definition["mandatory"] is None:
        number = int(definition["number"] or len(definition["parameters"] or "") // 2)
        return number, definition["default"][1:-1] if definition["default"] else None
    default = "" if definition["optional"] else definition["preset"]
    return definition["mandatory"].count("m") + (default is not None), default


def _expand_once(text: str, macros: Mapping[str, _Macro], use: re.Pattern[str]) -> str:
    """Replace each use of a macro by its body; uses in arguments wait for the next round."""
    pieces = []
    position = 0
    ends = match_braces(text)
    room = MAX_CHARACTERS
    for found in use.finditer(text):
        if found.start() < position:  # in an argument; the next round expands it
            continue
        macro = macros[found[1]]
        arguments, end = _read_arguments(text, found.end(), macro, ends)
        piece = _PARAMETER.sub(functools.partial(_fill, arguments), macro.body)
        if not arguments:
            end, piece = _join(text, end, macro)
        before = text[position : found.start()]
        pieces += [before, separate(before, piece, text[end : end + 1])]
        room -= found.start() - position + len(piece)
        position = end
        if room < 0:
            raise ItemUnavailable("too_large", f"macros expand to over {MAX_CHARACTERS} characters")
    return "".join([*pieces, text[position:]])


def _fill(arguments: list[str], parameter: re.Match[str]) -> str:
    number = int(parameter[1])
    argument = arguments[number - 1] if 0 < number <= len(arguments) else ""
    return separate(parameter.string[: parameter.start()], argument, "")


def separate(before: str, piece: str, after: str) -> str:
    r"""Return a piece of markup, kept apart from the names of macros beside it (``\bf\x y``)."""
    if piece[:1].isalpha() and _NAME_AT_END.search(before):
        return f"{{{piece}}}"
    return f"{piece} " if after.isalpha() and _NAME_AT_END.search(piece) else piece


def _read_arguments(
    text: str, position: int, macro: _Macro, ends: Mapping[int, int]
) -> tuple[list[str], int]:
    """Return a macro's arguments and the index after them; missing ones are empty."""
    arguments = []
    for number in range(macro.num_arguments):
        start = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # always matches
        if number == 0 and macro.default is not None:
            close = (
                text.find("]", start, start + _MAX_BODY) if text[start : start + 1] == "[" else -1
            )
            arguments.append(text[start + 1 : close] if close > 0 else macro.default)
            position = close + 1 if close > 0 else position
        elif start in ends:
            arguments.append(text[start + 1 : ends[start] - 1])
            position = ends[start]
        else:
            token = _TOKEN.match(text, start)
            if token:
                arguments.append(token[0])
                position = token.end()
    return arguments, position


def _join(text: str, end: int, macro: _Macro) -> tuple[int, str]:
    r"""Return where the text goes on after a macro without arguments, and what replaces it.

    TeX eats the spaces after the name. They stay if the definition ends in a name or ``\xspace``.
    """
    after = _AFTER_NAME.match(text, end)
    spaces = after[0] if after else ""
    is_kept = spaces != "{}" and (macro.has_xspace or _NAME_AT_END.search(macro.body))
    return end + len(spaces), macro.body + (spaces if is_kept else "")
