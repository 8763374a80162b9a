"""Sketches of sealed months for comparison: signatures, digests and sampled n-grams, no texts.

A sketch is the file ``sketch.parquet`` in the partition's folder. It takes about 400 bytes per
document, and 0.15 bytes per byte of text. A sketch is rebuilt from the texts if it is missing or
damaged, or was made from other texts or by another algorithm version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from core.corpus.partition import Seal, read_documents
from core.errors import StorageError
from core.month import Period
from core.storage.store import Store
from crawlers.hygiene.month_texts import DIGEST_BYTES, Digests, MonthTexts
from crawlers.hygiene.signatures import (
    ALGORITHM,
    NUM_PERMUTATIONS,
    SHINGLE,
    SIGNATURE_BYTES,
    Rows,
    Signatures,
    sign,
)
from crawlers.hygiene.tokens import Hashes, distinct, ngrams, tokens_of

SEEN_GRAM = 13  # length of the n-grams, in words (prose) or tokens (code)
SEEN_BEFORE = 0.5  # minimum share of seen n-grams that flags a document
MIN_SAMPLED = 8  # a document with fewer sampled n-grams is not flagged
FLAG = "seen_before"
FIRST_BOUND = 2**64 // 8
_GATHERED = 1024  # documents
MAX_GRAMS = 4_000_000  # maximum n-grams in a month's sample: 32 MB


class GramSample:
    """A sample of a month's n-grams: those with a hash below ``bound``."""

    def __init__(self, max_grams: int = MAX_GRAMS) -> None:
        self.bound = FIRST_BOUND
        self._max_grams = max_grams
        self._rows = [np.empty(0, np.int32)]
        self._grams = [np.empty(0, np.uint64)]
        self._new: list[tuple[int, Hashes]] = []  # not in ``_rows`` and ``_grams`` yet
        self._size = 0  # number of n-grams

    def add(self, row: int, grams: Hashes) -> None:
        """Add a document's n-grams; while the sample is above ``max_grams``, halve ``bound``."""
        sample = sampled(grams, self.bound)
        self._new.append((row, sample))
        self._size += len(sample)
        if len(self._new) == _GATHERED:
            self._gather()
        while self._size > self._max_grams:
            self.bound //= 2
            rows, values = self.all()
            is_kept = values < np.uint64(self.bound)
            self._rows = [rows[is_kept]]
            self._grams = [values[is_kept]]
            self._size = len(self._grams[0])

    def all(self) -> tuple[npt.NDArray[np.int32], Hashes]:
        """Return the row and hash of each sampled n-gram, ordered by row, then by hash."""
        self._gather()
        self._rows = [np.concatenate(self._rows)]
        self._grams = [np.concatenate(self._grams)]
        return self._rows[0], self._grams[0]

    def _gather(self) -> None:
        """Join the samples of many documents into one array: small arrays need much memory."""
        if self._new:
            rows, samples = zip(*self._new, strict=True)
            self._rows.append(np.repeat(np.array(rows, np.int32), [*map(len, samples)]))
            self._grams.append(np.concatenate(samples))
            self._new = []


def sampled(grams: Hashes, bound: int) -> Hashes:
    """Return the distinct n-gram hashes below ``bound``, sorted."""
    return distinct(grams[grams < np.uint64(bound)])


class SeenShares:
    """Computes the share of each document's sampled n-grams that occur in other months."""

    def __init__(self, sample: GramSample) -> None:
        self._rows, grams = sample.all()
        self._known, self._places = np.unique(grams, return_inverse=True)
        self._is_seen = np.zeros(len(self._known), dtype=bool)
        self._bound = sample.bound

    def meet(self, grams: Hashes, bound: int) -> None:
        """Mark the n-grams that also occur in ``grams``, another month's sample below ``bound``."""
        self._bound = min(self._bound, bound)
        if len(self._known):
            grams = np.sort(grams)  # searching sorted values is faster
            places = np.minimum(np.searchsorted(self._known, grams), len(self._known) - 1)
            self._is_seen[places[self._known[places] == grams]] = True

    def shares(self, num_rows: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Return each row's share of marked n-grams (NaN without n-grams) and number of n-grams."""
        in_sample = (self._known < np.uint64(self._bound))[self._places]
        rows = self._rows[in_sample]
        totals = np.bincount(rows, minlength=num_rows)
        seen = np.bincount(rows[self._is_seen[self._places][in_sample]], minlength=num_rows)
        with np.errstate(invalid="ignore"):
            return (seen / totals).astype(np.float32), totals


SKETCH_FILE = "sketch.parquet"
_BATCH_ROWS = 8192
_META = b"tidemark"
_SCHEMA = pa.schema(
    [
        ("document_id", pa.string()),
        ("native_id", pa.string()),
        ("sha256_text", pa.binary(DIGEST_BYTES)),
        ("signature", pa.binary(SIGNATURE_BYTES)),  # NULL for a text without tokens
        ("grams", pa.list_(pa.uint64())),
    ]
)


class SketchBatch(NamedTuple):
    """A batch of documents in the sketch of a sealed month."""

    month: Period
    document_ids: list[str]  # in the order of ``digests``
    native_ids: list[str]  # in the order of ``digests``
    digests: Digests  # SHA-256 of each text, 32 bytes; shape (num_documents,)
    signed: Rows  # positions of the documents with a signature; shape (num_signed,)
    signatures: Signatures  # signatures of the documents in ``signed``; shape (num_signed, 128)
    grams: Hashes  # hashes of sampled 13-grams of all documents; shape (num_grams,)
    bound: int  # the sample has all n-grams with a hash below this number


def read_sketch(store: Store, seal: Seal, scratch: Path) -> Iterator[SketchBatch]:
    """Yield the sketch of a sealed month in batches; rebuild a missing or damaged sketch.

    If a sketch is damaged in the middle, batches may be yielded twice. Raise StorageError if the
    partition itself is damaged.
    """
    path = f"{seal.folder}/{SKETCH_FILE}"
    try:
        yield from _read(store, path, seal)
    except (pa.ArrowException, OSError, ValueError, KeyError, StorageError):
        fresh = scratch / f"{seal.partition.month}-{SKETCH_FILE}"
        write_sketch(fresh, _tables_from_texts(store, seal), seal.content_digest, FIRST_BOUND)
        store.write_bytes(path, fresh.read_bytes())
        fresh.unlink()
        try:
            yield from _read(store, path, seal)
        except ValueError as error:  # the partition's files differ from its seal
            raise StorageError(
                f"{seal.partition}: its texts are not those that {seal.folder}/manifest.json tells "
                f"of ({seal.num_documents} documents); bring its files back from a backup, or "
                "crawl or import it again with --replace"
            ) from error


def write_sketch(path: Path, tables: Iterable[pa.Table], digest: str, bound: int) -> None:
    """Write a sketch with the partition's content digest and the bound of sampled n-grams."""
    metadata = json.dumps({"algorithm": ALGORITHM, "digest": digest, "bound": str(bound)})
    schema = _SCHEMA.with_metadata({_META: metadata.encode()})
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
    ) as writer:
        for table in tables:
            writer.write_table(table.replace_schema_metadata(schema.metadata))


def sketch_of(texts: MonthTexts, rows: Rows, sample: GramSample, path: Path) -> None:
    """Write a month's sketch before it is sealed; ``rows`` are the kept texts in sealed order."""
    digest = hashlib.sha256()
    for row in rows.tolist():
        digest.update(f"{texts.document_id(row)} {texts.digests[row].tobytes().hex()}\n".encode())
    tables = _tables_of_month(texts, rows, sample)
    write_sketch(path, tables, digest.hexdigest(), sample.bound)


def _tables_of_month(texts: MonthTexts, rows: Rows, sample: GramSample) -> Iterator[pa.Table]:
    """Yield the sketch of a month that is not sealed yet, as tables of schema _SCHEMA."""
    gram_rows, grams = sample.all()
    for begin in range(0, len(rows), _BATCH_ROWS):
        batch = rows[begin : begin + _BATCH_ROWS]
        firsts, lasts = (np.searchsorted(gram_rows, batch, side) for side in ("left", "right"))
        yield _table(
            [texts.document_id(row) for row in batch.tolist()],
            [texts.native_ids[row] for row in batch.tolist()],
            [digest.tobytes() for digest in texts.digests[batch]],
            _signature_bytes(texts, batch),
            [grams[first:last] for first, last in zip(firsts, lasts, strict=True)],
        )


def _signature_bytes(texts: MonthTexts, rows: Rows) -> list[bytes | None]:
    """Return the signature of each row as bytes; None for a text without tokens."""
    is_signed = texts.is_signed(rows).tolist()
    signatures = texts.signatures[rows]
    return [each.tobytes() if ok else None for each, ok in zip(signatures, is_signed, strict=True)]


def _tables_from_texts(store: Store, seal: Seal) -> Iterator[pa.Table]:
    """Yield the sketch of a sealed month, computed again from its texts."""
    columns = ["document_id", "native_id", "sha256_text", "text", "language"]
    for batch in read_documents(store, seal, columns):
        signatures: list[bytes | None] = []
        grams = []
        for text, language in zip(*(batch[n].to_pylist() for n in columns[3:]), strict=True):
            hashes = tokens_of(text, is_code=(language or "").startswith("code:")).hashes
            signatures.append(sign([ngrams(hashes, SHINGLE)]).tobytes() if len(hashes) else None)
            grams.append(sampled(ngrams(hashes, SEEN_GRAM), FIRST_BOUND))
        ids, native_ids, digests = (batch[name].to_pylist() for name in columns[:3])
        yield _table(ids, native_ids, [bytes.fromhex(each) for each in digests], signatures, grams)


def _table(
    document_ids: list[str],
    native_ids: list[str],
    digests: list[bytes],
    signatures: list[bytes | None],
    grams: list[Hashes],
) -> pa.Table:
    """Return a table of schema _SCHEMA; the lists have one element per document."""
    offsets = np.cumsum([0, *map(len, grams)]).astype(np.int32)
    values = np.concatenate([np.empty(0, np.uint64), *grams])
    return pa.table(
        [document_ids, native_ids, pa.array(digests, _SCHEMA.field(2).type),
         pa.array(signatures, _SCHEMA.field(3).type), pa.ListArray.from_arrays(offsets, values)],
        schema=_SCHEMA,
    )  # fmt: skip


def _read(store: Store, path: str, seal: Seal) -> Iterator[SketchBatch]:
    """Yield a sketch file in batches; raise ValueError if it is of other texts, or outdated."""
    month = seal.partition.month
    assert month is not None  # noqa: S101 - callers skip undated partitions
    with store.open(path) as file:
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
        metadata = json.loads((parquet.schema_arrow.metadata or {})[_META])
        expected = (ALGORITHM, seal.content_digest, seal.num_documents)
        if (metadata["algorithm"], metadata["digest"], parquet.metadata.num_rows) != expected:
            raise ValueError(f"{path} is a sketch of something else")
        for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
            yield _batch(batch, month, int(metadata["bound"]))


def _batch(batch: pa.RecordBatch, month: Period, bound: int) -> SketchBatch:
    """Convert a batch of a sketch file to arrays; ``bound`` is that of the file's sample."""
    signatures = batch["signature"].to_pylist()
    signed = np.array([row for row, one in enumerate(signatures) if one], dtype=np.int64)
    joined = b"".join(one for one in signatures if one)
    return SketchBatch(
        month,
        batch["document_id"].to_pylist(),
        batch["native_id"].to_pylist(),
        np.frombuffer(b"".join(batch["sha256_text"].to_pylist()), dtype=f"V{DIGEST_BYTES}"),
        signed,
        np.frombuffer(joined, dtype="<u2").reshape(-1, NUM_PERMUTATIONS),
        batch["grams"].flatten().to_numpy(zero_copy_only=False),
        bound,
    )
