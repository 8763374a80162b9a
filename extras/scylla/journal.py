"""A journal of generations, so that a restarted run repeats no request.

Each cell has one append-only file. Each line is a JSON object with one generation and a checksum.
``keep`` writes a line durably before it returns. A partial last line is the result of a killed
process; the line is removed and logged. Any other damage raises an error.

Only one process may open a journal. The process holds a lock file (``filelock``), which the
operating system releases when the process ends. Threads may share a journal.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import zlib
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from core.errors import StorageError
from core.storage.store import explain_disk_errors

_log = logging.getLogger(__name__)

_LOCK_WAIT_S = 10.0  # maximum time to wait until another process releases the lock


@dataclass(frozen=True)
class Kept:
    """A generation in the journal."""

    key: str
    text: str
    finish: Literal["stop", "length", "error"]
    num_tokens: int | None = None


def entry_key(model: str, revision: str, generation_id: str, prompt: str, seed: int) -> str:
    """Return the hash of all inputs of a generation."""
    asked = json.dumps([model, revision, generation_id, prompt, seed])
    return hashlib.sha256(asked.encode()).hexdigest()


class Journal:
    """The generations of one cell; use it in a ``with`` statement."""

    def __init__(self, path: Path) -> None:
        self.path = path  # on a local disk; created if it does not exist
        self._lock = FileLock(f"{path}.lock")
        self._writing = threading.Lock()
        self._kept: dict[str, Kept] = {}
        self._file = -1

    def __enter__(self) -> Journal:
        """Lock the file and read it.

        Raises:
            StorageError: another process holds the lock; a line is damaged; the file is unreadable.
        """
        with ExitStack() as at_failure, explain_disk_errors(str(self.path)):
            at_failure.callback(self._close)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=_LOCK_WAIT_S)
            except Timeout as error:
                raise StorageError(
                    f"{self.path} is open in another process, which asks the same; wait until it "
                    "ends, then run the same command again"
                ) from error
            self._open()
            at_failure.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str) -> Kept | None:
        """Return the generation with a key (see ``entry_key``), or None if there is none."""
        return self._kept.get(key)

    def keep(self, generation: Kept) -> None:
        """Append a generation durably; skip errors, so that failed requests are repeated later.

        A generation whose key exists is not written again.

        Raises:
            DiskFull: the disk is full; no partial line remains.
            StorageError: writing failed.
        """
        with self._writing:
            if generation.finish == "error" or generation.key in self._kept:
                return
            with explain_disk_errors(str(self.path)):
                document = asdict(generation)
                line = json.dumps({**document, "crc32": _checksum(document)})
                self._append(line.encode() + b"\n")
            self._kept[generation.key] = generation

    def _open(self) -> None:
        """Open the file, drop a last line that a kill cut off, and read the others."""
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
        """Return the text of a line; raise an error if its checksum differs."""
        try:
            document = json.loads(line)
            check = document.pop("crc32")
            generation = Kept(**document)
            if check != _checksum(document):
                raise ValueError("its checksum differs")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(
                f"{self.path}, line {number}, is damaged ({error}); bring the file back from a "
                "backup, or keep a copy of it and delete the line to have that item asked again"
            ) from error
        return generation

    def _append(self, line: bytes) -> None:
        """Write a line durably; remove what was written of it if that fails."""
        size = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, size)
            raise

    def _close(self) -> None:
        """Close the file and release its lock."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
        self._kept = {}
        self._lock.release()


def _checksum(document: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True).encode())
