from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from core.month import Month
from simulator.repositories import HOSTILE, blob_sha, hostile_tarball, new_repositories
from simulator.server import Web, serve_sites
from simulator.sites import gharchive
from simulator.sites.github_api import TOKEN, Site
from simulator.world import World

MONTH = Month("2024-01")
WORLD = World(0, MONTH, MONTH + 1)
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
WHOLE = "created:2024-01-01T00:00:00Z..2024-01-31T23:59:59Z language:python"


@pytest.fixture
def site() -> Site:
    return Site(WORLD)


@pytest.fixture
def web(site: Site) -> Iterator[Web]:
    with serve_sites([site, gharchive.Site(WORLD)]) as running:
        yield running


def get(web: Web, path: str, headers: dict[str, str] = AUTHORISED, **params: Any) -> Any:
    url = web.urls["github_api"] + path
    return requests.get(url, params, headers=headers, timeout=10, allow_redirects=False)


def test_the_search_finds_by_time_language_and_licence(web: Web) -> None:
    body = get(web, "/search/repositories", q=WHOLE).json()
    assert body["incomplete_results"] is False
    assert body["total_count"] == len(body["items"]) == len(new_repositories(WORLD, MONTH))
    mit = get(web, "/search/repositories", q=f"{WHOLE} license:mit").json()
    assert {row["license"]["spdx_id"] for row in mit["items"]} == {"MIT"}
    assert not get(web, "/search/repositories", q=f"{WHOLE} language:go").json()["items"]
    stars = [row["stargazers_count"] for row in body["items"]]
    assert stars == sorted(stars, reverse=True)


def test_pages_have_links_and_end_at_1000(web: Web) -> None:
    first = get(web, "/search/repositories", q=WHOLE, per_page=3)
    assert first.links["next"]["url"].endswith("page=2")
    assert len(first.json()["items"]) == 3
    following = requests.get(first.links["next"]["url"], headers=AUTHORISED, timeout=10)
    assert "prev" in following.links
    beyond = get(web, "/search/repositories", q=WHOLE, per_page=100, page=11)
    assert beyond.status_code == 422
    assert "first 1000" in beyond.json()["message"]
    assert get(web, "/search/repositories").status_code == 422


def test_limits_are_told_and_kept_apart(web: Web, site: Site) -> None:
    site.limits = {**site.limits, ("core", False): (2, 3600.0)}
    name = next(iter(site.repositories))
    left = [get(web, f"/repos/{name}/commits", {}) for _ in range(3)]
    assert [answer.status_code for answer in left] == [200, 200, 403]
    assert [answer.headers["x-ratelimit-remaining"] for answer in left] == ["1", "0", "0"]
    assert "rate limit exceeded" in left[-1].json()["message"]
    assert site.num_refused == 1
    assert get(web, "/search/repositories", {}, q=WHOLE).headers["x-ratelimit-resource"] == "search"
    assert get(web, f"/repos/{name}/commits").headers["x-ratelimit-limit"] == "5000"


def test_a_wrong_token_is_401(web: Web) -> None:
    answer = get(web, "/search/repositories", {"Authorization": "Bearer no"}, q=WHOLE)
    assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


def test_what_is_known_already_is_304(web: Web, site: Site) -> None:
    name = next(iter(site.repositories))
    tag = get(web, f"/repos/{name}/commits").headers["etag"]
    again = get(web, f"/repos/{name}/commits", {**AUTHORISED, "If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


def test_a_commit_leads_to_its_tree_its_blobs_and_its_tarball(web: Web, site: Site) -> None:
    repository = new_repositories(WORLD, MONTH)[0]
    base = f"/repos/{repository.name}"
    all_, [commit] = (
        get(web, f"{base}/commits", until=until, per_page=9).json()
        for until in ("2024-12-31T00:00:00Z", "2024-01-31T23:59:59Z")
    )
    assert len(all_) == 2
    tree = commit["commit"]["tree"]["sha"]
    top = get(web, f"{base}/git/trees/{tree}").json()
    whole = get(web, f"{base}/git/trees/{tree}", recursive=1).json()
    assert {row["type"] for row in top["tree"]} == {"blob", "tree"}
    assert not [row for row in top["tree"] if "/" in row["path"]]
    assert {row["mode"] for row in whole["tree"]} >= {"100644", "120000", "160000", "040000"}
    row = next(row for row in whole["tree"] if row["path"] == "LICENSE")
    blob = get(web, f"{base}/git/blobs/{row['sha']}").json()
    data = base64.b64decode(blob["content"])
    assert (len(data), blob_sha(data)) == (row["size"], row["sha"])
    away = get(web, f"{base}/tarball/{commit['sha']}")
    assert away.status_code == 302
    packed = requests.get(away.headers["location"], timeout=10).content
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.pax_headers == {"comment": commit["sha"]}
        assert any(member.issym() for member in archive)
        assert any(name.endswith("/LICENSE") for name in archive.getnames())


def test_what_is_not_there_is_404_and_an_empty_repository_409(web: Web) -> None:
    odd = new_repositories(WORLD, MONTH)[-4:]
    codes = [get(web, f"/repos/{one.name}/commits").status_code for one in odd]
    assert codes == [409, 404, 200, 200]
    assert get(web, f"/repos/{odd[2].name}/git/blobs/{'0' * 40}").status_code == 404
    assert get(web, f"/repos/{odd[2].name}/commits", sha="gone").status_code == 404
    assert get(web, "/repos/no/such/commits").status_code == 404


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_tarballs_are_what_they_say(kind: str) -> None:
    packed = hostile_tarball(kind)
    assert len(packed) < 2**22
    if kind == "cut":
        with pytest.raises(EOFError):
            gzip.decompress(packed)


def test_the_timeline_has_stars_and_more(web: Web) -> None:
    url = web.urls["gharchive"]
    answer = requests.get(f"{url}/2024-01-31-5.json.gz", timeout=10)
    lines = gzip.decompress(answer.content).splitlines()
    events = [json.loads(line) for line in lines[:-1]]
    assert {event["type"] for event in events} == {"WatchEvent", "PushEvent"}
    for path in ("/2024-01-31-05.json.gz", "/2023-12-31-5.json.gz", "/2024-02-31-5.json.gz"):
        assert requests.get(url + path, timeout=10).status_code == 404
