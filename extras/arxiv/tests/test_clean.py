"""LaTeX sources as `tidemark clean` reads them."""

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crawlers.text.cleaning import clean
from extras.arxiv.latex.reader import read_latex
from tests.tiers import needs_extra

Tidemark = Callable[..., Any]
PAPER = "\\documentclass{article}\\begin{document}\\maketitle %s\\end{document}"


@needs_extra("clean")
def test_a_paper_gives_what_a_crawl_stores(tidemark: Tidemark, tmp_path: Path) -> None:
    source = PAPER % "Prose \\& $x<b>y$."
    (tmp_path / "e.tex").write_text(source)
    expected = clean(read_latex({"e.tex": source}).text)
    tidemark("clean", str(tmp_path / "e.tex")).expect(0, out=f"{expected}\n")


@needs_extra("clean")
def test_a_latex_source_is_a_folder_or_a_package(tidemark: Tidemark, tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    (folder / "parts").mkdir(parents=True)
    (folder / "main.tex").write_text(PAPER % "One. \\input{parts/two}\\input{secret}")
    (folder / "parts" / "two.tex").write_text("Two.")
    (tmp_path / "secret.tex").write_text("SECRET")
    (folder / "secret.tex").symlink_to(tmp_path / "secret.tex")
    tidemark("clean", str(folder)).expect(0, out="One. Two.\n")
    package = tmp_path / "paper.tar.gz"
    with tarfile.open(package, "w:gz") as archive:
        archive.add(folder / "main.tex", "main.tex")
    tidemark("clean", "--format", "latex", str(package)).expect(0, out="One.\n")
