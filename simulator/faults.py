"""The faults that every simulated site can have, whatever it serves."""

from __future__ import annotations

import dataclasses
import functools
import struct
import zlib
from dataclasses import dataclass, field
from typing import Literal

FaultKind = Literal[
    "status", "truncate", "disconnect", "drip", "redirect_loop", "redirect_off_host", "empty",
    "gzip_bomb", "wrong_charset", "stall",
]  # fmt: skip


@dataclass
class Fault:
    """A fault that the next ``times`` matching requests meet.

    Attributes:
        kind: what goes wrong:

            - status: ``status`` and ``body`` in place of the answer; status 200 makes an error
              that only its body tells, or a page that is valid and empty;
            - truncate: the body ends before its Content-Length;
            - disconnect: the connection is closed without an answer;
            - drip: the true answer, a byte every DRIP_PAUSE_S seconds;
            - redirect_loop: a redirect to the same address;
            - redirect_off_host: a redirect to OFF_HOST;
            - empty: the true answer without its body;
            - gzip_bomb: BOMB_BYTES of nothing, packed;
            - wrong_charset: the true body under a Content-Type that lies;
            - stall: the true answer, but not before the fault is taken off ``Web.faults``, or
              STALL_S seconds have passed.
        key: any of the site's.
        pattern: regular expression on path and query; ``^/robots.txt`` breaks that too.
        times: how often; then the site is well again.
        status: for ``status``.
        headers: added to the answer (Retry-After), or in place of its own (Location).
        body: for ``status``.
        retry_date_s: adds a Retry-After that is a date, so many seconds after the answer.
    """

    kind: FaultKind
    key: str
    pattern: str = ""
    times: int = 1
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"simulated fault"
    retry_date_s: float | None = None


def _status(status: int, body: bytes = b"simulated fault", **headers: str) -> Fault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault("status", "", status=status, body=body, headers=named)


# What may go wrong with any site, by name; ``knob`` makes one of these a fault of a site.
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
    """Return the fault of that name for a site.

    Args:
        name: one of KNOBS.
        key: any of the site's.
        pattern: regular expression on path and query.
        times: how often.
    """
    fault = KNOBS[name]
    headers = dict(fault.headers)
    return dataclasses.replace(fault, key=key, pattern=pattern, times=times, headers=headers)


@functools.cache
def pack_zeros(size: int) -> bytes:
    """Return a gzip stream that unpacks to ``size`` zero bytes, a multiple of a MiB."""
    block = bytes(2**20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    # After a full flush the packer starts afresh: one packed block stands for all.
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(size // len(block)):
        checksum = zlib.crc32(block, checksum)
    head = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x02\xff"  # RFC 1952, 2.3
    body = packed * (size // len(block)) + packer.flush()
    return head + body + struct.pack("<II", checksum, size % 2**32)
