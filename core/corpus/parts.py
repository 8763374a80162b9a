"""Part files: the Parquet files of a partition. They are written and verified here."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from core.corpus.partition import BATCH_ROWS, MANIFEST, Seal
from core.errors import SchemaMismatch, StorageError
from core.schemas.tables import DOCUMENTS
from core.storage.store import Store

PART_BYTES = 128 * 2**20  # content size in bytes from which a part file is complete


class PartWriter:
    """A writer of the part files (Parquet) of a partition.

    File names are unique, so a crash or a concurrent writer damages no other file. Without
    documents, one empty part of schema ``schema`` is written. Errors begin with ``name``.

    Attributes:
        digest: SHA-256 over the ids and digests of the added documents, in row order.
        files: the manifest's entries for the written parts: name, rows, sha256.
        is_kept: True if a manifest lists the parts, so that ``discard`` must keep them.
    """

    def __init__(self, store: Store, folder: str, name: str, schema: pa.Schema = DOCUMENTS) -> None:
        self._store = store
        self._folder = folder
        self._name = name
        self._schema = schema
        self.digest = hashlib.sha256()
        self.num_documents = 0
        self.num_bytes = 0
        self.files: list[dict[str, object]] = []
        self.is_kept = False
        self._kinds: set[str] = set()
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._run = secrets.token_hex(4)

    @property
    def content(self) -> str:
        """The kind of the added documents: text, image or audio; text if there are none."""
        return next(iter(self._kinds), "text")

    def add(self, table: pa.Table) -> None:
        """Add documents of schema DOCUMENTS or MEDIA.

        Raises:
            SchemaMismatch: the documents differ in kind from earlier documents.
        """
        if not table.num_rows:
            return
        is_text = holds_text(table)
        self._kinds |= {"text"} if is_text else set(table["media_kind"].to_pylist())
        if len(self._kinds) > 1:
            raise SchemaMismatch(
                f"{self._name}: {' and '.join(sorted(self._kinds))} in one partition; "
                "expected documents of one kind. Seal each kind as a source of its own"
            )
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

    def _flush(self) -> None:
        """Write the pending rows as the next part, a Parquet file."""
        table = pa.concat_tables(self._pending or [self._schema.empty_table()])
        name = f"part-{len(self.files):05d}-{self._run}.parquet"
        with self._store.writing(f"{self._folder}/{name}") as staged:
            pq.write_table(
                table,
                staged.path,
                compression="zstd",
                compression_level=6,
                write_page_checksum=True,  # readers then detect flipped bits
            )
        self.files.append({"name": name, "rows": table.num_rows, "sha256": staged.sha256})
        self._pending = []
        self._pending_bytes = 0

    def close(self) -> None:
        """Write the remaining documents; if no document was added, write one empty part."""
        if self._pending or not self.files:
            self._flush()

    def discard(self) -> None:
        """Delete the written parts, unless ``is_kept``."""
        if self.is_kept:
            return
        for path in self.paths:
            self._store.delete(path)

    @property
    def paths(self) -> list[str]:
        """The paths of the written parts, relative to the data root."""
        return [f"{self._folder}/{file['name']}" for file in self.files]

    @property
    def are_there(self) -> bool:
        """Return True if all written parts still exist."""
        return all(self._store.exists(path) for path in self.paths)

    def move(self, folder: str) -> None:
        """Move the written parts to another folder."""
        for path in self.paths:
            self._store.move(path, f"{folder}/{path.rpartition('/')[2]}")
        self._folder = folder


def holds_text(table: pa.Table) -> bool:
    """Return True if a table contains texts (schema DOCUMENTS), not media (schema MEDIA)."""
    return "text" in table.column_names or "media" not in table.column_names


def find_damage(store: Store, seal: Seal) -> Iterator[tuple[str, str]]:
    """Compare all files of a partition with its seal; yield (path, description) of each damage."""
    digest = hashlib.sha256()
    num_documents = 0
    is_readable = True
    files = seal.manifest["files"]
    assert isinstance(files, list)  # noqa: S101 - read_seal has checked the type
    for path, file in zip(seal.parts, files, strict=True):
        try:
            expected = file.get("sha256")  # early manifests have none
            found = store.sha256(path) if expected else expected
            if found != expected:
                yield path, f"has SHA-256 {found}, and the manifest says {expected}"
            for document_id, stated, is_intact in _verify_documents(store, path, seal):
                digest.update(f"{document_id} {stated}\n".encode())
                num_documents += 1
                if not is_intact:
                    yield path, f"document {document_id} is not the text of its digest {stated}"
        except (pa.ArrowException, KeyError, OSError, StorageError) as error:
            is_readable = False
            yield path, f"cannot be read: {error}"
    manifest = f"{seal.folder}/{MANIFEST}"
    if is_readable and digest.hexdigest() != seal.content_digest:
        yield manifest, f"has digest {seal.content_digest}, and its documents {digest.hexdigest()}"
    if is_readable and num_documents != seal.num_documents:
        yield manifest, f"has {seal.num_documents} documents, and its files {num_documents}"


def _verify_documents(store: Store, path: str, seal: Seal) -> Iterator[tuple[str, str, bool]]:
    """Yield for each document: id, digest in the row, True if the content has this digest."""
    names = ["sha256_text", "text"] if seal.is_text else ["sha256_media", "media"]
    with store.open(path) as file:
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
        for batch in parquet.iter_batches(BATCH_ROWS, columns=["document_id", *names]):
            columns = (batch.column(name).to_pylist() for name in ("document_id", *names))
            for document_id, stated, content in zip(*columns, strict=True):
                raw = content.encode() if isinstance(content, str) else content
                yield document_id, stated, hashlib.sha256(raw).hexdigest() == stated
