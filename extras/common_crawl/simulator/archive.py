"""Simulated Common SimulatedCrawl: list of crawls, index files, index server, and WARC files.

The shapes follow lines of ``collinfo.json``, of ``cluster.idx`` and of ``cdx-00000.gz`` that public
pages and repositories print, and pywb, which the index server runs. Each month of the world has a
crawl, from the 10th to the 6th of the next month. Three earlier years have one each, with old
captures of some pages. A block has 6 lines; a true one has 3,000.
"""

from __future__ import annotations

import base64
import datetime as dt
import functools
import gzip
import hashlib
import html
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from core.json import JsonObject
from core.month import Month
from simulator.server import Request, Response, WorldSite, as_json, ranged, take_quirk
from simulator.world import Story, World

BLOCK_LINES = 6
FILE_BLOCKS = 3  # blocks of an index file
NEXT_MONTH = 4  # pages that a crawl captures in the next month
_DAY = dt.timedelta(days=1)
# Captures that are no page to keep. Those of the first line are no item either: the index says so.
UNLISTED = ("german", "moved", "paper", "cut")
ODDITIES = (*UNLISTED, "denied", "empty", "misplaced", "damaged")
_LAST = "23:59:59"


@dataclass(frozen=True)
class SimulatedCrawl:
    """A crawl: its name, and the first and last second of its captures."""

    name: str
    start: dt.datetime
    end: dt.datetime


@dataclass(frozen=True)
class CapturedPage:
    """A captured page."""

    number: int
    story: Story
    captured: dt.datetime
    oddity: str = ""

    @property
    def url(self) -> str:
        """The address, on one of eight hosts."""
        host = "www.bbc.co.uk" if self.oddity == "denied" else f"site{self.number % 8}.example"
        return f"https://{host}/{self.story.month}/{self.number}?q=a%20b&page={self.number}"

    @property
    def key(self) -> str:
        """The key by which the index is sorted: the reversed host, and the path."""
        parts = urlsplit(self.url)
        host = ",".join(reversed((parts.hostname or "").removeprefix("www.").split(".")))
        return f"{host}){parts.path}?{parts.query}".lower()

    @property
    def text(self) -> str:
        """The text that a crawler should extract."""
        return "" if self.oddity == "empty" else "\n\n".join(self.story.paragraphs)

    @functools.cached_property
    def payload(self) -> bytes:
        """The page's HTML."""
        published = f"{self.captured - 40 * _DAY:%Y-%m-%dT%H:%M:%SZ}"
        stated = json.dumps({"@type": "Article", "datePublished": published})
        body = "".join(f"<p>{html.escape(each)}</p>" for each in self.text.split("\n\n") if each)
        tag = ("article", "div")[self.number % 2]  # of some pages only the paragraphs can be found
        return (
            f"<!DOCTYPE html><html><head><title>{html.escape(self.story.title)}</title>"
            f'<script type="application/ld+json">{stated}</script></head><body><nav><p>Menu</p>'
            f"</nav><{tag}>{body}</{tag}><footer><p>Imprint</p></footer></body></html>"
        ).encode()

    @property
    def record(self) -> bytes:
        """The packed WARC record; of a misplaced page, it is of another one."""
        url = "https://elsewhere.example/" if self.oddity == "misplaced" else self.url
        response = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\n\r\n" + self.payload
        )
        head = (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: {self.captured:%Y-%m-%dT%H:%M:%SZ}\r\n"
            f"WARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\n"
            f"Content-Length: {len(response)}\r\n\r\n"
        )
        packed = gzip.compress(head.encode() + response + b"\r\n\r\n", mtime=0)
        return packed[:-20] + bytes(20) if self.oddity == "damaged" else packed


class CrawlArchive(WorldSite):
    """Both hosts of Common SimulatedCrawl."""

    keys = ("common_crawl", "common_crawl_index")
    robots = "User-agent: *\nDisallow: /private/\n"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.own = {crawl.name: month for month, crawl in _crawls_of(world.months).items()}
        olds = [Month(f"{world.first.start.year - years}-06") for years in (3, 2, 1)]
        self.olds = list(_crawls_of(olds).values())
        self.crawls = [*self.olds, *_crawls_of(world.months).values()]

    @functools.cached_property
    def pages(self) -> dict[str, list[CapturedPage]]:
        """The pages of each crawl, by its name, in the order of their capture."""
        found = {crawl.name: self.of_crawl(month) for crawl in self.crawls
                 if (month := self.own.get(crawl.name))}  # fmt: skip
        names = list(found)
        for before, after in zip(names, names[1:], strict=False):
            # A page of the crawl before that is captured again; its text has not changed.
            found[after] = [*found[after], *_captured_again(found[before], found[after])]
        return found

    def of_crawl(self, month: Month) -> list[CapturedPage]:
        """Return the pages that a month's crawl captures for the first time."""
        count = self.world.stories_per_month
        start = month.start + 9 * _DAY
        span = (month.end - dt.timedelta(seconds=1) - start) / max(count - 1, 1)
        found = []
        for number in range(count + NEXT_MONTH + len(ODDITIES)):
            story = self.world.story(month, "common_crawl", number)
            captured = (start + number * span).replace(microsecond=0)
            if number >= count:
                captured = month.end + (number - count + 0.5) * _DAY
            oddity = ""
            if number >= count + NEXT_MONTH:
                oddity = ODDITIES[number - count - NEXT_MONTH]
                captured = month.start + (12 + number % 5) * _DAY
            found.append(CapturedPage(number, story, captured, oddity))
        return found

    def first_seen(self, page: CapturedPage) -> dt.datetime:
        """Return the earliest capture of a page in all crawls."""
        times = [time for name in self._captures for time in self._captures[name].get(page.url, [])]
        return min(times)

    def of_month(self, month: Month) -> list[CapturedPage]:
        """Return all captures of a month, of both crawls that ran in it."""
        return [
            page for pages in self.pages.values() for page in pages
            if Month.of(page.captured) == month
        ]  # fmt: skip

    @functools.cached_property
    def _captures(self) -> dict[str, dict[str, list[dt.datetime]]]:
        """The times at which each crawl captured each URL."""
        found: dict[str, dict[str, list[dt.datetime]]] = {each.name: {} for each in self.crawls}
        for name, pages in self.pages.items():
            for page in pages:
                found[name].setdefault(page.url, []).append(page.captured)
                if page.number % 4 < len(self.olds):  # the fourth is new
                    old = self.olds[page.number % 4]
                    found[old.name][page.url] = [old.start + page.number * dt.timedelta(hours=1)]
        return found

    @functools.cached_property
    def _files(self) -> dict[str, bytes]:
        """Return all files of the archive by path: records in WARC, and their indexes."""
        files: dict[str, bytes] = {}
        for name, pages in self.pages.items():
            lines = []
            archive = b""
            path = f"crawl-data/{name}/segments/1709.1/warc/{name}-0001.warc.gz"
            for page in pages:
                record = page.record
                place = {"length": str(len(record)), "offset": str(len(archive)), "filename": path}
                archive += record
                described = json.dumps({"url": page.url, **_described(page, place)})
                lines.append(f"{page.key} {page.captured:%Y%m%d%H%M%S} {described}")
            files[f"/{path}"] = archive
            folder = f"/cc-index/collections/{name}/indexes"
            files |= {f"{folder}/{file}": body for file, body in _indexes(sorted(lines)).items()}
        return files

    def respond(self, request: Request) -> Response:
        """Respond with the list of crawls, captures of a URL, or a part of a file."""
        if request.path == "/collinfo.json" or request.path.endswith("-index"):
            if take_quirk(self, "error_as_200"):
                return Response(200, {"Content-Type": "text/html"}, b"<html>Slow down</html>")
            if take_quirk(self, "empty_page"):
                return Response(200, {"Content-Type": "text/x-ndjson"}, b"")
            return self._query(request)
        body = self._files.get(request.path)
        if body is None:
            return Response(404, {"Content-Type": "application/xml"}, b"<Error>NoSuchKey</Error>")
        if take_quirk(self, "hostile_archive"):
            body = gzip.compress(bytes(2**26)) + body
        return ranged(body, {"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'},
                      request)  # fmt: skip

    def _query(self, request: Request) -> Response:
        """Answer the index server: list of crawls, or captures of one address."""
        if request.path == "/collinfo.json":
            return as_json([self._collection(each) for each in reversed(self.crawls)])
        captures = self._captures.get(request.path[1:].removesuffix("-index"))
        if captures is None:
            return Response(404)
        if request.arg("output") != "json" or request.arg("matchType") != "exact":
            return Response(400, body=b"the simulated server has this query alone")
        url = request.arg("url")
        times = captures.get(url)
        if not times:
            return as_json({"message": f"No Captures found for: {url}"}, 404)
        rows = [{"timestamp": f"{time:%Y%m%d%H%M%S}"} for time in sorted(times)]
        if take_quirk(self, "extra_fields"):
            rows = [{**row, "redirect": "x"} for row in rows]
        limit = int(request.arg("limit", "1000"))
        lines = "".join(f"{json.dumps(row)}\n" for row in rows[:limit])
        return Response(200, {"Content-Type": "text/x-ndjson"}, lines.encode())

    def _collection(self, crawl: SimulatedCrawl) -> JsonObject:
        """Return a crawl's row in the list of crawls."""
        row: JsonObject = {
            "id": crawl.name,
            "name": f"{crawl.start:%B %Y} Index",
            "timegate": f"https://index.commoncrawl.org/{crawl.name}/",
            "cdx-api": f"https://index.commoncrawl.org/{crawl.name}-index",
        }
        if take_quirk(self, "missing_fields"):  # older lists have no times
            return row
        times = {"from": crawl.start, "to": crawl.end}
        return {**row, **{name: f"{time:%Y-%m-%dT%H:%M:%S}" for name, time in times.items()}}


def _captured_again(before: list[CapturedPage], after: list[CapturedPage]) -> list[CapturedPage]:
    pages = [page for page in before if page.number % 4 == 3 and not page.oddity]
    return [CapturedPage(page.number, page.story, after[0].captured + _DAY) for page in pages]


def _crawls_of(months: list[Month]) -> dict[Month, SimulatedCrawl]:
    """Return a crawl for each month, which ends in the next month."""
    found = {}
    for month in months:
        start = month.start + 9 * _DAY
        end = month.end + 5 * _DAY
        year, week, _ = (end - _DAY).isocalendar()
        found[month] = SimulatedCrawl(f"CC-MAIN-{year}-{week:02}", start, end)
    return found


def _described(page: CapturedPage, place: dict[str, str]) -> JsonObject:
    """Return the index's row of a page; odd pages are moved, cut, German or no HTML."""
    digest = base64.b32encode(hashlib.sha1(page.payload, usedforsecurity=False).digest()).decode()
    mime = "application/pdf" if page.oddity == "paper" else "text/html"
    row: JsonObject = {"mime": mime, "mime-detected": mime, "status": "200", "digest": digest}
    row |= place
    if page.oddity == "moved":
        moved = {"status": "301", "redirect": f"{page.url}&new"}
        return {
            **row,
            **moved,
            "filename": place["filename"].replace("/warc/", "/crawldiagnostics/"),
        }
    row |= {"charset": "UTF-8", "languages": "deu,eng" if page.oddity == "german" else "eng"}
    return {**row, "truncated": "length"} if page.oddity == "cut" else row


def _indexes(lines: list[str]) -> dict[str, bytes]:
    """Return the index files, each of packed blocks, and the list of the blocks."""
    files: dict[str, bytes] = {}
    cluster = ""
    for number, begin in enumerate(range(0, len(lines), BLOCK_LINES)):
        block = "".join(f"{line}\n" for line in lines[begin : begin + BLOCK_LINES])
        packed = gzip.compress(block.encode(), mtime=0)
        name = f"cdx-{number // FILE_BLOCKS:05}.gz"
        offset = len(files.get(name, b""))
        files[name] = files.get(name, b"") + packed
        key = " ".join(lines[begin].split(" ")[:2])
        cluster += f"{key}\t{name}\t{offset}\t{len(packed)}\t{number + 1}\n"
    return {**files, "cluster.idx": cluster.encode()}


Site = CrawlArchive
