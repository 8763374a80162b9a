"""Logs of runs: what our rooms log goes where Prefect's own logs of the run go, without tokens.

The lower rooms use plain ``logging``. Prefect takes only what its own loggers, and those named in
PREFECT_LOGGING_EXTRA_LOGGERS, are given, and leaves the level of the latter at WARNING.
"""

from __future__ import annotations

import logging

from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run
from prefect.utilities.context import get_task_and_flow_run_ids

from crawlers.tokens import hide_known

ROOMS = ("core", "crawlers", "flows", "models", "reports", "tasks", "warehouse")


class _WithoutTokens(logging.Formatter):
    """Formats as Prefect's handler does, message and traceback, and hides tokens in all of it."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_known(super().format(record))


class _OfThisRun(logging.Filter):
    """Says which run a record is of; threads that know of none are of this process's flow run."""

    def filter(self, record: logging.LogRecord) -> bool:
        task_run_id, flow_run_id = get_task_and_flow_run_ids()
        flow_run_id = flow_run_id or flow_run.id
        record.__dict__.update(task_run_id=task_run_id, flow_run_id=flow_run_id)
        return flow_run_id is not None


def send_logs() -> None:
    """Have what our rooms log, from Prefect's level on, sent to the server with the run it is of.

    Prefect's settings decide whether anything is sent (PREFECT_LOGGING_TO_API_ENABLED) and from
    which level on (PREFECT_LOGGING_LEVEL). Doing it twice changes nothing.
    """
    prefects = logging.getLogger("prefect.extra")
    for handler in prefects.handlers:  # those of flow runs and task runs are the same
        handler.setFormatter(_WithoutTokens())
    for room in ROOMS:
        logger = logging.getLogger(room)
        if logger.level != prefects.level:  # setting it empties the caches of all loggers
            logger.setLevel(prefects.level)
        if not any(isinstance(handler, APILogHandler) for handler in logger.handlers):
            handler = APILogHandler()
            handler.setFormatter(_WithoutTokens())
            handler.addFilter(_OfThisRun())
            logger.addHandler(handler)
