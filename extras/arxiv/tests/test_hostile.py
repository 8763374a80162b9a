"""Hostile papers: the time to read one is linear in its length."""

import contextlib

import pytest

from core.errors import ItemUnavailable
from extras.arxiv.latex.reader import read_latex
from tests.crawlers.text.test_hostile import SIZE, check_linear

PIECES = [
    "{", "}", "$", "$$", "~", "\\[", "\\(", "\\%", "\n\n", " \n", "(", "( [ ", "%", "\\verb|",
    "\\begin{equation}", "\\begin{lstlisting}[", "\\begin{verbatim}", "\\begin{figure}", "a. ",
    "\\iffalse", "\\begin{enumerate}\\item", "\\lstinline{", "\\cite{", "in \\cite{a} ",
    "(\\cite{a}", "\\ref{a}", "\\label{a}", "\\footnote{", "\\newcommand{\\x}[1]{", "\\x{",
    "\\section{", "\\section*[", "\\footnotemark[", "\\SI{", "Eq. (\\ref{z}). ", "\\bibitem[{",
    "\\ensuremath{", "$\\text{", "\\begin{a}[", "\\foo[a]", "\\item[",
]  # fmt: skip


def read_paper(text: str) -> None:
    source = f"\\documentclass{{a}}\\begin{{document}}\\section{{Introduction}}{text[:25_000]}"
    with contextlib.suppress(ItemUnavailable, RecursionError):
        read_latex({"a.tex": source})


@pytest.mark.long
def test_time_is_linear_in_hostile_pieces() -> None:
    for piece in PIECES:
        check_linear(read_paper, piece * (SIZE // len(piece)))
