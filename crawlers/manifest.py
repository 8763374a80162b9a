"""What a partition's manifest says of how its documents came to be."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import zstandard

from core.corpus import Partition
from core.errors import EmptyPartition, TidemarkError
from crawlers.contract import Drop

DROPPED_FILE = "dropped.jsonl.zst"  # beside the manifest, one line a dropped item
_MAX_DETAIL = 500  # characters; a site's error page must not fill the disk


class Ledger:
    """Counts what was asked for and what became of it.

    ``requested = kept + dropped`` must hold in the end; a crawl that loses an item is a fault.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.requested = 0
        self.kept = 0
        self.dropped: list[Drop] = []

    def sift(self, outcomes: Iterable[dict[str, Any] | Drop]) -> Iterator[dict[str, Any]]:
        """Yield the rows among what became of the items, and write down the others."""
        for outcome in outcomes:
            self.requested += 1
            if isinstance(outcome, Drop):
                self.dropped.append(outcome)
            else:
                self.kept += 1
                yield outcome

    @property
    def reasons(self) -> dict[str, int]:
        """How many items were dropped for each reason, most frequent first."""
        return dict(Counter(drop.reason for drop in self.dropped).most_common())

    def close(self) -> dict[str, object]:
        """Return the counts for the manifest.

        Raises:
            EmptyPartition: nothing was kept, which must never look like a month without text.
            TidemarkError: the counts do not add up.
        """
        counts = f"{self.requested} requested, {self.kept} kept, dropped: {self.reasons or 'none'}"
        if self.requested != self.kept + len(self.dropped):
            raise TidemarkError(f"{self._partition}: items were lost on the way ({counts})")
        if not self.kept:
            raise EmptyPartition(
                f"{self._partition}: nothing to keep ({counts}); nothing is sealed"
            )
        return {"requested": self.requested, "kept": self.kept, "dropped": self.reasons}

    def dropped_items(self) -> bytes:
        """Return the dropped items as zstd-compressed JSON lines, in the order they came."""
        lines = (
            json.dumps(
                {
                    "native_id": drop.native_id,
                    "reason": drop.reason,
                    "detail": drop.detail[:_MAX_DETAIL],
                }
            )
            for drop in self.dropped
        )
        return zstandard.compress("".join(f"{line}\n" for line in lines).encode(), 6)


def now() -> str:
    """Return the present instant as the manifest writes it (UTC, to the second)."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def code_version() -> str:
    """Return the version of tidemark that is running."""
    try:
        return importlib.metadata.version("tidemark")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
