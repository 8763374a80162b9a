import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from core.errors import AccessRefused, ItemFailed
from core.settings import Settings
from crawlers.web import connections
from crawlers.web.connections import Deadline
from crawlers.web.fetcher import Fetcher
from crawlers.web.urls import is_public
from simulator.server import Response, Web
from tests.crawlers.clock import SimulatedTime
from tests.crawlers.conftest import refused
from tests.crawlers.web.conftest import PageSite, use_proxy

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


PUBLIC = [
    "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34",
    "64:ff9b::93.184.216.34", "168.63.129.17",
    "192.31.196.1", "192.0.1.1", "192.88.98.1", "2001:200::1",
    "2a00:1450:4001::1", "3ffe:ffff::1", "::ffff:192.0.1.1",
]  # fmt: skip
NOT_PUBLIC = [
    "0.0.0.0", "127.0.0.1", "127.255.255.254", "10.1.2.3", "172.16.0.1", "192.168.1.1",
    "168.63.129.16", "::ffff:168.63.129.16",  # the host's agent, at Azure
    "169.254.169.254",  # the metadata service of clouds
    "100.64.0.1",  # shared by the customers of a provider
    "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
    "64:ff9b::10.0.0.1", "2002:7f00:1::",  # 6to4 of 127.0.0.1
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
    "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "2001:db8::1",
    "192.0.0.8", "192.0.0.170", "192.0.0.255", "192.88.99.1", "198.51.100.1", "203.0.113.1",
    "3fff::1", "3fff:fff:ffff::1", "::ffff:192.0.0.8", "64:ff9b::192.0.0.8", "::ffff:0:10.0.0.1",
    "64:ff9b:1::10.0.0.1",  # NAT64 of a local network
    "2002:c0a8:101::", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff::1",
    "100::1", "100:0:0:1::1", "5f00::1", "4000::1", "1000::1",
    "", "example.org",
]  # fmt: skip


def test_what_is_on_the_public_internet() -> None:
    assert [address for address in (*PUBLIC, *NOT_PUBLIC) if is_public(address)] == PUBLIC


def resolve(monkeypatch: pytest.MonkeyPatch, **hosts: list[str]) -> None:
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        name = str(host).partition(".")[0]
        if name in hosts:
            host = hosts[name].pop(0) if len(hosts[name]) > 1 else hosts[name][0]
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture(autouse=True)
def simulated(clock: SimulatedTime) -> None:
    """Skip all pauses."""


def port_of(web: Web, key: str = "main") -> str:
    return web.urls[key].rpartition(":")[2]


def test_a_name_that_leads_to_our_own_network_is_refused(
    settings: Settings, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, evil=["127.0.0.1"])
    site = f"http://evil.example:{port_of(web)}"
    with pytest.raises(AccessRefused, match=r"evil\.example leads to .*127\.0\.0\.1, which is no"):
        Fetcher(settings, {"main": site}, 0.0).get("main", "/page")
    assert web.requests == []
    named = settings.model_copy(update={"sites": {"main": site}})
    assert Fetcher(named, {"main": "https://x.example"}, 0.0).get("main", "/page").body == b"hello"


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the addresses that sockets are to be connected to; all of them refuse."""
    found: list[str] = []

    def connect(self: socket.socket, address: Any) -> None:
        found.append(str(address[0]))
        raise ConnectionRefusedError(f"{address[0]} refuses")

    monkeypatch.setattr(socket.socket, "connect", connect)
    return found


# Hosts that lead into our own network, with what a resolver says of them.
INWARD = {
    "evil.example": ["127.0.0.1"], "localhost.": ["127.0.0.1", "::1"], "zero.example": ["0.0.0.0"],
    "mapped.example": ["::ffff:127.0.0.1"], "inner.example": ["10.1.2.3", "fd00::1"],
    "cloud.example": ["169.254.169.254"],
}  # fmt: skip


def say(monkeypatch: pytest.MonkeyPatch, answers: Iterator[list[str]]) -> None:
    """Let the resolver say the next answer at each look-up of a name; an address is itself."""

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> Any:
        found = [host] if is_address(host) else next(answers)
        kinds = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in found]
        return [
            (kind, socket.SOCK_STREAM, 6, "", (each, port, 0, 0)[: 4 if ":" in each else 2])
            for kind, each in zip(kinds, found, strict=True)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit() and host.count(".") == 3


@pytest.mark.parametrize("host", INWARD)
def test_no_socket_is_connected_to_our_own_network(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, connected: list[str], host: str
) -> None:
    say(monkeypatch, iter([INWARD[host]] * 9))
    with pytest.raises(AccessRefused, match="public internet"):
        Fetcher(settings, {"main": f"http://{host}:8080"}, 0.0).get("main", "/page")
    assert connected == []


@pytest.mark.parametrize("host", ["2130706433", "0177.0.0.1", "0x7f.1", "127.1", "0", "3232235777"])
@pytest.mark.parametrize("proxy", [False, True])
def test_an_address_may_be_spelled_in_other_ways(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    connected: list[str],
    host: str,
    proxy: bool,
) -> None:
    if proxy:
        use_proxy(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(AccessRefused, match="public internet"):
        Fetcher(settings, {"main": f"http://{host}:8080"}, 0.0).get("main", "/page")
    assert connected == []


def test_of_mixed_addresses_the_public_ones_are_asked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, connected: list[str]
) -> None:
    say(monkeypatch, iter([["10.0.0.1", "93.184.216.34", "::1", "93.184.216.35"]] * 9))
    with pytest.raises(AccessRefused, match=r"93\.184\.216\.35 refuses"):
        Fetcher(settings, {"main": "http://mixed.example"}, 0.0).get("main", "/page")
    assert set(connected) == {"93.184.216.34", "93.184.216.35"}


def test_a_name_is_looked_up_once_a_connection(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, connected: list[str]
) -> None:
    """DNS rebinding: each second look-up of the name leads into our own network."""
    say(monkeypatch, itertools.cycle([["93.184.216.34"], ["127.0.0.1"]]))
    with pytest.raises(AccessRefused, match=r"127\.0\.0\.1"):
        Fetcher(settings, {"main": "http://evil.example"}, 0.0).get("main", "/page")
    assert connected == ["93.184.216.34"]


def test_another_port_of_a_named_host_is_not_named(settings: Settings, web: Web) -> None:
    named = settings.model_copy(update={"sites": {"main": "http://127.0.0.1:9"}})
    fetcher = Fetcher(named, {"other": web.urls["main"]}, 0.0)
    with pytest.raises(AccessRefused, match="not on the public internet"):
        fetcher.get("other", "/page")
    assert web.requests == []


@pytest.mark.parametrize("target", ["evil.example", "localhost", "127.0.0.1", "[::1]"])
def test_a_redirect_into_our_own_network_is_refused(
    settings: Settings, web: Web, site: PageSite, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Refused even if the list of hosts allows it; only a setting permits it."""
    resolve(monkeypatch, evil=["127.0.0.1"])
    other_port = port_of(web, "other")
    site.pages["/old"] = Response(302, {"Location": f"http://{target}:{other_port}/page"})
    named = settings.model_copy(update={"sites": {"main": web.urls["main"]}})
    hosts = [f"{target.strip('[]')}:{other_port}"]
    fetcher = Fetcher(named, {"main": web.urls["main"]}, 0.0, hosts)
    with pytest.raises(AccessRefused):
        fetcher.get("main", "/old")
    assert {key for key, _, _ in web.requests} == {"main"}


def test_a_proxy_is_not_asked_for_our_own_network(
    settings: Settings, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_proxy(monkeypatch, web.urls["main"])
    for address in ("10.0.0.1", "169.254.169.254", "[fd00::1]"):
        with pytest.raises(AccessRefused, match="not on the public internet"):
            Fetcher(settings, {"main": f"http://{address}"}, 0.0).get("main", "/page")
    assert web.requests == []


def do_nothing() -> None:
    pass


@contextmanager
def raw_server(
    answer: Callable[[socket.socket], None], before: Callable[[], object] = do_nothing
) -> Iterator[str]:
    """Serve pages by ``answer``; ``before`` is called before robots.txt is answered."""
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
                    before()
                    connected.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
                    asked = connected.recv(65536)
                answer(connected)
            except OSError:
                pass  # the connection was closed, as expected

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


def fetcher_of(settings: Settings, url: str) -> Fetcher:
    return Fetcher(settings.model_copy(update={"sites": {"a": url}}), {"a": url}, 0.0)


def says(raw: bytes) -> Callable[[socket.socket], None]:
    return lambda connected: connected.sendall(raw)


@pytest.mark.parametrize(
    "answer",
    [
        drip(b"", b"H"), drip(OK, b"X: y\r\n"), drip(OK + b"X: ", b"y"),
        drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        drip(OK + b"Content-Length: 9999\r\n\r\n", b"x"),
        drip(OK + b"Connection: close\r\n\r\n", b"x"), drip(OK + CHUNKED, b"0"),
        drip(OK + CHUNKED + b"0\r\n", b"x: y\r\n"),
    ],
    ids=["status", "headers", "header", "continue", "body", "endless", "chunk", "trailers"],
)  # fmt: skip
def test_every_part_of_an_answer_has_to_come_in_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, answer: Callable[[socket.socket], None]
) -> None:
    limit = partial(monkeypatch.setattr, connections, "WALL_CLOCK_S", 0.6)  # of the page alone
    says = "was not complete after"
    with raw_server(answer, limit) as url, refused("timeout", says, kind=ItemFailed):
        fetcher = fetcher_of(settings, url)
        fetcher.get("a", "/page")
    assert fetcher.stats["retries"] == 0
    assert not list((settings.scratch / "http-cache").rglob("*page*"))


def test_a_proxy_does_not_make_an_answer_endless(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = partial(monkeypatch.setattr, connections, "WALL_CLOCK_S", 0.6)  # of the page alone
    with raw_server(drip(OK + b"Connection: close\r\n\r\n", b"x"), limit) as url:
        use_proxy(monkeypatch, url)
        with refused("timeout", kind=ItemFailed):
            Fetcher(settings, {"a": "http://far.example"}, 0.0).get("a", "/page")


@pytest.mark.parametrize(
    "headers",
    [
        b"X: y\r\n" * 101,
        b"X: " + b"y" * 70_000 + b"\r\n",
        b"".join(b"X%d: %s\r\n" % (n, b"y" * 30_000) for n in range(3)),
    ],
    ids=["number", "length", "sum"],
)
def test_headers_have_a_cap(settings: Settings, headers: bytes) -> None:
    with raw_server(says(OK + b"Content-Length: 2\r\n" + headers + b"\r\nok")) as url:
        fetcher = fetcher_of(settings, url)
        with refused("too_large", "the headers of .*/page are"):
            fetcher.get("a", "/page")
    assert fetcher.stats["retries"] == 0


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "network"),
        (b"nonsense\r\n\r\n", "damaged_answer"),
        (OK + b"Content-Length: 99\r\n\r\nshort", "damaged_answer"),
        (OK + CHUNKED + b"ff\r\nshort", "damaged_answer"),
        (OK + CHUNKED + b"zz\r\nx", "damaged_answer"),
        (OK + CHUNKED + b"3\r\nabc\r\n", "damaged_answer"),
        (OK + b"Content-Encoding: gzip\r\n\r\nno gzip", "damaged_answer"),
    ],
    ids=["nothing", "no HTTP", "short", "short chunk", "no chunk", "no last chunk", "gzip"],
)
def test_a_broken_answer_is_never_kept(settings: Settings, raw: bytes, reason: str) -> None:
    with raw_server(says(raw)) as url, refused(reason, "failed 5 times", kind=ItemFailed):
        fetcher_of(settings, url).get("a", "/page")
    assert len(list((settings.scratch / "http-cache").rglob("*.zst"))) == 1  # robots.txt


def test_a_deadline_leaves_nothing_open() -> None:
    here, there = socket.socketpair()
    with here, there:
        deadline = Deadline(60.0)
        with deadline.holding():
            deadline.watch(here)
        assert not deadline.has_passed
        here.sendall(b"x")
        assert there.recv(1) == b"x"
