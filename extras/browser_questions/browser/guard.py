"""Guard process: starts Chromium for Playwright, and kills all processes of Chromium at the end.

The guard is a separate process, because the crawler may be killed with SIGKILL, and Playwright's
driver may hang. The crawler holds a lock on a file, and the system frees the lock when the crawler
ends. Then the guard kills all processes of Chromium. As their subreaper (prctl), the guard also
finds processes whose parents have ended. The guard also limits the memory of these processes. To
start fast, the guard imports only the standard library. It requires Linux.

    python guard.py FOLDER MAX_BYTES CHROMIUM [ARGUMENT …]

FOLDER contains the file ``lock``. The guard writes its process id to ``pid``. If the memory exceeds
MAX_BYTES, the guard writes the memory in bytes to ``memory``.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

_POLL_S = 0.2
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PROFILE = "--user-data-dir="
_is_told_to_end = False


def main() -> int:
    """Run Chromium until it ends, or until the guard must kill it; return the exit code."""
    folder = Path(sys.argv[1])
    max_bytes = int(sys.argv[2])
    command = sys.argv[3:]
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # the kernel sends SIGTERM if the driver ends
    signal.signal(signal.SIGTERM, _end)
    (folder / "pid").write_text(str(os.getpid()))
    # Playwright's driver talks to Chromium through the pipes 3 and 4 (file descriptors).
    child = subprocess.Popen(command, pass_fds=(3, 4))
    os.close(3)
    os.close(4)
    try:
        return _watch(child.pid, folder, max_bytes)
    finally:
        _kill_all()
        _remove_profile()


def _end(_number: int, _frame: object) -> None:
    global _is_told_to_end
    _is_told_to_end = True


def _watch(child: int, folder: Path, max_bytes: int) -> int:
    """Return the exit code of the browser; end it if its parent ends, or memory exceeds a limit."""
    with (folder / "lock").open("a") as lock:
        while not _is_told_to_end:
            code = _reap(child)
            if code is not None:
                return code
            if _is_free(lock.fileno()):
                _kill_all()
                shutil.rmtree(folder, ignore_errors=True)
                return 1
            num_bytes = sum(map(_private_bytes, _descendants()))
            if num_bytes > max_bytes:
                (folder / "memory").write_text(str(num_bytes))
                return 1
            time.sleep(_POLL_S)
    return 1


def _is_free(lock: int) -> bool:
    """Return True if no process holds the lock: the process that started the browser has ended."""
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _reap(child: int) -> int | None:
    """Reap ended child processes; return Chromium's exit code, or None if it still runs."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return code
            if pid == child:
                code = os.waitstatus_to_exitcode(status) & 0xFF
    return 1 if code is None else code


def _descendants() -> list[int]:
    """Return the ids of all processes that descend from this one."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # In /proc/PID/stat, the process name is in brackets, and may itself contain brackets.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = []
    left = [os.getpid()]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def _private_bytes(pid: int) -> int:
    """Return a process's memory in bytes, without pages that it shares with other processes."""
    try:
        _, resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()


def _kill_all() -> None:
    """Kill all descendants of this process; orphaned descendants become its children."""
    for _ in range(100):
        alive = _descendants()
        if not alive:
            return
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
        _reap(0)


def _remove_profile() -> None:
    """Delete the browser profile that the driver created, in case the driver does not do so."""
    for argument in sys.argv:
        if argument.startswith(_PROFILE) and "playwright" in argument:
            shutil.rmtree(argument.removeprefix(_PROFILE), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
