"""Functions that ``tasks.prefect.telling`` calls: logs of each step, events, a table, a link."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Sequence

from core.cells.losses import Cell
from core.cells.record import CellRecord, read_cell_record
from core.corpus.partition import Seal
from core.errors import TidemarkError
from core.settings import Settings
from core.storage.store import Store
from extras.prefect_display import events
from extras.prefect_display.artifacts import show_cells, show_link
from extras.prefect_display.events import given_up, published
from extras.prefect_display.settling import note_end, settle_task_runs
from tasks.prefect.server import run_log

__all__ = [
    "ending", "given_up", "landed", "published", "reported", "scored", "sealed", "shown",
    "task_ended",
]  # fmt: skip

ending = settle_task_runs
shown = show_cells
task_ended = note_end


def sealed(seal: Seal, began: dt.datetime) -> None:
    """Log a sealed partition; send its event only if it was sealed since ``began``."""
    if seal.sealed_at is None or seal.sealed_at < began:
        run_log().info("%s: sealed already", seal.partition)
        return
    status = "partial" if seal.is_partial else "complete"
    run_log().info(
        "sealed %s: %s, version %d, %d documents, %d bytes",
        seal.partition, status, seal.version, seal.num_documents, seal.num_bytes,
    )  # fmt: skip
    events.partition_sealed(seal)


def scored(cells: Sequence[Cell], began: dt.datetime, settings: Settings) -> None:
    """Log each cell that was scored since ``began``, and send its event."""
    store = Store(settings.home)
    for cell in cells:
        with contextlib.suppress(TidemarkError):  # `tidemark check` reports damage
            record = read_cell_record(store, cell)
            if record and record.scored_at >= began and store.exists(cell.path):
                _show_cell(cell, record)


def _show_cell(cell: Cell, record: CellRecord) -> None:
    """Log a scored cell with its speed, and send an event."""
    rate = record.num_tokens_read / record.seconds if record.seconds else math.inf
    run_log().info(
        "scored %s: %.2f s, %d tokens, %.0f tokens/s",
        cell, record.seconds, record.num_tokens_read, rate,
    )  # fmt: skip
    events.losses_scored(cell, {"num_tokens": record.num_tokens_read, "seconds": record.seconds})


def landed(model: str, cells: Sequence[Cell], num_cells: int) -> None:
    """Log how many cells of a model have newly landed, and send events of their landing."""
    run_log().info("landed %s: %d new of %d cells", model, len(cells), num_cells)
    events.losses_landed(model, cells)


def reported(address: str, settings: Settings) -> None:
    """Send the event that the site was written, and show a link to it."""
    events.site_written(address)
    show_link(address, settings)
