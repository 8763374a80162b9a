r"""Numbers and units of LaTeX's package siunitx, such as ``\SI{3}{\kilo\metre\per\hour}``."""

from __future__ import annotations

import re
from typing import Any

_PREFIXES = {
    "quecto": "q", "ronto": "r", "yocto": "y", "zepto": "z", "atto": "a", "femto": "f",
    "pico": "p", "nano": "n", "micro": "μ", "mu": "μ", "milli": "m", "centi": "c", "deci": "d",
    "deca": "da", "hecto": "h", "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P",
    "exa": "E", "zetta": "Z", "yotta": "Y", "kibi": "Ki", "mebi": "Mi", "gibi": "Gi", "tebi": "Ti",
}  # fmt: skip
_UNITS = {
    "ampere": "A", "candela": "cd", "kelvin": "K", "gram": "g", "metre": "m", "meter": "m",
    "mole": "mol", "second": "s", "becquerel": "Bq", "celsius": "°C", "degreeCelsius": "°C",
    "coulomb": "C", "farad": "F", "gray": "Gy", "hertz": "Hz", "henry": "H", "joule": "J",
    "katal": "kat", "lumen": "lm", "lux": "lx", "newton": "N", "ohm": "Ω", "pascal": "Pa",
    "radian": "rad", "siemens": "S", "sievert": "Sv", "steradian": "sr", "tesla": "T",
    "volt": "V", "watt": "W", "weber": "Wb", "astronomicalunit": "au", "bel": "B",
    "dalton": "Da", "day": "d", "decibel": "dB", "degree": "°", "electronvolt": "eV",
    "hectare": "ha", "hour": "h", "litre": "L", "liter": "L", "arcminute": "′", "arcsecond": "″",
    "minute": "min", "neper": "Np", "tonne": "t", "percent": "%", "angstrom": "Å", "bar": "bar",
    "bit": "bit", "byte": "B", "atomicmassunit": "u", "barn": "b", "kilogram": "kg",
}  # fmt: skip
_POWERS = {"squared": "²", "cubed": "³"}
_NO_SPACE = ("°", "′", "″")  # units that follow their number without a space, unless "°C"
_WORD = re.compile(r"\\(?P<macro>[A-Za-z]+)|\^\s*(?P<power>\{[^{}]*\}|.)|(?P<bar>/)"
                   r"|(?P<text>[^\\\s.~{}^/]+)|\{(?P<group>[-\d]+)\}")  # fmt: skip
_OUTER = re.compile(r"\A[{\[]|[}\]]\Z")
_EXPONENT = re.compile(r"(?:(?<=[\d)])|\A)\s*[eEdD]\s*([+-]?\d+)")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "{}+ ")
ARGUMENTS = {  # macros of siunitx, with their arguments in pylatexenc's notation
    "num": "[{", "ang": "[{", "si": "[{", "unit": "[{", "numlist": "[{", "numrange": "[{{",
    "SI": "[{[{", "qty": "[{{", "SIlist": "[{{", "qtylist": "[{{", "SIrange": "[{{{",
    "qtyrange": "[{{{",
}  # fmt: skip


def to_units(source: str) -> str:
    r"""Return the symbols of a unit, such as ``km/h`` for ``\kilo\metre\per\hour``."""
    units: list[str] = []
    sign = ""
    prefix = ""
    power = ""
    for word in _WORD.finditer(source):
        name = word["macro"] or word["text"] or ""
        exponent = word["power"] or word["group"] or _POWERS.get(name)
        if name == "per" or word["bar"]:
            sign = "/"
        elif name in _PREFIXES and word["macro"]:
            prefix += _PREFIXES[name]
        elif name in {"square", "cubic"}:
            power = {"square": "²", "cubic": "³"}[name]
        elif exponent:
            units = [
                *units[:-1],
                *(unit + exponent.translate(_SUPERSCRIPTS) for unit in units[-1:]),
            ]
        elif name != "tothe":
            symbol = _UNITS.get(name, name) if word["macro"] else name
            units.append((sign or (" " if units else "")) + prefix + symbol + power)
            sign = ""
            prefix = ""
            power = ""
    return "".join(units)


def to_number(text: str) -> str:
    """Return a number as it is printed, such as ``2 × 10⁵`` for ``2e5``."""
    text = _EXPONENT.sub(lambda found: f" × 10{found[1].translate(_SUPERSCRIPTS)}", text)
    return " ".join(text.replace("+-", "±").replace("±", " ± ").split()).removeprefix("× ")


def to_quantity(node: Any, l2tobj: Any) -> str:
    """Return the text of a macro of siunitx, for pylatexenc."""
    name = node.macroname
    options, *values = (
        "" if argument is None else _OUTER.sub("", argument.latex_verbatim())
        for argument in node.nodeargd.argnlist
    )
    unit = "" if name.startswith(("num", "ang")) else to_units(values.pop())
    if name in {"si", "unit"}:
        return _join(options, unit) if options[:1].isdigit() else unit
    if name == "ang":
        return "".join(map("".join, zip(values[0].split(";"), "°′″", strict=False)))
    if name == "SI":
        values = values[:1]
    numbers = [to_number(l2tobj.nodelist_to_text([node.nodeargd.argnlist[i]]))
               for i in range(1, len(values) + 1)]  # fmt: skip
    if name.endswith("list"):
        numbers = [each.strip() for each in numbers[0].split(";")]
    quantities = [_join(number, unit) for number in numbers]
    if name.endswith("range"):
        return " to ".join(quantities)
    return " and ".join(
        [", ".join(quantities[:-1]), quantities[-1]] if quantities[1:] else quantities
    )


def _join(number: str, unit: str) -> str:
    return f"{number}{unit}" if unit in _NO_SPACE else f"{number} {unit}".strip()
