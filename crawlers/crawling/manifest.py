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
from core.schemas.tables import DocumentRow
from core.version import own_version
from crawlers.contract import Drop, Failure, Repeat
from crawlers.text.cleaning import CLEANER_VERSION

DROPPED_FILE = "dropped.jsonl.zst"  # file next to the manifest; one line per item that was not kept
_OUTCOMES = {Drop: "dropped", Failure: "failed", Repeat: "repeated"}
_CHUNK = 2**20  # bytes of lines that are compressed at a time
_ZSTD_LEVEL = 6
_MAX_DETAIL = 500  # maximum characters of a detail, which may be a site's error page


Outcome = DocumentRow | Drop | Failure | Repeat


class Ledger:
    """Counter of requested items by outcome; ``whose`` names the crawl in error messages.

    ``requested = kept + dropped + failed + repeated`` must hold at the end. Items that are not kept
    are held as compressed lines, of some 30 bytes each.
    """

    def __init__(self, whose: Partition | str) -> None:
        self._whose = whose
        self.requested = 0
        self.kept = 0
        self._counts: Counter[tuple[str, str]] = Counter()  # by outcome and reason
        self._lines = bytearray()  # not compressed yet
        self._num_bytes = 0  # before compression
        self._packed: list[bytes] = []  # compressed
        self.ended_early: str | None = None

    def keeps(self, outcome: Outcome) -> TypeGuard[DocumentRow]:
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
        line = _line(other)
        self._counts[line["outcome"], line["reason"]] += 1
        self._lines += f"{json.dumps(line)}\n".encode()
        if len(self._lines) >= _CHUNK:
            self._pack()

    def begin_with(self, other: Ledger) -> None:
        """Count the items that another ledger has passed over; this one must be new."""
        self.requested = other.requested
        self._counts = other._counts.copy()
        self._lines = other._lines.copy()
        self._num_bytes = other._num_bytes
        self._packed = other._packed.copy()

    def _pack(self) -> None:
        self._packed.append(zstandard.compress(bytes(self._lines), _ZSTD_LEVEL))
        self._num_bytes += len(self._lines)
        self._lines.clear()

    def count(self, kind: type[Drop | Failure]) -> dict[str, int]:
        """Return the number of dropped, or of failed, items by reason; most frequent first."""
        found = {
            reason: num for (what, reason), num in self._counts.items() if what == _OUTCOMES[kind]
        }
        return dict(Counter(found).most_common())

    @property
    def num_repeated(self) -> int:
        """Return the number of items that a list repeated."""
        return self._counts[_OUTCOMES[Repeat], _OUTCOMES[Repeat]]

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
        dropped = self.count(Drop)
        failed = self.count(Failure)
        repeated = self.num_repeated
        counts = f"{self.requested} requested, {self.kept} kept, dropped: {dropped or 'none'}"
        counts += f", failed: {failed}" if failed else ""
        return counts + (f", {repeated} repeated" if repeated else "")

    def describe(self) -> dict[str, object]:
        """Return the item counts for the manifest; raise TidemarkError if they do not add up."""
        dropped = self.count(Drop)
        failed = self.count(Failure)
        repeated = self.num_repeated
        others = sum(dropped.values()) + sum(failed.values()) + repeated
        if self.requested != self.kept + others:
            raise TidemarkError(f"{self._whose}: items were lost in the crawl ({self.counts()})")
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
        self._pack()
        # One frame that states its size, instead of many frames in a row.
        engine = zstandard.ZstdCompressor(_ZSTD_LEVEL).compressobj(size=self._num_bytes)
        parts = [engine.compress(zstandard.decompress(each)) for each in self._packed]
        return b"".join([*parts, engine.flush()])


def _line(other: Drop | Failure | Repeat) -> dict[str, str]:
    """Return the line of ``DROPPED_FILE`` for an item that is not kept."""
    outcome = _OUTCOMES[type(other)]
    return {
        "native_id": other.native_id,
        "outcome": outcome,
        "reason": outcome if isinstance(other, Repeat) else other.reason,
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
        return own_version()
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
