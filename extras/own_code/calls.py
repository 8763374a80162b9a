"""Refuse system calls of this process and of its later threads, for good (seccomp).

A filter is a program that the kernel runs before each call. It sees the number of the call and its
arguments, but no memory to which an argument points.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import Any

# All calls are stated by number on x86-64 and on AArch64 (None: it has no such call).
Numbers = tuple[int | None, int | None]

_REFUSED: dict[str, Numbers] = {
    # programs
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    # sockets; a pair of them can send to any local socket
    "socket": (41, 198), "socketpair": (53, 199),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "kcmp": (312, 272), "setpriority": (141, 140),
    "ioprio_set": (251, 30), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "setrlimit": (160, 164),
    # memory, messages and keys that processes share
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219),
    # names of files, and files by number, which Landlock does not hide
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
    "open_by_handle_at": (304, 265),
    # the kernel
    "io_uring_setup": (425, 425), "userfaultfd": (323, 282), "bpf": (321, 280),
    "perf_event_open": (298, 241), "setns": (308, 268), "unshare": (272, 97), "mount": (165, 40),
    "syslog": (103, 116),
}  # fmt: skip
# Calls that Landlock does not know and that change a file's mode, owner, times or attributes. They
# seem to succeed and do nothing, because libraries use them on their own files.
_IGNORED: dict[str, Numbers] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "file_setattr": (469, 469),
}  # fmt: skip
# Calls whose errors make libraries use another: clone, whose flags can be seen; write, whose bytes
# are counted.
_LACKING: dict[str, tuple[Numbers, int]] = {
    "clone3": ((435, 435), errno.ENOSYS),
    "fallocate": ((285, 47), errno.EOPNOTSUPP),
}
_ALL = 0xFFFFFFFF
_THREAD = 0x10000  # flag of clone; without it, a process is started
# Calls that are refused where an argument, under a mask, has one of some values.
_REFUSED_VALUES: list[tuple[Numbers, int, int, list[int]]] = [
    ((56, 220), 0, _THREAD, [0]),  # clone
    # fcntl: who gets the signals of a file (F_SETOWN, F_SETSIG, F_SETOWN_EX), F_NOTIFY, and who
    # waits for whom (F_SETLEASE, F_SETDELEG)
    ((72, 25), 1, _ALL, [8, 10, 15, 1026, 1024, 1040]),
    # ioctl: of sockets (FIOSETOWN), of file systems (attributes, verity; versions; F2FS), of copies
    ((16, 29), 1, 0xFF00, [0x8900, 0x6600, 0x5800, 0x9400, 0x7600, 0xF500]),
    ((16, 29), 1, _ALL, [0x5412, 0x541C]),  # ioctl: TIOCSTI, TIOCLINUX
    ((157, 167), 0, _ALL, [1, 4]),  # prctl: PR_SET_PDEATHSIG, PR_SET_DUMPABLE
]
# prlimit64 may only read limits of this process (0), because libraries do so.
_LIMITS = (302, 261)

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32 = 0x40000000  # numbers from here on are a second table of calls on x86-64
# BPF instructions: load a word of the call's description, mask it, jump, return
_LOAD = 0x20
_MASK = 0x54
_EQUAL = 0x15
_AT_LEAST = 0x35
_RETURN = 0x06
# answers; an error has its number added
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERROR = 0x00050000
_REFUSE = _ERROR | errno.EPERM
# places of words in the description; each argument has a low word and a high word
_NUMBER = 0
_ARCHITECTURE = 4
_ARGUMENTS = 16

_SET_SECCOMP = 22
_FILTER = 2

Step = tuple[int, int, int, int]  # instruction, jump if true, jump if false, value


def can_filter() -> bool:
    """Return True if the numbers of this machine's calls are known."""
    return platform.system() == "Linux" and platform.machine() in _ARCHITECTURES


def limit_calls(library: Any) -> int:
    """Refuse or ignore calls; return a number below 0 if the kernel has no filters.

    A process that uses another table of calls is killed. ``no_new_privs`` must be set before.
    """
    architecture, column = _ARCHITECTURES[platform.machine()]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
    ]
    answers = [(numbers, _REFUSE) for numbers in _REFUSED.values()]
    answers += [(numbers, _ERROR) for numbers in _IGNORED.values()]
    answers += [(numbers, _ERROR | error) for numbers, error in _LACKING.values()]
    for numbers, answer in answers:
        steps += _on_call(numbers[column], [(_RETURN, 0, 0, answer)])
    for numbers, argument, mask, values in _REFUSED_VALUES:
        look = [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument), (_MASK, 0, 0, mask)]
        for value in values:
            look += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _REFUSE)]
        steps += _on_call(numbers[column], look)
    for word in (_ARGUMENTS, _ARGUMENTS + 16, _ARGUMENTS + 20):  # the process; the new limits
        look = [(_LOAD, 0, 0, word), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE)]
        steps += _on_call(_LIMITS[column], look)
    steps.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HP", len(steps), ctypes.addressof(buffer))
    return int(library.prctl(_SET_SECCOMP, _FILTER, program, 0, 0))


def _on_call(number: int | None, steps: list[Step]) -> list[Step]:
    """Return the steps, done for one call only; afterwards the call's number is loaded again."""
    if number is None:
        return []
    return [(_EQUAL, 0, len(steps) + 1, number), *steps, (_LOAD, 0, 0, _NUMBER)]
