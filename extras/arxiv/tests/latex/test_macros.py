import pytest

from extras.arxiv.latex.macros import expand_macros, find_words
from tests.crawlers.conftest import refused


def test_macros_are_expanded_and_definitions_removed() -> None:
    for definition, use, expected in (
        (r"\newcommand{\we}{\textsc{T}\xspace}", r"\we do, \we{}y", r"\textsc{T} do, \textsc{T}y"),
        (r"\newcommand*\a{\b}\def\b{c}", r"\a d\ab", r"cd\ab"),
        (r"\newcommand{\inner}{x\xspace}\newcommand{\outer}{\inner}", r"\outer y", "x y"),
        (r"\newcommand{\two}[2]{(#1: #2)}", r"\two{a}{\two b{c}}", "(a: (b: c))"),
        (r"\newcommand{\o}[2][d]{#1-#2}", r"\o{a} \o[b]{a}", "d-a b-a"),
        (r"\def\d#1#2{#2#1}", r"\d{a}b", "ba"),
        (r"\let\x\alpha", r"\x{}y \x y", r"\alpha y \alpha y"),
        (r"\newcommand{\y}{b}", r"\bf\y \emph\y", r"\bf{b}\emph{b}"),
        (r"\newcommand{\v}[1]{\mathbf#1\cdot}", r"\v{a}b", r"\mathbf{a}\cdot b"),
        (r"\newcommand{\p}[1]{\ifdraft\else #1\fi}", r"\p{a}", "a"),  # a program: its argument
        (r"\NewDocumentCommand{\q}{O{x} m}{#2-#1}", r"\q{a} \q[y]{b}", "a-x b-y"),
        (r"\NewDocumentCommand\r{m m}{\IfNoValueTF{#1}{}{c}#2}", r"\r{a}{b}", "b"),
        (r"\DeclareDocumentCommand{\t}{}{T\xspace}", r"\t is", "T is"),
        (r"\def\eg{e.g\onedot}", r"\eg this", "e.g. this"),
        (r"\renewcommand{\eqref}[1]{\ref{eq:#1}}", r"\eqref{a}", r"\ref{eq:a}"),
        (r"\renewcommand{\emph}[1]{b}\newcommand\item{b}", r"\emph{a}\item", r"\emph{a}\item"),
    ):  # fmt: skip
        assert expand_macros(definition + use) == expected, definition


def test_macros_for_words_come_from_styles_and_conferences() -> None:
    style = r"""\newcommand{\sys}{\textsc{Wren}\xspace} \newcommand{\two}[1]{two #1}
    \def\eg{for example\xspace} \def\width{10pt\relax}"""
    definitions = find_words([style])
    assert expand_macros(definitions + r"\sys is, \eg that, \etc").split("\n")[-1] == (
        r"\textsc{Wren} is, for example that, etc."
    )
    assert "width" not in definitions and "two" not in definitions
    assert "mine" in expand_macros(definitions + r"\def\ie{mine}\ie")


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
