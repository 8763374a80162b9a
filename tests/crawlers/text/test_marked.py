"""Texts as a person marked them: each cleaner keeps what a reader sees, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlers.text import articles, wikitext
from crawlers.text.articles import post_to_text
from crawlers.text.cleaning import clean
from crawlers.text.code import read_readme
from tests.crawlers.conftest import marked, token_f1


def read_article(raw: Path, *names: str) -> str:
    value = json.loads(raw.read_bytes())
    for name in names:
        value = value[name]
    return clean(articles.to_text(value))


def read_wiki(raw: Path, shown: frozenset[str] = frozenset()) -> str:
    language = raw.suffixes[0].strip(".") if len(raw.suffixes) == 2 else "en"  # 09.de.wikitext
    return clean(wikitext.to_text(raw.read_text(encoding="utf-8"), language, shown))


READERS: dict[str, Callable[[Path], str]] = {
    "github_trending": lambda raw: clean(read_readme(raw.name, raw.read_bytes())),
    "global_voices": lambda raw: read_article(raw, "content", "rendered"),
    "govuk": lambda raw: read_article(raw, "details", "body"),
    "stackexchange": lambda raw: post_to_text(json.loads(raw.read_bytes())["items"][0]["body"]),
    "wikinews": lambda raw: read_wiki(raw, wikitext.WIKINEWS_TEMPLATES),
    "wikipedia": read_wiki,
}
MARKUP = {
    "github_trending": ("img.example.org", "<img"),
    "wikinews": ("{{", "}}", "[[", "]]", "<ref", "'''"),
    "wikipedia": ("{{", "}}", "|-", "<ref", "'''", "Category:"),
}


@pytest.mark.parametrize(
    ("source", "raw", "right"),
    [
        pytest.param(source, *pair, id=f"{source}-{pair[0].name}")
        for source in READERS
        for pair in marked(source)
    ],
)
def test_the_text_is_what_a_reader_sees(source: str, raw: Path, right: str) -> None:
    found = READERS[source](raw)
    assert token_f1(found, right) >= 0.95
    assert [mark for mark in MARKUP.get(source, ()) if mark in found] == []
