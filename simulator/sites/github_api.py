"""Simulated REST API of GitHub, codeload (archives), and GH Archive (public events).

Clients may send 60 requests an hour and 10 searches a minute; with a token, 5,000 and 30
(https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api). Requests above a
limit get status 403 and are counted. A search returns at most 1,000 results. A former name of a
repository (``renamed``) redirects to its id.
"""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Iterator

from core.json import JsonObject
from core.month import Month
from simulator.repositories import (
    HOSTILE,
    Commit,
    Entry,
    Repository,
    hostile_tarball,
    new_repositories,
    repositories_of_subsets,
    tarball,
    trending_repositories,
)
from simulator.server import Request, Response, WorldSite, as_json, as_utc, take_quirk
from simulator.world import World

TOKEN = "ghp_of-the-simulated-github"  # noqa: S105 - simulated credential
MAX_RESULTS = 1000
# By (resource, has token): maximum number of requests, and the window in seconds.
LIMITS = {
    ("search", False): (10, 60.0),
    ("search", True): (30, 60.0),
    ("core", False): (60, 3600.0),
    ("core", True): (5000, 3600.0),
}
_SPDX_KEYS = {"MIT": "mit", "BSD-2-Clause": "bsd-2-clause", "BSD-3-Clause": "bsd-3-clause"}
_DOCUMENTATION = "https://docs.github.com/rest"
_STARS = 150  # stars per hour of the first repository; each later repository gets one star less
_DAMAGED = b'{"type":"WatchEvent","repo":\n'


class Site(WorldSite):
    """The REST API and codeload; see the module docstring."""

    keys: tuple[str, ...] = ("github_api", "github_codeload")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.limits = dict(LIMITS)
        self.num_refused = 0  # number of requests above the limits
        self.codeload_url = ""  # base URL of tarballs; empty: base URL of the API
        self.repositories = {one.name: one for one in trending_repositories(world)}
        for month in world.months:
            created = [*new_repositories(world, month), *repositories_of_subsets(world, month)]
            self.repositories |= {one.name: one for one in created}
        self.renamed: dict[str, str] = {}  # former name -> name
        self._lock = threading.Lock()
        # By (resource, has token): end of the window as Unix time, and number of requests in it.
        self._used: dict[tuple[str, bool], tuple[float, int]] = {}

    def new_day(self) -> None:
        """Reset the request counts of all clients."""
        with self._lock:
            self._used.clear()

    def respond(self, request: Request) -> Response:
        """Respond to a request of the API within the rate limits, or of codeload."""
        match = re.fullmatch("/([^/]+/[^/]+)/legacy.tar.gz/([0-9a-f]{40})", request.path)
        if match:
            return self._codeload(*match.groups())
        sent = request.headers.get("authorization", "")
        if sent and sent != f"Bearer {TOKEN}":
            return as_json({"message": "Bad credentials", "documentation_url": _DOCUMENTATION}, 401)
        resource = "search" if request.path.startswith("/search/") else "core"
        headers, is_over = self._count(resource, bool(sent))
        if is_over:
            message = "API rate limit exceeded for 127.0.0.1. (But here's the good news: "
            message += "Authenticated requests get a higher rate limit.)"
            response = as_json({"message": message, "documentation_url": _DOCUMENTATION}, 403)
        else:
            response = _unless_known(request, self._route(request))
        return Response(response.status, {**response.headers, **headers}, response.body)

    def _count(self, resource: str, has_token: bool) -> tuple[dict[str, str], bool]:
        """Count a request; return the headers of the limit, and True if it is exceeded."""
        limit, window_s = self.limits[resource, has_token]
        with self._lock:
            ends_at, used = self._used.get((resource, has_token), (0.0, 0))
            if time.time() >= ends_at:
                ends_at = time.time() + window_s
                used = 0
            is_over = used >= limit
            self.num_refused += is_over
            used += not is_over
            self._used[resource, has_token] = (ends_at, used)
        counts = {"limit": limit, "remaining": limit - used, "used": used, "resource": resource}
        counts["reset"] = math.ceil(ends_at)
        return {f"X-RateLimit-{name.title()}": str(n) for name, n in counts.items()}, is_over

    def _route(self, request: Request) -> Response:
        """Answer a request to the API by its path."""
        if request.path == "/search/repositories":
            return self._search(request)
        match = re.fullmatch("/repos/([^/]+/[^/]+)/(.+)", request.path)
        if match and match[1] in self.renamed:
            return self._moved(self.repositories[self.renamed[match[1]]], match[2], request)
        repository = self.repositories.get(match[1]) if match else None
        by_id = re.fullmatch("/repositories/([0-9]+)/(.+)", request.path)
        if by_id:
            found = (each for each in self.repositories.values() if str(each.id) == by_id[1])
            match = by_id
            repository = next(found, None)
        if match is None or repository is None or repository.is_gone:
            return _not_found()
        if not repository.commits:
            return as_json({"message": "Git Repository is empty."}, 409)
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

    def _moved(self, repository: Repository, rest: str, request: Request) -> Response:
        base = f"http://{request.headers['host']}/repositories/{repository.id}/{rest}"
        url = f"{base}?{request.raw_query}" if request.raw_query else base
        body = {"message": "Moved Permanently", "url": url, "documentation_url": _DOCUMENTATION}
        return as_json(body, 301, {"Location": url})

    def _codeload(self, name: str, sha: str) -> Response:
        """Answer the archive of a repository, or a hostile one."""
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
        """Answer a search for repositories; quirks shift, empty or cut the page."""
        per_page = min(int(request.arg("per_page", "30")), 100)
        page = int(request.arg("page", "1"))
        words = request.arg("q").split()
        if not words or page < 1:
            return as_json({"message": "Validation Failed", "errors": []}, 422)
        if (page - 1) * per_page >= MAX_RESULTS:
            message = "Only the first 1000 search results are available"
            return as_json({"message": message, "documentation_url": _DOCUMENTATION}, 422)
        found = [one for one in self.repositories.values() if _matches(one, words)]
        found.sort(key=lambda one: (-one.stars, one.id))
        first = (page - 1) * per_page
        shown = found[first : min(first + per_page, MAX_RESULTS)]
        if first and shown and take_quirk(self, "moving_items"):
            shown = [found[first - 1], *shown[:-1]]  # simulates a list that shifted by one item
        if shown and take_quirk(self, "empty_page"):
            shown = []
        is_cut = take_quirk(self, "error_as_200")  # simulates a timeout of the search
        rows = [self._row(one) for one in shown[: len(shown) // 2 if is_cut else None]]
        body = {"total_count": len(found), "incomplete_results": is_cut, "items": rows}
        return as_json(body, headers=_links(request, page, per_page, len(found)))

    def _row(self, repository: Repository) -> JsonObject:
        """Return a repository in JSON; quirks take or add fields."""
        spdx = repository.licence
        row: JsonObject = {
            "id": repository.id,
            "full_name": repository.name,
            "html_url": f"https://github.com/{repository.name}",
            "description": repository.description,
            "fork": False,
            "created_at": as_utc(repository.created_at),
            "pushed_at": as_utc(repository.created_at),
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
    """Return True if a repository matches all words of a search."""
    for word in words:
        name, _, value = word.partition(":")
        if name == "created":
            first, last = value.split("..")
            if not first <= as_utc(repository.created_at) <= last:
                return False
        elif name == "language":
            if value.lower() != repository.language.lower():
                return False
        elif name == "license":
            if value != _SPDX_KEYS.get(repository.licence):
                return False
        elif name not in ("fork", "archived", "size"):  # all repositories pass these filters
            return False
    return True


def _links(request: Request, page: int, per_page: int, total: int) -> dict[str, str]:
    """Return the header ``Link`` with the addresses of other pages."""
    last = -(-min(total, MAX_RESULTS) // per_page)
    base = f"http://{request.headers['host']}{request.path}"
    pages = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
    wanted = {"prev": page > 1, "first": page > 1, "next": page < last, "last": page < last}
    query = re.sub("(^|&)page=[0-9]+", "", request.raw_query)
    links = [f'<{base}?{query}&page={n}>; rel="{rel}"' for rel, n in pages.items() if wanted[rel]]
    return {"Link": ", ".join(links)} if links else {}


def _commits(repository: Repository, request: Request) -> Response:
    """Answer the list of a repository's commits up to a moment."""
    sha = request.arg("sha", "main")
    if sha != "main" and not _commit(repository, sha):
        return as_json({"message": f"No commit found for SHA: {sha}"}, 404)
    until = request.arg("until", "9999")
    rows = [
        _commit_row(commit) for commit in repository.commits if as_utc(commit.committed_at) <= until
    ]
    page = int(request.arg("page", "1"))
    per_page = int(request.arg("per_page", "30"))
    return as_json(rows[(page - 1) * per_page : page * per_page])


def _commit_row(commit: Commit) -> JsonObject:
    date = as_utc(commit.committed_at)
    person = {"name": "Simulated", "email": "sim@example.org", "date": date}
    inner = {"author": person, "committer": person, "message": "", "tree": {"sha": commit.tree}}
    return {"sha": commit.sha, "commit": inner, "parents": []}


def _tree(repository: Repository, sha: str, is_recursive: bool) -> Response:
    for commit in repository.commits:
        if sha in (commit.tree, commit.sha):
            rows = [_tree_row(e) for e in commit.entries() if is_recursive or "/" not in e.path]
            return as_json({"sha": sha, "tree": rows, "truncated": False})
    return _not_found()


def _tree_row(entry: Entry) -> JsonObject:
    row = {"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
    return row | ({"size": entry.size} if entry.kind == "blob" else {})


def _blob(repository: Repository, sha: str) -> Response:
    """Answer the content of a file by its hash."""
    for commit in repository.commits:
        for entry in commit.entries():
            if entry.sha == sha and entry.kind == "blob":
                content = base64.encodebytes(commit.files[entry.path][1]).decode()
                body = {"sha": sha, "size": entry.size, "encoding": "base64", "content": content}
                return as_json(body)
    return _not_found()


def _commit(repository: Repository, sha: str) -> Commit | None:
    return next((commit for commit in repository.commits if commit.sha == sha), None)


def _not_found() -> Response:
    return as_json({"message": "Not Found", "documentation_url": _DOCUMENTATION}, 404)


def _unless_known(request: Request, response: Response) -> Response:
    if response.status != 200:
        return response
    tag = f'W/"{hashlib.sha256(response.body).hexdigest()}"'
    if tag in request.headers.get("if-none-match", ""):
        return Response(304, {"ETag": tag})
    return Response(200, {**response.headers, "ETag": tag}, response.body)


class Archive(WorldSite):
    """GH Archive: public events as one gzip file of JSON lines per hour of the world."""

    keys: tuple[str, ...] = ("gharchive",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._names = [repository.name for repository in trending_repositories(world)]

    def respond(self, request: Request) -> Response:
        """Respond with an hour's file; hours in file names have no leading zero."""
        match = re.fullmatch(
            "/([0-9]{4}-[0-9]{2}-[0-9]{2})-([0-9]|1[0-9]|2[0-3]).json.gz", request.path
        )
        hour = _moment(*match.groups()) if match else None
        if hour is None or not self.world.first <= Month.of(hour) <= self.world.last:
            return Response(404, {"Content-Type": "application/xml"}, b"<Code>NoSuchKey</Code>")
        lines = [json.dumps(event, separators=(",", ":")) for event in self._events(hour)]
        body = "\n".join(lines).encode() + b"\n" + _DAMAGED
        return Response(200, {"Content-Type": "application/gzip"}, gzip.compress(body, mtime=0))

    def _events(self, hour: dt.datetime) -> Iterator[dict[str, object]]:
        """Yield the events of an hour: stars and pushes."""
        number = 0
        for place, name in enumerate(self._names):
            for kind, count in (("WatchEvent", _STARS - place), ("PushEvent", 20 * place)):
                for _ in range(count):
                    number += 1
                    yield {
                        "id": f"{hour:%Y%m%d%H}{number:06}",
                        "type": kind,
                        "actor": {"id": number, "login": f"someone-{number}"},
                        "repo": {"id": 900_000 + place, "name": name},
                        "payload": {"action": "started"} if kind == "WatchEvent" else {"size": 1},
                        "public": True,
                        "created_at": f"{hour:%Y-%m-%dT%H}:{number % 60:02}:00Z",
                    }


def _moment(day: str, hour: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(f"{day}T{int(hour):02}:00:00+00:00")
    except ValueError:
        return None


SITE_KINDS = (Site, Archive)
