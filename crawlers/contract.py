"""Data types and interface of crawler modules."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar, cast, get_args

from core.corpus.partition import Content
from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceUnavailable,
    UnknownName,
    UsageError,
)
from core.month import Month, Period
from core.settings import Settings
from crawlers.pieces import MediaKind
from crawlers.web import urls
from crawlers.web.fetcher import Fetcher
from crawlers.web.pacing import Turnstile

# Reasons for dropping an item: it is unsuitable, or the site refuses it permanently.
DropReason = Literal[
    "robots", "permission", "http_404", "http_410", "http_403", "too_large", "bad_archive",
    "unsafe_path", "no_tex", "pdf_only", "withdrawn", "redirect_page", "disambiguation", "deleted",
    "suppressed", "parse_error", "no_date", "outside_month", "not_yet_created", "edited_later",
    "empty", "too_short", "too_long", "wrong_language", "low_quality", "boilerplate", "no_source",
    "generated_code", "binary", "licence", "exact_dup", "near_dup", "forgotten", "sample_cap",
    "unknown_format", "damaged", "too_small", "tells_outcome", "mojibake", "too_much_markup",
]  # fmt: skip
DROP_REASONS: tuple[str, ...] = get_args(DropReason)
# Reasons for a failed item; a later run may succeed.
FailReason = Literal["http_429", "http_5xx", "network", "timeout", "damaged_answer", "browser"]
FAIL_REASONS: tuple[str, ...] = get_args(FailReason)

T = TypeVar("T")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]{2,8})?")
_SUBSET = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}")


@dataclass(frozen=True)
class Regime:
    """A change of a site, or of the method of its crawler, that may change the texts."""

    first: Month  # first month with the change
    label: str  # a short name, without spaces
    why: str  # what has changed, and where that is documented


@dataclass(frozen=True)
class SourceInfo:
    """Description of a source, for the catalogue of sources and for the fetcher."""

    name: str  # name of the module, and value of all ``source`` columns
    title: str  # display name
    licence: str  # licence of most items; each document has its own value
    language: str  # BCP 47 tag for prose; for source code ``code:python``, for example
    category: str  # genre: encyclopedia, science, code, news, …
    sites: Mapping[str, str]  # base URL by site key; ``TIDEMARK_SITES__<KEY>`` overrides it
    request_interval_s: float = 1.0  # seconds between two requests to one host
    redirect_hosts: tuple[str, ...] = ()  # hosts that the sites may redirect to
    # True if all sites share one connection and one request interval; a name: also with all other
    # sources of this name. Downloads do not share it.
    shares_pace: bool | str = False
    # Paths that programs may use by the site's own rules, although robots.txt disallows them. A
    # path that ends in ``/*`` stands for all paths below it. The source's module cites the rules.
    robots_exempt_paths: tuple[str, ...] = ()
    # For sources in several languages, by site key: ``https://{language}.wikipedia.org``.
    language_sites: Mapping[str, str] = field(default_factory=dict)
    first_month: Month = Month("2017-01")  # first month available
    last_month: Month | None = None  # last month available, if the source has ended
    lag_days: int = 0  # a month is complete this many days after its end
    content: Content = "text"  # what the crawler yields: Document, or Medium of this kind
    monthly_bytes: int | None = None  # bytes per month if no limit is given; None: the whole month
    # True if months contain versions of the same items; a version is no duplicate of the last one.
    keeps_versions: bool = False
    # Why crawling needs a permission, and whom to ask for it (``core.corpus.permissions``).
    permission: str | None = None
    needs_contact: str | None = None  # why the sites require TIDEMARK_CONTACT, if they do
    regimes: tuple[Regime, ...] = ()  # dated changes of site or method, the oldest first
    # Subsets that are sources of their own, such as ``github_new:cpp``; without names, every name
    # of that form. Sources in several languages have one for each language without an entry.
    subset_kind: Literal["language", "programming language", "archive", "site", "age"] | None = None
    subset_names: tuple[str, ...] = ()
    # Subsets with descriptions of their own; a source with parts has no items besides theirs.
    parts: Mapping[str, SourceInfo] = field(default_factory=dict)
    # Why half-months and weeks cannot be crawled; None if they can, by a month's bounds alone.
    whole_months: str | None = "its crawler has only been checked with whole months"

    def subset(self, name: str) -> SourceInfo:
        """Return the description of a subset as a source; raise UnknownName if there is none."""
        if name in self.parts:
            return self.parts[name]
        kind = "language" if self.language_sites else self.subset_kind
        names = self.subset_names if kind else ()
        # Without listed names, any name of this form is a subset.
        form = _LANGUAGE if self.language_sites else _SUBSET
        if not (name in names or (kind and not names and form.fullmatch(name))):
            known = [f"{self.name}:{each}" for each in names or self.parts] or [self.name]
            raise UnknownName("source", f"{self.name}:{name}", known)
        languages = {"language": name, "programming language": f"code:{name}"}
        return replace(
            self,
            name=f"{self.name}:{name}",
            title=f"{self.title}: {name}",
            language=languages.get(kind or "", self.language),
            sites=self.all_sites((name,)) if self.language_sites else self.sites,
            language_sites={},
            subset_kind=None,
        )

    def by(self, kind: type[Period]) -> SourceInfo:
        """Return the source by another kind of period; UsageError if its crawler needs months."""
        name = f"{self.name}:{kind.kind}"
        if self.whole_months:
            raise UsageError(f"there is no source {name}, only {self.name}: {self.whole_months}")
        return replace(
            self,
            name=name,
            title=f"{self.title}, by {kind.kind}",
            monthly_bytes=self.monthly_bytes
            and self.monthly_bytes * Month.per_year // kind.per_year,
            subset_kind=None,
        )

    def regime_of(self, month: Period) -> str | None:
        """Return the label of the last change up to a month; None if there was no change."""
        labels = (it.label for it in reversed(self.regimes) if it.first.start <= month.start)
        return next(labels, None)

    def lacks(self, month: Period, now: dt.datetime | None = None) -> str | None:
        """Return why the source cannot provide a month; None if it can."""
        if month.start < self.first_month.start:
            return f"{self.name} begins with {self.first_month}"
        if self.last_month and month.end > self.last_month.end:
            return f"{self.name} ended with {self.last_month}"
        now = now or dt.datetime.now(dt.UTC)
        complete = month.end + dt.timedelta(days=self.lag_days)
        if month.end <= now < complete:
            return f"{self.name} lists {month} completely from {complete:%Y-%m-%d} on"
        return None

    def all_sites(self, languages: tuple[str, ...]) -> dict[str, str]:
        """Return the base URL of each site key, including the sites of ``languages``.

        Raise UsageError for an invalid language code, or one that the source does not offer.
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

    def require_contact(self, settings: Settings, languages: tuple[str, ...] = ()) -> None:
        """Raise AccessRefused if a site requires the operator's contact, and none is set."""
        # Sites on loopback, such as simulated ones, do not require it.
        if self.needs_contact is None or settings.operator_contact is not None:
            return
        given = settings.sites
        asked = [given.get(key, url) for key, url in self.all_sites(languages).items()]
        live = [url for url in asked if not urls.is_loopback(url)]
        if live:
            raise AccessRefused(
                f"{self.name}: {', '.join(live)} require the operator's contact, and "
                f"TIDEMARK_CONTACT is {settings.contact!r}: {self.needs_contact}; set "
                "TIDEMARK_CONTACT to your e-mail address or the https:// address of your own page"
            )

    def open_fetcher(
        self,
        settings: Settings,
        languages: tuple[str, ...] = (),
        *,
        replace: bool = False,
        use_cache: bool = True,
        turnstile: Turnstile | None = None,
    ) -> Fetcher:
        """Return a rate-limited fetcher for the source's sites; see ``require_contact``."""
        self.require_contact(settings, languages)
        return Fetcher(
            settings,
            self.all_sites(languages),
            self.request_interval_s,
            self.redirect_hosts,
            use_cache,
            robots_exempt_paths=self.robots_exempt_paths,
            revalidates=replace,
            shares_pace=self.shares_pace,
            turnstile=turnstile,
        )

    def site_key(self, key: str, language: str) -> str:
        """Return the key of a site in a language, such as ``wikipedia`` or ``wikipedia_de``."""
        return key if language == self.language else f"{key}_{language.replace('-', '_')}"


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """Common fields of documents and media."""

    native_id: str  # the site's own id (page id, arXiv id, ``owner/repo:path``)
    version_id: str | None  # id of the text's version: revision id, ``v1``, git blob id
    title: str
    url: str
    event_time: dt.datetime  # the document belongs to the month of this time
    date_kind: Literal["created", "published", "revised", "committed", "captured"]  # of event_time
    text_as_of: dt.datetime  # time of the text's last edit; may differ from ``event_time``
    retrieved_at: dt.datetime  # time at which the site sent the response
    licence: str
    attribution: str
    cluster_id: str | None = None  # documents with the same id are resampled together
    category: str | None = None  # None: that of the source
    extra: Mapping[str, object] = field(default_factory=dict)  # further metadata, stored as JSON


@dataclass(frozen=True, kw_only=True)
class Document(_Kept):
    """One document from a crawler. ``text`` is plain text, but not yet cleaned."""

    text: str
    language: str | None = None  # None: that of the source
    is_plain: bool = False  # True if no markup is left, and tags in the text are words of it


@dataclass(frozen=True, kw_only=True)
class Medium(_Kept):
    """A piece of an image or a recording. ``cluster_id`` is the file's id, for takedown, too."""

    kind: MediaKind
    data: bytes  # a patch or a segment in the formats of ``pieces.py``


@dataclass(frozen=True)
class Drop:
    """A requested item that is not kept, with the reason (one of ``DROP_REASONS``)."""

    native_id: str
    reason: DropReason
    detail: str = ""


@dataclass(frozen=True)
class Failure:
    """An item that failed, but may succeed later, with a reason (one of ``FAIL_REASONS``)."""

    native_id: str
    reason: FailReason
    detail: str = ""


@dataclass(frozen=True)
class Repeat:
    """An item that a list contains again, because it moved between pages during the crawl."""

    native_id: str
    detail: str = ""


Item = Document | Medium | Drop | Failure | Repeat


def missing_item(native_id: str, error: ItemUnavailable | ItemFailed) -> Drop | Failure:
    """Return the Drop or Failure of an item that the fetcher could not get."""
    if isinstance(error, ItemUnavailable):
        return Drop(native_id, cast(DropReason, error.reason), str(error))
    return Failure(native_id, cast(FailReason, error.reason), str(error))


class Quota:
    """Counter of the documents and bytes that a crawl may still keep; None stands for no limit."""

    def __init__(self, limit: int | None, max_bytes: int | None) -> None:
        self._documents_left = limit
        self._bytes_left = max_bytes

    def take(self, item: T) -> T:
        """Return the item unchanged; if it is kept, subtract it from the quota."""
        if isinstance(item, Document | Medium):
            content = item.text.encode() if isinstance(item, Document) else item.data
            if self._documents_left is not None:
                self._documents_left -= 1
            if self._bytes_left is not None:
                self._bytes_left -= len(content)
        return item

    @property
    def is_full(self) -> bool:
        """True if the quota is reached; further items are dropped as ``sample_cap``."""
        both = (self._documents_left, self._bytes_left)
        return any(left is not None and left <= 0 for left in both)


@dataclass(frozen=True)
class CrawlContext:
    """Settings, fetcher and sample options that a crawler receives."""

    settings: Settings  # the user's settings, such as contact address and scratch folder
    fetcher: Fetcher  # the crawler's only network access, except git
    limit: int | None = None  # approximate number of documents to sample; None: no limit
    seed: int = 0  # seed of the sample; the manifest records it
    max_bytes: int | None = None  # approximate bytes of text to sample; None: no limit
    languages: tuple[str, ...] = ()  # languages to crawl; empty: only the source's own
    subset: str | None = None  # name of the subset to crawl; None: the source's usual items

    @property
    def is_sampled(self) -> bool:
        """True if a limit is set; a crawler must then yield its items in the order of ``rank``."""
        return self.limit is not None or self.max_bytes is not None

    def quota(self) -> Quota:
        """Return a new quota with the limits of this crawl."""
        return Quota(self.limit, self.max_bytes)

    def sample(
        self,
        candidates: Iterable[T],  # in the site's order; sampled crawls sort them by ``rank``
        native_id: Callable[[T], str],
        fetch: Callable[[T], Iterable[Item]],
    ) -> Iterator[Item]:
        """Fetch candidates and yield their items; drop candidates once the quota is full."""
        if self.is_sampled:
            candidates = sorted(candidates, key=lambda each: self.rank(native_id(each)))
        quota = self.quota()
        for each in candidates:
            if quota.is_full:
                yield Drop(native_id(each), "sample_cap")
                continue
            for item in fetch(each):
                yield quota.take(item)
                if quota.is_full and isinstance(item, Medium):
                    break  # the rest of a file is not read

    def sample_list(
        self,
        listed: Iterable[T | Drop],
        native_id: Callable[[T], str],
        fetch: Callable[[T], Iterable[Item]],
    ) -> Iterator[Item]:
        """Yield the listed drops, a Repeat for each id listed again, and the items of ``sample``.

        If ``listed`` raises SourceUnavailable, sample the candidates so far; then raise the error.
        """
        found: dict[str, T | Drop] = {}
        failure = None
        try:
            for each in listed:
                name = each.native_id if isinstance(each, Drop) else native_id(each)
                if name in found:
                    yield Repeat(name, "listed before")
                elif isinstance(each, Drop):
                    yield each
                found.setdefault(name, each)
        except SourceUnavailable as error:
            failure = error
        candidates = [each for each in found.values() if not isinstance(each, Drop)]
        yield from self.sample(candidates, native_id, fetch)
        if failure:
            raise failure

    def rank(self, key: str) -> bytes:
        """Return an item's sort key: a hash of seed and ``key``, independent of other items."""
        return hashlib.sha256(f"{self.seed}/{key}".encode()).digest()


class Crawler(Protocol):
    """The public interface of a crawler module."""

    INFO: SourceInfo

    def fetch_month(self, month: Period, context: CrawlContext) -> Iterator[Item]:
        """Yield every item of the month in a deterministic order.

        ``month`` is a Month, unless the INFO of the crawler lets it have other periods. An
        implementation catches the ItemFailed of a single item and yields ``missing_item``.

        Raises:
            SourceUnavailable: a temporary failure. Items yielded so far become a partial month.
            SourceChanged: a response has a form that the parser does not know.
            AccessRefused: robots.txt or the site forbids access to the lists of items.
        """
