import contextlib
import dataclasses
import datetime as dt
import gzip
import logging
import threading
import tracemalloc
from collections.abc import Callable, Iterator
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
from crawlers.contract import FAIL_REASONS
from crawlers.web import connections, pacing, robots
from crawlers.web.fetcher import Fetched, Fetcher
from crawlers.web.pacing import ApiRules
from simulator import faults, server
from simulator.server import Fault, Request, Response, Web, serve_sites
from tests.crawlers.clock import SimulatedTime
from tests.crawlers.conftest import refused
from tests.crawlers.web.conftest import PageSite, use_proxy

SECRET = "Bearer s3cr3t-t0ken"
GZIPPED = {"Content-Encoding": "gzip"}
GZIP = gzip.compress(b"hello" * 99)


@pytest.fixture(autouse=True)
def simulated(clock: SimulatedTime, site: PageSite) -> None:
    site.now = clock.time


Make = Callable[..., Fetcher]


@pytest.fixture
def make(settings: Settings, web: Web) -> Make:
    def make_fetcher(interval_s: float = 0.0, **options: Any) -> Fetcher:
        own = settings.model_copy(update={"request_interval_s": None, "sites": web.urls})
        return Fetcher(own, {"main": web.urls["main"]}, interval_s, **options)

    return make_fetcher


def pages_asked(web: Web) -> list[str]:
    return [target for _, _, target in web.requests if target != "/robots.txt"]


def test_a_page_comes_with_all_that_is_known_of_it(
    make: Make, web: Web, site: PageSite, settings: Settings
) -> None:
    site.pages["/page"] = Response(200, {"X-Rate": "9", "Set-Cookie": "id=1; Path=/"}, b"hello")
    before, fetcher = dt.datetime.now(dt.UTC), make(use_cache=False)
    asked = {"titles": "A & B|Č", "limit": 5, "action": "query"}
    given = {"accept": "text/x-tex", "User-Agent": "Mozilla/5.0"}
    for _ in range(2):
        page = fetcher.get("main", "/page?z=0", asked, headers=given)
    path = "/page?z=0&action=query&limit=5&titles=A+%26+B%7C%C4%8C"  # in sorted order
    assert (page.url, page.body) == (web.urls["main"] + path, b"hello")
    assert page.headers["x-rate"] == "9"
    assert "set-cookie" not in page.headers
    assert before <= page.retrieved_at <= dt.datetime.now(dt.UTC)
    assert page.retrieved_at.tzinfo is dt.UTC
    assert pages_asked(web) == [path] * 2
    headers = site.seen[-1].headers
    assert headers["user-agent"].startswith("tidemark/")
    assert f"(+{settings.contact}) python-requests/" in headers["user-agent"]
    assert (headers["accept"], headers["accept-encoding"]) == ("text/x-tex", "gzip")
    assert "cookie" not in headers


def test_settings_replace_the_address_and_the_interval(
    settings: Settings, web: Web, clock: SimulatedTime
) -> None:
    own = settings.model_copy(update={"sites": {"main": web.urls["main"] + "/"}})
    fetcher = Fetcher(own, {"main": "https://example.org", "api": "https://api.example.org/"}, 60.0)
    assert fetcher.base_url("main") == web.urls["main"]
    assert fetcher.base_url("api") == "https://api.example.org"
    for number in range(3):
        fetcher.get("main", "/page", {"n": number})
    assert clock.slept_s < 1  # request_interval_s of the settings is 0


@pytest.mark.parametrize(("given_s", "expected"), [(None, 3), (0, 3), (2, 3), (4, 4)])
def test_the_interval_of_a_real_site_is_never_reduced(
    settings: Settings, given_s: float | None, expected: float
) -> None:
    own = settings.model_copy(update={"request_interval_s": given_s})
    ask = Fetcher(own, {"main": "https://example.org"}, 3.0)._exchange
    assert ask._interval_s("https://example.org/page", 0.0) == expected
    assert ask._interval_s("https://example.org/page", 5.0) == 5


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://host", "http://u:p@host", "http://[::1"])
def test_an_address_that_is_none_is_refused_at_once(
    settings: Settings, make: Make, url: str
) -> None:
    own = settings.model_copy(update={"sites": {"main": url}})
    with pytest.raises(UsageError, match="TIDEMARK_SITES__MAIN"):
        Fetcher(own, {"main": "https://example.org"}, 1.0)
    with pytest.raises(UnknownName, match=r"unknown site 'mian'; did you mean main\? known: main"):
        make().get("mian", "/")


def test_json(make: Make, site: PageSite) -> None:
    site.pages |= {"/json": Response(body=b'{"a": [1]}'), "/deep": Response(body=b"[" * 200_000)}
    assert make().get("main", "/json").json() == {"a": [1]}
    for path in ("/page", "/deep"):
        with pytest.raises(SourceChanged, match="expected JSON"):
            make().get("main", path).json()


@pytest.mark.parametrize(
    ("path", "title"), [(".evil.example/x", ""), ("@evil.example/x", ""), (":81/x", ""),
                        ("/page", "\ud800")],
)  # fmt: skip
def test_a_path_leads_to_the_site_or_nowhere(make: Make, path: str, title: str) -> None:
    with pytest.raises((AccessRefused, SourceChanged)):
        make().get("main", path, {"title": title})


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
    assert make().get("main", "/page").body == b"hello"
    assert len(site.seen) == 2


def test_a_redirect_takes_no_token_to_another_host(
    make: Make, web: Web, site: PageSite, other: PageSite
) -> None:
    site.pages["/old"] = Response(302, {"Location": f"{web.urls['other']}/page"})
    site.pages["/near"] = Response(302, {"Location": "/page"})
    fetcher = make(redirect_hosts=[web.urls["other"].removeprefix("http://")])
    for path in ("/old", "/near"):
        fetcher.get("main", path, headers={"Authorization": SECRET})
    assert [request.headers.get("authorization") for request in site.seen] == [SECRET] * 3
    assert [request.headers.get("authorization") for request in other.seen] == [None]


def test_what_breaks_its_line_is_refused_unseen(make: Make, web: Web, settings: Settings) -> None:
    for value in ("s3cr3t\n", "s3cr3t\r\nX-Evil: 1", "s3cr3té"):
        with pytest.raises(UsageError, match="Authorization") as caught:
            make().get("main", "/page", headers={"Authorization": value})
        assert "s3cr3t" not in str(caught.value)
    with pytest.raises(UsageError, match="TIDEMARK_CONTACT"):
        Fetcher(settings.model_copy(update={"contact": "me\nX: y"}), {}, 1.0)
    mail = settings.model_copy(update={"contact": "me@example.org"})
    assert " (me@example.org) " in Fetcher(mail, {}, 1.0).user_agent
    assert web.requests == []


def test_robots_decide_by_our_own_name(make: Make, web: Web, site: PageSite) -> None:
    site.robots = "User-agent: tidemark\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n"
    site.pages["/private/x"] = Response(body=b"no")
    fetcher = make()
    assert fetcher.get("main", "/page").body == b"hello"
    with refused("robots", "disallows .*/private/x for tidemark"):
        fetcher.get("main", "/private/x")
    assert pages_asked(web) == ["/page"]


def test_an_exempt_path_is_exempt_exactly(make: Make, web: Web, site: PageSite) -> None:
    site.robots = "User-agent: *\nDisallow: /w/\nCrawl-delay: 20\n"
    site.pages |= {"/w/api.php": Response(body=b"{}"), "/w/api.php/x": Response(body=b"no")}
    fetcher = make(robots_exempt_paths=["/w/api.php"])
    for number in range(2):
        assert fetcher.get("main", "/w/api.php", {"n": number}).body == b"{}"
    assert min(gaps(site)) >= 19  # what robots.txt says of the pace still holds
    for path in ("/w/api.php/x", "/w/index.php", "/w/%61pi.php/../index.php"):
        with refused("robots"):
            fetcher.get("main", path)
    with pytest.raises(ItemUnavailable):
        make(use_cache=False).get("main", "/w/api.php")
    assert len(pages_asked(web)) == 2


def test_paths_below_an_exempt_path_are_exempt_if_they_are_plain(
    make: Make, web: Web, site: PageSite
) -> None:
    site.robots = "User-agent: *\nDisallow: /\n"
    plain = ["/src/2302.00001v1", "/src/math.GT/0309136v1", "/src/a_b-c"]
    site.pages |= {path: Response(body=b"yes") for path in plain}
    fetcher = make(robots_exempt_paths=["/src/*"])
    for path in plain:
        assert fetcher.get("main", path).body == b"yes"
    for path in (
        "/", "/src", "/src/", "/srcs/x", "/SRC/x", "/other/src/x", "/src//x", "/src/x/", "/src/*",
        "/src/../page", "/src/x/../../page", "/src/%2e%2e/page", "/src/..%2fpage", "/src/é",
        "/src/%252e%252e/page", "/src/x%2f..%2f..%2fpage", "/src/x\\..\\page", "/src/.hidden",
        "/src/x;y",
    ):  # fmt: skip
        with refused("robots"):
            fetcher.get("main", path)
    assert pages_asked(web) == plain


def test_an_exemption_is_of_the_sites_not_of_hosts_they_redirect_to(
    make: Make, web: Web, site: PageSite, other: PageSite
) -> None:
    site.robots = other.robots = "User-agent: *\nDisallow: /\n"
    site.pages["/src/x"] = Response(301, {"Location": f"{web.urls['other']}/src/x"})
    options = {"redirect_hosts": [web.urls["other"].removeprefix("http://")]}
    with refused("robots", web.urls["other"]):
        make(robots_exempt_paths=["/src/*"], **options).get("main", "/src/x")
    assert other.seen == []


def test_robots_are_asked_once_a_day(make: Make, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = make(use_cache=False)
    for _ in range(2):
        fetcher.get("main", "/page")
    make().get("main", "/page")  # reads and keeps it on disk
    make().get("main", "/page?again")
    asked = [target for _, _, target in web.requests]
    assert asked == ["/robots.txt", "/page", "/page", "/robots.txt", "/page", "/page?again"]
    monkeypatch.setattr(robots, "ROBOTS_MAX_AGE", dt.timedelta(0))
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
        Fault("status", "main", "robots", 99, 500), Fault("status", "main", "robots", 99, 429),
        Fault("status", "main", "robots", 99, 505), Fault("disconnect", "main", "robots", 99),
        Fault("redirect_loop", "main", "robots", 99),
        Fault("redirect_off_host", "main", "robots", 99),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}",
)  # fmt: skip
def test_unreadable_robots_refuse_everything(make: Make, web: Web, fault: Fault) -> None:
    web.faults.append(fault)
    with pytest.raises(AccessRefused, match=r"cannot read .*/robots\.txt"):
        make().get("main", "/page")
    assert pages_asked(web) == []
    web.faults.clear()
    assert make().get("main", "/page").body == b"hello"


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ("User-agent: *\nDisallow: /\n", Fault("status", "main", "robots", times=2)),
        ("", Fault("status", "main", "^/robots.txt", 1, 301, {"Location": "/rules"})),
        ("\ufeffUser-agent: *\nDisallow: /page\n", None),
    ],
    ids=["recovered", "redirected", "byte order mark"],
)
def test_robots_are_obeyed_however_they_come(
    make: Make, web: Web, site: PageSite, rules: str, fault: Fault | None
) -> None:
    site.robots = rules
    site.pages["/rules"] = Response(body=b"User-agent: *\nDisallow: /page\n")
    web.faults += [fault] if fault else []
    with refused("robots"):
        make().get("main", "/page")


def test_a_redirects_target_has_robots_too(
    make: Make, web: Web, site: PageSite, other: PageSite
) -> None:
    other.robots = "User-agent: *\nDisallow: /page\n"
    site.pages["/old"] = Response(301, {"Location": f"{web.urls['other']}/page"})
    with refused("robots"):
        make(redirect_hosts=[web.urls["other"].removeprefix("http://")]).get("main", "/old")
    assert other.seen == []


@pytest.mark.parametrize("packing", [{}, GZIPPED], ids=["plain", "gzip"])
def test_of_endless_robots_the_beginning_counts(
    make: Make, web: Web, packing: dict[str, str]
) -> None:
    """RFC 9309, 2.5: at least 500 KiB are read; a rule that is cut in two is none."""
    start = b"User-agent: *\nDisallow: /first\n" + b"# more to come\n" * 35_000
    rules = start + b"Disallow: /late\n"
    assert len(start) > 500 * 2**10
    rules = rules.ljust(robots.ROBOTS_MAX_BYTES - 11, b"\n") + b"Disallow: /page\n" + bytes(2**20)
    body = gzip.compress(rules) if packing else rules
    web.faults.append(Fault("status", "main", "^/robots.txt", 1, 200, packing, body))
    fetcher = make()
    assert fetcher.get("main", "/page").body == b"hello"
    for path in ("/first", "/late"):
        with refused("robots"):
            fetcher.get("main", path)
    with pytest.raises(ItemUnavailable):
        make().get("main", "/late?again")  # from the cache, where it ends, too


@pytest.mark.parametrize("delay", ["nan", "inf", "-5", "soon", "1e400", "86400"])
def test_a_crawl_delay_is_passed_over_or_ends_the_crawl(
    make: Make, site: PageSite, delay: str
) -> None:
    site.robots = f"User-agent: *\nCrawl-delay: {delay}\n"
    if delay == "86400":
        with pytest.raises(SourceUnavailable, match="asks for a pause"):
            make().get("main", "/page")
    else:
        with contextlib.suppress(SourceUnavailable):
            assert make().get("main", "/page").body == b"hello"


def gaps(site: PageSite) -> list[float]:
    return [late - early for early, late in zip(site.seen_at, site.seen_at[1:], strict=False)]


@pytest.mark.parametrize(
    ("delay_s", "interval_s"), [(None, 100.0), (150, 0.0), (150, 100.0), (150, 300.0)]
)
def test_the_longer_of_crawl_delay_and_interval_counts(
    make: Make, site: PageSite, delay_s: int | None, interval_s: float
) -> None:
    site.robots = f"User-agent: *\nCrawl-delay: {delay_s}\n" if delay_s else None
    fetcher = make(interval_s)
    for number in range(3):
        fetcher.get("main", f"/page?{number}")
    expected = max(delay_s or 0, interval_s)
    assert gaps(site) == pytest.approx([expected] * 2, abs=0.1)
    assert fetcher.stats["wait_ms"] >= 2 * expected * 1000


def test_threads_and_fetchers_share_the_pace_of_a_host(make: Make, site: PageSite) -> None:
    shared, own = make(100.0), make(100.0)
    threads = [
        threading.Thread(target=fetcher.get, args=("main", f"/page?{number}"))
        for number, fetcher in enumerate([shared, shared, shared, own, own, own])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.seen_at) == 6
    assert min(gaps(site)) >= 99


def test_one_host_does_not_wait_for_another(
    settings: Settings, web: Web, clock: SimulatedTime
) -> None:
    own = settings.model_copy(update={"request_interval_s": 100.0, "sites": web.urls})
    fetcher = Fetcher(own, {key: web.urls[key] for key in ("main", "other")}, 1.0)
    for key in ("main", "other"):
        fetcher.get(key, "/page")
    assert clock.slept_s == pytest.approx(2 * 100, abs=1)  # between robots.txt and page of each


def test_the_connection_is_used_again(make: Make, site: PageSite) -> None:
    site.pages["/packed"] = Response(
        200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 300_000)
    )
    fetcher = make(use_cache=False)
    for path in ("/page", "/packed", "/page"):
        fetcher.get("main", path)
    assert len(site.threads) == 1  # the server has a thread a connection


@pytest.mark.parametrize(
    ("value", "pause_s"),
    [
        ("100", 100),
        *((value, 0) for value in ("Thu, 01 Jan 1970 00:00:00 GMT", "-5", "soon", "1.5", "")),
    ],
)
@pytest.mark.parametrize("is_busy_page", [False, True])
def test_a_site_is_left_alone_for_as_long_as_it_asks(
    make: Make, web: Web, clock: SimulatedTime, is_busy_page: bool, value: str, pause_s: float
) -> None:
    status, body = (200, b"maxlag") if is_busy_page else (429, b"")
    web.faults.append(Fault("status", "main", "/page", 1, status, {"Retry-After": value}, body))
    page = make().get("main", "/page", is_busy=lambda page: page.body == b"maxlag")
    assert page.body == b"hello"
    assert pause_s <= clock.slept_s <= pause_s + 1.5 * pacing.BACKOFF_BASE_S


@pytest.mark.parametrize("value", ["601", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_longer_pause_than_ours_ends_the_crawl(make: Make, web: Web, value: str) -> None:
    web.faults.append(Fault("status", "main", "/page", 1, 429, {"Retry-After": value}))
    for fetcher in (make(), make()):
        with pytest.raises(SourceUnavailable, match="asks for a pause of .* at most 600 s"):
            fetcher.get("main", "/page")
    assert len(pages_asked(web)) == 1


def test_a_busy_page_is_never_cached(make: Make, web: Web) -> None:
    web.faults.append(Fault("status", "main", "/page", 99, 200, body=b"maxlag"))
    with pytest.raises(SourceUnavailable, match="busy"):
        make().get("main", "/page", is_busy=lambda page: page.body == b"maxlag")
    web.faults.clear()
    assert make().get("main", "/page").body == b"hello"


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (401, AccessRefused, None), (403, ItemUnavailable, "http_403"),
        (404, ItemUnavailable, "http_404"), (410, ItemUnavailable, "http_410"),
        (451, ItemUnavailable, "permission"), (400, SourceChanged, None),
        (422, SourceChanged, None), (204, SourceChanged, None), (304, SourceChanged, None),
        (501, ItemFailed, "http_5xx"), (521, ItemFailed, "http_5xx"),
    ],
)  # fmt: skip
def test_final_answers_are_asked_for_once(
    make: Make, web: Web, status: int, error: type[Exception], reason: str | None
) -> None:
    web.faults.append(Fault("status", "main", "/page", 99, status, body=b""))
    with pytest.raises(error, match=rf"/page answered {status}") as caught:
        make().get("main", "/page")
    assert getattr(caught.value, "reason", None) == reason
    assert pages_asked(web) == ["/page"]


@pytest.mark.parametrize(
    ("status", "num_asked", "says"),
    [
        (403, pacing.REFUSALS_TO_STOP, "10 requests in a row were refused"),
        (429, pacing.REFUSALS_TO_STOP, "10 requests in a row were refused"),
        (500, 5 * pacing.FAILURES_TO_STOP, "5 addresses in a row failed"),
    ],
)
def test_many_failures_in_a_row_stop_the_fetcher(
    make: Make, web: Web, status: int, num_asked: int, says: str
) -> None:
    fetcher = make()
    fetcher.get("main", "/page")
    web.faults.append(Fault("status", "main", "", 999, status))
    for number in range(20):
        with pytest.raises((ItemUnavailable, ItemFailed, SourceUnavailable)):
            fetcher.get("main", f"/item/{number}")
    assert len(pages_asked(web)) == 1 + num_asked
    with pytest.raises(SourceUnavailable, match=says):
        fetcher.get("main", "/item/new")
    assert fetcher.get("main", "/page").body == b"hello"  # cached files stay readable


@pytest.mark.parametrize(
    ("fault", "good"),
    [
        (Fault("status", "main", "/item", 999, 403), "/page"),
        (Fault("disconnect", "main", "/item", 999), "/page"),
        (Fault("disconnect", "main", "/item", 999), "/gone"),
    ],
    ids=["refusal", "failure", "failure among what is not there"],
)
def test_single_failures_do_not_stop_the_fetcher(
    make: Make, web: Web, fault: Fault, good: str
) -> None:
    fetcher = make(use_cache=False)
    web.faults.append(fault)
    for number in range(pacing.REFUSALS_TO_STOP + 2):
        with pytest.raises((ItemUnavailable, ItemFailed)):
            fetcher.get("main", f"/item/{number}")
        with contextlib.suppress(ItemUnavailable):
            fetcher.get("main", good)


def test_refusals_behind_redirects_count_too(make: Make, web: Web, site: PageSite) -> None:
    site.pages |= {"/old": Response(302, {"Location": "/new"}), "/new": Response(403)}
    fetcher = make()
    for number in range(pacing.REFUSALS_TO_STOP + 1):
        is_stopped = number == pacing.REFUSALS_TO_STOP
        with pytest.raises(SourceUnavailable if is_stopped else ItemUnavailable):
            fetcher.get("main", "/old")


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("status", "main", "/page", 99, 429), "http_429"),
        *((Fault("status", "main", "/page", 99, code), "http_5xx") for code in (500, 502, 504)),
        (Fault("status", "main", "/page", 99, 503, {"Retry-After": "0"}), "http_5xx"),
        (Fault("disconnect", "main", "/page", 99), "network"),
        (Fault("truncate", "main", "/page", 99), "damaged_answer"),
        (Fault("drip", "main", "/page", 99), "timeout"),
        (Fault("status", "main", "/page", 99, 200, GZIPPED, b"no gzip"), "damaged_answer"),
        (Fault("status", "main", "/page", 99, 200, GZIPPED, GZIP[:-9]), "damaged_answer"),
    ],
    ids=lambda value: f"{value.kind}-{value.status}" if isinstance(value, Fault) else value,
)
def test_a_failure_is_tried_again_four_times_and_has_its_reason(
    make: Make, web: Web, monkeypatch: pytest.MonkeyPatch, fault: Fault, reason: str
) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.3)
    monkeypatch.setattr(server, "DRIP_PAUSE_S", 1.0)
    web.faults.append(fault)
    with refused(reason, r"/page failed 5 times, at last: ", kind=ItemFailed):
        make().get("main", "/page")
    assert reason in FAIL_REASONS
    assert len(pages_asked(web)) == 5
    web.faults[:] = [dataclasses.replace(fault, times=4)]
    fetcher = make()
    assert fetcher.get("main", "/page").body == b"hello"  # nothing was kept of what failed
    assert fetcher.stats["retries"] == 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(settings: Settings, web: Web, site: PageSite, status: int) -> None:
    site.pages |= {
        "/old": Response(status, {"Location": "page?x=1"}),
        "/other": Response(status, {"Location": f"{web.urls['other']}/page"}),
        "/nowhere": Response(status),
    }
    own = settings.model_copy(update={"sites": web.urls})
    fetcher = Fetcher(own, {key: web.urls[key] for key in ("main", "other")}, 0.0)
    page = fetcher.get("main", "/old")
    assert (page.url, page.body) == (f"{web.urls['main']}/page?x=1", b"hello")
    assert fetcher.get("main", "/other").url == f"{web.urls['other']}/page"
    with pytest.raises(SourceChanged, match=f"answered {status}"):
        fetcher.get("main", "/nowhere")


def test_redirects_end(make: Make, web: Web, site: PageSite) -> None:
    for number in range(9):
        site.pages[f"/{number}"] = Response(302, {"Location": f"/{number + 1}"})
    site.pages["/5"] = Response(body=b"there")
    assert make().get("main", "/0").body == b"there"
    site.pages["/5"] = Response(302, {"Location": "/6"})
    with pytest.raises(SourceChanged, match="redirects more than 5 times"):
        make(use_cache=False).get("main", "/0")


@pytest.mark.parametrize(
    "location",
    [
        server.OFF_HOST, "//169.254.169.254/latest", "http://localhost/page",
        "http://evil.example\\@{host}/page", "http://{host}@evil.example/page",
        "http://user:word@{host}/page", "http://127.0.0.1.evil.example/page", "{other}/page",
        "ftp://{host}/page", "file:///etc/passwd", "httpx://{host}/page", "javascript:alert(1)",
        "http://[::1", "http://a:b:c/", "http://\x01/", "https:///x",
    ],
)  # fmt: skip
def test_redirects_stay_on_known_hosts(
    make: Make, web: Web, site: PageSite, other: PageSite, location: str
) -> None:
    host = web.urls["main"].removeprefix("http://")
    target = location.replace("{host}", host).replace("{other}", web.urls["other"])
    site.pages["/old"] = Response(302, {"Location": target})
    says = "on none of this source's hosts|which is no URL|makes no URL"
    with pytest.raises((AccessRefused, SourceChanged), match=says):
        make().get("main", "/old")
    assert pages_asked(web) == ["/old"]


def test_https_is_never_left_for_http(settings: Settings) -> None:
    fetcher = Fetcher(settings, {"main": "https://site.example:9"}, 0.0, ["site.example"])
    fetcher._exchange._require_known_host("https://site.example/y", "https://site.example:9/x")
    with pytest.raises(AccessRefused, match="anyone on the way can alter"):
        fetcher._exchange._require_known_host("http://site.example/y", "https://site.example:9/x")


def test_a_gzip_body_is_unpacked_and_no_other(make: Make, site: PageSite) -> None:
    packed = gzip.compress(b"one") + gzip.compress(b" two")
    for coding in ("gzip", "x-gzip", "GZIP"):
        site.pages[f"/{coding}"] = Response(200, {"Content-Encoding": coding}, packed)
        assert make().get("main", f"/{coding}").body == b"one two"
    site.pages["/br"] = Response(200, {"Content-Encoding": "br"}, b"???")
    with pytest.raises(SourceChanged, match="packed as 'br'"):
        make().get("main", "/br")


def test_a_text_that_was_packed_twice_is_unpacked_twice(make: Make, site: PageSite) -> None:
    page = {"Content-Type": "text/html; charset=utf-8"}
    once, twice = gzip.compress(b"<html>"), gzip.compress(gzip.compress(b"<html>"))
    site.pages["/twice"] = Response(200, page | GZIPPED, twice)
    site.pages["/both"] = Response(200, page | {"Content-Encoding": "gzip, gzip"}, twice)
    site.pages["/unsaid"] = Response(200, page, once)
    site.pages["/feed"] = Response(200, {"Content-Type": "application/rss+xml"} | GZIPPED, twice)
    for path in ("/twice", "/both", "/unsaid", "/feed"):
        assert make().get("main", path).body == b"<html>"
    site.pages["/archive"] = Response(200, {"Content-Type": "application/gzip"} | GZIPPED, twice)
    assert make().get("main", "/archive").body == once  # a file that is meant to be packed
    site.pages["/thrice"] = Response(200, {"Content-Encoding": "gzip, gzip, gzip"}, twice)
    with pytest.raises(SourceChanged, match="packed as"):
        make().get("main", "/thrice")


@pytest.mark.parametrize("packing", [{}, GZIPPED], ids=["plain", "gzip"])
def test_the_cap_is_exact(make: Make, site: PageSite, packing: dict[str, str]) -> None:
    body = bytes(range(256)) * 400
    site.pages["/big"] = Response(200, packing, gzip.compress(body) if packing else body)
    assert make().get("main", "/big", max_bytes=len(body)).body == body
    for use_cache in (True, False):  # also for cached responses
        fetcher = make(use_cache=use_cache)
        with refused("too_large", "larger than 102399 bytes"):
            fetcher.get("main", "/big", max_bytes=len(body) - 1)
        assert fetcher.stats["bytes"] < 2**11  # an announced size is enough


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def test_a_body_of_unknown_length(make: Make, site: PageSite) -> None:
    headers = {"Transfer-Encoding": "chunked"}
    site.pages["/chunked"] = Response(200, headers, chunked(b"x" * 70_000))
    assert make().get("main", "/chunked", max_bytes=70_000).body == b"x" * 70_000
    packed = chunked(gzip.compress(b"") * 5000)  # unpacks to nothing
    site.pages["/empties"] = Response(200, {**headers, **GZIPPED}, packed)
    for path in ("/chunked", "/empties"):
        with refused("too_large", "larger than 69999 bytes"):
            make(use_cache=False).get("main", path, max_bytes=69_999)


def test_a_gzip_bomb_is_left_packed(make: Make, web: Web) -> None:
    faults.pack_zeros(server.BOMB_BYTES)
    web.faults.append(Fault("gzip_bomb", "main", "/page"))
    tracemalloc.start()
    with refused("too_large"):
        make().get("main", "/page", max_bytes=2**20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_the_body_of_a_redirect_is_not_read(make: Make, site: PageSite) -> None:
    packed = faults.pack_zeros(server.BOMB_BYTES)
    site.pages["/old"] = Response(302, {"Location": "/page", **GZIPPED}, packed)
    fetcher = make()
    assert fetcher.get("main", "/old").body == b"hello"
    assert fetcher.stats["bytes"] == len(b"hello")


def test_a_rerun_fetches_nothing(make: Make, web: Web, settings: Settings) -> None:
    make(use_cache=False).get("main", "/page")
    assert not (settings.scratch / "http-cache").exists()
    first = make().get("main", "/page", {"b": 2, "a": 1})
    asked = list(web.requests)
    fetcher = make()
    assert fetcher.get("main", "/page", {"a": 1, "b": 2}) == first
    assert web.requests == asked
    assert (fetcher.stats["cached"], fetcher.stats["requests"]) == (1, 0)
    files = [path for path in (settings.scratch / "http-cache").rglob("*") if path.is_file()]
    assert len(files) == 2  # robots.txt and the page
    for params, headers in (({}, {}), ({"a": 2}, {}), ({}, {"Accept": "application/json"})):
        fetcher.get("main", "/page", params, headers=headers)
    assert fetcher.stats["cached"] == 1  # other questions have other answers


class Validating(PageSite):
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


def test_without_validators_a_page_is_fetched_anew(make: Make, web: Web, site: PageSite) -> None:
    site.pages["/page"] = Response(200, {"ETag": '"naïve"'}, b"hello")  # none that may be sent
    make().get("main", "/page")
    site.pages["/page"] = Response(body=b"changed")
    assert make(revalidates=True).get("main", "/page").body == b"changed"
    assert "if-none-match" not in site.seen[-1].headers
    web.faults.append(Fault("status", "main", "/page", 1, 304, body=b""))
    with pytest.raises(SourceChanged, match="answered 304"):  # which nobody asked for
        make(revalidates=True).get("main", "/page")


def test_validators_go_where_the_page_came_from(validating: tuple[Validating, Make, Web]) -> None:
    site, make, web = validating
    site.pages["/old"] = Response(302, {"Location": "/page"})
    make().get("main", "/old")
    again = make(revalidates=True)
    assert again.get("main", "/old").body == b"hello"
    assert again.stats["304"] == 1
    asked = [(seen.path, "if-none-match" in seen.headers) for seen in site.seen]
    assert asked == [("/old", False), ("/page", False), ("/old", False), ("/page", True)]


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
    use_proxy(monkeypatch, web.urls["main"])
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
        assert b"quota" in answer.body
        raise SourceUnavailable("quota used up")

    web.faults.append(Fault("status", "main", "^/page", 9, status, body=b"quota"))
    fetcher = make()
    fetcher.heed("main", ApiRules(rule))
    with pytest.raises(SourceUnavailable, match="quota used up"):
        fetcher.get("main", "/page")
    assert len(pages_asked(web)) == 1


@pytest.mark.parametrize(("status", "reason"), [(403, "http_403"), (409, "empty")])
def test_what_a_rule_says_nothing_of_is_final_or_not_there(
    make: Make, web: Web, status: int, reason: str
) -> None:
    fetcher = make()
    fetcher.heed("main", ApiRules(lambda status, answer: None, {409: "empty"}))
    web.faults.append(Fault("status", "main", "^/page", 1, status, body=b"blocked"))
    with refused(reason):
        fetcher.get("main", "/page")
    assert len(pages_asked(web)) == 1


def test_a_host_rests_after_a_good_answer_that_used_up_its_limit(
    make: Make, web: Web, clock: SimulatedTime
) -> None:
    fetcher, rest_s = make(), 300.0
    fetcher.heed("main", ApiRules(lambda status, answer: rest_s))
    fetcher.get("main", "/page")
    rest_s = pacing.MAX_WAIT_S + 60
    fetcher.get("main", "/page?again=1")
    assert clock.slept_s == pytest.approx(300, abs=1)
    with pytest.raises(SourceUnavailable, match="asks for a pause of 6"):
        fetcher.get("main", "/page?again=2")
    assert len(pages_asked(web)) == 2
