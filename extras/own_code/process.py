"""A process that ends when this one ends, whatever ends it, and when it takes too much."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from core.errors import ModelLoadError

_MOST_THREADS = 4096
_MOST_WRITTEN = 2**30  # bytes since the start, also to files that were removed
_LOOK_S = 0.1


class WatchedProcess:
    """A process that runs ``confine``, with the thread that starts and watches it.

    The kernel ends such a process with the thread that has started it (PR_SET_PDEATHSIG). So this
    thread lives until the process has ended, or until tidemark ends.

    Attributes:
        process: the process, started.
        excess: why the watching thread has ended it; empty if the thread has not.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, *pipes: int
    ) -> None:
        self.excess = ""
        started: Future[subprocess.Popen[bytes]] = Future()

        def start() -> None:
            try:
                process = subprocess.Popen(
                    command, env=environment, cwd=folder, pass_fds=pipes, start_new_session=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
            except BaseException as error:  # noqa: BLE001 - raised again by the other thread
                started.set_exception(error)
                return
            started.set_result(process)
            self._watch(process)

        threading.Thread(target=start, name="confined process", daemon=True).start()
        self.process = started.result()

    def require_watch(self) -> None:
        """Raise ModelLoadError if the system does not tell what the process takes."""
        try:
            _taken(self.process.pid)
        except (OSError, KeyError) as error:
            raise ModelLoadError(
                f"this system does not tell what a process takes ({error}), so none can be "
                "limited; models with trust: code are not run here; mount /proc, and use a kernel "
                "with CONFIG_TASK_IO_ACCOUNTING"
            ) from error

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the process if it has too many threads, or writes too much."""
        while process.poll() is None:
            with suppress(OSError, KeyError):  # it may have ended, or ``require_watch`` will fail
                threads, written = _taken(process.pid)
                if threads > _MOST_THREADS:
                    self.excess = f"it had {threads:,} threads, more than {_MOST_THREADS:,}"
                if written > _MOST_WRITTEN:
                    self.excess = f"it wrote {written:,} bytes, more than {_MOST_WRITTEN:,}"
            if self.excess:
                process.kill()
            time.sleep(_LOOK_S)

    def end(self) -> None:
        """End the process, and return when it is gone."""
        self.process.kill()
        self.process.wait()


def _taken(pid: int) -> tuple[int, int]:
    """Return the number of threads of a process, and the bytes that it has sent to disks."""
    threads = _facts(Path(f"/proc/{pid}/status"))["Threads"]
    written = _facts(Path(f"/proc/{pid}/io"))["write_bytes"]
    return int(threads), int(written)


def _facts(path: Path) -> dict[str, str]:
    lines = path.read_text(errors="replace").splitlines()
    return {name: value for name, _, value in (line.partition(":") for line in lines)}


def remove_folder(folder: Path) -> None:
    """Remove a folder that foreign code has filled: deep, or with folders that nobody may list."""
    for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        subprocess.run([*command, "--", folder], check=False, capture_output=True)
