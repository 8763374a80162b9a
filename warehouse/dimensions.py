"""The dimension tables as Arrow schemas, and rows of other rooms turned into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from core.errors import SchemaMismatch
from core.month import Month

# What of DOCUMENTS the warehouse keeps: no text, no titles, no addresses.
DOCUMENT_COLUMNS = [
    "document_id", "source", "month", "category", "language", "licence", "cluster_id",
    "num_chars", "num_bytes",
]  # fmt: skip

# The first column of each is its key.
DIMENSIONS = {
    "models": pa.schema(
        [
            ("model", pa.string()),
            ("kind", pa.string()),
            ("location", pa.string()),
            ("revision", pa.string()),
            ("released", pa.date32()),
            ("cutoff", pa.date32()),
            ("cutoff_provenance", pa.string()),
            ("cutoff_precision", pa.string()),
            ("cutoff_url", pa.string()),
            ("parameters", pa.int64()),
            ("context", pa.int64()),
            ("is_chat", pa.bool_()),
            ("notes", pa.string()),
        ]
    ),
    "sources": pa.schema(
        [(name, pa.string()) for name in ("source", "title", "licence", "language", "category")]
    ),
    "protocols": pa.schema(
        [(name, pa.string()) for name in ("protocol", "description", "definition", "hash")]
    ),
}


def as_table(rows: Sequence[Mapping[str, object]], dimension: str) -> pa.Table:
    """Turn rows into a table of a dimension.

    Args:
        rows: by column name; ``name`` stands for the key column. A Month becomes its first day,
            columns that a row lacks are NULL, keys that the dimension lacks are passed over.
        dimension: models, sources or protocols.

    Raises:
        SchemaMismatch: a key is missing or comes twice, or a value is not of its column's type.
    """
    schema = DIMENSIONS[dimension]
    key = schema.names[0]
    plain = [{**row, key: row.get(key, row.get("name"))} for row in rows]
    names = [row[key] for row in plain]
    if None in names or len(set(names)) < len(names):
        raise SchemaMismatch(f"{dimension}: every row needs a {key} of its own; got {names}")
    try:
        columns = [
            pa.array([_plain(row.get(field.name)) for row in plain], field.type) for field in schema
        ]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"{dimension}: {error}") from error
    return pa.table(columns, schema=schema)


def _plain(value: object) -> object:
    return value.first_day if isinstance(value, Month) else value
