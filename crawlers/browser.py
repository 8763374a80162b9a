"""A browser for sites that fill their pages in by JavaScript, as polite as the fetcher.

Chromium has no network (``browser_process.py``). Every request of a page is answered by the polite
fetcher, so robots.txt, pace, allowed hosts, caps, retries, cache and user agent are the same as for
HTTP; what a page could ask for behind our back (WebSockets, WebRTC, beacons, look-ups of names)
fails. A page gets its own document, scripts, styles and data. Images, media, fonts, frames and
whatever is on other hosts are not asked for; pop-ups are closed, nothing is downloaded, and no
form is sent but to log in.

Playwright's API for programs without an event loop is used: a browser belongs to one thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from playwright.sync_api import BrowserContext, Playwright, sync_playwright

from core.errors import ItemFailed, SourceUnavailable
from core.settings import Settings
from crawlers.browser_process import BrowserProcess
from crawlers.http import Fetcher

_ALARM_S = 0.2
_GRACE_S = 5.0  # for Playwright, which sees to the time of what it does itself


@dataclass(frozen=True)
class Limits:
    """What pages may take.

    Attributes:
        page_s: seconds for a page to be there, without those that it waits for its turn.
        session_s: seconds from the browser's start on, all in all.
        page_requests: that a page may have answered.
        memory_bytes: of all processes of the browser, without what they share.
        tries: of a page whose browser crashed.
    """

    page_s: float = 60.0
    session_s: float = 6 * 3600.0
    page_requests: int = 100
    memory_bytes: int = 2 * 2**30
    tries: int = 2


class Browser:
    """One browser, started when it is first needed, again after a crash, and ended with the block.

    Args:
        settings: for ``chromium``.
        fetcher: of the source; its ``stats`` count what the pages ask for, and ``pages``,
            ``pages_crashed``, ``browser_starts`` and ``not_asked`` (requests that were refused).
        limits: of pages.
    """

    def __init__(self, settings: Settings, fetcher: Fetcher, limits: Limits | None = None) -> None:
        self.fetcher, self.limits = fetcher, limits or Limits()
        self._settings = settings
        self._stack = contextlib.ExitStack()
        self._playwright: Playwright | None = None
        self._process: BrowserProcess | None = None
        self._started = time.monotonic()
        self.clock = Clock(fetcher)
        self._hangs = False

    def __enter__(self) -> Self:
        """Start nothing yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the browser and its driver."""
        self.kill()
        self._stack.close()

    def new_context(self, **options: object) -> BrowserContext:
        """Return a context of the running browser; start the browser if there is none.

        Raises:
            UsageError: there is no Chromium.
            ItemFailed: it does not start.
        """
        if self._playwright is None:
            self._playwright = self._stack.enter_context(sync_playwright())
        if self._process is None or not self._process.browser.is_connected():
            self.kill()
            self.fetcher.count(browser_starts=1)
            self._process = BrowserProcess(
                self._playwright, self._settings, self.limits.memory_bytes
            )
        return self._process.browser.new_context(
            user_agent=self.fetcher.user_agent,
            accept_downloads=False,
            service_workers="block",
            locale="en-US",
            timezone_id="UTC",
            **options,  # type: ignore[arg-type]
        )

    @property
    def is_alive(self) -> bool:
        """Whether a browser runs."""
        return self._process is not None and self._process.browser.is_connected()

    def kill(self) -> None:
        """End the browser that runs, if any; the next context starts another one."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def require_time(self) -> None:
        """Let another page begin.

        Raises:
            SourceUnavailable: the browser has had its time.
        """
        if time.monotonic() - self._started > self.limits.session_s:
            raise SourceUnavailable(
                f"the browser has run for {self.limits.session_s:.0f} s, which is all that a crawl "
                "gives it; run the same command again: what was fetched is kept"
            )

    def why_gone(self, url: str) -> ItemFailed | None:
        """Return why the browser was killed, where another try would end the same; else None."""
        if self._hangs:
            return ItemFailed(
                "timeout", f"{url} hung, and was killed after {self.limits.page_s:.0f} s and more"
            )
        num_bytes = self._process.num_bytes_too_many if self._process else None
        if num_bytes is not None:
            return ItemFailed(
                "browser",
                f"{url} took {num_bytes / 2**20:.0f} MiB of memory, and the browser may take "
                f"{self.limits.memory_bytes / 2**20:.0f} MiB; it was killed",
            )
        return None

    @contextlib.contextmanager
    def timing(self) -> Iterator[Clock]:
        """Run the clock of a page; once it has had its time, whatever hangs is killed."""
        clock, is_over, self._hangs = self.clock, threading.Event(), False
        clock.start()

        def watch() -> None:
            while not is_over.wait(_ALARM_S):
                if not clock.is_fetching and clock.elapsed_s > self.limits.page_s + _GRACE_S:
                    self._hangs = True
                    if self._process is not None:
                        self._process.kill()
                    return

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield clock
        finally:
            is_over.set()
            thread.join()


class Clock:
    """The time that a page takes: not that which its requests wait for their turn."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._began = self._waited_ms = 0.0
        self.is_fetching = False

    def start(self) -> None:
        """Begin with a page."""
        self._began, self._waited_ms = time.monotonic(), self._fetcher.stats["wait_ms"]

    @property
    def elapsed_s(self) -> float:
        """Seconds since the page began."""
        waited_s = (self._fetcher.stats["wait_ms"] - self._waited_ms) / 1000
        return time.monotonic() - self._began - waited_s

    @contextlib.contextmanager
    def fetching(self) -> Iterator[None]:
        """Note that the page's time passes at the site, or in waiting for it."""
        before, self.is_fetching = self.is_fetching, True
        try:
            yield
        finally:
            self.is_fetching = before
