"""What a run is asked to do, checked before anything starts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from core.errors import AccessRefused, UsageError
from core.month import Month, require_complete
from core.permissions import require_permission
from core.settings import Settings
from core.storage import Store
from crawlers.contract import list_sources, load_crawler
from models.catalogue import find_model


@dataclass(frozen=True)
class Request:
    """Months, sources and models of a run; every name is known and every month is over.

    ``left_out`` says why sources that nobody named are not among them.
    """

    months: tuple[Month, ...]
    sources: tuple[str, ...]
    models: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def partitions(self) -> list[tuple[str, Month]]:
        """Return source and month of what is to be crawled: of what the sources have."""
        return plan_crawl(list(self.sources), list(self.months))[0]


def find_refused(sources: list[str] | None, settings: Settings) -> dict[str, str]:
    """Return the sources of a run that may not be crawled, and why: a permission is missing.

    Args:
        sources: None means all.
        settings: for the data root, where permissions are recorded.

    Raises:
        UnknownName: no such source.
        AccessRefused: one of those that were asked for by name may not be crawled.
        StorageError: a permission cannot be read.
    """
    store, refused = Store(settings.home), {}
    for source in sources or list_sources():
        try:
            require_permission(store, source, load_crawler(source).INFO.permission)
        except AccessRefused as error:
            if sources:
                raise
            refused[source] = str(error)
    return refused


def plan_crawl(
    sources: list[str] | None, months: list[Month], refused: Collection[str] = ()
) -> tuple[list[tuple[str, Month]], list[str]]:
    """Return what can be crawled, source by source, and why the rest cannot.

    Args:
        sources: None means all.
        months: in order.
        refused: sources to pass over.

    Raises:
        UnknownName: no such source.
        FutureMonth: the last month is not over.
        UsageError: none of the months is to be had of a source that was asked for by name.
    """
    require_complete(months[-1])
    partitions, lacks = [], []
    for source in sources or list_sources():
        if source in refused:
            continue
        info = load_crawler(source).INFO
        reasons = {month: info.lacks(month) for month in months}
        if sources and all(reasons.values()):
            raise UsageError(f"{source} {months[0]}: {reasons[months[0]]}")
        partitions += [(source, month) for month, reason in reasons.items() if not reason]
        lacks += [f"{source} {month}: {reason}" for month, reason in reasons.items() if reason]
    return partitions, lacks


def check_request(
    months: list[Month], sources: list[str] | None, models: list[str] | None, settings: Settings
) -> Request:
    """Fill in the defaults and refuse what cannot be done.

    Args:
        months: in order.
        sources: None means all.
        models: None means the ``models`` setting.
        settings: for the default and for the user's catalogue.

    Raises:
        UnknownName: no such source or model.
        FutureMonth: the last month is not over.
        UsageError: a source that was asked for has none of the months.
        AccessRefused: a source that was asked for needs a permission; others are left out.
    """
    refused = find_refused(sources, settings)
    partitions, _ = plan_crawl(sources, months, refused)
    chosen_sources = tuple(dict.fromkeys(source for source, _ in partitions))
    chosen_models = tuple(models or settings.models)
    for model in chosen_models:
        find_model(model, settings)
    return Request(tuple(months), chosen_sources, chosen_models, tuple(refused.values()))


def find_inaccessible(models: list[str] | None, settings: Settings) -> list[str]:
    """Say which models of a run the hub will not give, before hours are spent on the others.

    Takes seconds. Such a model fails when its turn comes; the others are scored all the same.

    Args:
        models: None means the ``models`` setting.
        settings: for the default, the user's catalogue and the hub.

    Raises:
        UnknownName: no such model.
    """
    entries = [find_model(model, settings) for model in models or settings.models]
    if all(entry.kind == "control" for entry in entries):
        return []
    from models.hub import check_access  # compressors need nothing of the hub's library

    problems = check_access(entries, settings)
    return [why if why.startswith(name) else f"{name}: {why}" for name, why in problems.items()]
