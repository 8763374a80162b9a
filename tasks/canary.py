"""The canary: whether the same model still gives the same text the same loss."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.settings import Settings
from models.canary import CanaryLoss, score_canary
from warehouse.land import open_warehouse

DRIFT_LIMIT = 1e-6  # relative; as in view suspect_cells


@dataclass(frozen=True)
class CanaryRun:
    """A loss of the canary, and how far it is off, relative to what it has to be."""

    loss: CanaryLoss
    drift: float

    @property
    def is_well(self) -> bool:
        """Whether losses that are scored here and now can be believed."""
        return abs(self.drift) <= DRIFT_LIMIT  # a NaN is not

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.loss.versions.items())
        return (
            f"the canary's loss on {self.loss.device} in {self.loss.dtype} is off by "
            f"{self.drift:.1e} ({versions}; {DRIFT_LIMIT:.0e} is the most): what was scored since "
            "its last good run is suspect; go back to the versions of that run, or score "
            "those cells again"
        )


def check_canary(settings: Settings) -> CanaryRun:
    """Score the canary and record how far it is off; the caller publishes.

    Raises:
        ModelLoadError: the canary's files were changed.
        UsageError: the device or dtype of the settings cannot be had.
    """
    run_at = dt.datetime.now(dt.UTC)
    loss = score_canary(settings)
    with open_warehouse(settings) as warehouse:
        expected = loss.expected_nats
        if expected is None:
            expected = warehouse.first_canary_nats(loss.device, loss.dtype) or loss.nll_nats
        run = CanaryRun(loss, (loss.nll_nats - expected) / expected)
        warehouse.add_canary_run(
            {
                "run_at": run_at,
                "device": loss.device,
                "dtype": loss.dtype,
                "versions": loss.versions,
                "nll_nats": loss.nll_nats,
                "expected_nats": expected,
                "drift": run.drift,
                "num_tokens": loss.num_tokens,
            }
        )
    return run


@task(cache_policy=NO_CACHE, persist_result=False)
def run_canary(settings: Settings) -> CanaryRun:
    """Check the canary; see ``check_canary``."""
    return check_canary(settings)
