"""Random losses at full size: 14 models x 83 months x 6 sources, 25 million chunks.

Rows are sorted by cell, document and chunk. All models have losses for the same documents.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.losses import losses_table
from core.corpus.partition import document_id
from core.month import Month
from core.schemas.tables import LOSSES

NUM_MODELS, NUM_SOURCES, NUM_MONTHS = 14, 6, 83
MEAN_CHUNKS = 4  # mean number of chunks per document; a document has 1 to 7
CONTROL = "control:zstd"
_FIRST = Month("2017-01")


def model_names() -> list[str]:
    """Return the names of the models; the first is a compressor."""
    return [CONTROL, *(f"generated-{number}" for number in range(1, NUM_MODELS))]


def write_losses(path: Path, rows: int) -> tuple[int, int]:
    """Write about ``rows`` rows; return the documents per partition, and the number of rows."""
    cells = NUM_MODELS * NUM_SOURCES * NUM_MONTHS
    num_documents = max(2, round(rows / (cells * MEAN_CHUNKS)))
    partitions = list(_partitions(num_documents))
    rng = np.random.default_rng(0)
    num_rows = 0
    with pq.ParquetWriter(path, LOSSES) as writer:
        for model in model_names():
            table = pa.concat_tables(_cell(partition, model, rng) for partition in partitions)
            writer.write_table(table)
            num_rows += table.num_rows
    return num_documents, num_rows


def _partitions(num_documents: int) -> Iterator[dict[str, Any]]:
    """Yield the columns that all models share, one partition at a time."""
    chunks = 1 + np.arange(num_documents) % (2 * MEAN_CHUNKS - 1)
    owner = np.repeat(np.arange(num_documents), chunks)
    chunk_index = np.arange(len(owner)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    rng = np.random.default_rng(1)
    for number in range(NUM_SOURCES):
        source = f"source-{number}"
        for offset in range(NUM_MONTHS):
            month = _FIRST + offset
            ids = [document_id(source, f"{month}/{n}", None) for n in range(num_documents)]
            tokens = rng.integers(500, 2048, len(owner))
            yield {
                "source": source,
                "month": month.first_day,
                "document_id": pa.array(ids).take(pa.array(owner)),
                "chunk_index": pa.array(chunk_index, pa.int32()),
                "num_tokens": tokens,
                "num_bytes": tokens * 4 + rng.integers(0, 1000, len(owner)),
            }


def _cell(partition: Mapping[str, Any], model: str, rng: np.random.Generator) -> pa.Table:
    """Return a model's losses on a partition: random, about 0.7 nats per byte."""
    num_bytes = partition["num_bytes"]
    nats = num_bytes * rng.normal(0.7, 0.05, len(num_bytes))
    return losses_table(model=model, nll_nats=nats, num_chars=num_bytes, **partition)


if __name__ == "__main__":
    print(write_losses(Path(sys.argv[1]), int(sys.argv[2]))[1])
