"""The git binary, made safe for untrusted repositories.

It never runs with the user's own configuration, hooks, credentials or environment. Local commands
have no network. So a missing object is an error, not a hidden request (partial clones fetch
lazily). Needs git 2.31 or later.
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

MAX_MIRROR_BYTES = 4 * 2**30  # many times a large project without its file contents
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_TRANSFER_TIMEOUT_S = 1800.0
_LOCAL_TIMEOUT_S = 300.0
_TRIES = 3
_LEAST_FREE_BYTES = 2**20
# An unused proxy address for all hosts but the site's. So git follows renamed repositories, but no
# redirect to other hosts.
_NO_PROXY_THERE = "http://127.0.0.1:9"
WHOLE = "fetched-at"  # written last into a mirror: its presence means a whole mirror
_CONFIG = {
    "attr.tree": EMPTY_TREE,  # newer gits read .gitattributes of the tip in a bare repository
    "core.askPass": "",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "credential.helper": "",
    "diff.renameLimit": "2000",  # inexact renames are quadratic; beyond this only exact ones count
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.followRedirects": "initial",  # renamed repositories; never during object transfer
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "maintenance.auto": "false",  # would continue in the background after git has ended
    "protocol.file.allow": "never",
    "submodule.recurse": "false",
}
_FINAL_FAILURES = (
    # For a missing public repository, GitHub asks for a user name (401).
    (r"repository '.*' not found|could not read Username|error: (401|404|410|451)", "deleted"),
    (r"error: 403", "http_403"),
)


class Git:
    """The git binary for the repositories of one site; one transfer at a time, over all processes.

    Each site has its own folder of mirrors in ``scratch``. ``interval_s``: seconds between
    transfers. Raise UsageError if git is not installed, or the URL is neither http nor https.
    """

    def __init__(self, scratch: Path, base_url: str, user_agent: str, interval_s: float) -> None:
        binary, scheme = shutil.which("git"), urlsplit(base_url).scheme
        if binary is None:
            raise UsageError("git is not on the PATH; install it (Debian: apt-get install git)")
        if scheme not in ("http", "https"):
            raise UsageError(f"{base_url!r} is no base URL for git; expected http:// or https://")
        self.base_url, self._binary, self._scheme = base_url.rstrip("/"), binary, scheme
        self.interval_s = interval_s
        self.root = scratch / re.sub(r"[^A-Za-z0-9.-]+", "_", self.base_url.partition("//")[2])
        self._config = {**_CONFIG, "http.userAgent": user_agent}

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the site's lock: only its holder changes mirrors or uses the network."""
        lock = filelock.FileLock(self.root / "lock", timeout=2 * _TRANSFER_TIMEOUT_S)
        try:
            with explain_disk_errors(str(self.root)):
                self.root.mkdir(parents=True, exist_ok=True)
            with lock, explain_disk_errors(str(self.root)):
                yield
        except filelock.Timeout as error:
            raise SourceUnavailable(f"another process keeps {self.root} locked") from error

    def local(self, folder: Path, *arguments: str) -> bytes:
        """Run git on a mirror, without network; return its output, or raise StorageError."""
        try:
            done = subprocess.run(
                self.command(f"--git-dir={folder}", *arguments), env=self.environment("none"),
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_LOCAL_TIMEOUT_S,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise damaged(folder, f"git {arguments[0]} took too long") from error
        if done.returncode:
            raise damaged(folder, _last_words(done.stderr))
        return done.stdout

    def transfer(self, folder: Path, *arguments: str, stdin: bytes = b"") -> None:
        """Run git with network; limit the rate of transfers and the size of ``folder``.

        The caller holds the site's lock. Raise ItemUnavailable if the repository is missing,
        forbidden, or too large. Raise SourceUnavailable if all tries failed.
        """
        failure = None
        for attempt in range(_TRIES):
            self._keep_interval(self.interval_s * 10**attempt)
            if not (folder / WHOLE).exists():
                shutil.rmtree(folder, ignore_errors=True)  # remains of a failed try
            failure = self._transfer_once(self.command(*arguments), folder, stdin)
            if failure is None:
                return
            failure = failure.replace("127.0.0.1 port 9", "another host, which it redirects to")
            for pattern, reason in _FINAL_FAILURES:
                if re.search(pattern, failure):
                    raise ItemUnavailable(reason, failure)
            # Git reports some failed writes without a reason.
            is_full = shutil.disk_usage(self.root).free < _LEAST_FREE_BYTES
            if is_full or "No space left" in failure:
                raise DiskFull(
                    f"no space left for {folder} ({failure}); free some or set TIDEMARK_WORK_DIR "
                    "to another disk, then run the same command again"
                )
        raise SourceUnavailable(f"git for {folder.stem} failed: {failure}; try again later")

    def command(self, *arguments: str) -> list[str]:
        """Return the full command line."""
        config = [part for item in self._config.items() for part in ("-c", "=".join(item))]
        return [self._binary, *config, *arguments]

    def environment(self, protocols: str) -> dict[str, str]:
        """Return the complete environment of git; nothing is inherited."""
        return {
            "PATH": f"{Path(self._binary).parent}:/usr/bin:/bin",
            "HOME": "/nonexistent",
            "http_proxy": _NO_PROXY_THERE,
            "https_proxy": _NO_PROXY_THERE,
            "no_proxy": urlsplit(self.base_url).hostname or "",
            "LC_ALL": "C",  # git's messages are parsed
            "GIT_ALLOW_PROTOCOL": protocols,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }

    def _keep_interval(self, interval_s: float) -> None:
        """Wait for the interval since the last transfer of any process (a file's mtime)."""
        self.root.mkdir(parents=True, exist_ok=True)
        last = self.root / "last-transfer"
        if last.exists():
            time.sleep(max(0.0, min(interval_s, last.stat().st_mtime + interval_s - time.time())))
        last.touch()

    def _transfer_once(self, command: list[str], folder: Path, stdin: bytes) -> str | None:
        """Return None on success, else the end of git's output."""
        deadline, feed = time.monotonic() + _TRANSFER_TIMEOUT_S, cast(bytes | None, stdin)
        with subprocess.Popen(
            command, env=self.environment(self._scheme), start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                while True:
                    try:
                        _, words = process.communicate(feed, timeout=1.0)
                        return _last_words(words) if process.returncode else None
                    except subprocess.TimeoutExpired:
                        feed = None  # the first call has consumed it
                    if _folder_bytes(folder) > MAX_MIRROR_BYTES:
                        raise ItemUnavailable(
                            "too_large", f"{folder.stem}: more than {MAX_MIRROR_BYTES} bytes"
                        )
                    if time.monotonic() > deadline:
                        return f"not done after {_TRANSFER_TIMEOUT_S:.0f} s"
            finally:
                if process.poll() is None:  # helpers of git hold the pipe open, too
                    os.killpg(process.pid, signal.SIGKILL)


def _folder_bytes(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # git may rename its packs at the same time
            total += file.lstat().st_size
    return total


def _last_words(output: bytes) -> str:
    """Return the end of git's output without control characters: it may quote the site."""
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    words = "; ".join(lines[-3:]) or "it gave no reason"
    return "".join(c for c in words if c.isprintable())[-400:]


def damaged(folder: Path, why: str) -> StorageError:
    """Return the error for a mirror that cannot be read."""
    return StorageError(f"the mirror {folder} is damaged ({why}); delete it and run again")
