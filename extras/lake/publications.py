"""The kinds of copies that ``tidemark publish --to KIND:PLACE`` can write."""

from __future__ import annotations

from core.settings import Settings
from extras.lake.copying import frozen_snapshot
from extras.lake.ducklake import copy_to_ducklake
from extras.lake.parquet import copy_to_parquet


def publish_to_ducklake(settings: Settings, place: str) -> bool:
    """Copy the published snapshot into a lake; return False if it was there already.

    A reader has the former copy or the new copy, also if this process is killed.

    Raises:
        UsageError: nothing is published; the place holds something that is no copy of this root.
        WarehouseError: the copy failed; the former copy stays.
    """
    with frozen_snapshot(settings) as snapshot:
        return copy_to_ducklake(snapshot, place)


def publish_to_parquet(settings: Settings, place: str) -> bool:
    """Copy the published snapshot into a folder of Parquet; else as ``publish_to_ducklake``."""
    with frozen_snapshot(settings) as snapshot:
        return copy_to_parquet(snapshot, place)


KINDS = {"ducklake": publish_to_ducklake, "parquet": publish_to_parquet}
