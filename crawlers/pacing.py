"""One request at a time to a host, at a distance, and never while it asks to be left alone.

What is known of a host lies in a folder: all processes of a machine share its patience. A turnstile
(Prefect's limits, see ``tasks/crawling.py``) lets several machines share it, too.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import email.utils
import json
import math
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

import filelock

from core.errors import SourceUnavailable
from core.storage import explain_disk_errors

BACKOFF_BASE_S = 2.0  # first pause after a failure that names none; doubles with each failure
MAX_WAIT_S = 600.0  # a host that asks for a longer pause is given up for this run
MAX_PAUSE_S = 86400.0  # no pause is remembered for longer: a host may ask for a thousand years
LOCK_WAIT_S = 2 * MAX_WAIT_S  # for the processes before us; one of them may sit out a pause
_MAX_DOUBLINGS = 5
_POLL_S = 0.02

Turnstile = Callable[[str], AbstractContextManager[None]]


class TryAgain(SourceUnavailable):
    """A failure that may pass.

    ``pause_s`` is what the site asked for, None where it did not; ``reason`` a reason of failure.
    """

    def __init__(self, message: str, pause_s: float | None = None, reason: str = "network") -> None:
        super().__init__(message)
        self.pause_s, self.reason = pause_s, reason


@dataclass
class _Record:
    """What is known of a host; seconds of the wall clock, which alone outlives a process.

    Attributes:
        written: when this was written, so that a clock set back since is noticed.
        started: start of the last request.
        ready: when the host may be asked again; it, or its failures, asked for a pause.
        failures: in a row.
    """

    written: float
    started: float = -math.inf
    ready: float = -math.inf
    failures: int = 0

    @property
    def is_sound(self) -> bool:
        is_count = isinstance(self.failures, int) and self.failures >= 0
        is_near = self.ready - self.written <= MAX_PAUSE_S
        return is_count and is_near and self.started <= self.written

    def shift_to(self, now: float) -> None:
        """Keep the distances where the clock was set back meanwhile."""
        back_s = max(0.0, self.written - now)
        self.started, self.ready = self.started - back_s, self.ready - back_s


class Pace:
    """The pace of hosts, shared by all that use the same folder.

    A request holds its host's lock until it is answered, so that there is one at a time. Whoever is
    next waits at a lock before that one: without it, a process that asks again at once would
    always be faster than those that wait. The system frees the locks of a killed process.

    Args:
        folder: for locks and records, local; made on the first turn.
        turnstile: held, too, during each turn; called with the host's name. Where there is one, a
            turn lasts until the host may be asked again, as others do not know of our requests.
    """

    def __init__(self, folder: Path, turnstile: Turnstile | None = None) -> None:
        self._folder, self._turnstile = folder, turnstile

    @contextlib.contextmanager
    def turn(self, host: str, interval_s: float) -> Iterator[float]:
        """Wait for one's turn and hold it until the block ends; yield the seconds waited.

        Args:
            host: ``name``, ``name:port``, or what several hosts share.
            interval_s: least time between the starts of the last request and of this one.

        Raises:
            SourceUnavailable: the host asked for a pause of more than MAX_WAIT_S, or others have
                kept it for longer than LOCK_WAIT_S.
            StorageError: the folder cannot be written.
        """
        asked = time.monotonic()
        stem = _stem(host)
        with self._alone(host, stem):
            file = self._folder / f"{stem}.json"
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
        """Let no request to a host begin for some seconds, at most MAX_PAUSE_S."""
        stem = _stem(host)
        with self._alone(host, stem):
            file = self._folder / f"{stem}.json"
            record = _read(file)
            record.ready = max(record.ready, time.time() + min(seconds, MAX_PAUSE_S))
            _write(file, record)

    @contextlib.contextmanager
    def _alone(self, host: str, stem: str) -> Iterator[None]:
        with explain_disk_errors(str(self._folder / stem)):
            self._folder.mkdir(parents=True, exist_ok=True)
        next_one, now = (
            filelock.FileLock(
                self._folder / f"{stem}.{name}", timeout=LOCK_WAIT_S, poll_interval=_POLL_S
            )
            for name in ("next", "lock")
        )
        with explain_disk_errors(str(self._folder / stem)):
            try:
                with next_one:
                    now.acquire()
            except filelock.Timeout as error:
                raise SourceUnavailable(
                    f"other processes have kept {host} busy for {LOCK_WAIT_S:.0f} s "
                    f"({error.lock_file}); run the same command again when they are done"
                ) from error
        try:
            yield
        finally:
            now.release()


def _stem(host: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", host)


def _wait_s(record: _Record, interval_s: float) -> float:
    return max(record.started + interval_s, record.ready) - time.time()


def _pause_s(failure: TryAgain, failures: int) -> float:
    """Return what the site asked for, else longer pauses from failure to failure."""
    if failure.pause_s is not None:
        return failure.pause_s
    doublings = min(failures - 1, _MAX_DOUBLINGS)
    jitter = random.uniform(0.5, 1.5)  # noqa: S311 - so that clients do not return in step
    return float(BACKOFF_BASE_S * 2**doublings * jitter)


def _read(file: Path) -> _Record:
    """Read a host's record. Of a damaged one, nobody knows how long ago the last request was."""
    now = time.time()
    try:
        record = _Record(**json.loads(file.read_bytes()))
        if record.is_sound:
            record.shift_to(now)
            return record
    except FileNotFoundError:
        return _Record(now)
    except (ValueError, TypeError, RecursionError):
        pass
    return _Record(now, started=now)


def _write(file: Path, record: _Record) -> None:
    """Write all or nothing; the caller holds the host's lock."""
    record.written = time.time()
    with explain_disk_errors(str(file)):
        new = Path(f"{file}.new")
        new.write_text(json.dumps(asdict(record)))
        new.replace(file)


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
