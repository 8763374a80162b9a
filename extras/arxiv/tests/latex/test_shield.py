import pytest

from extras.arxiv.latex.shield import Shield, shield_code
from extras.arxiv.tests.papers import text_of
from tests.crawlers.conftest import refused

DEFINITIONS = (
    r"\lstnewenvironment{mycode}[1][]{\lstset{#1}}{}\newminted{python}{}\newminted[short]{c}{}"
    r"\DefineVerbatimEnvironment{MyVerb}{Verbatim}{fontsize=\small}\excludecomment{hidden}"
    r"\newenvironment{wrapped}{\verbatim}{\endverbatim}\newmintinline{rust}{}\MakeShortVerb{\|}"
)
BEGINNINGS = (  # of environments whose content is no markup
    "{lstlisting}[language=C,caption={a [b] {c {d}}}]", "{Verbatim}[frame=single]",
    "{minted}[x=y]{python}", "{verbatim}", "{verbatim*}", "{alltt}", "{comment}", "{mycode}[x=y]",
    "{pythoncode}", "{short}", "{MyVerb}", "{wrapped}", "{hidden}",
)  # fmt: skip
UNBALANCED = (
    "cost $5", "open {", "close }", "half % done", "pairs $$ of", r"\section{x} $ {", r"\verb|x $",
    r"\begin{figure} {", r"\end{itemize} & # ^ _ ~", r"\[ \( $$ {", r"\iffalse $", r"\cite{",
)  # fmt: skip


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_code_leaves_nothing_after_it_raw(beginning: str) -> None:
    name = beginning[1 : beginning.index("}")]
    for line in UNBALANCED:
        code = f"\\begin{beginning}\n{line}\n  last line\n\\end{{{name}}}\n"
        text = text_of(
            f"Before.\n{code}After \\emph{{this}} and $x^2$.\n\n\\section{{Next}}\nA 5\\% rise.",
            DEFINITIONS,
        )
        is_shown = name not in ("comment", "hidden", "alltt") and "\\" not in line
        shown = f"{line}\n  last line\n\n" if is_shown else ""
        assert text.startswith(f"Before.\n\n{shown}"), (name, line)
        assert text.endswith("After this and $x^2$.\n\nNext\n\nA 5% rise."), (name, line)
        assert "\\" not in text, (name, line)


@pytest.mark.parametrize(
    "form",
    [
        r"\verb|{}|", r"\verb*+{}+", r"\Verb!{}!", r"\lstinline|{}|", r"\lstinline[language=C]!{}!",
        r"\mintinline{{c}}|{}|", r"\rustinline|{}|", "|{}|",
    ],
)  # fmt: skip
def test_code_in_a_line_leaves_nothing_after_it_raw(form: str) -> None:
    for code in ("a $ b", "{", "}", "% x", "$$", r"\begin{x}", r"\verb"):
        text = text_of(f"See {form.format(code)} in \\emph{{x}} $y$.\n\nNext.", DEFINITIONS)
        assert text == f"See {code} in x $y$.\n\nNext.", code


def test_code_in_braces_may_hold_a_dollar_sign() -> None:
    for form in (
        r"\lstinline{f($a{1})}",
        r"\lstinline[x=y]{f($a{1})}",
        r"\mintinline{c}{f($a{1})}",
    ):
        assert text_of(f"a {form} b $c$") == "a f($a{1}) b $c$"


def test_code_that_never_ends_is_text() -> None:
    assert text_of("a \\begin{lstlisting} b \\verb|c\n\\iffalse d") == "a b |c d"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a % b\nc", "a c"),
        ("a\n% b\n  c", "a\nc"),
        ("a % b\n\nc", "a \n\nc"),  # a blank line still ends the paragraph
        (r"5\% of a", r"5\% of a"),
        ("a\\\\% b\nc", "a\\\\c"),  # a line break, then a comment
        (r"\verb|%a| b", "%a b"),
        (r"\url{http://a.b/%20c} d", r"\url{http://a.b/%20c} d"),
        (r"a\begin{comment}b \end{comment}c", "ac"),
    ],
)
def test_comments_go_and_per_cent_signs_stay(source: str, expected: str) -> None:
    shield = Shield()
    assert shield.restore(shield_code({"a.tex": source}, shield)["a.tex"]) == expected


def test_a_paper_has_a_limited_number_of_pieces() -> None:
    shield = Shield()
    with refused("too_large"):
        for number in range(70_000):
            assert shield.restore(shield.keep(f"${number}$")) == f"${number}$"
