"""Connections that lead nowhere but to the public internet, and last no longer than allowed.

A name may resolve to an address of our own network, today or a moment after it was looked up, so
what counts is the address that a socket is connected to, before anything is sent.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Set
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from core.errors import AccessRefused
from crawlers.addresses import is_public

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0  # without a single byte
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class Deadline:
    """Hangs up on whatever is being read once time is over.

    A site may keep a reader with one byte now and then, in its headers as well as in the body; no
    timeout of a single read ends that.
    """

    def __init__(self, seconds: float) -> None:
        self.has_passed = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._hang_up)
        self._timer.daemon = True

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Let the clock run until the block ends, for connections that this thread uses."""
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

    def watch(self, connected: socket.socket) -> None:
        """Hang up on this one, too. A duplicate outlives what TLS makes of the original."""
        with self._lock:
            self._sockets.append(socket.socket(fileno=os.dup(connected.fileno())))
        if self.has_passed:
            self._hang_up()

    def _hang_up(self) -> None:
        with self._lock:
            self.has_passed = True
            for each in self._sockets:
                with contextlib.suppress(OSError):  # the site was faster
                    each.shutdown(socket.SHUT_RDWR)


_deadline: contextvars.ContextVar[Deadline | None] = contextvars.ContextVar(
    "deadline", default=None
)


class _Guard:
    """Mixed into urllib3's connections; ``own`` is bound by ``_GuardedAdapter``."""

    own: ClassVar[Set[tuple[str, int]]]
    host: str
    port: int
    proxy: Any
    sock: Any

    def _new_conn(self) -> socket.socket:
        connected: socket.socket = super()._new_conn()  # type: ignore[misc]
        peer = str(connected.getpeername()[0])
        is_direct = self.proxy is None  # else the peer is the proxy
        if is_direct and (self.host, self.port) not in self.own and not is_public(peer):
            connected.close()
            raise AccessRefused(
                f"{self.host} leads to {peer}, which is no address of the public internet; if it "
                "is meant, name it in a setting: TIDEMARK_SITES__<KEY>"
            )
        if deadline := _deadline.get():
            deadline.watch(connected)
        return connected

    def getresponse(self) -> urllib3.HTTPResponse:
        if (deadline := _deadline.get()) and self.sock:
            deadline.watch(self.sock)  # it may be older than this request
        return super().getresponse()  # type: ignore[misc, no-any-return]


class Cookies(Protocol):
    """The cookies of one who is logged in; of nobody else are any sent."""

    def header_for(self, url: str) -> str | None:
        """Return what a request to an address says of them."""

    def learn(self, response: requests.Response) -> None:
        """Keep those that an answer sets."""


class Sender:
    """Sends requests without cookies, .netrc, or redirects of its own.

    Args:
        own: hosts and ports that need not be on the public internet, since a setting names them.
    """

    def __init__(self, own: Set[tuple[str, int]]) -> None:
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _GuardedAdapter(own))

    def send(
        self, url: str, headers: Mapping[str, str], form: bytes | None = None
    ) -> requests.Response:
        """Ask for a URL, or send a form to it; of the answer, only the headers are read."""
        method = "GET" if form is None else "POST"
        # Prepared without the session: its cookies and a .netrc have no place here.
        request = requests.Request(method, url, headers=dict(headers), data=form).prepare()
        # Session.send would read the whole body of a redirect, however large.
        return self._session.get_adapter(url).send(
            request, stream=True, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S), **self._route(url)
        )

    def redirect_of(self, response: requests.Response) -> str | None:
        """Return where an answer leads on to, as it says it."""
        return self._session.get_redirect_target(response)

    def _route(self, url: str) -> Mapping[str, Any]:
        """Proxy and certificates of this machine; no proxy reaches its loopback."""
        if urlsplit(url).hostname in _LOOPBACK:
            return {"proxies": {}}
        found = self._session.merge_environment_settings(url, {}, None, None, None)
        return {"proxies": found["proxies"], "verify": found["verify"]}


class _GuardedAdapter(HTTPAdapter):
    """Sends requests over guarded connections. Behind a proxy, the proxy has to see to that.

    Args:
        own: hosts and ports that may be private, since a setting names them.
    """

    def __init__(self, own: Set[tuple[str, int]]) -> None:
        self._own = own
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make the pools of direct connections."""
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools()

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Make, or find, the pools of a proxy."""
        manager = super().proxy_manager_for(proxy, **options)
        if not proxy.lower().startswith("socks"):  # which has connections of its own
            manager.pool_classes_by_scheme = self._pools()
        return manager

    def _pools(self) -> dict[str, Any]:
        def guarded(pool: type, connection: type) -> type:
            guard = type(f"Guarded{connection.__name__}", (_Guard, connection), {"own": self._own})
            return type(f"Guarded{pool.__name__}", (pool,), {"ConnectionCls": guard})

        return {
            "http": guarded(urllib3.HTTPConnectionPool, HTTPConnection),
            "https": guarded(urllib3.HTTPSConnectionPool, HTTPSConnection),
        }
