import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import psutil
import pytest
from pylatexenc.latexwalker import LatexWalker

from extras.arxiv.latex import reader as latex_reader
from extras.arxiv.latex.reader import LatexReader, read_latex
from extras.arxiv.latex.source import decode_files, join_files
from extras.arxiv.tests.papers import text_of
from tests.crawlers.conftest import refused
from tests.loopback import wait_for

RECORDED = Path(__file__).parents[5] / "shared" / "recordings" / "latex"
HEAD = b"\\documentclass{article}\\begin{document}\\section{Introduction}\n"
SLOW = HEAD + b"\\textbf{a} $b$\n\n" * 300_000  # a paper of five megabytes


@pytest.fixture
def reader() -> Iterator[LatexReader]:
    with LatexReader() as reader:
        yield reader


def children() -> list[int]:
    return [child.pid for child in psutil.Process().children()]


def test_paragraphs_are_lines_and_headings_stand_alone() -> None:
    source = 'One\nline.\n\nTwo.\n\\subsection*{M\\"uller}\nThree.\\par Four.'
    assert text_of(source) == "One line.\n\nTwo.\n\nMüller\n\nThree.\n\nFour."


# Markup around which words could be read wrongly: arguments of one letter, stars, blanks, brackets.
_PIECES = (
    "word", "two words", "\n", "\n\n", "  ", "~", "&", "\\&", "\\textbf{a b}", "{\\bf x}", "[x]",
    "[", "]", "*", "\\\\*", "\\\\[2pt]", "\\item[a] b", "\\item ", "\\'e", "\\' e", '\\"{o}',
    "\\c c", "\\emph b", "``q''", "---", "!`", "<<", "\\section*{T u}", "\\textcolor{red}{x y}",
    "\\SI{1}{m}", "\u00e9", "(a)", "a,b.", "^2", "_3", "\\textsuperscript 2", "\\href{u}{v w}",
    "\t", "\\ ", "\\hbox to 3pt{a}", "\\parbox[t]{1cm}{x y}",
    "\\begin{itemize}\\item a\\end{itemize}", "\\item~[x] y", "\\emph~b", "\\begin", "\\end ",
    "\\begin {center}", "\\end\n{center}", "\\endgroup", "\\begin\u00e9", "\\begin\u00b2", "{", "}",
    " " * 300 + "\\begin{center}x\\end{center}", "\\emph\u00e9", "\\emph \n {c}", "\\emph\n\nx",
)  # fmt: skip


def test_words_are_read_at_once_as_the_library_reads_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = Random(5)
    bodies = [" ".join(drawn.choices(_PIECES, k=12)) for _ in range(100)]
    bodies += ["".join(drawn.choices(_PIECES, k=12)) for _ in range(100)]
    found = [text_of(body) for body in bodies]
    monkeypatch.setattr(latex_reader, "_Walker", LatexWalker)
    for body, text in zip(bodies, found, strict=True):
        assert text_of(body) == text, body


@pytest.fixture(name="steps")
def _steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list with an entry for each step of the parser from now on."""
    steps: list[int] = []
    step = latex_reader._Walker.get_token

    def count(walker: Any, *arguments: Any, **options: Any) -> Any:
        steps.append(1)
        return step(walker, *arguments, **options)

    monkeypatch.setattr(latex_reader._Walker, "get_token", count)
    return steps


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """A quarter of the usual limit of steps, which a quarter of a megabyte reaches."""
    limit = latex_reader.MAX_STEPS // 4
    monkeypatch.setattr(latex_reader, "MAX_STEPS", limit)
    return limit


def test_a_paragraph_takes_few_steps(steps: list[int]) -> None:
    """The library alone takes one for each letter."""
    for sentence in (
        "A word of prose, and another one. ",
        "It's a [first-rate] word: \"a*b\" < `c' ^_@#!? ",
        "\u4e2d\u6587*\u00a0",
        "A paragraph.\n\n",
    ):
        steps.clear()
        assert len(text_of(sentence * 200)) > 700, sentence
        assert len(steps) < 100, sentence


def test_text_before_a_piece_is_not_searched_again() -> None:
    """The library searches all text of a paragraph for its last line, before each piece."""
    called: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call":
            called.add((frame.f_code.co_name, getattr(argument, "__name__", "")))

    sys.setprofile(note)
    try:
        text = text_of("In Eq. {3} we have {b}. " * 3)
    finally:
        sys.setprofile(None)
    assert text == " ".join(["In Eq. 3 we have b."] * 3)
    assert ("nodelist_to_text", "join") in called
    assert ("nodelist_to_text", "rfind") not in called


MARKUP = (
    "\\a[",
    "\\a ",
    "\\item words ",
    "words{words}",
    "\\section{",
    "\\section{a}",
    "\\def ",
    "\\ref ",
    "\\\\",
    "{",
)


def test_nothing_but_markup_is_refused_before_it_is_parsed(steps: list[int], limit: int) -> None:
    for unit in MARKUP:
        with refused("too_much_markup"):
            text_of(unit * (250_000 // len(unit)))
        assert not steps, unit


def test_the_steps_of_the_parser_are_limited(steps: list[int], limit: int) -> None:
    for unit in ("--a", "``a'' ", "?`", "\\begin", "\\end ", "\\emph{abcde}"):
        steps.clear()
        with refused("too_much_markup"):
            text_of(unit * limit)
        assert len(steps) <= 2 * limit, unit


@pytest.mark.skipif(not RECORDED.exists(), reason="the recordings are not here")
def test_recorded_papers_are_far_from_the_limits(steps: list[int]) -> None:
    for folder in sorted(RECORDED.iterdir()):
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.suffix in {".tex", ".bbl"}
        }
        steps.clear()
        source = join_files(decode_files(files))
        signs = sum(map(source.count, "\\{}"))
        assert signs < min(latex_reader.MIN_SIGNS, latex_reader.MAX_SIGN_SHARE * len(source)) / 2
        read_latex(decode_files(files))
        assert 0 < len(steps) < latex_reader.MAX_STEPS / 20


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("For $a<b$ and $c>d$ we have", "For $a<b$ and $c>d$ we have"),
        (r"\(x_1\) and \[\frac{1}{2}\]", r"$x_1$ and $\frac{1}{2}$"),
        (r"\begin{align*} a &= b \nonumber\label{x} \end{align*}", "$a &= b$"),
        (r"\begin{IEEEeqnarray}{rCl} a \end{IEEEeqnarray}", "$a$"),
        (r"$a \text{ if $b$}$ \ensuremath{c_{1}} $$d$$ , e", r"$a \text{ if $b$}$ $c_{1}$ $d$, e"),
        (r"\enquote{a} `b' \replaced{c}{d}\deleted{e}, a {``}b''", "“a” ‘b’ c, a “b”"),
        (r"Ma et al.~\cite{a}. \ifthenelse{\boolean{x}}{b}{c}", "Ma et al. b"),
        ("a $ stray\n\nb $x$ \\[ c", "a stray\n\nb $x$ c"),
        (r"a\\[2pt]b \[x\\[1ex]y\]", r"a b $x\\[1ex]y$"),
    ],
)
def test_maths_stays_as_source(source: str, expected: str) -> None:
    """A pattern like ``<[^>]*>`` would remove the text between two formulas."""
    assert text_of(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"Sk\l odowska, Erd\H{o}s, 5\%, A\&B", "Skłodowska, Erdős, 5%, A&B"),
        (r"\textbf{a \emph{b}} {\small c} \texttt{d\_e}", "a b c d_e"),
        (r"\textcolor{red}{a} \href{http://x.y}{b} \url{http://z/\%20c~d_e}", "a b http://z/%20c~d_e"),
        (r"\begin{itemize}[nosep]\item a\item[b] c\end{itemize}d", "- a\n\nb c\n\nd"),
        (r"\begin{minipage}[t]{0.5\textwidth}a\end{minipage}", "a"),
        (r"\begin{unknown}[x]{2em}a\end{unknown}b", "a\n\nb"),
        ("a\\begin{verbatim}\nx = 1  # y\n  z\n\\end{verbatim}b", "a\n\nx = 1  # y\n  z\n\nb"),
        (r"\paragraph{Run in.} a \verb|x_y|", "Run in. a x_y"),
        (r"``a'' -- b, \LaTeX{} and \copyright", "“a” – b, LaTeX and ©"),
        (r"a } stray {b \unknown{c} \begin{pmatrix}\end{pmatrix}d", "a stray b c\n\nd"),
        ("{" * 1000 + "deep" + "}" * 1000, "deep"),
        ("Done \\today. Kept.", "Kept."),  # the day of the crawl would not be reproducible
    ],
)  # fmt: skip
def test_markup_becomes_what_a_reader_sees(source: str, expected: str) -> None:
    assert text_of(source) == expected


def test_lengths_colours_and_options_are_no_text() -> None:
    for markup in (
        r"\fontsize{20}{25}\selectfont", r"\vspace{-1em}", r"\hspace*{2cm}", r"\vskip 3pt plus 1pt",
        r"\setlength\parindent{0pt}", r"\setlength{\tabcolsep}{3pt}", r"\addtolength{\x}{3pt}",
        r"\color[rgb]{1,0,0}", r"\definecolor{x}{rgb}{1,0,0}", r"\linespread{1.3}", r"\kern-2pt",
        r"\setcounter{page}{3}", r"\geometry{margin=1in}", r"\titleformat{\x}{\bf}{1}{2}{3}",
        r"\hypersetup{a=b}", r"\includegraphics[width=3cm]{plot}", r"\footnotemark[3]",
        r"\rule{1cm}{2pt}", r"\char92", r"\parskip=3pt", r"\pagebreak[4]", r"\sisetup{a=b}",
        r"\renewcommand{\arraystretch}{1.2}",
    ):  # fmt: skip
        assert text_of(f"a {markup} b") == "a b", markup
    for box in (
        r"\resizebox{1cm}{!}{b}", r"\scalebox{0.5}[2]{b}", r"\rotatebox[origin=c]{90}{b}",
        r"\textcolor[rgb]{1,0,0}{b}", r"\raisebox{2pt}{b}", r"\parbox[t]{3cm}{b}", r"\foo[x=1]{b}",
    ):  # fmt: skip
        assert text_of(f"a {box} c") == "a b c", box


def test_the_reader_gives_what_the_function_gives(reader: LatexReader) -> None:
    source = HEAD + "Zürich $a<b$.\n\\bibliography{x}".encode()
    paper = reader.read({"a.tex": source})
    assert (paper.text, paper.has_introduction) == ("Introduction\n\nZürich $a<b$.", True)
    assert paper == read_latex({"a.tex": source.decode()})


def test_files_of_this_machine_are_never_read(reader: LatexReader, tmp_path: Path) -> None:
    secret = tmp_path / "secret.tex"
    secret.write_text("SECRET")
    names = [str(secret), os.path.relpath(secret), "/etc/passwd"]
    inputs = "".join(rf"\input{{{n}}} \include{{{n}}} \input {n} " for n in names)
    assert reader.read({"a.tex": HEAD + inputs.encode() + b"Prose"}).text == "Introduction\n\nProse"


def test_one_worker_serves_many_papers(reader: LatexReader) -> None:
    reader.read({"a.tex": HEAD})
    workers = children()
    for number in range(10):
        assert reader.read({"a.tex": HEAD + b"%d" % number}).text.endswith(str(number))
    assert children() == workers


@pytest.mark.long
def test_a_bad_paper_costs_itself_only() -> None:
    before = children()
    deep = HEAD + b"\\section[" * 5_000
    with LatexReader(time_limit_s=1) as reader:
        reader.read({"a.tex": HEAD})
        assert len(children()) == len(before) + 1
        with refused("parse_error", match="longer than 1 s"):
            reader.read({"a.tex": SLOW})
        assert children() == before
        for source, reason in ((deep, "parse_error"), (b"Not a document", "no_tex")):
            with refused(reason):
                reader.read({"a.tex": source})
            assert reader.read({"a.tex": HEAD + b"Good."}).text == "Introduction\n\nGood."
    assert children() == before


def test_a_paper_that_takes_all_memory_costs_itself_only() -> None:
    with LatexReader(memory_bytes=100 * 2**20) as reader:
        with refused("parse_error"):
            reader.read({f"{n}.tex": b"x" * (5 * 2**20) for n in range(10)})
        assert reader.read({"a.tex": HEAD + b"Good."}).text == "Introduction\n\nGood."


def test_a_worker_whose_master_is_killed_ends() -> None:
    code = (
        "import sys; from extras.arxiv.latex.reader import LatexReader;"
        "r = LatexReader(time_limit_s=2);"
        "r.read({'a.tex': sys.argv[1].encode()}); print(r._process.pid, flush=True); input();"
        "r.read({'a.tex': sys.argv[1].encode() + b'\\\\textbf{a} $b$\\n\\n' * 300_000})"
    )
    master = subprocess.Popen(
        [sys.executable, "-c", code, HEAD.decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[4],
    )
    with master:
        assert master.stdin is not None
        assert master.stdout is not None
        worker = psutil.Process(int(master.stdout.readline()))
        master.stdin.write(b"\n")
        master.stdin.flush()
        time.sleep(0.5)  # it is at work on the second paper
        master.kill()

    def has_ended() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
        return True

    wait_for(has_ended)
