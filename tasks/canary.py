"""The canary: whether the same model still gives the same text the same loss."""

from __future__ import annotations

import datetime as dt

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.canary_record import CanaryRecord, read_canary_records, write_canary_record
from core.settings import Settings
from core.storage import Store
from warehouse.land import Warehouse, open_warehouse
from warehouse.one_writer import may_write


def check_canary(settings: Settings) -> CanaryRecord:
    """Score the canary and record how far it is off; the caller publishes.

    Raises:
        ModelLoadError: the canary's files were changed.
        UsageError: the device or dtype of the settings cannot be had.
    """
    # torch takes seconds to import; who scores compressors alone does without.
    from models.canary import score_canary

    store = Store(settings.home)
    run_at = dt.datetime.now(dt.UTC)
    loss = score_canary(settings)
    expected = loss.expected_nats
    if expected is None:
        like = [
            record.nll_nats
            for record in read_canary_records(store)
            if (record.device, record.dtype) == (loss.device, loss.dtype)
        ]
        expected = like[0] if like else loss.nll_nats
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
    if may_write(settings):  # else who may lands it with the next cells
        with open_warehouse(settings) as warehouse:
            land_canary_runs(warehouse, store)
    return record


def is_canary_due(settings: Settings) -> bool:
    """Whether the canary has not run yet on this device with the libraries installed now."""
    from models.canary import current_conditions

    here = current_conditions(settings)
    return all(
        here != (record.device, record.dtype, record.versions)
        for record in read_canary_records(Store(settings.home))
    )


def land_canary_runs(warehouse: Warehouse, store: Store) -> None:
    """Land the runs that are not landed, as after the loss of the writer's database."""
    for record in read_canary_records(store):
        warehouse.add_canary_run(record.model_dump())


@task(cache_policy=NO_CACHE, persist_result=False)
def run_canary(settings: Settings) -> CanaryRecord:
    """Check the canary; see ``check_canary``."""
    return check_canary(settings)
