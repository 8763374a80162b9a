"""The format that ``tidemark clean`` reads with this extra: a LaTeX source."""

from __future__ import annotations

from collections.abc import Mapping

from extras.arxiv.latex.source import SUFFIXES


def read_paper(path: str, files: Mapping[str, bytes]) -> str:
    """Return the text of a paper."""
    from extras.arxiv.latex.reader import LatexReader

    with LatexReader() as reader:
        return reader.read(files).text


CLEANERS = {"latex": read_paper}
PACKAGES = {"latex": SUFFIXES}
ENDINGS = dict.fromkeys((".tex", ".ltx", ".latex"), "latex")
