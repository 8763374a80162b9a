"""What models wrote, kept line by line, so that a run that was killed asks for nothing twice.

One file a cell, one line of JSON a generation, only ever appended to; a line is on the disk before
``keep`` returns. Each has a checksum. A last line without an end is what a kill leaves of one that
was never said to be kept: it is cut off, and the log says so. Any other damage is an error.

A journal is open in one process at a time: it holds a lock file (``filelock``) while it is, which
the operating system lets go of when the process ends, however it does. Threads may share one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from filelock import FileLock, Timeout

from core.errors import StorageError
from core.storage import explain_disk_errors

_log = logging.getLogger(__name__)

_LOCK_WAIT_S = 10.0  # as long as a process may take to end


@dataclass(frozen=True)
class Kept:
    """A generation.

    Attributes:
        key: of ``entry_key``.
        text: what was written.
        finish: how it ended; errors are not kept.
        num_tokens: written; None where nobody says.
    """

    key: str
    text: str
    finish: Literal["stop", "length", "error"]
    num_tokens: int | None = None


def entry_key(model: str, revision: str, generation_id: str, prompt: str, seed: int) -> str:
    """Return the hash of all that decides what a model writes."""
    asked = json.dumps([model, revision, generation_id, prompt, seed])
    return hashlib.sha256(asked.encode()).hexdigest()


class Journal:
    """The generations of one cell; open it with ``with``.

    Args:
        path: of the file, on a local disk; it need not be there, nor its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(f"{path}.lock")
        self._turn = threading.Lock()
        self._kept: dict[str, Kept] = {}
        self._file = -1

    def __enter__(self) -> Journal:
        """Lock the file and read it.

        Raises:
            StorageError: another process has it open; a line is damaged; it cannot be read.
        """
        with explain_disk_errors(str(self.path)):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=_LOCK_WAIT_S)
            except Timeout as error:
                raise StorageError(
                    f"{self.path} is open in another process, which asks the same; wait until it "
                    "ends, then run the same command again"
                ) from error
        try:
            with explain_disk_errors(str(self.path)):
                self._open()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str) -> Kept | None:
        """Return what was kept of a request, or None where it is to be asked."""
        return self._kept.get(key)

    def keep(self, generation: Kept) -> None:
        """Write a generation down, durably; an error is left out, so that it is asked again.

        What is there already stays as it is.

        Raises:
            DiskFull: no space; nothing half-written stays behind.
            StorageError: it cannot be written.
        """
        with self._turn:
            if generation.finish == "error" or generation.key in self._kept:
                return
            with explain_disk_errors(str(self.path)):
                self._append(_line_of(generation))
            self._kept[generation.key] = generation

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        self._file = os.open(self.path, flags, 0o644)
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            _log.warning(
                "%s: the last line (%d bytes) has no end: it was cut off by a kill and is dropped",
                self.path,
                len(content) - end,
            )
            os.ftruncate(self._file, end)
        os.fsync(self._file)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        for number, line in enumerate(content[:end].splitlines(), start=1):
            generation = self._read(line, number)
            self._kept[generation.key] = generation

    def _read(self, line: bytes, number: int) -> Kept:
        try:
            document = json.loads(line)
            check = document.pop("crc32")
            generation = Kept(**document)
            if check != _checksum(document):
                raise ValueError("its checksum is another")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(
                f"{self.path}, line {number}, is damaged ({error}); restore the file, or delete "
                "the line to have that one item asked again"
            ) from error
        return generation

    def _append(self, line: bytes) -> None:
        size = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, size)
            raise

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._kept = -1, {}
        self._lock.release()


def _line_of(generation: Kept) -> bytes:
    document = asdict(generation)
    return json.dumps({**document, "crc32": _checksum(document)}).encode() + b"\n"


def _checksum(document: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True).encode())
