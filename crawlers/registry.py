"""The registry of sources: modules with ``INFO`` and ``fetch_month``.

A source of the kernel is a line of ``OPEN`` or ``QUESTIONS``. An extra states the same tuples,
``ON_DEMAND`` and ``GATED`` in its module ``sources``. A package of another project states its open
sources in the group ``tidemark.sources`` of its entry points, as ``name = "module"``. The name of a
source is the last part of its module's name.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from core.errors import UnknownName, UsageError
from core.month import Month, Period
from core.periods import split_source
from core.plugins import import_parts, list_entry_points
from crawlers.contract import CrawlContext, Crawler, Item, SourceInfo
from crawlers.git.entries import list_names

OPEN: tuple[str, ...] = (
    "crawlers.git_posts",
    "crawlers.hackernews",
    "crawlers.wikipedia_new",
)
GIT_POSTS = "git_posts"  # its parts are the files of a folder
QUESTIONS: tuple[str, ...] = ("crawlers.questions.manifold",)


def list_sources() -> list[str]:
    """Return the names of the open sources; of a source of parts, only the names of its parts."""
    names = [*_open_modules()]
    names.remove(GIT_POSTS)
    return sorted([*names, *(f"{GIT_POSTS}:{name}" for name in list_names())])


def list_on_demand_sources() -> list[str]:
    """Return the names of the open sources that no default run has, such as very late ones."""
    return sorted(_of_extras("ON_DEMAND"))


def list_gated_sources() -> list[str]:
    """Return the names of the sources that need a permission; default runs leave them out."""
    return sorted(_gated_modules())


def list_all_sources() -> list[str]:
    """Return the names of all sources: open, on demand, and gated."""
    return sorted([*list_sources(), *list_on_demand_sources(), *list_gated_sources()])


def question_modules() -> dict[str, str]:
    """Return the modules of the sources of questions, by name of the source."""
    return _by_name(QUESTIONS) | _of_extras("QUESTIONS")


def _open_modules() -> dict[str, str]:
    strangers = {point.name: point.value for point in list_entry_points("sources")}
    return strangers | _by_name(OPEN) | _of_extras("OPEN")


def _gated_modules() -> dict[str, str]:
    return _of_extras("GATED")


def _of_extras(kind: str) -> dict[str, str]:
    """Return the modules that extras state in the tuple ``kind``, by name of the source."""
    found: dict[str, str] = {}
    for part in import_parts("sources"):
        found |= _by_name(getattr(part, kind, ()))
    return found


def _by_name(modules: tuple[str, ...]) -> dict[str, str]:
    return {module.rpartition(".")[2]: module for module in modules}


def load_crawler(source: str) -> Crawler:
    """Import the crawler of a source or subset, by months or by other periods.

    Raises:
        UnknownName: there is no such source. UsageError: its crawler needs whole months.
    """
    by_month, kind = split_source(source)
    name, is_subset, subset = by_month.partition(":")
    modules = _open_modules() | _of_extras("ON_DEMAND") | _gated_modules()
    if name not in modules:
        raise UnknownName("source", source, sorted(modules))
    crawler = cast(Crawler, importlib.import_module(modules[name]))
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
