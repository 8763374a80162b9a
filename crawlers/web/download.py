"""Transfer of a large file: its bytes are passed on as they come, and a cut transfer is resumed."""

from __future__ import annotations

import re
from collections.abc import Callable

import requests

from core.errors import ItemFailed, SourceChanged
from crawlers.web.connections import note_progress, read_wire, too_large

# A transfer that brings less in WALL_CLOCK_S seconds is ended: 3.5 kB/s.
PROGRESS_BYTES = 2**20
# A transfer that brought more before a cut has all tries again. Servers cut long connections.
LONG_BYTES = 2**26
_CONTENT_RANGE = re.compile(
    r"bytes (?:(?P<first>[0-9]{1,18})-[0-9]{1,18}|\*)/(?P<size>[0-9]{1,18}|\*)"
)


class Download:
    """A file in transfer; ``sink`` receives its bytes in order, each byte once.

    After a cut, the next request asks for the rest (RFC 9110, 14.2). If the site sends the whole
    file instead, its known part is skipped.
    """

    def __init__(self, sink: Callable[[bytes], None], max_bytes: int) -> None:
        self._sink = sink
        self._max_bytes = max_bytes
        self._num_bytes = 0  # bytes that ``sink`` has received
        self._num_noted = 0
        self._version: tuple[object, ...] = (None, None, None)  # what is known of the file

    @property
    def headers(self) -> dict[str, str]:
        """Return the request headers; the offsets of a range count uncompressed bytes."""
        plain = {"Accept-Encoding": "identity"}
        return {**plain, "Range": f"bytes={self._num_bytes}-"} if self._num_bytes else plain

    def was_long(self) -> bool:
        """Return True if over LONG_BYTES have come since the last call that returned True."""
        is_long = self._num_bytes - self._num_noted > LONG_BYTES
        if is_long:
            self._num_noted = self._num_bytes
        return is_long

    def receive(self, response: requests.Response, url: str) -> bool:
        """Pass on the body of a response; return False if the response has none of the file.

        Raise ItemFailed if the file was changed during the transfer. Raise ItemUnavailable if it is
        too large. Raise SourceChanged if the response is compressed, or is another part of it.
        """
        if response.status_code not in {200, 206, 416}:
            return False
        start, total = self._range_of(response, url)
        if response.status_code == 416:  # there is nothing after the last byte
            return total == self._num_bytes
        if (total or 0) > self._max_bytes:
            raise too_large(url, self._max_bytes)
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if start > self._num_bytes or coding != "identity":
            raise SourceChanged(
                f"{url}: expected uncompressed bytes from {self._num_bytes} on, got bytes from "
                f"{start} on, with Content-Encoding {coding}"
            )
        version = (response.headers.get("ETag"), response.headers.get("Last-Modified"), total)
        pairs = zip(self._version, version, strict=True)
        if any(old and new and old != new for old, new in pairs):
            raise ItemFailed(
                "damaged_answer",
                f"{url} was changed during its transfer; run the same command again",
            )
        self._version = version
        self._pass_on(response, url, to_skip=self._num_bytes - start)
        return True

    def _pass_on(self, response: requests.Response, url: str, to_skip: int) -> None:
        """Pass on the body without its first ``to_skip`` bytes; raise if the file is too large."""
        num_new = 0
        for chunk in read_wire(response.raw):
            num_new += len(chunk)
            if num_new >= PROGRESS_BYTES:
                num_new = 0
                note_progress()
            news = chunk[to_skip:]
            to_skip = max(0, to_skip - len(chunk))
            self._num_bytes += len(news)
            if self._num_bytes > self._max_bytes:
                raise too_large(url, self._max_bytes)
            self._sink(news)

    def _range_of(self, response: requests.Response, url: str) -> tuple[int, int | None]:
        """Return the first byte of a response, and the size of the whole file if it is known."""
        if response.status_code == 200:
            return 0, response.raw.length_remaining
        value = response.headers.get("Content-Range", "")
        found = _CONTENT_RANGE.fullmatch(value.strip())
        if found is None:
            raise SourceChanged(f"{url}: expected a Content-Range of bytes, got {value[:100]!r}")
        return int(found["first"] or 0), None if found["size"] == "*" else int(found["size"])
