"""Tables as Arrow schemas, and what other rooms give turned into them.

The dimensions, which losses are joined with; a cell's record, which lands with its losses; and the
runs of the canary.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from core.cell_record import CellRecord
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

_CELL = [(name, pa.string()) for name in ("model", "source", "protocol")] + [("month", pa.date32())]
_RUN = [(name, pa.string()) for name in ("device", "dtype", "versions")]

RECORD_TABLES = {
    "cell_costs": pa.schema(
        [
            *_CELL,
            ("revision", pa.string()),
            ("scored_at", pa.timestamp("us")),
            *_RUN,
            ("batch_tokens", pa.int64()),
            ("context", pa.int64()),
            ("seconds", pa.float64()),
            ("num_tokens_read", pa.int64()),
            ("peak_memory_bytes", pa.int64()),
            ("energy_joules", pa.float64()),
            ("num_lossy_documents", pa.int64()),
        ]
    ),
    "cell_milestones": pa.schema(
        [
            *_CELL,
            ("milestone", pa.int64()),
            ("num_documents", pa.int64()),
            ("nll_nats", pa.float64()),
            ("num_chars", pa.int64()),
            ("num_bytes", pa.int64()),
        ]
    ),
    "tokenizers": pa.schema(
        [
            ("model", pa.string()),
            ("revision", pa.string()),
            ("vocabulary_size", pa.int64()),
            ("start_token", pa.string()),
            ("has_byte_tokens", pa.bool_()),
        ]
    ),
}

CANARY_RUNS = pa.schema(
    [
        pa.field(name, type_, nullable=False)
        for name, type_ in (
            ("run_at", pa.timestamp("us")),
            *_RUN,
            ("nll_nats", pa.float64()),
            ("expected_nats", pa.float64()),
            ("drift", pa.float64()),
            ("num_tokens", pa.int64()),
        )
    ]
)


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


def record_tables(key: Mapping[str, object], record: CellRecord) -> dict[str, pa.Table]:
    """Lay a cell's record out as rows of the tables that it lands in, by their names.

    Args:
        key: model, revision, source, month (a date or None) and protocol of the cell.
        record: what scoring the cell took.
    """
    fields = record.model_dump(exclude={"tokenizer", "milestones"})
    fields["versions"] = json.dumps(record.versions, sort_keys=True)
    fields["scored_at"] = naive_utc(record.scored_at)
    tokenizers = [record.tokenizer] if record.tokenizer else []
    rows = {
        "cell_costs": [fields],
        "cell_milestones": [milestone.model_dump() for milestone in record.milestones],
        "tokenizers": [tokenizer.model_dump() for tokenizer in tokenizers],
    }
    return {
        name: pa.Table.from_pylist([{**key, **row} for row in rows[name]], schema=schema)
        for name, schema in RECORD_TABLES.items()
    }


def canary_table(row: Mapping[str, object]) -> pa.Table:
    """Turn one run of the canary into a table of CANARY_RUNS.

    Raises:
        SchemaMismatch: a column is missing, is NULL or of another type, or run_at has no time zone.
    """
    plain = dict(row)
    if isinstance(versions := plain.get("versions"), Mapping):
        plain["versions"] = json.dumps(dict(versions), sort_keys=True)
    run_at = plain.get("run_at")
    if not isinstance(run_at, dt.datetime) or run_at.tzinfo is None:
        raise SchemaMismatch(f"canary_runs: run_at has to be a time with its zone; got {run_at!r}")
    plain["run_at"] = naive_utc(run_at)
    if missing := [name for name in CANARY_RUNS.names if plain.get(name) is None]:
        raise SchemaMismatch(f"canary_runs: the run lacks {', '.join(missing)}")
    try:
        return pa.Table.from_pylist([plain], schema=CANARY_RUNS)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"canary_runs: {error}") from error


def naive_utc(moment: dt.datetime) -> dt.datetime:
    """Return a moment as the warehouse keeps it: in UTC, and without saying so.

    With its zone a database would turn it into the time of the machine's own.
    """
    return moment.astimezone(dt.UTC).replace(tzinfo=None)
