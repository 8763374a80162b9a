"""Item counts and other values of a crawl for its manifest."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
from collections import Counter
from typing import Any, TypeGuard

import zstandard

from core.corpus.partition import Partition, Seal
from core.errors import EmptyPartition, SourceUnavailable, TidemarkError
from crawlers.contract import Drop, Failure, Repeat
from crawlers.text.cleaning import CLEANER_VERSION

DROPPED_FILE = "dropped.jsonl.zst"  # file next to the manifest; one line per item that was not kept
_MAX_DETAIL = 500  # maximum characters of a detail, which may be a site's error page


Row = dict[str, Any]
Outcome = Row | Drop | Failure | Repeat


class Ledger:
    """Counter of requested items by outcome; ``whose`` names the crawl in error messages.

    ``requested = kept + dropped + failed + repeated`` must hold at the end.
    """

    def __init__(self, whose: Partition | str) -> None:
        self._whose = whose
        self.requested = 0
        self.kept = 0
        self.others: list[Drop | Failure | Repeat] = []
        self.ended_early: str | None = None

    def keeps(self, outcome: Outcome) -> TypeGuard[Row]:
        """Count an outcome; return True if it is a row, which is a kept document."""
        if isinstance(outcome, dict):
            self.keep()
            return True
        self.pass_over(outcome)
        return False

    def keep(self) -> None:
        """Count a kept item."""
        self.requested += 1
        self.kept += 1

    def pass_over(self, other: Drop | Failure | Repeat) -> None:
        """Count and record an item that is not kept."""
        self.requested += 1
        self.others.append(other)

    def count(self, kind: type[Drop | Failure]) -> dict[str, int]:
        """Return the number of dropped, or of failed, items by reason; most frequent first."""
        reasons = (other.reason for other in self.others if isinstance(other, kind))
        return dict(Counter(reasons).most_common())

    @property
    def num_repeated(self) -> int:
        """Return the number of items that a list repeated."""
        return sum(isinstance(other, Repeat) for other in self.others)

    def close(self) -> dict[str, object]:
        """Return the item counts and the status (complete or partial) for the manifest.

        Raises:
            EmptyPartition: no item was kept; an empty month is never sealed.
            SourceUnavailable: no item was kept before the site failed.
            TidemarkError: the counts do not add up.
        """
        counts = self.describe()
        if not self.kept and self.ended_early:
            raise SourceUnavailable(f"{self._whose}: {self.ended_early} ({self.counts()})")
        if not self.kept:
            raise EmptyPartition(
                f"{self._whose}: nothing to keep ({self.counts()}); nothing is sealed"
            )
        return counts

    def counts(self) -> str:
        """Return the item counts as text for messages."""
        dropped, failed, repeated = self.count(Drop), self.count(Failure), self.num_repeated
        counts = f"{self.requested} requested, {self.kept} kept, dropped: {dropped or 'none'}"
        counts += f", failed: {failed}" if failed else ""
        return counts + (f", {repeated} repeated" if repeated else "")

    def describe(self) -> dict[str, object]:
        """Return the item counts for the manifest; raise TidemarkError if they do not add up."""
        dropped, failed, repeated = self.count(Drop), self.count(Failure), self.num_repeated
        others = sum(dropped.values()) + sum(failed.values()) + repeated
        if self.requested != self.kept + others:
            raise TidemarkError(f"{self._whose}: items were lost on the way ({self.counts()})")
        return {
            "status": "partial" if failed or self.ended_early else "complete",
            "ended_early": self.ended_early,
            "requested": self.requested,
            "kept": self.kept,
            "dropped": dropped,
            "failed": failed,
            "repeated": repeated,
        }

    def dropped_items(self) -> bytes:
        """Return all items that were not kept as zstd-compressed JSON lines, in crawl order."""
        lines = (json.dumps(_line(other)) for other in self.others)
        return zstandard.compress("".join(f"{line}\n" for line in lines).encode(), 6)


def _line(other: Drop | Failure | Repeat) -> dict[str, str]:
    reason = "repeated" if isinstance(other, Repeat) else other.reason
    outcome = {Drop: "dropped", Failure: "failed", Repeat: "repeated"}[type(other)]
    return {
        "native_id": other.native_id,
        "outcome": outcome,
        "reason": reason,
        "detail": other.detail[:_MAX_DETAIL],
    }


def lack_of(seal: Seal) -> str | None:
    """Describe what a partial month lacks; return None for a complete month."""
    if not seal.is_partial:
        return None
    found: Any = seal.manifest
    counts = ", ".join(f"{number} {reason}" for reason, number in found["failed"].items())
    return "; ".join(filter(None, [counts and f"failed: {counts}", found["ended_early"]]))


def cleaned_regime(change: str | None) -> str:
    """Return the regime of texts cleaned today: change of site or method, cleaner's version."""
    return "+".join(filter(None, [change, f"cleaner-{CLEANER_VERSION}"]))


def now() -> str:
    """Return the current time in the manifest's format (UTC, to the second)."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def code_version() -> str:
    """Return the version of the installed tidemark package."""
    try:
        return importlib.metadata.version("tidemark")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
