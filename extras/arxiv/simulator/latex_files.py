"""The LaTeX files of simulated papers, with what is hard to read in real ones."""

from __future__ import annotations

import io
import json
import re
import tarfile
import textwrap

from simulator.world import Story

MATHS = r"We write $a<b$ and $c>d$ for the two orders."

_MAIN = r"""\documentclass[11pt]{article}
\usepackage[utf8]{inputenc}
% \input{never} is in a comment
\newcommand{\eg}{e.g.\xspace}
\def\be{\begin{equation}}
\def\ee{\end{equation}}
\title{TITLE\thanks{Supported by \textbf{nobody}.}}
\author{{\bf Ada {\'E}xample}\textsuperscript{1} \and Boris Sample\\
  \texttt{ada@example.org}, {\tt \{boris,chen\}@example.org}}
\begin{document}
\maketitle
\begin{abstract}
ABSTRACT
\end{abstract}
\input{sections/introduction}
\include{sections/findings}
\section*{Acknowledgements}
We thank Dora Ejemplo.
\bibliographystyle{plain}
\bibliography{references}
\appendix
\input{appendix.tex}
\end{document}
"""
_FIGURE = r"""\begin{figure*}[t]
  \centering \includegraphics[width=\textwidth]{figures/plot.pdf}
  \caption{A figure that no reader of the text needs.}\label{fig:plot}
\end{figure*}
"""
_APPENDIX = "\\section{More}\nWhat stands here is not the paper's prose.\n"


def latex_files(story: Story, number: int, is_revised: bool) -> dict[str, bytes]:
    """Return the files of a paper's source by name.

    Papers with odd numbers name their main file.
    """
    first, *others = (_markup(text) for text in story.paragraphs)
    if is_revised:
        first = f"This version was revised. {first}"
    maths = f"\n{MATHS}\n" if number % 3 == 0 else ""
    abstract = textwrap.fill(_escape(story.paragraphs[0][:200]), 76)
    files = {
        "main.tex": _MAIN.replace("TITLE", story.title).replace("ABSTRACT", abstract),
        "sections/introduction.tex": f"\\section{{Introduction}}\\label{{s:1}}\n{first}{maths}",
        "sections/findings.tex": "\\section{Findings}\n" + "\n".join(others) + _FIGURE,
        "appendix.tex": _APPENDIX,
        "main.bbl": "\\begin{thebibliography}{1}\\bibitem{one} One.\\end{thebibliography}\n",
    }
    if number % 2:
        source = {"usage": "toplevel", "filename": "main.tex"}
        files["00README.json"] = json.dumps({"spec_version": 1, "sources": [source]})
    return {name: text.encode() for name, text in files.items()} | {"figures/plot.pdf": b"%PDF-1.5"}


def _escape(text: str) -> str:
    return re.sub(r"([%&#_$])", r"\\\1", text)


def _markup(paragraph: str) -> str:
    lines = textwrap.wrap(_escape(paragraph), 76, break_on_hyphens=False)
    lines.insert(1, "% a remark of the authors, 50% true")
    return "\n".join(lines).replace(". ", "~\\citep[see][p.~3]{one,two}. ", 1) + "\n"


def one_file(files: dict[str, bytes]) -> bytes:
    """Return the main file with the others in place of the commands that include them."""
    text = files["main.tex"].decode()
    for macro, name in (
        (r"\input{sections/introduction}", "sections/introduction.tex"),
        (r"\include{sections/findings}", "sections/findings.tex"),
        (r"\input{appendix.tex}", "appendix.tex"),
    ):
        text = text.replace(macro, files[name].decode())
    return text.encode()


def packed(files: dict[str, bytes]) -> bytes:
    """Return a tar archive of files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()
