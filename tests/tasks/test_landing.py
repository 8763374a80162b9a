from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from core.month import Month
from core.settings import Settings
from models.catalogue import ModelEntry, add_model
from tasks.landing import describe_models
from warehouse.land import open_warehouse
from warehouse.publish import publish
from warehouse.query import query


def test_foreign_losses_of_a_catalogued_model_are_split_at_its_cutoff(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path))
    entry = ModelEntry(
        name="theirs", location="org/theirs", cutoff=Month("2024-01"),
        cutoff_provenance="stated", cutoff_precision="month",
    )  # fmt: skip
    add_model(entry, settings)
    rows = [
        {
            "model": model, "revision": "r", "source": "s", "month": dt.date(2024, month, 1),
            "document_id": "d", "chunk_index": 0, "protocol": "p", "nll_nats": 1.0 * month,
            "num_tokens": 1, "num_chars": 1, "num_bytes": 1,
        }
        for model in ("theirs", "nobody's")
        for month in (1, 2)
    ]  # fmt: skip
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses([pa.Table.from_pylist(rows)], "rows")
        describe_models(warehouse, settings)
    publish(settings)
    found = query(settings, "select model, split_date from train_test_gap").to_pylist()
    assert found == [{"model": "theirs", "split_date": dt.date(2024, 2, 1)}]

    add_model(replace(entry, cutoff=Month("2023-12")), settings, replace=True)
    with open_warehouse(settings) as warehouse:
        describe_models(warehouse, settings)
    publish(settings)
    assert query(
        settings, "select cutoff, revision from models where kind is not null"
    ).to_pylist() == [{"cutoff": dt.date(2023, 12, 1), "revision": "r"}]
