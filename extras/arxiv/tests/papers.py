"""Papers for the tests of LaTeX: a document around a few lines of markup."""

from extras.arxiv.latex.reader import read_latex

HEAD = "\\documentclass{article}%s\\begin{document}\\section{Introduction}\n"


def text_of(body: str, preamble: str = "", **files: str) -> str:
    """Return the text of a paper with this body, less its heading; ``files`` are further files."""
    named = {name.replace("_", "."): text for name, text in files.items()}
    return read_latex({"main.tex": HEAD % preamble + body, **named}).text[len("Introduction\n\n") :]
