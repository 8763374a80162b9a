"""Observability of a process: logs and progress for the Prefect server."""

from __future__ import annotations

import logging
import math
import time

from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run
from prefect.utilities.context import get_task_and_flow_run_ids

from core import progress
from core.environment import prefect_server
from crawlers.web.credentials import hide_known

# Packages whose logs are sent to the server. By default, Prefect sends only its own logs, and
# warnings of PREFECT_LOGGING_EXTRA_LOGGERS.
ROOMS = ("core", "crawlers", "flows", "instruments", "models", "reports", "tasks", "warehouse")
TELL_S = 60.0  # minimum time between two lines about the progress of a step, in seconds
_log = logging.getLogger(__name__)
_told_at: dict[str, float] = {}  # time of the last line about the progress of a step


class _WithoutTokens(logging.Formatter):
    """A formatter that hides known access tokens."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_known(super().format(record))


class _OfThisRun(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Add the ids of the current runs to a record; drop a record outside of a flow run."""
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
