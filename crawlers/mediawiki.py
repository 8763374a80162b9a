"""MediaWiki's action API, as far as the Wikipedia crawlers need it.

Protocol: https://www.mediawiki.org/wiki/API:Query; etiquette:
https://www.mediawiki.org/wiki/API:Etiquette. Errors come with status 200, long answers in pieces.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from core.errors import AccessRefused, ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Month
from crawlers import wikitext
from crawlers.contract import Document, Drop, DropReason
from crawlers.http import Fetched, Fetcher

SITE = "wikipedia"
BASE_URL = "https://en.wikipedia.org"
API_PATH = "/w/api.php"
# robots.txt closes /w/ to crawlers of pages. The API is meant for programs; what binds them is its
# etiquette: one request at a time, maxlag, Retry-After, and a user agent that names us.
ROBOTS_EXEMPT_PATHS = (API_PATH,)
BATCH = 50  # ids or titles in one request, for clients without a bot's rights
CC_BY_SA_4_SINCE = dt.datetime(2023, 6, 7, tzinfo=dt.UTC)  # licence of what was written from then

_ALWAYS: Mapping[str, str | int] = {
    "action": "query",
    "format": "json",
    "formatversion": 2,
    "maxlag": 5,
    "errorformat": "plaintext",
}
_PASSING = ("maxlag", "ratelimited", "readonly", "internal_api_error")  # beginnings of codes
_SECOND = dt.timedelta(seconds=1)  # the resolution of MediaWiki's timestamps

T = TypeVar("T")
Piece = tuple[dict[str, Any], dt.datetime]  # the ``query`` part of an answer, when it was given


@dataclass(frozen=True)
class Revision:
    """One version of a page.

    Attributes:
        wikitext: None where it was not asked for, or where it is hidden.
        is_hidden: the text was taken from the public.
        retrieved_at: when the site gave it.
    """

    page_id: int
    revision_id: int
    timestamp: dt.datetime
    wikitext: str | None
    is_hidden: bool
    retrieved_at: dt.datetime


class MediaWiki:
    """A client of one wiki.

    Args:
        fetcher: has the site SITE.

    All methods raise SourceUnavailable where the wiki is overloaded for too long, AccessRefused
    where it refuses us, and SourceChanged where it answers what the protocol does not explain.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    def query(self, **params: str | int) -> Iterator[Piece]:
        """Yield an answer piece by piece, following every ``continue``."""
        more: dict[str, str | int] = {}
        passed: list[dict[str, str | int]] = []
        while more not in passed:
            passed.append(more)
            fetched = self._get({**_ALWAYS, **params, **more})
            answer = fetched.json()
            if not isinstance(answer, dict) or "errors" in answer:
                raise _unexpected(fetched.url, "an answer without errors", answer)
            yield take(answer, "query", dict, default={}), fetched.retrieved_at
            if "continue" not in answer:
                return
            more = take(answer, "continue", dict)
        raise _unexpected(fetched.url, "a continuation that leads on", more)

    def pages(self, **params: str | int) -> list[dict[str, Any]]:
        """Return the pages of an answer; ``revisions`` of each is a list of Revision."""
        return _merge(self.query(**params))

    def history(self, page_id: int, **params: str | int) -> list[Revision]:
        """Return revisions of one page, without their text, in the order asked for."""
        pieces = self._history(page_id, **params)
        return [revision for page in _merge(pieces) for revision in page["revisions"]]

    def last_revision_before(self, page_id: int, end: dt.datetime) -> Revision | None:
        """Return the version of a page just before an instant; None where there was none yet."""
        start = stamp(end - _SECOND)  # itself included
        # The first piece alone: the next ones lead through the page's whole past.
        pieces = itertools.islice(
            self._history(page_id, rvdir="older", rvlimit=1, rvstart=start), 1
        )
        found = [revision for page in _merge(pieces) for revision in page["revisions"]]
        return found[0] if found else None

    def texts(self, revision_ids: Sequence[int]) -> dict[int, Revision]:
        """Return revisions with their text, by id; those that are gone are not in it."""
        found: dict[int, Revision] = {}
        for batch in batches(revision_ids, BATCH):
            pages = self.pages(
                prop="revisions",
                revids=join(batch),
                rvprop="ids|timestamp|content",
                rvslots="main",
            )
            found |= {row.revision_id: row for page in pages for row in page["revisions"]}
        return found

    def _history(self, page_id: int, **params: str | int) -> Iterator[Piece]:
        return self.query(prop="revisions", rvprop="ids|timestamp", pageids=page_id, **params)

    def _get(self, params: Mapping[str, str | int]) -> Fetched:
        try:
            return self._fetcher.get(SITE, API_PATH, params, is_busy=_is_busy)
        except ItemUnavailable as error:  # the API is no item that could be done without
            if error.reason in ("http_403", "robots", "permission"):
                raise AccessRefused(f"the wiki's API refuses us: {error}") from error
            raise SourceUnavailable(f"the wiki's API cannot be reached: {error}") from error


def document(page_id: int, title: str, revision: Revision, **dates: Any) -> Document | Drop:
    """Return a revision as a document, or why it is none.

    Args:
        page_id: stays the same when a page is moved.
        title: of the page.
        revision: with its text.
        dates: ``event_time``, ``date_kind`` and ``extra`` of the document.
    """
    native_id = str(page_id)
    if revision.is_hidden:
        return Drop(native_id, "suppressed", f"revision {revision.revision_id}")
    if revision.wikitext is None:
        raise _unexpected(f"revision {revision.revision_id}", "its text", revision)
    if wikitext.is_redirect(revision.wikitext):
        return Drop(native_id, "redirect_page", title)
    try:
        text = wikitext.to_text(revision.wikitext)
    except ItemUnavailable as error:
        return Drop(native_id, cast(DropReason, error.reason), str(error))
    index = f"{BASE_URL}/w/index.php"
    version = "4.0" if revision.timestamp >= CC_BY_SA_4_SINCE else "3.0"
    return Document(
        native_id=native_id,
        version_id=str(revision.revision_id),
        cluster_id=f"page:{page_id}",
        text=text,
        title=title,
        url=f"{index}?oldid={revision.revision_id}",
        text_as_of=revision.timestamp,
        retrieved_at=revision.retrieved_at,
        licence=f"CC-BY-SA-{version}",
        attribution=f"Wikipedia contributors, “{title}”: {index}?curid={page_id}&action=history",
        **dates,
    )


def month_window(month: Month) -> tuple[str, str]:
    """Return the first and the last second of a month, for parameters that include both."""
    return stamp(month.start), stamp(month.end - _SECOND)


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, ``size`` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def join(values: Sequence[object]) -> str:
    """Return several values as one parameter."""
    return "|".join(map(str, values))


def stamp(moment: dt.datetime) -> str:
    """Return an instant as the API takes it."""
    return f"{moment.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_time(row: Mapping[str, Any]) -> dt.datetime:
    """Return the ``timestamp`` of a row.

    Raises:
        SourceChanged: there is none, or it is not in UTC.
    """
    text = take(row, "timestamp", str)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise _unexpected("timestamp", "an ISO 8601 instant", text) from error
    if moment.utcoffset() != dt.timedelta(0):
        raise _unexpected("timestamp", "an instant in UTC", text)
    return moment


def take(row: object, name: str, kind: type[T], default: T | None = None) -> T:
    """Return a field of a row, checked.

    Raises:
        SourceChanged: it is missing (and there is no default) or of another type.
    """
    value = row.get(name, default) if isinstance(row, Mapping) else None
    if not isinstance(value, kind):
        raise _unexpected(f"field {name!r}", kind.__name__, row)
    return value


def rows_of(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of objects; it may be absent.

    Raises:
        SourceChanged: it is no such list.
    """
    rows = take(answer, name, list, default=[])
    if not all(isinstance(row, dict) for row in rows):
        raise _unexpected(f"field {name!r}", "a list of objects", rows)
    return rows


def _merge(pieces: Iterable[Piece]) -> list[dict[str, Any]]:
    """Put each page together from all pieces it came in."""
    pages: dict[int | str, dict[str, Any]] = {}
    for piece, retrieved_at in pieces:
        for page in rows_of(piece, "pages"):
            has_id = "pageid" in page  # a title that is no page has none
            key = take(page, "pageid", int) if has_id else take(page, "title", str)
            known = pages.setdefault(key, {})
            revisions = known.get("revisions", [])
            revisions += [_revision(page, row, retrieved_at) for row in rows_of(page, "revisions")]
            known.update(page)
            known["revisions"] = revisions
    return list(pages.values())


def _revision(page: Mapping[str, Any], row: Mapping[str, Any], at: dt.datetime) -> Revision:
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
    """Tell an error that passes; such answers are asked for again and never cached."""
    if not fetched.body.strip():
        return True
    if not fetched.body.lstrip().startswith(b"{") or b'"errors"' not in fetched.body:
        return False
    codes = [str(error.get("code")) for error in rows_of(fetched.json(), "errors")]
    return any(code.startswith(_PASSING) for code in codes)


def _unexpected(where: str, expected: str, got: object) -> SourceChanged:
    return SourceChanged(
        f"{where}: expected {expected}, got {str(got)[:300]!r}; see whether MediaWiki's API changed"
    )
