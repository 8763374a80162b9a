import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import sync_playwright

from core.errors import AccessRefused, ItemFailed, SourceUnavailable, TokenRefused, UsageError
from core.settings import Settings
from crawlers.web.fetcher import Fetcher
from extras.browser_questions.browser.fetching import Browser, Limits, find_chromium
from extras.browser_questions.browser.session import Session
from extras.browser_questions.simulator import gjo
from extras.browser_questions.tests.browser.conftest import (
    KEY,
    LIST,
    PAGES,
    QUICK,
    Pages,
    chromiums,
    fetcher_of,
    leftovers,
    login,
)
from simulator.server import Response, Web
from tests.crawlers.conftest import refused
from tests.forks import ROOT


@pytest.mark.smoke
def test_a_page_that_a_script_fills_in_is_read_by_who_is_logged_in(
    web: Web, fetcher: Fetcher, settings: Settings
) -> None:
    site: Any = web.sites[KEY]
    url = web.urls[KEY] + LIST
    with Browser(settings, fetcher, QUICK) as browser:
        page = Session(browser, login(web)).read(url, "div.row-table-row")
        assert page.body.count(b'class="row row-table-row"') == gjo.ON_A_PAGE + 1
        assert page.url == url
        form = Session(browser).read(f"{web.urls[KEY]}/leaderboards/questions", "#new_user")
        assert form.url.endswith("/users/sign_in")
    assert chromiums() == []
    assert site.seen == {"/": 1}
    assert [path for _, method, path in web.requests if method == "POST"] == ["/users/sign_in"]
    assert fetcher.stats["pages"] == 2
    assert fetcher.stats["browser_starts"] == 1
    assert fetcher.stats["not_asked"] > 4
    assert fetcher.stats["requests"] == len(web.requests)
    assert "/robots.txt" in {path for _, _, path in web.requests[:1]}
    kept = [path for path in Path(settings.scratch).rglob("*") if path.is_file()]
    assert not [path for path in kept if gjo.PASSWORD.encode() in path.read_bytes()]
    assert leftovers() == set()


def test_what_was_fetched_is_read_from_the_cache(
    web: Web, pages: Pages, settings: Settings
) -> None:
    pages.add_filled("<p>told</p>")
    bodies = []
    asked = []
    for _ in range(2):
        with Browser(settings, fetcher_of(web, settings), QUICK) as browser:
            page = Session(browser).read(f"{web.urls[PAGES]}/page", "#box:not(:empty)")
        bodies.append((page.body, page.retrieved_at))
        asked.append(len(web.requests))
    assert b"&lt;p&gt;told&lt;/p&gt;" in bodies[0][0]
    assert bodies[0] == bodies[1]
    assert asked == [4, 4]


def test_robots_and_pace_hold_for_pages_and_for_their_parts(
    web: Web, pages: Pages, settings: Settings
) -> None:
    pages.add_filled("told")
    pages.add("/needs", "<script src=/private/fill.js></script>")
    fetcher = fetcher_of(web, settings, request_interval_s=1.5)
    base = web.urls[PAGES]
    with Browser(settings, fetcher, Limits(page_s=4)) as browser:
        session = Session(browser)
        session.read(f"{base}/page", "#box:not(:empty)")  # waits longer for its turns than page_s
        for path in ("/private/page", "/needs"):
            with refused("robots", r"robots.txt disallows .*/private"):
                session.read(base + path, "#never")
    assert not [path for _, _, path in web.requests if "private" in path]
    arrivals = web.traffic[PAGES].arrivals
    assert len(arrivals) == 5
    # Requests are sent 1.5 s apart; the first may arrive late at the site.
    assert arrivals[-1] - arrivals[0] >= 3 * 1.5
    assert set(pages.agents) == {fetcher.user_agent}
    assert fetcher.user_agent.startswith("tidemark/")
    assert pages.hints == []


@pytest.fixture
def eavesdropper() -> Iterator[tuple[int, int, list[str]]]:
    heard: list[str] = []
    done = threading.Event()
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))

        def listen(each: socket.socket, take: Callable[[], Any]) -> None:
            each.settimeout(0.05)
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    heard.append(f"{each.type.name}: {take()}")

        threads = [
            threading.Thread(target=listen, args=(tcp, tcp.accept)),
            threading.Thread(target=listen, args=(udp, lambda: udp.recv(2000))),
        ]
        for thread in threads:
            thread.start()
        yield tcp.getsockname()[1], udp.getsockname()[1], heard
        done.set()
        for thread in threads:
            thread.join()


def test_nothing_leaves_for_other_hosts_by_whatever_way(
    web: Web, pages: Pages, fetcher: Fetcher, settings: Settings, eavesdropper: Any
) -> None:
    tcp, udp, heard = eavesdropper
    off = f"http://127.0.0.1:{tcp}"
    pages.add(
        "/page",
        f"""<link rel=preconnect href="{off}"><link rel=stylesheet href="{off}/s.css">
        <link rel=icon href="{off}/i.ico"><img src="{off}/i.png"><iframe src="{off}/f"></iframe>
        <script type=speculationrules>
          {{"prefetch": [{{"source": "list", "urls": ["{off}/p"]}}]}}</script>
        <script src="{off}/s.js" async></script><script>
        new WebSocket("ws://127.0.0.1:{tcp}/w");
        const pc = new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{udp}"}}]}});
        pc.createDataChannel("x");
        pc.createOffer().then(offer => pc.setLocalDescription(offer));
        const work = `fetch("{off}/x").catch(() => 0)`;
        new Worker(URL.createObjectURL(new Blob([work])));
        navigator.sendBeacon("{off}/b", "x");
        window.open("{off}/popup");
        fetch("{off}/f", {{mode: "no-cors"}}).catch(() => 0);
        fetch("/away", {{mode: "no-cors"}}).catch(() => 0);
        new EventSource("{off}/e");
        setTimeout(() => location = "{off}/gone", 500);
        setTimeout(() => document.body.insertAdjacentHTML("beforeend", "<p id=done>"), 1500);
        </script>""",
    )
    pages.answers["/away"] = Response(302, {"Location": f"{off}/redirected"})
    pages.answers["/leads-away"] = Response(302, {"Location": f"{off}/redirected"})
    with Browser(settings, fetcher, QUICK) as browser:
        session = Session(browser)
        session.read(f"{web.urls[PAGES]}/page", "#done")
        with pytest.raises(AccessRefused, match="which is on none of this source's hosts"):
            session.read(f"{web.urls[PAGES]}/leads-away", "#done")
        with pytest.raises(AccessRefused, match="which is on none of this source's hosts"):
            session.read(f"{off}/direct", "#done")
    assert heard == []


def test_addresses_of_our_own_network_are_refused_unless_a_setting_names_them(
    web: Web, settings: Settings
) -> None:
    url = web.urls[PAGES]
    fetcher = Fetcher(settings, {PAGES: url}, 0.0)  # a default of the source, no setting
    with (
        Browser(settings, fetcher, QUICK) as browser,
        pytest.raises(AccessRefused, match="not on the public internet"),
    ):
        Session(browser).read(f"{url}/page", "body")
    assert web.requests == []


def test_a_page_that_takes_too_long_fails_and_the_next_is_read(
    web: Web, fetcher: Fetcher, settings: Settings
) -> None:
    site: Any = web.sites[KEY]
    enough = Limits(page_requests=20)
    with Browser(settings, fetcher, enough) as browser:
        session = Session(browser, login(web))
        assert session.read(f"{web.urls[KEY]}{LIST}", "div.row-table-row")
        browser.limits = replace(enough, page_s=3.0)
        for trap in ("endless", "asking"):
            with refused("timeout", "had no #never after 3 s", kind=ItemFailed):
                session.read(f"{web.urls[KEY]}/traps/{trap}", "#never")
        browser.limits = enough
        again = f"{web.urls[KEY]}{LIST.replace('1', '2')}"
        assert session.read(again, "div.row-table-row")  # logged in as before
    assert 0 < site.seen["/ask"] <= 20
    assert [path for _, method, path in web.requests if method == "POST"] == ["/users/sign_in"]
    assert chromiums() == []


def test_a_page_that_takes_too_much_memory_fails_and_the_next_is_read(
    web: Web, fetcher: Fetcher, settings: Settings
) -> None:
    # Long enough for a busy machine: the memory limit ends the page.
    limits = Limits(page_s=60.0, memory_bytes=600 * 2**20)
    with Browser(settings, fetcher, limits) as browser:
        session = Session(browser, login(web))
        says = "MiB of memory, and the browser may take 600 MiB"
        with refused("browser", says, kind=ItemFailed):
            session.read(f"{web.urls[KEY]}/traps/memory", "#never")
        assert session.read(web.urls[KEY] + LIST, "div.row-table-row")
    assert chromiums() == []


def kill_chromium() -> None:
    for process in chromiums():
        if "chromium" in process.name() or "chrome" in process.name():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def test_a_crashed_browser_is_started_again_and_then_counted(
    web: Web, pages: Pages, fetcher: Fetcher, settings: Settings
) -> None:
    num_left = 1

    def crash() -> Response:
        nonlocal num_left
        if num_left > 0:
            kill_chromium()
        num_left -= 1
        script = "document.write('<p id=done>')"
        return Response(200, {"Content-Type": "text/javascript"}, script.encode())

    pages.answers["/crash.js"] = crash  # under another address each time, or the cache would answer
    script = "document.write(`<script src=/crash.js?${Math.random()}></scr` + `ipt>`)"
    pages.add("/page", f"<script>{script}</script>")
    url = f"{web.urls[PAGES]}/page"
    with Browser(settings, fetcher, QUICK) as browser:
        session = Session(browser)
        assert b"done" in session.read(url, "#done").body
        assert fetcher.stats["pages_crashed"] == 1
        assert fetcher.stats["browser_starts"] == 2
        num_left = 9
        with refused("browser", "crashed 2 times at .*/page", kind=ItemFailed):
            session.read(url, "#done")
        assert fetcher.stats["pages_crashed"] == 3
    assert chromiums() == []


def test_a_wrong_password_is_said_and_never_shown(
    web: Web, fetcher: Fetcher, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "battery-staple-7"
    with (
        Browser(settings, fetcher, QUICK) as browser,
        pytest.raises(TokenRefused, match="does not accept the user name and password") as error,
    ):
        Session(browser, login(web, wrong)).read(web.urls[KEY] + LIST, "div.row-table-row")
    assert [path for _, method, path in web.requests if method == "POST"] == ["/users/sign_in"]
    seen: BaseException | None = error.value
    while seen is not None:
        assert wrong not in repr(seen)
        seen = seen.__cause__ or seen.__context__
    assert wrong not in caplog.text


def test_a_download_is_no_page(
    web: Web, pages: Pages, fetcher: Fetcher, settings: Settings
) -> None:
    pages.add("/file", "PK", "application/zip")
    pages.add("/attached", "<p>x</p>", **{"Content-Disposition": "attachment"})
    with Browser(settings, fetcher, QUICK) as browser:
        for path in ("/file", "/attached"):
            with refused("unknown_format", "is a download"):
                Session(browser).read(web.urls[PAGES] + path, "body")
    num_requests = len(web.requests)
    with (
        Browser(settings, fetcher, Limits(session_s=0.0)) as browser,
        pytest.raises(SourceUnavailable, match="run the same command again"),
    ):
        Session(browser).read(f"{web.urls[PAGES]}/page", "body")
    assert len(web.requests) == num_requests


def test_without_a_browser_it_is_said_what_to_install(
    web: Web, pages: Pages, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages.add("/page", "<p>x</p>")
    monkeypatch.setenv("PATH", str(tmp_path))
    for chromium, says in (
        (tmp_path / "none", "TIDEMARK_CHROMIUM is .*none"),
        (None, "apt-get install chromium, or playwright install chromium"),
    ):
        given = settings.model_copy(update={"chromium": chromium})
        if chromium is None and _playwrights_own():
            continue
        with (
            Browser(given, fetcher_of(web, given), QUICK) as browser,
            pytest.raises(UsageError, match=says),
        ):
            Session(browser).read(f"{web.urls[PAGES]}/page", "body")
    assert web.requests == []


def _playwrights_own() -> bool:
    with sync_playwright() as playwright:
        return Path(playwright.chromium.executable_path).exists()


def test_a_system_chromium_is_found_by_any_of_its_names(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    given = settings.model_copy(update={"chromium": None})
    for name in ("google-chrome", "chromium-browser", "chromium"):  # the first wins
        (tmp_path / name).symlink_to("/bin/true")
        with sync_playwright() as playwright:
            assert find_chromium(given, playwright) == tmp_path / name


CRAWL = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from core.settings import Settings
from extras.browser_questions.browser.fetching import Browser, Limits
from extras.browser_questions.browser.session import Session
from crawlers.web.fetcher import Fetcher
home, url = sys.argv[1:]
settings = Settings(home=home, sites={"good_judgment_open": url}, request_interval_s=0)
fetcher = Fetcher(settings, {"good_judgment_open": url}, 0.0)
with Browser(settings, fetcher, Limits(page_s=300.0)) as browser:
    Session(browser).read(url + "/traps/" + "endless", "#never")
"""


@pytest.mark.parametrize(
    "with_signal", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_no_process_is_left_when_ours_is_killed(
    with_signal: signal.Signals, web: Web, settings: Settings, tmp_path: Path
) -> None:
    crawl = subprocess.Popen(
        [sys.executable, "-c", CRAWL, str(tmp_path), web.urls[KEY]],
        cwd=ROOT,
        env={
            "PYTHONPATH": str(ROOT),
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "TMPDIR": tempfile.gettempdir(),
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 180
        while not any("/traps/endless" in path for _, _, path in web.requests):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.0)  # its page is in an endless loop now
        started = psutil.Process(crawl.pid).children(recursive=True)
        assert len([each for each in started if "chrom" in each.name()]) >= 3
        if with_signal == signal.SIGKILL:  # also if the driver hangs
            driver = psutil.Process(crawl.pid).children()[0]
            driver.send_signal(signal.SIGSTOP)
            started.remove(driver)
            threading.Timer(3.0, driver.send_signal, [signal.SIGCONT]).start()
        profiles = [
            argument.partition("=")[2]
            for each in started
            for argument in each.cmdline()
            if argument.startswith("--user-data-dir=")
        ]
        assert profiles
        crawl.send_signal(with_signal)
        crawl.wait(120)
        _, alive = psutil.wait_procs(started, timeout=60)
        assert [each.cmdline()[:3] for each in alive] == []
        if with_signal == signal.SIGKILL:
            psutil.wait_procs([driver], timeout=60)
            assert not driver.is_running()
    finally:
        crawl.kill()
        crawl.wait()
    assert leftovers() == set()
    assert not [path for path in profiles if os.path.exists(path)]  # noqa: PTH110
