"""Time of each parser on its own unit, nested in itself or repeated; all must be linear.

    python -m benchmarks.fuzzing.nesting                      all parsers, 1 MB each
    python -m benchmarks.fuzzing.nesting wikitext robots      some of them
    python -m benchmarks.fuzzing.nesting --bytes 100000

Each unit is written whole and without its ends. The table has the slower of both: the processor
time, and its ratio to that of half the bytes, which is 2 for a linear parser. The exit code is 1 if
a time is over the limit. Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import gzip
import importlib
import io
import json
import re
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import protego

from benchmarks.measure import say
from core.errors import ItemUnavailable, SourceChanged, TidemarkError
from core.plugins import list_extras
from core.responses import answering_part
from crawlers import git_posts
from crawlers.hygiene.mojibake import find_mojibake
from crawlers.imports.readers import read_rows
from crawlers.imports.tables import DataFile
from crawlers.text import articles, charsets, defects, pages, wikitext
from crawlers.text.articles import post_to_text
from crawlers.text.cleaning import clean
from crawlers.text.code import read_readme
from crawlers.web.raw_cache import Fetched
from crawlers.web.times import read_time
from crawlers.web.values import load_json

LIMIT_S = 5.0  # of processor time a MB, on the two slow cores of a small server
ENDS = (ItemUnavailable, SourceChanged, TidemarkError, ValueError, RecursionError)


class Unit(NamedTuple):
    """Opening and closing of a unit of a format."""

    opening: str
    closing: str

    def nested(self, size: int) -> str:
        """Return the unit within itself."""
        times = size // len(self.opening + self.closing)
        return self.opening * times + self.closing * times

    def unclosed(self, size: int) -> str:
        """Return openings alone."""
        return self.opening * (size // len(self.opening))


class Parser(NamedTuple):
    """A parser, its units, and what stands around them."""

    read: Callable[[str], object]
    units: Sequence[tuple[str, str]]
    before: str = ""
    after: str = ""

    def inputs(self, size: int) -> Iterator[tuple[str, str]]:
        """Yield each unit, and texts of it."""
        for unit in map(Unit._make, self.units):
            yield unit.opening, self.before + unit.nested(size) + self.after
            yield unit.opening, self.before + unit.unclosed(size)


def _fetched(text: str) -> Fetched:
    return Fetched("http://x", {}, text.encode(), dt.datetime(2024, 1, 1, tzinfo=dt.UTC))


def _readme(text: str) -> None:
    lines = "\n".join(text[start : start + 3900] for start in range(0, len(text), 3900))
    for name in ("README.md", "README.rst"):
        read_readme(name, lines.encode())


def _robots(text: str) -> None:
    rules = protego.Protego.parse(text)
    rules.can_fetch("http://x.example/a/b?c=" + "a" * 100, "tidemark")
    rules.crawl_delay("tidemark")


def _file(suffix: str) -> Callable[[str], object]:
    """Return a reader of files of a suffix, through the way of imports."""

    def read(text: str) -> None:
        _read_file(suffix, text.encode("latin-1"))

    return read


def _read_file(suffix: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        path.write_bytes(data)
        for _ in read_rows(DataFile(path, path.name, 2**21), "auto", ["text"]):
            pass


def _warc(text: str) -> None:
    """Read records whose payload is the text."""
    body = text.encode("latin-1")
    head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x.example/\r\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body>" + body
    _read_file(".warc", f"{head}Content-Length: {len(answer)}\r\n\r\n".encode() + answer)


def _epub(text: str) -> None:
    """Read a book whose package and whose chapter have the text."""
    container = '<container><rootfiles><rootfile full-path="p"/></rootfiles></container>'
    chapter = '<item id="c" href="c.html" media-type="text/html"/>'
    for package, page in ((text, ""), ("", text)):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as book:
            book.writestr("META-INF/container.xml", container)
            spine = f'<manifest>{chapter}</manifest><spine><itemref idref="c"/>{package}</spine>'
            book.writestr("p", f"<package>{spine}</package>")
            book.writestr("c.html", f"<html><body>{page}</body></html>")
        _read_file(".epub", packed.getvalue())


def _gzip(text: str) -> None:
    good = gzip.compress(b'{"text": "good"}\n', mtime=0)
    _read_file(".jsonl.gz", good + text.encode("latin-1") + good)


def _latex(text: str) -> None:
    head = "\\documentclass{article}\\begin{document}\\section{Introduction} "
    reader = importlib.import_module("extras.arxiv.latex.reader")
    reader.read_latex({"main.tex": f"{head}{text}\\end{{document}}"})


def _git_post(text: str) -> None:
    header, rest = git_posts.split_header(text, "front")
    git_posts._title(header or text, rest)


def _arxiv(text: str) -> None:
    importlib.import_module("extras.arxiv.lists")._read_page(_fetched(text))


_STORED = struct.pack("<BHH", 0, 65520, 65520 ^ 0xFFFF).decode("latin-1")
_EMPTY = gzip.compress(b"", mtime=0).decode("latin-1")
_HTML = (
    ("<div>", "</div>"), ("<ul><li>", "</li></ul>"), ("<table><tr><td>", "</td></tr></table>"),
    ("<blockquote>x", "</blockquote>"), ("<a href='x'>", "</a>"), ("<figure>", "</figure>"),
    ("<b><p>", "</p></b>"), ("<a><div>", "</div></a>"), ("<font>", ""), ("<table>x", "</table>"),
    ("<svg><p>", "</p></svg>"), ("<select><option>", "</option></select>"), ("<!--", "-->"),
    ("<p ", ">"), ("<p a='", "'>"), ("&amp;", ""), ("<![CDATA[", "]]>"),
)  # fmt: skip
_RECORD = "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n"

PARSERS: dict[str, Parser] = {
    "arxiv": Parser(
        _arxiv,
        [("<record>", "</record>"), ("<ListRecords>", "</ListRecords>"), ("<record/>", "")],
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>',
        "</ListRecords></OAI-PMH>",
    ),
    "page": Parser(
        pages.read_page,
        [
            ("<article>", "</article>"), ("<main>", "</main>"),
            ("<main><article>", "</article></main>"),
            ("<article><p>x</p></article><main>", "</main>"),
            ("<script type='application/ld+json'>{}</script><div>", "</div>"),
            ("<time datetime='2024'>", "</time>"), ("<meta name='date' content='2024'><p>", ""),
            *_HTML,
        ],
        "<html><body>",
    ),
    "article": Parser(articles.to_text, _HTML),
    "post": Parser(post_to_text, [("<pre>", "</pre>"), ("<code>", "</code>"), *_HTML]),
    "wikitext": Parser(
        wikitext.to_text,
        [
            ("{{a|", "}}"), ("[[a|", "]]"), ("{|\n|", "\n|}"), ("<ref>", "</ref>"),
            ("{{{a|", "}}}"), ("<div>", "</div>"), ("''a", "''"), ("[[File:a|", "]]"),
            ("-{", "}-"), ("{{a|b={{", "}}}}"), ("<nowiki>", "</nowiki>"), ("<!--", "-->"),
            ("==", "=="), ("[http://a ", "]"), ("* ", "\n"), ("<ref name=a/>", ""), ("{", "}"),
            ("[", "]"), ("{{a}}", ""), ("[[a]]", ""), ("'''''", ""), ("<math>", "</math>"),
            ("{{lang|x|", "}}"), ("{{convert|1|km", "}}"),
        ],
    ),
    "readme": Parser(
        _readme,
        [
            ("[a](", ")"), ("![", "](a)"), ("> ", ""), ("- ", ""), ("<b>", "</b>"), ("`a", "`"),
            ("[", "]"), ("*a", "*"), ("```\n", "```\n"), ("|a", "|\n"), ("<details>", "</details>"),
            ("[![a](b)](", ")"), (".. image:: a\n   ", ""), (":a:`", "`"), ("`a <", ">`_"),
            ("<!--", "-->"), ("# ", "\n"), ("[a]: b\n", ""),
        ],
    ),
    "clean": Parser(
        clean, [("<b>", "</b>"), ("<!--", "-->"), ("<script>", "</script>"), ("&amp;lt;", "")]
    ),
    "latex": Parser(
        _latex,
        [
            ("{", "}"), ("\\textbf{", "}"), ("\\begin{itemize}\\item ", "\\end{itemize}"),
            ("$", "$"), ("\\[", "\\]"), ("\\footnote{", "}"), ("\\iffalse ", "\\fi "),
            ("\\newcommand{\\a}{", "}"), ("\\def\\a{", "}"), ("\\cite{a}", ""), ("\\ref{a}", ""),
            ("\\begin{figure}", "\\end{figure}"), ("\\verb|", "|"), ("%", "\n"), ("\\a[", "]"),
            ("\\section{", "}"), ("\\input{a}", ""), ("\\begin{verbatim}", "\\end{verbatim}"),
            ("\\def ", ""), ("\\ref ", ""), ("\\begin ", ""), ("-a", ""),
            ("\\iftrue ", "\\fi "), ("\\ifx ", "\\fi "),
        ],
    ),
    "json": Parser(load_json, [("[", "]"), ('{"a":', "}"), ('[{"@graph":', "}]"), ('"\\', '"')]),
    "json lines": Parser(
        _file(".jsonl"), [("[", "]"), ('{"text":', "}"), ('{"text": "a"}\n', ""), ("\n", "")]
    ),
    "json list": Parser(
        _file(".json"), [("[", "]"), ('{"text":', "}"), ('{"text": "a"},', ""), ('"', '"'),
                         ("[{", "}]"), ('{"text": "a"} ', "")], "[", "]",
    ),
    "csv": Parser(
        _file(".csv"), [('"', '"'), ('""', ""), ('"a\n', '"'), (",", ""), ("\n", ""), ('a"', '"'),
                        ('a,"', '"\n')], "text\n",
    ),
    "warc page": Parser(_warc, _HTML[:6]),
    "warc records": Parser(
        _file(".warc"),
        [
            (_RECORD, ""), ("WARC/1.0\r\n", "\r\n"), ("a: b\r\n", ""), ("WARC/1.0\r\n\r\n", ""),
            ("Content-Length: 9\r\n", ""), (" x\r\n", ""),
            ("WARC/1.0\r\nContent-Length: 999999\r\n\r\n", ""),
        ],
        "WARC/1.0\r\n",
    ),
    "epub": Parser(
        _epub, [("<item>", "</item>"), ("<div>", "</div>"), ("<itemref idref='c'/>", ""),
                ("<a><b>", "</b></a>")],
    ),
    "gzip members": Parser(
        _gzip,
        [
            ("\x1f\x8b\x08\x00" + "\0" * 6 + "\xff", ""), ("\x1f\x8b\x08", ""), (_EMPTY, ""),
            ("\x1f\x8b\x08\x00\0\0\0\0\0\x03" + _STORED, ""), (_EMPTY[:-8] + "\1" * 8, ""),
            ("\x1f\x8b\x08\x08" + "\0" * 6 + "a", ""), ("\x1f\x8b", ""), ("\0", ""),
        ],
    ),
    "robots": Parser(
        _robots,
        [
            ("User-agent: *\n", ""), ("User-agent: *\nDisallow: /a\n", ""), ("Disallow: /*a\n", ""),
            ("Disallow: /" + "*a" * 40 + "$\n", ""), ("User-agent: a\nDisallow: /\n\n", ""),
            ("Disallow: /*", "$"), ("Allow: /%41\n", ""), ("Sitemap: a\n", ""), ("#", "\n"),
        ],
        "User-agent: *\n",
    ),
    "encoding": Parser(
        lambda text: charsets.decode(text.encode("latin-1"), ""),
        [("\x1b$B!", ""), ("\xff", ""), ("<meta charset=", ">"), ("\x81\x40", ""), ("\0a", "")],
    ),
    "defects": Parser(
        lambda text: [find(text) for find in defects.DETECTORS.values()],
        [("(", ")"), ("{{", "}}"), ("$", "$"), ("''", ""), ("==", "=="), ("of ", ","), ("<b ", "")],
    ),
    "mojibake": Parser(
        find_mojibake,
        [
            ("\u00c3\u00a9", ""), ("\u00e9a", ""), ("\u9225a", ""), ("\u0432\u0402", ""),
            ("\u4e00", ""), ("\u0420\u00b0", ""), ("\u00e9 a\u00e9\u00e9\u00e9", ""),
        ],
    ),
    "git post": Parser(
        _git_post,
        [("# ", "\n"), ("# " + " " * 1000, "x\n"), ("---\n", ""), ("title", ":\n"), ("# \t", "")],
        "---\ntitle:\n",
    ),
    "answer": Parser(
        answering_part,
        [
            ("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<|channel|>", ""),
            ("<step>", "</step>"), ("<step ", ">"),
        ],
    ),
    "date": Parser(read_time, [("(", ")"), ("1", ""), ("Mon, ", ""), (" ", "")]),
}  # fmt: skip


class Slowest(NamedTuple):
    """The slowest input of a parser."""

    unit: str
    seconds: float
    half_s: float


def seconds_of(read: Callable[[str], object], text: str) -> float:
    """Return the processor time of one call; a counted failure is an end as any other."""
    began = time.process_time()
    with contextlib.suppress(*ENDS):
        read(text)
    return time.process_time() - began


def slowest(parser: Parser, size: int) -> Slowest:
    """Return the input of a size that takes a parser the longest."""
    found = Slowest("", -1.0, 0.0)
    halves = list(parser.inputs(size // 2))
    for (unit, text), (_, half) in zip(parser.inputs(size), halves, strict=True):
        seconds = seconds_of(parser.read, text)
        if seconds > found.seconds:
            found = Slowest(unit, seconds, seconds_of(parser.read, half))
    return found


def main() -> int:
    """Measure the chosen parsers, and print a table; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzzing.nesting",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parsers", nargs="*", metavar="PARSER", help="default: all")
    parser.add_argument("--bytes", type=int, default=1_000_000, help="of each input")
    chosen = parser.parse_args()
    print("| parser | inputs | slowest unit | bytes | s | times that of half |")
    print("|---|---:|---|---:|---:|---:|")
    holds = True
    for name in chosen.parsers or known_parsers():
        say(f"{name} …")
        found = slowest(PARSERS[name], chosen.bytes)
        ratio = found.seconds / max(found.half_s, 1e-4)
        unit = re.sub(r"[|\\]", r"\\\g<0>", json.dumps(found.unit[:30])[1:-1])
        figures = f"{chosen.bytes:,} | {found.seconds:.2f} | {ratio:.1f}"
        print(f"| {name} | {2 * len(PARSERS[name].units)} | `{unit}` | {figures} |", flush=True)
        holds = holds and found.seconds <= LIMIT_S * max(chosen.bytes / 1e6, 1)
    return 0 if holds else 1


def known_parsers() -> list[str]:
    """Return the names of the parsers whose extra is there."""
    needs = {
        "arxiv": "arxiv",
        "latex": "arxiv",
        "warc page": "web_archives",
        "warc records": "web_archives",
        "epub": "web_archives",
    }
    there = list_extras()
    return [name for name in PARSERS if name not in needs or needs[name] in there]


if __name__ == "__main__":
    sys.exit(main())
