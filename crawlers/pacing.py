"""One request at a time to a host, at a distance, and never while it asks to be left alone.

The state is the process's, not a fetcher's: two crawls of one host share its patience.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import email.utils
import math
import random
import re
import threading
import time
from collections.abc import Iterator

from core.errors import SourceUnavailable

BACKOFF_BASE_S = 2.0  # first pause after a failure that names none; doubles with each failure
MAX_WAIT_S = 600.0  # a host that asks for a longer pause is given up for this run
_MAX_DOUBLINGS = 8


class TryAgain(SourceUnavailable):
    """A failure that may pass.

    ``pause_s`` is what the site asked for, None where it did not; ``reason`` a reason of failure.
    """

    def __init__(self, message: str, pause_s: float | None = None, reason: str = "network") -> None:
        super().__init__(message)
        self.pause_s, self.reason = pause_s, reason


class Host:
    """The pace of one host; get it from ``host_of``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._started = self._ready = -math.inf  # time.monotonic()
        self._failures = 0

    @contextlib.contextmanager
    def turn(self, interval_s: float) -> Iterator[float]:
        """Wait for one's turn and hold it until the block ends; yield the seconds waited.

        Args:
            interval_s: least time between the starts of the last request and of this one.

        Raises:
            SourceUnavailable: the host asked for a pause of more than MAX_WAIT_S.
        """
        asked = time.monotonic()
        with self._lock:
            wait_s = max(self._started + interval_s, self._ready) - time.monotonic()
            if wait_s > MAX_WAIT_S:
                raise SourceUnavailable(
                    f"{self._name} asks for a pause of {wait_s:.0f} s, and a crawl waits at most "
                    f"{MAX_WAIT_S:.0f} s; run the same command again after it"
                )
            time.sleep(max(wait_s, 0.0))
            self._started = time.monotonic()
            try:
                yield self._started - asked
            except TryAgain as failure:
                self._failures += 1
                self._ready = time.monotonic() + self._pause_s(failure)
                raise
            self._failures = 0

    def _pause_s(self, failure: TryAgain) -> float:
        if failure.pause_s is not None:
            return failure.pause_s
        doublings = min(self._failures - 1, _MAX_DOUBLINGS)
        jitter = random.uniform(0.5, 1.5)  # noqa: S311 - so that clients do not return in step
        return float(BACKOFF_BASE_S * 2**doublings * jitter)


_hosts: dict[str, Host] = {}
_hosts_lock = threading.Lock()


def host_of(name: str) -> Host:
    """Return the process's one record of a host (``name`` or ``name:port``)."""
    with _hosts_lock:
        return _hosts.setdefault(name, Host(name))


def read_retry_after(value: str | None) -> float | None:
    """Read a Retry-After header: seconds or an HTTP date (RFC 9110, 10.2.3).

    Returns:
        Seconds from now, at least 0; None where there is no header or it is neither form.
    """
    value = (value or "").strip()
    if re.fullmatch("[0-9]+", value):
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
        if moment.tzinfo is None:  # "-0000" is UTC of an unknown local time
            moment = moment.replace(tzinfo=dt.UTC)
        return max(0.0, (moment - dt.datetime.now(dt.UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None
