from extras.arxiv.tests.papers import text_of

BIBLIOGRAPHY = (
    r"\begin{thebibliography}{9}\bibitem[{{Smith} {\it et~al.}(2019){Smith}, {Jones}}]{s}"
    r"\bibitem[M\"uller(2020)]{m}\bibitem{k}\end{thebibliography}"
)


def test_references_are_numbers() -> None:
    source = r"""\label{intro}
        \begin{equation}\label{e} a \end{equation} \begin{equation*} b \end{equation*}
        \begin{align} c \nonumber \\ d \label{d} \\ f \label{f} \end{align}
        \begin{figure}\begin{subfigure}\label{sub}\end{subfigure}\caption{x}\label{fig}\end{figure}
        \begin{table}\label{tab}\end{table}\section{B}\subsection{C}\label{c}
        \begin{thm}\label{t}\end{thm}\begin{lem}\label{l}\end{lem}
        \begin{enumerate}\item a \item \label{i} b\end{enumerate}
        \begin{lstlisting}[label=code]
        \end{lstlisting}
        %s \appendix \section{D}\label{app}"""
    theorems = r"\newtheorem{thm}{Theorem}[section]\newtheorem{lem}[thm]{Lemma}"
    for reference, expected in (
        (r"Eq.~(\ref{e})", "Eq. (1)"), (r"Eqs.~\eqref{d} and~\eqref{f}", "Eqs. (2) and (3)"),
        (r"Fig.~\ref{fig}, \subref{sub}", "Fig. 1, 1a"), (r"\autoref{tab}", "Table 1"),
        (r"\S\ref{c}", "§2.1"), (r"\cref{t}", "Theorem 2.1"), (r"Lemma~\ref{l}", "Lemma 2.2"),
        (r"\Cref{d,f}", "Equations (2) and (3)"), (r"item~\ref{i}", "item 2"),
        (r"\crefrange{d}{f}", "Equations (2) to (3)"), (r"Listing~\ref{code}", "Listing 1"),
        (r"Appendix~\ref{app}", "Appendix A"), (r"\nameref{c}", "C"), (r"\ref{intro}", "1"),
    ):  # fmt: skip
        text = text_of(source % f"\n\nSee {reference}.\n\n", theorems)
        assert f"\n\nSee {expected}." in text, reference


def test_an_unknown_reference_costs_its_parenthesis_or_its_sentence() -> None:
    for source, expected in (
        (r"One. See Sec.~\ref{x} (e.g. two). Three.", "One. Three."),
        (r"One (see Fig.~\ref{x}) is. Two.", "One is. Two."),
        (r"By Eq.~(\ref{x}) it is. Two, cf. Fig. 3.", "Two, cf. Fig. 3."),
        (r"As Figs.~\ref{x} and~\ref{y} show.", ""),
        (r"See it on page~\pageref{x}. Two.", "See it. Two."),
    ):
        assert text_of(source) == expected, source


def test_a_citation_stays_where_the_sentence_needs_it() -> None:
    for source, expected in (
        (r"Known~\cite{k}, so \citep[see][p.~3]{k}.", "Known, so."),
        (r"As in~\cite{k}, we use it.", "As in [3], we use it."),
        (r"Rules. \cite{k} shows it. Known. \cite{k} Next.", "Rules. [3] shows it. Known. Next."),
        (r"Work by \cite{k}, \cite{x} and \cite{y}.", "Work by [3], [4] and [5]."),
        (r"\citet{s} and \citeauthor{m} (\citeyear{m})", "Smith et al. (2019) and Müller (2020)"),
        (
            r"Seen (\cite{k}; see also \citealt{k}), not (e.g. \cite{k}).",
            "Seen (see also [3]), not (e.g. [3]).",
        ),
        (
            r"One \cite{k}, two \cite{k}--\cite{s}; three (ours; \cite{k}).",
            "One, two; three (ours).",
        ),
        (r"A method \cite{k} and \cite{s}, like \cite{k}", "A method, like [3]"),
        (r"With \citet{z} (\citeyear{z}).", "With [4]."),
    ):
        assert text_of(source + BIBLIOGRAPHY) == expected, source
    document = {"refs_bbl": BIBLIOGRAPHY}
    assert text_of(r"Use \citet{s}.", **document) == "Use Smith et al. (2019)."
