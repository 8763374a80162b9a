"""A data root in an object store: each file is written by one put."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from core.errors import StorageError
from core.storage.store import ALONE_WAIT_S, Store
from core.storage.temporary import TEMPORARY, prefix_of
from extras.object_store.client import FAILURES, ObjectStore, was_replaced

__all__ = ["FAILURES", "RemoteStore"]

FETCH_ATTEMPTS = 10
_T = TypeVar("_T")


class RemoteStore(Store):
    """A data root in an object store. Failures that may pass are retried.

    Args:
        root: any address that fsspec supports (``s3://bucket/prefix``).
        scratch: folder for files that wait for their upload; default: the system's folder for
            temporary files.
        options: options of fsspec, e.g. ``endpoint_url`` for an S3-compatible server.

    Raises:
        StorageError: fsspec does not support the address; from every method: the object store
            fails after retries.
    """

    def __init__(self, root: str, scratch: Path | None = None, **options: Any) -> None:
        self.root = root.rstrip("/")
        self._scratch = scratch
        try:
            self._remote = ObjectStore(self.root, options)
        except (ValueError, ImportError) as error:
            raise StorageError(f"{root} cannot be a data root: {error}") from error
        self._fs = self._remote.fs
        self._base = self._remote.base

    def _do(self, doing: str, work: Callable[[], _T]) -> _T:
        return self._remote.patiently(doing, work)

    def exists(self, path: str) -> bool:
        """Return True if the object or folder exists."""
        key = self._key(path)
        return self._do(f"look for {self.url(path)}", lambda: self._remote.exists(key))

    def _find(self, pattern: str) -> set[str]:
        return self._remote.find(pattern)

    def open(self, path: str) -> IO[bytes]:
        """Open an object for reading and seeking; all reads return the same version of it."""
        key = self._key(path)
        doing = f"read {self.url(path)}"
        return self._do(doing, lambda: self._remote.open(key, doing))

    def fetch(self, path: str, to: Path) -> None:
        """Copy an object to this machine; never mix two versions, even if it is replaced.

        Raises:
            StorageError: the object is missing, or was replaced during every attempt.
        """
        for attempt in range(1, FETCH_ATTEMPTS + 1):
            try:
                super().fetch(path, to)
                return
            except StorageError as error:
                if attempt == FETCH_ATTEMPTS or not was_replaced(error):
                    raise

    def write_bytes(self, path: str, data: bytes) -> str:
        """Write an object by one put; return the SHA-256 (hex) of its content."""
        key = self._key(path)
        self._do(f"write {self.url(path)}", lambda: self._fs.pipe_file(key, data))
        return hashlib.sha256(data).hexdigest()

    def create_bytes(self, path: str, data: bytes) -> bool:
        """Create an object and return True; return False if the object exists.

        Of several concurrent callers, one succeeds, because the put is conditional.
        """
        return self._do(f"write {self.url(path)}", self._remote.creation(self._key(path), data))

    def move(self, path: str, to: str) -> None:
        """Copy an object and delete the old one; replace an existing object at the new path."""
        source = self._key(path)
        target = self._key(to)
        self._do(f"write {self.url(to)}", lambda: self._fs.cp_file(source, target))
        self.delete(path)

    @contextlib.contextmanager
    def alone(self, folder: str, wait_s: float = ALONE_WAIT_S) -> Iterator[None]:
        """Do nothing: an object store has no locks."""
        yield

    def _staging(self, path: str) -> Path:
        return self._scratch / "staging" if self._scratch else Path(tempfile.gettempdir())

    def _prepare(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)

    def _put(self, temporary: Path, path: str) -> None:
        upload = self._remote.putting(str(temporary), self._key(path))
        self._do(f"write {self.url(path)}", upload)

    def clear_leftovers(self, path: str) -> None:
        """Delete a file's temporary files and uploads, and those that are older than a day."""
        day_ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
        for file in self._staging(path).glob(f"{TEMPORARY}*"):
            is_leftover = file.name.startswith(prefix_of(Path(path).name))
            if is_leftover or file.stat().st_mtime < day_ago.timestamp():
                file.unlink(missing_ok=True)
        key = self._key(path)
        doing = f"clear uploads to {self.url('')}"
        self._do(doing, lambda: self._remote.abort_uploads(key, day_ago))
