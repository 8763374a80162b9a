"""What a process shows of its work: logs and progress on a server, traces in a collector."""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import math
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core import progress
from core.cell_record import CellRecord, read_cell_record
from core.cells import Cell
from core.corpus import Partition, Seal
from core.errors import TidemarkError
from core.settings import Settings, prefect_server, telemetry_endpoint
from core.storage import Store
from tasks import assets
from tasks.artifacts import ProgressArtifacts
from tasks.run_logs import send_logs
from tasks.tracing import describe, set_up_tracing, span

_log = logging.getLogger(__name__)
_progress = ProgressArtifacts().report


def observe() -> None:
    """Have this process show its work; for the beginning of whatever may come first in one.

    Doing it again changes nothing and costs next to nothing.
    """
    set_up_tracing()
    if prefect_server():
        send_logs()
        progress.listen_too(_progress)


@contextlib.contextmanager
def showing_cells(cells: Sequence[Cell], settings: Settings) -> Iterator[None]:
    """Show the scoring of cells of one partition: a span; a log line and an asset for each.

    Cells that are not scored within the block, because they have losses already or it fails, have
    no line and no asset.
    """
    observe()
    began, partition = dt.datetime.now(dt.UTC), cells[0].partition
    names = "; ".join(map(str, cells))
    with span("cell", cell=names, model=cells[0].model, **_facts(partition)) as begun:
        yield
        if not (prefect_server() or telemetry_endpoint()):
            return
        store = Store(settings.home)
        records = {cell: _record_since(began, store, cell) for cell in cells}
        scored = {cell: record for cell, record in records.items() if record}
        describe(
            begun,
            tokens=sum(record.num_tokens_read for record in scored.values()),
            seconds=sum(record.seconds for record in scored.values()),
        )
        for cell, record in scored.items():
            _show_cell(cell, record, store)


def _record_since(began: dt.datetime, store: Store, cell: Cell) -> CellRecord | None:
    with contextlib.suppress(TidemarkError):  # a damaged record is for `tidemark check` to find
        record = read_cell_record(store, cell)
        return record if record and record.scored_at >= began and store.exists(cell.path) else None
    return None


def _show_cell(cell: Cell, record: CellRecord, store: Store) -> None:
    rate = record.num_tokens_read / record.seconds if record.seconds else math.inf
    _log.info(
        "scored %s: %.2f s, %d tokens, %.0f tokens/s",
        cell, record.seconds, record.num_tokens_read, rate,
    )  # fmt: skip
    if prefect_server():
        facts = {"num_tokens": record.num_tokens_read, "seconds": record.seconds}
        # The losses are there, and sound or not: what is shown must not sink what is done.
        with contextlib.suppress(TidemarkError, pa.ArrowException, OSError):
            assets.scored(cell, {**facts, **_sums(store, cell)})


def _sums(store: Store, cell: Cell) -> dict[str, int | float | None]:
    with store.open(cell.path) as file:
        losses = pq.read_table(file, columns=["nll_nats", "num_bytes", "document_id"])
    losses = losses.filter(pc.is_valid(losses["nll_nats"]))
    num_bytes, nats = pc.sum(losses["num_bytes"]).as_py(), pc.sum(losses["nll_nats"]).as_py()
    return {
        "num_documents": pc.count_distinct(losses["document_id"]).as_py(),
        "num_bytes": num_bytes,
        "bits_per_byte": nats / num_bytes / math.log(2) if num_bytes else None,
    }


def show_seal(seal: Seal, began: dt.datetime) -> None:
    """Show a partition that was sealed since ``began``; one that was sealed before says nothing."""
    if seal.sealed_at is None or seal.sealed_at < began:
        _log.info("%s: sealed already", seal.partition)
        return
    status = "partial" if seal.is_partial else "complete"
    _log.info(
        "sealed %s: %s, version %d, %d documents, %d bytes",
        seal.partition, status, seal.version, seal.num_documents, seal.num_bytes,
    )  # fmt: skip
    assets.sealed(seal)


def show_landed(model: str, landed: Sequence[Cell], num_cells: int) -> None:
    """Show that some of a model's cells have landed."""
    _log.info("landed %s: %d new of %d cells", model, len(landed), num_cells)
    assets.landed(landed)


def _facts(partition: Partition) -> dict[str, str]:
    return {"source": partition.source, "month": str(partition.month or "undated")}
