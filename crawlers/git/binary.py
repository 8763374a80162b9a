"""Safe execution of the git binary on untrusted repositories.

Git never runs with the user's configuration, hooks, credentials or environment. Local commands have
no network access. So a missing object is an error: a partial clone would otherwise download it.
Git 2.31 or later is required.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import filelock

from core.errors import DiskFull, ItemUnavailable, SourceUnavailable, StorageError, UsageError
from core.storage.store import explain_disk_errors

MAX_MIRROR_BYTES = 4 * 2**30  # far more than a large project's history without file contents
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_TRANSFER_TIMEOUT_S = 1800.0
_LOCAL_TIMEOUT_S = 300.0
_TRIES = 3
_LEAST_FREE_BYTES = 2**20
_MAX_MESSAGE_LINES = 3
_MAX_MESSAGE_CHARS = 400
# Git uses this proxy, which does not exist, for all hosts except the site's. So a redirect to a
# renamed repository works, but a redirect to another host fails.
_NO_PROXY_THERE = "http://127.0.0.1:9"
WHOLE = "fetched-at"  # file written last into a mirror; a mirror without it is incomplete
_CONFIG = {
    "attr.tree": EMPTY_TREE,  # so that newer git versions ignore .gitattributes of the last commit
    "core.askPass": "",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "credential.helper": "",
    "diff.renameLimit": "2000",  # for more files, git finds only exact renames (in linear time)
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.followRedirects": "initial",  # renamed repositories redirect the first request
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "log.mailmap": "false",  # git would look for the file .mailmap, which a mirror does not have
    "maintenance.auto": "false",  # maintenance would continue in the background after git ends
    "protocol.file.allow": "never",
    "submodule.recurse": "false",
}
_FINAL_FAILURES = (
    # For a missing public repository, GitHub asks for a user name (401).
    (r"repository '.*' not found|could not read Username|error: (401|404|410|451)", "deleted"),
    (r"error: 403", "http_403"),
    (r"source repository is shallow", "shallow"),
)
_SHALLOW = "source repository is shallow: its history is cut off"
# Git leaves out a branch whose history the source has cut off, and ends with status 0.
_CUT_OFF = b"shallow roots are not allowed to be updated"
# If a site has cut off the history, git before 2.45 looks for the first commit in a process that
# does the same, without end.
_MAX_PROCESSES = 30


class Git:
    """Runs git for a site's repositories; all processes together run one transfer at a time.

    Each site has its own folder of mirrors in ``scratch``. At least ``interval_s`` seconds pass
    between transfers. Raise UsageError if git is missing, or the URL is neither http nor https.
    """

    def __init__(self, scratch: Path, base_url: str, user_agent: str, interval_s: float) -> None:
        binary = shutil.which("git")
        scheme = urlsplit(base_url).scheme
        if binary is None:
            raise UsageError("git is not on the PATH; install it (Debian: apt-get install git)")
        if scheme not in ("http", "https"):
            raise UsageError(f"{base_url!r} is no base URL for git; expected http:// or https://")
        self.base_url = base_url.rstrip("/")
        self._binary = binary
        self._scheme = scheme
        self.interval_s = interval_s
        self.root = scratch / re.sub(r"[^A-Za-z0-9.-]+", "_", self.base_url.partition("//")[2])
        self._config = {**_CONFIG, "http.userAgent": user_agent}

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the site's lock, which every change of a mirror and every transfer needs."""
        lock = filelock.FileLock(self.root / "lock", timeout=2 * _TRANSFER_TIMEOUT_S)
        with explain_disk_errors(str(self.root)):
            self.root.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except filelock.Timeout as error:
                raise SourceUnavailable(f"another process keeps {self.root} locked") from error
            try:
                yield
            finally:
                lock.release()

    def local(self, folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git on a mirror without network; return its output, or raise StorageError."""
        try:
            done = subprocess.run(
                self.command(f"--git-dir={folder}", *arguments), env=self.environment("none"),
                input=stdin, capture_output=True, timeout=_LOCAL_TIMEOUT_S,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise damaged(folder, f"git {arguments[0]} took too long") from error
        if done.returncode:
            raise damaged(folder, _last_words(done.stderr))
        return done.stdout

    def transfer(self, folder: Path, *arguments: str, stdin: bytes = b"") -> None:
        """Run git with network access; limit the rate of transfers and the size of ``folder``.

        The caller must hold the site's lock (``alone``). Raise ItemUnavailable if the repository is
        missing, forbidden, or too large. Raise SourceUnavailable if all tries failed, and DiskFull
        if no space is left.
        """
        failure = None
        for attempt in range(_TRIES):
            # Each further try waits ten times as long.
            self._keep_interval(self.interval_s * 10**attempt)
            if not (folder / WHOLE).exists():
                shutil.rmtree(folder, ignore_errors=True)  # delete what a failed try has left
            failure = self._transfer_once(self.command(*arguments), folder, stdin)
            if failure is None:
                return
            # A redirect to another host fails at ``_NO_PROXY_THERE``; name the cause.
            failure = failure.replace("127.0.0.1 port 9", "another host, which it redirects to")
            for pattern, reason in _FINAL_FAILURES:
                if re.search(pattern, failure):
                    raise ItemUnavailable(reason, failure)
            # Git reports some failed writes without a reason, so the free space is checked, too.
            is_full = shutil.disk_usage(self.root).free < _LEAST_FREE_BYTES
            if is_full or "No space left" in failure:
                raise DiskFull(
                    f"no space left for {folder} ({failure}); free some or set TIDEMARK_WORK_DIR "
                    "to another disk, then run the same command again"
                )
        raise SourceUnavailable(f"git for {folder.stem} failed: {failure}; try again later")

    def command(self, *arguments: str) -> list[str]:
        """Return git's full command line, with the safe configuration."""
        config = [part for item in self._config.items() for part in ("-c", "=".join(item))]
        return [self._binary, *config, *arguments]

    def environment(self, protocols: str) -> dict[str, str]:
        """Return all environment variables of git; none are inherited from this process."""
        return {
            "PATH": f"{Path(self._binary).parent}:/usr/bin:/bin",
            "HOME": "/nonexistent",
            "http_proxy": _NO_PROXY_THERE,
            "https_proxy": _NO_PROXY_THERE,
            "no_proxy": urlsplit(self.base_url).hostname or "",
            "LC_ALL": "C",  # English messages, since this module parses them
            "GIT_ALLOW_PROTOCOL": protocols,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }

    def _keep_interval(self, interval_s: float) -> None:
        """Wait until ``interval_s`` seconds after the last transfer of any process."""
        self.root.mkdir(parents=True, exist_ok=True)
        last = self.root / "last-transfer"
        if last.exists():
            time.sleep(max(0.0, min(interval_s, last.stat().st_mtime + interval_s - time.time())))
        last.touch()
        # By the clock of this machine: a network file system has another.
        now = time.time()
        os.utime(last, (now, now))

    def _transfer_once(self, command: list[str], folder: Path, stdin: bytes) -> str | None:
        """Run git once; return None on success, else the end of git's output."""
        deadline = time.monotonic() + _TRANSFER_TIMEOUT_S
        feed = cast(bytes | None, stdin)
        with subprocess.Popen(
            command, env=self.environment(self._scheme), start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                while True:
                    try:
                        _, words = process.communicate(feed, timeout=1.0)
                        if _CUT_OFF in words:
                            return _SHALLOW
                        return _last_words(words) if process.returncode else None
                    except subprocess.TimeoutExpired:
                        feed = None  # the input is sent only once
                    if _num_processes(process.pid) > _MAX_PROCESSES:
                        raise ItemUnavailable(
                            "shallow", f"{folder.stem}: {_SHALLOW}, or lacks objects"
                        )
                    if _folder_bytes(folder) > MAX_MIRROR_BYTES:
                        raise ItemUnavailable(
                            "too_large", f"{folder.stem}: more than {MAX_MIRROR_BYTES} bytes"
                        )
                    if time.monotonic() > deadline:
                        return f"not done after {_TRANSFER_TIMEOUT_S:.0f} s"
            finally:
                if process.poll() is None:  # kill git and its helpers, which hold the pipe open
                    os.killpg(process.pid, signal.SIGKILL)


def _num_processes(group: int) -> int:
    """Return the number of processes of a process group, or 0 where there is no /proc."""
    number = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process may have ended
            # The name, in parentheses, may have blanks; state, parent and group follow it.
            number += file.read_bytes().rpartition(b") ")[2].split()[2] == b"%d" % group
    return number


def _folder_bytes(folder: Path) -> int:
    """Return the total size of the files below a folder, in bytes."""
    total = 0
    for parent, _, names in os.walk(folder):  # ignores folders that git removes meanwhile
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # git may rename files meanwhile
                total += Path(parent, name).lstat().st_size
    return total


def _last_words(output: bytes) -> str:
    """Return the end of git's output, without control characters that the site may have sent."""
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    message = "; ".join(lines[-_MAX_MESSAGE_LINES:]) or "it gave no reason"
    return "".join(c for c in message if c.isprintable())[-_MAX_MESSAGE_CHARS:]


def damaged(folder: Path, why: str) -> StorageError:
    """Return the error for a mirror that cannot be read."""
    return StorageError(
        f"the mirror {folder} is damaged ({why}); move it away and run again, which fetches it "
        "again; delete it then"
    )
