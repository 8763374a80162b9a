"""Writing the documents of a partition as Parquet files, and the digest over them."""

from __future__ import annotations

import hashlib
import secrets

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import SchemaMismatch
from core.schemas import DOCUMENTS
from core.storage import Store

PART_BYTES = 128 * 2**20  # bytes of content after which a new part file begins


class PartWriter:
    """Writes parts under names that no other run uses, so that a crash or a rival harms nothing.

    Args:
        store: the data root.
        folder: where to, under the data root.
        name: of the partition, for messages.
        schema: of the part that is written where there are no documents.

    Attributes:
        digest: over the ids and digests of the documents, in row order.
        num_documents: so far.
        num_bytes: of their content.
        files: what a manifest says of the parts: name, rows, sha256.
        is_kept: whether a manifest names them, so that they are not discarded any more.
    """

    def __init__(self, store: Store, folder: str, name: str, schema: pa.Schema = DOCUMENTS) -> None:
        self._store, self._folder, self._name, self._schema = store, folder, name, schema
        self.digest = hashlib.sha256()
        self.num_documents = 0
        self.num_bytes = 0
        self.files: list[dict[str, object]] = []
        self.is_kept = False
        self._contents: set[str] = set()
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._run = secrets.token_hex(4)

    @property
    def content(self) -> str:
        """Text, image or audio; text where nothing was added."""
        return next(iter(self._contents), "text")

    def add(self, table: pa.Table) -> None:
        """Add documents of schema DOCUMENTS or MEDIA.

        Raises:
            SchemaMismatch: they are of another kind than those before.
        """
        if not table.num_rows:
            return
        is_text = holds_text(table)
        self._note_contents({"text"} if is_text else set(table["media_kind"].to_pylist()))
        digests = table["sha256_text" if is_text else "sha256_media"].to_pylist()
        for document_id, sha256 in zip(table["document_id"].to_pylist(), digests, strict=True):
            self.digest.update(f"{document_id} {sha256}\n".encode())
        size = sum(table["num_bytes"].to_pylist())
        self.num_documents += table.num_rows
        self.num_bytes += size
        self._pending.append(table)
        self._pending_bytes += size
        if self._pending_bytes >= PART_BYTES:
            self._flush()

    def _note_contents(self, contents: set[str]) -> None:
        self._contents |= contents
        if len(self._contents) > 1:
            raise SchemaMismatch(
                f"{self._name}: {' and '.join(sorted(self._contents))} in one partition; "
                "expected documents of one kind. Seal each kind as a source of its own"
            )

    def _flush(self) -> None:
        table = pa.concat_tables(self._pending or [self._schema.empty_table()])
        name = f"part-{len(self.files):05d}-{self._run}.parquet"
        with self._store.writing(f"{self._folder}/{name}") as staged:
            pq.write_table(
                table,
                staged.path,
                compression="zstd",
                compression_level=6,
                write_page_checksum=True,  # so that a flipped bit is found when it is read
            )
        self.files.append({"name": name, "rows": table.num_rows, "sha256": staged.sha256})
        self._pending, self._pending_bytes = [], 0

    def close(self) -> None:
        """Write what is left; of no documents, one empty part."""
        if self._pending or not self.files:
            self._flush()

    def discard(self) -> None:
        """Delete what was written, unless it is kept."""
        for path in [] if self.is_kept else self.paths:
            self._store.delete(path)

    @property
    def paths(self) -> list[str]:
        """The parts, under the data root."""
        return [f"{self._folder}/{file['name']}" for file in self.files]

    @property
    def are_there(self) -> bool:
        """Whether nobody has deleted a part meanwhile."""
        return all(self._store.exists(path) for path in self.paths)

    def move(self, folder: str) -> None:
        """Move what was written to another folder."""
        for path in self.paths:
            self._store.move(path, f"{folder}/{path.rpartition('/')[2]}")
        self._folder = folder


def holds_text(table: pa.Table) -> bool:
    """Whether a table is of DOCUMENTS; else it is of MEDIA."""
    return "text" in table.column_names or "media" not in table.column_names
