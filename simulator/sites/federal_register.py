"""Simulated bulk data of the Federal Register at govinfo: a ZIP file a month, an XML file an issue.

The shape is that of the issue of 2024-02-12, which the publisher has put into a public repository
(docs/sources.md): documents between sections, indented lines, elements within lines.
"""

from __future__ import annotations

import io
import itertools
import re
import zipfile
from html import escape

from simulator.news import Article, Newsroom
from simulator.server import Request, Response, WorldSite, take_quirk
from simulator.world import World

ODDITIES = ("no_number", "twice", "president", "no_paragraph")
_PATH = re.compile(r"/bulkdata/FR/(\d{4})/(\d\d)/FR-(\1-\2)\.zip")
_KINDS = (("RULES", "RULE"), ("PRORULES", "PRORULE"), ("NOTICES", "NOTICE"),
          ("PRESDOCS", "PRESDOCU"))  # fmt: skip


class Site(WorldSite):
    """The repository."""

    keys: tuple[str, ...] = ("govinfo",)
    robots: str | None = "User-agent: *\nDisallow: /search/\nDisallow: /app/search/*\n"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.newsroom = Newsroom(world, "federal_register", ODDITIES)

    def respond(self, request: Request) -> Response:
        """Respond with the file of a month."""
        asked = _PATH.fullmatch(request.path)
        month = asked[3] if asked else ""
        articles = [a for a in self.newsroom.articles if f"{a.published:%Y-%m}" == month]
        if not articles:
            return Response(404)
        if take_quirk(self, "error_as_200"):
            return Response(200, {"Retry-After": "0"}, b"<html>Service Error</html>")
        if take_quirk(self, "empty_page"):
            return Response(200, {"Retry-After": "0"}, _zip({}))
        days = itertools.groupby(articles, lambda each: f"{each.published:%Y-%m-%d}")
        issues = {f"FR-{day}.xml": _issue(day, list(found)) for day, found in days}
        return Response(200, {"Content-Type": "application/zip"}, _zip(issues))


def _zip(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return out.getvalue()


def _issue(day: str, articles: list[Article]) -> str:
    kinds = [_KINDS[-1 if a.oddity == "president" else a.number % 3] for a in articles]
    entries = zip(articles, kinds, strict=True)
    sections = "".join(f"<{s}>\n{_entry(a, k)}</{s}>\n" for a, (s, k) in entries)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<FEDREG>\n<VOL>89</VOL>\n<NO>29</NO>\n'
        f"<DATE>{day}</DATE>\n<CNTNTS><AGCY><HD>Contents of the issue</HD></AGCY></CNTNTS>\n"
        f"{sections}</FEDREG>\n"
    )


def _entry(article: Article, kind: str) -> str:
    title = f'<HD SOURCE="HED">{escape(article.title)}</HD>'
    blocks = () if article.oddity == "no_paragraph" else article.blocks
    body = "".join(map(_block, blocks))
    number = f"<FRDOC>[FR Doc. {number_of(article)} Filed 2-8-24; 2:00 pm]</FRDOC>\n"
    entry = (
        f'<{kind}>\n<PREAMB><AGENCY TYPE="F">DEPARTMENT OF EXAMPLES</AGENCY>\n'
        f"{title if kind == 'PRESDOCU' else f'<SUBJECT>{escape(article.title)}</SUBJECT>'}\n"
        f"</PREAMB>\n<SUPLINF>\n{body}<FTNT><P><SU>1</SU> 89 FR 1.</P></FTNT>\n"
        "<GPOTABLE><TTITLE>Costs</TTITLE></GPOTABLE>\n"
        "<SIG><NAME>A. Example,</NAME><TITLE>Director.</TITLE></SIG></SUPLINF>\n"
        f"{'' if article.oddity == 'no_number' else number}</{kind}>\n"
    )
    return entry * 2 if article.oddity == "twice" else entry


def number_of(article: Article) -> str:
    """Return the number of a document, which is unique."""
    return f"{article.published:%Y}-{article.published.month * 1_000 + article.number:05d}"


def _block(block: tuple[str, str]) -> str:
    """Return a block with an element in a line of its own, and the mark of a page."""
    tag, text = ("HD" if block[0] == "h2" else "P"), escape(block[1])
    first, _, rest = text.partition(" ")
    return f'<{tag}>\n  <E T="03">{first}</E>\n  <PRTPAGE P="9834"/> {rest}\n</{tag}>\n'
