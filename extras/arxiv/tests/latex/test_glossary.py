import pytest

from extras.arxiv.tests.papers import text_of

GLOSSARY = r"""\newacronym[plural=x]{svm}{SVM}{support vector machine}
\newglossaryentry{kernel}{name={kernel}, description={a {nested} function}}
\DeclareAcronym{api}{short = API, long = {application interface}}
\acrodef{gp}[GP]{Gaussian process} \newacronym{broken}{no long form}"""


@pytest.mark.parametrize(
    ("used", "shown"),
    [
        (r"A \gls{svm} or \glspl{svm}.", "A support vector machine (SVM) or SVMs."),
        (r"\Gls{kernel} of \acrshort{svm}, \acrlong{svm}", "Kernel of SVM, support vector machine"),
        (r"\acp{api}, \acl*{gp}, \acs{gp}, \acf{gp}",
         "Application interfaces (APIs), Gaussian process, GP, Gaussian process (GP)"),
        (r"an \gls[hyper=false]{ svm } and \gls{other}",
         "an support vector machine (SVM) and other"),
    ],
)  # fmt: skip
def test_keys_of_acronyms_and_terms_become_their_words(used: str, shown: str) -> None:
    assert text_of(used, GLOSSARY).lower() == shown.lower()


def test_a_glossary_may_be_another_file() -> None:
    preamble = r"\loadglsentries{terms}\newcommand{\svm}{\gls{svm}\xspace}"
    assert text_of(r"A \svm here.", preamble, terms_tex=GLOSSARY).startswith("A support vector")
