import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from core.corpus.partition import Partition
from core.month import Month
from core.settings import Settings
from core.storage.store import Store, path_part
from extras.metrics.collecting import DataRoot, _num_missing
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

HOSTILE = 'x" } evil{a="\n# HELP \\'


def scrape(root: DataRoot) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    registry = CollectorRegistry()
    registry.register(root)
    page = generate_latest(registry).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def value(figures: dict[Any, float], name: str, **labels: str) -> float | None:
    return figures.get((f"tidemark_{name}", frozenset(labels.items())))


def seal(store: Store, source: str, month: str, folder: str = "", status: str = "complete") -> None:
    path = f"corpus/source={path_part(source)}/month={month}{folder}/manifest.json"
    store.write_bytes(path, json.dumps({"status": status}).encode())


@pytest.fixture
def root(settings: Settings) -> DataRoot:
    return DataRoot(settings, cache_s=0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    seen: list[str] = []
    read = Store.read_bytes

    def spy(self: Store, path: str) -> bytes:
        seen.append(path)
        return read(self, path)

    monkeypatch.setattr(Store, "read_bytes", spy)
    yield seen


def test_partitions_are_counted_by_the_status_of_their_newest_version(
    root: DataRoot, store: Store
) -> None:
    seal(store, "a", "2024-01")
    seal(store, "a", "2024-02", status="partial")
    seal(store, "a", "2024-02", "/version=2")
    seal(store, "a", "2024-03", status="partial")
    seal(store, "a", "2024-04", "/held", status="held")
    seal(store, HOSTILE, "undated")
    figures = scrape(root)
    assert value(figures, "partitions", source="a", status="complete") == 2
    assert value(figures, "partitions", source="a", status="partial") == 1
    assert value(figures, "partitions", source="a", status="held") == 1
    assert value(figures, "partitions", source=HOSTILE, status="complete") == 1
    assert value(figures, "newest_month_timestamp_seconds", source="a") == 1709251200  # 2024-03-01
    assert value(figures, "newest_month_timestamp_seconds", source=HOSTILE) is None


def test_months_that_are_due_and_not_sealed_are_counted_anywhere_in_the_window() -> None:
    def missing(*months: str, day: int = 14) -> dict[tuple[str, ...], int]:
        sealed = [Partition("a", Month(month)) for month in months]
        return _num_missing(sealed, dt.datetime(2024, 5, day, tzinfo=dt.UTC))

    assert missing("2024-01", "2024-03") == {("a",): 1}  # 2024-04 is not due before the 15th
    assert missing("2024-01", "2024-03", day=15) == {("a",): 2}
    assert missing("2024-01", "2024-02", "2024-03", "2024-04", day=15) == {("a",): 0}
    assert missing("2024-04") == {("a",): 0}


def test_a_file_is_read_once_until_it_changes(
    root: DataRoot, store: Store, reads: list[str]
) -> None:
    seal(store, "a", "2024-01")
    seal(store, "a", "2024-02", status="partial")
    scrape(root)
    assert len(reads) == 2
    scrape(root)
    assert len(reads) == 2
    seal(store, "a", "2024-02", status="complete, and longer")
    assert value(scrape(root), "partitions", source="a", status="complete") == 2
    assert len(reads) == 3


def test_scrapes_that_follow_each_other_cost_nothing(settings: Settings, store: Store) -> None:
    root = DataRoot(settings, cache_s=60)
    scrape(root)
    seal(store, "a", "2024-01")
    assert value(scrape(root), "partitions", source="a", status="complete") is None


@pytest.mark.long
def test_cells_claims_and_the_snapshot(root: DataRoot, settings: Settings, store: Store) -> None:
    for month in ("2024-01", "2024-02"):
        store.write_bytes(f"losses/model=control%3Azstd/source=a/month={month}/d.parquet", b"")
        store.write_bytes(f"losses/model=control%3Azstd/source=a/month={month}/d.json", b"")
    store.write_bytes("claims/1.json", b"{}")
    figures = scrape(root)
    assert value(figures, "cells_scored", model="control:zstd") == 2
    assert value(figures, "claims") == 1
    assert value(figures, "snapshot_timestamp_seconds") is None
    with open_warehouse(settings):
        pass
    publish(settings)
    modified = (store.list_stamped("warehouse.duckdb")["warehouse.duckdb"]).modified_at
    assert value(scrape(root), "snapshot_timestamp_seconds") == modified


def test_failed_cells_are_counted_by_model(root: DataRoot, store: Store) -> None:
    for path in (
        "losses/model=m/source=a/month=2024-01/x",
        "losses/model=m/model",
        "answers/model=n/a/x",
    ):
        store.write_bytes(f"{path}.failed.json", b"")
    figures = scrape(root)
    assert value(figures, "cells_failed", model="m") == 2
    assert value(figures, "cells_failed", model="n") == 1


def test_a_data_root_that_cannot_be_read_is_down_and_comes_back(
    root: DataRoot, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = scrape(root)
    assert (value(figures, "up"), value(figures, "claims")) == (1, 0)
    seal(store, "a", "2024-99")  # no month: a foreign folder
    assert value(scrape(root), "up") == 0
    store.delete("corpus")
    assert value(scrape(root), "up") == 1
