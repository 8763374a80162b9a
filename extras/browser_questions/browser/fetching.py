"""A browser for sites that render pages with JavaScript; it obeys the limits of the fetcher.

Chromium itself has no network access (``_FLAGS``). The polite fetcher (``crawlers.web.fetcher``)
sends the requests of a page instead. So robots.txt, request intervals, allowed hosts, size limits,
retries, cache and user agent are the same as without a browser. Other network access fails
(WebSockets, WebRTC, beacons, DNS). Only a page's HTML, scripts, styles and data are fetched, and
only from the source's hosts. Only log-in forms are sent. A browser may be used by one thread only,
since it uses Playwright's synchronous API.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import select
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, Playwright, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from core.errors import ItemFailed, SourceUnavailable, UsageError
from core.settings import Settings
from core.storage.store import explain_disk_errors
from crawlers.web.fetcher import Fetcher

PREFIX = "tidemark-browser-"  # prefix of the names of temporary folders
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_GUARD = Path(__file__).with_name("guard.py")
_START_S = 60.0
_END_S = 10.0
_FLAGS = (
    # The first two flags block network access. No host name or IP address resolves, and WebRTC may
    # send UDP only through a proxy, which does not exist.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    "--disable-gpu",
    "--mute-audio",
    "--js-flags=--max-old-space-size=512",
)
_COMPLAINT = re.compile(r"\bFATAL\b|No usable|not found|error while|ermission denied")
_log = logging.getLogger(__name__)


def find_chromium(settings: Settings, playwright: Playwright) -> Path:
    """Return the path of Chromium from settings, system or Playwright, or raise UsageError."""
    if settings.chromium is not None:
        if settings.chromium.exists():
            return settings.chromium
        raise UsageError(f"TIDEMARK_CHROMIUM is {settings.chromium}, and there is no such file")
    found = [Path(each) for name in NAMES if (each := shutil.which(name))]
    found.append(Path(playwright.chromium.executable_path))
    for path in found:
        if path.exists():
            return path
    raise UsageError(
        "this source needs a browser, and there is no Chromium: apt-get install chromium, or "
        "playwright install chromium; TIDEMARK_CHROMIUM names one that lies elsewhere"
    )


class BrowserProcess:
    """A running Chromium, supervised by the process ``guard.py``.

    The guard kills Chromium if Chromium's processes together use more than ``memory_bytes``. Raise
    UsageError if Chromium is not installed. Raise ItemFailed if Chromium does not start. Raise
    StorageError if the folder for temporary files cannot be written.
    """

    def __init__(self, playwright: Playwright, settings: Settings, memory_bytes: int) -> None:
        binary = find_chromium(settings, playwright)
        with explain_disk_errors(tempfile.gettempdir()):
            # The folder is not in the scratch folder: that path may be too long for a Unix socket.
            self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock: IO[str] = (self._folder / "lock").open("a")
            fcntl.lockf(self._lock, fcntl.LOCK_EX)  # held until ``end``, or until this process ends
            start = self._folder / "start"
            command = [sys.executable, "-I", _GUARD, self._folder, memory_bytes, binary]
            start.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
            start.chmod(0o700)
        self._guard: int | None = None
        try:
            self.browser = self._launch(playwright, start)
        except PlaywrightError as error:
            self.end()
            _log.info("%s", error)
            said = [line.strip() for line in str(error).splitlines() if _COMPLAINT.search(line)]
            why = "; ".join(said[:3]) or str(error).partition("\n")[0]
            raise ItemFailed("browser", f"{binary} does not start: {why}") from error
        # ``kill`` signals a pidfd: the system may give the id of an ended guard to another process.
        self._guard = os.pidfd_open(int((self._folder / "pid").read_text()))

    def _launch(self, playwright: Playwright, start: Path) -> Chromium:
        """Start Chromium, without a sandbox if it does not start in one."""
        # The browser inherits no environment variables, since they may hold tokens.
        folder = str(self._folder)
        environment: dict[str, str | float | bool] = {
            "HOME": folder, "TMPDIR": folder, "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }  # fmt: skip

        def launch(has_sandbox: bool) -> Chromium:
            return playwright.chromium.launch(
                executable_path=start,
                args=_FLAGS,
                env=environment,
                chromium_sandbox=has_sandbox,
                timeout=_START_S * 1000,
                downloads_path=folder,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )

        if os.getuid() == 0:  # Chromium refuses to use its sandbox as root
            return launch(has_sandbox=False)
        try:
            return launch(has_sandbox=True)
        except PlaywrightError:
            _log.warning("Chromium does not start in its sandbox here; it runs without it")
            return launch(has_sandbox=False)

    @property
    def num_bytes_too_many(self) -> int | None:
        """The memory in bytes at which the guard killed the browser; None if the guard did not."""
        try:
            return int((self._folder / "memory").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def kill(self) -> None:
        """Kill the browser at once, from any thread; pending Playwright calls raise an error."""
        with contextlib.suppress(ProcessLookupError):
            if self._guard is not None:
                signal.pidfd_send_signal(self._guard, signal.SIGTERM)

    def end(self) -> None:
        """Kill the browser and its processes at once, and delete its temporary files."""
        self.kill()
        if self._guard is not None:
            select.select([self._guard], [], [], _END_S)  # wait until the guard has ended
            os.close(self._guard)
            self._guard = None
            with contextlib.suppress(PlaywrightError):
                self.browser.close()  # Playwright's driver then deletes the profile
        self._lock.close()
        shutil.rmtree(self._folder, ignore_errors=True)


_ALARM_S = 0.2
_GRACE_S = 5.0  # extra seconds before a browser is killed, so that Playwright can time out first


@dataclass(frozen=True)
class Limits:
    """Limits for one page and for its browser."""

    page_s: float = 60.0  # maximum loading time of a page (s), without the fetcher's waits
    session_s: float = 6 * 3600.0  # maximum seconds since the creation of the ``Browser``
    page_requests: int = 100  # maximum number of answered requests per page
    memory_bytes: int = 2 * 2**30  # maximum private memory of all browser processes
    tries: int = 2  # maximum tries per page if the browser crashes


class Browser:
    """A browser for a ``with`` block; it starts on first use, and again after a crash.

    The fetcher's ``stats`` include the requests of pages, and count ``pages``, ``pages_crashed``,
    ``browser_starts`` and ``not_asked`` (page requests that were not sent).
    """

    def __init__(self, settings: Settings, fetcher: Fetcher, limits: Limits | None = None) -> None:
        self.fetcher = fetcher
        self.limits = limits or Limits()
        self._settings = settings
        self._stack = contextlib.ExitStack()
        self._playwright: Playwright | None = None
        self._process: BrowserProcess | None = None
        self._started = time.monotonic()
        self.clock = Clock(fetcher)
        self._hangs = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._stack.close()

    def new_context(self, **options: object) -> BrowserContext:
        """Return a new Playwright context; start the browser first if it does not run."""
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
        """True if the browser process runs."""
        return self._process is not None and self._process.browser.is_connected()

    def kill(self) -> None:
        """Kill the browser if it runs; ``new_context`` can start another browser."""
        process = self._process
        self._process = None
        if process is not None:
            process.end()

    def require_time(self) -> None:
        """Raise SourceUnavailable if more than ``session_s`` seconds have passed."""
        if time.monotonic() - self._started > self.limits.session_s:
            raise SourceUnavailable(
                f"the browser has run for {self.limits.session_s:.0f} s, the limit of a crawl; run "
                "the same command again: fetched pages are kept"
            )

    def why_gone(self, url: str) -> ItemFailed | None:
        """Return the error if a page hung or used too much memory; None after other crashes."""
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
        """Start the page's clock; in the ``with`` block, kill a browser that exceeds ``page_s``."""
        clock = self.clock
        is_over = threading.Event()
        self._hangs = False
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
    """A clock for the loading time of a page, without the fetcher's waits before requests."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._began = self._waited_ms = 0.0
        self.is_fetching = False

    def start(self) -> None:
        """Reset the clock to zero for a new page."""
        self._began = time.monotonic()
        self._waited_ms = self._fetcher.stats["wait_ms"]

    @property
    def elapsed_s(self) -> float:
        """Seconds since ``start``, without the fetcher's waits before requests."""
        waited_s = (self._fetcher.stats["wait_ms"] - self._waited_ms) / 1000
        return time.monotonic() - self._began - waited_s

    @contextlib.contextmanager
    def fetching(self) -> Iterator[None]:
        """Mark the ``with`` block as a request, during which the page does not count as hung."""
        before = self.is_fetching
        self.is_fetching = True
        try:
            yield
        finally:
            self.is_fetching = before
