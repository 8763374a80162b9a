"""The index of Common Crawl: its crawls, blocks of captures, and earlier captures of a page.

Each crawl has an index of all captures, sorted by the reversed host and the path. It is packed in
blocks of 3,000 lines; ``cluster.idx`` has a line a block. Both are files, of which parts are
fetched. The server of ``index.commoncrawl.org`` is asked for single URLs alone: its operators ask
programs to read the files for anything larger (https://groups.google.com/g/common-crawl/c/3QmQjFA_3y4).
"""

from __future__ import annotations

import datetime as dt
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import ItemUnavailable, SourceChanged
from core.month import Period
from crawlers.apis.fields import Fields, load_json
from crawlers.contract import CrawlContext
from crawlers.web.fetcher import Fetched, Fetcher, decode, get_list
from crawlers.web.ranges import size_of_file

INDEX = "common_crawl_index"
DATA = "common_crawl"
NUM_DRAWS = 100  # blocks that are drawn for a month; a block that is drawn twice counts once
WINDOW_BYTES = 4096  # of cluster.idx that a draw reads; a line has some 100 bytes
MAX_BLOCK_BYTES = 2 * 2**20  # packed; some 0.2 MB
MAX_RECORD_BYTES = 2**20  # packed; Common Crawl cuts pages at 1 MiB (5 MiB since 2025)
MAX_UNPACKED_BYTES = 16 * 2**20
_CRAWL = re.compile(r"CC-MAIN-(\d{4})-(\d{2})")
_BLOCK = re.compile(r"[^\t]+\t(cdx-\d{5}\.gz)\t(\d{1,15})\t(\d{1,9})\t\d+")
_RECORDS = re.compile(r"crawl-data/CC-MAIN-[\w-]+/segments/[\w.-]+/warc/[\w.-]+\.warc\.gz")
_HTML = ("text/html", "application/xhtml+xml")
_LONGEST = dt.timedelta(days=28)  # of a crawl that states no dates, up to the end of its week


@dataclass(frozen=True)
class Crawl:
    """A crawl, such as ``CC-MAIN-2024-10``, and the times between which it captured pages."""

    name: str
    start: dt.datetime
    end: dt.datetime


@dataclass(frozen=True)
class Capture:
    """A line of the index: a page that Common Crawl captured, and where its record is."""

    crawl: Crawl
    url: str
    captured: dt.datetime
    filename: str
    offset: int
    length: int  # bytes of the packed record
    languages: str  # up to three codes of ISO 639-3, as ``eng,fra``; empty before 2018-08


def list_crawls(fetcher: Fetcher) -> list[Crawl]:
    """Return all crawls, the oldest first."""
    fetched = get_list(fetcher, INDEX, "/collinfo.json", {}, _is_no_list)
    crawls = []
    for row in Fields.list_of("collinfo.json", decode(fetched)) or []:
        name = row.text("id") or ""
        week = _CRAWL.fullmatch(name)
        if week:  # some early ones are of whole years, without an index of blocks
            ends = _end_of_week(row, *map(int, week.groups()))
            start = row.time("from", dt.UTC) or ends - _LONGEST
            crawls.append(Crawl(name, start, row.time("to", dt.UTC) or ends))
    if not crawls:
        raise SourceChanged(f"{fetched.url} lists no crawl such as CC-MAIN-2024-10")
    return sorted(crawls, key=lambda each: (each.start, each.name))


def _end_of_week(row: Fields, year: int, week: int) -> dt.datetime:
    """Return the end of a calendar week (ISO 8601)."""
    try:
        monday = dt.datetime.fromisocalendar(year, week, 1).replace(tzinfo=dt.UTC)
    except ValueError:
        return row.need("id", None, "the year and week of a crawl")
    return monday + dt.timedelta(weeks=1)


def _is_no_list(fetched: Fetched) -> bool:
    return not isinstance(decode(fetched), list)


def draw_blocks(
    crawls: Sequence[Crawl], month: Period, context: CrawlContext
) -> Iterator[IndexBlock]:
    """Yield the blocks of a month's crawls that the seed draws, in random order.

    A draw is a byte of ``cluster.idx``; its block is that of the next line. So a block has a chance
    in proportion to the length of the line before its own.
    """
    fetcher = context.fetcher
    indexes = [_Cluster(crawl, fetcher) for crawl in crawls]
    drawn = set[IndexBlock]()
    for number in range(NUM_DRAWS):
        index = indexes[number % len(indexes)]
        share = int.from_bytes(context.rank(f"{month}/block/{number}")[:8]) / 2**64
        block = index.block_at(share)
        if block not in drawn:
            drawn.add(block)
            yield block


@dataclass(frozen=True)
class IndexBlock:
    """Place of a block of the index, in a file of a crawl."""

    crawl: Crawl
    file: str
    offset: int
    length: int

    @property
    def name(self) -> str:
        """A name for messages and for the item that stands for a block without response."""
        return f"{self.crawl.name}/{self.file}:{self.offset}"

    def captures(self, fetcher: Fetcher) -> Iterator[Capture]:
        """Yield the pages of a block: HTML of status 200, whole.

        Raise ItemUnavailable if the block is damaged, SourceChanged if no line is of the known
        form, and the errors of ``Fetcher.get``.
        """
        last = self.offset + self.length - 1
        path = f"/cc-index/collections/{self.crawl.name}/indexes/{self.file}"
        fetched = fetcher.get(DATA, path, span=(self.offset, last))
        lines = unpack_member(fetched.body, self.name).decode("utf-8", "replace").splitlines()
        fields = [each for each in map(_fields_of, lines) if each]
        if not fields:
            raise SourceChanged(f"{self.name}: no line is of the known form: {lines[:1]!r:.200}")
        for time, row in fields:
            found = _capture_of(self.crawl, time, row)
            if found:
                yield found


@dataclass
class _Cluster:
    """The list of a crawl's blocks, ``cluster.idx``."""

    crawl: Crawl
    fetcher: Fetcher
    _size: int = 0
    _first: bytes = b""

    def block_at(self, share: float) -> IndexBlock:
        """Return the block whose line follows the byte at a share of the file, from 0 to 1.

        The first line follows the last.
        """
        if not self._size:
            part = self._part(0, _has_no_blocks)
            self._first = part.body.partition(b"\n")[0]
            self._size = size_of_file(part) or 0
        part = self._part(int(share * self._size), lambda it: size_of_file(it) != self._size)
        begun = part.body.partition(b"\n")[2]
        line, end, _ = begun.partition(b"\n")
        return self._block(line if end else self._first)

    def _part(self, begin: int, is_busy: Callable[[Fetched], bool]) -> Fetched:
        path = f"/cc-index/collections/{self.crawl.name}/indexes/cluster.idx"
        span = (begin, begin + WINDOW_BYTES - 1)
        return get_list(self.fetcher, DATA, path, {}, is_busy, span=span)

    def _block(self, line: bytes) -> IndexBlock:
        """Parse a line of cluster.idx: a block of the index."""
        text = line.decode("utf-8", "replace")
        found = _BLOCK.fullmatch(text)
        length = int(found[3]) if found else 0
        if found is None or not 0 < length <= MAX_BLOCK_BYTES:
            raise SourceChanged(f"{self.crawl.name}: cluster.idx has the line {text[:200]!r}")
        return IndexBlock(self.crawl, found[1], int(found[2]), length)


def _has_no_blocks(fetched: Fetched) -> bool:
    """Return True if the first part of a list does not begin with a block, or states no size."""
    line = fetched.body.partition(b"\n")[0].decode("utf-8", "replace")
    return _BLOCK.fullmatch(line) is None or not size_of_file(fetched)


def unpack_member(packed: bytes, what: str) -> bytes:
    """Unpack a gzip member; raise ItemUnavailable if it is damaged, or larger than 16 MiB."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(packed, MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise ItemUnavailable("damaged", f"{what}: no gzip: {error}") from error
    if not unpacker.eof:
        reason = "too_large" if unpacker.unconsumed_tail else "damaged"
        raise ItemUnavailable(reason, f"{what}: {len(data)} bytes, and more follow")
    return data


def _fields_of(line: str) -> tuple[str, Fields] | None:
    """Return the time and the fields of a line ``com,example)/path 20240302120000 {…}``."""
    parts = line.split(" ", 2)
    try:
        row: Any = load_json(parts[2]) if len(parts) == 3 else None
    except ValueError:
        return None
    return (parts[1], Fields("index", row)) if isinstance(row, dict) else None


def _capture_of(crawl: Crawl, time: str, row: Fields) -> Capture | None:
    """Return the capture in a row of the index; None if it is no whole HTML page."""
    url = row.text("url")
    filename = row.text("filename") or ""
    captured = read_stamp(time)
    offset = _number(row.text("offset"))
    length = _number(row.text("length"))
    kind = row.text("mime-detected") or row.text("mime")
    is_page = row.text("status") == "200" and kind in _HTML and "truncated" not in row.values
    if url is None or captured is None or offset is None or not is_page:
        return None
    if not _RECORDS.fullmatch(filename) or length is None or not 0 < length <= MAX_RECORD_BYTES:
        return None
    languages = row.text("languages") or ""
    return Capture(crawl, url, captured, filename, offset, length, languages)


def _number(text: str | None) -> int | None:
    return int(text) if text and len(text) < 16 and text.isascii() and text.isdecimal() else None


def read_stamp(text: str | None) -> dt.datetime | None:
    """Return a time of 14 digits, such as 20240302120000, in UTC; None for anything else."""
    if text is None or not re.fullmatch(r"[0-9]{14}", text):
        return None
    try:
        return dt.datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=dt.UTC)
    except ValueError:
        return None


def earlier_crawls(crawls: Sequence[Crawl], capture: Capture) -> list[Crawl]:
    """Return the crawls that are asked for earlier captures of a page, the oldest first.

    These are the crawls that began in the 12 months before the capture's crawl did, and of each
    year before them the first. Asking all hundred of them for each page would load the server.
    """
    begun = capture.crawl.start
    a_year = dt.timedelta(days=365)
    earlier = [each for each in crawls if (each.start, each.name) < (begun, capture.crawl.name)]
    near = [each for each in earlier if each.start >= begun - a_year]
    firsts: dict[int, Crawl] = {}
    for each in earlier:
        if each.start < begun - a_year:
            firsts.setdefault(each.start.year, each)
    return [*firsts.values(), *near]


def first_capture(fetcher: Fetcher, crawl: Crawl, url: str) -> dt.datetime | None:
    """Return when a crawl first captured a URL, whatever it got; None if it did not."""
    params: dict[str, str | int] = {
        "url": url, "matchType": "exact", "output": "json", "fl": "timestamp", "limit": 1,
    }  # fmt: skip
    try:
        fetched = fetcher.get(INDEX, f"/{crawl.name}-index", params, is_busy=_has_no_stamp)
    except ItemUnavailable as error:
        if error.reason == "http_404":  # "No Captures found"
            return None
        raise
    return _stamp_of(fetched)


def _has_no_stamp(fetched: Fetched) -> bool:
    return _stamp_of(fetched) is None


def _stamp_of(fetched: Fetched) -> dt.datetime | None:
    """Return the time of the first capture in a response of the index server."""
    try:
        row = load_json(fetched.body.splitlines()[0])
    except (ValueError, IndexError):
        return None
    return read_stamp(Fields.of("index", row).text("timestamp"))
