"""What a crawler is, and where the crawlers are."""

from __future__ import annotations

import datetime as dt
import hashlib
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, cast, get_args

import crawlers
from core.errors import ItemFailed, ItemUnavailable, UnknownName, UsageError
from core.month import Month
from core.settings import Settings
from crawlers.http import Fetcher

# Why an item that a site gave, or refused for good, is not kept.
DropReason = Literal[
    "robots", "permission", "http_404", "http_410", "http_403", "too_large", "bad_archive",
    "unsafe_path", "no_tex", "pdf_only", "withdrawn", "redirect_page", "disambiguation", "deleted",
    "suppressed", "parse_error", "no_date", "outside_month", "not_yet_created", "edited_later",
    "empty", "too_short", "too_long", "wrong_language", "low_quality", "boilerplate",
    "generated_code", "binary", "licence", "exact_dup", "near_dup", "forgotten", "sample_cap",
    "unknown_format", "damaged", "too_small",
]  # fmt: skip
DROP_REASONS: tuple[str, ...] = get_args(DropReason)
# Why an item could not be had, though it may be had another time.
FailReason = Literal["http_429", "http_5xx", "network", "timeout", "damaged_answer", "browser"]
FAIL_REASONS: tuple[str, ...] = get_args(FailReason)

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]{2,8})?")


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
        shares_pace: the sites' limits are over all of them together: one connection, one interval.
        robots_exempt_paths: exact paths of APIs that are offered to programs under rules of their
            own, though robots.txt closes them to crawlers of pages; the module states the rules.
        language_sites: of sources that exist in other languages, too: base URL by site key, with
            ``{language}`` in it (``https://{language}.wikipedia.org``).
        first_month: the first that the source has.
        last_month: the last that it has, where it has ended.
        recent_days: of a site that forgets: a month can be crawled until so many days after its
            first day.
        monthly_bytes: how much text a month is sampled down to where no limit is given; None keeps
            all.
        min_documents: a month that kept fewer is held back, if it is no sample by ``--limit``.
        max_documents: a month that kept more is held back.
        keeps_versions: the same items come back each month, as newer versions; they are compared
            with their former version, never dropped as its duplicates.
        permission: why nobody crawls the source without a permission, and whom to ask for it
            (``core.permissions``); None where it needs none.
    """

    name: str
    title: str
    licence: str
    language: str
    category: str
    sites: Mapping[str, str]
    request_interval_s: float = 1.0
    redirect_hosts: tuple[str, ...] = ()
    shares_pace: bool = False
    robots_exempt_paths: tuple[str, ...] = ()
    language_sites: Mapping[str, str] = field(default_factory=dict)
    first_month: Month = Month("2017-01")
    last_month: Month | None = None
    recent_days: int | None = None
    monthly_bytes: int | None = None
    min_documents: int | None = None
    max_documents: int | None = None
    keeps_versions: bool = False
    permission: str | None = None

    def lacks(self, month: Month, now: dt.datetime | None = None) -> str | None:
        """Return why the source cannot give a month, or None where it can."""
        if month < self.first_month:
            return f"{self.name} begins with {self.first_month}"
        if self.last_month and month > self.last_month:
            return f"{self.name} ended with {self.last_month}"
        if self.recent_days is not None:
            age = (now or dt.datetime.now(dt.UTC)) - month.start
            if age > dt.timedelta(days=self.recent_days):
                return f"{self.name} keeps {self.recent_days} days only, and {month} is older"
        return None

    def all_sites(self, languages: tuple[str, ...]) -> dict[str, str]:
        """Return the base URL by site key, those of other languages included.

        Raises:
            UsageError: a language is no code such as ``de``, or the source is in one language only.
        """
        sites = dict(self.sites)
        for language in languages:
            if not _LANGUAGE.fullmatch(language):
                raise UsageError(f"{self.name}: {language!r} is no language code, such as de")
            if language != self.language and not self.language_sites:
                raise UsageError(f"{self.name} is in {self.language} only, not in {language}")
            for key, url in self.language_sites.items():
                sites.setdefault(self.site_key(key, language), url.format(language=language))
        return sites

    def site_key(self, key: str, language: str) -> str:
        """Return the key of a site in a language: ``wikipedia``, or ``wikipedia_de``."""
        return key if language == self.language else f"{key}_{language.replace('-', '_')}"


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
class Failure:
    """An item that could not be had, but may be another time (one of ``FAIL_REASONS``)."""

    native_id: str
    reason: FailReason
    detail: str = ""


@dataclass(frozen=True)
class Repeat:
    """An item that a list named again: an item moved between pages while they were read."""

    native_id: str
    detail: str = ""


Item = Document | Drop | Failure | Repeat


def missing_item(native_id: str, error: ItemUnavailable | ItemFailed) -> Drop | Failure:
    """Return what a crawl says of an item that the fetcher did not get."""
    if isinstance(error, ItemUnavailable):
        return Drop(native_id, cast(DropReason, error.reason), str(error))
    return Failure(native_id, cast(FailReason, error.reason), str(error))


class Quota:
    """Counts what a crawl has kept against what it is to keep.

    Args:
        limit: documents; None sets no bound.
        max_bytes: of text, UTF-8; None sets no bound.
    """

    def __init__(self, limit: int | None, max_bytes: int | None) -> None:
        self._documents_left, self._bytes_left = limit, max_bytes

    def take(self, document: Document) -> Document:
        """Count a document, and return it."""
        if self._documents_left is not None:
            self._documents_left -= 1
        if self._bytes_left is not None:
            self._bytes_left -= len(document.text.encode())
        return document

    @property
    def is_full(self) -> bool:
        """Whether no more documents are wanted; the rest is dropped as ``sample_cap``."""
        return any(
            left is not None and left <= 0 for left in (self._documents_left, self._bytes_left)
        )


@dataclass(frozen=True)
class CrawlContext:
    """What a crawler is given.

    Attributes:
        settings: for the few that a crawler reads itself (pace, contact, the scratch folder).
        fetcher: the only way to the network (git aside).
        limit: keep about this many documents, sampled with ``seed``; None keeps all.
        seed: recorded in the manifest.
        max_bytes: keep about this much text, sampled with ``seed``; None keeps all.
        languages: to crawl, where the source is in several; empty means the source's own.
    """

    settings: Settings
    fetcher: Fetcher
    limit: int | None = None
    seed: int = 0
    max_bytes: int | None = None
    languages: tuple[str, ...] = ()

    @property
    def is_sampled(self) -> bool:
        """Whether a part of the month may do, so that items have to come in the order of ranks."""
        return self.limit is not None or self.max_bytes is not None

    def quota(self) -> Quota:
        """Return a count of what is kept, at its start."""
        return Quota(self.limit, self.max_bytes)

    def rank(self, key: str) -> bytes:
        """Return where an item comes in the sample: at random, but always the same.

        A hash of seed and item, so that one item more does not change all the others.
        """
        return hashlib.sha256(f"{self.seed}/{key}".encode()).digest()


class Crawler(Protocol):
    """The public face of a crawler module."""

    INFO: SourceInfo

    def fetch_month(self, month: Month, context: CrawlContext) -> Iterator[Item]:
        """Yield every item of the month, in an order that depends on the source alone.

        Raises:
            SourceUnavailable: the site fails in a way that may pass. What came before is kept, and
                the month is partial. (``ItemFailed`` of one item is to be caught:
                ``missing_item``.)
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
