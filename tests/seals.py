import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.corpus.partition import Partition, Seal
from core.corpus.sealing import seal_partition
from core.month import Month
from core.storage.store import Store
from crawlers.imports.target import contents_of
from crawlers.imports.texts import ImportOptions, import_texts
from crawlers.pieces import HEIGHT, WIDTH, media_columns

Sealer = Callable[..., Seal]


def seal_images(store: Store, partition: Partition, num_patches: int = 1) -> Seal:
    """Seal patches of noise, all from one image."""
    noise = np.random.default_rng(1)
    rows = [
        {
            "native_id": f"noise.png:{index}", "cluster_id": "noise.png", "date_kind": "given",
            "title": "noise.png", "licence": "CC0", "extra": "{}",
            **media_columns("image", noise.integers(0, 256, HEIGHT * WIDTH, np.uint8).tobytes()),
        }
        for index in range(num_patches)
    ]  # fmt: skip
    return seal_partition(store, partition, contents_of("noise.png", partition, rows, {}))


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
