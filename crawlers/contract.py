"""The contract of a crawler, and the registry of sources."""

from __future__ import annotations

import datetime as dt
import hashlib
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Literal, Protocol, TypeVar, cast, get_args

import crawlers
from core.errors import ItemFailed, ItemUnavailable, SourceUnavailable, UnknownName, UsageError
from core.month import Month
from core.settings import Settings
from crawlers.web.fetcher import Fetcher
from crawlers.web.pacing import Turnstile

# Reasons to drop an item that the site returned or permanently refused.
DropReason = Literal[
    "robots", "permission", "http_404", "http_410", "http_403", "too_large", "bad_archive",
    "unsafe_path", "no_tex", "pdf_only", "withdrawn", "redirect_page", "disambiguation", "deleted",
    "suppressed", "parse_error", "no_date", "outside_month", "not_yet_created", "edited_later",
    "empty", "too_short", "too_long", "wrong_language", "low_quality", "boilerplate",
    "generated_code", "binary", "licence", "exact_dup", "near_dup", "forgotten", "sample_cap",
    "unknown_format", "damaged", "too_small",
]  # fmt: skip
DROP_REASONS: tuple[str, ...] = get_args(DropReason)
# Reasons for a failed item; a later run may succeed.
FailReason = Literal["http_429", "http_5xx", "network", "timeout", "damaged_answer", "browser"]
FAIL_REASONS: tuple[str, ...] = get_args(FailReason)

T = TypeVar("T")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]{2,8})?")


@dataclass(frozen=True)
class SourceInfo:
    """A source, as listed in the catalogue and used by the rate-limited fetcher."""

    name: str  # the module's name; also the value of every ``source`` column
    title: str  # display name
    licence: str  # of most items; each document states its own
    language: str  # BCP 47 for prose, ``code:python`` and the like for code
    category: str  # genre: encyclopedia, science, code, news, …
    sites: Mapping[str, str]  # base URL by key; ``TIDEMARK_SITES__<KEY>`` replaces one
    request_interval_s: float = 1.0  # seconds between two requests to one host
    redirect_hosts: tuple[str, ...] = ()  # hosts that the sites may redirect to
    shares_pace: bool = False  # True if all sites together share one connection and one interval
    # Exact paths of APIs that allow programs by rules of their own, although robots.txt disallows
    # them for page crawlers. The module states the rules.
    robots_exempt_paths: tuple[str, ...] = ()
    # For sources in several languages: base URL by site key, with ``{language}`` in it
    # (``https://{language}.wikipedia.org``).
    language_sites: Mapping[str, str] = field(default_factory=dict)
    first_month: Month = Month("2017-01")  # first month available
    last_month: Month | None = None  # last month available, if the source has ended
    recent_days: int | None = None  # a month is available for this many days from its first day
    monthly_bytes: int | None = None  # sample size per month, unless a limit is set
    min_documents: int | None = None  # a month with fewer is held back, unless ``--limit`` is set
    max_documents: int | None = None  # a month with more is held back
    # The same items return each month in newer versions. Each is compared with its previous
    # version, and never dropped as a duplicate of it.
    keeps_versions: bool = False
    # Why crawling the source needs a permission, and the contact for it
    # (``core.corpus.permissions``). None if no permission is needed.
    permission: str | None = None

    def lacks(self, month: Month, now: dt.datetime | None = None) -> str | None:
        """Return why the source cannot provide a month; None if it can."""
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
        """Return the base URL by site key, including sites of other languages.

        Raise UsageError if a language is no code such as ``de``, or the source has one language
        only.
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

    def open_fetcher(
        self,
        settings: Settings,
        languages: tuple[str, ...] = (),
        *,
        replace: bool = False,
        turnstile: Turnstile | None = None,
    ) -> Fetcher:
        """Return a rate-limited fetcher for the source's sites."""
        return Fetcher(
            settings,
            self.all_sites(languages),
            self.request_interval_s,
            self.redirect_hosts,
            robots_exempt_paths=self.robots_exempt_paths,
            revalidates=replace,
            shares_pace=self.shares_pace,
            turnstile=turnstile,
        )

    def site_key(self, key: str, language: str) -> str:
        """Return a site's key in a language: ``wikipedia``, or ``wikipedia_de``."""
        return key if language == self.language else f"{key}_{language.replace('-', '_')}"


@dataclass(frozen=True, kw_only=True)
class Document:
    """One text as the crawler read it. ``text`` is extracted, but not yet cleaned."""

    native_id: str  # the site's own id (page id, arXiv id, ``owner/repo:path``)
    version_id: str | None  # version of the text: revision id, ``v1``, blob sha
    text: str
    title: str
    url: str
    event_time: dt.datetime  # decides the month
    date_kind: Literal["created", "published", "revised", "committed"]  # of ``event_time``
    text_as_of: dt.datetime  # when the text was written, if that differs from ``event_time``
    retrieved_at: dt.datetime  # time of the response
    licence: str
    attribution: str
    cluster_id: str | None = None  # unit of resampling (page, repository)
    category: str | None = None
    language: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)  # fields of this source only; JSON


@dataclass(frozen=True)
class Drop:
    """A requested item that is not kept, with the reason (one of ``DROP_REASONS``)."""

    native_id: str
    reason: DropReason
    detail: str = ""


@dataclass(frozen=True)
class Failure:
    """An item that failed and may succeed later (one of ``FAIL_REASONS``)."""

    native_id: str
    reason: FailReason
    detail: str = ""


@dataclass(frozen=True)
class Repeat:
    """An item that a list contains again: it moved between pages during the crawl."""

    native_id: str
    detail: str = ""


Item = Document | Drop | Failure | Repeat


def missing_item(native_id: str, error: ItemUnavailable | ItemFailed) -> Drop | Failure:
    """Return the drop or failure of an item that the fetcher did not get."""
    if isinstance(error, ItemUnavailable):
        return Drop(native_id, cast(DropReason, error.reason), str(error))
    return Failure(native_id, cast(FailReason, error.reason), str(error))


def read_epoch(seconds: object) -> dt.datetime | None:
    """Parse whole seconds since 1970 (UTC); None for any other value."""
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC) if type(seconds) is int else None
    except (ValueError, OverflowError, OSError):
        return None


class Quota:
    """Counts the documents and bytes that a crawl has kept; a bound of None is no limit."""

    def __init__(self, limit: int | None, max_bytes: int | None) -> None:
        self._documents_left, self._bytes_left = limit, max_bytes

    def take(self, item: T) -> T:
        """Return an item; count it if it is a document."""
        if isinstance(item, Document) and self._documents_left is not None:
            self._documents_left -= 1
        if isinstance(item, Document) and self._bytes_left is not None:
            self._bytes_left -= len(item.text.encode())
        return item

    @property
    def is_full(self) -> bool:
        """True if the quota is reached; further items are dropped as ``sample_cap``."""
        return any(
            left is not None and left <= 0 for left in (self._documents_left, self._bytes_left)
        )


@dataclass(frozen=True)
class CrawlContext:
    """The input of a crawler."""

    settings: Settings  # for settings that a crawler reads itself (rate, contact, scratch)
    fetcher: Fetcher  # the only network access (except git)
    limit: int | None = None  # approximate number of documents, sampled with ``seed``
    seed: int = 0  # recorded in the manifest
    max_bytes: int | None = None  # approximate text size, sampled with ``seed``; None keeps all
    languages: tuple[str, ...] = ()  # for sources in several languages; empty: the source's own

    @property
    def is_sampled(self) -> bool:
        """True if a part of the month suffices; items must then come in the order of ``rank``."""
        return self.limit is not None or self.max_bytes is not None

    def quota(self) -> Quota:
        """Return a new quota with zero counts."""
        return Quota(self.limit, self.max_bytes)

    def sample(
        self,
        candidates: Iterable[T],  # in the site's order; samples take them by ``rank``
        native_id: Callable[[T], str],
        fetch: Callable[[T], Iterable[Item]],
    ) -> Iterator[Item]:
        """Fetch candidates and yield their items until the quota is full; drop the others."""
        if self.is_sampled:
            candidates = sorted(candidates, key=lambda each: self.rank(native_id(each)))
        quota = self.quota()
        for each in candidates:
            if quota.is_full:
                yield Drop(native_id(each), "sample_cap")
            else:
                yield from map(quota.take, fetch(each))

    def sample_list(
        self,
        listed: Iterable[T | Drop | Repeat],
        native_id: Callable[[T], str],
        fetch: Callable[[T], Iterable[Item]],
    ) -> Iterator[Item]:
        """Yield the drops and repeats of a list, then a sample of its candidates.

        Raise SourceUnavailable if the list ended early; the items listed before are yielded first.
        """
        candidates: list[T] = []
        failure = None
        try:
            for each in listed:
                if isinstance(each, Drop | Repeat):
                    yield each
                else:
                    candidates.append(each)
        except SourceUnavailable as error:
            failure = error
        yield from self.sample(candidates, native_id, fetch)
        if failure:
            raise failure

    def rank(self, key: str) -> bytes:
        """Return an item's sort key: a hash of seed and item, independent of other items."""
        return hashlib.sha256(f"{self.seed}/{key}".encode()).digest()


class Crawler(Protocol):
    """The public interface of a crawler module."""

    INFO: SourceInfo

    def fetch_month(self, month: Month, context: CrawlContext) -> Iterator[Item]:
        """Yield every item of the month, in an order that depends on the source alone.

        Catch ``ItemFailed`` of single items (``missing_item``).

        Raises:
            SourceUnavailable: a temporary failure. Earlier items are kept; the month is partial.
            SourceChanged: the parser does not know the form of a response.
            AccessRefused: robots.txt, or the site, forbids the lists.
        """


def list_modules(package: ModuleType, kind: type[SourceInfo]) -> list[str]:
    """Return the modules of a package that have ``INFO`` of a kind, without importing them."""
    mark = f"\nINFO = {kind.__name__}("
    files = [path for folder in package.__path__ for path in Path(folder).glob("*.py")]
    return sorted(path.stem for path in files if mark in path.read_text(encoding="utf-8"))


def list_sources() -> list[str]:
    """Return the names of all sources: the modules of this package that have ``INFO``."""
    return list_modules(crawlers, SourceInfo)


def load_crawler(source: str) -> Crawler:
    """Import the crawler of a source; raise UnknownName if there is no such source."""
    if source not in (known := list_sources()):
        raise UnknownName("source", source, known)
    return cast(Crawler, importlib.import_module(f"crawlers.{source}"))
