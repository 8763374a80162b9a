"""Counts of what crawls found, kept and dropped, from the manifests of the sealed months."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from core.corpus.partition import Seal, list_sealed
from core.storage.store import Store

NUM_READERS = 8  # sources whose manifests are read at once
KEPT = "kept"


def read_outcomes(store: Store, sources: Iterable[str]) -> str:
    """Return the items of each source by outcome, over its sealed months, as JSON rows.

    An outcome is ``kept``, a reason to drop an item, or ``failed: `` and a reason. Imported texts
    have no outcomes.

    Raises:
        StorageError: a manifest is damaged.
    """
    with ThreadPoolExecutor(NUM_READERS) as pool:
        found = pool.map(lambda source: (source, list_sealed(store, source)), sources)
    rows: list[dict[str, object]] = []
    for source, seals in found:
        rows += _rows(source, seals)
    return json.dumps(rows)


def _rows(source: str, seals: Iterable[Seal]) -> list[dict[str, object]]:
    """Return the items of a source by outcome, and the months with each outcome."""
    items: Counter[str] = Counter()
    months: Counter[str] = Counter()
    for seal in seals:
        for outcome, num in _outcomes(seal.manifest).items():
            items[outcome] += num
            months[outcome] += 1
    return [
        {"source": source, "outcome": outcome, "num_items": num, "num_months": months[outcome]}
        for outcome, num in items.items()
    ]


def _outcomes(manifest: Mapping[str, object]) -> dict[str, int]:
    """Return the items of one sealed month by outcome; none for imported texts."""
    if "kept" not in manifest:
        return {}
    dropped = cast("dict[str, int]", manifest.get("dropped", {}))
    failed = cast("dict[str, int]", manifest.get("failed", {}))
    lost = {f"failed: {reason}": num for reason, num in failed.items()}
    return {KEPT: cast("int", manifest["kept"]), **dropped, **lost}
