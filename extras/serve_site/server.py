"""HTTP server of the report and the published snapshot, with range requests and ETags (RFC 9110).

Each response opens one file once. If a snapshot is published during a download, the download
continues with the old file, which is still open. In an object store, the download fails instead. A
download that is resumed later starts again with the new file (``If-Range``).
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import logging
import mimetypes
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import StorageError
from core.settings import Settings
from core.storage.store import Store
from extras.serve_site.limits import LimitedProtocol, SparseLog
from reports.site.build import INDEX
from warehouse.database.schema import SNAPSHOT

_FOLDER = INDEX.rpartition("/")[0]
# Accepted paths: without hidden files (such as partly written pages), empty segments or "..".
_PATH = re.compile(r"[\w@+=-][\w.@+= -]*(?:/[\w@+=-][\w.@+= -]*)*", re.ASCII)
_OF_RELEASE = re.compile(r"\d{4}-\d{2}/\w[\w.-]{0,99}", re.ASCII)
_MAX_PATH = 255  # characters; a longer name cannot be a file
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_LOG = logging.getLogger(__name__)
# The Content-Security-Policy allows the site's own scripts, inline styles, and images.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; "
    "script-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-cache",  # a cache must revalidate with the ETag
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def run_server(settings: Settings, host: str, port: int, names: Sequence[str] = ()) -> None:
    """Serve the report of a data root until the process is stopped; exit if the port is in use.

    Args:
        settings: settings with the data root, and the report's address.
        host: address to listen on.
        port: port to listen on.
        names: host names of the server, beside those of this machine's loopback interface.
    """
    own = {host, *names, urlsplit(settings.report_url or "").hostname or ""}
    for logger in (_LOG, logging.getLogger("uvicorn.error")):
        logger.addFilter(SparseLog())
    uvicorn.run(
        report_server(Store(settings.home), sorted(own - {"", "0.0.0.0", "::"})),  # noqa: S104
        http=LimitedProtocol,
        ws="none",
        host=host,
        port=port,
        log_level="error",  # uvicorn warns of each malformed request
        server_header=False,
        # proxy_headers would replace the client's address, which the server does not use.
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )


def report_server(store: Store, names: Sequence[str] = ()) -> ASGIApp:
    """Return the ASGI application that serves a data root's report.

    It refuses requests with a header ``Host`` other than ``names`` and the loopback names. A page
    of another site could otherwise read the report, by a name that resolves to this machine.
    """
    files = _Files(store)
    routes = [
        Route("/live", _live),
        Route("/health", files.health),
        Route(f"/{SNAPSHOT}", files.snapshot),
        Route("/releases/{path:path}", files.release),
        Route("/{path:path}", files.report),
    ]
    app = TrustedHostMiddleware(
        Starlette(routes=routes), [*_LOOPBACK, *names, *(f"[{name}]" for name in names)], False
    )
    return _with_headers(app)


def _with_headers(app: ASGIApp) -> ASGIApp:
    """Add HEADERS to every response, including error responses."""
    added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *added]
            await send(message)

        # The client may break the protocol, such as in its request's body, before the response.
        with contextlib.suppress(h11.LocalProtocolError):
            await app(scope, receive, send_with_headers)

    return wrapped


async def _live(request: Request) -> Response:
    """Respond with status 200 while the process is alive, even without a report."""
    return PlainTextResponse("alive\n")


class _Files:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def health(self, request: Request) -> Response:
        """Answer 200 if the report can be read, else 503."""
        if await run_in_threadpool(self._leads_out, INDEX):
            return PlainTextResponse("the report cannot be read\n", 503)
        try:
            (await run_in_threadpool(self._open, INDEX)).file.close()
        except StorageError as error:
            _LOG.error("%s", error)
            return PlainTextResponse("the report cannot be read\n", 503)
        return PlainTextResponse("ok\n")

    async def snapshot(self, request: Request) -> Response:
        return await self._respond(request, SNAPSHOT)

    async def release(self, request: Request) -> Response:
        path = request.path_params["path"]
        if not _OF_RELEASE.fullmatch(path):
            return PlainTextResponse("not found\n", 404)
        return await self._respond(request, f"releases/{path}")

    async def report(self, request: Request) -> Response:
        path = request.path_params["path"] or "index.html"
        if len(path) > _MAX_PATH or not _PATH.fullmatch(path):
            return PlainTextResponse("not found\n", 404)
        return await self._respond(request, f"{_FOLDER}/{path}")

    def _leads_out(self, path: str) -> bool:
        """Return True for a link out of the folder that is served, a named pipe and the like.

        The folder itself, such as ``releases``, may be a link to another disk.
        """
        *folders, name = path.split("/", 1)  # the snapshot is in no folder
        root = self._store.url("/".join(folders))
        if "://" in root:
            return False
        try:
            file = Path(root, name).resolve()
        except (OSError, RuntimeError):  # a link to itself
            return True
        return not file.is_relative_to(Path(root).resolve()) or (
            file.exists() and not file.is_file()
        )

    async def _respond(self, request: Request, path: str) -> Response:
        """Answer with a file of the site; 404 if it is absent or outside, 503 if unreadable."""
        if await run_in_threadpool(self._leads_out, path):
            return PlainTextResponse("not found\n", 404)
        try:
            download = await run_in_threadpool(self._open, path)
        except StorageError as error:
            if isinstance(error.__cause__, _ABSENT):
                return PlainTextResponse("not found\n", 404)
            _LOG.error("%s", error)  # not in the response, since it names the data root
            return PlainTextResponse("cannot be read now\n", 503)
        return download.respond(request)

    def _open(self, path: str) -> Download:
        return Download.of(self._store.open(path), path)


_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))", re.ASCII)
_BLOCK = 2**20


@dataclass(frozen=True)
class Download:
    """An open file to send, with its size and version."""

    file: IO[bytes]  # a seekable file, which stays the same if a new snapshot is published
    name: str  # file name, which determines the media type
    size: int  # bytes
    etag: str  # a strong entity tag, in quotes
    modified: str  # Last-Modified as an HTTP date; empty if unknown

    @classmethod
    def of(cls, file: IO[bytes], name: str) -> Download:
        """Create a Download of an open file, which may be local or from fsspec."""
        try:
            found = os.fstat(file.fileno())
        except OSError:  # not a local file; object stores return the opened version or fail
            details: Mapping[str, object] = file.details  # type: ignore[attr-defined]
            file.cache.blocksize = _BLOCK  # type: ignore[attr-defined] # default: 50 MiB
            size = int(str(details["size"]))
            version = details.get("ETag") or dict(details)
            modified = ""
        else:
            size = found.st_size
            version = (found.st_dev, found.st_ino, found.st_mtime_ns, size)
            modified = email.utils.formatdate(found.st_mtime, usegmt=True)
        etag = '"' + hashlib.sha256(str(version).encode()).hexdigest()[:32] + '"'
        return cls(file, name, size, etag, modified)

    def respond(self, request: Request) -> Response:
        """Return the response to GET or HEAD, which closes the file at the end."""
        headers = {"ETag": self.etag, "Accept-Ranges": "bytes"}
        if self.modified:
            headers["Last-Modified"] = self.modified
        if _matches(request.headers.get("if-none-match", ""), self.etag):
            return self._without_body(304, headers)
        status = 200
        start = 0
        end = self.size
        asked = self._range(request)
        if asked is not None:
            status = 206
            (start, end) = asked
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{self.size}"
            if start >= end:
                headers["Content-Range"] = f"bytes */{self.size}"
                return self._without_body(416, headers)
        headers["Content-Length"] = str(end - start)
        kind = mimetypes.guess_type(self.name)[0] or "application/octet-stream"
        if request.method == "HEAD":
            return self._without_body(status, headers, kind)
        response = _Sending(self._blocks(start, end), status, headers, kind)
        response.file = self.file
        return response

    def _without_body(
        self, status: int, headers: dict[str, str], kind: str | None = None
    ) -> Response:
        self.file.close()
        return Response(None, status, headers, kind)

    def _range(self, request: Request) -> tuple[int, int] | None:
        """Return the requested range [first byte, end); None means to send the whole file."""
        asked = _RANGE.fullmatch(request.headers.get("range", ""))
        # If the client has a part of another version, send the whole file.
        is_other = request.headers.get("if-range", self.etag) != self.etag
        if asked is None or is_other or request.method != "GET":
            return None
        first, last, suffix = asked.groups()
        if suffix is not None:
            return max(0, self.size - int(suffix)), self.size
        return int(first), min(int(last) + 1 if last else self.size, self.size)

    async def _blocks(self, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes of a span of the file, block by block."""
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
    file: IO[bytes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.file:
            await super().__call__(scope, receive, send)
