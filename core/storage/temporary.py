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
_WRITER = re.compile(r"-([0-9a-f]{8})\.(\d{1,9})\.(\d{1,18})-[^-]*$")  # host, process, its start


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
    return None if state in "ZX" else int(fields[18])


def prefix_of(name: str) -> str:
    """Return the first part of the names of a file's temporary files, of all writers."""
    return f"{TEMPORARY}{name[:40]}-"  # cut, because most file systems limit names to 255 bytes


def prefix_of_mine(name: str) -> str:
    """Return the first part of the name of a temporary file that this process writes."""
    pid = os.getpid()
    return f"{prefix_of(name)}{_host_id()}.{pid}.{_own_start(pid)}-"


@lru_cache(maxsize=1)
def _own_start(pid: int) -> int:
    """Return the start of this process; its number is the key, since a fork has another one."""
    return start_of(pid) or 0


def sweep(folder: Path, prefix: str = TEMPORARY) -> None:
    """Delete temporary files and folders of killed writers; never those of a living process.

    Of another machine, or another boot of this one, only files that are a day old are deleted. The
    whole folder is listed, so callers do this once a folder, not once a write.
    """
    with os.scandir(folder) as entries:
        found = [each for each in entries if each.name.startswith(prefix)]
    for entry in found:
        with contextlib.suppress(FileNotFoundError):  # its writer, or another process, was faster
            if not _is_left(entry):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink()


def _is_left(entry: os.DirEntry[str]) -> bool:
    writer = _WRITER.search(entry.name)
    if writer is not None and writer[1] == _host_id() and writer[3] != "0":
        return start_of(int(writer[2])) != int(writer[3])
    day_ago = time.time() - _LEFTOVER_S
    is_file = entry.is_file(follow_symlinks=False)
    return is_file and entry.stat(follow_symlinks=False).st_mtime < day_ago


@lru_cache(maxsize=1)
def _host_id() -> str:
    return hashlib.sha256(this_host().encode()).hexdigest()[:8]
