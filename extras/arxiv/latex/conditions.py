r"""Conditions of a paper: the branch that LaTeX would typeset.

``\iftrue`` and ``\iffalse`` are known. So are switches of ``\newif\ifdraft``, which are off until
``\drafttrue``. Of other conditions (``\ifx``, ``\ifnum``) both branches stay.
"""

from __future__ import annotations

import re
from collections import Counter

_TOKEN = re.compile(
    r"\\newif\s*\\if(?P<new>[A-Za-z@]+)"
    r"|\\let\s*\\if(?P<alias>[A-Za-z@]+)\s*=?\s*\\if(?P<target>true|false)(?![A-Za-z@])"
    r"|\\(?P<branch>else|fi)(?![A-Za-z@])"
    # Conditions of packages take groups, and have no \fi. Before a brace: a definition.
    r"|\\if(?P<condition>(?:true|false)(?![A-Za-z@]|\s*\})"
    r"|(?!(?:un)?def(?!ined)|cs(?!name)|(?:true|false)(?![A-Za-z@]))[A-Za-z@]*+(?!\s*[{}]))"
    r"|\\(?P<macro>[A-Za-z@]+)|\\.",
    re.DOTALL,
)
_SETTING = re.compile(r"(.+)(true|false)")
_Switches = dict[str, bool | None]  # None: it cannot be told


def choose_branches(text: str) -> str:
    r"""Return LaTeX without the branches that are not typeset, and without what decides on them.

    If a known condition has no ``\fi``, the text is returned as it is.
    """
    if "\\if" not in text:
        return text
    switches: _Switches = {"true": True, "false": False}
    choices: list[bool | None] = []  # by open condition: its branch is typeset; None: unknown
    num_open: Counter[bool | None] = Counter()  # conditions by choice; a list would be searched
    kept = []
    position = 0
    for found in _TOKEN.finditer(text):
        is_kept = not num_open[False]
        if is_kept:
            kept.append(text[position : found.start()])
        position = found.end()
        condition = found["condition"]
        if condition is not None:
            choices.append(switches.get(condition))
            num_open[choices[-1]] += 1
            is_kept &= condition not in switches
        elif found["branch"] and choices:
            choice = choices.pop()
            num_open[choice] -= 1
            is_kept &= choice is None
            if found["branch"] == "else":
                choices.append(None if choice is None else not choice)
                num_open[choices[-1]] += 1
        elif is_kept:
            is_kept = not _set_switch(switches, found, is_certain=not num_open[None])
        if is_kept:
            kept.append(found[0])
    is_open = any(choice is not None for choice in choices)
    return text if is_open else "".join([*kept, text[position:]])


def _set_switch(switches: _Switches, found: re.Match[str], *, is_certain: bool) -> bool:
    """Set the switch that a macro sets; return False if it sets none."""
    name = found["new"] or found["alias"]
    setting = _SETTING.fullmatch(found["macro"] or "")
    if found["new"]:
        value = False
    elif name:
        value = found["target"] == "true"
    elif setting and setting[1] in switches:
        name = setting[1]
        value = setting[2] == "true"
    else:
        return False
    switches[name] = value if is_certain else None
    return True
