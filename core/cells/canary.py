"""Records of canary runs, one JSON file ``canary/<moment>.json`` per run.

The canary is a frozen model whose loss on frozen texts is known. A different loss shows that
numerical results have changed. The warehouse can restore its canary runs from these files.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from core.errors import MalformedInput
from core.storage.records import read_record
from core.storage.store import Store

DRIFT_LIMIT = 1e-6  # limit of the relative drift; internal.suspect_cells has the same limit


class CanaryRecord(BaseModel):
    """The result of one run of the canary."""

    # ``ser_json_inf_nan`` allows NaN and infinity, because such a loss must also be stored.
    model_config = ConfigDict(frozen=True, strict=True, ser_json_inf_nan="constants")

    run_at: AwareDatetime  # UTC
    device: str  # kind and name of the device
    dtype: str
    versions: dict[str, str]  # versions of the libraries used, by name
    nll_nats: float  # measured loss of the canary's texts
    expected_nats: float  # reference loss of the same texts
    drift: float  # relative: (nll_nats - expected_nats) / expected_nats
    num_tokens: Annotated[int, Field(gt=0)]

    @property
    def is_well(self) -> bool:
        """True if the drift is within the limit, so losses scored on the device can be trusted."""
        return abs(self.drift) <= DRIFT_LIMIT  # the comparison is False for NaN

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return (
            f"the canary's loss on {self.device} in {self.dtype} is off by {self.drift:.1e} "
            f"({versions}; {DRIFT_LIMIT:.0e} is the most): what was scored since its last good run "
            "is suspect; go back to the versions of that run, or score those cells again"
        )


def write_canary_record(store: Store, record: CanaryRecord) -> None:
    """Store the record of a canary run."""
    moment = record.run_at.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    store.write_bytes(f"canary/{moment}.json", record.model_dump_json().encode())


def read_canary_records(store: Store) -> list[CanaryRecord]:
    """Return the records of all runs, the oldest first; raise MalformedInput for a bad file."""
    what = "a run of the canary"
    remedy = "bring it back from a backup, or move it out of the data root"
    records = (
        read_record(CanaryRecord, store, path, what, remedy, MalformedInput)
        for path in store.list("canary/*.json")
    )
    return sorted(records, key=lambda record: record.run_at)
