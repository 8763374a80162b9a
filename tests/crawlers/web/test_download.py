"""Transfers of large files: in pieces, after cuts, within limits of size and of progress."""

import gzip
import random
import socket
import time
import tracemalloc

import pytest

from core.errors import ItemFailed, ItemUnavailable, SourceChanged
from core.settings import Settings
from crawlers.web import connections, download
from crawlers.web.fetcher import Fetcher
from simulator.server import Fault, Request, Response, Web
from tests.crawlers.clock import SimulatedTime
from tests.crawlers.conftest import refused
from tests.crawlers.web.conftest import PageSite
from tests.crawlers.web.test_connections import OK, raw_server

BODY = random.Random(1).randbytes(1_000_000)
CUT_AT = 300_000
DRIP_BYTES = 25_000


@pytest.fixture(autouse=True)
def simulated(clock: SimulatedTime) -> None:
    """Skip all pauses."""


class Files(PageSite):
    """A site that cuts its first answers, and answers requests for a rest of the file."""

    def __init__(self, num_cuts: int = 0) -> None:
        super().__init__()
        self.num_cuts, self.has_ranges, self.etag = num_cuts, True, '"v1"'

    def respond(self, request: Request) -> Response:
        self.seen.append(request)
        asked = request.headers.get("range", "") if self.has_ranges else ""
        start = int(asked.removeprefix("bytes=").removesuffix("-") or 0)
        if start == len(BODY):
            return Response(416, {"Content-Range": f"bytes */{start}"})
        headers = {"ETag": self.etag, "Content-Length": str(len(BODY) - start)}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"
        body = BODY[start:]
        if self.num_cuts:
            self.num_cuts -= 1
            headers["Connection"], body = "close", body[:CUT_AT]
        return Response(206 if asked else 200, headers, body)


@pytest.fixture
def site() -> Files:
    return Files()


@pytest.fixture
def fetcher(settings: Settings, web: Web) -> Fetcher:
    return Fetcher(settings.model_copy(update={"sites": web.urls}), web.urls, 0.0)


def load(fetcher: Fetcher, max_bytes: int = 2**30) -> bytes:
    pieces: list[bytes] = []
    fetcher.download("main", "/file", pieces.append, max_bytes)
    assert max(map(len, pieces)) <= 2**16
    return b"".join(pieces)


def test_a_file_comes_in_pieces_and_is_not_cached(
    fetcher: Fetcher, site: Files, settings: Settings
) -> None:
    for _ in range(2):
        assert load(fetcher) == BODY
    assert len(site.seen) == 2
    assert {request.headers["accept-encoding"] for request in site.seen} == {"identity"}
    assert fetcher.stats["bytes"] >= 2 * len(BODY)
    files = [path for path in settings.scratch.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 10_000
    fetcher.forget(last_only=True)  # there is nothing to forget


@pytest.mark.parametrize("has_ranges", [True, False])
def test_a_cut_transfer_goes_on_where_it_was(
    fetcher: Fetcher, site: Files, has_ranges: bool
) -> None:
    site.num_cuts, site.has_ranges = 2, has_ranges
    assert load(fetcher) == BODY
    asked = [request.headers.get("range") for request in site.seen]
    second = 2 * CUT_AT if has_ranges else CUT_AT  # without ranges, the same part came twice
    assert asked == [None, f"bytes={CUT_AT}-", f"bytes={second}-"]
    assert fetcher.stats["retries"] == 2


def test_a_cut_after_the_last_byte_is_no_fault(fetcher: Fetcher, web: Web) -> None:
    web.faults.append(Fault("truncate", "main", "/file", 1))  # a length above the file's
    assert load(fetcher) == BODY


def test_a_connection_that_is_always_cut_is_given_up(fetcher: Fetcher, site: Files) -> None:
    site.num_cuts, site.has_ranges = 99, False
    with refused("damaged_answer", "failed 5 times", ItemFailed):
        load(fetcher)


def test_many_cuts_are_borne_as_long_as_much_comes(
    fetcher: Fetcher, site: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "LONG_BYTES", 60_000)
    monkeypatch.setattr("tests.crawlers.web.test_download.CUT_AT", 70_000)
    site.num_cuts = 99
    assert load(fetcher) == BODY
    assert len(site.seen) == 15


def test_a_file_that_changes_meanwhile_is_not_mixed(fetcher: Fetcher, site: Files) -> None:
    def change(_: bytes) -> None:
        site.etag = '"v2"'

    site.num_cuts = 1
    with refused("damaged_answer", "was changed during its transfer", ItemFailed):
        fetcher.download("main", "/file", change, 2**30)


def test_a_size_above_the_limit_is_refused_before_and_while_it_comes(
    fetcher: Fetcher, site: Files, settings: Settings
) -> None:
    def never(_: bytes) -> None:
        pytest.fail("the size was announced")

    with refused("too_large", "larger than 999999 bytes"):
        fetcher.download("main", "/file", never, len(BODY) - 1)

    def endless(connected: socket.socket) -> None:
        connected.sendall(OK + b"Connection: close\r\n\r\n")
        while True:
            connected.sendall(bytes(2**16))

    with raw_server(endless) as url, refused("too_large"):
        Fetcher(settings.model_copy(update={"sites": {"main": url}}), {"main": url}, 0).download(
            "main", "/file", lambda _: None, 2**20
        )


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (
            Response(206, {"Content-Range": "bytes 5-9/10"}, b"56789"),
            "bytes from 0 on, got .* 5 on",
        ),
        (Response(206, {"Content-Range": "lines 0-1/2"}, b"56"), "Content-Range of bytes"),
        (Response(206, {}, b"56"), "Content-Range of bytes"),
        (Response(206, {"Content-Range": f"bytes 0-1/{'9' * 5000}"}, b"56"), "Content-Range"),
        (Response(200, {"Content-Encoding": "gzip"}, gzip.compress(b"a")), "Encoding gzip"),
        (Response(416, {"Content-Range": "bytes */7"}), "answered 416"),
        (Response(204), "answered 204"),
    ],
)
def test_an_answer_of_another_kind_is_refused(
    fetcher: Fetcher, site: Files, answer: Response, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "respond", lambda _: answer)
    with pytest.raises(SourceChanged, match=what):
        load(fetcher)


def test_refusals_and_pauses_are_those_of_all_requests(fetcher: Fetcher, web: Web) -> None:
    web.faults.append(Fault("status", "main", "/file", 2, 503))
    assert load(fetcher) == BODY
    web.faults.append(Fault("status", "main", "/file", 1, 404))
    with pytest.raises(ItemUnavailable, match="404"):
        load(fetcher)


def drip(connected: socket.socket) -> None:
    connected.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(BODY))
    for start in range(0, len(BODY), DRIP_BYTES):
        time.sleep(0.1)
        connected.sendall(BODY[start : start + DRIP_BYTES])


def test_time_is_limited_by_progress_and_not_in_total(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(progress_bytes: int) -> bytes:
        monkeypatch.setattr(download, "PROGRESS_BYTES", progress_bytes)
        # A busy machine may pause for a while between two pieces.
        monkeypatch.setattr(connections, "WALL_CLOCK_S", 3.0)
        with raw_server(drip) as url:
            own = settings.model_copy(update={"sites": {"main": url}})
            return load(Fetcher(own, {"main": url}, 0))

    assert len(BODY) / DRIP_BYTES * 0.1 > 3.0
    assert run(DRIP_BYTES) == BODY
    with refused("timeout", "hung up", ItemFailed):
        run(2**30)


def test_memory_does_not_grow_with_the_file(settings: Settings) -> None:
    num_blocks, block = 400, random.Random(2).randbytes(100_000)

    def large(connected: socket.socket) -> None:
        connected.sendall(OK + b"Content-Length: %d\r\n\r\n" % (num_blocks * len(block)))
        for _ in range(num_blocks):
            connected.sendall(block)

    received = 0

    def count(piece: bytes) -> None:
        nonlocal received
        received += len(piece)

    with raw_server(large) as url:
        fetcher = Fetcher(settings.model_copy(update={"sites": {"main": url}}), {"main": url}, 0)
        tracemalloc.start()
        try:
            fetcher.download("main", "/file", count, 2**30)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert received == num_blocks * len(block)
    assert peak < 5_000_000
