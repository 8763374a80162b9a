"""HTTP server of the simulated sites on loopback, with faults on demand."""

from __future__ import annotations

import contextlib
import datetime as dt
import email.utils
import importlib
import json
import math
import pkgutil
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar, Literal, Protocol, cast
from urllib.parse import parse_qs, urlsplit

import simulator.sites
from core.corpus import simulated
from core.plugins import import_parts
from simulator.faults import Fault, FaultKind, Traffic, pack_zeros
from simulator.listener import SiteListener
from simulator.world import World

__all__ = [
    "Fault", "FaultKind", "QuirkName", "Request", "Response", "Site", "Web", "WorldSite",
    "as_html", "as_json", "as_utc", "ranged", "running", "serve", "serve_sites", "site_kinds",
    "take_quirk",
]  # fmt: skip

DRIP_PAUSE_S = 0.2  # pause in seconds between two bytes of a "drip" response
STALL_S = 60.0
OFF_HOST = "http://169.254.169.254/latest"  # a cloud's metadata service; crawlers must not call it
BOMB_BYTES = 2**28  # size in bytes after decompression; a few hundred kB compressed


@dataclass(frozen=True)
class Request:
    """An HTTP request as a site receives it."""

    method: str  # GET, HEAD or POST; for HEAD, the server drops the response's body
    path: str  # percent-encoded path, as sent
    query: dict[str, list[str]]  # decoded parameters: all values by name
    headers: dict[str, str]  # lower-case names
    body: bytes  # body after removal of the transfer coding; may be compressed
    raw_query: str = ""  # query string as sent

    def arg(self, name: str, default: str = "") -> str:
        """Return the last value of a query parameter."""
        return self.query.get(name, [default])[-1]


@dataclass(frozen=True)
class Response:
    """An HTTP response; the server adds Content-Length, unless the body is already chunked."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def as_json(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response."""
    content_type = {"Content-Type": "application/json; charset=utf-8"}
    return Response(status, {**content_type, **(headers or {})}, json.dumps(content).encode())


def as_html(body: str, status: int = 200) -> Response:
    """Return an HTML page."""
    whole = f"<!DOCTYPE html><html><body>{body}</body></html>"
    return Response(status, {"Content-Type": "text/html; charset=utf-8"}, whole.encode())


def as_utc(moment: dt.datetime) -> str:
    """Format a UTC time like ``2024-01-31T12:00:00Z``."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


QuirkName = Literal[
    "error_as_200",  # an API error under status 200
    "empty_page",  # an empty page of a list, although later pages have items
    "moving_items",  # the last item of a page is repeated on the next page
    "extra_fields",  # undocumented fields in a response
    "missing_fields",  # a response without optional fields
    "hostile_archive",  # an archive with paths outside the target, links, or too many members
]


class Site(Protocol):
    """The interface of a simulated site; a module of ``sites/`` has a class ``Site``.

    A module with several site classes lists them in a tuple ``SITE_KINDS``. The constructor
    receives the ``World``. Optional methods are ``close``, which releases folders or processes, and
    ``new_day``, which resets request counts. Optional attribute ``token`` is the valid credential.
    """

    keys: tuple[str, ...]  # keys of this site in the ``sites`` setting
    robots: str | None  # text of /robots.txt; None for a 404
    quirks: dict[QuirkName, int]  # number of next responses that show each quirk

    def respond(self, request: Request) -> Response:
        """Respond to a request; the server itself responds to /robots.txt."""


class WorldSite(Site):
    """Base class of a site with content from a world; by default without robots.txt."""

    robots: str | None = None

    def __init__(self, world: World) -> None:
        self.quirks = {}
        self.world = world
        self._num_moved = 0

    def count_moved(self, is_first: bool) -> int:
        """Return by how many items a list has shifted since the request for its first page."""
        if is_first:
            self._num_moved = 0
        elif take_quirk(self, "moving_items"):
            self._num_moved += 1
        return self._num_moved


def take_quirk(site: Site, name: QuirkName) -> bool:
    """Return True if this response must show the named quirk; then decrement its count."""
    left = site.quirks.get(name, 0)
    if left <= 0:
        return False
    site.quirks[name] = left - 1
    return True


@dataclass
class Web:
    """The state of the running simulator: base URLs, faults, and logged requests."""

    urls: dict[str, str] = field(default_factory=dict)  # base URL by site key
    faults: list[Fault] = field(default_factory=list)  # append a fault to activate it
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # site, method, URL path
    sites: dict[str, Site] = field(default_factory=dict)  # sites by each of their keys
    traffic: dict[str, Traffic] = field(default_factory=dict)  # request counts, by site key
    limits: dict[str, float] = field(default_factory=dict)  # minimum s between requests, by key
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_fault(self, keys: tuple[str, ...], target: str) -> Fault | None:
        """Return the first fault that matches and decrement its ``times``; None if none matches."""
        with self._lock:
            for fault in self.faults:
                if fault.times > 0 and fault.key in keys and re.search(fault.pattern, target):
                    fault.times -= 1
                    return fault
        return None

    def new_day(self) -> None:
        """Reset the request counts of all sites."""
        for site in self.sites.values():
            getattr(site, "new_day", lambda: None)()


@contextmanager
def serve(world: World, host: str = "127.0.0.1", first_port: int = 0) -> Iterator[Web]:
    """Run all sites of ``simulator/sites`` within a ``with`` block, each on its own port.

    The ports are ``first_port`` and those that follow it; 0 selects free ports.
    """
    with serve_sites((kind(world) for kind in site_kinds()), host, first_port) as web:
        yield web


def site_kinds() -> Iterator[Callable[[World], Site]]:
    """Yield the classes of all sites of ``simulator/sites`` and of extras."""
    found = pkgutil.iter_modules(simulator.sites.__path__)
    names = [f"simulator.sites.{each.name}" for each in found]
    for part in import_parts("simulator"):
        names.extend(part.SITES)
    for name in names:
        module = importlib.import_module(name)
        yield from getattr(module, "SITE_KINDS", None) or [module.Site]


def ranged(content: bytes, headers: Mapping[str, str], request: Request) -> Response:
    """Return the requested part of the content, to its end if none is asked (RFC 9110, 14.2)."""
    headers = {"Accept-Ranges": "bytes", "Content-Type": "application/octet-stream", **headers}
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
    if asked is None:
        return Response(200, headers, content)
    begin = int(asked[1])
    if begin >= len(content):
        return Response(416, {**headers, "Content-Range": f"bytes */{len(content)}"})
    part = content[begin : int(asked[2]) + 1] if asked[2] else content[begin:]
    headers["Content-Range"] = f"bytes {begin}-{begin + len(part) - 1}/{len(content)}"
    return Response(206, headers, part)


@contextmanager
def serve_sites(
    sites: Iterable[Site], host: str = "127.0.0.1", first_port: int = 0
) -> Iterator[Web]:
    """Run the given sites within a ``with`` block as ``serve`` does; then close them."""
    web = Web()
    with contextlib.ExitStack() as stack:
        for number, site in enumerate(sites):
            close = getattr(site, "close", None)
            if close:
                stack.callback(close)
            stack.enter_context(running(site, web, host, first_port and first_port + number))
        yield web


@contextmanager
def running(site: Site, web: Web, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Run one site within a ``with`` block and yield its base URL; port 0 selects any free port."""
    traffic = Traffic()
    names = {"site": site, "web": web, "traffic": traffic}
    handler = cast(type[_Handler], type("_Handler", (_Handler,), names))
    with SiteListener((host, port), handler) as server:
        thread = threading.Thread(target=server.serve_until_stopped, daemon=True)
        thread.start()
        url = f"http://{host}:{server.server_port}"
        web.urls |= dict.fromkeys(site.keys, url)
        web.sites |= dict.fromkeys(site.keys, site)
        web.traffic |= dict.fromkeys(site.keys, traffic)
        try:
            yield url
        finally:
            server.stop()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Handler of one connection; ``running`` sets ``site`` and the other attributes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # avoids a delay of 40 ms per response
    site: ClassVar[Site]
    web: ClassVar[Web]
    traffic: ClassVar[Traffic]
    _is_open = False

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing; ``Web.requests`` is the log."""

    def do_GET(self) -> None:
        """Note the request, answer it, and note its end."""
        self.web.requests.append((self.site.keys[0], self.command, self.path))
        gap_s = self.traffic.arrive(is_continuation=self.command == "POST")
        self._is_open = True
        try:
            self._respond_after(gap_s)
        finally:
            self._leave()

    do_HEAD = do_POST = do_GET  # noqa: N815 - names of BaseHTTPRequestHandler

    def _leave(self) -> None:
        """Count the request as finished; called just before the last byte is sent."""
        if self._is_open:
            self._is_open = False
            self.traffic.leave()

    def _respond_after(self, gap_s: float) -> None:
        """Answer a request: with 429 if it came too early, with a fault if one is due."""
        try:
            request = self._read_request()
        except ValueError as error:
            self.close_connection = True  # the unread part of the body has unknown length
            self._send(Response(400, body=str(error).encode()))
            return
        limit_s = max(self.web.limits.get(key, 0.0) for key in self.site.keys)
        fault = self.web.take_fault(self.site.keys, self.path)
        if gap_s < limit_s:
            self.traffic.refuse()
            self._send(Response(429, {"Retry-After": str(math.ceil(limit_s))}, b"too many"))
        elif fault is None:
            self._send(self._respond(request))
        else:
            spoil: Callable[[Fault, Request], None] = getattr(self, f"_{fault.kind}")
            spoil(fault, request)

    def _read_request(self) -> Request:
        """Return the request with its parsed address, headers and body."""
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
        """Yield the chunks of a body of unknown length (RFC 9112, 7.1), as sent by git."""
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
        """Send a response, byte by byte if ``pause_s`` is not 0."""
        headers = {"Content-Length": str(len(response.body)), **response.headers}
        if "Transfer-Encoding" in headers:
            del headers["Content-Length"]
        body = b"" if self.command == "HEAD" else response.body
        pieces = [body] if not pause_s else [bytes([byte]) for byte in body]
        try:
            self.send_response(response.status)
            if isinstance(self.site, WorldSite):
                self.send_header(simulated.HEADER, "1")
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
            self.close_connection = True  # the client disconnected, as often happens with "drip"

    def _status(self, fault: Fault, request: Request) -> None:
        headers = dict(fault.headers)
        if fault.retry_date_s is not None:  # rounded up, since HTTP dates have whole seconds
            again_at = math.ceil(time.time() + fault.retry_date_s)
            moment = dt.datetime.fromtimestamp(again_at, dt.UTC)
            headers["Retry-After"] = email.utils.format_datetime(moment, usegmt=True)
        self._send(Response(fault.status, headers, fault.body))

    def _truncate(self, fault: Fault, request: Request) -> None:
        self.close_connection = True
        whole = self._respond(request)
        self._send_changed(whole, fault, {"Content-Length": str(len(whole.body) + 100)})

    def _send_changed(
        self, whole: Response, fault: Fault, headers: dict[str, str], pause_s: float = 0.0
    ) -> None:
        headers = {**whole.headers, **headers, **fault.headers}
        self._send(Response(whole.status, headers, whole.body), pause_s)

    def _disconnect(self, fault: Fault, request: Request) -> None:
        self.close_connection = True

    def _drip(self, fault: Fault, request: Request) -> None:
        self._send_changed(self._respond(request), fault, {}, DRIP_PAUSE_S)

    def _redirect_loop(self, fault: Fault, request: Request) -> None:
        self._send(Response(302, {"Location": self.path, **fault.headers}))

    def _redirect_off_host(self, fault: Fault, request: Request) -> None:
        self._send(Response(302, {"Location": OFF_HOST, **fault.headers}))

    def _empty(self, fault: Fault, request: Request) -> None:
        whole = self._respond(request)
        self._send_changed(Response(whole.status, whole.headers), fault, {})

    def _gzip_bomb(self, fault: Fault, request: Request) -> None:
        headers = {"Content-Encoding": "gzip", **fault.headers}
        self._send(Response(200, headers, pack_zeros(BOMB_BYTES)))

    def _wrong_charset(self, fault: Fault, request: Request) -> None:
        lie = {"Content-Type": "text/html; charset=utf-16"}
        self._send_changed(self._respond(request), fault, lie)

    def _stall(self, fault: Fault, request: Request) -> None:
        until = time.monotonic() + STALL_S
        while any(fault is each for each in self.web.faults) and time.monotonic() < until:
            time.sleep(0.01)
        self._send(self._respond(request))
