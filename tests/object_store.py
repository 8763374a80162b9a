"""A process with an S3-protocol server, and a proxy in front that injects failures."""

import contextlib
import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from tests.loopback import free_port

KEYS = {"AWS_ACCESS_KEY_ID": "tidemark-test", "AWS_SECRET_ACCESS_KEY": "s3cret-of-the-test"}
_START_S = 600


@contextlib.contextmanager
def object_store() -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("moto's server does not start")
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


# Answers a request in its own way and returns True, or leaves it to the server.
Fault = Callable[[Request, "_Handler"], bool]


@dataclass
class Proxy:
    """Passes on and records requests; ``fault`` gets each one and returns True if it responded."""

    port: int
    behind: int
    fault: Fault | None = None
    seen: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def counted(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for request in self.seen:
            counts[request.method] = counts.get(request.method, 0) + 1
        return counts


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: ClassVar[Proxy]

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = self._read_chunks()
        request = Request(self.command, self.path, dict(self.headers), body)
        self.proxy.seen.append(request)
        if self.proxy.fault is None or not self.proxy.fault(request, self):
            self.answer(*self.forward(request))

    def _read_chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def forward(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.behind, timeout=60)
        names = {"transfer-encoding", "content-length"}
        headers = {k: v for k, v in request.headers.items() if k.lower() not in names}
        headers["Content-Length"] = str(len(request.body))
        connection.request(request.method, request.path, request.body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()

    def answer(
        self, status: int, headers: list[tuple[str, str]], body: bytes, cut_to: int | None = None
    ) -> None:
        """Send the response; with ``cut_to``, close after so many bytes of the body."""
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                self.send_header(name, value)
        length = dict((k.lower(), v) for k, v in headers).get("content-length", str(len(body)))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body if cut_to is None else body[:cut_to])
        if cut_to is not None:
            self.reset()

    def refuse(self, status: int, code: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>as the test wants</Message></Error>".encode()
        self.answer(status, [("Content-Type", "application/xml")], body)

    def reset(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def proxy(behind: int) -> Iterator[Proxy]:
    methods = {f"do_{name}": _Handler.serve for name in ("GET", "PUT", "POST", "HEAD", "DELETE")}
    handler = type("Handler", (_Handler,), methods)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    between = Proxy(server.server_address[1], behind)
    handler.proxy = between  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield between
    finally:
        server.shutdown()
        server.server_close()
