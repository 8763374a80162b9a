"""The task that checks the canary."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.cells.canary import CanaryRecord
from core.settings import Settings
from instruments.canary import check_canary


@task(task_run_name="check the canary", cache_policy=NO_CACHE, persist_result=False)
def run_canary(settings: Settings) -> CanaryRecord:
    """Score the frozen canary model, and record its drift; see ``check_canary``."""
    return check_canary(settings)
