"""Connections to public internet addresses; responses are read with time and size limits.

A host name may resolve to a private address, even if an earlier look-up found a public one. So a
connection looks its host up itself, checks the addresses, and opens a socket to no other one.
"""

from __future__ import annotations

import contextlib
import contextvars
import http.client
import os
import socket
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, Protocol

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    IncompleteRead,
    InvalidChunkLength,
    InvalidHeader,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
)

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged
from crawlers.web.pacing import TryAgain
from crawlers.web.urls import is_loopback, is_public

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0  # maximum time without a received byte


class Deadline:
    """Time limit that closes the watched connections, even if single bytes still arrive."""

    def __init__(self, seconds: float) -> None:
        self.has_passed = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._seconds = seconds
        self._timer = self._new_timer()

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Apply the time limit to the connections that this thread uses in the ``with`` block."""
        before = _deadline.set(self)
        self._timer.start()
        try:
            yield
        finally:
            self._timer.cancel()
            _deadline.reset(before)
            with self._lock:
                while self._sockets:
                    self._sockets.pop().close()

    def renew(self) -> None:
        """Restart the time limit; only the thread that holds it may call this."""
        self._timer.cancel()
        self._timer = self._new_timer()
        self._timer.start()

    def watch(self, connected: socket.socket) -> None:
        """Watch a connection through a duplicate of its socket, which survives TLS wrapping."""
        with self._lock:
            self._sockets.append(socket.socket(fileno=os.dup(connected.fileno())))
        if self.has_passed:
            self._shut_connections()

    def _new_timer(self) -> threading.Timer:
        timer = threading.Timer(self._seconds, self._shut_connections)
        timer.daemon = True
        return timer

    def _shut_connections(self) -> None:
        with self._lock:
            self.has_passed = True
            for each in self._sockets:
                with contextlib.suppress(OSError):  # the site may have closed the connection
                    each.shutdown(socket.SHUT_RDWR)


_deadline = contextvars.ContextVar[Deadline | None]("deadline", default=None)


def note_progress() -> None:
    """Restart the time limit of this thread's transfer (``in_time``)."""
    deadline = _deadline.get()
    if deadline:
        deadline.renew()


class _Guard:
    """Mixin for urllib3's connections, which refuses private addresses that are not in ``own``.

    A name is looked up once. The addresses that were found are checked, and only those of the
    public internet are connected to.
    """

    own: ClassVar[Set[tuple[str, int]]]
    host: str
    port: int
    proxy: Any
    sock: Any
    _dns_host: str  # of urllib3: the name that it looks up, with its full stop at the end

    def _new_conn(self) -> socket.socket:
        is_direct = self.proxy is None  # otherwise the host is the proxy
        if is_direct and (self.host, self.port) not in self.own:
            connected = self._connect_to_one_of(self._public_addresses())
        else:
            connected = self._connect()
        deadline = _deadline.get()
        if deadline:
            deadline.watch(connected)
        return connected

    def _connect(self) -> socket.socket:
        connected: socket.socket = super()._new_conn()  # type: ignore[misc]
        return connected

    def _public_addresses(self) -> Sequence[str]:
        """Return the host's public addresses; raise AccessRefused if it has others alone."""
        try:
            found = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
        except UnicodeError as error:  # a name that no look-up can have
            raise NewConnectionError(self, f"{self.host!r} is no host name") from error  # type: ignore[arg-type]
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error  # type: ignore[arg-type]
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        public = [address for address in addresses if is_public(address)]
        if not public:
            raise AccessRefused(
                f"{self.host} leads to {', '.join(addresses)}, which is no address of the public "
                "internet; if it is meant, name it in a setting: TIDEMARK_SITES__<KEY>"
            )
        return public

    def _connect_to_one_of(self, addresses: Sequence[str]) -> socket.socket:
        """Connect to the first address that answers; raise the last one's error if none does."""
        name = self._dns_host
        try:
            for address in addresses[:-1]:
                self._dns_host = address
                with contextlib.suppress(ConnectTimeoutError, NewConnectionError):
                    return self._connect()
            self._dns_host = addresses[-1]
            return self._connect()
        finally:
            self._dns_host = name  # for the header Host, and the name that a certificate has

    def getresponse(self) -> urllib3.HTTPResponse:
        deadline = _deadline.get()
        if deadline and self.sock:
            deadline.watch(self.sock)  # a reused socket is not watched yet
        return super().getresponse()  # type: ignore[misc, no-any-return]


class Cookies(Protocol):
    """The cookies of a logged-in user. Without a log-in, no cookie is sent."""

    def header_for(self, url: str) -> str | None:
        """Return the Cookie header for a request to a URL, or None without cookies."""

    def learn(self, response: requests.Response) -> None:
        """Store the cookies that a response sets."""


class Sender:
    """HTTP client that stores no cookies, ignores .netrc, and follows no redirects.

    ``own`` has the hosts and ports that settings name; these may have private addresses.
    """

    def __init__(self, own: Set[tuple[str, int]]) -> None:
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _GuardedAdapter(own))

    def send(
        self, url: str, headers: Mapping[str, str], form: bytes | None = None
    ) -> requests.Response:
        """Send a GET request, or a POST request with a form; read only the response's headers."""
        method = "GET" if form is None else "POST"
        # A session that prepares a request adds cookies and .netrc logins.
        request = requests.Request(method, url, headers=dict(headers), data=form).prepare()
        # The adapter sends the request: Session.send would read a redirect's whole body.
        return self._session.get_adapter(url).send(
            request, stream=True, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S), **self._route(url)
        )

    def redirect_of(self, response: requests.Response) -> str | None:
        """Return the Location header of a redirect, unresolved; None for other responses."""
        return self._session.get_redirect_target(response)

    def _route(self, url: str) -> Mapping[str, Any]:
        if is_loopback(url):
            return {"proxies": {}}
        found = self._session.merge_environment_settings(url, {}, None, None, None)
        return {"proxies": found["proxies"], "verify": found["verify"]}


class _GuardedAdapter(HTTPAdapter):
    """Transport adapter with ``_Guard`` connections. A proxy must check addresses itself."""

    def __init__(self, own: Set[tuple[str, int]]) -> None:
        self._own = own
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools()

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        if not proxy.lower().startswith("socks"):  # SOCKS proxies need other connection classes
            manager.pool_classes_by_scheme = self._pools()
        return manager

    def _pools(self) -> dict[str, type]:
        def guarded(pool: type, connection: type) -> type:
            guard = type(f"Guarded{connection.__name__}", (_Guard, connection), {"own": self._own})
            return type(f"Guarded{pool.__name__}", (pool,), {"ConnectionCls": guard})

        return {
            "http": guarded(urllib3.HTTPConnectionPool, HTTPConnection),
            "https": guarded(urllib3.HTTPSConnectionPool, HTTPSConnection),
        }


WALL_CLOCK_S = 300.0  # maximum time for one response, headers and body, without progress
MAX_HEADER_BYTES = 2**16  # maximum size of all headers, which are stored with the body
_BLOCK = 2**16
_MOST_LAYERS = 2  # of gzip; more is no mistake of a server
_GZIP = b"\x1f\x8b\x08"
_GZIP_WINDOW = 31  # zlib's ``wbits`` for gzip data with the largest window


@contextlib.contextmanager
def in_time(url: str) -> Iterator[None]:
    """Limit transfers in the ``with`` block to WALL_CLOCK_S seconds, and translate their errors.

    ``note_progress`` restarts the limit, which ``Download`` does after each PROGRESS_BYTES.
    Raise ItemFailed if the transfer was not complete in time. Raise ItemUnavailable if the headers
    are too large. Raise TryAgain if the connection failed or the response was damaged.
    """
    deadline = Deadline(WALL_CLOCK_S)
    late = f"{url} was not complete after {WALL_CLOCK_S:.0f} s, then we hung up"
    try:
        with deadline.holding():
            yield
    except _TRANSFER_ERRORS as error:
        if deadline.has_passed:
            raise ItemFailed("timeout", late) from error
        if _has_too_many_headers(error):
            raise _too_many_headers(url) from error
        what = f"{url}: {type(error).__name__}: {error}"
        raise TryAgain(what, reason=_reason_of(error)) from error
    if deadline.has_passed:  # the body may be cut off: without a length, it looks complete
        raise ItemFailed("timeout", late)


def read_headers(response: requests.Response, url: str) -> dict[str, str]:
    """Return headers by lower-case name, without Set-Cookie; ItemUnavailable if too large."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    headers.pop("set-cookie", None)  # cookies are secret
    if sum(len(name) + len(value) for name, value in headers.items()) > MAX_HEADER_BYTES:
        raise _too_many_headers(url)
    return headers


def read_body(response: requests.Response, url: str, max_bytes: int, is_cut: bool = False) -> bytes:
    """Read and decompress a body; hold at most ``max_bytes`` and one block in memory.

    ``max_bytes`` limits both the transferred and the decompressed size. If ``is_cut`` is True, the
    beginning of a larger body is returned instead of an error. ``response`` must be unread and sent
    with ``stream=True``. Raise ItemUnavailable if the body is too large. Raise SourceChanged if the
    body has a content coding other than gzip. Raise urllib3.exceptions.HTTPError if the connection
    broke, or if the body is too short. Raise zlib.error if the gzip stream is damaged or cut off.
    """
    if not is_cut and (response.raw.length_remaining or 0) > max_bytes:
        raise too_large(url, max_bytes)
    chunks = read_wire(response.raw)
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    layers = [each.strip() for each in coding.split(",")]
    if len(layers) <= _MOST_LAYERS and set(layers) <= {"gzip", "x-gzip"}:
        for _ in layers:
            chunks = _gunzip(chunks)
    elif coding not in {"", "identity"}:
        raise SourceChanged(f"{url} is packed as {coding!r}; only gzip was offered")
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if max(len(body), response.raw.tell()) > max_bytes:
            if is_cut:
                return bytes(body[:max_bytes])
            raise too_large(url, max_bytes)
    if bytes(body[:3]) == _GZIP and _is_text(response) and not is_cut:
        # Packed by a program and again by its server, or by one that does not say so.
        return _unpacked(bytes(body), url, max_bytes)
    return bytes(body)


def _is_text(response: requests.Response) -> bool:
    """Return True if the header Content-Type states text, JSON or XML."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    is_named = kind.endswith(("+xml", "+json", "/xml", "/json"))
    return is_named or kind.startswith("text/")


def _unpacked(body: bytes, url: str, max_bytes: int) -> bytes:
    unpacked = bytearray()
    for block in _gunzip(iter([body])):
        unpacked += block
        if len(unpacked) > max_bytes:
            raise too_large(url, max_bytes)
    return bytes(unpacked)


def read_wire(raw: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the body in blocks; urllib3 raises an error if it is shorter than Content-Length."""
    while chunk := raw.read1(_BLOCK, decode_content=False):
        yield chunk


def _gunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip data in small steps; it may have several members (RFC 1952, 2.2)."""
    unpacker = None
    num_members = 0
    for chunk in chunks:
        has_more = True
        while has_more:
            if unpacker is None:
                if num_members and not chunk.startswith(b"\x1f"):
                    return  # padding after the last member is ignored
                unpacker = zlib.decompressobj(wbits=_GZIP_WINDOW)
                num_members = num_members + 1
            block = unpacker.decompress(chunk, _BLOCK)
            yield block
            chunk = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            has_more = bool(chunk) or (len(block) == _BLOCK and not unpacker.eof)
            if unpacker.eof:
                unpacker = None
    if unpacker is not None:
        raise zlib.error("the gzip stream ends early")


_TRANSFER_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, zlib.error)
# Errors are compared by exact class: urllib3's error for a refused connection is a subclass of
# ConnectTimeoutError. The error for a connection closed without a response is a BadStatusLine.
_TIMEOUTS = {requests.ReadTimeout, requests.ConnectTimeout, ReadTimeoutError, ConnectTimeoutError}
_DAMAGE = {
    http.client.BadStatusLine, http.client.IncompleteRead, http.client.UnknownProtocol,
    http.client.UnknownTransferEncoding, IncompleteRead, InvalidChunkLength, InvalidHeader,
    DecodeError, zlib.error,
}  # fmt: skip


def _reason_of(error: BaseException) -> str:
    """Return the FailReason of a failed transfer."""
    if any(type(each) in _TIMEOUTS for each in _parts(error)):
        return "timeout"
    if any(type(each) in _DAMAGE for each in _parts(error)):
        return "damaged_answer"
    return "network"


def _has_too_many_headers(error: BaseException) -> bool:
    """Return True if Python refused the headers: more than 100, or one above 64 KiB."""
    return any(
        isinstance(each, http.client.LineTooLong) or type(each) is http.client.HTTPException
        for each in _parts(error)
    )


def _parts(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all errors nested in it, since requests and urllib3 wrap errors."""
    yield error
    for part in (*error.args, getattr(error, "reason", None)):
        if isinstance(part, BaseException):
            yield from _parts(part)


def _too_many_headers(url: str) -> ItemUnavailable:
    what = f"the headers of {url} are more than 100, or larger than {MAX_HEADER_BYTES} bytes"
    return ItemUnavailable("too_large", what)


def too_large(url: str, max_bytes: int) -> ItemUnavailable:
    """Return the error for a response above its size limit."""
    return ItemUnavailable("too_large", f"{url} is larger than {max_bytes} bytes")
