"""A lock that a stopped process does not keep for ever.

A process that a signal has stopped (Ctrl-Z, a suspended container) keeps its locks, and the system
does not release them. The work that it claimed has passed to another process by then.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import filelock
import psutil

STOPPED_S = 60.0  # a process may be stopped for so long before others go on without it
LOOK_S = 1.0


def take_lock(lock: filelock.BaseFileLock, wait_s: float) -> None:
    """Take a lock; raise ``filelock.Timeout`` if other processes hold it for ``wait_s`` seconds."""
    # If a process that holds the lock stays stopped for ``STOPPED_S`` seconds, the lock's file is
    # removed, and a new file takes its place. A stopped process that goes on finishes its request
    # with the old file, beside the process that holds the new one.
    file = Path(lock.lock_file)
    deadline = time.monotonic() + wait_s
    stopped_since: float | None = None
    while True:
        left_s = deadline - time.monotonic()
        with contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=max(0.0, min(LOOK_S, left_s)))
            return
        if left_s <= 0:
            raise filelock.Timeout(lock.lock_file)
        now = time.monotonic()
        if not is_holder_stopped(file):
            stopped_since = None
        elif stopped_since is None:
            stopped_since = now
        elif now - stopped_since >= STOPPED_S:
            file.unlink(missing_ok=True)
            stopped_since = None


def is_holder_stopped(file: Path) -> bool:
    """Return True if a stopped process of this machine has a lock's file open."""
    # A process that waits for a lock opens its file for an instant only. Return False if the system
    # does not tell which files a process has open (outside Linux, or of another user).
    for process in psutil.process_iter(["status"]):
        if process.info["status"] == psutil.STATUS_STOPPED and _has_open(process.pid, file):
            return True
    return False


def _has_open(pid: int, file: Path) -> bool:
    """Return True if a process has a file open; False if the system does not tell."""
    try:
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for link in opened:
        # A file that was removed, or a socket, is no file of this name.
        with contextlib.suppress(OSError):
            if link.samefile(file):
                return True
    return False
