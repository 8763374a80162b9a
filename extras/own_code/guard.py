"""Confine this process: no network, no other process, only the named files (Linux).

Landlock limits the files, seccomp the system calls. Both need no privileges, cannot be undone and
hold for all processes that are started later. Namespaces for users, network and messages are
added where the system permits them. Call ``confine`` before any thread is started, because
Landlock holds for the calling thread and for the threads that it starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.errors import ModelLoadError

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

# System calls that are refused, by number on x86-64 and on AArch64 (None: it has no such call).
_REFUSED: dict[str, tuple[int, int | None]] = {
    "socket": (41, 198), "io_uring_setup": (425, 425), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "kill": (62, 129),
    "tkill": (200, 130), "tgkill": (234, 131), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    "mq_open": (240, 180), "bpf": (321, 280), "perf_event_open": (298, 241), "setns": (308, 268),
    "unshare": (272, 97), "mount": (165, 40), "open_by_handle_at": (304, 265),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "kcmp": (312, 272),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
_LIMITS = (302, 261)  # prlimit64, allowed for the calling process alone: libraries read its limits
# Calls that Landlock does not know and that change a file's mode, owner, times or attributes. They
# seem to succeed and do nothing, because libraries use them on their own files.
_IGNORED: dict[str, tuple[int, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "file_setattr": (469, 469),
}  # fmt: skip
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32 = 0x40000000  # numbers from here on are a second table of calls on x86-64
# BPF instructions
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_RETURN = 0x06
# plus the number of the error
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERROR = 0x00050000
_LEAST_VERSION = 3  # of Landlock; earlier ones do not limit truncation (Linux 6.2)

_NEW_USER = 0x10000000
_NEW_NETWORK = 0x40000000
_NEW_MESSAGES = 0x08000000
_SET_SECCOMP = 22
_SET_NO_NEW_PRIVILEGES = 38
_FILTER = 2
_CAPABILITIES_VERSION = 0x20080522

_READABLE = (
    "/usr", "/lib", "/lib64", "/bin", "/opt", "/etc/ld.so.cache", "/etc/localtime", "/etc/passwd",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/driver",
    "/proc/sys/vm", "/proc/devices", "/sys/devices", "/sys/fs/cgroup", "/sys/bus", "/sys/class",
    "/sys/module",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full")


def confine(readable: Iterable[Path], writable: Path) -> str:
    """Confine this process; return the means, such as ``landlock 7, seccomp, namespaces``.

    Only files and folders of ``readable`` and the system's libraries may be read. Only the folder
    ``writable`` may be written.
    Raise ModelLoadError if the system has no Landlock or no seccomp; then nothing foreign may run.
    """
    if platform.system() != "Linux" or platform.machine() not in _ARCHITECTURES:
        raise ModelLoadError(
            f"models with trust: code run on Linux (x86_64, aarch64) only, because they need "
            f"seccomp and Landlock; this is {platform.system()} {platform.machine()}"
        )
    library = ctypes.CDLL(None, use_errno=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    means = ["namespaces"] if _drop_powers(library) else []
    _require(library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    version = _limit_files(library, readable, writable)
    _limit_calls(library)
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
    _require(version - _LEAST_VERSION, "Landlock as of Linux 6.2")
    everything = (1 << 13) - 1
    for since, right in _ADDED.items():
        everything |= right if version >= since else 0
    limits = [everything, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0]
    size = 8 * (1 + (version >= 4) + (version >= 6))  # bytes of the limits that it knows
    rules = library.syscall(_CREATE, (ctypes.c_uint64 * 3)(*limits), size, 0)
    _require(rules, "Landlock")
    devices = [Path(name) for name in _DEVICES] + sorted(Path("/dev").glob("nvidia*"))
    libraries = map(Path, _READABLE)
    allowed = [(path, _READ | _LIST | _EXECUTE) for path in (*libraries, *readable)]
    allowed += [(path, _READ | _WRITE | _LIST | _IOCTL) for path in devices]
    for path, rights in [*allowed, (writable, everything)]:
        with suppress(FileNotFoundError):  # not every system has all of these files
            _allow(library, rules, path, rights & everything)
    _require(library.syscall(_RESTRICT, rules, 0), "Landlock")
    os.close(rules)
    return int(version)


def _allow(library: Any, rules: int, path: Path, rights: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        own = rights if path.is_dir() else rights & _FILE_RIGHTS
        rule = struct.pack("=Qi", own, folder)
        _require(library.syscall(_ADD, rules, 1, rule, 0), f"Landlock for {path}")
    finally:
        os.close(folder)


def _limit_calls(library: Any) -> None:
    """Refuse calls with EPERM, ignore others; kill a process that uses another call table."""
    architecture, column = _ARCHITECTURES[platform.machine()]
    numbers = [
        (each[column], answer)
        for table, answer in ((_REFUSED, errno.EPERM), (_IGNORED, 0))
        for each in table.values()
        if each[column] is not None
    ]
    steps = [
        (_LOAD, 0, 0, 4),  # the architecture
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the call's number
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
    ]
    for number, answer in numbers:
        steps += [(_EQUAL, 0, 1, number or 0), (_RETURN, 0, 0, _ERROR | answer)]
    steps += [
        (_EQUAL, 0, 3, _LIMITS[column]),
        (_LOAD, 0, 0, 16),  # its first argument, a process; 0: the caller
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HP", len(steps), ctypes.addressof(buffer))
    _require(library.prctl(_SET_SECCOMP, _FILTER, program, 0, 0), "seccomp")


def _require(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        why = f" ({os.strerror(number)})" if number else ""
        raise ModelLoadError(
            f"this system does not offer {what}{why}, so no process can be confined; models "
            "with trust: code are not run here"
        )
