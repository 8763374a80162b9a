"""Requests for a part of a file: what is asked, what is taken, what is refused, what is cached."""

import gzip
from collections.abc import Callable

import pytest

from core.errors import ItemFailed, SourceChanged, UsageError
from core.settings import Settings
from crawlers.web.fetcher import Fetcher
from crawlers.web.ranges import size_of_file
from simulator.server import Fault, Request, Response, Web, ranged
from tests.crawlers.clock import SimulatedTime
from tests.crawlers.conftest import refused
from tests.crawlers.web.conftest import PageSite

BODY = bytes(range(256)) * 4
Alter = Callable[[Response], Response]


class Files(PageSite):
    """A site with one file, whose parts it sends; ``alter`` changes its responses."""

    def __init__(self) -> None:
        super().__init__()
        self.alter: Alter = lambda response: response
        self.etag = ""

    def respond(self, request: Request) -> Response:
        self.seen.append(request)
        if self.etag and request.headers.get("if-none-match") == self.etag:
            return Response(304, {"ETag": self.etag})
        return self.alter(ranged(BODY, {"ETag": self.etag} if self.etag else {}, request))


def with_range(stated: str, body: bytes = BODY[10:20]) -> Alter:
    return lambda _: Response(206, {"Content-Range": stated}, body)


@pytest.fixture(autouse=True)
def simulated(clock: SimulatedTime) -> None:
    """Skip all pauses."""


@pytest.fixture
def site() -> Files:
    return Files()


@pytest.fixture
def own(settings: Settings, web: Web) -> Settings:
    return settings.model_copy(update={"sites": web.urls})


@pytest.fixture
def fetcher(own: Settings, web: Web) -> Fetcher:
    return Fetcher(own, web.urls, 0.0)


def test_a_part_is_asked_for_and_taken(fetcher: Fetcher, site: Files) -> None:
    part = fetcher.get("main", "/file", span=(10, 19))
    assert part.body == BODY[10:20]
    assert size_of_file(part) == len(BODY)
    assert site.seen[-1].headers["range"] == "bytes=10-19"
    assert site.seen[-1].headers["accept-encoding"] == "identity"
    assert fetcher.stats["2xx"] == 1 and fetcher.stats["4xx"] == 1  # no robots.txt


def test_a_file_may_end_before_the_part_does(fetcher: Fetcher) -> None:
    assert fetcher.get("main", "/file", span=(1000, 5000)).body == BODY[1000:]


def test_a_part_behind_the_end_is_a_change_of_the_site(fetcher: Fetcher) -> None:
    with pytest.raises(SourceChanged, match="answered 416"):
        fetcher.get("main", "/file", span=(len(BODY), len(BODY) + 9))


@pytest.mark.parametrize("span", [(5, 4), (-1, 4)])
def test_no_part_is_no_request(fetcher: Fetcher, site: Files, span: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="no part of a file"):
        fetcher.get("main", "/file", span=span)
    assert site.seen == []


@pytest.mark.parametrize(
    "alter",
    [
        lambda response: Response(200, {}, BODY),  # the whole file
        lambda response: Response(206, {}, response.body),
        with_range("bytes 11-20/1024"),
        with_range("bytes 10-20/1024", BODY[10:21]),
        with_range("bytes 10-18/1024", BODY[10:19]),
        with_range("bytes 10-19/15"),  # beyond the end that it states
        with_range("bytes */1024"),
        with_range("items 10-19/1024"),
        with_range("bytes 10-19/1024", BODY[10:19]),  # fewer bytes than stated
        with_range("bytes 10-19/1024", BODY),
        lambda response: Response(
            206, {**response.headers, "Content-Encoding": "gzip"}, response.body
        ),
    ],
    ids=[
        "whole", "unstated", "shifted", "longer", "shorter", "beyond", "none", "unit", "cut",
        "more", "packed",
    ],
)  # fmt: skip
def test_what_is_not_this_part_is_tried_again_and_refused(
    fetcher: Fetcher, site: Files, alter: Alter
) -> None:
    site.alter = alter
    with refused("damaged_answer", "asked for bytes 10-19", ItemFailed):
        fetcher.get("main", "/file", span=(10, 19))
    assert len(site.seen) == 5
    site.alter = lambda response: response
    assert fetcher.get("main", "/file", span=(10, 19)).body == BODY[10:20]  # nothing was cached


def test_an_unknown_size_of_the_file_is_no_fault(fetcher: Fetcher, site: Files) -> None:
    site.alter = with_range("bytes 10-19/*")
    part = fetcher.get("main", "/file", span=(10, 19))
    assert part.body == BODY[10:20] and size_of_file(part) is None


def test_a_fault_that_passes_changes_nothing(fetcher: Fetcher, web: Web) -> None:
    web.faults.append(Fault("status", "main", "^/file", 1, 200, {}, b"<html>Busy</html>"))
    web.faults.append(Fault("truncate", "main", "^/file", 1))
    assert fetcher.get("main", "/file", span=(10, 19)).body == BODY[10:20]
    assert fetcher.stats["retries"] == 2


def test_a_packed_file_is_not_unpacked(fetcher: Fetcher, site: Files) -> None:
    body = gzip.compress(b"a record")
    kind = {"Content-Type": "text/plain", "Content-Range": f"bytes 0-{len(body) - 1}/9999"}
    site.alter = lambda _: Response(206, kind, body)
    assert fetcher.get("main", "/file", span=(0, len(body) - 1)).body == body


def test_parts_and_the_whole_are_cached_apart(fetcher: Fetcher, site: Files) -> None:
    for _ in range(2):
        assert fetcher.get("main", "/file", span=(0, 9)).body == BODY[:10]
        assert fetcher.get("main", "/file", span=(10, 19)).body == BODY[10:20]
        assert fetcher.get("main", "/file").body == BODY
    assert [each.headers.get("range") for each in site.seen] == ["bytes=0-9", "bytes=10-19", None]
    assert fetcher.stats["cached"] == 3


def test_a_cached_part_is_confirmed(own: Settings, web: Web, site: Files) -> None:
    site.etag = '"v1"'
    for _ in range(2):
        part = Fetcher(own, web.urls, 0.0, revalidates=True).get("main", "/file", span=(10, 19))
        assert part.body == BODY[10:20] and size_of_file(part) == len(BODY)
    assert site.seen[-1].headers["if-none-match"] == '"v1"'
    assert site.seen[-1].headers["range"] == "bytes=10-19"


def test_a_redirect_keeps_the_part(fetcher: Fetcher, web: Web, site: Files) -> None:
    moved = {"Location": f"{web.urls['main']}/there"}
    web.faults.append(Fault("status", "main", "^/file", 1, 302, moved))
    assert fetcher.get("main", "/file", span=(10, 19)).body == BODY[10:20]
    assert site.seen[-1].path == "/there"


def test_robots_and_pace_hold_for_parts(
    own: Settings, web: Web, site: Files, clock: SimulatedTime
) -> None:
    site.robots = "User-agent: *\nDisallow: /closed\n"
    site.now = clock.monotonic
    fetcher = Fetcher(own.model_copy(update={"request_interval_s": 2.0}), web.urls, 0.0)
    with refused("robots"):
        fetcher.get("main", "/closed", span=(0, 9))
    for first in (0, 10, 20):
        fetcher.get("main", "/file", span=(first, first + 9))
    assert fetcher.stats["wait_ms"] >= 3 * 2000
