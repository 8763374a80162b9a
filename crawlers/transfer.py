"""Reading an answer's body: never more of it, packed or unpacked, and never longer than allowed."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator

import requests
import urllib3

from core.errors import ItemUnavailable, SourceChanged

WALL_CLOCK_S = 300.0  # for one body, however steadily it drips
_BLOCK = 2**16


def read_body(response: requests.Response, url: str, max_bytes: int) -> bytes:
    """Read and unpack a body, never holding more than ``max_bytes`` and a block of it.

    Args:
        response: sent for with ``stream=True``, nothing of it read yet.
        url: for messages.
        max_bytes: cap on what comes over the wire, and again on what it unpacks to.

    Returns:
        The body without its transfer coding and without gzip.

    Raises:
        ItemUnavailable: too large, or not complete within WALL_CLOCK_S.
        SourceChanged: packed in a way that was not offered.
        urllib3.exceptions.HTTPError: the connection broke, or the body is shorter than announced.
        zlib.error: the gzip stream is damaged or ends early.
    """
    chunks = _read_wire(response.raw, url, max_bytes)
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    if coding in {"gzip", "x-gzip"}:
        chunks = _gunzip(chunks)
    elif coding not in {"", "identity"}:
        raise SourceChanged(f"{url} is packed as {coding!r}; only gzip was offered")
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise too_large(url, max_bytes)
    return bytes(body)


def _read_wire(raw: urllib3.BaseHTTPResponse, url: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the body as it comes; urllib3 raises where it ends before its Content-Length."""
    deadline = time.monotonic() + WALL_CLOCK_S
    if (raw.length_remaining or 0) > max_bytes:
        raise too_large(url, max_bytes)
    while chunk := raw.read1(_BLOCK, decode_content=False):
        yield chunk
        if raw.tell() > max_bytes:
            raise too_large(url, max_bytes)
        if time.monotonic() > deadline:
            raise ItemUnavailable(
                "timeout",
                f"{url}: {raw.tell()} bytes came in {WALL_CLOCK_S:.0f} s, then we hung up",
            )


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


def too_large(url: str, max_bytes: int) -> ItemUnavailable:
    """The error for a body over its cap."""
    return ItemUnavailable("too_large", f"{url} is larger than {max_bytes} bytes")
