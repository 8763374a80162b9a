"""A lock that a stopped process does not keep for ever.

A process that a signal has stopped (Ctrl-Z, a suspended container) keeps its locks, and the system
does not release them. The work that it claimed has passed to another process by then.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import filelock
import psutil

STOPPED_S = 60.0  # a process may be stopped for so long before others go on without it
LOOK_S = 1.0
_LOCKS = Path("/proc/locks")


def take_lock(lock: filelock.BaseFileLock, wait_s: float) -> None:
    """Take a lock; raise ``filelock.Timeout`` if other processes hold it for ``wait_s`` seconds.

    If a process that holds the lock stays stopped for ``STOPPED_S`` seconds, the lock's file is
    removed, and a new file takes its place. A stopped process that goes on finishes its request
    with the old file, beside the process that holds the new one.
    """
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
    """Return True if a stopped process of this machine holds the lock of a file.

    Return False if the system does not tell who holds it (outside Linux, or of another user).
    """
    with contextlib.suppress(OSError):
        node = str(file.stat().st_ino)
        for line in _LOCKS.read_text().splitlines():
            # 1: FLOCK ADVISORY WRITE 708 fe:00:8023 0 EOF; "->" marks one that waits
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == node:
                return _is_stopped_with(int(fields[4]), file)
    return False


def _is_stopped_with(pid: int, file: Path) -> bool:
    """Return True if a process is stopped and has a file open."""
    try:
        if psutil.Process(pid).status() != psutil.STATUS_STOPPED:
            return False
        opened = [each.path for each in os.scandir(f"/proc/{pid}/fd")]
    except (psutil.Error, OSError):
        return False
    for path in opened:
        with contextlib.suppress(OSError):
            if Path(path).samefile(file):
                return True
    return False
