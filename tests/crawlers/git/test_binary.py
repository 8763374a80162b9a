import contextlib
import time
from pathlib import Path

import psutil
import pytest

from core.errors import SourceUnavailable, StorageError, UsageError
from core.month import Month
from crawlers.git import binary as git_module
from crawlers.git.binary import Git
from simulator.server import Fault, Request, Response, Web, running
from simulator.sites import github
from simulator.world import World
from tests.crawlers.conftest import refused
from tests.loopback import wait_for

NAME = "pallets/flask"


class RecordingSite(github.Site):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.seen: list[dict[str, str]] = []

    def respond(self, request: Request) -> Response:
        self.seen.append(request.headers)
        return super().respond(request)


@pytest.fixture
def site() -> RecordingSite:
    return RecordingSite(World(0, Month("2024-01"), Month("2024-02")))


@pytest.fixture
def git(web: Web, tmp_path: Path) -> Git:
    return Git(tmp_path, web.urls["github"], "tidemark (+https://example.org) git", 0.0)


def clone(git: Git, folder: Path, name: str = NAME) -> None:
    url = f"{git.base_url}/{name}"
    git.transfer(folder, "clone", "--quiet", "--bare", "--filter=blob:none", url, str(folder))


def test_the_users_own_git_configuration_and_environment_play_no_part(
    git: Git, site: RecordingSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = tmp_path / "gitconfig"
    hostile.write_text("[url 'http://127.0.0.1:1/']\n\tinsteadOf = http://127.0.0.1\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    clone(git, tmp_path / "mirror")
    assert git.local(tmp_path / "mirror", "rev-parse", "--is-bare-repository") == b"true\n"
    assert {headers["user-agent"] for headers in site.seen} == {git_agent(git)}
    assert {headers["git-protocol"] for headers in site.seen} == {"version=2"}


def git_agent(git: Git) -> str:
    option = next(part for part in git.command() if part.startswith("http.userAgent="))
    return option.partition("=")[2]


def test_a_local_command_may_not_fetch_what_is_missing(git: Git, web: Web, tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    clone(git, folder)
    num_requests = len(web.requests)
    with pytest.raises(StorageError, match=r"mirror .* is damaged .*move it away and run again"):
        git.local(folder, "cat-file", "-p", "HEAD:LICENSE")
    assert len(web.requests) == num_requests


@pytest.mark.parametrize("url", ["file:///etc", "ssh://host/x", "ext::sh -c true", "/etc", ""])
def test_only_http_is_spoken(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected http:// or https://"):
        Git(tmp_path, url, "agent", 0.0)


def test_a_file_url_is_refused_by_git_too(git: Git, tmp_path: Path) -> None:
    clone(git, tmp_path / "mirror")
    copy = tmp_path / "copy"
    with pytest.raises(SourceUnavailable, match="transport 'file' not allowed"):
        git.transfer(copy, "clone", f"file://{tmp_path / 'mirror'}", str(copy))


def test_what_github_has_not_is_deleted(git: Git, tmp_path: Path) -> None:
    with refused("deleted", "could not read Username"):
        clone(git, tmp_path / "mirror", "no/such")
    assert not (tmp_path / "mirror").exists()


@pytest.mark.parametrize(
    ("status", "reason"), [(404, "deleted"), (410, "deleted"), (451, "deleted"), (403, "http_403")]
)
def test_final_answers_become_drop_reasons(
    status: int, reason: str, git: Git, web: Web, tmp_path: Path
) -> None:
    web.faults.append(Fault("status", "github", status=status, times=9))
    with refused(reason):
        clone(git, tmp_path / "mirror")
    assert len(web.requests) == 1  # no second try


@pytest.mark.parametrize("fault", [Fault("status", "github", times=99, status=429),
                                   Fault("redirect_loop", "github", times=99)])  # fmt: skip
def test_a_lasting_failure_is_told_to_the_caller(
    fault: Fault, git: Git, web: Web, tmp_path: Path
) -> None:
    web.faults.append(fault)
    with pytest.raises(SourceUnavailable, match="git for mirror failed: .*try again later"):
        clone(git, tmp_path / "mirror")


def test_a_renamed_repository_is_followed_on_its_own_host_only(
    git: Git, web: Web, tmp_path: Path
) -> None:
    refs = "info/refs?service=git-upload-pack"
    moved = Fault("redirect_loop", "github", "flask", 1, headers={"Location": f"/psf/black/{refs}"})
    web.faults.append(moved)
    clone(git, tmp_path / "mirror")
    assert web.requests[1][2] == f"/psf/black/{refs}"
    elsewhere = RecordingSite(World(0, Month("2024-01"), Month("2024-02")))
    with running(elsewhere, Web(), "127.0.0.2") as url:
        there = {"Location": f"{url}/psf/black/{refs}"}
        web.faults.append(Fault("redirect_loop", "github", times=99, headers=there))
        with pytest.raises(SourceUnavailable, match="connect to another host, which it redirects"):
            clone(git, tmp_path / "another")
    assert elsewhere.seen == []


@pytest.mark.parametrize("limit", ["MAX_MIRROR_BYTES", "_TRANSFER_TIMEOUT_S"])
def test_a_transfer_that_is_too_large_or_too_long_is_killed(
    git: Git, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(git_module, limit, 1)
    monkeypatch.setattr(git_module, "_TRIES", 1)
    web.faults.append(Fault("drip", "github", "/git-upload-pack$"))
    if limit == "MAX_MIRROR_BYTES":
        with refused("too_large", "more than 1 bytes"):
            clone(git, tmp_path / "mirror")
    else:
        with pytest.raises(SourceUnavailable, match="not done after 1 s"):
            clone(git, tmp_path / "mirror")
    wait_for(lambda: not running_gits())


def running_gits() -> list[str]:
    names = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            names.append(child.name())
    return [name for name in names if "remote-http" in name]


def test_transfers_keep_their_distance_whoever_asks(web: Web, tmp_path: Path) -> None:
    agents = [Git(tmp_path, web.urls["github"], "agent", 0.4) for _ in range(3)]
    started = time.monotonic()
    for number, git in enumerate(agents):
        with git.alone():
            clone(git, tmp_path / f"mirror{number}")
    assert time.monotonic() - started >= 0.8
