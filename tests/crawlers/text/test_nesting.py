"""Each parser's own unit, nested in itself: the time to read it is linear in its length.

A grammar writes the inputs: a unit opens, nests, and closes, or never closes.
"""

import contextlib
import datetime as dt
import gzip
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import ItemUnavailable, SourceChanged
from crawlers.apis.feeds import read_entries
from crawlers.imports.streams import open_stream
from crawlers.text import articles, pages, wikitext
from crawlers.text.articles import post_to_text
from crawlers.text.cleaning import clean
from crawlers.text.code import read_readme
from crawlers.web.raw_cache import Fetched
from crawlers.web.values import load_json

SIZE = 1_000_000  # characters
LIMIT_S = 10.0  # of processor time; at most 2 s on an idle machine, and minutes if quadratic


def feed(text: str) -> None:
    read_entries(Fetched("http://x", {}, text.encode(), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)))


def page(text: str) -> None:
    pages.read_page(f"<html><body>{text}")


def readme(text: str) -> None:
    lines = "\n".join(text[start : start + 3900] for start in range(0, len(text), 3900))
    for name in ("README.md", "README.rst"):
        read_readme(name, lines.encode())


# The readers, and their units: what opens one, and what closes it.
GRAMMAR: list[tuple[Callable[[str], object], list[tuple[str, str]]]] = [
    (feed, [
        ("<item>", "</item>"), ("<entry>", "</entry>"), ("<url>", "</url>"),
        ("<sitemap>", "</sitemap>"), ("<item><link href='a'/><pubDate>x</pubDate>", "</item>"),
        ("<item><a/>", "</item>"), ("<a:item xmlns:a='b'>", "</a:item>"),
        ("<item><entry>", "</entry></item>"),
    ]),
    (page, [
        ("<article>", "</article>"), ("<main>", "</main>"),
        ("<main><article>", "</article></main>"),
        ("<article><p>x</p></article><main>", "</main>"),
        ("<script type='application/ld+json'>{}</script><div>", "</div>"),
        ("<time datetime='2024'>", "</time>"), ("<meta name='date' content='2024'><p>", ""),
    ]),
    (articles.to_text, [
        ("<div>", "</div>"), ("<ul><li>", "</li></ul>"), ("<table><tr><td>", "</td></tr></table>"),
        ("<blockquote>x", "</blockquote>"), ("<a href='x'>", "</a>"), ("<figure>", "</figure>"),
    ]),
    (post_to_text, [
        ("<blockquote>", "</blockquote>"), ("<ul><li>", "</li></ul>"), ("<pre>", "</pre>"),
    ]),
    (wikitext.to_text, [
        ("{{a|", "}}"), ("[[a|", "]]"), ("{|\n|", "\n|}"), ("<ref>", "</ref>"), ("{{{a|", "}}}"),
        ("<div>", "</div>"), ("''a", "''"), ("[[File:a|", "]]"), ("-{", "}-"),
    ]),
    (readme, [("[a](", ")"), ("![", "](a)"), ("> ", ""), ("- ", ""), ("<b>", "</b>"), ("`a", "`")]),
    (clean, [("<b>", "</b>"), ("<!--", "-->"), ("<script>", "</script>"), ("&amp;lt;", "")]),
    (load_json, [("[", "]"), ('{"a":', "}"), ('[{"@graph":', "}]")]),
]  # fmt: skip
ROOTS = {feed: ("<rss>", "</rss>")}


def written() -> Iterator[object]:
    """Write each unit nested in itself, closed and not."""
    for read, units in GRAMMAR:
        before, after = ROOTS.get(read, ("", ""))
        for opening, closing in units:
            times = SIZE // len(opening + closing)
            whole = before + opening * times + closing * times + after
            yield pytest.param(read, whole, id=f"{read.__name__}-{opening}-closed")
            yield pytest.param(read, opening * times, id=f"{read.__name__}-{opening}-open")


@pytest.mark.parametrize(("read", "text"), list(written()))
def test_time_is_linear_in_depth(read: Callable[[str], object], text: str) -> None:
    began = time.process_time()
    with contextlib.suppress(ItemUnavailable, SourceChanged, ValueError):
        read(text)
    assert time.process_time() - began < LIMIT_S


STORED = struct.pack("<BHH", 0, 65520, 65520 ^ 0xFFFF)  # the head of a stored block
MEMBERS = {
    "a wrong block": b"\x1f\x8b\x08\x00" + b"\0" * 6 + b"\xff",
    "first bytes": b"\x1f\x8b\x08",
    "a long stored block": b"\x1f\x8b\x08\x00\0\0\0\0\0\x03" + STORED,
    "an empty member": gzip.compress(b"", mtime=0),
    "an empty member with a wrong sum": gzip.compress(b"", mtime=0)[:-8] + b"\1" * 8,
    "a name without end": b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"a",
}


@pytest.mark.parametrize("unit", MEMBERS.values(), ids=MEMBERS)
def test_time_is_linear_in_false_members(unit: bytes, tmp_path: Path) -> None:
    good = gzip.compress(b"good", mtime=0)
    path = tmp_path / "a.gz"
    path.write_bytes(good + unit * (SIZE // len(unit)) + good)
    faults: list[str] = []
    began = time.process_time()
    with open_stream(path, faults) as stream:
        start = stream.read(4)
        while stream.read(2**20):
            pass
    assert time.process_time() - began < LIMIT_S
    assert start == b"good"
    assert len(faults) < 200


def test_members_after_damage_are_read(tmp_path: Path) -> None:
    """A hundred damaged places among good members lose what they are in, and no more."""
    members = [gzip.compress(b"%05d\n" % number, mtime=0) for number in range(300)]
    for number in range(0, 300, 3):
        members[number] = members[number][:12] + b"\xff\xff" + members[number][14:]
    path = tmp_path / "a.gz"
    path.write_bytes(b"".join(members))
    faults: list[str] = []
    with open_stream(path, faults) as stream:
        data = stream.read()
    assert all(b"%05d\n" % number in data for number in range(300) if number % 3)
    assert len(faults) == 100
