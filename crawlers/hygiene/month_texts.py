"""Storage for a month's documents: rows in a temporary file, 350 bytes per document in memory."""

from __future__ import annotations

import contextlib
import math
import secrets
import shutil
from array import array
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from filelock import FileLock, Timeout

from core.errors import StorageError
from core.schemas.tables import DOCUMENTS, DocumentRow
from core.storage.store import explain_disk_errors
from crawlers.contract import DropReason
from crawlers.hygiene.signatures import NUM_PERMUTATIONS, SIGNATURE_BYTES, Rows, Signatures, sign
from crawlers.hygiene.tokens import Hashes

_BATCH_ROWS = 256
_BATCH_CHARS = 4 * 2**20
_MICROS = 1e6  # microseconds in a second
_ID_BYTES = 16  # of a document id
_DERIVED = {"document_id", "source", "month", "num_chars", "num_bytes", "sha256_text"}
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in DOCUMENTS if field.name not in _DERIVED]
)


class Spool:
    """A temporary file of rows, written once and read several times; a context manager.

    Rows have the given columns, by default all that are not computed.

    At the end of the ``with`` block, the file's folder is deleted. If a process is killed, the next
    spool in the same scratch folder deletes its files. A lock protects spools in use.
    """

    def __init__(self, scratch: Path, columns: Collection[str] = _SCHEMA.names) -> None:
        self._schema = pa.schema([field for field in _SCHEMA if field.name in columns])
        self._parent = scratch / "hygiene"
        self.folder = self._parent / secrets.token_hex(8)
        self._path = str(self.folder / "rows.arrow")
        self._lock = FileLock(self.folder.with_suffix(".lock"))
        self._batch: list[DocumentRow] = []
        self._num_chars = 0

    def __enter__(self) -> Self:
        """Create the folder and the file, and lock them against other processes."""
        with explain_disk_errors(str(self.folder)):
            self._parent.mkdir(parents=True, exist_ok=True)
            self._delete_stale()
            self._lock.acquire()
            self.folder.mkdir()
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            self._writer = pa.ipc.new_stream(self._path, self._schema, options=options)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(pa.ArrowException, OSError):  # ``end`` has reported disk errors
            self._writer.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()

    def add(self, row: DocumentRow) -> None:
        """Write a row: a document's columns by name (schema DOCUMENTS without computed columns)."""
        self._batch.append(row)
        self._num_chars += len(row["text"])
        if len(self._batch) >= _BATCH_ROWS or self._num_chars >= _BATCH_CHARS:
            self.flush()

    def end(self) -> None:
        """Write the buffered rows and close the file; the rows can then be read."""
        self.flush()
        with explain_disk_errors(self._path):
            self._writer.close()

    def flush(self) -> None:
        """Write the buffered rows."""
        if not self._batch:
            return
        with explain_disk_errors(self._path):
            self._writer.write_batch(pa.RecordBatch.from_pylist(self._batch, schema=self._schema))
        self._batch = []
        self._num_chars = 0

    def batches(self) -> Iterator[list[DocumentRow]]:
        """Yield all rows in batches; raise StorageError if the file is damaged."""
        try:
            with pa.OSFile(self._path) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    yield batch.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise StorageError(f"{self._path} cannot be read ({error}); crawl again") from error

    def _delete_stale(self) -> None:
        """Delete the files of killed processes: those whose lock is free."""
        for path in self._parent.glob("*.lock"):
            with contextlib.suppress(Timeout), FileLock(path, timeout=0):
                shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                path.unlink(missing_ok=True)


Digests = npt.NDArray[np.void]
DIGEST_BYTES = 32


class MonthTexts:
    """Data of a month's texts by row; a row is the position of a document in the crawl."""

    def __init__(self) -> None:
        self.native_ids: list[str] = []
        self.drops: dict[int, tuple[DropReason, str]] = {}
        self.language_scores = array("f")  # probability of each text's language; NaN if unknown
        self.redactions: dict[int, dict[str, int]] = {}
        self._document_ids = bytearray()
        self._digests = bytearray()
        self._signatures = bytearray()
        self._times = array("q")  # event times in microseconds since 1970; 0: no time
        self._is_signed = bytearray()

    def __len__(self) -> int:
        return len(self.native_ids)

    def add(self, row: DocumentRow, document_id: str, digest: bytes) -> int:
        """Store a spooled document's data, and return its row; ``digest`` is the text's SHA-256."""
        self.language_scores.append(math.nan)
        self.native_ids.append(row["native_id"])
        self._document_ids += bytes.fromhex(document_id)
        self._digests += digest
        moment = row["event_time"]
        self._times.append(int(moment.timestamp() * _MICROS) if moment else 0)
        return len(self.native_ids) - 1

    def sign(self, gram_sets: Sequence[Hashes]) -> None:
        """Append the MinHash signatures of the texts added last, given each text's 5-grams."""
        # ``sign`` needs a hash; the signature of a text without tokens is not used.
        no_grams = np.zeros(1, dtype=np.uint64)
        self._signatures += sign(
            [grams if len(grams) else no_grams for grams in gram_sets]
        ).tobytes()
        self._is_signed += bytes(len(grams) > 0 for grams in gram_sets)

    def document_id(self, row: int) -> str:
        """Return the corpus id of the document in a row."""
        return self._document_ids[_ID_BYTES * row : _ID_BYTES * (row + 1)].hex()

    @property
    def digests(self) -> Digests:
        """SHA-256 of each text, 32 bytes; shape (num_texts,)."""
        return np.frombuffer(self._digests, dtype=f"V{DIGEST_BYTES}")

    @property
    def signatures(self) -> Signatures:
        """MinHash signatures of all texts; shape (num_texts, 128)."""
        flat = np.frombuffer(self._signatures, dtype="<u2")
        return flat.reshape(len(self._signatures) // SIGNATURE_BYTES, NUM_PERMUTATIONS)

    def kept(self) -> Rows:
        """Return the kept texts' rows, sorted by event time, then by native id."""
        is_kept = np.ones(len(self), dtype=bool)
        is_kept[list(self.drops)] = False
        rows = np.flatnonzero(is_kept).tolist()
        rows.sort(key=lambda row: (self._times[row], self.native_ids[row], row))
        return np.array(rows, dtype=np.int64)

    def is_signed(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return True for each row whose text has a signature."""
        return np.frombuffer(self._is_signed, dtype=np.bool_)[rows]
