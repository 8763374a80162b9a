"""Observability of a process: logs, progress and events for the Prefect server."""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import math
import time
from collections.abc import Sequence

from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run
from prefect.utilities.context import get_task_and_flow_run_ids

from core import progress
from core.cells.losses import Cell
from core.cells.record import CellRecord, read_cell_record
from core.corpus.partition import Seal
from core.environment import prefect_server
from core.errors import TidemarkError
from core.settings import Settings
from core.storage.store import Store
from crawlers.web.credentials import hide_known
from tasks.prefect.telling import tell

# Packages whose logs are sent to the server. By default, Prefect sends only its own logs, and
# warnings of PREFECT_LOGGING_EXTRA_LOGGERS.
ROOMS = (
    "core", "crawlers", "flows", "instruments", "models", "reports", "tasks", "warehouse",
)  # fmt: skip
TELL_S = 60.0  # minimum time between two lines about the progress of a step, in seconds
_log = logging.getLogger(__name__)
_told_at: dict[str, float] = {}  # time of the last line about the progress of a step


class _WithoutTokens(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return hide_known(super().format(record))


class _OfThisRun(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        task_run_id, flow_run_id = get_task_and_flow_run_ids()
        flow_run_id = flow_run_id or flow_run.id
        record.__dict__.update(task_run_id=task_run_id, flow_run_id=flow_run_id)
        return flow_run_id is not None


def send_logs() -> None:
    """Send the logs of tidemark's packages to the server; a second call changes nothing.

    PREFECT_LOGGING_TO_API_ENABLED enables this. PREFECT_LOGGING_LEVEL is the minimum level.
    """
    prefects = logging.getLogger("prefect.extra")
    for handler in prefects.handlers:  # loggers of flow runs and task runs share these handlers
        handler.setFormatter(_WithoutTokens())
    for room in ROOMS:
        logger = logging.getLogger(room)
        if logger.level != prefects.level:  # avoid setLevel, which clears the caches of all loggers
            logger.setLevel(prefects.level)
        if not any(isinstance(handler, APILogHandler) for handler in logger.handlers):
            handler = APILogHandler()
            handler.setFormatter(_WithoutTokens())
            handler.addFilter(_OfThisRun())
            logger.addHandler(handler)


def observe() -> None:
    """Set up logs and progress of this process; further calls are cheap."""
    if prefect_server():
        send_logs()
        progress.listen_too(tell_progress)


def tell_progress(step: str, done: int, total: int, failed: int) -> None:
    """Log the progress of a step, at most once per ``TELL_S`` seconds, and at its end."""
    now = time.monotonic()
    if done + failed < total and now < _told_at.get(step, -math.inf) + TELL_S:
        return
    _told_at[step] = now
    _log.info("%s: %d of %d, %d failed", step, done, total, failed)


def show_scored(cells: Sequence[Cell], began: dt.datetime, settings: Settings) -> None:
    """Log each cell that was scored since ``began``, and send its event, if there is a server."""
    if not prefect_server():
        return
    store = Store(settings.home)
    for cell in cells:
        with contextlib.suppress(TidemarkError):  # `tidemark check` reports damage
            record = read_cell_record(store, cell)
            if record and record.scored_at >= began and store.exists(cell.path):
                _show_cell(cell, record)


def _show_cell(cell: Cell, record: CellRecord) -> None:
    rate = record.num_tokens_read / record.seconds if record.seconds else math.inf
    _log.info(
        "scored %s: %.2f s, %d tokens, %.0f tokens/s",
        cell, record.seconds, record.num_tokens_read, rate,
    )  # fmt: skip
    tell("scored", cell, {"num_tokens": record.num_tokens_read, "seconds": record.seconds})


def show_seal(seal: Seal, began: dt.datetime) -> None:
    """Log a sealed partition; send its event only if it was sealed since ``began``."""
    if seal.sealed_at is None or seal.sealed_at < began:
        _log.info("%s: sealed already", seal.partition)
        return
    status = "partial" if seal.is_partial else "complete"
    _log.info(
        "sealed %s: %s, version %d, %d documents, %d bytes",
        seal.partition, status, seal.version, seal.num_documents, seal.num_bytes,
    )  # fmt: skip
    tell("sealed", seal)


def show_landed(model: str, landed: Sequence[Cell], num_cells: int) -> None:
    """Log how many cells of a model have newly landed, and send events of their landing."""
    _log.info("landed %s: %d new of %d cells", model, len(landed), num_cells)
    tell("landed", model, landed)
