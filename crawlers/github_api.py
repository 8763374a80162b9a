"""GitHub's REST API, as far as the crawlers need it: search, commits, trees, blobs, tarballs.

Protocol: https://docs.github.com/en/rest. Limits, as of 2026-11: without a token 60 requests an
hour and 10 searches a minute, with one 5,000 and 30; each answer says what is left. Where nothing
is left the host is left alone until it gives more; a limit that lasts longer than
``pacing.MAX_WAIT_S`` ends the source. So do secondary limits, which come as 403, too.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceChanged,
    SourceError,
    TokenRefused,
)
from crawlers.api_rules import ApiRules
from crawlers.contract import Drop, Failure, missing_item
from crawlers.http import Fetched, Fetcher
from crawlers.pacing import read_retry_after
from crawlers.source_code import blob_id

SITE = "github_api"
SITES = {SITE: "https://api.github.com", "github_codeload": "https://codeload.github.com"}
MAX_RESULTS = 1000  # of one query
PER_PAGE = 100
MAX_TARBALL_BYTES = 32 * 2**20
MAX_BLOB_BYTES = 10**6
SECONDARY_PAUSE_S = 60.0  # where a secondary limit names no time; the documentation's advice

_JSON = "application/vnd.github+json"
_VERSION = "2022-11-28"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}")
_OID = re.compile("[0-9a-f]{40}")
_Value = TypeVar("_Value")


class SearchPage(NamedTuple):
    """A page of results; ``total`` is of the whole query, the items of this page unchecked."""

    total: int
    items: list[Any]


class Commit(NamedTuple):
    """A commit and the date that its committer claims."""

    sha: str
    tree: str
    committed_at: dt.datetime


class TreeEntry(NamedTuple):
    """A row of the top folder of a tree."""

    path: str
    mode: str
    sha: str
    size: int


@dataclass(frozen=True)
class Repository:
    """What the search says of a repository.

    Attributes:
        name: ``owner/repository``.
        branch: the default one; None where the answer does not name it.
    """

    id: int
    name: str
    created_at: dt.datetime
    branch: str | None


class GitHubApi:
    """The API through a crawl's fetcher.

    Attributes:
        has_token: whether a token is sent, which allows many more requests.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        token = fetcher.token(SITE)
        self.has_token = token is not None
        self._headers = {"Accept": _JSON, "X-GitHub-Api-Version": _VERSION}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token.get_secret_value()}"
        self._fetcher = fetcher
        fetcher.heed(SITE, ApiRules(read_limits, {409: "empty"}))  # a repository without a commit

    def search(self, query: str, page: int) -> SearchPage:
        """Return a page (from 1) of the repositories that match a query, by stars.

        An answer that the search had no time to complete is asked for again, as is an empty page
        where more was announced.

        Raises:
            ItemFailed: it stayed incomplete.
            SourceChanged, SourceUnavailable: see ``Fetcher.get``.
        """
        params: dict[str, str | int] = {
            "q": query,
            "sort": "stars",
            "order": "desc",
            "per_page": PER_PAGE,
            "page": page,
        }
        fetched = self._get("/search/repositories", params, is_search=True)
        body = fetched.json()
        where = "search"
        return SearchPage(take(where, body, "total_count", int), take(where, body, "items", list))

    def last_commit(self, name: str, branch: str | None, end: dt.datetime) -> Commit:
        """Return the last commit of a branch that was committed before ``end``.

        Raises:
            ItemUnavailable: gone, empty, or without a commit then.
        """
        last = f"{end - dt.timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"  # "until" is included
        params: dict[str, str | int] = {"until": last, "per_page": 1}
        if branch:
            params["sha"] = branch
        rows = self._get(f"/repos/{name}/commits", params).json()
        if not isinstance(rows, list):
            raise _unexpected(f"commits of {name}", "a list", rows)
        if not rows:
            raise ItemUnavailable("not_yet_created", f"no commit before {end:%Y-%m-%d}")
        where = f"commits of {name}"
        inner = take(where, rows[0], "commit", dict)
        committer = take(where, inner, "committer", dict)
        tree = take(where, take(where, inner, "tree", dict), "sha", str)
        sha = take(where, rows[0], "sha", str)
        if not (_OID.fullmatch(sha) and _OID.fullmatch(tree)):
            raise _unexpected(where, "ids of 40 hexadecimal digits", [sha, tree])
        return Commit(sha, tree, read_time(where, committer, "date"))

    def tree(self, name: str, sha: str) -> list[TreeEntry]:
        """Return the plain files of the top folder.

        Raises:
            ItemUnavailable: gone, or so large that the answer is cut.
        """
        where = f"tree of {name}"
        body = self._get(f"/repos/{name}/git/trees/{sha}").json()
        if take(where, body, "truncated", bool):
            raise ItemUnavailable("too_large", f"{where}: GitHub lists a part of it only")
        return [
            TreeEntry(
                take(where, row, "path", str),
                take(where, row, "mode", str),
                take(where, row, "sha", str),
                take(where, row, "size", int),
            )
            for row in take(where, body, "tree", list)
            if take(where, row, "type", str) == "blob"
        ]

    def blob(self, name: str, entry: TreeEntry) -> tuple[bytes, dt.datetime]:
        """Return a file's contents, and when the site gave them.

        Raises:
            ItemUnavailable: gone, larger than MAX_BLOB_BYTES, not in base64, or other contents.
        """
        if entry.size > MAX_BLOB_BYTES:
            raise ItemUnavailable("too_large", f"{entry.path} has {entry.size} bytes")
        where = f"{entry.path} of {name}"
        if not _OID.fullmatch(entry.sha):
            raise _unexpected(where, "an id of 40 hexadecimal digits", entry.sha)
        fetched = self._get(f"/repos/{name}/git/blobs/{entry.sha}")
        body = fetched.json()
        if (encoding := take(where, body, "encoding", str)) != "base64":
            raise ItemUnavailable("parse_error", f"{where}: encoded as {encoding!r}")
        try:
            packed = "".join(take(where, body, "content", str).split())
            content = base64.b64decode(packed, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ItemUnavailable("parse_error", f"{where}: {error}") from error
        if blob_id(content) != entry.sha:
            raise ItemUnavailable("damaged", f"{where} is not what {entry.sha} names")
        return content, fetched.retrieved_at

    def tarball(self, name: str, sha: str) -> Fetched:
        """Return all files at a commit, as a gzip-packed tar; codeload gives it.

        Raises:
            ItemUnavailable: gone, or larger than MAX_TARBALL_BYTES.
        """
        path = f"/repos/{name}/tarball/{sha}"
        return self._fetcher.get(SITE, path, headers=self._headers, max_bytes=MAX_TARBALL_BYTES)

    def _get(
        self, path: str, params: Mapping[str, str | int] | None = None, is_search: bool = False
    ) -> Fetched:
        is_busy = is_incomplete if is_search else is_blank
        return self._fetcher.get(SITE, path, params, headers=self._headers, is_busy=is_busy)


def missing_repository(name: str, error: SourceError) -> Drop | Failure:
    """Return what a crawl says of a repository whose answers it did not get, or understand.

    Raises:
        SourceError: ``error``, where it is about the site and not about the repository.
    """
    if isinstance(error, ItemUnavailable | ItemFailed):
        return missing_item(name, error)
    if isinstance(error, SourceChanged):
        return Drop(name, "parse_error", str(error))
    if isinstance(error, AccessRefused) and not isinstance(error, TokenRefused):
        return Failure(name, "damaged_answer", str(error))
    raise error


def read_limits(status: int, answer: Fetched) -> float | None:
    """Return for how many seconds GitHub wants to be left alone after an answer, or None."""
    is_refused = status in (403, 429)
    pause_s = read_retry_after(answer.headers.get("retry-after")) if is_refused else None
    if pause_s is not None:
        return pause_s
    if answer.headers.get("x-ratelimit-remaining") == "0":
        reset = answer.headers.get("x-ratelimit-reset", "")
        if re.fullmatch("[0-9]{1,11}", reset):
            return max(0.0, int(reset) - time.time()) + 1.0  # clocks differ
    if status == 429 or (status == 403 and b"rate limit" in answer.body.lower()):
        return SECONDARY_PAUSE_S
    return None


def is_blank(fetched: Fetched) -> bool:
    """Tell an answer without a body, where there is always JSON."""
    return not fetched.body.strip()


def is_incomplete(fetched: Fetched) -> bool:
    """Tell a search that ran out of time, or a page without items where there must be some."""
    if is_blank(fetched):
        return True
    body = fetched.json()
    if not isinstance(body, dict):
        return False
    match = re.search("[?&]page=([0-9]+)", fetched.url)
    first = (int(match[1]) - 1) * PER_PAGE if match else 0
    total = body.get("total_count")
    is_empty = isinstance(total, int) and first < total and body.get("items") == []
    return body.get("incomplete_results") is True or is_empty


def read_repository(row: Any) -> Repository:
    """Read a result of the search.

    Raises:
        SourceChanged: it is not of the documented shape.
    """
    where = "search"
    name = take(where, row, "full_name", str)
    if not _NAME.fullmatch(name) or name.endswith(("/.", "/..")):
        raise _unexpected(where, "owner/repository", name)
    branch = row.get("default_branch")
    return Repository(
        id=take(where, row, "id", int),
        name=name,
        created_at=read_time(where, row, "created_at"),
        branch=branch if isinstance(branch, str) and branch else None,
    )


def read_time(where: str, row: Any, key: str) -> dt.datetime:
    """Read a moment such as 2024-04-01T01:02:03Z."""
    value = take(where, row, key, str)
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError as error:
        raise _unexpected(where, "a moment", value) from error
    if moment.tzinfo is None:
        raise _unexpected(where, "a moment with its zone", value)
    return moment.astimezone(dt.UTC)


def take(where: str, row: Any, key: str, kind: type[_Value]) -> _Value:
    """Return a value of a JSON object.

    Raises:
        SourceChanged: it is missing, or of another type.
    """
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _unexpected(where, f"{key!r} of type {kind.__name__}", row)
    return value


def _unexpected(where: str, expected: str, got: object) -> SourceChanged:
    return SourceChanged(
        f"GitHub's {where}: expected {expected}, got {str(got)[:300]!r}; did the API change?"
    )
