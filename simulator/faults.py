"""Faults of HTTP responses that any simulated site can produce."""

from __future__ import annotations

import dataclasses
import functools
import math
import struct
import threading
import time
import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal


@dataclass
class Traffic:
    """Request counts of one site; ``arrivals`` omits POST (git continues transfers with POST)."""

    arrivals: list[float] = field(default_factory=list)  # from ``time.monotonic()``
    most_at_once: int = 0  # maximum number of concurrent requests
    num_refused: int = 0  # number of requests above the rate limit, which got status 429
    _open: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def smallest_gap_s(self) -> float:
        """The minimum time between successive arrivals; infinite for fewer than two arrivals."""
        return min((late - early for early, late in pairwise(self.arrivals)), default=math.inf)

    def arrive(self, is_continuation: bool) -> float:
        """Count a request; return the seconds since the last arrival (continuations: infinity)."""
        now = time.monotonic()
        with self._lock:
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
            if is_continuation:
                return math.inf
            gap_s = now - self.arrivals[-1] if self.arrivals else math.inf
            self.arrivals.append(now)
            return gap_s

    def leave(self) -> None:
        """Decrement the number of open requests."""
        with self._lock:
            self._open -= 1

    def refuse(self) -> None:
        """Count a request above the rate limit."""
        with self._lock:
            self.num_refused += 1

    def clear(self) -> None:
        """Reset all counts except the number of open requests."""
        with self._lock:
            self.arrivals.clear()
            self.most_at_once = self.num_refused = 0


FaultKind = Literal[
    "status",  # replace the response by ``status`` and ``body``; 200 makes it look like a success
    "truncate",  # end the body before its Content-Length
    "disconnect",  # close the connection without a response
    "drip",  # send the true response slowly: a byte every DRIP_PAUSE_S seconds
    "redirect_loop",  # redirect to the same URL
    "redirect_off_host",  # redirect to OFF_HOST, another host
    "empty",  # send the true response without its body
    "gzip_bomb",  # send BOMB_BYTES zero bytes, compressed
    "wrong_charset",  # send the true body under a wrong Content-Type
    "stall",  # do not respond until the fault is removed, for at most STALL_S seconds
]


@dataclass
class Fault:
    """A fault that applies to the next ``times`` matching requests."""

    kind: FaultKind
    key: str  # key of the site: one of ``Site.keys``
    pattern: str = ""  # regular expression to find in a request's path with query
    times: int = 1  # number of faulty responses
    status: int = 503  # for ``status``
    headers: dict[str, str] = field(default_factory=dict)  # headers to add or replace
    body: bytes = b"simulated fault"  # for ``status``
    retry_date_s: float | None = None  # send Retry-After as the date in this many seconds


def _status(status: int, body: bytes = b"simulated fault", **headers: str) -> Fault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault("status", "", status=status, body=body, headers=named)


KNOBS: dict[str, Fault] = {
    "429 with Retry-After in seconds": _status(429, Retry_After="1"),
    "429 with Retry-After as a date": Fault("status", "", status=429, retry_date_s=0.5),
    "429 without Retry-After": _status(429),
    "503 with Retry-After": _status(503, Retry_After="1"),
    "503 without Retry-After": _status(503),
    "403": _status(403),
    "404": _status(404),
    "an error page as 200": _status(200, b"<html><h1>Service unavailable</h1></html>"),
    "an error object as 200": _status(200, b'{"error": {"code": "internal", "id": 1}}'),
    "an empty body": Fault("empty", ""),
    "a truncated body": Fault("truncate", ""),
    "no answer": Fault("disconnect", ""),
    "a slow drip": Fault("drip", ""),
    "a long silence": Fault("stall", ""),
    "a wrong charset": Fault("wrong_charset", ""),
    "a redirect loop": Fault("redirect_loop", ""),
    "a redirect off the host": Fault("redirect_off_host", ""),
    "a gzip bomb": Fault("gzip_bomb", ""),
}


def knob(name: str, key: str, pattern: str = "", times: int = 1) -> Fault:
    """Return the ready-made fault ``KNOBS[name]`` for the site ``key``; see ``Fault``."""
    fault = KNOBS[name]
    headers = dict(fault.headers)
    return dataclasses.replace(fault, key=key, pattern=pattern, times=times, headers=headers)


@functools.cache
def pack_zeros(size: int) -> bytes:
    """Return a gzip stream that unpacks to ``size`` zero bytes; ``size`` is a multiple of 1 MiB."""
    block = bytes(2**20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    # A full flush resets the compressor, so the compressed block can be repeated.
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(size // len(block)):
        checksum = zlib.crc32(block, checksum)
    head = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x02\xff"  # gzip header (RFC 1952, 2.3)
    body = packed * (size // len(block)) + packer.flush()
    return head + body + struct.pack("<II", checksum, size % 2**32)
