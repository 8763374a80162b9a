"""READMEs of projects: prose without badges, tags and rules of tables."""

from __future__ import annotations

import re
from pathlib import Path

from core.settings import Settings
from crawlers.text.cleaning import clean
from crawlers.text.code import read_readme
from tests.crawlers.recorded import Case

_CODE = re.compile(r"(?ms)^ *(```|~~~).*?^ *\1|`[^`]+`")
_WRONG = {
    "an image or a link": r"!\[|\]\((?:https?:|[./\w]+\.\w)|\]\[",
    "a badge": r"badge|shields\.io|\.svg",
    "a tag": r"</?[a-z]+(?: [^<>]*)?/?>(?!_)",
    "the rule of a table": r"(?m)^\s*\|?(?:\s*:?-+:?\s*\|)+|^\+[-=+]+\+$|^=+(?: +=+)+$",
    "a link of reStructuredText": r"`\s*<https?:|`__?(?!\w)|>`_",
}


def _check(folder: Path, settings: Settings) -> None:
    for file in sorted(folder.iterdir()):
        name = file.name.rpartition("+")[2].partition(".")[2]  # without owner and project
        text = clean(read_readme(name, file.read_bytes()))
        prose = _CODE.sub("X", text)
        assert len(prose.split()) > 50, f"{file.name}: {text[:200]!r}"
        for fault, pattern in _WRONG.items():
            found = re.search(pattern, prose)
            around = prose[max(0, found.start() - 60) : found.end() + 60] if found else ""
            assert not found, f"{file.name}: {fault}: {around!r}"


CASES = [Case("readme", _check)]
