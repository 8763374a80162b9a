"""The registry of sources: the modules of this folder, and of ``gated/``, that have ``INFO``."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

import crawlers
import crawlers.gated
from core.errors import UnknownName
from core.month import Month
from crawlers.contract import CrawlContext, Crawler, Item, SourceInfo


def list_modules(package: ModuleType, kind: type[SourceInfo]) -> list[str]:
    """Return names of modules with an ``INFO`` of class ``kind``, without importing the modules."""
    mark = f"\nINFO = {kind.__name__}("
    files = [path for folder in package.__path__ for path in Path(folder).glob("*.py")]
    return sorted(path.stem for path in files if mark in path.read_text(encoding="utf-8"))


def list_sources() -> list[str]:
    """Return the names of the open sources: the modules of this package that have ``INFO``."""
    return list_modules(crawlers, SourceInfo)


def list_gated_sources() -> list[str]:
    """Return the names of the sources that need a permission; default runs leave them out."""
    return list_modules(crawlers.gated, SourceInfo)


def list_all_sources() -> list[str]:
    """Return the names of all sources, open and gated."""
    return sorted([*list_sources(), *list_gated_sources()])


def load_crawler(source: str) -> Crawler:
    """Import the crawler of a source or subset; raise UnknownName if there is no such source."""
    name, is_subset, subset = source.partition(":")
    if name not in (known := list_all_sources()):
        raise UnknownName("source", source, known)
    folder = "crawlers.gated" if name in list_gated_sources() else "crawlers"
    crawler = cast(Crawler, importlib.import_module(f"{folder}.{name}"))
    return _SubsetCrawler(crawler, subset) if is_subset else crawler


def is_source(source: str) -> bool:
    """Return True if a name is that of a source, or of a subset of one (``github_new:cpp``)."""
    return source.partition(":")[0] in list_all_sources()


class _SubsetCrawler:
    """The crawler of one subset of a source."""

    def __init__(self, crawler: Crawler, subset: str) -> None:
        self.INFO = crawler.INFO.subset(subset)
        self._crawler, self._subset = crawler, subset
        self._languages = (subset,) if crawler.INFO.language_sites else ()

    def fetch_month(self, month: Month, context: CrawlContext) -> Iterator[Item]:
        """Yield the subset's items of a month; see ``Crawler``."""
        context = replace(context, subset=self._subset, languages=self._languages)
        return self._crawler.fetch_month(month, context)
