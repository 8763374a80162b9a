import threading
import time
from collections.abc import Callable, Iterator

import pytest

from simulator.server import Request, Response, Web, serve_sites


class PageSite:
    robots: str | None = None

    def __init__(self, key: str = "main") -> None:
        self.keys = (key,)
        self.pages: dict[str, Response] = {"/page": Response(body=b"hello")}
        self.seen: list[Request] = []
        self.seen_at: list[float] = []
        self.now: Callable[[], float] = time.monotonic
        self.threads: set[str] = set()

    def respond(self, request: Request) -> Response:
        self.seen.append(request)
        self.seen_at.append(self.now())
        self.threads.add(threading.current_thread().name)
        return self.pages.get(request.path, Response(404))


@pytest.fixture
def site() -> PageSite:
    return PageSite()


@pytest.fixture
def other() -> PageSite:
    return PageSite("other")


@pytest.fixture
def web(site: PageSite, other: PageSite) -> Iterator[Web]:
    with serve_sites([site, other]) as running:
        yield running


def use_proxy(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", url)
