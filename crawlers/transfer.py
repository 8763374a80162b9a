"""Reading an answer's headers and body: never more of them, packed or unpacked, than allowed."""

from __future__ import annotations

import contextlib
import http.client
import zlib
from collections.abc import Iterator

import requests
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    IncompleteRead,
    InvalidChunkLength,
    InvalidHeader,
    ReadTimeoutError,
)

from core.errors import ItemFailed, ItemUnavailable, SourceChanged
from crawlers.connections import Deadline
from crawlers.pacing import TryAgain

WALL_CLOCK_S = 300.0  # for one answer, headers and body, however steadily it drips
MAX_HEADER_BYTES = 2**16  # all of them together; they are kept with the body
_BLOCK = 2**16


@contextlib.contextmanager
def in_time(url: str) -> Iterator[None]:
    """Give what the block sends and reads WALL_CLOCK_S, and explain what goes wrong on the way.

    Raises:
        ItemFailed: it was not complete in time.
        ItemUnavailable: its headers are too large.
        TryAgain: the connection or the answer broke.
    """
    deadline = Deadline(WALL_CLOCK_S)
    too_slow = ItemFailed(
        "timeout", f"{url} was not complete after {WALL_CLOCK_S:.0f} s, then we hung up"
    )
    try:
        with deadline.holding():
            yield
    except _TRANSFER_ERRORS as error:
        if deadline.has_passed:
            raise too_slow from error
        if _has_too_many_headers(error):
            raise _too_many_headers(url) from error
        raise TryAgain(
            f"{url}: {type(error).__name__}: {error}", reason=_reason_of(error)
        ) from error
    if deadline.has_passed:  # a body of unknown length only seems to be complete
        raise too_slow


def read_headers(response: requests.Response, url: str) -> dict[str, str]:
    """Return the headers, names in lower case, without what a session would remember us by.

    Raises:
        ItemUnavailable: they are too large.
    """
    headers = {name.lower(): value for name, value in response.headers.items()}
    headers.pop("set-cookie", None)  # a session's secret
    if sum(len(name) + len(value) for name, value in headers.items()) > MAX_HEADER_BYTES:
        raise _too_many_headers(url)
    return headers


def read_body(response: requests.Response, url: str, max_bytes: int, is_cut: bool = False) -> bytes:
    """Read and unpack a body, never holding more than ``max_bytes`` and a block of it.

    Args:
        response: sent for with ``stream=True``, nothing of it read yet.
        url: for messages.
        max_bytes: cap on what comes over the wire, and again on what it unpacks to.
        is_cut: return the beginning of what is larger, in place of an error.

    Returns:
        The body without its transfer coding and without gzip.

    Raises:
        ItemUnavailable: too large.
        SourceChanged: packed in a way that was not offered.
        urllib3.exceptions.HTTPError: the connection broke, or the body is shorter than announced.
        zlib.error: the gzip stream is damaged or ends early.
    """
    if not is_cut and (response.raw.length_remaining or 0) > max_bytes:
        raise too_large(url, max_bytes)
    chunks = _read_wire(response.raw)
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    if coding in {"gzip", "x-gzip"}:
        chunks = _gunzip(chunks)
    elif coding not in {"", "identity"}:
        raise SourceChanged(f"{url} is packed as {coding!r}; only gzip was offered")
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if max(len(body), response.raw.tell()) > max_bytes:
            if is_cut:
                return bytes(body[:max_bytes])
            raise too_large(url, max_bytes)
    return bytes(body)


def _read_wire(raw: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the body as it comes; urllib3 raises where it ends before its Content-Length."""
    while chunk := raw.read1(_BLOCK, decode_content=False):
        yield chunk


def _gunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack gzip in small steps; members may follow each other (RFC 1952, 2.2)."""
    unpacker, num_members = None, 0
    for chunk in chunks:
        has_more = True
        while has_more:
            if unpacker is None:
                if num_members and not chunk.startswith(b"\x1f"):
                    return  # padding after the last member, which every client ignores
                unpacker, num_members = zlib.decompressobj(wbits=31), num_members + 1
            block = unpacker.decompress(chunk, _BLOCK)
            yield block
            chunk = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            has_more = bool(chunk) or (len(block) == _BLOCK and not unpacker.eof)
            if unpacker.eof:
                unpacker = None
    if unpacker is not None:
        raise zlib.error("the gzip stream ends early")


_TRANSFER_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, zlib.error)
# Exact classes: a refused connection is a ConnectTimeoutError, too, and one that is closed without
# an answer a BadStatusLine.
_TIMEOUTS = {requests.ReadTimeout, requests.ConnectTimeout, ReadTimeoutError, ConnectTimeoutError}
_DAMAGE = {
    http.client.BadStatusLine, http.client.IncompleteRead, http.client.UnknownProtocol,
    http.client.UnknownTransferEncoding, IncompleteRead, InvalidChunkLength, InvalidHeader,
    DecodeError, zlib.error,
}  # fmt: skip


def _reason_of(error: BaseException) -> str:
    """Return why a transfer failed: ``timeout``, ``damaged_answer`` or ``network``."""
    if any(type(each) in _TIMEOUTS for each in _parts(error)):
        return "timeout"
    if any(type(each) in _DAMAGE for each in _parts(error)):
        return "damaged_answer"
    return "network"


def _has_too_many_headers(error: BaseException) -> bool:
    """Whether Python gave up on headers: more than 100, or one above 64 KiB."""
    return any(
        isinstance(each, http.client.LineTooLong) or type(each) is http.client.HTTPException
        for each in _parts(error)
    )


def _parts(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it is made of: the libraries wrap each other's."""
    yield error
    for part in (*error.args, getattr(error, "reason", None)):
        if isinstance(part, BaseException):
            yield from _parts(part)


def _too_many_headers(url: str) -> ItemUnavailable:
    return ItemUnavailable(
        "too_large",
        f"the headers of {url} are more than 100, or larger than {MAX_HEADER_BYTES} bytes",
    )


def too_large(url: str, max_bytes: int) -> ItemUnavailable:
    """The error for what is over its cap."""
    return ItemUnavailable("too_large", f"{url} is larger than {max_bytes} bytes")
