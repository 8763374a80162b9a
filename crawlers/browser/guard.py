"""Runs Chromium in Playwright's place, and kills all its processes at the end.

The guard is a separate process, since our process may be killed with SIGKILL, and the driver may
hang. Our process holds a lock on a file; the system frees the lock when that process ends. Then the
guard kills all processes of Chromium. As their subreaper (prctl), it also finds processes whose
parents have ended. It limits their memory, too. To start fast, it uses the standard library alone.
Linux only.

    python guard.py FOLDER MAX_BYTES CHROMIUM [ARGUMENT …]

FOLDER holds ``lock``. The guard writes ``pid`` there, and ``memory`` (bytes) above the limit.
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
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PROFILE = "--user-data-dir="
_is_told_to_end = False


def main() -> int:
    """Run Chromium until it ends or must be killed."""
    folder, max_bytes, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # if the driver ends
    signal.signal(signal.SIGTERM, _end)
    (folder / "pid").write_text(str(os.getpid()))
    # The driver talks to Chromium by the pipes 3 and 4.
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
    with (folder / "lock").open("a") as lock:
        while not _is_told_to_end:
            if (code := _reap(child)) is not None:
                return code
            if _is_free(lock.fileno()):
                _kill_all()
                shutil.rmtree(folder, ignore_errors=True)
                return 1
            if (num_bytes := sum(map(_private_bytes, _descendants()))) > max_bytes:
                (folder / "memory").write_text(str(num_bytes))
                return 1
            time.sleep(_POLL_S)
    return 1


def _is_free(lock: int) -> bool:
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _reap(child: int) -> int | None:
    """Reap ended children; return Chromium's exit code after its end, else None."""
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
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The process name, in brackets, may hold any characters.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, left = [], [os.getpid()]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def _private_bytes(pid: int) -> int:
    """Return resident memory without shared pages, which would count once a process."""
    try:
        _, resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()


def _kill_all() -> None:
    """Kill our descendants until none is left; orphans become our children."""
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
    """Remove the browser profile that the driver has created; the driver may fail to do so."""
    for argument in sys.argv:
        if argument.startswith(_PROFILE) and "playwright" in argument:
            shutil.rmtree(argument.removeprefix(_PROFILE), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
