"""Records of web archives (WARC, ISO 28500), and the HTML pages of HTTP responses in them."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlsplit

import brotli

from core.errors import ItemUnavailable
from crawlers.contract import DropReason
from crawlers.text import charsets
from crawlers.text.pages import Page, read_page
from crawlers.web.times import read_time

_MAX_BODY = 64 * 2**20
_MAX_DIGITS = 12  # of a stated length
_MAX_LINE = 2**16
_MAX_HEADERS = 200
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_BEGINNING = b"WARC/"
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MOST_TIMES_PACKED = 2
_MOST_CODINGS = 4
_WITHOUT_HEADER = -15  # of zlib: some servers send deflate bare, and browsers read it
_PARAGRAPHS = "//body//p[not(ancestor::footer or ancestor::nav or ancestor::aside)]"


@dataclass(frozen=True)
class Record:
    """A record: where it begins, its headers by lower-case name, and its block."""

    start: int  # byte of the unpacked file
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Torn:
    """Bytes that are no whole record, and why."""

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


def read_records(stream: IO[bytes]) -> Iterator[Record | Torn]:
    """Yield the records of a stream of unpacked bytes; torn ones are told by where they begin."""
    source = _Input(stream)
    is_torn = False  # a run of bytes outside records counts once
    while line := source.line():
        if not line.strip():
            continue
        if line.startswith(_BEGINNING):
            found = _record(source, source.offset - len(line))
            is_torn = isinstance(found, Torn)
            yield found
        elif not is_torn:
            is_torn = True
            yield Torn(source.offset - len(line), "no record begins here")


def _record(source: _Input, start: int) -> Record | Torn:
    """Read a record whose first line has been read; return it, or Torn with what is wrong."""
    headers: dict[str, str] = {}
    for _ in range(_MAX_HEADERS):
        line = source.line()
        if not line.strip():
            break
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.strip().lower()] = value.strip()
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return Torn(start, f"Content-Length is {length[:40]!r}")
    if len(length) > _MAX_DIGITS or int(length) > _MAX_BODY:
        return Torn(start, f"a record of {length[:40]} bytes", "too_large")
    body = source.take(int(length))
    end = source.line()
    if not end.strip():
        end = source.line()
    source.give_back(end)  # some writers leave out one of the two blank lines, or both
    if len(body) < int(length) or (end.strip() and not end.startswith(_BEGINNING)):
        source.give_back(body)  # the next record may begin within it
        return Torn(start, f"the record is not of {length} bytes, as it says")
    return Record(start, headers, body)


def captured_at(record: Record) -> dt.datetime | None:
    """Return the time of capture that a record states, in UTC."""
    return read_time(record.headers.get("warc-date"), dt.UTC)


def require_allowed(url: str, denied: Collection[str]) -> None:
    """Raise ItemUnavailable if a URL is on a denied host, or below one."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    if any(f".{host}".endswith(f".{each.lower()}") for each in denied):
        raise ItemUnavailable("permission", f"{host} is in TIDEMARK_DENIED_HOSTS")


def require_whole(record: Record) -> None:
    """Raise ItemUnavailable for a record that the crawler cut, or parted into several records."""
    cut = record.headers.get("warc-truncated")
    if cut:
        raise ItemUnavailable("damaged", f"the crawler cut it ({cut})")
    if "warc-segment-number" in record.headers:
        raise ItemUnavailable("damaged", "it is a segment, and other records have the rest")


def read_capture(record: Record) -> Page:
    """Return the page of a record of type ``response``.

    The text is that of ``<article>`` or ``<main>``, else of the paragraphs outside navigation.
    Raise ItemUnavailable if the response is no HTML page of status 200, or was cut.
    """
    require_whole(record)
    headers, payload = _response(record.body)
    html = charsets.decode(payload, headers.get("content-type", ""))
    page = read_page(html)
    return page if page.text else read_page(html, _PARAGRAPHS)


def _response(body: bytes) -> tuple[dict[str, str], bytes]:
    """Return the headers and the unpacked payload of an HTTP response with a page."""
    status, headers, payload = _parts(body)
    code = status.split(" ")[1:2]
    if code in (["100"], ["103"]):  # a notice before the response
        status, headers, payload = _parts(payload)
        code = status.split(" ")[1:2]
    kind = headers.get("content-type", "")
    if code != ["200"] or "html" not in kind.lower():
        raise ItemUnavailable("unknown_format", f"status {' '.join(code)}, {kind[:80]!r}")
    codings = _names(headers.get("content-encoding", ""))
    transfer = _names(headers.get("transfer-encoding", ""))
    if transfer[-1:] == ["chunked"]:
        payload = _joined(payload)
        codings += transfer[:-1]
    elif not codings:
        _require_length(payload, headers.get("content-length", ""))
    for coding in reversed(codings or [""]):
        payload = _unpacked(payload, coding)
    if payload.startswith(_ZSTD):
        raise ItemUnavailable("unknown_format", "packed by zstd, which is not read")
    return headers, payload


def _parts(body: bytes) -> tuple[str, dict[str, str], bytes]:
    """Return the first line, the headers by lower-case name, and what follows them."""
    head, *payload = _HEAD_END.split(body, maxsplit=1)
    status, *lines = head.decode("latin-1").replace("\r\n", "\n").split("\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    return status, headers, b"".join(payload)


def _names(header: str) -> list[str]:
    """Return the names of codings in the order in which they were applied."""
    named = [name.strip().lower() for name in header.split(",")[:_MOST_CODINGS]]
    return [name for name in named if name not in ("", "identity")]


def _require_length(payload: bytes, stated: str) -> None:
    """Raise ItemUnavailable for a payload that is shorter than its header states."""
    # A longer payload is accepted, and so is one that ends as a page does: some lengths are wrong.
    if payload.rstrip().lower().endswith(b"</html>"):
        return
    if stated.isdecimal() and len(stated) <= _MAX_DIGITS and len(payload) < int(stated):
        why = f"cut after {len(payload)} of {stated} bytes"
        raise ItemUnavailable("damaged", why)


def _joined(payload: bytes) -> bytes:
    """Join a payload's chunks, unless they are joined; raise ItemUnavailable if one is missing."""
    if _CHUNK_SIZE.match(payload) is None:
        return payload
    chunks: list[bytes] = []
    stream = io.BytesIO(payload)
    while True:
        size = _CHUNK_SIZE.match(stream.readline(_MAX_LINE))
        length = int(size[1], 16) if size else -1
        if length == 0:
            return b"".join(chunks)
        chunk = stream.read(max(length, 0))
        if length < 0 or len(chunk) < length:
            raise ItemUnavailable("damaged", "its chunks were cut short")
        chunks.append(chunk)
        stream.readline(3)  # the line end after a chunk


def _unpacked(payload: bytes, encoding: str) -> bytes:
    """Unpack a payload; one that was unpacked before, although its header remains, is returned."""
    try:
        if payload.startswith(_GZIP):  # also where no header says so, and where it was packed twice
            return _ungzipped(payload)
        if encoding == "deflate":
            return _inflated(payload)
        if encoding == "br":
            engine = brotli.Decompressor()
            unpacked: bytes = engine.process(payload, output_buffer_limit=_MAX_BODY)
            return unpacked if engine.is_finished() or len(unpacked) >= _MAX_BODY else payload
    except (OSError, EOFError, zlib.error, brotli.error) as error:
        if payload.startswith(_GZIP):
            raise ItemUnavailable("damaged", f"gzip that is cut or damaged: {error}") from error
        return payload
    return payload


def _inflated(payload: bytes) -> bytes:
    """Unpack deflate data with or without zlib's header; raise zlib.error if it is neither."""
    try:
        return zlib.decompressobj().decompress(payload, _MAX_BODY)
    except zlib.error:
        engine = zlib.decompressobj(_WITHOUT_HEADER)
        found = engine.decompress(payload, _MAX_BODY)
        if not engine.eof:  # text that was unpacked before is bare deflate for a few bytes
            raise
        return found


def _ungzipped(payload: bytes) -> bytes:
    """Unpack gzip data, which some servers have packed twice."""
    for _ in range(_MOST_TIMES_PACKED):
        if not payload.startswith(_GZIP):
            break
        with gzip.open(io.BytesIO(payload)) as packed:
            payload = packed.read(_MAX_BODY)
    return payload
