"""Confine this process: no network, no other process, only the named files (Linux).

Landlock limits the files, seccomp the system calls. Both need no privileges and cannot be undone.
The process can start threads, but no process, so that its end is the end of all that it does.
Namespaces for users, network and messages are added where the system permits them; nothing
depends on them. Call ``confine`` before any thread is started, because Landlock holds for the
calling thread and for the threads that it starts.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.errors import ModelLoadError
from extras.own_code.calls import can_filter, limit_calls

# Rights of Landlock (include/uapi/linux/landlock.h), and the versions that added some of them.
_EXECUTE = 1 << 0
_WRITE = 1 << 1
_READ = 1 << 2
_LIST = 1 << 3
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_IOCTL = 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL  # all others are of folders
_ADDED = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
# bind, connect; abstract sockets, signals
_TCP = 0b11
_SCOPES = 0b11
# system calls, the same on all architectures
_CREATE = 444
_ADD = 445
_RESTRICT = 446

_LEAST_VERSION = 3  # of Landlock; earlier ones do not limit truncation (Linux 6.2)

_NEW_USER = 0x10000000
_NEW_NETWORK = 0x40000000
_NEW_MESSAGES = 0x08000000
_SET_PARENT_DEATH_SIGNAL = 1
_SET_DUMPABLE = 4
_SET_NO_NEW_PRIVILEGES = 38
_CAPABILITIES_VERSION = 0x20080522

_READABLE = (
    "/usr", "/lib", "/lib64", "/bin", "/opt", "/etc/ld.so.cache", "/etc/localtime", "/etc/passwd",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/driver",
    "/proc/sys/vm", "/proc/devices", "/sys/devices", "/sys/fs/cgroup", "/sys/bus", "/sys/class",
    "/sys/module",
)  # fmt: skip
_REMEDIES = {
    "Landlock": "; use Linux 6.2 or later, with landlock in the list of the kernel's parameter "
    "lsm=, and a container whose seccomp profile permits its calls",
    "seccomp": "; use a kernel with CONFIG_SECCOMP_FILTER",
}
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full")


def confine(readable: Iterable[Path], writable: Path, own: Iterable[Path] = ()) -> str:
    """Confine this process; return the means, such as ``landlock 7, seccomp, namespaces``.

    Only files and folders of ``readable``, those of the model (``own``), and the system's libraries
    may be read. If a link has taken the place of a path of ``own``, its target may not be read.
    Only the folder ``writable`` may be written. The process ends with the thread that has started
    it, by SIGKILL. If the memory is full, the kernel ends it before others.
    Raise ModelLoadError if the system has no Landlock or no seccomp; then nothing foreign may run.
    """
    if not can_filter():
        raise ModelLoadError(
            f"models with trust: code run on Linux (x86_64, aarch64) only, because they need "
            f"seccomp and Landlock; this is {platform.system()} {platform.machine()}"
        )
    library = ctypes.CDLL(None, use_errno=True)
    Path("/proc/self/oom_score_adj").write_text("1000")
    # With 1 byte, the kernel neither writes a file nor starts a program that collects crashes.
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    means = ["namespaces"] if _drop_powers(library) else []
    _require(library.prctl(_SET_DUMPABLE, 1, 0, 0, 0), "prctl")  # else its use cannot be watched
    # The kernel forgets this signal where powers change.
    _require(library.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "prctl")
    _require(library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    resolved = [path.resolve() for path in readable]
    version = _limit_files(library, [*resolved, *own], writable)
    _require(limit_calls(library), "seccomp")
    return ", ".join([f"landlock {version}", "seccomp", *means])


def _drop_powers(library: Any) -> bool:
    """Drop all capabilities; return False without namespaces, as in many containers."""
    has_own = library.unshare(_NEW_USER | _NEW_NETWORK | _NEW_MESSAGES) == 0
    header = struct.pack("Ii", _CAPABILITIES_VERSION, 0)
    _require(library.capset(header, bytes(24)), "capset")
    return bool(has_own)


def _limit_files(library: Any, readable: Iterable[Path], writable: Path) -> int:
    """Allow only the given files, and the GPUs; return the version of Landlock."""
    version = library.syscall(_CREATE, None, 0, 1)
    _require(version - _LEAST_VERSION, "Landlock")
    everything = (1 << 13) - 1
    for since, right in _ADDED.items():
        everything |= right if version >= since else 0
    limits = [everything, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0]
    size = 8 * (1 + (version >= 4) + (version >= 6))  # bytes of the limits that it knows
    rules = library.syscall(_CREATE, (ctypes.c_uint64 * 3)(*limits), size, 0)
    _require(rules, "Landlock")
    devices = [Path(name) for name in _DEVICES] + sorted(Path("/dev").glob("nvidia*"))
    libraries = [Path(name).resolve() for name in _READABLE]
    allowed = [(path, _READ | _LIST) for path in (*libraries, *readable)]
    allowed += [(path, _READ | _WRITE | _LIST | _IOCTL) for path in devices]
    for path, rights in [*allowed, (writable, everything)]:
        with suppress(FileNotFoundError):  # not every system has all of these files
            _allow(library, rules, path, rights & everything)
    _require(library.syscall(_RESTRICT, rules, 0), "Landlock")
    os.close(rules)
    return int(version)


def _allow(library: Any, rules: int, path: Path, rights: int) -> None:
    """Allow the process to use a file or folder, with these rights of Landlock."""
    file = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        is_folder = stat.S_ISDIR(os.fstat(file).st_mode)
        rule = struct.pack("=Qi", rights if is_folder else rights & _FILE_RIGHTS, file)
        _require(library.syscall(_ADD, rules, 1, rule, 0), f"Landlock for {path}")
    finally:
        os.close(file)


def _require(result: int, what: str) -> None:
    """Raise an error if a system call failed: no process can be confined then."""
    if result < 0:
        number = ctypes.get_errno()
        why = f" ({os.strerror(number)})" if number else ""
        raise ModelLoadError(
            f"this system does not offer {what}{why}, so no process can be confined; models "
            f"with trust: code are not run here{_REMEDIES.get(what, '')}"
        )
