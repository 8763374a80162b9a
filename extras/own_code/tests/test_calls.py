"""Calls of the system that a confined process may not make, by the names of the C library."""

import errno
import json
import os
import signal
import struct
import sys

import pytest

from tests.forks import ROOT, run_process

# Each call is invalid, so that it does nothing where it is allowed. An expression of Python.
CALLS = {
    "kill": "c.kill(-1, 99)",
    "tgkill": "c.tgkill(-1, -1, 0)",
    "sigqueue": "c.sigqueue(-1, 99, None)",
    "pidfd_send_signal": "c.syscall(424, -1, 0, None, 0)",
    "pidfd_open": "c.syscall(434, -1, 0)",
    "F_SETOWN": "c.fcntl(-1, 8, 1)",
    "F_SETSIG": "c.fcntl(-1, 10, 9)",
    "F_SETOWN_EX": "c.fcntl(-1, 15, None)",
    "F_SETLEASE": "c.fcntl(-1, 1024, 1)",
    "F_NOTIFY": "c.fcntl(-1, 1026, 1)",
    "FIOSETOWN": "c.ioctl(-1, 0x8901, None)",
    "SIOCSPGRP": "c.ioctl(-1, 0x8902, None)",
    "TIOCSTI": "c.ioctl(-1, 0x5412, None)",
    "FS_IOC_SETFLAGS": "c.ioctl(-1, 0x40086602, None)",
    "FS_IOC_FSSETXATTR": "c.ioctl(-1, 0x401C5820, None)",
    "FS_IOC_SETVERSION": "c.ioctl(-1, 0x40087602, None)",
    "F2FS_IOC_SET_PIN_FILE": "c.ioctl(-1, 0x4004F50D, None)",
    "FS_IOC_ENABLE_VERITY": "c.ioctl(-1, 0x40806685, None)",
    "PR_SET_PDEATHSIG": "c.prctl(1, 99, 0, 0, 0)",
    "PR_SET_DUMPABLE": "c.prctl(4, 99, 0, 0, 0)",
    "setrlimit": "c.setrlimit(99, b'x' * 16)",
    "prlimit of itself": "c.prlimit(0, 99, b'x' * 16, None)",
    "prlimit of another": "c.prlimit(-1, 4, None, None)",
    "ptrace": "c.ptrace(16, -1, None, None)",
    "process_vm_readv": "c.process_vm_readv(-1, None, 0, None, 0, 0)",
    "process_vm_writev": "c.process_vm_writev(-1, None, 0, None, 0, 0)",
    "execve": "c.execve(None, None, None)",
    "fexecve": "c.fexecve(1000, (ctypes.c_char_p * 1)(), (ctypes.c_char_p * 1)())",
    "socket": "c.socket(99, 0, 0)",
    "socketpair": "c.socketpair(99, 0, 0, None)",
    "shmget": "c.shmget(0, 0, 0)",
    "shmat": "c.shmat(-1, None, 0)",
    "shmctl": "c.shmctl(-1, 2, None)",
    "msgget": "c.msgget(1234567, 0)",
    "msgsnd": "c.msgsnd(-1, None, 0, 0)",
    "msgrcv": "c.msgrcv(-1, None, 0, 0, 0)",
    "semop": "c.semop(-1, None, 0)",
    "semctl": "c.semctl(-1, 0, 2, None)",
    "mq_unlink": "c.syscall(241 if platform.machine() == 'x86_64' else 181, b'none')",
    "inotify_init": "c.inotify_init1(-1)",
    "setns": "c.setns(-1, 0)",
    "unshare": "c.unshare(1)",
    "io_uring_setup": "c.syscall(425, 0, None)",
    "setpriority": "c.setpriority(99, 0, 0)",
    "sched_setaffinity": "c.sched_setaffinity(-1, 0, None)",
}
SCRIPT = """
import ctypes, json, platform, sys
c = ctypes.CDLL(None, use_errno=True)
if sys.argv[2] == "confined":
    from extras.own_code.calls import limit_calls
    assert c.prctl(38, 1, 0, 0, 0) == 0  # no_new_privs
    assert limit_calls(c) == 0
found = {}
for name, call in json.loads(sys.argv[1]).items():
    found[name] = ctypes.get_errno() if eval(call) < 0 else 0
print(json.dumps(found))
"""


def errors(calls: dict[str, str], state: str) -> dict[str, int]:
    """Make calls in a process; return the number of the error of each, or 0."""
    done = run_process(sys.executable, "-c", SCRIPT, json.dumps(calls), state, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("confinement")
def test_calls_are_refused_by_seccomp_alone() -> None:
    """Without Landlock and namespaces, so that no version of them matters."""
    assert errno.EPERM not in errors(CALLS, "free").values()
    assert errors(CALLS, "confined") == dict.fromkeys(CALLS, errno.EPERM)


@pytest.mark.usefixtures("confinement")
def test_calls_that_libraries_need_are_made() -> None:
    needed = {
        "thread": "__import__('threading').Thread(target=len, args=('',)).start() or 0",
        "duplicate": "c.fcntl(1, 1030, 0)",
        "flags": "c.fcntl(1, 3)",
        "limits": "c.prlimit(0, 7, None, ctypes.create_string_buffer(16))",
        "is it a terminal": "int(c.isatty(0))",
        "name of a thread": "c.prctl(15, b'x')",
    }
    assert errors(needed, "confined") == dict.fromkeys(needed, 0)


@pytest.mark.usefixtures("confinement")
def test_the_kernel_sends_no_signal_of_a_timer_to_another_process() -> None:
    event = struct.pack("Qiii", 0, signal.SIGKILL, 4, os.getpid())  # 4: SIGEV_THREAD_ID
    call = f"c.timer_create(1, {event.ljust(64, b'0')!r}, ctypes.create_string_buffer(8))"
    assert errors({"timer": call}, "free") == {"timer": errno.EINVAL}
