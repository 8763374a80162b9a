"""What a crawler is, and where the crawlers are."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, cast, get_args

import crawlers
from core.errors import UnknownName
from core.month import Month
from core.settings import Settings
from crawlers.http import Fetcher

DropReason = Literal[
    "robots", "permission", "http_404", "http_410", "http_403", "http_429_giveup", "timeout",
    "too_large", "bad_archive", "unsafe_path", "no_tex", "pdf_only", "withdrawn", "redirect_page",
    "disambiguation", "deleted", "suppressed", "parse_error", "no_date", "outside_month",
    "not_yet_created", "empty", "too_short", "too_long", "wrong_language", "low_quality",
    "generated_code", "binary", "licence", "exact_dup", "sample_cap", "unknown_format", "damaged",
    "too_small",
]  # fmt: skip
DROP_REASONS: tuple[str, ...] = get_args(DropReason)


@dataclass(frozen=True)
class SourceInfo:
    """What a source is, for the catalogue of sources and for the polite fetcher.

    Attributes:
        name: the module's name; the ``source`` column everywhere.
        title: for people.
        licence: of most items; each document carries its own.
        language: BCP 47 for prose, ``code:python`` and the like for code.
        category: genre: encyclopedia, science, code, news, …
        sites: base URL by site key; settings replace them (``TIDEMARK_SITES__<KEY>``).
        request_interval_s: seconds between two requests to one host.
        redirect_hosts: hosts that the sites may redirect to.
        robots_exempt_paths: exact paths of APIs that are offered to programs under rules of their
            own, though robots.txt closes them to crawlers of pages; the module states the rules.
    """

    name: str
    title: str
    licence: str
    language: str
    category: str
    sites: Mapping[str, str]
    request_interval_s: float = 1.0
    redirect_hosts: tuple[str, ...] = ()
    robots_exempt_paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Document:
    """One text, as a crawler found it. ``text`` is extracted, but not yet cleaned.

    Attributes:
        native_id: the site's own id (page id, arXiv id, ``owner/repo:path``).
        version_id: revision id, ``v1``, blob sha: which version of the item the text is.
        event_time: decides the month.
        date_kind: what ``event_time`` is: created, published, revised or committed.
        text_as_of: when the text itself is from, where that differs from ``event_time``.
        cluster_id: what depends on each other and is resampled together (page, repository).
        retrieved_at: when the site gave it.
        extra: what only this source knows; JSON types.
    """

    native_id: str
    version_id: str | None
    text: str
    title: str
    url: str
    event_time: dt.datetime
    date_kind: Literal["created", "published", "revised", "committed"]
    text_as_of: dt.datetime
    retrieved_at: dt.datetime
    licence: str
    attribution: str
    cluster_id: str | None = None
    category: str | None = None
    language: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Drop:
    """An item that was asked for and not kept, with the reason (one of ``DROP_REASONS``)."""

    native_id: str
    reason: DropReason
    detail: str = ""


@dataclass(frozen=True)
class CrawlContext:
    """What a crawler is given.

    Attributes:
        settings: for the few that a crawler reads itself (pace, contact, the scratch folder).
        fetcher: the only way to the network (git aside).
        limit: keep about this many documents, sampled with ``seed``; None keeps all.
        seed: recorded in the manifest.
    """

    settings: Settings
    fetcher: Fetcher
    limit: int | None = None
    seed: int = 0


class Crawler(Protocol):
    """The public face of a crawler module."""

    INFO: SourceInfo

    def fetch_month(self, month: Month, context: CrawlContext) -> Iterator[Document | Drop]:
        """Yield every item of the month, in an order that depends on the source alone.

        Raises:
            SourceUnavailable: the site fails in a way that may pass.
            SourceChanged: the site answers with something the parser does not know.
        """


def list_sources() -> list[str]:
    """Return the names of all sources: the modules of this room that have ``INFO``."""
    files = [path for folder in crawlers.__path__ for path in Path(folder).glob("*.py")]
    return sorted(path.stem for path in files if _declares_source(path))


def _declares_source(path: Path) -> bool:
    """Look into the file rather than import it: listing must stay cheap."""
    return "\nINFO = SourceInfo(" in path.read_text(encoding="utf-8")


def load_crawler(source: str) -> Crawler:
    """Import the crawler of a source.

    Raises:
        UnknownName: there is none of that name.
    """
    if source not in (known := list_sources()):
        raise UnknownName("source", source, known)
    return cast(Crawler, importlib.import_module(f"crawlers.{source}"))
