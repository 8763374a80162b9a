"""MediaWiki's action API for the crawlers of Wikipedia and Wikinews.

Documentation: https://www.mediawiki.org/wiki/API:Query and API:Etiquette on the same site. The API
reports errors with status 200, and splits long results into several responses.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged, SourceUnavailable
from core.json import JsonObject
from core.month import Period
from crawlers.contract import Drop, Failure, missing_item
from crawlers.web.fetcher import Fetched, Fetcher

SITE = "wikipedia"
BASE_URL = "https://en.wikipedia.org"
LANGUAGE_SITES = {SITE: "https://{language}.wikipedia.org"}
API_PATH = "/w/api.php"
# robots.txt disallows the path /w/ for page crawlers. The API allows programs that follow its
# etiquette: one request at a time, maxlag, Retry-After, a user agent that names tidemark.
ROBOTS_EXEMPT_PATHS = (API_PATH,)
# Wikimedia's limits of 2026 hold for all its sites together
# (https://www.mediawiki.org/wiki/Wikimedia_APIs/Rate_limits): 200 requests a minute, three at once.
# The sources share one request a second; a download of a dump may go on beside them.
PACE = "wikimedia"
NEEDS_CONTACT = (
    "Wikimedia allows programs 200 requests a minute if their user agent names who runs them, and "
    "10 if not, or if it names a project's page"
)
MAX_BITS = 63  # of an id
BATCH = 50  # maximum ids or titles per request, for clients without bot rights

_COMMON_PARAMS: Mapping[str, str | int] = {
    "action": "query",
    "format": "json",
    "formatversion": 2,
    "maxlag": 5,
    "errorformat": "plaintext",
}
# Prefixes of error codes that mean a temporary failure.
_TEMPORARY_ERRORS = ("maxlag", "ratelimited", "readonly", "internal_api_error")
_SECOND = dt.timedelta(seconds=1)  # the resolution of MediaWiki's timestamps

T = TypeVar("T")
Found = dict[int, "Revision | Drop | Failure"]  # by page id: revision, or why it is missing
Piece = tuple[JsonObject, dt.datetime]  # a response's ``query`` object and its time


@dataclass(frozen=True)
class Edition:
    """One wiki: a project in one language, such as the German Wikipedia."""

    language: str = "en"  # language of the wiki's text
    site: str = SITE  # the fetcher's key for the wiki's base URL
    project: str = SITE  # second level of the host name: wikipedia, wikinews
    is_home: bool = True  # True for the source's main language, whose native ids have no prefix

    @property
    def address(self) -> str:
        """Return the wiki's public URL, even if requests go to a simulated site."""
        return f"https://{self.language}.{self.project}.org"

    def native_id(self, key: object) -> str:
        """Return a native id for a page id or title: ``123``, or ``de:123`` in other languages."""
        return str(key) if self.is_home else f"{self.language}:{key}"


@dataclass(frozen=True)
class Revision:
    """One version of a page."""

    page_id: int
    revision_id: int
    timestamp: dt.datetime
    wikitext: str | None  # None if the text was not requested, or is hidden
    is_hidden: bool  # the text was removed from public view
    retrieved_at: dt.datetime  # time of the response


class MediaWiki:
    """A client of one wiki, the English Wikipedia by default.

    Raises:
        ItemFailed: the wiki stayed overloaded in all tries; the caller may skip the item.
        AccessRefused: the wiki refuses the client.
        SourceChanged: a response violates the protocol.
    """

    def __init__(self, fetcher: Fetcher, edition: Edition | None = None) -> None:
        self._fetcher = fetcher
        self.edition = edition or Edition()

    def query(self, **params: str | int) -> Iterator[Piece]:
        """Yield each response to a query, and follow ``continue`` until the list ends."""
        # If the wiki rejects the ``continue`` that it returned (``badcontinue``), the list is read
        # once more from its start. Rows may then repeat. The second reading adds the parameter
        # ``requestid``, so its URLs are new and no response comes from the cache.
        try:
            yield from self._pieces(params)
        except _CannotContinue:
            again = f"again-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}"
            yield from self._pieces({**params, "requestid": again})

    def _pieces(self, params: Mapping[str, str | int]) -> Iterator[Piece]:
        """Yield each response's ``query`` object and its time, until no ``continue`` is left."""
        continuation: dict[str, str | int] = {}
        used_continuations: list[dict[str, str | int]] = []
        while continuation not in used_continuations:
            used_continuations.append(continuation)
            fetched = self._get({**_COMMON_PARAMS, **params, **continuation})
            response = fetched.json()
            if continuation and "badcontinue" in _error_codes(response):
                raise _CannotContinue(f"{fetched.url}: the wiki cannot continue its own list")
            if not isinstance(response, dict) or _error_codes(response):
                raise unexpected(fetched.url, "a response without errors", response)
            yield take(response, "query", dict, default={}), fetched.retrieved_at
            if "continue" not in response:
                return
            continuation = take(response, "continue", dict)
        raise unexpected(fetched.url, "a continuation that leads on", continuation)

    def pages(self, **params: str | int) -> list[JsonObject]:
        """Return all pages of a query; ``revisions`` of each page is a list of Revision."""
        return _merge(self.query(**params))

    def history(self, page_id: int, **params: str | int) -> list[Revision] | None:
        """Return a page's revisions without text, in the requested order; None if deleted."""
        pages = _merge(self._history(page_id, **params))
        if any(page.get("missing") for page in pages):
            return None
        return [revision for page in pages for revision in page["revisions"]]

    def last_revision_before(self, page_id: int, end: dt.datetime) -> Revision | None:
        """Return a page's last revision before an instant; None if the page did not exist yet."""
        start = stamp(end - _SECOND)  # inclusive
        # Use the first response only: following ``continue`` would read the page's whole history.
        pieces = itertools.islice(
            self._history(page_id, rvdir="older", rvlimit=1, rvstart=start), 1
        )
        found = [revision for page in _merge(pieces) for revision in page["revisions"]]
        return found[0] if found else None

    def texts(self, revision_ids: Sequence[int]) -> dict[int, Revision]:
        """Return revisions with their text, by revision id; deleted revisions are missing."""
        found: dict[int, Revision] = {}
        for batch in batches(revision_ids, BATCH):
            pages = self.pages(
                prop="revisions", revids=join(batch), rvprop="ids|timestamp|content", rvslots="main"
            )
            found |= {row.revision_id: row for page in pages for row in page["revisions"]}
        return found

    def add_texts(self, found: Found) -> Found:
        """Return ``found`` with the revisions' texts; missing ones become a drop or failure."""
        filled = dict(found)
        revisions = {key: row for key, row in found.items() if isinstance(row, Revision)}
        for batch in batches(list(revisions), BATCH):
            try:
                texts = self.texts([revisions[page_id].revision_id for page_id in batch])
            except ItemFailed as error:
                filled |= {key: missing_item(self.edition.native_id(key), error) for key in batch}
                continue
            for page_id in batch:
                revision_id = revisions[page_id].revision_id
                gone = f"revision {revision_id} is gone"
                is_gone = Drop(self.edition.native_id(page_id), "deleted", gone)
                filled[page_id] = texts.get(revision_id, is_gone)
        return filled

    def _history(self, page_id: int, **params: str | int) -> Iterator[Piece]:
        return self.query(prop="revisions", rvprop="ids|timestamp", pageids=page_id, **params)

    def _get(self, params: Mapping[str, str | int]) -> Fetched:
        """Request the API, with the wiki's token if there is one; raise if the API refuses us."""
        site = self.edition.site
        token = self._fetcher.token(site)  # optional owner-only OAuth 2 token for higher limits
        headers = {"Authorization": f"Bearer {token.get_secret_value()}"} if token else {}
        try:
            return self._fetcher.get(site, API_PATH, params, headers=headers, is_busy=_is_busy)
        except ItemUnavailable as error:  # the whole API is unavailable, not one item
            if error.reason in ("http_403", "robots", "permission"):
                raise AccessRefused(f"the wiki's API refuses us: {error}") from error
            raise SourceUnavailable(f"the wiki's API cannot be reached: {error}") from error


def month_window(month: Period) -> tuple[str, str]:
    """Return the first and the last second of a month; the API's windows include their end."""
    return stamp(month.start), stamp(month.end - _SECOND)


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, ``size`` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def join(values: Sequence[object]) -> str:
    """Join values with ``|`` into one API parameter."""
    return "|".join(map(str, values))


def stamp(moment: dt.datetime) -> str:
    """Format an instant for the API, such as ``2024-04-01T00:00:00Z``."""
    return f"{moment.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_time(row: Mapping[str, Any]) -> dt.datetime:
    """Return an object's ``timestamp``; raise SourceChanged if it is missing or not in UTC."""
    text = take(row, "timestamp", str)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise unexpected("timestamp", "an ISO 8601 instant", text) from error
    if moment.utcoffset() != dt.timedelta(0):
        raise unexpected("timestamp", "an instant in UTC", text)
    return moment


def take(row: object, name: str, kind: type[T], default: T | None = None) -> T:
    """Return a field of a JSON object.

    Raise SourceChanged if the field has another type, is a number above MAX_BITS bits, or is
    missing and there is no default.
    """
    value = row.get(name, default) if isinstance(row, Mapping) else None
    is_bool = isinstance(value, bool) and kind is not bool  # in Python, a bool is an int
    is_huge = isinstance(value, int) and value.bit_length() > MAX_BITS
    if not isinstance(value, kind) or is_bool or is_huge:
        raise unexpected(f"field {name!r}", kind.__name__, row)
    return value


def list_rows(response: Mapping[str, Any], name: str) -> list[JsonObject]:
    """Return the list of objects in a field, [] if absent; raise SourceChanged if malformed."""
    rows = take(response, name, list, default=[])
    if not all(isinstance(row, dict) for row in rows):
        raise unexpected(f"field {name!r}", "a list of objects", rows)
    return rows


def _merge(pieces: Iterable[Piece]) -> list[JsonObject]:
    """Return the pages of several responses, one object per page, with its distinct revisions."""
    pages: dict[int | str, JsonObject] = {}
    for piece, retrieved_at in pieces:
        for page in list_rows(piece, "pages"):
            has_id = "pageid" in page  # a missing page has a title, but no id
            key = take(page, "pageid", int) if has_id else take(page, "title", str)
            known = pages.setdefault(key, {})
            revisions = known.get("revisions", [])
            rows = [_revision(page, row, retrieved_at) for row in list_rows(page, "revisions")]
            known_ids = {revision.revision_id for revision in revisions}
            revisions += [revision for revision in rows if revision.revision_id not in known_ids]
            known.update(page)
            known["revisions"] = revisions
    return list(pages.values())


def _revision(page: Mapping[str, Any], row: Mapping[str, Any], at: dt.datetime) -> Revision:
    """Convert a page's ``revisions`` row from a response of time ``at``."""
    slots = take(row, "slots", dict, default={})
    main = take(slots, "main", dict, default={})
    is_hidden = bool(main.get("texthidden"))
    return Revision(
        page_id=take(page, "pageid", int),
        revision_id=take(row, "revid", int),
        timestamp=read_time(row),
        wikitext=take(main, "content", str) if main and not is_hidden else None,
        is_hidden=is_hidden,
        retrieved_at=at,
    )


def _is_busy(fetched: Fetched) -> bool:
    """Return True for an empty response, or one with a temporary error: it is requested again."""
    if not fetched.body.strip():
        return True
    # Only a response with the word "error" is parsed: most are long and have none.
    if not fetched.body.lstrip().startswith(b"{") or b'"error' not in fetched.body:
        return False
    return any(code.startswith(_TEMPORARY_ERRORS) for code in _error_codes(fetched.json()))


def _error_codes(response: object) -> list[str]:
    """Return the error codes of a response, from ``errors`` (new form) and ``error`` (old form)."""
    if not isinstance(response, Mapping):
        return []
    rows = list_rows(response, "errors")
    if "error" in response:
        rows = [*rows, take(response, "error", dict)]
    return [str(row.get("code")) for row in rows]


class _CannotContinue(SourceUnavailable):
    """Raised if the wiki rejects a ``continue`` (a position in a list) that it has returned."""


def unexpected(where: str, expected: str, got: object) -> SourceChanged:
    """Return the error for a response that violates the protocol."""
    return SourceChanged(
        f"{where}: expected {expected}, got {str(got)[:300]!r}; see whether MediaWiki's API changed"
    )
