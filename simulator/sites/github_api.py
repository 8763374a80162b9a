"""GitHub's REST API and codeload: search, commits, trees, blobs and tarballs of repositories.

Anyone may send 60 requests an hour and 10 searches a minute, with the token 5,000 and 30
(https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api); what is sent
beyond is refused with 403 and counted. The search shows 1,000 results of a query at most.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Mapping
from typing import Any

from simulator.repositories import (
    HOSTILE,
    Commit,
    Entry,
    Repository,
    hostile_tarball,
    new_repositories,
    tarball,
    trending_repositories,
)
from simulator.server import QuirkName, Request, Response, take_quirk
from simulator.world import World

TOKEN = "ghp_of-the-simulated-github"  # noqa: S105 - no secret
MAX_RESULTS = 1000
# (resource, with a token): requests, seconds
LIMITS = {
    ("search", False): (10, 60.0),
    ("search", True): (30, 60.0),
    ("core", False): (60, 3600.0),
    ("core", True): (5000, 3600.0),
}
_SPDX_KEYS = {"MIT": "mit", "BSD-2-Clause": "bsd-2-clause", "BSD-3-Clause": "bsd-3-clause"}
_DOCUMENTATION = "https://docs.github.com/rest"


class Site:
    """See the module's text.

    Attributes:
        limits: may be replaced before the first request.
        num_refused: how many requests came above the limits.
        repositories: by name; made when they are first asked for.
        codeload_url: where tarballs are redirected to; the API's own address unless it is set.
    """

    keys: tuple[str, ...] = ("github_api", "github_codeload")
    robots: str | None = None

    def __init__(self, world: World) -> None:
        self.quirks: dict[QuirkName, int] = {}
        self.limits = dict(LIMITS)
        self.num_refused = 0
        self.codeload_url = ""
        self.repositories = {one.name: one for one in trending_repositories(world)}
        for month in world.months:
            self.repositories |= {one.name: one for one in new_repositories(world, month)}
        self._lock = threading.Lock()
        self._used: dict[tuple[str, bool], tuple[float, int]] = {}  # window's end, requests

    def new_day(self) -> None:
        """Give all visitors their whole allowance again."""
        with self._lock:
            self._used.clear()

    def respond(self, request: Request) -> Response:
        """Answer under the limits; codeload has none."""
        if match := re.fullmatch("/([^/]+/[^/]+)/legacy.tar.gz/([0-9a-f]{40})", request.path):
            return self._codeload(*match.groups())
        sent = request.headers.get("authorization", "")
        if sent and sent != f"Bearer {TOKEN}":
            return _json({"message": "Bad credentials", "documentation_url": _DOCUMENTATION}, 401)
        resource = "search" if request.path.startswith("/search/") else "core"
        headers, is_over = self._count(resource, bool(sent))
        if is_over:
            message = "API rate limit exceeded for 127.0.0.1. (But here's the good news: "
            message += "Authenticated requests get a higher rate limit.)"
            answer = _json({"message": message, "documentation_url": _DOCUMENTATION}, 403)
        else:
            answer = _unless_known(request, self._route(request))
        return Response(answer.status, {**answer.headers, **headers}, answer.body)

    def _count(self, resource: str, has_token: bool) -> tuple[dict[str, str], bool]:
        limit, window_s = self.limits[resource, has_token]
        with self._lock:
            ends_at, used = self._used.get((resource, has_token), (0.0, 0))
            if time.time() >= ends_at:
                ends_at, used = time.time() + window_s, 0
            is_over = used >= limit
            self.num_refused += is_over
            used += not is_over
            self._used[resource, has_token] = (ends_at, used)
        counts = {"limit": limit, "remaining": limit - used, "used": used, "resource": resource}
        counts["reset"] = math.ceil(ends_at)
        return {f"X-RateLimit-{name.title()}": str(n) for name, n in counts.items()}, is_over

    def _route(self, request: Request) -> Response:
        if request.path == "/search/repositories":
            return self._search(request)
        match = re.fullmatch("/repos/([^/]+/[^/]+)/(.+)", request.path)
        repository = self.repositories.get(match[1]) if match else None
        if match is None or repository is None or repository.is_gone:
            return _not_found()
        if not repository.commits:
            return _json({"message": "Git Repository is empty."}, 409)
        what, _, sha = match[2].rpartition("/")
        if match[2] == "commits":
            return _commits(repository, request)
        if what == "git/trees":
            return _tree(repository, sha, bool(request.arg("recursive")))
        if what == "git/blobs":
            return _blob(repository, sha)
        if what == "tarball" and _commit(repository, sha):
            base = self.codeload_url or f"http://{request.headers['host']}"
            return Response(302, {"Location": f"{base}/{repository.name}/legacy.tar.gz/{sha}"})
        return _not_found()

    def _codeload(self, name: str, sha: str) -> Response:
        repository = self.repositories.get(name)
        commit = _commit(repository, sha) if repository else None
        if repository is None or commit is None:
            return Response(404, {}, b"404: Not Found")
        headers = {"Content-Type": "application/x-gzip"}
        turn = self.quirks.get("hostile_archive", 0)
        if take_quirk(self, "hostile_archive"):
            return Response(200, headers, hostile_tarball(HOSTILE[(turn - 1) % len(HOSTILE)]))
        return Response(200, headers, tarball(repository, commit))

    def _search(self, request: Request) -> Response:
        per_page = min(int(request.arg("per_page", "30")), 100)
        page = int(request.arg("page", "1"))
        words = request.arg("q").split()
        if not words or page < 1:
            return _json({"message": "Validation Failed", "errors": [{"resource": "Search"}]}, 422)
        if (page - 1) * per_page >= MAX_RESULTS:
            message = "Only the first 1000 search results are available"
            return _json({"message": message, "documentation_url": _DOCUMENTATION}, 422)
        found = [one for one in self.repositories.values() if _matches(one, words)]
        found.sort(key=lambda one: (-one.stars, one.id))
        first = (page - 1) * per_page
        shown = found[first : min(first + per_page, MAX_RESULTS)]
        if first and shown and take_quirk(self, "moving_items"):
            shown = [found[first - 1], *shown[:-1]]  # it got a star less meanwhile
        if shown and take_quirk(self, "empty_page"):
            shown = []
        is_cut = take_quirk(self, "error_as_200")  # the search ran out of time
        rows = [self._row(one) for one in shown[: len(shown) // 2 if is_cut else None]]
        body = {"total_count": len(found), "incomplete_results": is_cut, "items": rows}
        return _json(body, headers=_links(request, page, per_page, len(found)))

    def _row(self, repository: Repository) -> dict[str, Any]:
        spdx = repository.licence
        row: dict[str, Any] = {
            "id": repository.id,
            "full_name": repository.name,
            "html_url": f"https://github.com/{repository.name}",
            "description": repository.description,
            "fork": False,
            "created_at": _time(repository.created_at),
            "pushed_at": _time(repository.created_at),
            "default_branch": "main",
            "language": repository.language,
            "license": {"key": _SPDX_KEYS.get(spdx, "other"), "spdx_id": spdx},
            "stargazers_count": repository.stars,
            "size": 120,
            "archived": False,
        }
        if take_quirk(self, "missing_fields"):
            for name in ("description", "license", "language", "default_branch"):
                del row[name]
        if take_quirk(self, "extra_fields"):
            row["score"] = {"of": [1.0, None]}
        return row


def _matches(repository: Repository, words: list[str]) -> bool:
    for word in words:
        name, _, value = word.partition(":")
        if name == "created":
            first, last = value.split("..")
            if not first <= _time(repository.created_at) <= last:
                return False
        elif name == "language":
            if value.lower() != repository.language.lower():
                return False
        elif name == "license":
            if value != _SPDX_KEYS.get(repository.licence):
                return False
        elif name not in ("fork", "archived", "size"):  # all that are here are neither, and large
            return False
    return True


def _links(request: Request, page: int, per_page: int, total: int) -> dict[str, str]:
    last = -(-min(total, MAX_RESULTS) // per_page)
    base = f"http://{request.headers['host']}{request.path}"
    pages = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
    wanted = {"prev": page > 1, "first": page > 1, "next": page < last, "last": page < last}
    query = re.sub("(^|&)page=[0-9]+", "", request.raw_query)
    links = [f'<{base}?{query}&page={n}>; rel="{rel}"' for rel, n in pages.items() if wanted[rel]]
    return {"Link": ", ".join(links)} if links else {}


def _commits(repository: Repository, request: Request) -> Response:
    """List the newest first; ``until`` goes by the committer's date."""
    sha = request.arg("sha", "main")
    if sha != "main" and not _commit(repository, sha):
        return _json({"message": f"No commit found for SHA: {sha}"}, 404)
    until = request.arg("until", "9999")
    rows = [
        _commit_row(commit) for commit in repository.commits if _time(commit.committed_at) <= until
    ]
    page, per_page = int(request.arg("page", "1")), int(request.arg("per_page", "30"))
    return _json(rows[(page - 1) * per_page : page * per_page])


def _commit_row(commit: Commit) -> dict[str, Any]:
    person = {"name": "Simulated", "email": "sim@example.org", "date": _time(commit.committed_at)}
    inner = {"author": person, "committer": person, "message": "", "tree": {"sha": commit.tree}}
    return {"sha": commit.sha, "commit": inner, "parents": []}


def _tree(repository: Repository, sha: str, is_recursive: bool) -> Response:
    for commit in repository.commits:
        if sha in (commit.tree, commit.sha):
            rows = [_tree_row(e) for e in commit.entries() if is_recursive or "/" not in e.path]
            return _json({"sha": sha, "tree": rows, "truncated": False})
    return _not_found()


def _tree_row(entry: Entry) -> dict[str, Any]:
    row = {"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
    return row | ({"size": entry.size} if entry.kind == "blob" else {})


def _blob(repository: Repository, sha: str) -> Response:
    for commit in repository.commits:
        for entry in commit.entries():
            if entry.sha == sha and entry.kind == "blob":
                content = base64.encodebytes(commit.files[entry.path][1]).decode()
                body = {"sha": sha, "size": entry.size, "encoding": "base64", "content": content}
                return _json(body)
    return _not_found()


def _commit(repository: Repository, sha: str) -> Commit | None:
    return next((commit for commit in repository.commits if commit.sha == sha), None)


def _time(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _not_found() -> Response:
    return _json({"message": "Not Found", "documentation_url": _DOCUMENTATION}, 404)


def _json(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    kind = {"Content-Type": "application/json; charset=utf-8"}
    return Response(status, {**kind, **(headers or {})}, json.dumps(body).encode())


def _unless_known(request: Request, answer: Response) -> Response:
    """Add an ETag; answer 304 to who has that version already."""
    if answer.status != 200:
        return answer
    tag = f'W/"{hashlib.sha256(answer.body).hexdigest()}"'
    if tag in request.headers.get("if-none-match", ""):
        return Response(304, {"ETag": tag})
    return Response(200, {**answer.headers, "ETag": tag}, answer.body)
