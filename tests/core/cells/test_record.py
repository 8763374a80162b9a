import datetime as dt
import json
from typing import Any

import pytest

from core.cells.losses import Cell
from core.cells.record import ByteClass, CellRecord, TokenizerFacts, read_cell_record
from core.corpus.partition import Partition
from core.errors import MalformedInput
from core.month import Month
from core.storage.store import Store

CELL = Cell("org/model", "r1", Partition("news", Month("2024-01")), "digest", "default", "scoring")
FIELDS: dict[str, Any] = {
    "scored_at": "2026-11-20T14:00:00Z", "device": "cpu: AMD EPYC", "dtype": "float32",
    "batch_tokens": 2048, "context": 1024, "seconds": 1.25, "num_tokens_read": 123,
    "versions": {"tidemark": "0.1.0", "torch": "2.13.0"}, "peak_memory_bytes": 1,
    "energy_joules": None, "num_lossy_documents": 0,
    "tokenizer": {"vocabulary_size": 8192, "start_token": "<s>", "has_byte_tokens": False},
    "milestones": [
        {"milestone": 10, "num_documents": 5, "nll_nats": 1.0, "num_chars": 1, "num_bytes": 1}
    ],
}  # fmt: skip


def read(store: Store, fields: object) -> CellRecord | None:
    store.write_bytes(CELL.record_path, json.dumps(fields).encode())
    return read_cell_record(store, CELL)


def test_the_stored_form_is_read_with_its_types(store: Store) -> None:
    assert read_cell_record(store, CELL) is None, "a cell of an older version"
    record = read(store, {**FIELDS, "of a later version": [1]})
    assert record is not None
    assert record.scored_at == dt.datetime(2026, 11, 20, 14, tzinfo=dt.UTC)
    east = read(store, {**FIELDS, "scored_at": "2026-11-20T15:00:00+01:00"})
    assert east is not None and east.scored_at.tzinfo == dt.UTC and east == record
    assert record.tokenizer == TokenizerFacts(
        vocabulary_size=8192, start_token="<s>", has_byte_tokens=False
    )
    assert json.loads(record.to_json()) == FIELDS | {
        "active_parameters": None,
        "matmul_flops": None,
        "byte_classes": [],
        "copied_from": None,
    }
    faster = read(store, FIELDS | {"active_parameters": 7, "matmul_flops": 2.5})
    assert faster is not None and (faster.active_parameters, faster.matmul_flops) == (7, 2.5)
    sums = {"byte_class": "names", "nll_nats": 3.5, "num_bytes": 7}
    newer = read(store, FIELDS | {"byte_classes": [sums]})
    assert newer is not None and newer.byte_classes == (ByteClass(**sums),)
    assert CELL.record_path.removesuffix(".json") == CELL.path.removesuffix(".parquet")


@pytest.mark.parametrize("name", list(FIELDS))
def test_a_missing_field_is_named_with_the_file(store: Store, name: str) -> None:
    fields = {key: value for key, value in FIELDS.items() if key != name}
    with pytest.raises(MalformedInput, match=rf"scoring\.json is not .* {name}: Field required"):
        read(store, fields)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scored_at": "2026-11-20T14:00:00"}, "scored_at"),
        ({"seconds": -1}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"energy_joules": float("inf")}, "energy_joules"),
        ({"num_tokens_read": 2**60}, "num_tokens_read"),
        ({"num_tokens_read": "many"}, "num_tokens_read"),
        ({"batch_tokens": 0}, "batch_tokens"),
        ({"context": 0}, "context"),
        ({"versions": ["torch"]}, "versions"),
        ({"tokenizer": {"vocabulary_size": 1}}, "tokenizer.start_token"),
        ({"milestones": [{"milestone": 10}]}, "milestones.0.num_documents"),
    ],
)
def test_a_wrong_value_is_named(store: Store, wrong: dict[str, object], message: str) -> None:
    with pytest.raises(MalformedInput, match=message):
        read(store, {**FIELDS, **wrong})


@pytest.mark.parametrize("content", [b"", b"torn {", b"[]", b"\xff", b"null"])
def test_what_is_no_record_is_refused(store: Store, content: bytes) -> None:
    store.write_bytes(CELL.record_path, content)
    with pytest.raises(MalformedInput, match="score again"):
        read_cell_record(store, CELL)
