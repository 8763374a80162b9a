r"""Acronyms and terms that a paper defines once and names by a key, as ``\gls{svm}`` does.

Definitions of the packages glossaries, acronym and acro are read. The first use of an acronym shows
the long form with the short one, as in print; later uses show the short one.
"""

from __future__ import annotations

import re

from extras.arxiv.latex.macros import match_braces

_DEFINITION = re.compile(
    r"\\(?P<kind>newacronym|newabbreviation|newglossaryentry|DeclareAcronym|acrodef|newacro|acro)"
    r"\s*(?:\[[^\]]{0,500}\])?\s*\{(?P<key>[^{}\\]{1,100})\}"
    r"\s*(?:\[(?P<short>[^\]]{0,100})\])?\s*(?=\{)"
)
_FIELD = re.compile(
    r"(?<![\w-])(short|long|name|text)\s*=\s*(?:\{((?:[^{}]|\{[^{}]*\})*+)\}|([^,{}]*))"
)
_USE = re.compile(
    r"\\(?P<macro>(?:[Gg]ls|GLS)(?:xtr)?|[Aa]cr|[Aa]c)(?P<form>short|long|full|[slf]|)"
    r"(?P<plural>pl?|)\*?\s*(?:\[[^\]]{0,200}\])?\{(?P<key>[^{}\\]{1,100})\}"
)


def expand_terms(source: str) -> str:
    """Replace the keys of acronyms and terms by their words, and remove the definitions."""
    terms, source = _take_definitions(source)
    used: set[str] = set()

    def words(use: re.Match[str]) -> str:
        key = use["key"].strip()
        if key not in terms:
            return use[0]
        short, long = (f"{it}s" if it and use["plural"] else it for it in terms[key])
        shown = {"s": short, "l": long or short}.get(use["form"][:1], f"{long} ({short})")
        if not use["form"] and (key in used or not long):
            shown = short
        used.add(key)
        if use["macro"][0].isupper():
            shown = shown[:1].upper() + shown[1:]
        return f"{{{shown}}}"

    return _USE.sub(words, source) if terms else source


def _take_definitions(source: str) -> tuple[dict[str, tuple[str, str]], str]:
    """Return the short and the long form of each key, and the source without definitions."""
    terms: dict[str, tuple[str, str]] = {}
    if _DEFINITION.search(source) is None:
        return terms, source
    rest = []
    position = 0
    ends = match_braces(source)
    for found in _DEFINITION.finditer(source):
        end = ends.get(found.end())
        if found.start() < position or end is None:
            continue
        body = source[found.end() + 1 : end - 1]
        if found["kind"] in {"newacronym", "newabbreviation"}:
            end = ends.get(end, end)
            short = body
            body = source[found.end() + len(short) + 3 : end - 1]
        elif found["kind"] in {"newglossaryentry", "DeclareAcronym"}:
            fields = {name: value or plain for name, value, plain in _FIELD.findall(body)}
            short = fields.get("short") or fields.get("text") or fields.get("name", "")
            body = fields.get("long", "")
        else:
            short = found["short"] or found["key"]
        terms[found["key"].strip()] = (short.strip(), body.strip())
        rest.append(source[position : found.start()])
        position = end
    return terms, "".join([*rest, source[position:]])
