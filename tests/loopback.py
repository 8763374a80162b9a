"""Servers in this process, free ports, and waits for what another thread or process does."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

from simulator.server import Request, Response, Site, serve_sites

PATIENCE_S = 1200
# Sockets that are bound and never listen, until this process ends.
_RESERVED: list[socket.socket] = []


@contextmanager
def serving(respond: Callable[[Request], Response]) -> Iterator[str]:
    site = SimpleNamespace(keys=("site",), robots=None, quirks={}, respond=respond)
    with serve_sites([cast(Site, site)]) as web:
        yield web.urls["site"]


def free_port() -> int:
    """Return a port of loopback that no other program is given; a server may listen there.

    A socket stays bound to it. So Linux gives the port to no connection and to no socket that asks
    for any port. A connection to it is refused until a server listens. The server has to set
    ``SO_REUSEADDR``, as nearly all do.
    """
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("127.0.0.1", 0))
    _RESERVED.append(probe)
    return int(probe.getsockname()[1])


def wait_for(what: Callable[[], Any], pause_s: float = 0.02, patience_s: float = PATIENCE_S) -> Any:
    """Return what a function returns once that is true; fail after ``patience_s`` seconds."""
    deadline = time.monotonic() + patience_s
    while not (found := what()):
        assert time.monotonic() < deadline, "has not happened"
        time.sleep(pause_s)
    return found
