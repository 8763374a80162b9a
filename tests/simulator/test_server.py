import http.client
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from core.month import Month
from simulator import server
from simulator.server import Fault, FaultKind, Request, Response, Web, serve, serve_sites
from simulator.world import Story, World
from tests.loopback import wait_for


class EchoSite:
    keys = ("echo", "echo_api")
    robots: str | None = "User-agent: *\nDisallow: /private\n"

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.is_closed = False
        self.answer: Response | None = None

    def respond(self, request: Request) -> Response:
        self.seen.append(request)
        if self.answer:
            return self.answer
        if request.path == "/gone":
            return Response(410, {"X-Why": "moved"}, b"no more")
        return Response(
            200, {"Content-Type": "text/plain; charset=utf-8"}, b"hello " + request.body
        )

    def close(self) -> None:
        self.is_closed = True


class SecondSite(EchoSite):
    keys = ("second",)
    robots = None


@pytest.fixture
def site() -> EchoSite:
    return EchoSite()


@pytest.fixture
def web(site: EchoSite) -> Iterator[Web]:
    with serve_sites([site, SecondSite()]) as running:
        yield running


def connect_raw(web: Web) -> socket.socket:
    parts = urlsplit(web.urls["echo"])
    return socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=300)


def connect(web: Web, key: str = "echo") -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(web.urls[key]).netloc, timeout=300)


def get(web: Web, path: str, key: str = "echo") -> tuple[http.client.HTTPResponse, bytes]:
    with closing(connect(web, key)) as connection:
        connection.request("GET", path)
        with closing(connection.getresponse()) as answer:
            return answer, answer.read()


def test_a_request_reaches_the_site_whole(web: Web, site: EchoSite) -> None:
    connection = connect(web)
    connection.request("POST", "/a%20b?x=1&x=2&empty=", body=b"body", headers={"X-Odd": "yes"})
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"hello body")
    connection.close()
    [request] = site.seen
    assert (request.method, request.path, request.raw_query) == ("POST", "/a%20b", "x=1&x=2&empty=")
    assert request.query == {"x": ["1", "2"], "empty": [""]}
    assert (request.arg("x"), request.arg("empty"), request.arg("none", "-")) == ("2", "", "-")
    assert request.headers["x-odd"] == "yes"
    assert web.requests == [("echo", "POST", "/a%20b?x=1&x=2&empty=")]


def test_an_answer_keeps_its_status_and_headers(web: Web) -> None:
    answer, body = get(web, "/gone")
    assert (answer.status, answer.headers["X-Why"], body) == (410, "moved", b"no more")


def test_a_site_may_send_chunks(web: Web, site: EchoSite) -> None:
    body = b"5\r\nhello\r\n0\r\n\r\n"
    site.answer = Response(200, {"Transfer-Encoding": "chunked"}, body)
    answer, joined = get(web, "/")
    assert (joined, answer.headers["Content-Length"]) == (b"hello", None)


def test_every_key_leads_to_its_own_site(web: Web) -> None:
    assert web.urls["echo"] == web.urls["echo_api"] != web.urls["second"]
    get(web, "/", "second")
    assert [key for key, _, _ in web.requests] == ["second"]


def test_robots_are_answered_by_the_server(web: Web, site: EchoSite) -> None:
    assert get(web, "/robots.txt")[1] == b"User-agent: *\nDisallow: /private\n"
    assert get(web, "/robots.txt", "second")[0].status == 404
    assert site.seen == []


def test_one_connection_serves_many_requests(web: Web) -> None:
    with closing(connect(web)) as connection:
        connection.connect()
        first = connection.sock
        for number in range(3):
            connection.request("POST", "/", body=str(number).encode())
            assert connection.getresponse().read() == f"hello {number}".encode()
            assert connection.sock is first


def test_a_chunked_body_is_joined(web: Web, site: EchoSite) -> None:
    connection = connect(web)
    pieces = [b"one ", b"x" * 70_000, b" two"]
    connection.request("POST", "/", body=iter(pieces), encode_chunked=True)
    assert connection.getresponse().read() == b"hello " + b"".join(pieces)
    connection.request("GET", "/after")  # the chunked body was read completely
    assert connection.getresponse().read() == b"hello "
    connection.close()


def test_chunk_extensions_and_trailers_are_skipped(web: Web, site: EchoSite) -> None:
    with connect_raw(web) as raw:
        raw.sendall(
            b"POST /t HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
            b"\r\n"
            b"5;name=value\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\n"
        )
        assert b"".join(iter(lambda: raw.recv(4096), b"")).endswith(b"hello hello0123456789")
    assert site.seen[0].body == b"hello0123456789"


@pytest.mark.parametrize("header", ["Content-Length: many", "Transfer-Encoding: chunked"])
def test_a_body_of_unknown_length_is_refused(web: Web, site: EchoSite, header: str) -> None:
    with connect_raw(web) as raw:
        raw.sendall(f"POST / HTTP/1.1\r\nHost: h\r\n{header}\r\n\r\nzzz\r\n".encode())
        assert raw.recv(4096).startswith(b"HTTP/1.1 400 ")
    assert site.seen == []


def test_a_fault_passes_after_its_turns_and_keeps_to_its_pattern(web: Web) -> None:
    web.faults.append(Fault("status", "echo", "^/page", times=2, headers={"Retry-After": "7"}))
    assert get(web, "/other")[0].status == 200
    first, body = get(web, "/page?n=1")
    assert (first.status, first.headers["Retry-After"], body) == (503, "7", b"simulated fault")
    assert [get(web, "/page")[0].status for _ in range(2)] == [503, 200]


def test_a_fault_may_name_any_key_of_the_site_and_no_other(web: Web) -> None:
    web.faults += [Fault("status", "echo_api", status=429), Fault("status", "second", status=500)]
    assert [get(web, "/")[0].status for _ in range(2)] == [429, 200]


def test_a_truncated_body_is_shorter_than_announced(web: Web) -> None:
    web.faults.append(Fault("truncate", "echo"))
    with pytest.raises(http.client.IncompleteRead) as caught:
        get(web, "/")
    assert caught.value.partial == b"hello "


def test_a_drip_is_slow_but_true(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DRIP_PAUSE_S", 0.02)
    web.faults.append(Fault("drip", "echo"))
    started = time.monotonic()
    assert get(web, "/")[1] == b"hello "
    assert time.monotonic() - started >= 5 * 0.02


@pytest.mark.parametrize(
    ("kind", "location"), [("redirect_loop", "/a?b=c"), ("redirect_off_host", server.OFF_HOST)]
)
def test_redirects(web: Web, kind: FaultKind, location: str) -> None:
    web.faults += [Fault(kind, "echo"), Fault(kind, "echo", headers={"Location": "/elsewhere"})]
    answer, _ = get(web, "/a?b=c")
    assert (answer.status, answer.headers["Location"]) == (302, location)
    assert get(web, "/a?b=c")[0].headers["Location"] == "/elsewhere"


def test_an_empty_answer_keeps_its_headers(web: Web) -> None:
    web.faults.append(Fault("empty", "echo"))
    answer, body = get(web, "/")
    assert (answer.status, body) == (200, b"")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_a_wrong_charset_lies_about_the_true_body(web: Web) -> None:
    web.faults.append(Fault("wrong_charset", "echo"))
    answer, body = get(web, "/")
    assert (answer.headers["Content-Type"], body) == ("text/html; charset=utf-16", b"hello ")


def test_the_bomb_is_one_valid_gzip_stream(web: Web) -> None:
    web.faults.append(Fault("gzip_bomb", "echo"))
    answer, packed = get(web, "/")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(packed) < 2**20
    unpacker, size = zlib.decompressobj(wbits=31), 0
    while not unpacker.eof:
        block = unpacker.decompress(packed, 2**24)
        packed = unpacker.unconsumed_tail
        assert not any(block[:: 2**12])
        size += len(block)
    assert (size, unpacker.unused_data) == (server.BOMB_BYTES, b"")


def test_clients_are_served_side_by_side(web: Web) -> None:
    fault = Fault("stall", "echo", "^/slow")
    web.faults.append(fault)
    slow = threading.Thread(target=get, args=(web, "/slow"))
    slow.start()
    wait_for(lambda: not fault.times)
    assert get(web, "/quick")[1] == b"hello "
    assert slow.is_alive()
    web.faults.clear()
    slow.join()


def test_a_site_is_closed_and_its_port_freed_at_the_end(site: EchoSite) -> None:
    with serve_sites([site]) as web:
        assert not site.is_closed
        get(web, "/")
    assert site.is_closed
    with pytest.raises(ConnectionRefusedError):
        get(web, "/")


def test_what_runs_is_closed_when_a_later_site_cannot_be_made(site: EchoSite) -> None:
    def sites() -> Iterator[EchoSite]:
        yield site
        raise ValueError("no such world")

    with pytest.raises(ValueError, match="no such world"), serve_sites(sites()):
        pytest.fail("a web with a missing site must not run")
    assert site.is_closed


def test_a_client_that_hangs_up_is_no_error(web: Web, capfd: pytest.CaptureFixture[str]) -> None:
    web.faults.append(Fault("gzip_bomb", "echo"))
    with closing(connect(web)) as connection:
        connection.request("GET", "/")
        connection.getresponse().close()
    assert get(web, "/")[0].status == 200
    assert capfd.readouterr().err == ""


class UntouchedWorld(World):
    def story(self, month: Month, site: str, number: int) -> Story:
        raise AssertionError(f"{site} was made before it was asked for")

    def module(self, month: Month, site: str, number: int) -> str:
        raise AssertionError(f"{site} was made before it was asked for")


def test_a_site_is_made_when_it_is_first_asked_for() -> None:
    with serve(UntouchedWorld(seed=1, first=Month("2017-01"), last=Month("2024-12"))) as web:
        assert len(web.urls) >= 4
