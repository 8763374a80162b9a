"""Pages of web archives: WARC files of CC-NEWS, and WET files of Common Crawl; also packed.

Records that are torn or cut are drops that name the byte of the unpacked file where they begin;
reading goes on at the next record. Rights stay with the publishers, so all texts are of unknown
licence, and hosts of ``TIDEMARK_DENIED_HOSTS`` are left out.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, cast
from urllib.parse import urlsplit

import brotli

from core.errors import ItemUnavailable
from crawlers.contract import Drop, DropReason
from crawlers.imports.streams import open_stream
from crawlers.imports.tables import DataFile, Row, Rows
from crawlers.text import charsets
from crawlers.text.cleaning import clean
from crawlers.text.pages import Page, read_page
from crawlers.web.times import read_time

MAX_DAYS = 7  # between the stated publication and the capture; more is an old article or no date
_MAX_BODY = 64 * 2**20
_MAX_LINE = 2**16
_MAX_HEADERS = 200
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_GZIP = b"\x1f\x8b\x08"
_MOST_TIMES_PACKED = 2
_PARAGRAPHS = "//body//p[not(ancestor::footer or ancestor::nav or ancestor::aside)]"


@dataclass(frozen=True)
class _Record:
    start: int  # byte of the unpacked file
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class _Torn:
    start: int
    why: str
    reason: DropReason = "damaged"


class _Input:
    """A stream of which bytes can be given back."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._returned = io.BytesIO()
        self.offset = 0

    def line(self) -> bytes:
        line = self._returned.readline(_MAX_LINE)
        if not line.endswith(b"\n"):
            line += self._stream.readline(_MAX_LINE)
        self.offset += len(line)
        return line

    def take(self, size: int) -> bytes:
        data = self._returned.read(size)
        data += self._stream.read(size - len(data))
        self.offset += len(data)
        return data

    def give_back(self, data: bytes) -> None:
        self._returned = io.BytesIO(data + self._returned.read())
        self.offset -= len(data)


def _records(stream: IO[bytes]) -> Iterator[_Record | _Torn]:
    source = _Input(stream)
    is_torn = False  # a run of bytes outside records counts once
    while line := source.line():
        if not line.strip():
            continue
        if line.startswith(b"WARC/"):
            found = _record(source, source.offset - len(line))
            is_torn = isinstance(found, _Torn)
            yield found
        elif not is_torn:
            is_torn = True
            yield _Torn(source.offset - len(line), "no record begins here")


def _record(source: _Input, start: int) -> _Record | _Torn:
    headers: dict[str, str] = {}
    for _ in range(_MAX_HEADERS):
        line = source.line()
        if not line.strip():
            break
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.strip().lower()] = value.strip()
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return _Torn(start, f"Content-Length is {length[:40]!r}")
    if len(length) > 12 or int(length) > _MAX_BODY:
        return _Torn(start, f"a record of {length[:40]} bytes", "too_large")
    body = source.take(int(length))
    end = source.line() + source.line()
    if len(body) < int(length) or end.strip():
        source.give_back(body + end)  # the next record may begin within it
        return _Torn(start, f"the record is not of {length} bytes, as it says")
    return _Record(start, headers, body)


def read_archive(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the pages of a WARC or WET file: text, title, url, and date of publication or capture.

    Requests, metadata and revisits are ignored.
    """
    faults: list[str] = []
    with open_stream(file.path, faults) as stream:
        for number, found in enumerate(_records(stream)):
            place = f"{file.name}:{number}"
            where = f"{place} (byte {found.start})"
            if isinstance(found, _Torn):
                yield Drop(place, found.reason, f"{where}: {found.why}")
                continue
            kind = found.headers.get("warc-type")
            url = found.headers.get("warc-target-uri", "")
            url = url.strip("<>")
            try:
                if kind == "conversion":
                    _require_allowed(url, file.denied_hosts)
                    yield Row(place, _extracted(found, url), "web")
                elif kind == "response" and url.startswith(("http://", "https://")):
                    _require_allowed(url, file.denied_hosts)
                    yield Row(place, _page(found, url), "web")
            except ItemUnavailable as error:
                yield Drop(place, cast(DropReason, error.reason), f"{where}: {url[:200]}: {error}")
    for why in faults:
        yield file.damaged("file", why)


def _require_allowed(url: str, denied: Collection[str]) -> None:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    if any(f".{host}".endswith(f".{each.lower()}") for each in denied):
        raise ItemUnavailable("permission", f"{host} is in TIDEMARK_DENIED_HOSTS")


def _extracted(record: _Record, url: str) -> dict[str, object]:
    try:
        text = record.body.decode()
    except UnicodeDecodeError as error:
        raise ItemUnavailable("damaged", f"byte {error.start} of it is not UTF-8") from error
    return {"text": clean(text), "url": url, "date": _captured(record)}


def _captured(record: _Record) -> dt.datetime | None:
    return read_time(record.headers.get("warc-date"), dt.UTC)


def _page(record: _Record, url: str) -> dict[str, object]:
    cut = record.headers.get("warc-truncated")
    if cut:
        raise ItemUnavailable("damaged", f"the crawler cut it ({cut})")
    headers, payload = _answer(record.body)
    html = charsets.decode(payload, headers.get("content-type", ""))
    page = read_page(html)
    if not page.text:
        page = read_page(html, _PARAGRAPHS)
    return {
        "text": clean(page.text),
        "title": page.title,
        "url": url,
        "date": _date_of(page, _captured(record)),
    }


def _date_of(page: Page, captured: dt.datetime | None) -> dt.datetime | None:
    if page.published and captured and abs(page.published - captured).days >= MAX_DAYS:
        why = f"published {page.published:%Y-%m-%d}, captured {captured:%Y-%m-%d}"
        raise ItemUnavailable("outside_month", why)
    return page.published or captured


def _answer(body: bytes) -> tuple[dict[str, str], bytes]:
    """Return the headers and the unpacked payload of an HTTP answer with a page."""
    head, _, payload = body.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    code = status.split(" ")[1:2]
    kind = headers.get("content-type", "")
    if code != ["200"] or "html" not in kind.lower():
        raise ItemUnavailable("unknown_format", f"status {' '.join(code)}, {kind[:80]!r}")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        payload = _joined(payload)
    elif "content-encoding" not in headers:
        _require_length(payload, headers.get("content-length", ""))
    return headers, _unpacked(payload, headers.get("content-encoding", "").lower())


def _require_length(payload: bytes, stated: str) -> None:
    """Raise ItemUnavailable for a payload that is shorter than it says.

    A longer one is whole, and so is one that ends as a page does: some lengths are wrong.
    """
    if payload.rstrip().lower().endswith(b"</html>"):
        return
    if stated.isdecimal() and len(stated) < 13 and len(payload) < int(stated):
        why = f"cut after {len(payload)} of {stated} bytes"
        raise ItemUnavailable("damaged", why)


def _joined(payload: bytes) -> bytes:
    """Join the chunks; Common Crawl has joined them already, and then nothing is to do.

    Raise ItemUnavailable if the last chunk is missing or cut.
    """
    if _CHUNK_SIZE.match(payload) is None:
        return payload
    found: list[bytes] = []
    stream = io.BytesIO(payload)
    while True:
        size = _CHUNK_SIZE.match(stream.readline(_MAX_LINE))
        length = int(size[1], 16) if size else -1
        if length == 0:
            return b"".join(found)
        chunk = stream.read(max(length, 0))
        if length < 0 or len(chunk) < length:
            raise ItemUnavailable("damaged", "its chunks were cut short")
        found.append(chunk)
        stream.readline(3)


def _unpacked(payload: bytes, encoding: str) -> bytes:
    """Unpack a payload; one that was unpacked before, although its header remains, is returned."""
    try:
        if payload.startswith(_GZIP):  # also where no header says so, and where it was packed twice
            return _ungzipped(payload)
        if encoding == "deflate":
            return zlib.decompressobj().decompress(payload, _MAX_BODY)
        if encoding == "br":
            engine = brotli.Decompressor()
            unpacked: bytes = engine.process(payload, output_buffer_limit=_MAX_BODY)
            return unpacked if engine.is_finished() or len(unpacked) >= _MAX_BODY else payload
    except (OSError, EOFError, zlib.error, brotli.error) as error:
        if payload.startswith(_GZIP):
            raise ItemUnavailable("damaged", f"gzip that is cut or damaged: {error}") from error
        return payload
    return payload


def _ungzipped(payload: bytes) -> bytes:
    for _ in range(_MOST_TIMES_PACKED):
        if not payload.startswith(_GZIP):
            break
        with gzip.open(io.BytesIO(payload)) as packed:
            payload = packed.read(_MAX_BODY)
    return payload
