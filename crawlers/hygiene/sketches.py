"""What later months need of a sealed one: signatures, digests and sampled n-grams, not its texts.

A sketch lies beside the partition as ``sketch.parquet``, some 400 bytes a document and 0.15 bytes
a byte of text. One that is missing, damaged, of other content or of another version of the
algorithm is made anew from the texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.corpus import Seal, read_documents
from core.errors import StorageError
from core.month import Month
from core.storage import Store
from crawlers.hygiene.month_texts import DIGEST_BYTES, Digests, MonthTexts
from crawlers.hygiene.seen import FIRST_BOUND, SEEN_GRAM, GramSample, sampled
from crawlers.hygiene.signatures import (
    ALGORITHM,
    NUM_PERMUTATIONS,
    SHINGLE,
    SIGNATURE_BYTES,
    Rows,
    Signatures,
    sign,
)
from crawlers.hygiene.tokens import Hashes, ngrams, tokens_of

SKETCH_FILE = "sketch.parquet"
_BATCH_ROWS = 8192
_META = b"tidemark"
_SCHEMA = pa.schema(
    [
        ("document_id", pa.string()),
        ("native_id", pa.string()),
        ("sha256_text", pa.binary(DIGEST_BYTES)),
        ("signature", pa.binary(SIGNATURE_BYTES)),  # NULL of a text without tokens
        ("grams", pa.list_(pa.uint64())),
    ]
)


class SketchBatch(NamedTuple):
    """Some documents of a sealed month.

    Attributes:
        month: which.
        document_ids: in the order of the other fields.
        native_ids: likewise.
        digests: SHA-256 of the texts; (num_documents,) of 32 bytes.
        signed: which of the documents have a signature; (num_signed,).
        signatures: of those; (num_signed, 128).
        grams: sampled 13-grams of all documents; (num_grams,).
        bound: below which they were sampled.
    """

    month: Month
    document_ids: list[str]
    native_ids: list[str]
    digests: Digests
    signed: Rows
    signatures: Signatures
    grams: Hashes
    bound: int


def read_sketch(store: Store, seal: Seal, scratch: Path) -> Iterator[SketchBatch]:
    """Stream the sketch of a sealed month; make it, and leave it beside the partition, if need be.

    A batch may come twice, where a sketch turns out to be damaged half-way.

    Args:
        store: the data root.
        seal: of a partition of texts that has a month.
        scratch: a folder for a temporary file.

    Raises:
        StorageError: the partition itself is damaged.
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
        except ValueError as error:  # made of what the parts hold, which is not what is sealed
            raise StorageError(
                f"{seal.partition}: its texts are not those that {seal.folder}/manifest.json tells "
                f"of ({seal.num_documents} documents); bring its files back from a backup, or "
                "crawl or import it again with --replace"
            ) from error


def write_sketch(path: Path, tables: Iterable[pa.Table], digest: str, bound: int) -> None:
    """Write a sketch to a local file.

    Args:
        path: the file.
        tables: its rows, a batch each.
        digest: of the partition that it is of.
        bound: below which its n-grams were sampled.
    """
    about = json.dumps({"algorithm": ALGORITHM, "digest": digest, "bound": str(bound)})
    schema = _SCHEMA.with_metadata({_META: about.encode()})
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
    ) as writer:
        for table in tables:
            writer.write_table(table.replace_schema_metadata(schema.metadata))


def sketch_of(texts: MonthTexts, rows: Rows, sample: GramSample, path: Path) -> None:
    """Write the sketch of a month that is about to be sealed.

    Args:
        texts: of the month.
        rows: those that are kept, in the order in which they are sealed.
        sample: of the month.
        path: the file.
    """
    digest = hashlib.sha256()
    for row in rows.tolist():
        digest.update(f"{texts.document_id(row)} {texts.digests[row].tobytes().hex()}\n".encode())
    tables = _tables_of_month(texts, rows, sample)
    write_sketch(path, tables, digest.hexdigest(), sample.bound)


def _tables_of_month(texts: MonthTexts, rows: Rows, sample: GramSample) -> Iterator[pa.Table]:
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
    is_signed = texts.is_signed(rows).tolist()
    signatures = texts.signatures[rows]
    return [each.tobytes() if ok else None for each, ok in zip(signatures, is_signed, strict=True)]


def _tables_from_texts(store: Store, seal: Seal) -> Iterator[pa.Table]:
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
    offsets = np.cumsum([0, *map(len, grams)]).astype(np.int32)
    values = np.concatenate([np.empty(0, np.uint64), *grams])
    return pa.table(
        [document_ids, native_ids, pa.array(digests, _SCHEMA.field(2).type),
         pa.array(signatures, _SCHEMA.field(3).type), pa.ListArray.from_arrays(offsets, values)],
        schema=_SCHEMA,
    )  # fmt: skip


def _read(store: Store, path: str, seal: Seal) -> Iterator[SketchBatch]:
    month = seal.partition.month
    assert month is not None  # noqa: S101 - the caller leaves undated partitions out
    with store.open(path) as file:
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
        about = json.loads((parquet.schema_arrow.metadata or {})[_META])
        expected = (ALGORITHM, seal.content_digest, seal.num_documents)
        if (about["algorithm"], about["digest"], parquet.metadata.num_rows) != expected:
            raise ValueError(f"{path} is a sketch of something else")
        for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
            yield _batch(batch, month, int(about["bound"]))


def _batch(batch: pa.RecordBatch, month: Month, bound: int) -> SketchBatch:
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
