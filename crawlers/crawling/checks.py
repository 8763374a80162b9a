"""Checks of a crawled month; a month that fails a check is held back instead of sealed.

Most failed checks mean that a site changed, a parser is outdated, or a crawl was interrupted. If a
month really differs from earlier months, a person reviews and accepts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from core.corpus.partition import Partition, Seal, list_sealed, read_seal
from core.storage.store import Store
from crawlers.text.defects import DETECTORS

DRIFT_MONTHS = 6  # the drift check compares a month with at most this many earlier months
MIN_DRIFT_MONTHS = 3  # the drift check is skipped if there are fewer earlier months
DRIFT_FACTOR = 3.0  # maximum factor of documents or bytes above or below the earlier months' median
MIN_COUNT = 10  # minimum documents for the drift check, and minimum items for the checks of shares
# A month is held if a defect (crawlers/text/defects.py) is DRIFT_FACTOR times as frequent as in the
# median of the earlier months, more frequent than in any of them, and rises by this much at least.
MIN_RISE = {"share_of_texts": 0.05, "per_million_chars": 20.0}
MIN_DEFECTIVE = {"share_of_texts": 5, "per_million_chars": 10}  # minimum texts with the defect
MAX_DROPPED = 0.9  # maximum share of dropped items: dropped / (kept + dropped + failed)
MAX_FAILED = 0.5  # maximum share of failed items: failed / (kept + dropped + failed)
# Drops for these reasons do not indicate an error of a site or parser, so MAX_DROPPED ignores them.
# If all items of a site are lost for these reasons, the drift check or EmptyPartition reports it.
_NO_FAULTS = frozenset({"sample_cap", "outside_month", "forgotten", "deleted", "not_yet_created"})
# Settings that decide the size of a crawl. Only months with equal settings are compared.
_SIZED_BY = ("kind", "limit", "max_bytes", "languages")


@dataclass(frozen=True)
class CrawlResult:
    """The result of a crawl, not sealed yet: number of documents, their total bytes, manifest."""

    num_documents: int
    num_bytes: int
    manifest: Mapping[str, Any]


def find_reasons_to_hold(store: Store, partition: Partition, crawled: CrawlResult) -> list[str]:
    """Return the reasons to hold a month back instead of sealing it; an empty list if none."""
    before = _months_before(store, partition, crawled)
    return [
        *_shares(crawled.manifest),
        *_drift(before, crawled),
        *_defects(before, crawled),
        *_shrunk(read_seal(store, partition), crawled),
    ]


def _shares(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield a reason if the share of dropped or of failed items is too large."""
    dropped = {why: n for why, n in manifest["dropped"].items() if why not in _NO_FAULTS}
    num_dropped = sum(dropped.values())
    num_failed = sum(manifest["failed"].values())
    for what, num, counts, max_share in (
        ("dropped", num_dropped, dropped, MAX_DROPPED),
        ("failed", num_failed, manifest["failed"], MAX_FAILED),
    ):
        considered = manifest["kept"] + num_dropped + num_failed
        if considered >= MIN_COUNT and num > max_share * considered:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
            yield (
                f"{num:,} of {considered:,} items {what} ({reasons}), "
                f"more than {100 * max_share:.0f} %"
            )


def _months_before(store: Store, partition: Partition, crawled: CrawlResult) -> list[Seal]:
    """Return the latest months before a partition whose size was limited in the same way."""
    if partition.month is None:
        return []
    limits = _size_limits(crawled.manifest)
    seals: list[Seal] = []
    for seal in list_sealed(store, partition.source):
        month = seal.partition.month
        if month is not None and month < partition.month and _size_limits(seal.manifest) == limits:
            seals.append(seal)
    return sorted(seals, key=lambda seal: str(seal.partition.month))[-DRIFT_MONTHS:]


def _size_limits(manifest: Mapping[str, object]) -> list[object]:
    """Return the settings that decide a month's size; tuples become lists, as in read JSON."""
    values = [manifest.get(key) for key in _SIZED_BY]
    return [list(value) if isinstance(value, tuple) else value for value in values]


def _drift(before: Sequence[Seal], crawled: CrawlResult) -> Iterator[str]:
    """Yield a reason if the number of documents or bytes is far from the earlier months' median."""
    if len(before) < MIN_DRIFT_MONTHS:
        return
    median_documents = median(seal.num_documents for seal in before)
    if max(median_documents, crawled.num_documents) < MIN_COUNT:
        return
    median_bytes = median(seal.num_bytes for seal in before)
    span = f"{before[0].partition.month} to {before[-1].partition.month}"
    for actual, usual, unit in (
        (crawled.num_documents, median_documents, "documents"),
        (crawled.num_bytes, median_bytes, "bytes"),
    ):
        if not usual / DRIFT_FACTOR <= actual <= usual * DRIFT_FACTOR:
            yield (
                f"{actual:,} {unit}, and the median of {len(before)} months ({span}) is "
                f"{usual:,.0f}: more than {DRIFT_FACTOR:g} times off"
            )


def _defects(before: Sequence[Seal], crawled: CrawlResult) -> Iterator[str]:
    """Yield a reason for each defect that is much more frequent than in the earlier months."""
    defects: Any = crawled.manifest.get("defects", {"texts": 0})
    counted: list[Any] = [seal.manifest.get("defects", {"texts": 0}) for seal in before]
    earlier = [each for each in counted if each["texts"] >= MIN_COUNT]
    if len(earlier) < MIN_DRIFT_MONTHS or defects["texts"] < MIN_COUNT:
        return
    for name in DETECTORS:
        for unit, min_rise in MIN_RISE.items():
            rates = [each[name][unit] for each in earlier]
            rate = defects[name][unit]
            usual = median(rates)
            is_frequent = rate > max(DRIFT_FACTOR * usual, *rates) and rate >= usual + min_rise
            if is_frequent and defects[name]["texts"] >= MIN_DEFECTIVE[unit]:
                yield (
                    f"{name}: {defects[name]['texts']:,} of {defects['texts']:,} texts, "
                    f"{unit} {rate:g}, and the median of {len(rates)} months is {usual:g}"
                )


def _shrunk(newest: Seal | None, crawled: CrawlResult) -> Iterator[str]:
    """Yield a reason if a partial crawl has fewer documents than the month's newest version."""
    if newest is None or crawled.manifest["status"] != "partial":
        return
    if crawled.num_documents < newest.num_documents:
        yield (
            f"partial, with {crawled.num_documents:,} documents, and version {newest.version} "
            f"has {newest.num_documents:,}"
        )
