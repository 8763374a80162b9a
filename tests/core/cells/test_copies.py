import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq

from core.cells.copies import copy_losses
from core.cells.losses import Cell
from core.cells.record import read_cell_record
from core.corpus.partition import Partition
from core.month import Month
from core.schemas.tables import LOSSES
from core.storage.store import Store
from tests.core.cells.test_record import FIELDS

MARCH = Partition("news", Month("2024-03"))


def cell_of(model: str, revision: str = "r1") -> Cell:
    return Cell(model, revision, MARCH, "digest", "default", "scoring")


def write(store: Store, cell: Cell) -> None:
    row = {
        "model": cell.model, "revision": cell.revision, "source": "news",
        "month": dt.date(2024, 3, 1),
        "document_id": "d", "protocol": cell.protocol, "chunk_index": 0, "nll_nats": 2.5,
        "num_tokens": 1, "num_chars": 2, "num_bytes": 3,
    }  # fmt: skip
    with store.writing(cell.path) as staged:
        pq.write_table(pa.Table.from_pylist([row], schema=LOSSES), staged.path)


def test_a_copy_has_the_losses_and_names_the_model_that_was_scored(store: Store) -> None:
    first = cell_of("a")
    write(store, first)
    store.write_bytes(first.record_path, json.dumps(FIELDS).encode())
    record = read_cell_record(store, first)
    assert record is not None
    for name in ("b", "c"):  # c may be copied from b
        assert copy_losses(cell_of(name), store)
        copied = read_cell_record(store, cell_of(name))
        assert copied == record.model_copy(update={"copied_from": "a"})
        with store.open(cell_of(name).path) as file:
            (row,) = pq.read_table(file).to_pylist()
        assert (row["model"], row["nll_nats"]) == (name, 2.5)


def test_other_weights_and_cells_without_a_record_are_not_copied(store: Store) -> None:
    write(store, cell_of("a"))
    assert not copy_losses(cell_of("b"), store), "no record"
    store.write_bytes(cell_of("a").record_path, json.dumps(FIELDS).encode())
    assert not copy_losses(cell_of("b", "r2"), store)
