import json

import pytest

from crawlers.text import latex_source
from crawlers.text.latex_source import (
    choose_root,
    cut_body,
    decode,
    drop_floats,
    drop_silent_macros,
    expand_macros,
    find_prose,
    join_files,
    strip_comments,
)
from tests.crawlers.conftest import refused

ROOT = r"\documentclass{article}\begin{document}%s\end{document}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a % b\nc", "a c"),
        ("a\n% b\n  c", "a\nc"),
        ("a % b\n\nc", "a \n\nc"),  # a blank line still ends the paragraph
        (r"5\% of a", r"5\% of a"),
        ("a\\\\% b\nc", "a\\\\c"),  # a line break, then a comment
        (r"\verb|%a| b", r"\verb|%a| b"),
        ("\\begin{verbatim}\n% a\n\\end{verbatim}", "\\begin{verbatim}\n% a\n\\end{verbatim}"),
        (r"\url{http://a.b/%20c} d", r"\url{http://a.b/\%20c} d"),
        (r"a\begin{comment}b \end{comment}c", "ac"),
        (r"a\iffalse b \fi c", "a c"),
    ],
)
def test_comments_go_and_per_cent_signs_stay(source: str, expected: str) -> None:
    assert strip_comments(source) == expected


def test_text_that_is_not_utf8_is_latin1() -> None:
    assert decode("Zürich".encode()) == decode("Zürich".encode("latin-1")) == "Zürich"
    assert decode(b"\xef\xbb\xbfa\r\nb\rc\0") == "a\nb\nc"


def test_the_root_is_the_document_with_the_most_inputs() -> None:
    files = {
        "long.tex": ROOT % ("x" * 1000),
        "paper.tex": ROOT % r"\input{a}\include{b}",
        "part.tex": r"\documentclass[paper]{subfiles}\begin{document}\input{a}\input{b}\input{c}",
        "a.tex": r"\section{Introduction}",
    }
    assert choose_root(files) == "paper.tex"
    files["00README.XXX"] = "figure.ps ignore\nlong.tex toplevelfile\n"
    assert choose_root(files) == "long.tex"
    del files["00README.XXX"]
    sources = [{"usage": "include", "filename": "a.tex"}, {"usage": "toplevel"}]
    files["00README.json"] = json.dumps({"sources": sources})
    assert choose_root(files) == "paper.tex"  # empty hints have no effect
    sources[1]["filename"] = "long.tex"
    files["00README.json"] = json.dumps({"sources": sources})
    assert choose_root(files) == "long.tex"


def test_a_package_without_a_document_has_no_tex() -> None:
    with refused("no_tex"):
        choose_root({"a.tex": r"\section{Introduction} A part of something."})


def test_inputs_are_resolved_within_the_package() -> None:
    files = {
        "src/main.tex": ROOT
        % r"\input{parts/one} \include{two.tex} \input three \import{parts/}{four} \subfile{five}",
        "src/parts/one.tex": r"1\input{inner}",
        "src/parts/inner.tex": "i",
        "src/two.tex": "2",
        "src/three.tex": "3",
        "src/parts/four.tex": "4",
        "src/five.tex": r"\documentclass[main]{subfiles}\begin{document}5\end{document} no",
    }
    assert join_files(files) == ROOT % "1i 2 3 4 5"


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../../../etc/passwd", "..//..//etc/passwd", "~/.netrc", "", "."]
)
def test_files_outside_the_package_are_nothing(name: str) -> None:
    source = rf"a\input{{{name}}}b\import{{/etc/}}{{passwd}}c\include{{{name}}}"
    assert join_files({"main.tex": ROOT % source}) == ROOT % "abc"


def test_files_that_include_each_other_end() -> None:
    files = {"main.tex": ROOT % r"m\input{a}", "a.tex": r"a\input{b}", "b.tex": r"b\input{a}."}
    assert join_files(files) == ROOT % "mab."
    chain = {f"{n}.tex": rf"{n} \input{{{n + 1}}}" for n in range(40)}
    joined = join_files({"main.tex": ROOT % r"\input{0}", **chain})
    assert f"{latex_source.MAX_DEPTH - 1} " in joined
    assert f"{latex_source.MAX_DEPTH} " not in joined


def test_inputs_that_multiply_are_refused() -> None:
    files = {f"{n}.tex": rf"\input{{{n + 1}}}\input{{{n + 1}}}" for n in range(19)}
    files |= {"main.tex": ROOT % r"\input{0}", "19.tex": "x" * 1000}
    with refused("too_large"):
        join_files(files)


def test_macros_without_arguments_are_expanded() -> None:
    source = (
        r"\newcommand{\ours}{\textsc{Tide}\xspace}\def\be{\begin{equation}}\newcommand\x {\be}"
        r"\newcommand{\two}[1]{(#1)}\ours works, \ours{}ly \x \two{a} \oursnot"
    )
    assert expand_macros(source) == (
        r"\newcommand{\two}[1]{(#1)}\textsc{Tide} works, \textsc{Tide}ly "
        r"\begin{equation}\two{a} \oursnot"
    )


@pytest.mark.long
def test_macros_that_multiply_are_refused() -> None:
    chain = "".join(
        f"\\def\\{name}{{{uses * 30}}}"
        for name, uses in zip(
            "abcdefg", ("\\b", "\\c", "\\d", "\\e", "\\f", "\\g", "x"), strict=True
        )
    )
    with refused("too_large"):
        expand_macros(chain + r"\a")
    assert len(expand_macros(r"\def\a{\a\a}\a")) < 1000


def test_the_prose_lies_between_introduction_and_back_matter() -> None:
    source = ROOT % (
        r"\title{T}\author{A {\bf B \thanks{C}} \texttt{a@b.c}}\maketitle"
        r"\begin{abstract}Abstract\end{abstract}\section*{1. {\sc Introduction}}Prose%s No"
    )
    for end in (
        r"\bibliography{x}", r"\begin{thebibliography}{9}", r"\printbibliography", r"\appendix",
        r"\begin{appendices}", r"\section*{Acknowledgments}", r"\begin{acks}", r"\end{document}",
        r"\subsubsection*{Acknowledgement}", r"\section{Appendix A}", r"\acknowledgments",
    ):  # fmt: skip
        assert cut_body(source % end) == (r"\section*{1. {\sc Introduction}}Prose", True)


def test_without_an_introduction_the_prose_starts_after_the_abstract() -> None:
    source = ROOT % r"\maketitle\author{A}\begin{abstract}B\end{abstract}Prose\bibliographystyle{x}"
    assert cut_body(source) == (r"Prose\bibliographystyle{x}", False)
    assert cut_body(ROOT % r"\title{T}\maketitle Prose") == (" Prose", False)


def test_floats_go_with_all_that_is_in_them() -> None:
    source = r"a\begin{figure*}b\begin{tabular}{c}d\end{tabular}\end{figure*}e\begin{tikzpicture}"
    assert drop_floats(source) == r"ae\begin{tikzpicture}"


def test_citations_references_and_footnotes_go_with_their_arguments() -> None:
    source = r"see~\citet[p.~3][x]{a} and \ref{b}, word\footnote{A {nested} \url{x}}. \emph{k}"
    assert drop_silent_macros(source) == r"see and, word. \emph{k}"


def test_authors_and_addresses_never_reach_the_text() -> None:
    """A pattern up to the first closing brace would keep later names and e-mail addresses."""
    authors = r"\author{{\bf Ada {\'E}xample}\\ \texttt{ada@example.org} \And Boris {\tt b@c.d}}"
    with_heading = ROOT % (authors + r"\maketitle\section{Introduction}Prose")
    without = ROOT % (r"\maketitle" + authors + r"\affiliation{Home {of} x@y.z} Prose")
    assert find_prose(with_heading)[0] == r"\section{Introduction}Prose"
    assert find_prose(without)[0] == " Prose"
