"""Runs a Chromium, and sees that nothing of it is left: started by Playwright in Chromium's place.

It is a process of its own, between Playwright's driver and Chromium, since nobody else can be
trusted to be there in the end: not our process, which may be killed with SIGKILL, nor the driver,
which may hang. Our process holds a lock on a file; the system frees it when that process ends, in
whatever way, and then all that Chromium has started is killed. As their subreaper (prctl), this
process finds them also where their parents have gone. It watches their memory, too.

Uses the standard library alone: it has to be there at once. Linux only.

    python browser_guard.py FOLDER MAX_BYTES CHROMIUM [ARGUMENT …]

FOLDER holds ``lock``; ``pid`` (ours) and, if it was too much, ``memory`` (bytes) are written there.
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
    """Run Chromium until it ends, or has to."""
    folder, max_bytes, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # if the driver goes
    signal.signal(signal.SIGTERM, _end)
    (folder / "pid").write_text(str(os.getpid()))
    # 3 and 4 are the pipes by which the driver talks to it.
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
    """Bury what has ended of our children; return the exit code of one, once it has."""
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
            # The name, in brackets, may hold anything.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, left = [], [os.getpid()]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def _private_bytes(pid: int) -> int:
    """Resident memory without what is shared: the program itself would count once a process."""
    try:
        _, resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()


def _kill_all() -> None:
    """Kill our descendants until there are none; those that lose their parents become ours."""
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
    """Remove the folder that the driver has made for this browser: it may not come to it."""
    for argument in sys.argv:
        if argument.startswith(_PROFILE) and "playwright" in argument:
            shutil.rmtree(argument.removeprefix(_PROFILE), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
