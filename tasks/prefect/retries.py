"""Retries of task runs by Prefect, shown on its pages: see ``instruments/running/retries.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect.cache_policies import NO_CACHE

from core.errors import SourceUnavailable, StorageError
from instruments.running.retries import PAUSES, pauses_of


async def may_pass(_task: Any, run: Any, state: Any) -> bool:
    """Return True if a task run failed with an error for which it has an attempt left."""
    failure = await state.aresult(raise_on_failure=False)
    return bool(run.run_count <= len(pauses_of(failure)))


def _retried(pauses: Sequence[float]) -> dict[str, Any]:
    """Return the arguments of ``@task`` for retries after the given pauses (s), uncached."""
    return {
        "retries": len(pauses),
        "retry_delay_seconds": list(pauses),
        "retry_jitter_factor": 0.2,
        "retry_condition_fn": may_pass,
        "cache_policy": NO_CACHE,
        "persist_result": False,
    }


# A pause of Prefect depends on the number of the attempt alone, not on the class of the error.
OF_CRAWLS = _retried(PAUSES[SourceUnavailable])
OF_WRITES = _retried(PAUSES[StorageError])
