"""Temporary files: their names state the writer, so that those of killed writers can be deleted."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import socket
import time
from functools import lru_cache
from pathlib import Path

TEMPORARY = ".tmp-"  # begins the name of a file until it is complete
_LEFTOVER_S = 24 * 3600  # age of a temporary file of another machine whose writer must be dead
_WRITER = re.compile(r"-(?P<host>[0-9a-f]{8})\.(?P<pid>\d{1,9})\.(?P<start>\d{1,18})-[^-]*$")
_START_FIELD = 18  # index of ``starttime`` among the fields after the state in /proc/<pid>/stat


@lru_cache(maxsize=1)
def this_host() -> str:
    """Return a name of this machine that differs between boots, and between containers."""
    facts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        facts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(facts)


def start_of(pid: int) -> int | None:
    """Return the start of a process in ticks since boot (see proc(5)), or None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()  # the process name may contain spaces
    return None if state in "ZX" else int(fields[_START_FIELD])


def prefix_of(name: str) -> str:
    """Return the common prefix of the names of a file's temporary files, for all writers."""
    return f"{TEMPORARY}{name[:40]}-"  # cut, because most file systems limit names to 255 bytes


def prefix_of_mine(name: str) -> str:
    """Return the prefix of the names of a file's temporary files by this process."""
    pid = os.getpid()
    return f"{prefix_of(name)}{_host_id()}.{pid}.{_own_start(pid)}-"


@lru_cache(maxsize=1)
def _own_start(pid: int) -> int:
    """Return the start of this process. The cache key is ``pid``, which differs after a fork."""
    return start_of(pid) or 0


def sweep(folder: Path, prefix: str = TEMPORARY) -> None:
    """Delete temporary files and folders of killed writers; never those of a living process.

    Files of another machine, or of another boot of this one, are deleted once they are a day old.
    The whole folder is listed, so callers do this once per folder, not at each write.
    """
    with os.scandir(folder) as entries:
        found = [each for each in entries if each.name.startswith(prefix)]
    for entry in found:
        with contextlib.suppress(FileNotFoundError):  # another process deleted the file first
            if not _is_abandoned(entry):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink()


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    """Return True if the writer has ended or, if this is unknown, if the file is a day old."""
    writer = _WRITER.search(entry.name)
    if writer is not None and writer["host"] == _host_id() and writer["start"] != "0":
        return start_of(int(writer["pid"])) != int(writer["start"])
    day_ago = time.time() - _LEFTOVER_S
    is_file = entry.is_file(follow_symlinks=False)
    return is_file and entry.stat(follow_symlinks=False).st_mtime < day_ago


@lru_cache(maxsize=1)
def _host_id() -> str:
    return hashlib.sha256(this_host().encode()).hexdigest()[:8]
