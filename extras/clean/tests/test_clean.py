import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlers.text import articles, wikitext
from crawlers.text.cleaning import clean
from crawlers.text.code import read_readme
from tests.tiers import needs_extra

Tidemark = Callable[..., Any]
LATEX = needs_extra("arxiv")
PAGE = "'''Tern''' is a [[bird|sea bird]] &amp; flies{{w|far|away}}.\u200b<ref>A</ref>\n"


@pytest.mark.smoke
def test_each_format_gives_what_a_crawl_stores(tidemark: Tidemark, tmp_path: Path) -> None:
    markdown = "# A <b>README</b>\n\nSee [it](https://a.b) &amp; more.\n"
    html = "<p>One &amp; <b>two</b>.</p><table><tr><td>x</table>"
    code = "x = 1 \r\n\ty = '<b>'\n"
    for name, form, source, expected in (
        ("a.txt", "wikitext", PAGE, clean(wikitext.to_text(PAGE))),
        ("b.txt", "wikinews", PAGE,
         clean(wikitext.to_text(PAGE, shown_templates=wikitext.WIKINEWS_TEMPLATES))),
        ("README.md", None, markdown, clean(read_readme("README.md", markdown.encode()))),
        ("c.html", None, html, clean(articles.to_text(html))),
        ("d.py", None, code, "x = 1 \n\ty = '<b>'\n"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(source.encode())
        options = ["--format", form] if form else []
        tidemark("clean", *options, str(tmp_path / name)).expect(0, out=f"{expected}\n")
    assert "away" in tidemark("clean", "--format", "wikinews", str(tmp_path / "b.txt")).out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--format", "word", "a.tex"], 2, "known: wikitext, wikinews, readme"),
        (["a.txt"], 2, "give --format wikitext|wikinews"),
        (["--format", "html", "."], 2, "only a LaTeX source may be a folder"),
        (["--format", "code", "a.txt"], 2, "no suffix of a known language"),
        (["absent.py"], 1, "absent.py cannot be read: No such file"),
        (["--format", "wikitext", "binary"], 1, "cannot be read as wikitext (binary)"),
        (["--format", "html", "latin"], 1, "cannot be read as html (parse_error)"),
        pytest.param(
            ["--format", "latex", "binary"], 1, "cannot be read as latex (bad_archive)", marks=LATEX
        ),
        pytest.param(["."], 1, "cannot be read as latex (no_tex)", marks=LATEX),
        (["--format", "wikitext", "a.txt"], 1, "nothing of a.txt is left"),
        (["--format", "wikitext", "redirect"], 1, "(redirect_page)"),
    ],
)
def test_what_cannot_be_cleaned_is_refused(
    tidemark: Tidemark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("{{Infobox}}")
    Path("binary").write_bytes(b"a\0b")
    Path("latin").write_bytes(b"na\xefve")
    Path("redirect").write_text("#REDIRECT [[Tern]]")
    tidemark("clean", *arguments).expect(code, says, out="")


def test_a_pipe_or_device_in_the_place_of_a_file_is_refused(
    tidemark: Tidemark, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "device.html").symlink_to("/dev/zero")
    for name in ("pipe.html", "device.html"):
        tidemark("clean", str(tmp_path / name)).expect(1, "no regular file", out="")


def test_a_text_may_come_from_a_pipe(tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"<p>One</p>")))
    tidemark("clean", "--format", "html", "-").expect(0, out="One\n")
