"""Serve simulated sites over real HTTP on loopback, with faults on demand."""

from __future__ import annotations

import importlib
import pkgutil
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Protocol
from urllib.parse import parse_qs, urlsplit

import simulator.sites
from simulator.world import World


@dataclass(frozen=True)
class Request:
    """An HTTP request as a site sees it; ``query`` keeps repeated keys."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]  # lower-case names
    body: bytes
    raw_query: str = ""

    def arg(self, name: str, default: str = "") -> str:
        """The last value of a query parameter."""
        return self.query.get(name, [default])[-1]


@dataclass(frozen=True)
class Response:
    """An HTTP response; Content-Length is added."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Site(Protocol):
    """What a module of ``sites/`` has: a class ``Site``, made with the world.

    Attributes:
        keys: the keys of the ``sites`` setting that this site answers for.
        robots: the text of /robots.txt, or None for a 404.
    """

    keys: tuple[str, ...]
    robots: str | None

    def __init__(self, world: World) -> None: ...

    def respond(self, request: Request) -> Response:
        """Answer a request; /robots.txt is answered by the server."""


FaultKind = Literal[
    "status", "truncate", "drip", "redirect_loop", "redirect_off_host", "empty", "gzip_bomb",
    "wrong_charset",
]  # fmt: skip


@dataclass
class Fault:
    """A fault that the next ``times`` matching requests meet.

    Attributes:
        kind: what goes wrong.
        key: of the site.
        pattern: regular expression on path and query.
        times: how often; then the site is well again.
        status: for ``status``.
        headers: added to the answer, e.g. Retry-After.
    """

    kind: FaultKind
    key: str
    pattern: str = ""
    times: int = 1
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Web:
    """The running simulator.

    Attributes:
        urls: base URL by site key, ready for the ``sites`` setting.
        faults: append to it to break a site.
        requests: (key, method, path with query) of every request so far, in order.
    """

    urls: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_fault(self, key: str, target: str) -> Fault | None:
        """Use up one turn of the first fault that matches."""
        with self._lock:
            for fault in self.faults:
                if fault.times > 0 and fault.key == key and re.search(fault.pattern, target):
                    fault.times -= 1
                    return fault
        return None


@contextmanager
def serve(world: World, host: str = "127.0.0.1") -> Iterator[Web]:
    """Run all sites, each on a port of its own, until the block ends."""
    web, servers = Web(), []
    try:
        for module in pkgutil.iter_modules(simulator.sites.__path__):
            site: Site = importlib.import_module(f"simulator.sites.{module.name}").Site(world)
            server = ThreadingHTTPServer((host, 0), _handler(site, web))
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            servers.append((server, site))
            for key in site.keys:
                web.urls[key] = f"http://{host}:{server.server_port}"
        yield web
    finally:
        for server, site in servers:
            server.shutdown()
            server.server_close()
            if close := getattr(site, "close", None):
                close()


def _handler(site: Site, web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent; ``Web.requests`` is the log."""

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            key = site.keys[0]
            web.requests.append((key, self.command, self.path))
            request = Request(
                method=self.command,
                path=parts.path,
                query=parse_qs(parts.query, keep_blank_values=True),
                headers={k.lower(): v for k, v in self.headers.items()},
                body=body,
                raw_query=parts.query,
            )
            if fault := web.take_fault(key, self.path):
                self._fail(fault, request)
            else:
                self._send(self._response(request))

        def _response(self, request: Request) -> Response:
            if request.path == "/robots.txt":
                if site.robots is None:
                    return Response(404)
                return Response(200, {"Content-Type": "text/plain"}, site.robots.encode())
            return site.respond(request)

        def _send(self, response: Response, pace_s: float = 0.0) -> None:
            self.send_response(response.status)
            headers = {"Content-Length": str(len(response.body)), **response.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                if pace_s:
                    for byte in response.body:
                        self.wfile.write(bytes([byte]))
                        self.wfile.flush()
                        time.sleep(pace_s)
                else:
                    self.wfile.write(response.body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up, as a drip wants it to

        def _fail(self, fault: Fault, request: Request) -> None:
            ok = self._response(request)
            if fault.kind == "status":
                self._send(Response(fault.status, fault.headers, b"simulated fault"))
            elif fault.kind == "truncate":
                headers = {**ok.headers, "Content-Length": str(len(ok.body) + 100)}
                self._send(Response(ok.status, headers, ok.body))
                self.close_connection = True
            elif fault.kind == "drip":
                self._send(ok, pace_s=0.2)
            elif fault.kind == "redirect_loop":
                self._send(Response(302, {"Location": self.path}))
            elif fault.kind == "redirect_off_host":
                self._send(Response(302, {"Location": "http://169.254.169.254/latest"}))
            elif fault.kind == "empty":
                self._send(Response(200, ok.headers, b""))
            elif fault.kind == "gzip_bomb":
                self._send(Response(200, {"Content-Encoding": "gzip"}, _gzip_bomb()))
            elif fault.kind == "wrong_charset":
                self._send(Response(200, {"Content-Type": "text/html; charset=utf-16"}, ok.body))

    return Handler


def _gzip_bomb(size: int = 2**30) -> bytes:
    """A gzip stream of a few hundred kB that unpacks to ``size`` zero bytes."""
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(2**20)
    return b"".join(packer.compress(block) for _ in range(size // len(block))) + packer.flush()
