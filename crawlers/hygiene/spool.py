"""A month's documents on local disk, between the time they come and the time they are judged."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from filelock import FileLock, Timeout

from core.errors import StorageError
from core.schemas import DOCUMENTS
from core.storage import explain_disk_errors

_BATCH_ROWS = 256
_BATCH_CHARS = 4 * 2**20
_DERIVED = {"document_id", "source", "month", "num_chars", "num_bytes", "sha256_text"}
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in DOCUMENTS if field.name not in _DERIVED]
)

Row = dict[str, Any]


class Spool:
    """Rows written once and read several times, in their order; a context manager.

    Its folder is deleted when the block ends. Where a process was killed, the next spool in the
    same scratch folder deletes what it left: a spool that is in use is locked.

    Args:
        scratch: local scratch folder.
    """

    def __init__(self, scratch: Path) -> None:
        self._parent = scratch / "hygiene"
        self.folder = self._parent / secrets.token_hex(8)
        self._lock = FileLock(self.folder.with_suffix(".lock"))
        self._batch: list[Row] = []
        self._num_chars = 0

    def __enter__(self) -> Self:
        with explain_disk_errors(str(self.folder)):
            self._parent.mkdir(parents=True, exist_ok=True)
            self._delete_stale()
            self._lock.acquire()
            self.folder.mkdir()
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            self._writer = pa.ipc.new_stream(self._path, _SCHEMA, options=options)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(pa.ArrowException, OSError):  # a full disk has been told already
            self._writer.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()

    @property
    def _path(self) -> str:
        return str(self.folder / "rows.arrow")

    def add(self, row: Row) -> None:
        """Write a row: columns of DOCUMENTS by name, without those that follow from others.

        Raises:
            DiskFull: no space.
        """
        self._batch.append(row)
        self._num_chars += len(row["text"])
        if len(self._batch) >= _BATCH_ROWS or self._num_chars >= _BATCH_CHARS:
            self._flush()

    def end(self) -> None:
        """Write what is left; the rows can be read from now on."""
        self._flush()
        with explain_disk_errors(self._path):
            self._writer.close()

    def _flush(self) -> None:
        with explain_disk_errors(self._path):
            self._writer.write_batch(pa.RecordBatch.from_pylist(self._batch, schema=_SCHEMA))
        self._batch, self._num_chars = [], 0

    def batches(self) -> Iterator[list[Row]]:
        """Yield the rows again, some at a time.

        Raises:
            StorageError: the file is damaged.
        """
        try:
            with pa.OSFile(self._path) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    yield batch.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise StorageError(f"{self._path} cannot be read ({error}); crawl again") from error

    def _delete_stale(self) -> None:
        """Delete the spools of processes that are gone."""
        for path in self._parent.glob("*.lock"):
            lock = FileLock(path, timeout=0)
            try:
                with lock:
                    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                    path.unlink(missing_ok=True)
            except Timeout:
                continue
