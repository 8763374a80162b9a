"""What a run is asked to do, checked before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from core.month import Month, require_complete
from core.settings import Settings
from crawlers.contract import list_sources, load_crawler
from models.catalogue import find_model


@dataclass(frozen=True)
class Request:
    """Months, sources and models of a run; every name is known and every month is over."""

    months: tuple[Month, ...]
    sources: tuple[str, ...]
    models: tuple[str, ...]


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
    """
    require_complete(months[-1])
    chosen_sources = tuple(sources or list_sources())
    for source in chosen_sources:
        load_crawler(source)
    chosen_models = tuple(models or settings.models)
    for model in chosen_models:
        find_model(model, settings)
    return Request(tuple(months), chosen_sources, chosen_models)


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
