"""Pacing of a host's requests: one request at a time, pauses, and a stop after many failures.

All processes of a machine share the state of a host through a folder. A turnstile shares the pacing
among several machines; it uses Prefect's concurrency limits (``tasks/crawling.py``).
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import filelock

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, SourceUnavailable, TokenRefused
from core.storage.store import explain_disk_errors
from crawlers.web.host_lock import take_lock
from crawlers.web.raw_cache import Fetched

BACKOFF_BASE_S = 2.0  # first pause after a failure without Retry-After; doubles with each failure
MAX_WAIT_S = 600.0  # a host that asks for a longer pause is skipped for this run
MAX_PAUSE_S = 86400.0  # maximum pause that is stored; a host may ask for a thousand years
LOCK_WAIT_S = 2 * MAX_WAIT_S  # maximum wait for other processes, which may be in a pause
_MAX_DOUBLINGS = 5
_POLL_S = 0.02

Turnstile = Callable[[str], AbstractContextManager[None]]


class TryAgain(SourceUnavailable):
    """A temporary failure, with the pause in seconds that the site asked for, and a fail reason."""

    def __init__(self, message: str, pause_s: float | None = None, reason: str = "network") -> None:
        super().__init__(message)
        self.pause_s = pause_s
        self.reason = reason


@dataclass
class _Record:
    """The stored state of a host; times are Unix times in seconds, which all processes share."""

    written: float  # time of writing; reveals a clock that was set back later
    started: float = -math.inf  # start of the last request
    ready: float = -math.inf  # end of a pause, after a failure or at the request of the host
    failures: int = 0  # consecutive failures

    @property
    def is_sound(self) -> bool:
        is_count = isinstance(self.failures, int) and self.failures >= 0
        is_near = self.ready - self.written <= MAX_PAUSE_S
        return is_count and is_near and self.started <= self.written

    def shift_to(self, now: float) -> None:
        """Shift the times if the clock was set back since the record was written."""
        back_s = max(0.0, self.written - now)
        self.started = self.started - back_s
        self.ready = self.ready - back_s


class Pace:
    """Pacing of requests per host, shared by all processes that use the same folder.

    A request holds its host's lock until its response, so only one request is sent at a time. The
    next process waits for a second, outer lock. Otherwise, a process that sends many requests would
    always get the lock first. The system frees the locks of a killed process; ``host_lock`` takes
    those of a stopped one.

    ``folder`` is a local folder for locks and records; the first request creates it. ``turnstile``
    takes a host's name and returns a context manager. A request holds this context manager until
    the next request may start, since other machines do not know of our requests.
    """

    def __init__(self, folder: Path, turnstile: Turnstile | None = None) -> None:
        self._folder = folder
        self._turnstile = turnstile

    @contextlib.contextmanager
    def turn(self, host: str, interval_s: float) -> Iterator[float]:
        """Wait until a request may start; lock the host in the ``with`` block; yield the wait in s.

        ``interval_s`` is the minimum time between the starts of two requests. Raise
        SourceUnavailable if the host asked for a pause above MAX_WAIT_S, or if its lock was held
        for longer than LOCK_WAIT_S. Raise StorageError if the folder cannot be written.
        """
        asked = time.monotonic()
        with self._alone(host) as file:
            record = _read(file)
            wait_s = _wait_s(record, interval_s)
            if wait_s > MAX_WAIT_S:
                raise SourceUnavailable(
                    f"{host} asks for a pause of {wait_s:.0f} s, and a crawl waits at most "
                    f"{MAX_WAIT_S:.0f} s; run the same command again after it"
                )
            with self._turnstile(host) if self._turnstile else contextlib.nullcontext():
                time.sleep(max(_wait_s(record, interval_s), 0.0))
                record.started = time.time()
                _write(file, record)
                try:
                    yield time.monotonic() - asked
                except TryAgain as failure:
                    record.failures += 1
                    pause_s = min(_pause_s(failure, record.failures), MAX_PAUSE_S)
                    record.ready = time.time() + pause_s
                    _write(file, record)
                    raise
                else:
                    if record.failures:
                        record.failures = 0
                        _write(file, record)
                finally:
                    left_s = _wait_s(record, interval_s)
                    if self._turnstile and 0 < left_s <= MAX_WAIT_S:
                        time.sleep(left_s)

    def rest(self, host: str, seconds: float) -> None:
        """Prevent requests to a host for some seconds, at most MAX_PAUSE_S."""
        with self._alone(host) as file:
            record = _read(file)
            record.ready = max(record.ready, time.time() + min(seconds, MAX_PAUSE_S))
            _write(file, record)

    @contextlib.contextmanager
    def _alone(self, host: str) -> Iterator[Path]:
        """Hold a host's lock in the ``with`` block; yield the path of the host's record."""
        stem = str(self._folder / re.sub(r"[^A-Za-z0-9.-]+", "_", host))
        next_one, now = (
            filelock.FileLock(f"{stem}.{name}", poll_interval=_POLL_S) for name in ("next", "lock")
        )
        with explain_disk_errors(stem):
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                take_lock(next_one, LOCK_WAIT_S)
                try:
                    take_lock(now, LOCK_WAIT_S)
                finally:
                    next_one.release()
            except filelock.Timeout as error:
                raise SourceUnavailable(
                    f"other processes have kept {host} busy for {LOCK_WAIT_S:.0f} s "
                    f"({error.lock_file}); run the same command again when they are done"
                ) from error
        try:
            yield Path(f"{stem}.json")
        finally:
            now.release()


def _wait_s(record: _Record, interval_s: float) -> float:
    return max(record.started + interval_s, record.ready) - time.time()


def _pause_s(failure: TryAgain, failures: int) -> float:
    """Return the seconds to pause after a failure: what the host asked for, else a backoff."""
    if failure.pause_s is not None:
        return failure.pause_s
    doublings = min(failures - 1, _MAX_DOUBLINGS)
    jitter = random.uniform(0.5, 1.5)  # noqa: S311 - spreads the retries of clients
    return float(BACKOFF_BASE_S * 2**doublings * jitter)


def _read(file: Path) -> _Record:
    """Read a host's record. A damaged record counts as a request made just now."""
    now = time.time()
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        try:
            record = _Record(**json.loads(file.read_bytes()))
        except FileNotFoundError:
            return _Record(now)
        if record.is_sound:
            record.shift_to(now)
            return record
    return _Record(now, started=now)


def _write(file: Path, record: _Record) -> None:
    """Write a host's record atomically; the caller holds the host's lock."""
    record.written = time.time()
    with explain_disk_errors(str(file)):
        new = Path(f"{file}.new")
        new.write_text(json.dumps(asdict(record)))
        new.replace(file)


REFUSALS_TO_STOP = 10  # number of consecutive responses with status 403 or 429
FAILURES_TO_STOP = 5  # number of consecutive URLs that failed in all tries


class CircuitOpen(SourceUnavailable):
    """Error for a site that is skipped for the rest of this run after too many failures."""


class Circuit:
    """Circuit breaker: consecutive refusals or failed URLs stop the requests of this run."""

    def __init__(self, sites: str) -> None:
        self._sites = sites
        self._lock = threading.Lock()
        self._refusals = self._failures = 0

    def note_status(self, status: int) -> None:
        """Increment the refusals after a status 403 or 429; reset them after others except 3xx."""
        with self._lock:
            if status in {403, 429}:
                self._refusals += 1
            elif not 300 <= status < 400:  # a redirect may lead to a refusal
                self._refusals = 0

    def note_address(self, has_failed: bool) -> None:
        """Increment the count of failed URLs if all tries of a URL failed; else reset it."""
        with self._lock:
            self._failures = self._failures + 1 if has_failed else 0

    def require_closed(self) -> None:
        """Raise CircuitOpen if there were too many refusals or failures."""
        with self._lock:
            if self._refusals >= REFUSALS_TO_STOP:
                raise CircuitOpen(
                    f"{self._refusals} requests in a row were refused (403 or 429), so no more "
                    f"are sent to {self._sites} in this run; "
                    "wait some hours, or raise TIDEMARK_REQUEST_INTERVAL_S"
                )
            if self._failures >= FAILURES_TO_STOP:
                raise CircuitOpen(
                    f"{self._failures} addresses in a row failed, so no more are asked of "
                    f"{self._sites} in this run; run the same command again later"
                )


_DROP_REASONS = {403: "http_403", 404: "http_404", 410: "http_410", 451: "permission"}


@dataclass(frozen=True)
class ApiRules:
    """Rules for the responses of one site's API; see ``Fetcher.heed``."""

    # Function of status and response; it returns the seconds to pause the host, or None. With
    # status 200, a pause means a used-up rate limit. A 403 with a pause is retried like a 429.
    # Responses with an error status (400 or more) include their body. The function may raise a
    # SourceError to explain a refusal.
    pause_s: Callable[[int, Fetched], float | None]
    # Drop reason by status, for a status that has a special meaning in the API.
    drops: Mapping[int, str] = field(default_factory=dict)


def require_ok(status: int, url: str, rules: ApiRules | None = None) -> None:
    """Raise an error if the status is not 200."""
    if status == 200:
        return
    reason = {**_DROP_REASONS, **(rules.drops if rules else {})}.get(status)
    if reason:
        raise ItemUnavailable(reason, f"{url} answered {status}")
    if status == 401:
        raise TokenRefused(
            f"{url} answered 401: it requires a token, or refused the token that was sent; "
            "see TIDEMARK_TOKENS in docs/settings.md"
        )
    if status >= 500:
        message = f"{url} answered {status}; run the same command again later"
        raise ItemFailed("http_5xx", message)
    raise SourceChanged(f"{url} answered {status}, which this source never did; expected 200")
