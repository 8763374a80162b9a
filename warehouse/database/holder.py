"""The process that holds the lock of the embedded warehouse: its identity and its activity.

    <scratch>/writer.duckdb.holder.json

The holder writes this file after it has taken the lock. The lock alone prevents a second writer:
the kernel releases it when the holder's process has ended. So a process that hangs may be killed.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from core.environment import flow_run_id
from core.errors import WarehouseError
from core.storage.temporary import start_of, this_host

LOOK_S = 1.0
HUNG_S = 600.0  # time without processor use that means a hang; landing waits for a minute at most
_END_S = 60.0  # maximum time until a killed process has ended


class Holder(BaseModel):
    """A process that holds, or held, the lock."""

    model_config = ConfigDict(frozen=True)

    host: str
    pid: int
    started: int | None  # in clock ticks since boot
    since: AwareDatetime  # UTC
    what: str  # the flow run, or the command

    def __str__(self) -> str:
        return (
            f"process {self.pid} of machine {self.host.split()[0]} ({self.what}) "
            f"since {self.since:%Y-%m-%d %H:%M:%S} UTC"
        )

    def process(self) -> psutil.Process | None:
        """Return the process if it runs on this machine, else None."""
        if self.host != this_host() or start_of(self.pid) != self.started:
            return None
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid)
        return None


def path_of(database: Path) -> Path:
    """Return the path of the file that names the holder of a database's lock."""
    return database.with_name(f"{database.name}.holder.json")


@contextlib.contextmanager
def named(database: Path) -> Iterator[None]:
    """State this process as the holder of the lock, in a file, during the ``with`` block."""
    path = path_of(database)
    new = path.with_name(f".tmp-{path.name}")
    pid = os.getpid()
    run = flow_run_id()
    what = f"flow run {run}" if run else " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]])
    holder = Holder(
        host=this_host(), pid=pid, started=start_of(pid), since=dt.datetime.now(dt.UTC), what=what
    )
    with contextlib.suppress(OSError):  # the file only serves messages
        new.write_text(holder.model_dump_json(), encoding="utf-8")
        new.replace(path)
    try:
        yield
    finally:
        for leftover in (path, new):  # a full disk leaves the second one
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)


def read_holder(database: Path) -> Holder | None:
    """Return the last holder of a database's lock; None if it is not known."""
    try:
        return Holder.model_validate_json(path_of(database).read_bytes())
    except (OSError, ValidationError):
        return None


class Watch:
    """A measurement of the time for which the holder of a lock has used no processor time."""

    def __init__(self) -> None:
        self._seen: tuple[Holder, float] | None = None  # holder and its processor time in seconds
        self._looked_at = 0.0  # monotonic time in seconds
        self.idle_s = 0.0

    def look(self, holder: Holder | None) -> None:
        """Add the time since the last look if the holder used no processor time since then."""
        process = holder.process() if holder else None
        now = time.monotonic()
        seen = None
        with contextlib.suppress(psutil.Error):
            if holder and process:
                times = process.cpu_times()
                seen = holder, times.user + times.system
        # Count at most twice the usual pause, since this process may have been suspended.
        passed_s = min(now - self._looked_at, 2 * LOOK_S)
        self.idle_s = self.idle_s + passed_s if seen and seen == self._seen else 0.0
        self._seen = seen
        self._looked_at = now


def is_stopped(holder: Holder | None) -> bool:
    """Return True if a signal has stopped the holder, on this machine."""
    process = holder.process() if holder else None
    with contextlib.suppress(psutil.Error):
        return process is not None and process.status() == psutil.STATUS_STOPPED
    return False


def end(holder: Holder) -> None:
    """Kill a holder on this machine, and wait until it has ended.

    Raise WarehouseError if this user may not kill it, or it does not end.
    """
    process = holder.process()
    if process is None:
        return
    try:
        process.kill()
        process.wait(_END_S)
    except psutil.NoSuchProcess:
        return
    except (psutil.AccessDenied, psutil.TimeoutExpired) as error:
        raise WarehouseError(
            f"{holder} hangs and cannot be ended ({error}); end it as its user "
            f"(kill -9 {holder.pid}), then run the same command again"
        ) from error
