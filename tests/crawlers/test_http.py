from __future__ import annotations

import contextlib
import datetime as dt
import email.utils
import gzip
import logging
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceChanged,
    SourceUnavailable,
    UnknownName,
    UsageError,
)
from core.settings import Settings
from crawlers import circuit, connections, pacing, robots, transfer
from crawlers.api_rules import ApiRules
from crawlers.contract import FAIL_REASONS
from crawlers.http import Fetched, Fetcher
from simulator import faults, server
from simulator.server import Fault, Request, Response, Web, serve_sites

SECRET = "Bearer s3cr3t-t0ken"
NOT_THERE = "http://127.0.0.1:9"  # discard: nobody listens


class PageSite:
    """Answers by a table from path to response; remembers what it was asked."""

    robots: str | None = None

    def __init__(self, key: str = "main") -> None:
        self.keys = (key,)
        self.pages: dict[str, Response] = {"/page": Response(body=b"hello")}
        self.seen: list[Request] = []
        self.seen_at: list[float] = []
        self.threads: set[str] = set()

    def respond(self, request: Request) -> Response:
        self.seen.append(request)
        self.seen_at.append(time.monotonic())
        self.threads.add(threading.current_thread().name)
        return self.pages.get(request.path, Response(404))


class OtherSite(PageSite):
    def __init__(self) -> None:
        super().__init__("other")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the pauses between tries short; what decides on them is the real thing."""
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture
def site() -> PageSite:
    return PageSite()


@pytest.fixture
def other() -> OtherSite:
    return OtherSite()


@pytest.fixture
def web(site: PageSite, other: OtherSite) -> Iterator[Web]:
    with serve_sites([site, other]) as running:
        yield running


Make = Callable[..., Fetcher]


@pytest.fixture
def make(settings: Settings, web: Web) -> Make:
    """Make fetchers that know the main site only."""

    def make_fetcher(interval_s: float = 0.0, **options: Any) -> Fetcher:
        own = settings.model_copy(update={"request_interval_s": None, "sites": web.urls})
        return Fetcher(own, {"main": web.urls["main"]}, interval_s, **options)

    return make_fetcher


def pages_asked(web: Web) -> list[str]:
    return [target for _, _, target in web.requests if target != "/robots.txt"]


# What is asked for, and what comes back


def test_a_page_comes_with_all_that_is_known_of_it(make: Make, web: Web, site: PageSite) -> None:
    site.pages["/page"] = Response(200, {"X-Rate": "9", "Set-Cookie": "id=1"}, b"hello")
    before = dt.datetime.now(dt.UTC)
    page = make().get("main", "/page")
    assert (page.url, page.body) == (f"{web.urls['main']}/page", b"hello")
    assert page.headers["x-rate"] == "9"
    assert "set-cookie" not in page.headers
    assert before <= page.retrieved_at <= dt.datetime.now(dt.UTC)
    assert page.retrieved_at.tzinfo is dt.UTC


def test_parameters_are_sent_in_sorted_order(make: Make, web: Web) -> None:
    make().get("main", "/page?z=0", {"titles": "A & B|Č", "limit": 5, "action": "query"})
    assert pages_asked(web) == ["/page?z=0&action=query&limit=5&titles=A+%26+B%7C%C4%8C"]


def test_the_request_says_who_asks(make: Make, site: PageSite, settings: Settings) -> None:
    make().get("main", "/page", headers={"accept": "text/x-tex", "User-Agent": "Mozilla/5.0"})
    [request] = site.seen
    assert request.headers["user-agent"].startswith("tidemark/")
    assert f"(+{settings.contact}) python-requests/" in request.headers["user-agent"]
    assert request.headers["accept"] == "text/x-tex"
    assert request.headers["accept-encoding"] == "gzip"


def test_settings_replace_the_address_and_the_interval(settings: Settings, web: Web) -> None:
    own = settings.model_copy(update={"sites": {"main": web.urls["main"] + "/"}})
    fetcher = Fetcher(own, {"main": "https://example.org", "api": "https://api.example.org/"}, 60.0)
    assert fetcher.base_url("main") == web.urls["main"]
    assert fetcher.base_url("api") == "https://api.example.org"
    started = time.monotonic()
    for _ in range(3):
        fetcher.get("main", "/page")
    assert time.monotonic() - started < 30  # request_interval_s of the settings is 0


def test_an_unknown_site_is_named(make: Make) -> None:
    with pytest.raises(UnknownName, match="unknown site 'mian'; known: main"):
        make().get("mian", "/")


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://host", "http://u:p@host", "http://[::1"])
def test_an_address_that_is_none_is_refused_at_once(settings: Settings, url: str) -> None:
    own = settings.model_copy(update={"sites": {"main": url}})
    with pytest.raises(UsageError, match="TIDEMARK_SITES__MAIN"):
        Fetcher(own, {"main": "https://example.org"}, 1.0)


def test_json(make: Make, site: PageSite) -> None:
    site.pages |= {"/json": Response(body=b'{"a": [1]}'), "/deep": Response(body=b"[" * 200_000)}
    assert make().get("main", "/json").json() == {"a": [1]}
    for path in ("/page", "/deep"):
        with pytest.raises(SourceChanged, match="expected JSON"):
            make().get("main", path).json()


def test_a_path_no_url_can_be_made_of(make: Make) -> None:
    with pytest.raises(SourceChanged, match="makes no URL"):
        make().get("main", "/page", {"title": "\ud800"})


@pytest.mark.parametrize("path", [".evil.example/x", "@evil.example/x", ":81/x"])
def test_a_path_cannot_lead_to_another_host(make: Make, path: str) -> None:
    with pytest.raises((AccessRefused, SourceChanged)):
        make().get("main", path)


# Secrets


@pytest.mark.parametrize("name", ["Authorization", "X-Token"])
def test_a_token_reaches_the_site_and_nothing_else(
    make: Make,
    web: Web,
    site: PageSite,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    web.faults.append(Fault("status", "main", "^/page", times=1))
    fetcher = make()
    fetcher.get("main", "/page", headers={name: SECRET})
    assert [request.headers[name.lower()] for request in site.seen] == [SECRET]
    with pytest.raises(ItemUnavailable) as caught:
        fetcher.get("main", "/none", headers={name: SECRET})
    files = [path.read_bytes() for path in settings.scratch.rglob("*") if path.is_file()]
    assert files
    assert SECRET not in f"{caught.value} {caplog.text} {fetcher.stats}"
    assert not any(SECRET.encode() in file for file in files)
    # Without the token it is the same page.
    assert make().get("main", "/page").body == b"hello"
    assert len(site.seen) == 2


def test_a_redirect_takes_no_token_to_another_host(
    make: Make, web: Web, site: PageSite, other: OtherSite
) -> None:
    site.pages["/old"] = Response(302, {"Location": f"{web.urls['other']}/page"})
    site.pages["/near"] = Response(302, {"Location": "/page"})
    fetcher = make(redirect_hosts=[web.urls["other"].removeprefix("http://")])
    for path in ("/old", "/near"):
        fetcher.get("main", path, headers={"Authorization": SECRET})
    assert [request.headers.get("authorization") for request in site.seen] == [SECRET] * 3
    assert [request.headers.get("authorization") for request in other.seen] == [None]


def test_a_token_that_breaks_its_line_is_refused_unseen(make: Make, web: Web) -> None:
    for value in ("s3cr3t\n", "s3cr3t\r\nX-Evil: 1", "s3cr3té"):
        with pytest.raises(UsageError, match="Authorization") as caught:
            make().get("main", "/page", headers={"Authorization": value})
        assert "s3cr3t" not in str(caught.value)
    assert web.requests == []


def test_a_contact_that_breaks_its_line_is_refused(settings: Settings) -> None:
    with pytest.raises(UsageError, match="TIDEMARK_CONTACT"):
        Fetcher(settings.model_copy(update={"contact": "me\nX: y"}), {}, 1.0)


def test_cookies_are_not_sent_back(make: Make, site: PageSite) -> None:
    site.pages["/page"] = Response(200, {"Set-Cookie": "id=1; Path=/"}, b"hello")
    fetcher = make(use_cache=False)
    for _ in range(2):
        fetcher.get("main", "/page")
    assert ["cookie" in request.headers for request in site.seen] == [False, False]


# robots.txt


def test_robots_decide_by_our_own_name(make: Make, web: Web, site: PageSite) -> None:
    site.robots = "User-agent: tidemark\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n"
    site.pages["/private/x"] = Response(body=b"no")
    fetcher = make()
    assert fetcher.get("main", "/page").body == b"hello"
    with pytest.raises(ItemUnavailable, match="disallows .*/private/x for tidemark") as caught:
        fetcher.get("main", "/private/x")
    assert caught.value.reason == "robots"
    assert pages_asked(web) == ["/page"]


def test_an_exempt_path_is_exempt_exactly(make: Make, web: Web, site: PageSite) -> None:
    site.robots = "User-agent: *\nDisallow: /w/\nCrawl-delay: 0.2\n"
    site.pages |= {"/w/api.php": Response(body=b"{}"), "/w/api.php/x": Response(body=b"no")}
    fetcher = make(robots_exempt_paths=["/w/api.php"])
    for number in range(2):
        assert fetcher.get("main", "/w/api.php", {"n": number}).body == b"{}"
    assert min(gaps(site)) >= 0.1  # what robots.txt says of the pace still holds
    for path in ("/w/api.php/x", "/w/index.php", "/w/%61pi.php/../index.php"):
        with pytest.raises(ItemUnavailable) as caught:
            fetcher.get("main", path)
        assert caught.value.reason == "robots"
    with pytest.raises(ItemUnavailable):
        make(use_cache=False).get("main", "/w/api.php")
    assert len(pages_asked(web)) == 2


def test_robots_are_asked_once_a_day(make: Make, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = make(use_cache=False)
    for _ in range(2):
        fetcher.get("main", "/page")
    make().get("main", "/page")  # reads and keeps it on disk
    make().get("main", "/page?again")
    asked = [target for _, _, target in web.requests]
    assert asked == ["/robots.txt", "/page", "/page", "/robots.txt", "/page", "/page?again"]
    monkeypatch.setattr(robots, "MAX_AGE", dt.timedelta(0))
    make().get("main", "/page?tomorrow")
    fetcher.get("main", "/page?tomorrow")
    assert [target for _, _, target in web.requests][6:] == ["/robots.txt", "/page?tomorrow"] * 2


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_no_robots_allow_everything(make: Make, web: Web, status: int) -> None:
    web.faults.append(Fault("status", "main", "robots", status=status))
    assert make().get("main", "/page").body == b"hello"


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", "main", "robots", 99, 500),
        Fault("status", "main", "robots", 99, 429),
        Fault("status", "main", "robots", 99, 505),
        Fault("disconnect", "main", "robots", 99),
        Fault("redirect_loop", "main", "robots", 99),
        Fault("redirect_off_host", "main", "robots", 99),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}",
)
def test_unreadable_robots_refuse_everything(make: Make, web: Web, fault: Fault) -> None:
    web.faults.append(fault)
    with pytest.raises(AccessRefused, match=r"cannot read .*/robots\.txt"):
        make().get("main", "/page")
    assert pages_asked(web) == []


def test_robots_that_recover_are_obeyed(make: Make, web: Web, site: PageSite) -> None:
    site.robots = "User-agent: *\nDisallow: /\n"
    web.faults.append(Fault("status", "main", "robots", times=2))
    with pytest.raises(ItemUnavailable):
        make().get("main", "/page")


def test_a_host_that_is_down_is_refused_clearly(settings: Settings) -> None:
    with pytest.raises(AccessRefused, match=r"cannot read http://127.0.0.1:9/robots\.txt"):
        own = settings.model_copy(update={"sites": {"main": NOT_THERE}})
        Fetcher(own, {"main": NOT_THERE}, 0.0).get("main", "/page")


def test_a_redirects_target_has_robots_too(
    make: Make, web: Web, site: PageSite, other: OtherSite
) -> None:
    other.robots = "User-agent: *\nDisallow: /page\n"
    site.pages["/old"] = Response(301, {"Location": f"{web.urls['other']}/page"})
    with pytest.raises(ItemUnavailable) as caught:
        make(redirect_hosts=[web.urls["other"].removeprefix("http://")]).get("main", "/old")
    assert caught.value.reason == "robots"
    assert other.seen == []


def test_robots_behind_redirects_are_obeyed(make: Make, web: Web, site: PageSite) -> None:
    site.pages["/rules"] = Response(body=b"User-agent: *\nDisallow: /page\n")
    web.faults.append(Fault("status", "main", "^/robots.txt", 1, 301, {"Location": "/rules"}))
    with pytest.raises(ItemUnavailable) as caught:
        make().get("main", "/page")
    assert caught.value.reason == "robots"


def test_robots_may_begin_with_a_byte_order_mark(make: Make, site: PageSite) -> None:
    site.robots = "\ufeffUser-agent: *\nDisallow: /page\n"
    with pytest.raises(ItemUnavailable):
        make().get("main", "/page")


@pytest.mark.parametrize("packing", [None, "gzip"])
def test_of_endless_robots_the_beginning_counts(
    make: Make, web: Web, site: PageSite, packing: str | None
) -> None:
    """RFC 9309, 2.5: at least 500 KiB are read; a rule that is cut in two is none."""
    start = b"User-agent: *\nDisallow: /first\n" + b"# more to come\n" * 35_000
    rules = start + b"Disallow: /late\n"
    assert len(start) > 500 * 2**10
    rules = rules.ljust(robots.MAX_BYTES - 11, b"\n") + b"Disallow: /page\n" + bytes(2**20)
    body = gzip.compress(rules) if packing else rules
    headers = {"Content-Encoding": packing} if packing else {}
    web.faults.append(Fault("status", "main", "^/robots.txt", 1, 200, headers, body))
    fetcher = make()
    assert fetcher.get("main", "/page").body == b"hello"
    for path in ("/first", "/late"):
        with pytest.raises(ItemUnavailable) as caught:
            fetcher.get("main", path)
        assert caught.value.reason == "robots"
    with pytest.raises(ItemUnavailable):
        make().get("main", "/late?again")  # from the cache, where it ends, too


@pytest.mark.parametrize("delay", ["nan", "inf", "-5", "soon", "1e400"])
def test_a_crawl_delay_that_is_none_is_passed_over(make: Make, site: PageSite, delay: str) -> None:
    site.robots = f"User-agent: *\nCrawl-delay: {delay}\n"
    with contextlib.suppress(SourceUnavailable):
        assert make().get("main", "/page").body == b"hello"


# Pace


def gaps(site: PageSite) -> list[float]:
    return [late - early for early, late in zip(site.seen_at, site.seen_at[1:], strict=False)]


def test_requests_keep_their_distance(make: Make, site: PageSite) -> None:
    fetcher = make(0.1)
    for number in range(4):
        fetcher.get("main", f"/page?{number}")
    assert min(gaps(site)) >= 0.05  # the server's clock starts late when the machine is busy
    assert fetcher.stats["wait_ms"] >= 4 * 80  # robots.txt took the first turn


def test_the_longer_of_crawl_delay_and_interval_counts(make: Make, site: PageSite) -> None:
    site.robots = "User-agent: *\nCrawl-delay: 0.15\n"
    for interval_s in (0.0, 0.3):
        site.seen_at.clear()
        fetcher = make(interval_s)
        for number in range(3):
            fetcher.get("main", f"/page?{interval_s}&{number}")
        assert min(gaps(site)) >= 0.6 * max(0.15, interval_s)


def test_threads_and_fetchers_share_the_pace_of_a_host(make: Make, site: PageSite) -> None:
    make().get("main", "/page?robots")
    site.seen_at.clear()
    shared, own = make(0.1), make(0.1)
    fetchers = [shared, shared, shared, own, own, own]
    threads = [
        threading.Thread(target=fetcher.get, args=("main", f"/page?{number}"))
        for number, fetcher in enumerate(fetchers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.seen_at) == 6
    assert min(gaps(site)) >= 0.05
    assert (shared.stats["requests"], own.stats["requests"]) == (3, 3)


def test_one_host_does_not_wait_for_another(settings: Settings, web: Web) -> None:
    own = settings.model_copy(update={"request_interval_s": 0.6, "sites": web.urls})
    fetcher = Fetcher(own, {key: web.urls[key] for key in ("main", "other")}, 1.0)
    started = time.monotonic()
    for key in ("main", "other"):
        fetcher.get(key, "/page")
    # Each host keeps robots.txt and page apart; between the two hosts there is no pause.
    assert 1.2 <= time.monotonic() - started < 1.75


def test_the_connection_is_used_again(make: Make, site: PageSite) -> None:
    site.pages["/packed"] = Response(
        200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 300_000)
    )
    fetcher = make(use_cache=False)
    for path in ("/page", "/packed", "/page"):
        fetcher.get("main", path)
    assert len(site.threads) == 1  # the server has a thread a connection


# Failures that pass


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_failures_are_tried_again(make: Make, web: Web, status: int) -> None:
    web.faults.append(Fault("status", "main", "/page", times=4, status=status))
    fetcher = make()
    assert fetcher.get("main", "/page").body == b"hello"
    assert fetcher.stats["retries"] == 4
    assert len(pages_asked(web)) == 5


@pytest.mark.parametrize("kind", ["disconnect", "truncate"])
def test_broken_transfers_are_tried_again(make: Make, web: Web, kind: Any) -> None:
    web.faults.append(Fault(kind, "main", "/page", times=2))
    fetcher = make()
    assert fetcher.get("main", "/page").body == b"hello"
    assert fetcher.stats["retries"] == 2


@pytest.mark.parametrize(
    "body", [gzip.compress(b"hello" * 99)[:-9], b"no gzip at all"], ids=["cut off", "no gzip"]
)
def test_a_damaged_gzip_stream_is_tried_again(make: Make, web: Web, body: bytes) -> None:
    fault = Fault("status", "main", "/page", 1, 200, {"Content-Encoding": "gzip"}, body)
    web.faults.append(fault)
    assert make().get("main", "/page").body == b"hello"


def test_tries_are_counted_and_end(make: Make, web: Web) -> None:
    web.faults.append(Fault("status", "main", "/page", times=99))
    with pytest.raises(SourceUnavailable, match=r"/page failed 5 times, at last: .* answered 503"):
        make().get("main", "/page")
    assert len(pages_asked(web)) == 5


def test_pauses_double(make: Make, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.05)
    web.faults.append(Fault("status", "main", "/page", times=3))
    started = time.monotonic()
    make().get("main", "/page")
    assert time.monotonic() - started >= 0.5 * (0.05 + 0.1 + 0.2)  # jitter halves at most


@pytest.mark.parametrize("is_busy_page", [False, True])
def test_retry_after_in_seconds(make: Make, web: Web, is_busy_page: bool) -> None:
    busy = Fault("status", "main", "/page", 1, 200, {"Retry-After": "1"}, b"maxlag")
    refused = Fault("status", "main", "/page", 1, 429, {"Retry-After": "1"})
    web.faults.append(busy if is_busy_page else refused)
    started = time.monotonic()
    page = make().get("main", "/page", is_busy=lambda page: page.body == b"maxlag")
    assert page.body == b"hello"
    assert 1.0 <= time.monotonic() - started < 10


def test_retry_after_as_a_date(make: Make, web: Web) -> None:
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=2)
    header = {"Retry-After": email.utils.format_datetime(moment, usegmt=True)}
    web.faults.append(Fault("status", "main", "/page", 1, 503, header))
    make().get("main", "/page")
    assert dt.datetime.now(dt.UTC) >= moment.replace(microsecond=0)


def test_a_pause_holds_for_every_fetcher_of_the_host(make: Make, web: Web, site: PageSite) -> None:
    first, second = make(), make()
    second.get("main", "/page?robots")
    web.faults.append(Fault("status", "main", "/page", 1, 429, {"Retry-After": "1"}))
    thread = threading.Thread(target=first.get, args=("main", "/page?first"))
    thread.start()
    while len(pages_asked(web)) < 2:
        time.sleep(0.005)
    refused_at = time.monotonic()
    second.get("main", "/page?second")
    assert time.monotonic() - refused_at >= 0.95
    thread.join()


@pytest.mark.parametrize("value", ["601", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_longer_pause_than_ours_ends_the_crawl(make: Make, web: Web, value: str) -> None:
    web.faults.append(Fault("status", "main", "/page", 1, 429, {"Retry-After": value}))
    for fetcher in (make(), make()):
        with pytest.raises(SourceUnavailable, match="asks for a pause of .* at most 600 s"):
            fetcher.get("main", "/page")
    assert len(pages_asked(web)) == 1


def test_a_crawl_delay_of_a_day_ends_the_crawl(make: Make, site: PageSite) -> None:
    site.robots = "User-agent: *\nCrawl-delay: 86400\n"
    with pytest.raises(SourceUnavailable, match="asks for a pause"):
        make().get("main", "/page")


def test_a_busy_page_is_never_cached(make: Make, web: Web) -> None:
    web.faults.append(Fault("status", "main", "/page", 99, 200, {"Retry-After": "0"}, b"maxlag"))

    def is_busy(page: Fetched) -> bool:
        return page.body == b"maxlag"

    with pytest.raises(SourceUnavailable, match="busy"):
        make().get("main", "/page", is_busy=is_busy)
    web.faults.clear()
    assert make().get("main", "/page", is_busy=is_busy).body == b"hello"


# Failures that do not pass


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (401, AccessRefused, None),
        (403, ItemUnavailable, "http_403"),
        (404, ItemUnavailable, "http_404"),
        (410, ItemUnavailable, "http_410"),
        (451, ItemUnavailable, "permission"),
        (400, SourceChanged, None),
        (422, SourceChanged, None),
        (204, SourceChanged, None),
        (304, SourceChanged, None),
        (501, ItemFailed, "http_5xx"),
        (521, ItemFailed, "http_5xx"),
    ],
)
def test_final_answers_are_asked_for_once(
    make: Make, web: Web, status: int, error: type[Exception], reason: str | None
) -> None:
    web.faults.append(Fault("status", "main", "/page", 99, status, body=b""))
    with pytest.raises(error, match=rf"/page answered {status}") as caught:
        make().get("main", "/page")
    assert getattr(caught.value, "reason", None) == reason
    assert pages_asked(web) == ["/page"]


@pytest.mark.parametrize("status", [403, 429])
def test_many_refusals_in_a_row_stop_the_fetcher(make: Make, web: Web, status: int) -> None:
    fetcher = make()
    fetcher.get("main", "/page")
    web.faults.append(Fault("status", "main", "", 999, status))
    for number in range(20):
        with pytest.raises((ItemUnavailable, SourceUnavailable)):
            fetcher.get("main", f"/item/{number}")
    assert len(pages_asked(web)) == 1 + circuit.REFUSALS_TO_STOP
    with pytest.raises(SourceUnavailable, match="10 requests in a row were refused"):
        fetcher.get("main", "/item/new")
    assert fetcher.get("main", "/page").body == b"hello"  # what is on disk stays at hand


def test_single_refusals_do_not_stop_the_fetcher(make: Make, web: Web) -> None:
    fetcher = make(use_cache=False)
    for number in range(circuit.REFUSALS_TO_STOP + 5):
        web.faults.append(Fault("status", "main", "/forbidden", status=403))
        with pytest.raises(ItemUnavailable):
            fetcher.get("main", "/forbidden")
        fetcher.get("main", f"/page?{number}")


def test_refusals_behind_redirects_count_too(make: Make, web: Web, site: PageSite) -> None:
    site.pages |= {"/old": Response(302, {"Location": "/new"}), "/new": Response(403)}
    fetcher = make()
    for _ in range(circuit.REFUSALS_TO_STOP):
        with pytest.raises(ItemUnavailable):
            fetcher.get("main", "/old")
    with pytest.raises(SourceUnavailable, match="in a row"):
        fetcher.get("main", "/old")


def test_many_failed_addresses_in_a_row_stop_the_fetcher(make: Make, web: Web) -> None:
    fetcher = make()
    fetcher.get("main", "/page")
    web.faults.append(Fault("status", "main", "/item", 999, 500))
    for number in range(circuit.FAILURES_TO_STOP):
        with pytest.raises(ItemFailed) as caught:
            fetcher.get("main", f"/item/{number}")
        assert caught.value.reason == "http_5xx"
    asked = len(pages_asked(web))
    assert asked == 1 + 5 * circuit.FAILURES_TO_STOP
    for _ in range(2):
        with pytest.raises(SourceUnavailable, match="5 addresses in a row failed") as stopped:
            fetcher.get("main", "/page?new")
        assert not isinstance(stopped.value, ItemFailed)
    assert len(pages_asked(web)) == asked
    assert fetcher.get("main", "/page").body == b"hello"  # what is on disk stays at hand


@pytest.mark.parametrize("good", ["/page", "/gone"])
def test_single_failed_addresses_do_not_stop_the_fetcher(make: Make, web: Web, good: str) -> None:
    fetcher = make(use_cache=False)
    web.faults.append(Fault("disconnect", "main", "/item", 999))
    for number in range(circuit.FAILURES_TO_STOP + 2):
        with pytest.raises(ItemFailed) as caught:
            fetcher.get("main", f"/item/{number}")
        assert caught.value.reason == "network"
        with contextlib.suppress(ItemUnavailable):
            fetcher.get("main", good)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("status", "main", "/page", 99, 429), "http_429"),
        (Fault("status", "main", "/page", 99, 500), "http_5xx"),
        (Fault("status", "main", "/page", 99, 503, {"Retry-After": "0"}), "http_5xx"),
        (Fault("disconnect", "main", "/page", 99), "network"),
        (Fault("truncate", "main", "/page", 99), "damaged_answer"),
        (Fault("drip", "main", "/page", 99), "timeout"),
        (
            Fault("status", "main", "/page", 99, 200, {"Content-Encoding": "gzip"}, b"no gzip"),
            "damaged_answer",
        ),
    ],
    ids=lambda value: f"{value.kind}-{value.status}" if isinstance(value, Fault) else value,
)
def test_every_failure_has_its_reason(
    make: Make,
    web: Web,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    reason: str,
) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.3)
    monkeypatch.setattr(server, "DRIP_PAUSE_S", 1.0)
    web.faults.append(fault)
    with pytest.raises(ItemFailed) as caught:
        make().get("main", "/page")
    assert caught.value.reason == reason
    assert reason in FAIL_REASONS
    web.faults.clear()
    assert make().get("main", "/page").body == b"hello"  # nothing of it was kept


def test_a_host_that_is_not_there_is_a_failure_of_the_network(
    make: Make, settings: Settings, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robots.Robots, "obey", lambda self, url: 0.0)
    for url in (NOT_THERE, "http://nobody.invalid"):
        own = settings.model_copy(update={"sites": {"main": url}})
        with pytest.raises(ItemFailed) as caught:
            Fetcher(own, {"main": url}, 0.0).get("main", "/page")
        assert caught.value.reason == "network"


@pytest.mark.parametrize(
    "value",
    ["Thu, 01 Jan 1970 00:00:00 GMT", "-5", "soon", "1.5", "", "Fri, 99 Foo 2024 00:00:00 GMT"],
)
def test_a_pause_that_is_over_or_none_delays_little(make: Make, web: Web, value: str) -> None:
    web.faults.append(Fault("status", "main", "/page", 1, 429, {"Retry-After": value}))
    started = time.monotonic()
    assert make().get("main", "/page").body == b"hello"
    assert time.monotonic() - started < 5


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(make: Make, web: Web, site: PageSite, status: int) -> None:
    site.pages["/old"] = Response(status, {"Location": "page?x=1"})
    page = make().get("main", "/old")
    assert (page.url, page.body) == (f"{web.urls['main']}/page?x=1", b"hello")


def test_redirects_end(make: Make, web: Web, site: PageSite) -> None:
    for number in range(9):
        site.pages[f"/{number}"] = Response(302, {"Location": f"/{number + 1}"})
    site.pages["/5"] = Response(body=b"there")
    assert make().get("main", "/0").body == b"there"
    site.pages["/5"] = Response(302, {"Location": "/6"})
    with pytest.raises(SourceChanged, match="redirects more than 5 times"):
        make(use_cache=False).get("main", "/0")
    web.faults.append(Fault("redirect_loop", "main", "/page", times=99))
    with pytest.raises(SourceChanged, match="redirects more than 5 times"):
        make().get("main", "/page")


@pytest.mark.parametrize(
    "location",
    [
        server.OFF_HOST,
        "//169.254.169.254/latest",
        "http://localhost/page",
        "http://evil.example\\@{host}/page",
        "http://{host}@evil.example/page",
        "http://user:word@{host}/page",
        "http://127.0.0.1.evil.example/page",
        "{other}/page",
        "ftp://{host}/page",
        "file:///etc/passwd",
        "httpx://{host}/page",
        "javascript:alert(1)",
    ],
)
def test_redirects_stay_on_known_hosts(
    make: Make, web: Web, site: PageSite, other: OtherSite, location: str
) -> None:
    host = web.urls["main"].removeprefix("http://")
    target = location.replace("{host}", host).replace("{other}", web.urls["other"])
    site.pages["/old"] = Response(302, {"Location": target})
    with pytest.raises(AccessRefused, match="on none of this source's hosts"):
        make().get("main", "/old")
    assert pages_asked(web) == ["/old"]


@pytest.mark.parametrize("location", ["http://[::1", "http://a:b:c/", "http://\x01/", "https:///x"])
def test_redirects_to_nowhere(make: Make, site: PageSite, location: str) -> None:
    site.pages["/old"] = Response(302, {"Location": location})
    with pytest.raises((SourceChanged, AccessRefused)):
        make().get("main", "/old")


def test_https_is_never_left_for_http(settings: Settings) -> None:
    fetcher = Fetcher(settings, {"main": "https://site.example:9"}, 0.0, ["site.example"])
    fetcher._exchange._require_known_host("https://site.example/y", "https://site.example:9/x")
    with pytest.raises(AccessRefused, match="anyone on the way can alter"):
        fetcher._exchange._require_known_host("http://site.example/y", "https://site.example:9/x")


def test_a_redirect_without_a_target(make: Make, site: PageSite) -> None:
    site.pages["/old"] = Response(302)
    with pytest.raises(SourceChanged, match="answered 302"):
        make().get("main", "/old")


def test_sites_may_redirect_to_each_other(settings: Settings, web: Web, site: PageSite) -> None:
    site.pages["/old"] = Response(302, {"Location": f"{web.urls['other']}/page"})
    own = settings.model_copy(update={"sites": web.urls})
    fetcher = Fetcher(own, {key: web.urls[key] for key in ("main", "other")}, 0.0)
    assert fetcher.get("main", "/old").url == f"{web.urls['other']}/page"


# Sizes and times


def test_a_gzip_body_is_unpacked(make: Make, site: PageSite) -> None:
    for coding in ("gzip", "x-gzip", "GZIP"):
        site.pages[f"/{coding}"] = Response(
            200, {"Content-Encoding": coding}, gzip.compress(b"one") + gzip.compress(b" two")
        )
        assert make().get("main", f"/{coding}").body == b"one two"


def test_an_unknown_coding_is_refused(make: Make, site: PageSite) -> None:
    site.pages["/br"] = Response(200, {"Content-Encoding": "br"}, b"???")
    with pytest.raises(SourceChanged, match="packed as 'br'"):
        make().get("main", "/br")


@pytest.mark.parametrize("packing", [None, "gzip"])
def test_the_cap_is_exact(make: Make, site: PageSite, packing: str | None) -> None:
    body = bytes(range(256)) * 400
    headers = {"Content-Encoding": packing} if packing else {}
    site.pages["/big"] = Response(200, headers, gzip.compress(body) if packing else body)
    assert make().get("main", "/big", max_bytes=len(body)).body == body
    for use_cache in (True, False):  # what is in the cache is no exception
        with pytest.raises(ItemUnavailable, match="larger than 102399 bytes") as caught:
            make(use_cache=use_cache).get("main", "/big", max_bytes=len(body) - 1)
        assert caught.value.reason == "too_large"


def test_an_announced_size_is_enough_to_refuse(make: Make, web: Web, site: PageSite) -> None:
    site.pages["/big"] = Response(body=bytes(50 * 2**20))
    fetcher = make()
    with pytest.raises(ItemUnavailable):
        fetcher.get("main", "/big")
    assert fetcher.stats["bytes"] < 2**20


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def test_a_body_of_unknown_length(make: Make, site: PageSite) -> None:
    site.pages["/chunked"] = Response(200, {"Transfer-Encoding": "chunked"}, chunked(b"x" * 70_000))
    assert make().get("main", "/chunked", max_bytes=70_000).body == b"x" * 70_000
    with pytest.raises(ItemUnavailable, match="larger than"):
        make(use_cache=False).get("main", "/chunked", max_bytes=69_999)
    site.pages["/cut"] = Response(
        200, {"Transfer-Encoding": "chunked", "Connection": "close"}, b"ff\r\nmore was to come"
    )
    with pytest.raises(SourceUnavailable, match="failed 5 times"):
        make().get("main", "/cut")


def test_what_unpacks_to_nothing_is_capped_too(make: Make, site: PageSite) -> None:
    headers = {"Transfer-Encoding": "chunked", "Content-Encoding": "gzip"}
    site.pages["/empties"] = Response(200, headers, chunked(gzip.compress(b"") * 5000))
    with pytest.raises(ItemUnavailable, match="larger than 90000 bytes"):
        make().get("main", "/empties", max_bytes=90_000)


def test_a_gzip_bomb_is_left_packed(make: Make, web: Web) -> None:
    faults.pack_zeros(server.BOMB_BYTES)
    web.faults.append(Fault("gzip_bomb", "main", "/page"))
    tracemalloc.start()
    with pytest.raises(ItemUnavailable) as caught:
        make().get("main", "/page", max_bytes=2**20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.reason == "too_large"
    assert peak < 8 * 2**20


def test_the_body_of_a_redirect_is_not_read(make: Make, site: PageSite) -> None:
    headers = {"Location": "/page", "Content-Encoding": "gzip"}
    site.pages["/old"] = Response(302, headers, faults.pack_zeros(server.BOMB_BYTES))
    fetcher = make()
    assert fetcher.get("main", "/old").body == b"hello"
    assert fetcher.stats["bytes"] == len(b"hello")


def test_a_slow_drip_is_cut_off(make: Make, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "WALL_CLOCK_S", 0.3)
    monkeypatch.setattr(server, "DRIP_PAUSE_S", 0.1)
    web.faults.append(Fault("drip", "main", "/page"))
    fetcher = make()
    with pytest.raises(ItemFailed, match="was not complete after") as caught:
        fetcher.get("main", "/page")
    assert caught.value.reason == "timeout"
    assert fetcher.stats["retries"] == 0


def test_a_silent_site_is_tried_again(
    make: Make, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.5)
    monkeypatch.setattr(server, "DRIP_PAUSE_S", 1.5)
    web.faults.append(Fault("drip", "main", "/page"))
    fetcher = make()
    assert fetcher.get("main", "/page").body == b"hello"
    assert fetcher.stats["retries"] == 1


# Cache


def test_a_rerun_fetches_nothing(make: Make, web: Web, settings: Settings) -> None:
    first = make().get("main", "/page", {"b": 2, "a": 1})
    asked = list(web.requests)
    fetcher = make()
    assert fetcher.get("main", "/page", {"a": 1, "b": 2}) == first
    assert web.requests == asked
    assert (fetcher.stats["cached"], fetcher.stats["requests"]) == (1, 0)
    files = [path for path in (settings.scratch / "http-cache").rglob("*") if path.is_file()]
    assert len(files) == 2  # robots.txt and the page


def test_the_cache_can_be_left_out(make: Make, web: Web, settings: Settings) -> None:
    for _ in range(2):
        make(use_cache=False).get("main", "/page")
    assert pages_asked(web) == ["/page", "/page"]
    assert not (settings.scratch / "http-cache").exists()


def test_other_questions_have_other_answers(make: Make, web: Web) -> None:
    asked: list[tuple[str, Mapping[str, str | int] | None, Mapping[str, str] | None]] = [
        ("/page", None, None),
        ("/page", {"a": 1}, None),
        ("/page", {"a": 2}, None),
        ("/page", None, {"Accept": "application/json"}),
    ]
    for path, params, headers in asked:
        make().get("main", path, params, headers=headers)
    assert len(pages_asked(web)) == 4


class Validating(PageSite):
    """Says 304 where it is asked for what the client has."""

    etag: str | None = '"v1"'
    changed_at: str | None = "Mon, 01 Apr 2024 00:00:00 GMT"

    def respond(self, request: Request) -> Response:
        whole = super().respond(request)
        named = {"ETag": self.etag, "Last-Modified": self.changed_at, "X-Of": str(len(self.seen))}
        headers = {name: value for name, value in named.items() if value}
        asked = request.headers.get("if-none-match"), request.headers.get("if-modified-since")
        if whole.status == 200 and any(asked) and asked == (self.etag, self.changed_at):
            return Response(304, headers)
        return Response(whole.status, {**headers, **whole.headers}, whole.body)


@pytest.fixture
def validating(settings: Settings) -> Iterator[tuple[Validating, Make, Web]]:
    site = Validating()
    with serve_sites([site]) as web:
        own = settings.model_copy(update={"sites": web.urls})
        yield site, lambda **options: Fetcher(own, web.urls, 0.0, **options), web


@pytest.mark.parametrize("lacking", [None, "etag", "changed_at"])
def test_what_has_not_changed_is_not_sent_again(
    validating: tuple[Validating, Make, Web], lacking: str | None
) -> None:
    site, make, web = validating
    if lacking:
        setattr(site, lacking, None)
    first = make().get("main", "/page")
    again = make(revalidates=True)
    page = again.get("main", "/page")
    assert (page.body, page.url) == (first.body, first.url)
    assert page.retrieved_at > first.retrieved_at
    assert page.headers["x-of"] == "2"  # what the site says of it now
    assert page.headers["content-length"] == "5"  # the 304 has none to tell
    assert (again.stats["304"], again.stats["3xx"], again.stats["bytes"]) == (1, 1, 0)
    assert make().get("main", "/page") == page  # kept, with its new time
    assert len(pages_asked(web)) == 2


def test_what_has_changed_is_sent_anew(validating: tuple[Validating, Make, Web]) -> None:
    site, make, _ = validating
    make().get("main", "/page")
    site.etag, site.pages["/page"] = '"v2"', Response(body=b"changed")
    again = make(revalidates=True)
    assert again.get("main", "/page").body == b"changed"
    assert again.stats["304"] == 0
    assert make().get("main", "/page").body == b"changed"


def test_without_validators_a_page_is_fetched_anew(make: Make, web: Web, site: PageSite) -> None:
    make().get("main", "/page")
    site.pages["/page"] = Response(body=b"changed")
    assert make(revalidates=True).get("main", "/page").body == b"changed"
    assert "if-none-match" not in site.seen[-1].headers


def test_a_304_that_nobody_asked_for_is_no_page(make: Make, web: Web) -> None:
    make().get("main", "/page")
    web.faults.append(Fault("status", "main", "/page", 1, 304, body=b""))
    with pytest.raises(SourceChanged, match="answered 304"):
        make(revalidates=True).get("main", "/page")


def test_validators_go_where_the_page_came_from(
    validating: tuple[Validating, Make, Web],
) -> None:
    site, make, web = validating
    site.pages["/old"] = Response(302, {"Location": "/page"})
    make().get("main", "/old")
    again = make(revalidates=True)
    assert again.get("main", "/old").body == b"hello"
    assert again.stats["304"] == 1
    asked = [(seen.path, "if-none-match" in seen.headers) for seen in site.seen]
    assert asked == [("/old", False), ("/page", False), ("/old", False), ("/page", True)]


def test_a_validator_that_breaks_its_line_is_not_sent(
    validating: tuple[Validating, Make, Web],
) -> None:
    site, make, _ = validating
    site.etag, site.changed_at = '"naïve"', None
    make().get("main", "/page")
    assert make(revalidates=True).get("main", "/page").body == b"hello"
    assert "if-none-match" not in site.seen[-1].headers


def test_failures_are_not_cached(make: Make, site: PageSite) -> None:
    with pytest.raises(ItemUnavailable):
        make().get("main", "/late")
    site.pages["/late"] = Response(body=b"here now")
    assert make().get("main", "/late").body == b"here now"


def test_a_damaged_entry_is_fetched_again(make: Make, web: Web, settings: Settings) -> None:
    fetched = make().get("main", "/page")
    for path in (settings.scratch / "http-cache").rglob("*.zst"):
        path.write_bytes(path.read_bytes()[:-3])
    again = make().get("main", "/page")
    assert (again.body, again.retrieved_at > fetched.retrieved_at) == (b"hello", True)
    assert pages_asked(web) == ["/page", "/page"]


# The rest


def test_counts_add_up(make: Make, web: Web, site: PageSite) -> None:
    site.pages["/old"] = Response(302, {"Location": "/page"})
    web.faults.append(Fault("status", "main", "/page", times=2))
    fetcher = make()
    fetcher.get("main", "/old")
    fetcher.get("main", "/old")
    expected = {"cached": 1, "retries": 2, "2xx": 1, "3xx": 3, "4xx": 1, "5xx": 2, "bytes": 5}
    assert {name: fetcher.stats[name] for name in expected} == expected
    assert fetcher.stats["requests"] == len(web.requests) == 7


def test_a_proxy_of_the_environment_is_used(
    settings: Settings, web: Web, site: PageSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages["/page"] = Response(body=b"by proxy")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", web.urls["main"])
    own = settings.model_copy(update={"sites": {"near": web.urls["other"]}})
    fetcher = Fetcher(own, {"far": "http://far.example", "near": web.urls["other"]}, 0.0)
    assert fetcher.get("far", "/page").body == b"by proxy"
    assert site.seen[0].headers["host"] == "far.example"
    assert fetcher.get("near", "/page").body == b"hello"  # no proxy stands before loopback
    assert len(site.seen) == 1


def test_nothing_of_the_users_netrc_is_sent(
    make: Make, site: PageSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    make().get("main", "/page")
    assert "authorization" not in site.seen[0].headers


# Rules of an API on its limits


def test_a_rule_sees_refusals_with_their_body_and_the_request_is_tried_again(
    make: Make, web: Web
) -> None:
    seen = []

    def rule(status: int, answer: Fetched) -> float | None:
        seen.append((status, answer.body))
        return 0.0 if b"rate limit" in answer.body else None

    fetcher = make()
    fetcher.heed("main", ApiRules(rule))
    web.faults.append(Fault("status", "main", "^/page", 2, 403, body=b"rate limit exceeded"))
    assert fetcher.get("main", "/page").body
    assert seen[:2] == [(403, b"rate limit exceeded")] * 2
    assert len(pages_asked(web)) == 3


@pytest.mark.parametrize("status", [400, 403, 429, 502])
def test_a_rule_may_raise_what_an_error_means_and_it_is_not_tried_again(
    make: Make, web: Web, status: int
) -> None:
    def rule(status: int, answer: Fetched) -> float | None:
        if b"quota" in answer.body:
            raise SourceUnavailable("quota used up")
        return None

    fetcher = make()
    fetcher.heed("main", ApiRules(rule))
    web.faults.append(Fault("status", "main", "^/page", 9, status, body=b"quota"))
    with pytest.raises(SourceUnavailable, match="quota used up"):
        fetcher.get("main", "/page")
    assert len(pages_asked(web)) == 1


def test_a_403_of_which_the_rule_says_nothing_stays_final(make: Make, web: Web) -> None:
    fetcher = make()
    fetcher.heed("main", ApiRules(lambda status, answer: None))
    web.faults.append(Fault("status", "main", "^/page", 1, 403, body=b"blocked"))
    with pytest.raises(ItemUnavailable) as caught:
        fetcher.get("main", "/page")
    assert caught.value.reason == "http_403"
    assert len(pages_asked(web)) == 1


def test_a_host_rests_after_a_good_answer_that_used_up_its_limit(make: Make, web: Web) -> None:
    fetcher = make()
    fetcher.heed("main", ApiRules(lambda status, answer: 0.3))
    fetcher.get("main", "/page")
    started = time.monotonic()
    fetcher.get("main", "/page?again=1")
    assert time.monotonic() - started >= 0.25


def test_a_rest_that_is_too_long_ends_the_source(make: Make, web: Web) -> None:
    fetcher = make()
    fetcher.heed("main", ApiRules(lambda status, answer: pacing.MAX_WAIT_S + 60))
    fetcher.get("main", "/page")
    with pytest.raises(SourceUnavailable, match="asks for a pause of 6"):
        fetcher.get("main", "/page?again=1")
    assert len(pages_asked(web)) == 1


def test_a_rule_may_say_that_an_item_is_not_there(make: Make, web: Web) -> None:
    fetcher = make()
    fetcher.heed("main", ApiRules(lambda status, answer: None, {409: "empty"}))
    web.faults.append(Fault("status", "main", "^/page", 1, 409))
    with pytest.raises(ItemUnavailable) as caught:
        fetcher.get("main", "/page")
    assert caught.value.reason == "empty"
