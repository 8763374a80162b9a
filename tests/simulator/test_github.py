import datetime as dt
import gzip
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from core.month import Month
from simulator.repositories import TRENDING
from simulator.server import Web, serve_sites
from simulator.sites.github import YOUNG, Site
from simulator.world import World

NAME = "scrapy/scrapy"
WORLD = World(0, Month("2024-01"), Month("2024-03"))


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve_sites([Site(WORLD)]) as running:
        yield running


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def clone(web: Web, folder: Path, *options: str, name: str = NAME) -> str:
    git("clone", "--quiet", "--bare", *options, f"{web.urls['github']}/{name}", str(folder))
    return f"--git-dir={folder}"


@pytest.mark.parametrize("name", [NAME, f"{NAME}.git", YOUNG])
def test_it_serves_real_repositories(web: Web, tmp_path: Path, name: str) -> None:
    mirror = clone(web, tmp_path / "mirror", name=name)
    git(mirror, "fsck", "--strict")
    seconds = git(mirror, "log", "--first-parent", "--format=%ct").split()
    dates = [dt.datetime.fromtimestamp(int(each), dt.UTC) for each in seconds]
    assert dates == sorted(dates, reverse=True)
    assert dates[0] == dt.datetime(2024, 3, 31, 23, 59, 59, tzinfo=dt.UTC)
    assert (dates[-1] < WORLD.first.start) == (name != YOUNG)
    assert {month.start for month in WORLD.months} < set(dates)


def test_it_knows_partial_clones(web: Web, tmp_path: Path) -> None:
    mirror = clone(web, tmp_path / "mirror", "--filter=blob:none", "--single-branch")
    missing = git(mirror, "rev-list", "--objects", "--missing=print", "HEAD")
    assert missing.count("\n?") > 30
    assert git(mirror, "show", "HEAD:README.md") == "Release of 2024-03.\n"


def test_the_same_world_has_the_same_commits(web: Web, tmp_path: Path) -> None:
    with (
        serve_sites([Site(WORLD)]) as other,
        serve_sites([Site(World(1, WORLD.first, WORLD.last))]) as third,
    ):
        tips = [
            git("ls-remote", f"{each.urls['github']}/{NAME}", "HEAD")
            for each in (web, other, third)
        ]
    assert tips[0] == tips[1] != tips[2]


def test_other_names_get_what_github_gives(web: Web) -> None:
    for path in ("/no/such/info/refs?service=git-upload-pack", "/../../info/refs"):
        answer = requests.get(web.urls["github"] + path, timeout=10)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="GitHub"'


def test_what_is_not_git_is_a_page(web: Web) -> None:
    page = requests.get(web.urls["github"] + "/trending/python?since=monthly", timeout=10)
    assert page.text.count('<article class="Box-row">') == TRENDING
    for path in ("/no/such", "/../../etc/passwd"):
        assert requests.get(web.urls["github"] + path, timeout=10).status_code == 404


def test_a_gzipped_request_is_understood(web: Web) -> None:
    body = b"0014command=ls-refs\n0000"
    headers = {
        "Content-Type": "application/x-git-upload-pack-request",
        "Content-Encoding": "gzip",
        "Git-Protocol": "version=2",
    }
    url = f"{web.urls['github']}/{NAME}/git-upload-pack"
    answer = requests.post(url, gzip.compress(body), headers=headers, timeout=10)
    assert b"refs/heads/main" in answer.content


def test_nobody_may_push(web: Web, tmp_path: Path) -> None:
    mirror = clone(web, tmp_path / "mirror")
    with pytest.raises(subprocess.CalledProcessError):
        git(mirror, "-c", "core.askPass=true", "push", "--quiet", "origin", "main:refs/heads/x")


def test_closing_removes_the_repositories(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with serve_sites([Site(WORLD)]) as own:
        git("ls-remote", f"{own.urls['github']}/{NAME}")
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
