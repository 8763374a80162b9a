"""One open file as an answer of HTTP: conditional requests and ranges (RFC 9110), in blocks."""

from __future__ import annotations

import email.utils
import hashlib
import mimetypes
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import IO

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))", re.ASCII)
_BLOCK = 2**20


@dataclass(frozen=True)
class Download:
    """A file that is open, and what tells its content from any other's.

    Args:
        file: seekable; it goes on giving the same content, whatever takes its name.
        name: of the file, for its media type.
        size: bytes.
        etag: a strong entity tag, in quotes.
        modified: when it was written, as HTTP writes dates; empty where that is not known.
    """

    file: IO[bytes]
    name: str
    size: int
    etag: str
    modified: str

    @classmethod
    def of(cls, file: IO[bytes], name: str) -> Download:
        """Ask an open file, local or of fsspec's, for its size and version."""
        try:
            found = os.fstat(file.fileno())
        except OSError:  # of an object store: reads are of the version that was opened, or fail
            details: Mapping[str, object] = file.details  # type: ignore[attr-defined]
            file.cache.blocksize = _BLOCK  # type: ignore[attr-defined] # else 50 MiB a request
            size, version = int(str(details["size"])), details.get("ETag") or dict(details)
            modified = ""
        else:
            size = found.st_size
            version = (found.st_dev, found.st_ino, found.st_mtime_ns, size)
            modified = email.utils.formatdate(found.st_mtime, usegmt=True)
        etag = '"' + hashlib.sha256(str(version).encode()).hexdigest()[:32] + '"'
        return cls(file, name, size, etag, modified)

    def answer(self, request: Request) -> Response:
        """Make the answer to a GET or HEAD; it closes the file when it has been sent."""
        headers = {"ETag": self.etag, "Accept-Ranges": "bytes"}
        if self.modified:
            headers["Last-Modified"] = self.modified
        if _matches(request.headers.get("if-none-match", ""), self.etag):
            return self._without_body(304, headers)
        status, start, end = 200, 0, self.size
        asked = self._range(request)
        if asked is not None:
            status, (start, end) = 206, asked
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{self.size}"
            if start >= end:
                headers["Content-Range"] = f"bytes */{self.size}"
                return self._without_body(416, headers)
        headers["Content-Length"] = str(end - start)
        kind = mimetypes.guess_type(self.name)[0] or "application/octet-stream"
        if request.method == "HEAD":
            return self._without_body(status, headers, kind)
        return _Sending(self.file, self._blocks(start, end), status, headers, kind)

    def _without_body(
        self, status: int, headers: dict[str, str], kind: str | None = None
    ) -> Response:
        self.file.close()
        return Response(None, status, headers, kind)

    def _range(self, request: Request) -> tuple[int, int] | None:
        """The half-open range that is asked for; None for all, also where several are."""
        asked = _RANGE.fullmatch(request.headers.get("range", ""))
        # Part of the former file, continued with this one, would be neither.
        is_other = request.headers.get("if-range", self.etag) != self.etag
        if asked is None or is_other or request.method != "GET":
            return None
        first, last, suffix = asked.groups()
        if suffix is not None:
            return max(0, self.size - int(suffix)), self.size
        return int(first), min(int(last) + 1 if last else self.size, self.size)

    async def _blocks(self, start: int, end: int) -> AsyncIterator[bytes]:
        await run_in_threadpool(self.file.seek, start)
        while start < end:
            block = await run_in_threadpool(self.file.read, min(_BLOCK, end - start))
            if not block:
                raise OSError(f"{self.name} ends {end - start} bytes early")
            start += len(block)
            yield block


def _matches(tags: str, etag: str) -> bool:
    return etag in {tag.strip().removeprefix("W/") for tag in tags.split(",")} or tags == "*"


class _Sending(StreamingResponse):
    """The file's blocks; it is closed when they are sent, or when nobody waits for them."""

    def __init__(
        self,
        file: IO[bytes],
        blocks: AsyncIterator[bytes],
        status: int,
        headers: dict[str, str],
        kind: str,
    ) -> None:
        super().__init__(blocks, status, headers, kind)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)
