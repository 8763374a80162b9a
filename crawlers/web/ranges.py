"""Requests for a part of a large file, by its first and last byte (RFC 9110, 14)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import requests

from core.errors import UsageError
from crawlers.web.connections import read_body
from crawlers.web.pacing import TryAgain
from crawlers.web.raw_cache import Fetched

_CONTENT_RANGE = re.compile(
    r"bytes (?P<first>[0-9]{1,18})-(?P<last>[0-9]{1,18})/(?P<size>[0-9]{1,18}|\*)"
)


@dataclass(frozen=True)
class ByteRange:
    """Bytes ``first`` to ``last`` of a file, both included; UsageError if there are none."""

    first: int
    last: int

    def __post_init__(self) -> None:
        """Check the order of the bytes."""
        if not 0 <= self.first <= self.last:
            raise UsageError(f"bytes {self.first} to {self.last} are no part of a file")

    @property
    def headers(self) -> dict[str, str]:
        """Return the request headers; the offsets of a range count bytes as they are stored."""
        return {"Accept-Encoding": "identity", "Range": f"bytes={self.first}-{self.last}"}

    def receive(self, response: requests.Response, url: str) -> bytes:
        """Return the body of a response of status 200 or 206; its size is limited by the range.

        Raise TryAgain if the response is not this part: the whole file (which is not read), another
        part, a packed part, or one of another length than it states. A part that ends before
        ``last`` is right if the file ends there.
        """
        stated = response.headers.get("Content-Range", "")
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        found = _CONTENT_RANGE.fullmatch(stated.strip())
        if response.status_code != 206 or found is None or coding != "identity":
            raise self._refusal(
                url, f"status {response.status_code}, {stated[:100]!r}, packed as {coding[:20]!r}"
            )
        last = self.last if found["size"] == "*" else min(self.last, int(found["size"]) - 1)
        if (int(found["first"]), int(found["last"])) != (self.first, last):
            raise self._refusal(url, repr(stated[:100]))
        size = last - self.first + 1
        body = read_body(response, url, size + 1, is_cut=True)  # a packed file stays as it is
        if len(body) != size:
            raise self._refusal(url, f"other than {size} bytes under {stated[:100]!r}")
        return body

    def _refusal(self, url: str, got: str) -> TryAgain:
        asked = f"bytes {self.first}-{self.last}"
        return TryAgain(f"{url}: asked for {asked}, got {got}", None, "damaged_answer")


def size_of_file(part: Fetched) -> int | None:
    """Return the size in bytes of the file of which a response is a part; None if not stated."""
    found = _CONTENT_RANGE.fullmatch(part.headers.get("content-range", "").strip())
    return None if found is None or found["size"] == "*" else int(found["size"])
