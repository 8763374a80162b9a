"""The canary: a check that the loss of a fixed model on a fixed text is unchanged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from core.cells.canary import CanaryRecord, read_canary_records, write_canary_record
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.lock import may_write
from warehouse.database.repair import require_known_databases
from warehouse.land.losses import Warehouse, open_warehouse


def check_canary(settings: Settings) -> CanaryRecord:
    """Score the canary's text, and record the drift of its loss, without publishing the warehouse.

    Raises:
        ModelLoadError: the canary's files have changed.
        NewerVersion: a later version wrote the warehouse here; nothing was recorded.
    """
    require_known_databases(settings)
    # Import torch late: the import takes seconds, and compressors do not need torch.
    from models.canary import score_canary

    store = Store(settings.home)
    run_at = dt.datetime.now(dt.UTC)
    loss = score_canary(settings)
    expected = loss.expected_nats
    if expected is None:  # compare with the first run in the same conditions, or this one
        in_same_conditions = [
            record.nll_nats
            for record in read_canary_records(store)
            if (record.device, record.dtype) == (loss.device, loss.dtype)
        ]
        expected = in_same_conditions[0] if in_same_conditions else loss.nll_nats
    record = CanaryRecord(
        run_at=run_at,
        device=loss.device,
        dtype=loss.dtype,
        versions=dict(loss.versions),
        nll_nats=loss.nll_nats,
        expected_nats=expected,
        drift=(loss.nll_nats - expected) / expected,
        num_tokens=loss.num_tokens,
    )
    write_canary_record(store, record)
    if may_write(settings):  # otherwise, the machine that writes the warehouse lands this record
        with open_warehouse(settings) as warehouse:
            land_canary_runs(warehouse, store)
    return record


def is_canary_due(settings: Settings) -> bool:
    """Return True if the canary has not yet run on this device with the installed libraries."""
    from models.canary import current_conditions

    here = current_conditions(settings)
    return all(
        here != (record.device, record.dtype, record.versions)
        for record in read_canary_records(Store(settings.home))
    )


def find_drifts(store: Store, former: Sequence[CanaryRecord]) -> list[CanaryRecord]:
    """Return the runs of the canary that are not ``former``, and whose loss differs too much.

    Machines have different clocks, so a new run may be dated before a former one.
    """
    known = {record.run_at for record in former}
    records = read_canary_records(store)
    return [each for each in records if each.run_at not in known and not each.is_well]


def land_canary_runs(warehouse: Warehouse, store: Store) -> None:
    """Land all recorded runs of the canary that the warehouse lacks."""
    warehouse.add_canary_runs(read_canary_records(store))
