"""The registry of sources: modules with ``INFO`` of this folder, ``dumps/`` and ``gated/``."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import crawlers
import crawlers.dumps
import crawlers.gated
from core.errors import UnknownName, UsageError
from core.month import Month, Period
from core.periods import split_source
from crawlers.contract import CrawlContext, Crawler, Item, SourceInfo

_OPEN = (crawlers, crawlers.dumps)


def list_modules(package: ModuleType, kind: type[SourceInfo]) -> list[str]:
    """Return names of modules with an ``INFO`` of class ``kind``, without importing the modules."""
    mark = f"\nINFO = {kind.__name__}("
    files = [path for folder in package.__path__ for path in Path(folder).glob("*.py")]
    return sorted(path.stem for path in files if mark in path.read_text(encoding="utf-8"))


def list_sources() -> list[str]:
    """Return the names of the open sources: modules that have ``INFO`` here and in ``dumps``."""
    return sorted(each for package in _OPEN for each in list_modules(package, SourceInfo))


def list_gated_sources() -> list[str]:
    """Return the names of the sources that need a permission; default runs leave them out."""
    return list_modules(crawlers.gated, SourceInfo)


def list_all_sources() -> list[str]:
    """Return the names of all sources, open and gated."""
    return sorted([*list_sources(), *list_gated_sources()])


def load_crawler(source: str) -> Crawler:
    """Import the crawler of a source or subset, by months or by other periods.

    Raises:
        UnknownName: there is no such source. UsageError: its crawler needs whole months.
    """
    by_month, kind = split_source(source)
    name, is_subset, subset = by_month.partition(":")
    if name not in (known := list_all_sources()):
        raise UnknownName("source", source, known)
    packages = (*_OPEN, crawlers.gated)
    package = next(each for each in packages if name in list_modules(each, SourceInfo))
    crawler = cast(Crawler, importlib.import_module(f"{package.__name__}.{name}"))
    if is_subset:
        crawler = _subset_crawler(crawler, subset)
    return crawler if kind is Month else _DerivedCrawler(crawler.INFO.by(kind), crawler, {})


def is_source(source: str) -> bool:
    """Return True if ``load_crawler`` has a crawler of this name; names of imports have none."""
    try:
        load_crawler(source)
    except UsageError:
        return False
    return True


@dataclass
class _DerivedCrawler:
    """The crawler of a source that is made of another: of a subset, or of another period."""

    INFO: SourceInfo
    crawler: Crawler
    changes: Mapping[str, Any]  # values of the context that differ, by name

    def fetch_month(self, month: Period, context: CrawlContext) -> Iterator[Item]:
        """Yield the items of a month; see ``Crawler``."""
        return self.crawler.fetch_month(month, replace(context, **self.changes))


def _subset_crawler(crawler: Crawler, subset: str) -> Crawler:
    languages = (subset,) if crawler.INFO.language_sites else ()
    given = {"subset": subset, "languages": languages}
    return _DerivedCrawler(crawler.INFO.subset(subset), crawler, given)
