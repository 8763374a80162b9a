"""Whether what was crawled of a month looks like that month: what does not is held back.

A month may well differ from all before it: then somebody looks at it and accepts it. What fails
here is most often a site that has changed, a parser that has not, or a crawl that was cut short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from core.corpus import Partition, Seal, list_sealed, read_seal
from core.storage import Store
from crawlers.contract import SourceInfo

DRIFT_MONTHS = 6  # the nearest earlier ones that a month is held against
MIN_DRIFT_MONTHS = 3  # a source with fewer is too young to tell
DRIFT_FACTOR = 3.0  # up and down, of documents and of bytes
MIN_COUNT = 10  # below so many documents, or items, a ratio is an accident
MAX_DROPPED = 0.9  # of the items that were looked at
MAX_FAILED = 0.5  # of the items that were asked for
# Not what is wrong with an item: it is another month's, more than was wanted, or a title of a list
# that is not there. A site of which all has gone shows in the drift, or as an empty month.
_NO_FAULTS = frozenset({"sample_cap", "outside_month", "forgotten", "deleted", "not_yet_created"})
# What decides how much a crawl keeps: months that were crawled otherwise tell nothing.
_SIZED_BY = ("kind", "limit", "max_bytes", "languages")


@dataclass(frozen=True)
class Crawled:
    """What a crawl has to show: its documents, their bytes, and its manifest so far."""

    num_documents: int
    num_bytes: int
    manifest: Mapping[str, Any]


def find_reasons_to_hold(
    store: Store, partition: Partition, info: SourceInfo, crawled: Crawled
) -> list[str]:
    """Say what is odd about a crawl that is about to be sealed; nothing where all is well.

    Args:
        store: the data root, with the months to compare with.
        partition: what was crawled.
        info: of its source, which may declare how many documents a month has.
        crawled: what came of it.
    """
    newest = read_seal(store, partition)
    return [
        *_rows(info, crawled),
        *_shares(crawled.manifest),
        *_drift(_months_before(store, partition, crawled), crawled),
        *_shrunk(newest, crawled),
    ]


def _rows(info: SourceInfo, crawled: Crawled) -> Iterator[str]:
    """Bounds that the source declares are of a whole month, not of a sample by --limit."""
    found, declared = crawled.num_documents, f"{info.name} declares"
    is_whole = crawled.manifest.get("limit") is None
    if is_whole and info.min_documents is not None and found < info.min_documents:
        yield f"{found:,} documents, and {declared} at least {info.min_documents:,} a month"
    if info.max_documents is not None and found > info.max_documents:
        yield f"{found:,} documents, and {declared} at most {info.max_documents:,} a month"


def _shares(manifest: Mapping[str, Any]) -> Iterator[str]:
    dropped = {why: n for why, n in manifest["dropped"].items() if why not in _NO_FAULTS}
    num_dropped, num_failed = sum(dropped.values()), sum(manifest["failed"].values())
    for what, num, counts, most in (
        ("dropped", num_dropped, dropped, MAX_DROPPED),
        ("failed", num_failed, manifest["failed"], MAX_FAILED),
    ):
        considered = manifest["kept"] + num_dropped + num_failed
        if considered >= MIN_COUNT and num > most * considered:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
            yield (
                f"{num:,} of {considered:,} items {what} ({reasons}), more than {100 * most:.0f} %"
            )


def _months_before(store: Store, partition: Partition, crawled: Crawled) -> list[Seal]:
    """The nearest earlier months that were crawled with the same choices."""
    # As JSON has it: tuples are lists in the manifests of other months.
    sized = [_plain(crawled.manifest.get(key)) for key in _SIZED_BY]
    seals = [
        seal
        for seal in list_sealed(store, partition.source)
        if seal.partition.month is not None
        and partition.month is not None
        and seal.partition.month < partition.month
        and [_plain(seal.manifest.get(key)) for key in _SIZED_BY] == sized
    ]
    return sorted(seals, key=lambda seal: str(seal.partition.month))[-DRIFT_MONTHS:]


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _drift(before: Sequence[Seal], crawled: Crawled) -> Iterator[str]:
    if len(before) < MIN_DRIFT_MONTHS:
        return
    usual = median(seal.num_documents for seal in before)
    if max(usual, crawled.num_documents) < MIN_COUNT:
        return
    usual_bytes = median(seal.num_bytes for seal in before)
    span = f"{before[0].partition.month} to {before[-1].partition.month}"
    for found, expected, unit in (
        (crawled.num_documents, usual, "documents"),
        (crawled.num_bytes, usual_bytes, "bytes"),
    ):
        if not expected / DRIFT_FACTOR <= found <= expected * DRIFT_FACTOR:
            yield (
                f"{found:,} {unit}, and the median of {len(before)} months ({span}) is "
                f"{expected:,.0f}: more than {DRIFT_FACTOR:g} times off"
            )


def _shrunk(newest: Seal | None, crawled: Crawled) -> Iterator[str]:
    """A crawl that was cut short must not take the place of one that got more."""
    if newest is None or crawled.manifest["status"] != "partial":
        return
    if crawled.num_documents < newest.num_documents:
        yield (
            f"partial, with {crawled.num_documents:,} documents, and version {newest.version} "
            f"has {newest.num_documents:,}"
        )
