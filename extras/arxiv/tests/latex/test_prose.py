from extras.arxiv.latex.prose import balance, cut_body, drop_floats
from extras.arxiv.tests.papers import text_of

ROOT = r"\documentclass{article}\begin{document}%s\end{document}"


def test_the_prose_lies_between_introduction_and_back_matter() -> None:
    source = ROOT % (
        r"\title{T}\author{A {\bf B \thanks{C}} \texttt{a@b.c}}\maketitle"
        r"\begin{abstract}Abstract\end{abstract}\section*{1. {\sc Introduction}}Prose%s No"
    )
    for end in (
        r"\bibliography{x}", r"\begin{thebibliography}{9}", r"\printbibliography", r"\appendix",
        r"\begin{appendices}", r"\section*{Acknowledgments}", r"\begin{acks}", r"\end{document}",
        r"\subsubsection*{Acknowledgement}", r"\section{Appendix A}", r"\acknowledgments",
        r"{\bf Acknowledgments.}", r"\textbf{Acknowledgement}", r"\bmhead{Acknowledgments}",
        r"\backmatter", r"\begin{appendix}",
    ):  # fmt: skip
        assert cut_body(source % end) == (r"\section*{1. {\sc Introduction}}Prose", True), end
    numbered = r"\section{Acknowledgements}Thanks\bibliography{x}"
    assert cut_body(source % numbered)[0].endswith(r"Prose\section{Acknowledgements}Thanks")


def test_without_an_introduction_the_prose_starts_after_the_abstract() -> None:
    source = ROOT % r"\maketitle\author{A}\begin{abstract}B\end{abstract}Prose\bibliographystyle{x}"
    assert cut_body(source) == (r"Prose\bibliographystyle{x}", False)
    assert cut_body(ROOT % r"\title{T}\maketitle Prose") == (" Prose", False)


def test_floats_go_with_all_that_is_in_them() -> None:
    source = r"a\begin{figure*}b\begin{tabular}{c}d\end{tabular}\end{figure*}e"
    assert drop_floats(source) == "a\ue000e"
    assert (
        text_of("a\n\\begin{table}\\caption{b}\\end{table}\nc\\begin{tikzpicture} d") == "a c\n\nd"
    )


def test_what_is_removed_leaves_no_paragraph_and_no_space() -> None:
    for removed in (r"\cite{a}", r"\footnote{A {nested} \url{x}}", r"\label{a}", r"\vspace{1em}"):
        assert text_of(
            f"One\n{removed}\ntwo {removed}.\n\n{removed}\n\nThree {removed} , four"
        ) == ("One two.\n\nThree, four"), removed


def test_authors_and_addresses_never_reach_the_text() -> None:
    """A pattern up to the first closing brace would keep later names and e-mail addresses."""
    authors = r"\author{{\bf Ada {\'E}xample}\\ \texttt{ada@example.org} \And Boris {\tt b@c.d}}"
    assert text_of(authors + r"\maketitle\affiliation{Home {of} x@y.z} Prose") == "Prose"


def test_braces_get_a_partner_or_go() -> None:
    assert balance(r"a{b}} {c \{ {d}") == r"a{b} c \{ {d}"
    assert balance("{" * 100 + "a" + "}" * 100) == "{" * 40 + "a" + "}" * 40
