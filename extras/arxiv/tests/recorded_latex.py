"""LaTeX sources of published papers: the whole prose, without markup or holes."""

from __future__ import annotations

import re
from pathlib import Path

from core.settings import Settings
from crawlers.text.cleaning import clean
from extras.arxiv.latex.prose import cut_body
from extras.arxiv.latex.reader import read_latex
from extras.arxiv.latex.shield import Shield, shield_code
from extras.arxiv.latex.source import SUFFIXES, decode_files, join_files
from tests.crawlers.recorded import Case

_FORMULA = re.compile(r"\$[^$]*\$")
_WRONG = {
    "a macro": r"\\[A-Za-z]",
    "an empty parenthesis": r" \(\s*[,;.]?\s*\)",
    "a reference without a number": r"\b(?:Eqs?|Figs?|Secs?|Refs?|Tab)\. ?(?:[,;:)]|and\b|$)",
    "a reference without a number, too": r"\b(?:of|in|by|see) (?:Equation|Figure|Section)[.,;)]",
    "a space before punctuation": r"(?m)^[^>\n]*[a-z] [,;](?=\s)",
    "two signs of punctuation": r"[,;] ?[,;.] ",
    "a day after the paper's time": r"\b20(?:2[4-9]|[3-9]\d)\b",
}
_HEADING = re.compile(r"\\(?:sub)*section\*?\{([A-Za-z ]+)\}")


def _files(folder: Path) -> dict[str, str]:
    files = [file for file in sorted(folder.rglob("*")) if file.name.lower().endswith(SUFFIXES)]
    return decode_files({str(file.relative_to(folder)): file.read_bytes() for file in files})


def _check(folder: Path, *says: str, start: str = "Introduction\n\n") -> None:
    files = _files(folder)
    text = clean(read_latex(files).text)
    prose = _FORMULA.sub("X", text)
    for fault, pattern in _WRONG.items():
        found = re.search(pattern, prose)
        around = prose[max(0, found.start() - 40) : found.end() + 40] if found else ""
        assert not found, f"{folder.name}: {fault}: {around!r}"
    assert text.startswith(start), text[:200]
    body, _ = cut_body(join_files(shield_code(files, Shield())))
    for part in (*_HEADING.findall(body), *says):
        assert part.strip() in text, f"{folder.name} lacks {part!r}"


def _check_all(folder: Path, settings: Settings) -> None:
    for paper in sorted(each for each in folder.iterdir() if each.is_dir()):
        _check(paper, start="")


def _tidy_data(folder: Path, settings: Settings) -> None:
    _check(
        folder,
        "\n\nCase study\n\n", "\n\nDiscussion\n\n", "\n\nAcknowledgements\n\n",
        "Section 5. Section 6 concludes with a discussion", 'hod2 <- join(hod2, codes, by = "cod")',
        "natural equivalence between a paired t-test and a mixed effects model.",
    )  # fmt: skip


def _scipy(folder: Path, settings: Settings) -> None:
    _check(
        folder,
        "consists of approximately 1500 functions and classes.",
        start="Introduction\n\nSciPy is a library of numerical routines",
    )


def _sympy(folder: Path, settings: Settings) -> None:
    _check(folder, start="Introduction\n\nSymPy is a full featured computer algebra system")


def _celerite(folder: Path, settings: Settings) -> None:
    _check(folder, start="Introduction\n\nIn the astrophysical literature")


CASES = [
    Case("latex/tidy-data", _tidy_data),
    Case("latex/scipy-1.0", _scipy),
    Case("latex/sympy-paper", _sympy),
    Case("latex/celerite", _celerite),
    Case("latex", _check_all, "long"),
]
