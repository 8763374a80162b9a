"""Whether a sealed partition still holds what its manifest says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from core.corpus import MANIFEST, Seal
from core.errors import StorageError
from core.storage import Store

_BATCH_ROWS = 256


def find_damage(store: Store, seal: Seal) -> Iterator[tuple[str, str]]:
    """Read a partition whole, and compare it with its seal.

    Each file has to have the checksum of the manifest, each document the digest that stands beside
    it, and all documents together the digest of the seal.

    Yields:
        A path and what is wrong with it; nothing where all is well.
    """
    digest, num_documents, is_readable = hashlib.sha256(), 0, True
    checksums = _checksums(seal)
    for path in seal.parts:
        try:
            expected = checksums.get(path)
            if expected is not None and (found := store.sha256(path)) != expected:
                yield path, f"has SHA-256 {found}, and the manifest says {expected}"
            for document_id, stated, is_own in _documents(store, path, seal):
                digest.update(f"{document_id} {stated}\n".encode())
                num_documents += 1
                if not is_own:
                    yield path, f"document {document_id} is not the text of its digest {stated}"
        except (pa.ArrowException, KeyError, OSError, StorageError) as error:
            is_readable = False
            yield path, f"cannot be read: {error}"
    manifest = f"{seal.folder}/{MANIFEST}"
    if is_readable and digest.hexdigest() != seal.content_digest:
        yield manifest, f"has digest {seal.content_digest}, and its documents {digest.hexdigest()}"
    if is_readable and num_documents != seal.num_documents:
        yield manifest, f"has {seal.num_documents} documents, and its files {num_documents}"


def _checksums(seal: Seal) -> dict[str, str]:
    """The checksum of each part, by its path; the first manifests had none."""
    files = seal.manifest["files"]
    assert isinstance(files, list)  # noqa: S101 - read_seal has read it
    digests = [file.get("sha256") for file in files]
    return {path: str(sha) for path, sha in zip(seal.parts, digests, strict=True) if sha}


def _documents(store: Store, path: str, seal: Seal) -> Iterator[tuple[str, str, bool]]:
    """Yield id and digest of each document, and whether the digest is that of its content."""
    names = ["sha256_text", "text"] if seal.is_text else ["sha256_media", "media"]
    with store.open(path) as file:
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=["document_id", *names]):
            columns = (batch.column(name).to_pylist() for name in ("document_id", *names))
            for document_id, stated, content in zip(*columns, strict=True):
                raw = content.encode() if isinstance(content, str) else content
                yield document_id, stated, hashlib.sha256(raw).hexdigest() == stated
