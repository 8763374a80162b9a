import contextlib
import http.client
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn

from core.storage.store import Store
from extras.serve_site import limits
from extras.serve_site.limits import LimitedProtocol, SparseLog
from extras.serve_site.server import HEADERS, report_server
from tests.loopback import free_port, wait_for
from tests.tiers import needs_extra

ROOT = Path(__file__).resolve().parents[3]
TIDEMARK = Path(sys.executable).parent / "tidemark"
PAGE = "<!doctype html><title>page</title>"
BIG = bytes(range(256)) * 4096 * 24  # 24 MiB: more than sockets hold


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "report" / "charts").mkdir(parents=True)
    (home / "report" / "index.html").write_text(PAGE)
    (home / "report" / "charts" / "one.svg").write_text("<svg/>")
    (home / "report" / ".tmp-index.html-x").write_text("half a page")
    (home / "secret.txt").write_text("not for all")
    (home / "warehouse.duckdb").write_bytes(BIG)
    (home / "releases" / "2024-05").mkdir(parents=True)
    (home / "releases" / "2024-05" / "SHA256SUMS").write_text("digest  warehouse.duckdb\n")
    (home / "releases" / "2024-05" / ".part").write_text("half a file")
    return home


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    processes = []

    def serve(home: str, **environment: str) -> str:
        port = str(free_port())
        command: list[str | Path] = [
            TIDEMARK,
            "--home",
            home,
            "serve",
            "--port",
            port,
            "--name",
            "report.example.org",
        ]
        clean = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}
        processes.append(subprocess.Popen(command, env={**clean, **environment}))
        url = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            assert processes[-1].poll() is None, "the server has ended"
            with contextlib.suppress(requests.RequestException):
                return requests.get(f"{url}/live", timeout=5).text == "alive\n"
            return False

        wait_for(answers, pause_s=0.1)
        return url

    yield serve
    for process in processes:
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) in {0, -signal.SIGTERM}


@pytest.fixture(scope="module")
def url(home: Path, serve: Any) -> str:
    return serve(str(home))


def get(url: str, **headers: str) -> requests.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return requests.get(url, headers=named, timeout=300)


@pytest.mark.smoke
def test_the_page_and_what_is_beside_it_come_with_headers_that_keep_browsers_safe(url: str) -> None:
    page = get(f"{url}/")
    chart = get(f"{url}/charts/one.svg")
    assert (page.text, page.headers["Content-Type"]) == (PAGE, "text/html; charset=utf-8")
    assert (chart.text, chart.headers["Content-Type"]) == ("<svg/>", "image/svg+xml")
    for answer in (page, chart, get(f"{url}/nothing"), get(f"{url}/health")):
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "server" not in answer.headers


def test_the_policy_allows_all_that_the_page_allows_itself() -> None:
    template = (ROOT / "reports" / "site" / "templates" / "base.html.j2").read_text(
        encoding="utf-8"
    )
    own = re.search(r'Content-Security-Policy" content="([^"]+)"', template)
    assert own is not None

    def policy(text: str) -> dict[str, set[str]]:
        return {d.split()[0]: set(d.split()[1:]) for d in text.split(";")}

    ours = policy(HEADERS["Content-Security-Policy"])
    for directive, sources in policy(own[1]).items():
        assert sources <= ours.get(directive, ours["default-src"]), directive


@pytest.mark.parametrize(
    ("name", "status"),
    [("localhost:8080", 200), ("127.0.0.1", 200), ("report.example.org", 200), ("[::1]:1", 200),
     ("REPORT.example.org:443", 200), ("evil.example", 400), ("127.0.0.1.evil.example", 400),
     ("", 400), ("a" * 60_000, 400)],
)  # fmt: skip
def test_a_page_that_names_this_machine_as_it_likes_gets_nothing(
    url: str, name: str, status: int
) -> None:
    assert get(f"{url}/", Host=name).status_code == status


@pytest.fixture
def limited(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[uvicorn.Server]:
    """A server in this process with short limits."""
    for name, value in {"HEAD_S": 0.2, "STALL_S": 0.2, "MAX_CONNECTIONS": 2}.items():
        monkeypatch.setattr(limits, name, value)
    app = report_server(Store(str(home)))
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=LimitedProtocol, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started)
    yield server
    server.should_exit = True
    thread.join()


def connect(server: uvicorn.Server, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(
        server.servers[0].sockets[0].getsockname(), timeout=300, source_address=(address, 0)
    )


def test_a_client_that_never_ends_its_request_is_cut_off(limited: uvicorn.Server) -> None:
    with connect(limited) as silent, connect(limited) as slow:
        with contextlib.suppress(ConnectionError):  # a busy machine sends after the limit
            slow.sendall(b"GET / HTTP/1.1\r\nHost: localh")
        for client in (silent, slow):
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1000) == b""


def test_a_client_that_reads_nothing_is_cut_off(
    limited: uvicorn.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_S", 600)
    with connect(limited) as client:
        client.sendall(b"GET /warehouse.duckdb HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):  # a busy machine reads after the limit
            assert client.recv(1) == b"H"
        wait_for(lambda: not limited.server_state.connections)
        assert limited.server_state.total_requests == 0  # of complete responses


def test_connections_above_the_limit_are_closed(
    limited: uvicorn.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_S", 600)
    with connect(limited) as first, connect(limited), connect(limited):
        with contextlib.suppress(ConnectionResetError):
            assert first.recv(1000) == b""
        wait_for(lambda: len(limited.server_state.connections) == 2)


def test_requests_that_never_end_keep_out_no_other_client(
    limited: uvicorn.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_S", 600)
    with connect(limited) as one, connect(limited) as two, connect(limited) as other:
        for each in (one, two):
            with contextlib.suppress(ConnectionError):
                each.sendall(b"GET / HTTP/1.1\r\nHost: localh")
        other.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert other.recv(1000).startswith(b"HTTP/1.1 200")


def test_downloads_of_one_address_keep_out_no_other_client(
    limited: uvicorn.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_S", 600)
    monkeypatch.setattr(limits, "STALL_S", 600)
    with connect(limited) as one, connect(limited) as two:
        for each in (one, two):
            each.sendall(b"GET /warehouse.duckdb HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert each.recv(1) == b"H"
        with connect(limited, "127.0.0.2") as other:
            other.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert other.recv(1000).startswith(b"HTTP/1.1 200")
            wait_for(lambda: len(limited.server_state.connections) == 2)


def test_a_request_that_breaks_the_protocol_leaves_no_traceback(
    limited: uvicorn.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_S", 600)
    records: list[logging.LogRecord] = []
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "handle", records.append)
    with connect(limited) as client:
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 400")
        wait_for(lambda: not limited.server_state.tasks)
    assert [record.getMessage() for record in records if record.exc_info] == []


def test_the_log_has_few_lines_a_minute() -> None:
    record = logging.LogRecord("name", logging.ERROR, "", 0, "text", (), None)
    log = SparseLog()
    assert 10 <= sum(log.filter(record) for _ in range(1000)) <= 20


PATHS = [
    "/secret.txt", "/../secret.txt", "/charts/../../secret.txt", "/%2e%2e/secret.txt",
    "/..%2fsecret.txt", "//etc/passwd", "/charts", "/charts/", "/index.html/",
    "/.tmp-index.html-x", "/nul%00", "/%ff", "/a\\..\\secret.txt", "/corpus", "/docs",
    pytest.param("/" + "a" * 60_000, id="long"),
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_nothing_else_is_served(path: str, url: str) -> None:
    """Sent without a library, which would normalise the path."""
    address = url.removeprefix("http://")
    with closing(http.client.HTTPConnection(address, timeout=300)) as connection:
        connection.putrequest("GET", path, skip_host=False)
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (404, b"not found\n")


def test_files_of_releases_are_served(url: str) -> None:
    answer = get(f"{url}/releases/2024-05/SHA256SUMS")
    assert (answer.status_code, answer.text) == (200, "digest  warehouse.duckdb\n")
    for path in ("2024-05/.part", "2024-05/", "2024-05/none", "../secret.txt", "..%2fsecret.txt"):
        assert get(f"{url}/releases/{path}").status_code == 404


def test_a_link_out_of_the_report_or_a_pipe_is_not_served(home: Path, url: str) -> None:
    out = home / "report" / "out.html"
    pipe = home / "report" / "pipe.html"
    out.symlink_to("/etc/passwd")
    os.mkfifo(pipe)
    try:
        assert [get(f"{url}/{each.name}").status_code for each in (out, pipe)] == [404, 404]
    finally:
        out.unlink()
        pipe.unlink()


def test_links_and_pipes_of_releases_and_the_snapshot_are_not_served(home: Path, url: str) -> None:
    folder = home / "releases" / "2024-05"
    out = folder / "out.txt"
    pipe = folder / "pipe"
    month = home / "releases" / "2024-06"
    out.symlink_to("/etc/passwd")
    os.mkfifo(pipe)
    month.symlink_to("/etc")
    try:
        for path in ("2024-05/out.txt", "2024-05/pipe", "2024-06/passwd"):
            assert get(f"{url}/releases/{path}").status_code == 404
    finally:
        for each in (out, pipe, month):
            each.unlink()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["", "warehouse.duckdb", "health"])
def test_nothing_can_be_written(method: str, path: str, url: str) -> None:
    answer = requests.request(method, f"{url}/{path}", timeout=300)
    assert answer.status_code == 405
    assert {*answer.headers["Allow"].split(", ")} == {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("bytes=0-99", 0, 100), ("bytes=100-", 100, None), ("bytes=-100", -100, None),
     (f"bytes={len(BIG) - 1}-{len(BIG) + 5}", -1, None), (f"bytes=-{2 * len(BIG)}", 0, None)],
)  # fmt: skip
def test_a_range_of_the_snapshot(asked: str, start: int, end: int | None, url: str) -> None:
    answer = get(f"{url}/warehouse.duckdb", Range=asked)
    expected = BIG[start:end]
    first = start % len(BIG)
    assert (answer.status_code, answer.content == expected) == (206, True)
    last = first + len(expected) - 1
    assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{len(BIG)}"


@pytest.mark.parametrize("asked", ["bytes=5-4", f"bytes={len(BIG)}-", "bytes=-0"])
def test_a_range_that_is_not_there(asked: str, url: str) -> None:
    answer = get(f"{url}/warehouse.duckdb", Range=asked)
    assert (answer.status_code, answer.content) == (416, b"")
    assert answer.headers["Content-Range"] == f"bytes */{len(BIG)}"


def test_a_range_of_another_kind_and_a_head_give_the_whole(url: str) -> None:
    for asked in ("bytes=0-1,5-6", "lines=0-9", "bytes=a-b", "bytes=" + "9" * 5000 + "-"):
        answer = get(f"{url}/charts/one.svg", Range=asked)
        assert (answer.status_code, answer.text) == (200, "<svg/>")
    answer = requests.head(f"{url}/warehouse.duckdb", headers={"Range": "bytes=0-9"}, timeout=300)
    assert (answer.status_code, answer.headers["Content-Length"]) == (200, str(len(BIG)))
    assert answer.headers["Accept-Ranges"] == "bytes"


def test_who_has_it_already_gets_nothing_again(url: str) -> None:
    etag = get(f"{url}/").headers["ETag"]
    for known in (etag, f'W/{etag}, "other"', "*"):
        answer = get(f"{url}/", If_None_Match=known)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["ETag"] == etag
    assert get(f"{url}/", If_None_Match='"other"').status_code == 200


def test_publishing_in_the_middle_of_a_download_does_not_mix_two_snapshots(
    home: Path, url: str
) -> None:
    address = f"{url}/warehouse.duckdb"
    former = home / "warehouse.duckdb"
    with requests.get(address, stream=True, timeout=300) as answer:
        blocks = answer.iter_content(2**20)
        got = next(blocks)
        etag = answer.headers["ETag"]
        new = home / ".tmp-warehouse.duckdb-new"
        new.write_bytes(BIG[::-1])
        new.replace(former)
        got += b"".join(blocks)
    assert got == BIG
    resumed = get(address, Range="bytes=1000-", If_Range=etag)
    assert (resumed.status_code, resumed.content == BIG[::-1]) == (200, True)
    resumed = get(address, Range="bytes=1000-", If_Range=resumed.headers["ETag"])
    assert (resumed.status_code, resumed.content == BIG[::-1][1000:]) == (206, True)
    former.write_bytes(BIG)


def test_health_is_that_of_the_report(home: Path, url: str) -> None:
    page = home / "report" / "index.html"
    assert get(f"{url}/health").status_code == 200
    page.unlink()
    try:
        assert (get(f"{url}/health").status_code, get(f"{url}/").status_code) == (503, 404)
        assert get(f"{url}/live").status_code == 200
    finally:
        page.write_text(PAGE)
    assert get(f"{url}/health").status_code == 200


def test_a_client_that_goes_away_leaves_no_file_open(home: Path, url: str) -> None:
    """Checked in the server process: it has the snapshot open while sending."""
    port = int(url.rpartition(":")[2])
    with requests.get(f"{url}/warehouse.duckdb", stream=True, timeout=300) as answer:
        next(answer.iter_content(1000))
        assert _open_snapshots(port) == 1
    wait_for(lambda: not _open_snapshots(port))


def _open_snapshots(port: int) -> int:
    import psutil

    (server,) = {
        c.pid
        for c in psutil.net_connections("tcp4")
        if c.laddr and c.laddr.port == port and c.status == "LISTEN"
    }
    return sum("warehouse.duckdb" in file.path for file in psutil.Process(server).open_files())


@needs_extra("object_store")
def test_a_report_on_an_object_store(serve: Any, s3: dict[str, str]) -> None:
    import fsspec

    options = {"endpoint_url": s3["AWS_ENDPOINT_URL"], "key": "test", "secret": "test"}
    store = fsspec.filesystem("s3", **options, use_listings_cache=False)
    store.mkdir("pages")
    store.pipe("pages/home/report/index.html", PAGE.encode())
    store.pipe("pages/home/warehouse.duckdb", BIG)
    url = serve("s3://pages/home", **s3)
    page = get(f"{url}/")
    assert page.text == PAGE
    assert get(f"{url}/", If_None_Match=page.headers["ETag"]).status_code == 304
    assert get(f"{url}/nothing").status_code == 404
    part = get(f"{url}/warehouse.duckdb", Range="bytes=3000000-9000000")
    assert part.content == BIG[3000000:9000001]
    with requests.get(f"{url}/warehouse.duckdb", stream=True, timeout=300) as answer:
        blocks = answer.iter_content(2**20)
        got = next(blocks)
        store.pipe("pages/home/warehouse.duckdb", BIG[::-1])
        with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
            got += b"".join(blocks)
    assert BIG.startswith(got)
    assert get(f"{url}/warehouse.duckdb", If_Range=answer.headers["ETag"]).content == BIG[::-1]


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[dict[str, str]]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    region = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_DEFAULT_REGION": "us-east-1"}
    yield region | dict.fromkeys(names, "test")
    server.stop()
