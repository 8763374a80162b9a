"""Hostile texts: the time to read one is linear in its length."""

import contextlib
import time
from collections.abc import Callable

import pytest

from core.errors import ItemUnavailable
from crawlers.hygiene.quality import low_quality
from crawlers.hygiene.redaction import redact
from crawlers.hygiene.tokens import ngrams, tokens_of
from crawlers.text import articles, wikitext
from crawlers.text.articles import post_to_text
from crawlers.text.cleaning import clean
from crawlers.text.code import read_readme
from crawlers.text.defects import DETECTORS

SIZE = 100_000  # characters; quadratic work takes seven seconds at the least
LIMIT_S = 5.0  # of processor time; all texts of one reader took at most three seconds


def read_both_readmes(text: str) -> None:
    lines = "\n".join(text[start : start + 3900] for start in range(0, len(text) // 5, 3900))
    for name in ("README.md", "README.rst"):
        read_readme(name, lines.encode())


def read_whole_readmes(text: str) -> None:
    for name in ("README.md", "README.rst"):
        read_readme(name, text.encode())


def judge(text: str) -> None:
    tokens = tokens_of(text, is_code=False)
    low_quality(text, tokens, ngrams(tokens.hashes, 5))


def count_defects(text: str) -> None:
    for count in DETECTORS.values():
        count(text)


def read_article(text: str) -> None:
    with contextlib.suppress(ItemUnavailable):
        articles.to_text(text)


def read_page(text: str) -> None:
    with contextlib.suppress(ItemUnavailable):
        wikitext.to_text(text)


PIECES: list[tuple[Callable[[str], object], list[str]]] = [
    (read_article, [
        "<div>", "<b><i><a>", "<p>", "<ul><li>", "<table><tr><td>", "<", "<!--", "&amp;&#x41;",
        "&aaaaaaaa;", "</p></div>", "<a><p></a>", "<h1><p>", "<script><!--<script>", "<![CDATA[",
        "<?x ", "<figure><p>", '<!DOCTYPE x [<!ENTITY a "&b;&b;">]>', "<p>Related: <a>", " \t\n",
        "\0", '<p style=" display: ">', "a\u0301\u0302", "<title>", "<form><select><option>",
    ]),
    (post_to_text, [
        "<", "<p ", '<p "', '"a', "<!--", "<script>", "<ul><li>x", "</ul>", "&a", "&#9", "<td>x",
        "</script", "<title>x</title ", """<a href="x'>""", "<pre>\n", "<br>", "<p      ",
        "<td>", "<td> ",
    ]),
    (clean, ["\u0301\u0316", "<!--", "<script>", "<script ", "<b ", "&amp;", "&#", "x", "<", "b>"]),
    (read_page, [
        "{{", "{{{a|", "[[", "[[a|", "{|\n", "<b>", "<ref>a", "<!--", "''''</ref><ref>", "<i ",
        "[http://a ", "}}", "]]", "|}", "=", "==a\n", "'", "\n", "\n\n", "&amp", "<nowiki>", "</",
        "[[a]]", "{{a}}", "__A", "*", " ", "[[[http://a b]]", "{|\n|}\n", "<math>x</math>",
        "<gallery></ref>", "\n \n[[", " |", "{{\n\n[[", "_", "'''", "''s'''s ", "<li>",
        "({{a|b}}", "(, {{a}} ", "A. {{a|b|c}} ", "}} A. ", "{{x=1|2=}}",
        "* {{USA}}\n", "{{convert|1|to}} ", " ,",
    ]),
    (count_defects, [
        "(", "( ;", " )", "of ", "of  ", " ,", "the ", "{", "[", "=a", "==a\n", "<p ", "&#1", "__A",
        "$a", "Eq. ", "'",
    ]),
    (read_both_readmes, ["[[a]", "`a", "[`a`](", "![[a](", "<a ", "|a", "`a <"]),
    (read_whole_readmes, [
        "    \n", "\t\n", "\n", "    x\n", "x\n", "- x\n", "`a\n", "[a](\n", "[[a]\n", "|a\n",
        "```\n", "a_\n", "::\n\n x\n", ".. |a| replace:: |a|\n|a|\n", "|-", "- ", "= ",
    ]),
    (redact, [
        "a", "a@", "a.", "@", "1.", "1", "1 ", "+1", "+1 23 ", ":", "a:", "1:", "(", "555-",
        "tel: ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "eyJ", "eyJaaaaaaaaaa.", "token=",
        "a:a1", "sk-", "a@b.", "xoxb-", "password", " ", "=",
    ]),
    (judge, ["$", "$1", "\n", "1 ", "x", ", "]),
]  # fmt: skip
WHOLE: list[tuple[Callable[[str], object], str]] = [
    (clean, "<" * (SIZE // 3) + "b>" * (SIZE // 3)),
    (clean, "<b " + "=" * SIZE),
    (clean, "<b" + " " * SIZE),
    (read_article, "<b>" * (SIZE // 3) + "</i>" * (SIZE // 4)),
    (read_page, "&#" + "9" * SIZE),
    (read_article, '<p class="' + "a " * (SIZE // 2) + '">x'),
    (read_article, "<p " + "a=1 " * (SIZE // 4) + ">x"),
    (read_article, "<" + "b" * SIZE),
]


LONG = (read_page, read_whole_readmes, redact)


def check_linear(read: Callable[[str], object], text: str) -> None:
    began = time.process_time()
    read(text)
    assert time.process_time() - began < LIMIT_S, f"{read.__name__}: {text[:12]!r}"


@pytest.mark.parametrize(
    ("read", "pieces"),
    [pytest.param(*row, marks=[pytest.mark.long] * (row[0] in LONG)) for row in PIECES],
    ids=[read.__name__ for read, _ in PIECES],
)
def test_time_is_linear_in_hostile_pieces(read: Callable[[str], object], pieces: list[str]) -> None:
    for piece in pieces:
        check_linear(read, piece * (SIZE // len(piece)))


def test_time_is_linear_in_hostile_texts() -> None:
    for read, text in WHOLE:
        check_linear(read, text)
