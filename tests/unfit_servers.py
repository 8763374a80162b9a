"""Servers that never end a response, ask for patience, or send what nobody can read."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, ClassVar

from prefect.settings import PREFECT_API_URL, temporary_settings

Respond = Callable[["Handler"], None]


class Handler(http.server.BaseHTTPRequestHandler):
    respond: ClassVar[Respond]
    is_over: ClassVar[threading.Event]

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if "good-at-first" in self.path and self.path.endswith("/admin/version"):
            self.send_json(json.dumps(version("prefect")))
        else:
            type(self).respond(self)

    do_POST = do_GET  # noqa: N815 - a name of http.server

    def send_json(self, body: str, coding: str = "identity") -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Encoding", coding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


def drip(handler: Handler) -> None:
    """Send a byte now and then until the test ends."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.is_over.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def ask_for_patience(handler: Handler) -> None:
    handler.send_response(503)
    handler.send_header("Retry-After", "3600")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def refuse_its_size(handler: Handler) -> None:
    handler.send_response(413)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def nest(handler: Handler) -> None:
    handler.send_json("[" * 100_000)


def send_much(handler: Handler) -> None:
    handler.send_json(" " * (2**24 + 1) + "null")


def send_no_gzip(handler: Handler) -> None:
    handler.send_json("[1]", "gzip")


class Quiet(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Clients that hung up are expected."""


@contextmanager
def serving(respond: Respond) -> Iterator[str]:
    """Serve requests on loopback; yield the address of the API."""
    is_over = threading.Event()
    handler = type("Handler", (Handler,), {"respond": respond, "is_over": is_over})
    with Quiet(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True).start()
        address = f"http://127.0.0.1:{web.server_port}/api"
        with temporary_settings({PREFECT_API_URL: address}):
            yield address
        is_over.set()
        web.shutdown()
