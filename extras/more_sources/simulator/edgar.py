"""Simulated EDGAR of the SEC: the index of a quarter, and filings as text files.

The shapes are those of ``master.idx`` and of a complete submission as other clients' tests show
them (docs/sources.md). A client whose user agent names nobody gets status 403, as from the SEC.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator

from simulator.news import Article, NewsSite
from simulator.server import Request, Response, take_quirk

ODDITIES = ("no_exhibit", "pdf_exhibit", "plain_exhibit", "twice", "amended", "gone")
HEAD = (
    "Description:           Master Index of EDGAR Dissemination Feed\n"
    "Last Data Received:    March 31, 2024\nComments:              webmaster@sec.gov\n"
    "Anonymous FTP:         ftp://ftp.sec.gov/edgar/\nCloud HTTP:            https://www.sec.gov/Archives/\n"
    "\n \n \n \nCIK|Company Name|Form Type|Date Filed|Filename\n" + "-" * 80 + "\n"
)
_INDEX = re.compile(r"/Archives/edgar/full-index/(\d{4})/QTR([1-4])/master\.idx")
_FILE = re.compile(r"/Archives/edgar/data/\d+/(\d{10}-\d\d-\d{6})\.txt")


class Site(NewsSite):
    """The archive."""

    keys: tuple[str, ...] = ("edgar",)
    stories = "edgar"
    oddities = ODDITIES
    robots: str | None = (
        "User-agent: *\nAllow: /core/*.css$\nDisallow: /core/\nDisallow: /search/\n\n#SEC\n"
        "Allow: /Archives/edgar/data\nDisallow: /cgi-bin\nDisallow: /Archives/edgar/vprr/bin\n"
    )

    @functools.cached_property
    def _by_accession(self) -> dict[str, Article]:
        return {accession_of(article): article for article in self.newsroom.articles}

    def respond(self, request: Request) -> Response:
        """Respond with an index or a filing."""
        if "(" not in request.headers.get("user-agent", ""):
            return Response(403, {}, b"Undeclared Automated Tool")
        asked = _INDEX.fullmatch(request.path)
        if asked:
            return self._index(int(asked[1]), int(asked[2]))
        asked = _FILE.fullmatch(request.path)
        article = self._by_accession.get(asked[1]) if asked else None
        if article is None or article.oddity == "gone":
            return Response(404)
        return _text(_submission(article))

    def _index(self, year: int, quarter: int) -> Response:
        """Return a quarter's index of filings."""
        if take_quirk(self, "error_as_200"):
            return Response(200, {"Retry-After": "0"}, b"<html><body>Maintenance</body></html>")
        if take_quirk(self, "empty_page"):
            return Response(200, {"Retry-After": "0"}, HEAD.encode())
        lines: list[str] = []
        for article in self.newsroom.articles:
            day = article.published
            if (day.year, (day.month + 2) // 3) == (year, quarter):
                lines += _lines(article)
        return _text(HEAD + "".join(f"{line}\n" for line in lines)) if lines else Response(404)


def _lines(article: Article) -> Iterator[str]:
    """Yield the index's lines of a filing, and one of another form."""
    form = "8-K/A" if article.oddity == "amended" else "8-K"
    name = company_of(article)
    day = f"{article.published:%Y-%m-%d}"
    for cik in (1_000_000, 1_000_001) if article.oddity == "twice" else (1_000_000,):
        number = cik + article.number
        yield f"{number}|{name}|{form}|{day}|edgar/data/{number}/{accession_of(article)}.txt"
        yield f"{number}|{name}|4|{day}|edgar/data/{number}/0000000009-24-{article.number:06d}.txt"


def company_of(article: Article) -> str:
    """Return the name of the company that filed an article."""
    return f"{article.story.topic.upper()} & SONS INC /DE/"


def accession_of(article: Article) -> str:
    """Return the number of an article's filing."""
    number = article.published.month * 1_000 + article.number
    return f"{1_000_000 + article.number:010d}-{article.published:%y}-{number:06d}"


def _text(body: str) -> Response:
    return Response(200, {"Content-Type": "text/plain"}, body.encode())


def _submission(article: Article) -> str:
    """Return a filing of form 8-K, with its form and exhibits."""
    name = accession_of(article)
    day = f"{article.published:%Y%m%d}"
    form = "<p>Item 2.02. Results of Operations and Financial Condition.</p>"
    documents = [("8-K", "form8k.htm", f"<html><body>{form}</body></html>"), *_exhibits(article)]
    parts = [
        f"<DOCUMENT>\n<TYPE>{kind}\n<SEQUENCE>{number}\n<FILENAME>{file}\n<DESCRIPTION>{kind}\n"
        f"<TEXT>\n{body}\n</TEXT>\n</DOCUMENT>\n"
        for number, (kind, file, body) in enumerate(documents, 1)
    ]
    return (
        f"<SEC-DOCUMENT>{name}.txt : {day}\n<SEC-HEADER>{name}.hdr.sgml : {day}\n"
        f"<ACCEPTANCE-DATETIME>{day}163005\nACCESSION NUMBER:\t\t{name}\n"
        f"CONFORMED SUBMISSION TYPE:\t8-K\nFILED AS OF DATE:\t\t{day}\n</SEC-HEADER>\n"
        f"{''.join(parts)}</SEC-DOCUMENT>\n"
    )


def _exhibits(article: Article) -> Iterator[tuple[str, str, str]]:
    """Yield type, file name and text of each exhibit; odd filings have another kind."""
    if article.oddity == "pdf_exhibit":
        yield "EX-99.1", "ex99.pdf", "<PDF>\nbegin 644 ex99.pdf\n</PDF>"
    elif article.oddity == "plain_exhibit":
        yield "EX-99.1", "ex99.txt", "\n\n".join(article.story.paragraphs)
    elif article.oddity != "no_exhibit":
        blocks = "".join(f"<{tag}>{html.escape(text)}</{tag}>\n" for tag, text in article.blocks)
        table = "<table><tr><td>Net revenue</td><td>$ 1,234</td></tr></table>"
        yield "EX-99.1", "ex99.htm", f"<html><body>{blocks}{table}</body></html>"
    yield "GRAPHIC", "logo.jpg", "begin 644 logo.jpg\nM_]C_X``02D9)1@\nend"
