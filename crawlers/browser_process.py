"""The browser's process: which Chromium, how it is started, and how it ends in any case."""

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
from pathlib import Path
from typing import IO

from playwright.sync_api import Browser, Playwright
from playwright.sync_api import Error as PlaywrightError

from core.errors import ItemFailed, UsageError
from core.settings import Settings
from core.storage import explain_disk_errors

PREFIX = "tidemark-browser-"  # of folders for temporary files
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_GUARD = Path(__file__).with_name("browser_guard.py")
_START_S = 60.0
_END_S = 10.0
_FLAGS = (
    # Chromium reaches nothing by itself, whatever a page does: no name and no address resolves,
    # and WebRTC sends nothing but through a proxy, of which there is none. What a page may have,
    # the polite fetcher fetches.
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
    """Return the browser's binary: that of the settings, the system's, or Playwright's own.

    Raises:
        UsageError: there is none; the message says how to get one.
    """
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
    """A running Chromium under its guard (``browser_guard.py``).

    Args:
        playwright: its driver.
        settings: for the binary.
        memory_bytes: more than this, over all its processes, and it is killed.

    Raises:
        UsageError: there is no Chromium.
        ItemFailed: it does not start.
        StorageError: the folder for temporary files cannot be written.
    """

    def __init__(self, playwright: Playwright, settings: Settings, memory_bytes: int) -> None:
        binary = find_chromium(settings, playwright)
        with explain_disk_errors(tempfile.gettempdir()):
            # Not in the scratch folder: the path of Chromium's socket must be short.
            self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock: IO[str] = (self._folder / "lock").open("a")
            fcntl.lockf(self._lock, fcntl.LOCK_EX)  # until this process ends, in whatever way
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
        # A descriptor, since a number may be another process's by the time it is signalled.
        self._guard = os.pidfd_open(int((self._folder / "pid").read_text()))

    def _launch(self, playwright: Playwright, start: Path) -> Browser:
        # Nothing of our environment is the browser's business, least of all the tokens in it.
        folder = str(self._folder)
        environment: dict[str, str | float | bool] = {
            "HOME": folder, "TMPDIR": folder, "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }  # fmt: skip

        def launch(has_sandbox: bool) -> Browser:
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

        if os.getuid() == 0:  # root's Chromium has no sandbox
            return launch(has_sandbox=False)
        try:
            return launch(has_sandbox=True)
        except PlaywrightError:
            _log.warning("Chromium does not start in its sandbox here; it runs without it")
            return launch(has_sandbox=False)

    @property
    def num_bytes_too_many(self) -> int | None:
        """The memory that it had when it was killed for it; None if it was not."""
        try:
            return int((self._folder / "memory").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def kill(self) -> None:
        """Kill it at once, from any thread; whoever waits for it gets an error."""
        with contextlib.suppress(ProcessLookupError):
            if self._guard is not None:
                signal.pidfd_send_signal(self._guard, signal.SIGTERM)

    def end(self) -> None:
        """End it at once, and leave nothing of it."""
        self.kill()
        if self._guard is not None:
            select.select([self._guard], [], [], _END_S)  # readable once the guard has gone
            os.close(self._guard)
            self._guard = None
            with contextlib.suppress(PlaywrightError):
                self.browser.close()  # for the driver, which removes the profile
        self._lock.close()
        shutil.rmtree(self._folder, ignore_errors=True)
