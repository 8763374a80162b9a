import json

import pytest

from extras.arxiv.latex import source as latex_source
from extras.arxiv.latex.source import choose_root, decode, join_files
from tests.crawlers.conftest import refused

ROOT = r"\documentclass{article}\begin{document}%s\end{document}"
TITLED = ROOT % r"\maketitle"


def test_text_that_is_not_utf8_is_latin1() -> None:
    assert decode("Zürich".encode()) == decode("Zürich".encode("latin-1")) == "Zürich"
    assert decode("\ufeffa\r\nb\rc\0\ue000\U000f0000".encode()) == "a\nb\nc"


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


def test_a_paper_goes_before_what_is_sent_with_it() -> None:
    long = ROOT % (r"\maketitle\begin{abstract}\input{a}\input{b}" + "x" * 1000)
    for name in (
        "supplement", "supp_mat", "paper-SI", "response-to-reviewers", "rebuttal2", "coverletter",
        "covlett", "formatting_rebuttal", "letter", "reply", "poster", "slides", "template",
    ):  # fmt: skip
        assert choose_root({"draft.tex": TITLED, f"a/{name}.tex": long}) == "draft.tex", name
        assert choose_root({f"{name}.tex": long}) == f"{name}.tex", name
    for slides in ("beamer", "tikzposter", "letter"):
        other = long.replace("{article}", f"{{{slides}}}")
        assert choose_root({"draft.tex": TITLED, "b.tex": other}) in ("draft.tex", "b.tex")
    talk = long.replace("{article}", "[10pt]{beamer}")
    assert choose_root({"draft.tex": TITLED, "main.tex": talk}) == "draft.tex"


def test_a_title_goes_before_a_name_and_a_name_before_inputs() -> None:
    for name in ("main", "paper", "ms", "article"):
        inputs = ROOT % r"\maketitle\input{a}\input{b}"
        assert choose_root({f"{name}.tex": TITLED, "z.tex": inputs}) == f"{name}.tex"
        untitled = ROOT % r"\input{a}\input{b}"
        assert choose_root({f"{name}.tex": untitled, "z.tex": TITLED}) == "z.tex"


def test_a_file_that_the_main_file_inputs_may_begin_the_body() -> None:
    files = {
        "ms.tex": r"\documentclass{article}\input{macros}\input{text}\bibliography{b}",
        "macros.tex": r"\def\a{b}",
        "text.tex": r"\begin{document}\maketitle Words.",
        "notes.tex": ROOT % "Notes.",
    }
    assert choose_root(files) == "ms.tex"
    expected = r"\documentclass{article}\def\a{b}\begin{document}\maketitle Words.\bibliography{b}"
    assert join_files(files) == expected


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
