"""GitHub's REST API: recorded exchanges, as (request, status, headers, body)."""

import ast
import datetime as dt
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from core.settings import Settings
from crawlers.web.fetcher import Fetched, Fetcher
from extras.github.api import (
    SITE,
    SITES,
    GitHubApi,
    TreeEntry,
    read_limits,
    read_moment,
    read_repository,
)
from simulator.server import Request, Response
from tests.crawlers.recorded import Case, Replay, replay

NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
NAME = "jacquev6/PyGithub"


class Exchange(NamedTuple):
    path: str
    status: int
    headers: dict[str, str]
    body: bytes


def exchanges(path: Path) -> Iterator[Exchange]:
    """Yield the exchanges of a file: lines of request, status, headers and body, then a blank."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip("\n").split("\n")
        if len(lines) == 10:
            headers = {name.lower(): value for name, value in ast.literal_eval(lines[8])}
            yield Exchange(lines[4], int(lines[7]), headers, lines[9].encode())


def check_exchanges(folder: Path, settings: Settings) -> None:
    files = sorted(folder.glob("*.txt"))
    counts = [check_exchange(each, settings) for path in files for each in exchanges(path)]
    assert sum(counts) >= 7  # that many of the recorded exchanges are of kinds that we use


def check_exchange(recorded: Exchange, settings: Settings) -> bool:
    """Check one exchange; return True if it is of a kind that a crawl has."""

    def respond(request: Request) -> Response:
        return Response(200, {"Content-Type": "application/json"}, recorded.body)

    if recorded.status in (403, 429):
        refused = Fetched("https://api.github.com", recorded.headers, recorded.body, NOW)
        pause_s = read_limits(recorded.status, refused)
        assert pause_s is not None and pause_s > 0  # wait; other refusals give no pause
        return True
    with replay(settings, Replay((SITE,), respond)) as (found, _):
        api = GitHubApi(Fetcher(found, SITES, 0, use_cache=False))
        if recorded.path.startswith("/search/repositories"):
            check_search(api, recorded)
        elif re.search("/commits[?]", recorded.path):
            commit = api.last_commit(NAME, None, NOW)
            first = json.loads(recorded.body)[0]
            assert commit.sha == first["sha"]
            assert commit.committed_at == read_moment("", first["commit"]["committer"], "date")
        elif "/git/blobs/" in recorded.path:
            sha = recorded.path.rpartition("/")[2]
            content, _ = api.blob(NAME, TreeEntry("a", "100644", sha, 1))
            assert len(content) == json.loads(recorded.body)["size"]
        else:
            return False
    return True


def check_search(api: GitHubApi, recorded: Exchange) -> None:
    page = api.search("anything", 1)
    body = json.loads(recorded.body)
    assert page.total == body["total_count"] and len(page.items) == len(body["items"])
    for row, item in zip(body["items"], page.items, strict=True):
        repository = read_repository(item)
        assert (repository.id, repository.name) == (row["id"], row["full_name"])
        assert repository.created_at == read_moment("", row, "created_at")
        assert item["stargazers_count"] >= 0


CASES = [Case("github", check_exchanges)]
