"""Serve simulated sites over real HTTP on loopback, with faults on demand."""

from __future__ import annotations

import contextlib
import datetime as dt
import email.utils
import importlib
import math
import pkgutil
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal, Protocol, cast
from urllib.parse import parse_qs, urlsplit

import simulator.sites
from simulator.faults import Fault, FaultKind, pack_zeros
from simulator.traffic import Traffic
from simulator.world import World

__all__ = [
    "Fault", "FaultKind", "QuirkName", "Request", "Response", "Site", "Web", "running", "serve",
    "serve_sites", "take_quirk",
]  # fmt: skip

DRIP_PAUSE_S = 0.2  # between two bytes
STALL_S = 60.0
OFF_HOST = "http://169.254.169.254/latest"  # where clouds keep their machines' secrets
BOMB_BYTES = 2**28  # unpacked; a few hundred kB on the wire


@dataclass(frozen=True)
class Request:
    """An HTTP request as a site sees it.

    Attributes:
        method: GET, HEAD or POST; the server leaves the body out of the answer to HEAD.
        path: as sent, percent-encoded.
        query: decoded; keeps repeated keys.
        headers: lower-case names.
        body: without its transfer coding; a Content-Encoding is left to the site.
        raw_query: as sent.
    """

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    raw_query: str = ""

    def arg(self, name: str, default: str = "") -> str:
        """The last value of a query parameter."""
        return self.query.get(name, [default])[-1]


@dataclass(frozen=True)
class Response:
    """An HTTP response.

    Content-Length is added, except to a body that is chunked already (``Transfer-Encoding``).
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


QuirkName = Literal[
    "error_as_200", "empty_page", "moving_items", "extra_fields", "missing_fields",
    "hostile_archive",
]  # fmt: skip


class Site(Protocol):
    """What a module of ``sites/`` has: a class ``Site``, made with the world.

    A site that holds something (a folder, a process) has a method ``close`` too; one that counts
    its visitors over time, a method ``new_day`` with which it begins anew. Three attributes may be
    left out: ``start``, the path of the page that a person begins with (``/``),
    ``min_interval_s``, the distance between two requests that the true site asks for (0), and
    ``token``, which it wants to see.

    Attributes:
        keys: the keys of the ``sites`` setting that this site answers for.
        robots: the text of /robots.txt, or None for a 404.
        quirks: what the site does in its own protocol, and how many answers more (those of them
            that the site has; it counts them down):

            - error_as_200: an error of its API under status 200;
            - empty_page: a page of a list that is valid, and empty, where items follow;
            - moving_items: an item is on a page of the list and on the next one;
            - extra_fields: fields that nobody documented;
            - missing_fields: optional fields are left out;
            - hostile_archive: names that lead out of the archive, links, too many members.
    """

    keys: tuple[str, ...]
    robots: str | None
    quirks: dict[QuirkName, int]

    def respond(self, request: Request) -> Response:
        """Answer a request; /robots.txt is answered by the server."""


def take_quirk(site: Site, name: QuirkName) -> bool:
    """Use up one turn of a site's quirk, and return whether it had one left."""
    if (left := site.quirks.get(name, 0)) <= 0:
        return False
    site.quirks[name] = left - 1
    return True


@dataclass
class Web:
    """The running simulator.

    Attributes:
        urls: base URL by site key, ready for the ``sites`` setting.
        faults: append to it to break a site.
        requests: (first key of the site, method, path with query) of every request so far.
        sites: by any of their keys.
        traffic: what each site counts of its requests, by any of its keys.
        limits: seconds between two requests, by any key: a site answers 429 to a request that comes
            sooner. Empty, as tests do not wait.
    """

    urls: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    sites: dict[str, Site] = field(default_factory=dict)
    traffic: dict[str, Traffic] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_fault(self, keys: tuple[str, ...], target: str) -> Fault | None:
        """Use up one turn of the first fault that matches."""
        with self._lock:
            for fault in self.faults:
                if fault.times > 0 and fault.key in keys and re.search(fault.pattern, target):
                    fault.times -= 1
                    return fault
        return None

    def add(self, site: Site, url: str, traffic: Traffic) -> None:
        """Note a site that is running."""
        self.urls.update(dict.fromkeys(site.keys, url))
        self.sites.update(dict.fromkeys(site.keys, site))
        self.traffic.update(dict.fromkeys(site.keys, traffic))

    def new_day(self) -> None:
        """Let sites that count their visitors over time begin anew."""
        for site in {id(site): site for site in self.sites.values()}.values():
            if begin := getattr(site, "new_day", None):
                begin()

    def limit_of(self, keys: tuple[str, ...]) -> float:
        """Return the seconds that a site wants between two requests; 0 where it does not mind."""
        return max((self.limits.get(key, 0.0) for key in keys), default=0.0)


@contextmanager
def serve(world: World, host: str = "127.0.0.1") -> Iterator[Web]:
    """Run all sites of ``simulator/sites``, each on a port of its own, until the block ends."""
    names = (module.name for module in pkgutil.iter_modules(simulator.sites.__path__))
    modules = (importlib.import_module(f"simulator.sites.{name}") for name in names)
    with serve_sites((module.Site(world) for module in modules), host) as web:
        yield web


@contextmanager
def serve_sites(sites: Iterable[Site], host: str = "127.0.0.1") -> Iterator[Web]:
    """Run the given sites, each on a port of its own, until the block ends; then close them."""
    web = Web()
    with contextlib.ExitStack() as stack:
        for site in sites:
            if close := getattr(site, "close", None):
                stack.callback(close)
            stack.enter_context(running(site, web, host))
        yield web


@contextmanager
def running(site: Site, web: Web, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Run one site more until the block ends; port 0 is any that is free.

    Yields:
        Its base URL.

    Raises:
        OSError: the port is taken.
    """
    traffic = Traffic()
    names = {"site": site, "web": web, "traffic": traffic}
    handler = cast(type[_Handler], type("_Handler", (_Handler,), names))
    with _Server((host, port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        url = f"http://{host}:{server.server_port}"
        web.add(site, url, traffic)
        try:
            yield url
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report a site's own errors; a client that hangs up is none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection; ``site`` and the like are bound by ``running``."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body leave at once, so an answer takes no 40 ms
    site: ClassVar[Site]
    web: ClassVar[Web]
    traffic: ClassVar[Traffic]
    _is_open = False

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent; ``Web.requests`` is the log."""

    def _answer(self) -> None:
        self.web.requests.append((self.site.keys[0], self.command, self.path))
        gap_s = self.traffic.arrive(is_continuation=self.command == "POST")
        self._is_open = True
        try:
            self._answer_after(gap_s)
        finally:
            self._leave()

    def _leave(self) -> None:
        """The client may send its next request as soon as it has the last byte of an answer."""
        if self._is_open:
            self._is_open = False
            self.traffic.leave()

    def _answer_after(self, gap_s: float) -> None:
        try:
            request = self._read_request()
        except ValueError as error:
            self.close_connection = True  # where the next request begins is not known
            self._send(Response(400, body=str(error).encode()))
            return
        limit_s = self.web.limit_of(self.site.keys)
        fault = self.web.take_fault(self.site.keys, self.path)
        if gap_s < limit_s:
            self.traffic.refuse()
            self._send(Response(429, {"Retry-After": str(math.ceil(limit_s))}, b"too many"))
        elif fault is None:
            self._send(self._respond(request))
        else:
            _FAULTS[fault.kind](self, fault, request)

    def _read_request(self) -> Request:
        parts = urlsplit(self.path)
        return Request(
            method=self.command,
            path=parts.path,
            query=parse_qs(parts.query, keep_blank_values=True),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self._read_body(),
            raw_query=parts.query,
        )

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._read_chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _read_chunks(self) -> Iterator[bytes]:
        """Yield the chunks of a body of unknown length (RFC 9112, 7.1); git sends such."""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers

    def _respond(self, request: Request) -> Response:
        if request.path != "/robots.txt":
            return self.site.respond(request)
        if self.site.robots is None:
            return Response(404)
        return Response(200, {"Content-Type": "text/plain"}, self.site.robots.encode())

    def _send(self, response: Response, pause_s: float = 0.0) -> None:
        headers = {"Content-Length": str(len(response.body)), **response.headers}
        if "Transfer-Encoding" in headers:
            del headers["Content-Length"]
        body = b"" if self.command == "HEAD" else response.body
        pieces = [body] if not pause_s else [bytes([byte]) for byte in body]
        try:
            self.send_response(response.status)
            for name, value in headers.items():
                self.send_header(name, value)
            if not body:
                self._leave()
            self.end_headers()
            for number, piece in enumerate(pieces, start=1):
                if number == len(pieces):
                    self._leave()
                self.wfile.write(piece)
                time.sleep(pause_s)
        except ConnectionError:
            self.close_connection = True  # the client gave up, as a drip wants it to

    def _status(self, fault: Fault, request: Request) -> None:
        headers = dict(fault.headers)
        if fault.retry_date_s is not None:  # in whole seconds, so rounded up
            again_at = math.ceil(time.time() + fault.retry_date_s)
            moment = dt.datetime.fromtimestamp(again_at, dt.UTC)
            headers["Retry-After"] = email.utils.format_datetime(moment, usegmt=True)
        self._send(Response(fault.status, headers, fault.body))

    def _truncate(self, fault: Fault, request: Request) -> None:
        whole = self._respond(request)
        headers = {**whole.headers, "Content-Length": str(len(whole.body) + 100), **fault.headers}
        self.close_connection = True
        self._send(Response(whole.status, headers, whole.body))

    def _disconnect(self, fault: Fault, request: Request) -> None:
        self.close_connection = True

    def _drip(self, fault: Fault, request: Request) -> None:
        whole = self._respond(request)
        headers = {**whole.headers, **fault.headers}
        self._send(Response(whole.status, headers, whole.body), DRIP_PAUSE_S)

    def _redirect_loop(self, fault: Fault, request: Request) -> None:
        self._send(Response(302, {"Location": self.path, **fault.headers}))

    def _redirect_off_host(self, fault: Fault, request: Request) -> None:
        self._send(Response(302, {"Location": OFF_HOST, **fault.headers}))

    def _empty(self, fault: Fault, request: Request) -> None:
        whole = self._respond(request)
        self._send(Response(whole.status, {**whole.headers, **fault.headers}))

    def _gzip_bomb(self, fault: Fault, request: Request) -> None:
        headers = {"Content-Encoding": "gzip", **fault.headers}
        self._send(Response(200, headers, pack_zeros(BOMB_BYTES)))

    def _wrong_charset(self, fault: Fault, request: Request) -> None:
        whole = self._respond(request)
        headers = {**whole.headers, "Content-Type": "text/html; charset=utf-16", **fault.headers}
        self._send(Response(whole.status, headers, whole.body))

    def _stall(self, fault: Fault, request: Request) -> None:
        until = time.monotonic() + STALL_S
        while any(fault is each for each in self.web.faults) and time.monotonic() < until:
            time.sleep(0.01)
        self._send(self._respond(request))


_FAULTS: dict[FaultKind, Callable[[_Handler, Fault, Request], None]] = {
    "status": _Handler._status,
    "truncate": _Handler._truncate,
    "disconnect": _Handler._disconnect,
    "drip": _Handler._drip,
    "redirect_loop": _Handler._redirect_loop,
    "redirect_off_host": _Handler._redirect_off_host,
    "empty": _Handler._empty,
    "gzip_bomb": _Handler._gzip_bomb,
    "wrong_charset": _Handler._wrong_charset,
    "stall": _Handler._stall,
}
