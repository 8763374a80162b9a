"""GitHub's REST API for the crawlers: search, commits, trees, blobs, tarballs.

See https://docs.github.com/en/rest. Rate limits (2026-11): 60 requests an hour and 10 searches a
minute; with a token, 5,000 requests and 30 searches. Each response states how many requests are
left. If none are left, requests to the host pause until the limit resets. A pause of more than
``pacing.MAX_WAIT_S`` ends the crawl. Secondary limits (status 403, 429) cause pauses, too.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
import time
from collections.abc import Callable, Iterator, Mapping
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
from core.retry_after import read_retry_after
from crawlers.contract import Document, Drop, Failure, Item, Quota, missing_item
from crawlers.text.code import blob_id
from crawlers.web.fetcher import Fetched, Fetcher, read_time
from crawlers.web.pacing import ApiRules

SITE = "github_api"
SITES = {SITE: "https://api.github.com", "github_codeload": "https://codeload.github.com"}
MAX_RESULTS = 1000  # per query
PER_PAGE = 100
MAX_TARBALL_BYTES = 32 * 2**20
MAX_BLOB_BYTES = 10**6
SECONDARY_PAUSE_S = 60.0  # pause at a secondary limit if Retry-After is missing (GitHub's rule)

_JSON = "application/vnd.github+json"
_VERSION = "2022-11-28"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}")  # owner/repository
_LIMIT_WORDS = (b"rate limit", b"abuse detection")  # of refusals that ask for a pause
_OID = re.compile("[0-9a-f]{40}")
_Value = TypeVar("_Value")


class SearchPage(NamedTuple):
    """A page of search results, as parsed JSON; ``total`` counts the results of all pages."""

    total: int
    items: list[Any]


class Commit(NamedTuple):
    """A commit and its committer date."""

    sha: str
    tree: str
    committed_at: dt.datetime


class TreeEntry(NamedTuple):
    """A file in the top folder of a git tree; ``size`` is in bytes."""

    path: str
    mode: str
    sha: str
    size: int


@dataclass(frozen=True)
class Repository:
    """A repository in a search result."""

    id: int
    name: str  # ``owner/repository``
    created_at: dt.datetime
    branch: str | None  # default branch; None if the response lacks it


class GitHubApi:
    """A client of GitHub's REST API that sends all requests through the crawl's fetcher."""

    def __init__(self, fetcher: Fetcher) -> None:
        token = fetcher.token(SITE)
        self.has_token = token is not None  # a token raises the rate limits
        self._headers = {"Accept": _JSON, "X-GitHub-Api-Version": _VERSION}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token.get_secret_value()}"
        self._fetcher = fetcher
        fetcher.heed(SITE, ApiRules(read_limits, {409: "empty"}))  # 409 if a repository is empty

    def search(self, query: str, page: int) -> SearchPage:
        """Return a page (counted from 1) of the repositories that match a query, most stars first.

        A search that timed out on the server is retried, and so is an empty page before the last.

        Raises:
            ItemFailed: the response was incomplete in all tries.
            SourceChanged, SourceUnavailable: see ``Fetcher.get``.
        """
        params: dict[str, str | int] = {
            "q": query,
            "sort": "stars",
            "order": "desc",
            "per_page": PER_PAGE,
            "page": page,
        }
        body = self._get("/search/repositories", params, is_search=True).json()
        items = _take("search", body, "items", list)
        return SearchPage(_take("search", body, "total_count", int), items)

    def last_commit(self, name: str, branch: str | None, end: dt.datetime) -> Commit:
        """Return a branch's last commit before ``end``; raise ItemUnavailable if there is none."""
        last = f"{end - dt.timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"  # "until" includes this time
        params: dict[str, str | int] = {"until": last, "per_page": 1}
        if branch:
            params["sha"] = branch
        where = f"commits of {name}"
        rows = self._get(f"/repos/{name}/commits", params).json()
        if not isinstance(rows, list):
            raise _unexpected(where, "a list", rows)
        if not rows:
            raise ItemUnavailable("not_yet_created", f"no commit before {end:%Y-%m-%d}")
        inner = _take(where, rows[0], "commit", dict)
        committer = _take(where, inner, "committer", dict)
        tree = _take(where, _take(where, inner, "tree", dict), "sha", str)
        sha = _take(where, rows[0], "sha", str)
        if not (_OID.fullmatch(sha) and _OID.fullmatch(tree)):
            raise _unexpected(where, "ids of 40 hexadecimal digits", [sha, tree])
        return Commit(sha, tree, read_moment(where, committer, "date"))

    def tree(self, name: str, sha: str) -> list[TreeEntry]:
        """Return a tree's top-level files; raise ItemUnavailable if missing or truncated."""
        where = f"tree of {name}"
        body = self._get(f"/repos/{name}/git/trees/{sha}").json()
        if _take(where, body, "truncated", bool):
            raise ItemUnavailable("too_large", f"{where}: GitHub lists a part of it only")
        return [
            TreeEntry(
                _take(where, row, "path", str),
                _take(where, row, "mode", str),
                _take(where, row, "sha", str),
                _take(where, row, "size", int),
            )
            for row in _take(where, body, "tree", list)
            if _take(where, row, "type", str) == "blob"
        ]

    def blob(self, name: str, entry: TreeEntry) -> tuple[bytes, dt.datetime]:
        """Return a file's contents and the time of the response.

        Raise ItemUnavailable if the file is missing, too large, not base64, or has a wrong SHA-1.
        """
        if entry.size > MAX_BLOB_BYTES:
            raise ItemUnavailable("too_large", f"{entry.path} has {entry.size} bytes")
        where = f"{entry.path} of {name}"
        if not _OID.fullmatch(entry.sha):
            raise _unexpected(where, "an id of 40 hexadecimal digits", entry.sha)
        fetched = self._get(f"/repos/{name}/git/blobs/{entry.sha}")
        body = fetched.json()
        encoding = _take(where, body, "encoding", str)
        if encoding != "base64":
            raise ItemUnavailable("parse_error", f"{where}: encoded as {encoding!r}")
        try:
            packed = "".join(_take(where, body, "content", str).split())
            content = base64.b64decode(packed, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ItemUnavailable("parse_error", f"{where}: {error}") from error
        if blob_id(content) != entry.sha:
            raise ItemUnavailable("damaged", f"{where} is not what {entry.sha} names")
        return content, fetched.retrieved_at

    def tarball(self, name: str, sha: str) -> Fetched:
        """Return a commit's files (gzip tar); raise ItemUnavailable if missing or too large."""
        path = f"/repos/{name}/tarball/{sha}"
        return self._fetcher.get(SITE, path, headers=self._headers, max_bytes=MAX_TARBALL_BYTES)

    def _get(
        self, path: str, params: Mapping[str, str | int] | None = None, is_search: bool = False
    ) -> Fetched:
        is_busy = is_incomplete if is_search else is_blank
        return self._fetcher.get(SITE, path, params, headers=self._headers, is_busy=is_busy)


def keep_files(
    repository: str, files: Mapping[str, Callable[[], Document]], quota: Quota, most: int
) -> Iterator[Item]:
    """Yield up to ``most`` files of a repository as documents, within the quota; drop the rest."""
    num_kept = 0
    for path, make in files.items():
        native_id = f"{repository}:{path}"
        if quota.is_full or num_kept == most:
            yield Drop(native_id, "sample_cap", f"{num_kept} files of it are kept")
            continue
        try:
            document = make()
        except ItemUnavailable as error:
            yield missing_item(native_id, error)
            continue
        num_kept += 1
        yield quota.take(document)


def missing_repository(name: str, error: SourceError) -> Drop | Failure:
    """Convert an error to a repository's drop or failure; raise errors of the whole site again."""
    if isinstance(error, ItemUnavailable | ItemFailed):
        return missing_item(name, error)
    if isinstance(error, SourceChanged):
        return Drop(name, "parse_error", str(error))
    if isinstance(error, AccessRefused) and not isinstance(error, TokenRefused):
        return Failure(name, "damaged_answer", str(error))
    raise error


def read_limits(status: int, response: Fetched) -> float | None:
    """Return how many seconds requests to GitHub must pause after a response; None for no pause."""
    is_refused = status in (403, 429)
    pause_s = read_retry_after(response.headers.get("retry-after")) if is_refused else None
    if pause_s is not None:
        return pause_s
    if response.headers.get("x-ratelimit-remaining") == "0":
        reset = response.headers.get("x-ratelimit-reset", "")
        if re.fullmatch("[0-9]{1,11}", reset):
            return max(0.0, int(reset) - time.time()) + 1.0  # 1 s more, as clocks may differ
    says_limit = any(words in response.body.lower() for words in _LIMIT_WORDS)
    if status == 429 or (status == 403 and says_limit):
        return SECONDARY_PAUSE_S
    return None


def is_blank(fetched: Fetched) -> bool:
    """Return True for a response without a body, which is always an error."""
    return not fetched.body.strip()


def is_incomplete(fetched: Fetched) -> bool:
    """Return True if a search timed out on the server, or a page before the last one is empty."""
    if is_blank(fetched):
        return True
    body = fetched.json()
    if not isinstance(body, dict):
        return False
    match = re.search("[?&]page=([0-9]{1,6})", fetched.url)
    first = (int(match[1]) - 1) * PER_PAGE if match else 0
    total = body.get("total_count")
    is_empty = isinstance(total, int) and first < total and body.get("items") == []
    return body.get("incomplete_results") is True or is_empty


def read_repository(row: Any) -> Repository:
    """Parse a search result; raise SourceChanged if it is not as documented."""
    where = "search"
    name = _take(where, row, "full_name", str)
    if not NAME.fullmatch(name) or name.endswith(("/.", "/..")):
        raise _unexpected(where, "owner/repository", name)
    branch = row.get("default_branch")
    return Repository(
        id=_take(where, row, "id", int),
        name=name,
        created_at=read_moment(where, row, "created_at"),
        branch=branch if isinstance(branch, str) and branch else None,
    )


def read_moment(where: str, row: Any, key: str) -> dt.datetime:
    """Parse a time such as 2024-04-01T01:02:03Z; raise SourceChanged if it is malformed."""
    value = _take(where, row, key, str)
    moment = read_time(value)
    if moment is None:
        raise _unexpected(where, "a moment with its zone", value)
    return moment


def _take(where: str, row: Any, key: str, kind: type[_Value]) -> _Value:
    """Return a value of a JSON object; raise SourceChanged if it is missing or of another type."""
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _unexpected(where, f"{key!r} of type {kind.__name__}", row)
    return value


def _unexpected(where: str, expected: str, got: object) -> SourceChanged:
    return SourceChanged(
        f"GitHub's {where}: expected {expected}, got {str(got)[:300]!r}; did the API change?"
    )
