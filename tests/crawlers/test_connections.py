from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from core.errors import AccessRefused, ItemFailed, ItemUnavailable
from core.settings import Settings
from crawlers import pacing, transfer
from crawlers.addresses import is_private_address, is_public
from crawlers.connections import Deadline
from crawlers.http import Fetcher
from simulator.server import QuirkName, Request, Response, Web, serve_sites


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::93.184.216.34", True),
        ("0.0.0.0", False),
        ("127.0.0.1", False),
        ("127.255.255.254", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),  # where clouds keep their machines' secrets
        ("100.64.0.1", False),  # shared by the customers of a provider
        ("192.0.2.1", False),
        ("198.18.0.1", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("::127.0.0.1", False),
        ("64:ff9b::10.0.0.1", False),
        ("2002:7f00:1::", False),  # 6to4 of 127.0.0.1
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),  # Teredo
        ("fe80::1", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
        ("fd12:3456::1", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("2001:db8::1", False),
        ("", False),
        ("example.org", False),
    ],
)
def test_what_is_on_the_public_internet(address: str, expected: bool) -> None:
    assert is_public(address) is expected


def test_a_name_is_no_private_address() -> None:
    assert not is_private_address("localhost")
    assert not is_private_address("93.184.216.34")
    assert is_private_address("::ffff:10.0.0.1")


class Secrets:
    """A machine of our own network, which nobody outside may ask."""

    keys = ("inner",)
    robots: str | None = None

    def __init__(self) -> None:
        self.quirks: dict[QuirkName, int] = {}
        self.location = ""

    def respond(self, request: Request) -> Response:
        if request.path == "/old":
            return Response(302, {"Location": self.location})
        return Response(body=b"secret")


@pytest.fixture
def inner() -> Secrets:
    return Secrets()


@pytest.fixture
def web(inner: Secrets) -> Iterator[Web]:
    with serve_sites([inner]) as running:
        yield running


@pytest.fixture
def port(web: Web) -> str:
    return web.urls["inner"].rpartition(":")[2]


def resolve(monkeypatch: pytest.MonkeyPatch, **hosts: list[str]) -> None:
    """Let names lead to addresses: to the next one at each look-up."""
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        name = str(host).partition(".")[0]
        if name in hosts:
            host = hosts[name].pop(0) if len(hosts[name]) > 1 else hosts[name][0]
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


def test_a_name_that_leads_to_our_own_network_is_refused(
    settings: Settings, web: Web, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, evil=["127.0.0.1"])
    site = f"http://evil.example:{port}"
    with pytest.raises(AccessRefused, match=r"evil\.example leads to .*127\.0\.0\.1, which is no"):
        Fetcher(settings, {"main": site}, 0.0).get("main", "/page")
    assert web.requests == []
    named = settings.model_copy(update={"sites": {"main": site}})
    assert Fetcher(named, {"main": "https://x.example"}, 0.0).get("main", "/page").body == b"secret"


def test_what_counts_is_the_address_that_a_socket_has(
    settings: Settings, web: Web, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that led elsewhere when it was looked up first (DNS rebinding)."""
    resolve(monkeypatch, evil=["93.184.216.34", "127.0.0.1"])
    assert socket.getaddrinfo("evil.example", 80)[0][4][0] == "93.184.216.34"
    with pytest.raises(AccessRefused, match=r"127\.0\.0\.1"):
        Fetcher(settings, {"main": f"http://evil.example:{port}"}, 0.0).get("main", "/page")
    assert web.requests == []


def test_another_port_of_a_named_host_is_not_named(settings: Settings, web: Web, port: str) -> None:
    named = settings.model_copy(update={"sites": {"main": "http://127.0.0.1:9"}})
    fetcher = Fetcher(named, {"inner": web.urls["inner"]}, 0.0)
    with pytest.raises(AccessRefused, match="not on the public internet"):
        fetcher.get("inner", "/page")
    assert web.requests == []


@pytest.mark.parametrize("target", ["evil.example", "localhost", "127.0.0.1", "[::1]"])
def test_a_redirect_into_our_own_network_is_refused(
    settings: Settings,
    web: Web,
    inner: Secrets,
    port: str,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
) -> None:
    """Even where the list of hosts allows it: only a setting can."""
    resolve(monkeypatch, evil=["127.0.0.1"])
    with serve_sites([Secrets()]) as outer:
        inner_port = outer.urls["inner"].rpartition(":")[2]
        inner.location = f"http://{target}:{inner_port}/page"
        named = settings.model_copy(update={"sites": {"main": web.urls["inner"]}})
        hosts = [f"{target.strip('[]')}:{inner_port}"]
        fetcher = Fetcher(named, {"main": web.urls["inner"]}, 0.0, hosts)
        with pytest.raises(AccessRefused):
            fetcher.get("main", "/old")
        assert outer.requests == []


def test_a_proxy_is_not_asked_for_our_own_network(
    settings: Settings, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", web.urls["inner"])
    for address in ("10.0.0.1", "169.254.169.254", "[fd00::1]"):
        with pytest.raises(AccessRefused, match="not on the public internet"):
            Fetcher(settings, {"main": f"http://{address}"}, 0.0).get("main", "/page")
    assert web.requests == []


def test_a_proxy_does_not_make_an_answer_endless(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "WALL_CLOCK_S", 0.6)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with raw_server(drip(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"x")) as url:
        monkeypatch.setenv("http_proxy", url)
        with pytest.raises(ItemFailed) as caught:
            Fetcher(settings, {"a": "http://far.example"}, 0.0).get("a", "/page")
    assert caught.value.reason == "timeout"


# Answers that never end


@contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Answer robots.txt with 404 and anything else byte by byte as told."""
    listening = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def serve() -> None:
        while not is_over.is_set():
            try:
                connected, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connected,), daemon=True).start()

    def talk(connected: socket.socket) -> None:
        with connected:
            asked = connected.recv(65536)
            try:
                if b"/robots.txt" in asked:
                    connected.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
                    asked = connected.recv(65536)
                answer(connected)
            except OSError:
                pass  # hung up on us, as it should

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        is_over.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)


def drip(start: bytes, piece: bytes) -> Callable[[socket.socket], None]:
    def answer(connected: socket.socket) -> None:
        connected.sendall(start)
        for _ in range(600):
            connected.sendall(piece)
            time.sleep(0.05)

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        drip(b"", b"H"),
        drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        drip(b"HTTP/1.1 200 OK\r\nX: ", b"y"),
        drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"),
        drip(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"x"),
        drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
        drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
    ],
    ids=["status", "headers", "header", "continue", "body", "endless", "chunk", "trailers"],
)
def test_every_part_of_an_answer_has_to_come_in_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, answer: Callable[[socket.socket], None]
) -> None:
    monkeypatch.setattr(transfer, "WALL_CLOCK_S", 0.6)
    with raw_server(answer) as url:
        fetcher = Fetcher(settings.model_copy(update={"sites": {"a": url}}), {"a": url}, 0.0)
        started = time.monotonic()
        with pytest.raises(ItemFailed, match="was not complete after") as caught:
            fetcher.get("a", "/page")
        assert time.monotonic() - started < 5
    assert caught.value.reason == "timeout"
    assert not list((settings.scratch / "http-cache").rglob("*page*"))


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (b"X: y\r\n" * 101, "too_large"),
        (b"X: " + b"y" * 70_000 + b"\r\n", "too_large"),
        (b"".join(b"X%d: %s\r\n" % (n, b"y" * 30_000) for n in range(3)), "too_large"),
    ],
    ids=["number", "length", "sum"],
)
def test_headers_have_a_cap(settings: Settings, headers: bytes, reason: str) -> None:
    def answer(connected: socket.socket) -> None:
        connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + headers + b"\r\nok")

    with raw_server(answer) as url:
        fetcher = Fetcher(settings.model_copy(update={"sites": {"a": url}}), {"a": url}, 0.0)
        with pytest.raises(ItemUnavailable, match="the headers of .*/page are") as caught:
            fetcher.get("a", "/page")
    assert caught.value.reason == reason
    assert fetcher.stats["retries"] == 0


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "network"),
        (b"nonsense\r\n\r\n", "damaged_answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", "damaged_answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort", "damaged_answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx", "damaged_answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "damaged_answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nno gzip", "damaged_answer"),
    ],
    ids=["nothing", "no HTTP", "short", "short chunk", "no chunk", "no last chunk", "gzip"],
)
def test_a_broken_answer_is_never_kept(settings: Settings, raw: bytes, reason: str) -> None:
    def answer(connected: socket.socket) -> None:
        connected.sendall(raw)

    with raw_server(answer) as url:
        fetcher = Fetcher(settings.model_copy(update={"sites": {"a": url}}), {"a": url}, 0.0)
        with pytest.raises(ItemFailed, match="failed 5 times") as caught:
            fetcher.get("a", "/page")
    assert caught.value.reason == reason
    assert len(list((settings.scratch / "http-cache").rglob("*.zst"))) == 1  # robots.txt


def test_a_deadline_leaves_nothing_open() -> None:
    here, there = socket.socketpair()
    with here, there:
        deadline = Deadline(60.0)
        with deadline.holding():
            deadline.watch(here)
        assert not deadline.has_passed
        assert threading.active_count() < 50
        here.sendall(b"x")
        assert there.recv(1) == b"x"
