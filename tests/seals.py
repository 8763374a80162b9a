import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.corpus.partition import Partition, Seal
from core.month import Month
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts

Sealer = Callable[..., Seal]


@pytest.fixture
def seal(store: Store, tmp_path: Path) -> Sealer:
    def seal(
        source: str,
        month: str | None,
        words: str = "sand and tide, ",
        num: int = 3,
        regime: str | None = None,
    ) -> Seal:
        file = tmp_path / "texts.json"
        file.write_text(
            json.dumps([f"{source} {month} {index}: {words * 20}" for index in range(num)])
        )
        partition = Partition(source, Month(month) if month else None)
        return import_texts(file, partition, store, ImportOptions(replace=True, regime=regime))

    return seal
