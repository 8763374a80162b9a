"""What this room's tests share: texts to score, and a Prefect API where a flow runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prefect.testing.utilities import prefect_test_harness

from core.corpus import Partition, Seal
from core.month import Month
from core.storage import Store
from crawlers.import_texts import ImportOptions, import_texts


@pytest.fixture(scope="session")
def prefect_api() -> Iterator[None]:
    """A temporary API; it takes a while to start, so only who runs a flow asks for it."""
    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.fixture
def seal(store: Store, tmp_path: Path) -> Callable[..., Seal]:
    """Seal a few texts as a month (None: undated) of a source, in place of what was there."""

    def seal(source: str, month: str | None, words: str = "sand and tide, ", num: int = 3) -> Seal:
        file = tmp_path / "texts.json"
        file.write_text(
            json.dumps([f"{source} {month} {index}: {words * 20}" for index in range(num)])
        )
        partition = Partition(source, Month(month) if month else None)
        return import_texts(file, partition, store, ImportOptions(replace=True))

    return seal
