"""Comparison of a month's text with the text of earlier months, and landing of the results."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from core import progress
from core.corpus.partition import Seal, list_sealed, list_sealed_sources
from core.errors import UsageError, did_you_mean
from core.month import Period
from core.settings import Settings
from core.storage.store import Store
from extras.text_comparisons.difference import VERSION, Against, measure_difference
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, locked, transaction
from warehouse.land.landed import partition_key

_KEY = ("source", "month", "other_month")


@dataclass(frozen=True)
class Comparison:
    """Two sealed months of one source, to compare."""

    later: Seal
    earlier: Seal

    @property
    def facts(self) -> dict[str, object]:
        """The values of the columns that identify both texts and the method of comparison."""
        key = partition_key(self.later.partition)
        other = partition_key(self.earlier.partition)
        return {
            **key,
            "other_month": other["month"],
            "version": VERSION,
            "partition_digest": self.later.digest,
            "other_partition_digest": self.earlier.digest,
        }


def plan_comparisons(
    store: Store,
    sources: Sequence[str] | None,
    months: Sequence[Period] | None,
    against: Iterable[Against] = tuple(Against),
    as_of: dt.datetime | None = None,
) -> list[Comparison]:
    """Return the pairs of sealed months of text to compare.

    ``sources`` None means all sources with dated text. ``months`` are the later months of the
    pairs; None means all. Versions that were sealed after ``as_of`` are ignored.

    Raises:
        UsageError: a named source has no seal, or no dated text.
    """
    names = sources or _sources(store, as_of)
    comparisons: list[Comparison] = []
    for name in names:
        seals = _dated_texts(store, name, as_of)
        for month, later in seals.items():
            if months is None or month in months:
                comparisons += [Comparison(later, seal) for seal in _earlier(seals, month, against)]
    return comparisons


def _sources(store: Store, as_of: dt.datetime | None) -> list[str]:
    seals = list_sealed(store, as_of=as_of)
    return sorted({s.partition.source for s in seals if s.is_text and s.partition.month})


def _dated_texts(store: Store, source: str, as_of: dt.datetime | None) -> dict[Period, Seal]:
    """Return the seals of a source by month; raise an error if it has no dated text."""
    seals = list_sealed(store, source, as_of)
    if not seals:
        meant = did_you_mean(source, list_sealed_sources(store))
        raise UsageError(
            f"nothing of {source} is sealed; {meant}crawl or import months of it first"
        )
    kinds = sorted({seal.content for seal in seals if not seal.is_text})
    if kinds:
        raise UsageError(f"{source} holds {' and '.join(kinds)}; only months of text are compared")
    dated = {seal.partition.month: seal for seal in seals if seal.partition.month}
    if not dated:
        raise UsageError(f"{source} is undated, so it has no months whose text could be compared")
    return dict(sorted(dated.items()))


def _earlier(seals: dict[Period, Seal], month: Period, against: Iterable[Against]) -> list[Seal]:
    others = {Against.FIRST: min(seals), Against.PREVIOUS: month - 1}
    wanted = sorted({others[each] for each in against})
    return [seals[other] for other in wanted if other in seals and other < month]


def compare_texts(comparisons: Sequence[Comparison], settings: Settings) -> int:
    """Compute and land the comparisons that have not landed for the same texts.

    Each comparison lands as soon as it is computed, so a killed run can be repeated. The warehouse
    is locked only for landing.

    Raises:
        StorageError: a partition is missing or damaged; all earlier comparisons have landed.
    """
    store = Store(settings.home)
    with locked(settings), connected(settings) as connection:
        statements = Statements(connection)
        pending = [
            each for each in comparisons if not statements.has("text_comparisons", each.facts)
        ]
    for number, comparison in enumerate(pending, start=1):
        found = measure_difference(store, comparison.earlier, comparison.later)
        _land(comparison.facts | dataclasses.asdict(found), settings)
        progress.report("compare texts", number, len(pending))
    return len(pending)


def _land(row: dict[str, object], settings: Settings) -> None:
    """Land one comparison of two months, in place of a former one."""
    what = f"land the comparison of {row['source']} {row['month']} with {row['other_month']}"
    with locked(settings), connected(settings) as connection:
        statements = Statements(connection)
        table = pa.Table.from_pylist([row], schema=statements.columns("text_comparisons"))
        with statements.given(comparison=table), transaction(connection, what):
            key = {name: row[name] for name in _KEY}
            statements.replace("text_comparisons", key, "comparison")
