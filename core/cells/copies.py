"""Losses of the same weights under another name, which are copied and not computed again."""

from __future__ import annotations

import functools
import logging
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from core.cells.losses import Cell
from core.cells.record import read_cell_record
from core.cells.tokens import path_of_tokens, read_tokens, to_parquet
from core.errors import StorageError
from core.schemas.tables import LOSSES
from core.storage.store import Store

_log = logging.getLogger(__name__)


def copy_losses(cell: Cell, store: Store) -> bool:
    """Copy a cell's files from another model with the same revision; return False if none has them.

    A file's name states protocol, revision, text and scorer. So files of the same name differ only
    in the model's name. The record is copied, too. It states the cost of the computation, and the
    model that was used. Losses of tokens are copied if the other model has them.

    Raise StorageError if the files cannot be written.
    """
    name = cell.path.rpartition("/")[2]
    for path in store.list(f"losses/model=*/{cell.folder}/{name}"):
        table = _read_losses(store, path)
        if table is None or table["revision"].unique().to_pylist() != [cell.revision]:
            continue
        twin = replace(cell, model=table["model"][0].as_py())
        if twin.path != path:  # the file is not what its path states
            continue
        record = read_cell_record(store, twin)
        if record is None:
            continue
        if store.exists(path_of_tokens(twin)):
            tokens = _renamed(read_tokens(store, path_of_tokens(twin)), cell.model)
            store.write_bytes(path_of_tokens(cell), to_parquet(tokens))
        copied = record.model_copy(update={"copied_from": record.copied_from or twin.model})
        store.write_bytes(cell.record_path, copied.to_json())
        with store.writing(cell.path) as staged:
            renamed = _renamed(table, cell.model)
            pq.write_table(renamed, staged.path, compression="zstd", write_page_checksum=True)
        _log.info("%s: copied from %s", cell, twin.model)
        _warn(cell.model, twin.model)
        return True
    return False


@functools.cache
def _warn(model: str, other: str) -> None:
    """Log that losses are copied, once per process and pair of models."""
    _log.warning("%s has the same weights as %s, so its losses are copied", model, other)


def _read_losses(store: Store, path: str) -> pa.Table | None:
    try:
        with store.open(path) as file:
            table = pq.read_table(file).cast(LOSSES)
    except (pa.ArrowException, OSError, StorageError) as error:
        _log.warning("%s cannot be read, so it is not copied: %s", store.url(path), error)
        return None
    return table if table.num_rows else None


def _renamed(table: pa.Table, model: str) -> pa.Table:
    """Return the table with another name in column ``model``."""
    place = table.schema.get_field_index("model")
    names = pa.array([model] * table.num_rows, table.schema.field(place).type)
    return table.set_column(place, table.schema.field(place), names)
