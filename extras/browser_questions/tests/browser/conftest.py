import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import sync_playwright
from pydantic import SecretStr

from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from crawlers.web.fetcher import Fetcher
from extras.browser_questions.browser.fetching import PREFIX, Limits, find_chromium
from extras.browser_questions.browser.session import LogIn
from extras.browser_questions.simulator import gjo
from simulator.server import Request, Response, Web, serve_sites
from simulator.world import World

KEY = "good_judgment_open"
PAGES = "pages"
LIST = "/leaderboards/questions?page=1"
QUICK = Limits(page_s=20.0)


class Pages:
    keys = (PAGES,)

    def __init__(self) -> None:
        self.quirks: dict[Any, int] = {}
        self.robots: str | None = "User-agent: *\nDisallow: /private\n"
        self.answers: dict[str, Response | Callable[[], Response]] = {}
        self.agents: Counter[str] = Counter()
        self.hints: list[str] = []

    def respond(self, request: Request) -> Response:
        self.agents[request.headers.get("user-agent", "")] += 1
        self.hints += [name for name in request.headers if name.startswith("sec-")]
        answer = self.answers.get(request.path, Response(404))
        return answer if isinstance(answer, Response) else answer()

    def add(self, path: str, body: str, kind: str = "text/html", **headers: str) -> None:
        self.answers[path] = Response(200, {"Content-Type": kind, **headers}, body.encode())

    def add_filled(self, data: str) -> None:
        self.add("/page", "<div id=box></div><script src=/fill.js></script>")
        self.add("/fill.js", "fetch('/data').then(a => a.text()).then(t => box.append(t))")
        self.add("/data", data, "text/plain")


@pytest.fixture(scope="module", autouse=True)
def chromium() -> None:
    with sync_playwright() as playwright:
        try:
            find_chromium(Settings(), playwright)
        except UsageError as error:
            pytest.skip(f"no browser (`make chromium` installs one): {error}")


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def web(pages: Pages) -> Iterator[Web]:
    with serve_sites([gjo.Site(World(3, Month("2024-02"), Month("2024-03"))), pages]) as web:
        yield web


@pytest.fixture
def fetcher(web: Web, settings: Settings) -> Fetcher:
    return fetcher_of(web, settings)


def fetcher_of(web: Web, settings: Settings, **more: Any) -> Fetcher:
    settings = settings.model_copy(update={"sites": web.urls, **more})
    return Fetcher(settings, {KEY: "https://gjo.invalid", PAGES: "https://pages.invalid"}, 1.0)


def login(web: Web, password: str = gjo.PASSWORD) -> LogIn:
    return LogIn(
        url=f"{web.urls[KEY]}/users/sign_in",
        user=gjo.USER,
        password=SecretStr(password),
        user_field="#user_email",
        password_field="#user_password",
        submit="#new_user [type=submit]",
        done="a[href='/users/sign_out']",
        refused=".alert-danger",
    )


OTHERS: set[psutil.Process] = set()


def children() -> set[psutil.Process]:
    return {
        process
        for process in psutil.Process().children(recursive=True)
        if process.status() != psutil.STATUS_ZOMBIE
    }


@pytest.fixture(autouse=True)
def others() -> None:
    OTHERS.clear()
    OTHERS.update(children())


def chromiums() -> list[psutil.Process]:
    return list(children() - OTHERS)


@pytest.fixture(autouse=True)
def own_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Separate the browsers of parallel tests; Chromium's socket needs a short path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


def leftovers() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))
