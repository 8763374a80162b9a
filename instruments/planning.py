"""Checks of a run's months, sources and models before the run starts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from core.corpus.permissions import require_permission
from core.errors import AccessRefused, UsageError
from core.month import Month, Period, require_complete
from core.periods import kind_of, require_kind
from core.settings import Settings
from core.storage.store import Store
from crawlers.registry import list_sources, load_crawler
from models.catalogue import find_model
from models.choice import chosen_models


@dataclass(frozen=True)
class Request:
    """The checked months, sources and models of a run."""

    months: tuple[Period, ...]  # months, or half-months or weeks: of one kind
    sources: tuple[str, ...]
    models: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # why sources, or their last month, are left out

    def partitions(self) -> list[tuple[str, Period]]:
        """Return source and month of each partition to crawl."""
        partitions = []
        for source in self.sources:
            info = load_crawler(source).INFO
            partitions += [(source, month) for month in self.months if not info.lacks(month)]
        return partitions


@dataclass(frozen=True)
class CrawlPlan:
    """The partitions to crawl, sorted by source, and why others are left out."""

    partitions: list[tuple[str, Period]]
    refused: list[str]  # sources that lack a permission, with the reason
    lacks: dict[Period, list[str]]  # partitions that their source does not have, with the reason


def plan_crawl(
    sources: list[str] | None, months: Sequence[Period], settings: Settings
) -> CrawlPlan:
    """Plan the crawl of sources (None: all) and months, which must be sorted.

    Raises:
        UnknownName: there is no such source.
        FutureMonth: the last month has not ended.
        AccessRefused: an explicitly requested source lacks its permission.
        StorageError: a permission cannot be read.
        UsageError: an explicitly requested source covers none of the months, or has no months of
            this kind. Half-months and weeks are only of sources that are named.
    """
    require_complete(months[-1])
    if not sources and not isinstance(months[-1], Month):
        name = f"hackernews:{months[-1].kind}"
        raise UsageError(f"{months[-1]}: name the sources of {months[-1].kind}s, such as {name}")
    plan = CrawlPlan([], [], {month: [] for month in months})
    for source in sources or list_sources():
        info = load_crawler(source).INFO
        try:
            require_permission(Store(settings.home), source, info.permission)
        except AccessRefused as error:
            if sources:
                raise
            plan.refused.append(str(error))
            continue
        require_kind(source, months[0])
        reasons = {month: info.lacks(month) for month in months}
        if sources and all(reasons.values()):
            raise UsageError(f"{source} {months[0]}: {reasons[months[0]]}")
        for month, reason in reasons.items():
            if reason:
                plan.lacks[month].append(f"{source} {month}: {reason}")
            else:
                plan.partitions.append((source, month))
    return plan


def last_period(sources: Sequence[str] | None, now: dt.datetime | None = None) -> Period:
    """Return the last period of the sources' kind (default: month) that had ended at ``now``.

    Half-months and weeks must also have ended ``lag_days`` of the sources ago, since sites list
    items late. The schedule of monthly runs includes this delay.

    Raises:
        UsageError: the sources are of several kinds of periods.
        UnknownName: there is no such source.
    """
    kinds = {kind_of(source): source for source in sources or ()} or {Month: ""}  # an example each
    if len(kinds) > 1:
        names = " and ".join(kinds.values())
        raise UsageError(f"{names} have different periods; give them to runs of their own")
    [kind] = kinds
    if kind is Month:
        return kind.last_complete(now)
    lag_days = max(load_crawler(source).INFO.lag_days for source in sources or ())
    now = now or dt.datetime.now(dt.UTC)
    return kind.last_complete(now - dt.timedelta(days=lag_days))


def check_request(
    months: Sequence[Period],
    sources: list[str] | None,
    models: list[str] | None,
    settings: Settings,
) -> Request:
    """Check a request and return it with defaults filled in; ``months`` must be sorted.

    Raises:
        UnknownName: there is no such source or model.
        FutureMonth: the last month has not ended.
        UsageError: an explicitly requested source covers none of the months.
        AccessRefused: an explicitly requested source lacks a permission.
    """
    plan = plan_crawl(sources, months, settings)
    asked = tuple(models or chosen_models(settings))
    for model in asked:
        find_model(model, settings)
    crawled = tuple(dict.fromkeys(source for source, _ in plan.partitions))
    left_out = (*plan.refused, *plan.lacks[months[-1]])
    return Request(tuple(months), crawled, asked, left_out)
