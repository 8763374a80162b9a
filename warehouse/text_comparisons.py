"""Months of text compared with earlier ones, and landed."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core import progress
from core.corpus import Seal, list_sealed
from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from core.text_difference import VERSION, Against, measure_difference
from warehouse.statements import Statements
from warehouse.writer import connected, locked, transaction

_KEY = ("source", "month", "other_month")


@dataclass(frozen=True)
class Comparison:
    """Two sealed months of a source."""

    later: Seal
    earlier: Seal

    @property
    def key(self) -> dict[str, object]:
        """What says that its result is still right, as columns of ``text_comparisons``."""
        months = [seal.partition.month for seal in (self.later, self.earlier)]
        return {
            "source": self.later.partition.source,
            "month": months[0].first_day if months[0] else None,
            "other_month": months[1].first_day if months[1] else None,
            "version": VERSION,
            "partition_digest": self.later.digest,
            "other_partition_digest": self.earlier.digest,
        }


def plan_comparisons(
    store: Store,
    sources: Sequence[str] | None,
    months: Sequence[Month] | None,
    against: Iterable[Against] = tuple(Against),
    as_of: dt.datetime | None = None,
) -> list[Comparison]:
    """Say which sealed months of text are to be compared with which.

    Args:
        store: the data root.
        sources: None means all that hold dated text.
        months: those to compare; None means all. The first month is that of the whole source.
        against: what with.
        as_of: versions that were sealed later are passed over; None takes the newest.

    Raises:
        UsageError: of a source that was named, nothing is sealed, or no dated text.
    """
    names = sources or _sources(store, as_of)
    chosen = {name: _dated_texts(store, name, as_of) for name in names}
    return [
        Comparison(later, earlier)
        for name, seals in chosen.items()
        for month, later in seals.items()
        if months is None or month in months
        for earlier in _earlier(seals, month, against)
    ]


def _sources(store: Store, as_of: dt.datetime | None) -> list[str]:
    seals = list_sealed(store, as_of=as_of)
    return sorted({s.partition.source for s in seals if s.is_text and s.partition.month})


def _dated_texts(store: Store, source: str, as_of: dt.datetime | None) -> dict[Month, Seal]:
    seals = list_sealed(store, source, as_of)
    if not seals:
        raise UsageError(f"nothing of {source} is sealed; crawl or import months of it first")
    if kinds := sorted({seal.content for seal in seals if not seal.is_text}):
        raise UsageError(f"{source} holds {' and '.join(kinds)}; only months of text are compared")
    dated = {seal.partition.month: seal for seal in seals if seal.partition.month}
    if not dated:
        raise UsageError(f"{source} is undated, so it has no months whose text could be compared")
    return dict(sorted(dated.items()))


def _earlier(seals: dict[Month, Seal], month: Month, against: Iterable[Against]) -> list[Seal]:
    others = {Against.FIRST: min(seals), Against.PREVIOUS: month - 1}
    wanted = sorted({others[each] for each in against})
    return [seals[other] for other in wanted if other in seals and other < month]


def compare_texts(comparisons: Sequence[Comparison], settings: Settings) -> int:
    """Make and land those comparisons that are not landed yet for the same contents.

    Each lands when it is made, so a killed run is simply run again; the warehouse is free while
    texts are compared.

    Returns:
        How many were made.

    Raises:
        StorageError: a partition is missing or damaged; what was landed before stays.
    """
    store = Store(settings.home)
    pending = _find_pending(comparisons, settings)
    for number, comparison in enumerate(pending, start=1):
        found = measure_difference(store, comparison.earlier, comparison.later)
        _land({**comparison.key, **dataclasses.asdict(found)}, settings)
        progress.report("compare texts", number, len(pending))
    return len(pending)


def _find_pending(comparisons: Sequence[Comparison], settings: Settings) -> list[Comparison]:
    with locked(settings), connected(settings) as connection:
        statements = Statements(connection)
        return [
            each for each in comparisons if not statements.run("find_text_comparison", each.key)
        ]


def _land(row: dict[str, object], settings: Settings) -> None:
    what = f"land the comparison of {row['source']} {row['month']} with {row['other_month']}"
    with locked(settings), connected(settings) as connection, transaction(connection, what):
        statements = Statements(connection)
        statements.run("delete_text_comparison", {name: row[name] for name in _KEY})
        statements.run("insert_text_comparison", row)
