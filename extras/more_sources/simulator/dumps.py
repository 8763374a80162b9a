"""Simulated sites that publish a file a month or a year.

The Federal Register at govinfo has a ZIP file a month, with an XML file for each issue. Its shape
is that of the issue of 2024-02-12, which the publisher has shown (docs/sources.md). The SCP Data
API has a JSON file of a year's tales, in the shape of that of 2026.
"""

from __future__ import annotations

import io
import itertools
import re
import zipfile
from html import escape
from typing import Any

from core.json import JsonObject
from simulator.news import CHANGED_LATER, Article, NewsSite
from simulator.server import Request, Response, as_json, take_quirk

ODDITIES = ("no_number", "twice", "president", "no_paragraph")
_PATH = re.compile(r"/bulkdata/FR/(\d{4})/(\d\d)/FR-(\1-\2)\.zip")
_KINDS = (("RULES", "RULE"), ("PRORULES", "PRORULE"), ("NOTICES", "NOTICE"),
          ("PRESDOCS", "PRESDOCU"))  # fmt: skip
TALE_ODDITIES = ("edited_later", "tagged_later", "undated", "no_history")
_TALES = re.compile(r"/data/scp/tales/content_(\d{4})\.json")


class FederalRegister(NewsSite):
    """The repository of bulk data."""

    keys: tuple[str, ...] = ("govinfo",)
    robots: str | None = "User-agent: *\nDisallow: /search/\nDisallow: /app/search/*\n"
    stories = "federal_register"
    oddities = ODDITIES

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
    """Return a ZIP file of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return out.getvalue()


def _issue(day: str, articles: list[Article]) -> str:
    """Return an issue of the Federal Register in XML."""
    kinds = [_KINDS[-1 if a.oddity == "president" else a.number % 3] for a in articles]
    entries = zip(articles, kinds, strict=True)
    sections = "".join(f"<{s}>\n{_entry(a, k)}</{s}>\n" for a, (s, k) in entries)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<FEDREG>\n<VOL>89</VOL>\n<NO>29</NO>\n'
        f"<DATE>{day}</DATE>\n<CNTNTS><AGCY><HD>Contents of the issue</HD></AGCY></CNTNTS>\n"
        f"{sections}</FEDREG>\n"
    )


def _entry(article: Article, kind: str) -> str:
    """Return a document of the Federal Register in XML; odd ones lack parts, or come twice."""
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
    tag = "HD" if block[0] == "h2" else "P"
    text = escape(block[1])
    first, _, rest = text.partition(" ")
    return f'<{tag}>\n  <E T="03">{first}</E>\n  <PRTPAGE P="9834"/> {rest}\n</{tag}>\n'


class ScpTales(NewsSite):
    """The static files of the SCP Data API."""

    keys: tuple[str, ...] = ("scp_data",)
    stories = "scp_tales"
    oddities = TALE_ODDITIES

    def respond(self, request: Request) -> Response:
        """Respond with the file of a year."""
        asked = _TALES.fullmatch(request.path)
        if asked is None:
            return Response(404)
        if take_quirk(self, "error_as_200") or take_quirk(self, "empty_page"):
            return as_json({}, 200, {"Retry-After": "0"})
        found = [each for each in self.newsroom.articles if str(each.published.year) == asked[1]]
        pages = {each.slug: _page(each) for each in found}
        return as_json(pages) if pages else Response(404)


def _page(article: Article) -> JsonObject:
    """Return a page of the SCP wiki in JSON, with its history."""
    tagged = article.published + CHANGED_LATER * (article.oddity == "tagged_later")
    edits = (article.published, ""), (article.changed, "typo"), (tagged, "Added tags: ")
    blocks = "".join(f"<{tag}>{escape(text)}</{tag}>\n" for tag, text in article.blocks)
    box = '<div class="authorlink-wrapper"><div class="authorbox"><p>By me</p></div></div>'
    return {
        "created_at": "" if article.oddity == "undated" else _edit(article.published)["date"],
        "creator": "Example", "domain": "scp-wiki.wikidot.com", "link": article.slug,
        "history": [_edit(*each) for each in edits if article.oddity != "no_history"], "rating": 10,
        "raw_content": f'<html><body><div id="page-content">\n{box}{blocks}</div></body></html>',
        "title": f"{article.title} - SCP Foundation", "tags": ["tale"],
    }  # fmt: skip


def _edit(moment: Any, comment: str = "") -> dict[str, str]:
    return {"author": "Example", "comment": comment, "date": f"{moment:%Y-%m-%dT%H:%M:%S}"}


SITE_KINDS = (FederalRegister, ScpTales)
