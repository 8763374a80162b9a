"""Runs of the canary, as files: what the warehouse knows of them can be had again from here.

canary/<moment>.json
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from core.errors import MalformedInput
from core.storage import Store

DRIFT_LIMIT = 1e-6  # relative; as in view suspect_cells


class CanaryRecord(BaseModel):
    """One run of the canary.

    Attributes:
        run_at: when (UTC).
        device: kind and name.
        dtype: of the weights.
        versions: of the libraries that computed, by name.
        nll_nats: what the frozen texts cost.
        expected_nats: what they had to cost.
        drift: (nll_nats - expected_nats) / expected_nats.
        num_tokens: that were scored.
    """

    # A loss that is no number has to be kept, too.
    model_config = ConfigDict(frozen=True, strict=True, ser_json_inf_nan="constants")

    run_at: AwareDatetime
    device: str
    dtype: str
    versions: dict[str, str]
    nll_nats: float
    expected_nats: float
    drift: float
    num_tokens: Annotated[int, Field(gt=0)]

    @property
    def is_well(self) -> bool:
        """Whether losses that are scored here and now can be believed."""
        return abs(self.drift) <= DRIFT_LIMIT  # a NaN is not

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return (
            f"the canary's loss on {self.device} in {self.dtype} is off by {self.drift:.1e} "
            f"({versions}; {DRIFT_LIMIT:.0e} is the most): what was scored since its last good run "
            "is suspect; go back to the versions of that run, or score those cells again"
        )


def write_canary_record(store: Store, record: CanaryRecord) -> None:
    """Keep a run."""
    moment = record.run_at.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    store.write_bytes(f"canary/{moment}.json", record.model_dump_json().encode())


def read_canary_records(store: Store) -> list[CanaryRecord]:
    """Return all runs, the oldest first.

    Raises:
        MalformedInput: a file is not a run; names it.
    """
    records = []
    for path in store.list("canary/*.json"):
        try:
            records.append(CanaryRecord.model_validate_json(store.read_bytes(path)))
        except ValidationError as error:
            raise MalformedInput(
                f"{store.url(path)} is not a run of the canary ({error.errors()[0]['msg']}); "
                "delete it and run `tidemark canary`"
            ) from error
    return sorted(records, key=lambda record: record.run_at)
