"""The server of one simulated site, which waits without polling."""

from __future__ import annotations

import selectors
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SiteListener(ThreadingHTTPServer):
    """HTTP server on loopback; a process runs some thirty of them, mostly idle.

    ``serve_forever`` of the base class wakes at intervals to see whether it must stop. This costs
    processor time all along, and up to an interval a server at the end.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        # First, as the base class closes the server if it cannot have the port.
        self._stopped, self._stopper = socket.socketpair()
        super().__init__(address, handler)

    def serve_until_stopped(self) -> None:
        """Answer requests, each in a thread of its own, until another thread calls ``stop``."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._stopped in ready:
                    return
                try:
                    request, client_address = self.get_request()
                except OSError:  # the client has gone again
                    continue
                self.process_request(request, client_address)

    def stop(self) -> None:
        """Let ``serve_until_stopped`` return."""
        self._stopper.close()

    def server_close(self) -> None:
        """Close all sockets."""
        super().server_close()
        self._stopper.close()
        self._stopped.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error of a request, unless its client has gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
