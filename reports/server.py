"""The report server: the page, what lies beside it, and the published snapshot; nothing is written.

Every answer is of one file that is opened once: a publication in the middle of a download changes
the name's file, never the one that is being sent. On an object store, whose files cannot be held
open, the download breaks off then; who resumes it gets the new one from its start (``If-Range``).
"""

from __future__ import annotations

import logging
import re

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from core.errors import StorageError
from core.settings import Settings
from core.storage import Store
from reports.downloads import Download
from reports.page import PAGE
from warehouse.publish import SNAPSHOT

_FOLDER = PAGE.rpartition("/")[0]
# Neither hidden files (a page that is being written), nor empty parts, nor what climbs.
_PATH = re.compile(r"[\w@+=-][\w.@+= -]*(?:/[\w@+=-][\w.@+= -]*)*", re.ASCII)
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_LOG = logging.getLogger(__name__)
# What the page needs and no more: it has neither scripts nor anything from elsewhere.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",  # may be kept, if it is asked for again with its ETag
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def run_server(settings: Settings, host: str, port: int) -> None:
    """Serve the data root's report until the process is told to end.

    Raises:
        SystemExit: the port cannot be had.
    """
    uvicorn.run(
        report_server(Store(settings.home)),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        # A proxy's word on who asks is not needed: nothing depends on it.
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )


def report_server(store: Store) -> _WithHeaders:
    """Make the application that serves a data root's report."""
    files = _Files(store)
    return _WithHeaders(
        Starlette(
            routes=[
                Route("/live", _live),
                Route("/health", files.health),
                Route(f"/{SNAPSHOT}", files.snapshot),
                Route("/{path:path}", files.report),
            ]
        )
    )


class _WithHeaders:
    """Adds what every answer carries, errors included."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await self._app(scope, receive, send_with_headers)


async def _live(request: Request) -> Response:
    """Say that the process answers, whether there is a report or not yet."""
    return PlainTextResponse("alive\n")


class _Files:
    """Answers with files of one data root."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def health(self, request: Request) -> Response:
        """Answer 200 if the page can be opened, 503 if it cannot, or is not there yet."""
        try:
            (await run_in_threadpool(self._open, PAGE)).file.close()
        except StorageError as error:
            _LOG.error("%s", error)
            return PlainTextResponse("the report cannot be read\n", 503)
        return PlainTextResponse("ok\n")

    async def snapshot(self, request: Request) -> Response:
        """Answer with the published snapshot."""
        return await self._answer(request, SNAPSHOT)

    async def report(self, request: Request) -> Response:
        """Answer with the page, or with a file beside it."""
        path = request.path_params["path"] or "index.html"
        if not _PATH.fullmatch(path):
            return PlainTextResponse("not found\n", 404)
        return await self._answer(request, f"{_FOLDER}/{path}")

    async def _answer(self, request: Request, path: str) -> Response:
        try:
            download = await run_in_threadpool(self._open, path)
        except StorageError as error:
            if isinstance(error.__cause__, _ABSENT):
                return PlainTextResponse("not found\n", 404)
            _LOG.error("%s", error)  # it names the data root, which is not everybody's business
            return PlainTextResponse("cannot be read now\n", 503)
        return download.answer(request)

    def _open(self, path: str) -> Download:
        return Download.of(self._store.open(path), path)
