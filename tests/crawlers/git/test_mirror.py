import contextlib
import datetime as dt
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from core.errors import SourceUnavailable, StorageError, UsageError
from core.month import Month
from crawlers.git.binary import Git
from crawlers.git.mirror import MAX_BLOB_BYTES, Mirror, Work, open_mirror
from simulator.server import Fault, Request, Response, Web
from simulator.sites.github import run_backend
from tests.crawlers.conftest import refused
from tests.loopback import wait_for

MARCH = Month("2024-03")
LICENCE = re.compile("LICENSE")
NAME = "owner/project"


class Upstream:
    keys = ("github",)
    robots = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._repository = folder / NAME
        subprocess.run(
            ["git", "init", "-q", "--bare", "-b", "main", str(self._repository)], check=True
        )
        for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
            self.git("config", key, "true")

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        command = ["git", f"--git-dir={self._repository}", *arguments]
        return subprocess.run(command, input=stdin, check=True, capture_output=True).stdout

    def commit(self, when: str, *changes: tuple[bytes, bytes | None], force: bool = False) -> str:
        """Add one commit; a change is a path and its content, or None to remove the file."""
        seconds = int(dt.datetime.fromisoformat(when).timestamp())
        stream = [
            b"commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata 0\n" % seconds
        ]
        if not force and self.git("for-each-ref"):
            stream.append(b"from refs/heads/main^0\n")
        for path, content in changes:
            if content is None:
                stream.append(b"D %s\n" % path)
            else:
                stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path, len(content), content))
        self.git("fast-import", "--quiet", "--force", stdin=b"".join(stream))
        return self.git("rev-parse", "main").decode().strip()

    def respond(self, request: Request) -> Response:
        return run_backend(self._folder, request)


@pytest.fixture
def site(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream")


@pytest.fixture
def git(web: Web, tmp_path: Path) -> Git:
    return Git(tmp_path / "scratch", web.urls["github"], "agent", 0.0)


def open_now(git: Git) -> Mirror:
    return open_mirror(git, NAME, dt.datetime.now(dt.UTC))


def work_of(git: Git, month: Month = MARCH) -> Work:
    work = open_now(git).work(month.start, month.end, ("*.py",), LICENCE)
    assert work is not None
    return work


def lines(count: int, word: str = "line") -> bytes:
    return b"".join(f"{word} {number}\n".encode() for number in range(count))


def test_a_month_is_half_open(git: Git, site: Upstream) -> None:
    site.commit("2024-02-29T23:59:59Z", (b"feb.py", b"1\n"))
    first = site.commit("2024-03-01T00:00:00Z", (b"first.py", b"2\n"))
    last = site.commit("2024-03-31T23:59:59Z", (b"last.py", b"3\n"))
    site.commit("2024-04-01T00:00:00Z", (b"april.py", b"4\n"))
    work = work_of(git)
    changes = [(change.path, change.status) for change in work.changes]
    assert changes == [("first.py", "A"), ("last.py", "A")]
    assert work.touches["first.py"].oid == first
    assert work.head == work.touches["last.py"]
    assert work.head.oid == last
    assert work.head.committed_at == dt.datetime(2024, 3, 31, 23, 59, 59, tzinfo=dt.UTC)
    assert not work.is_initial


def test_changes_are_those_between_the_two_ends(git: Git, site: Upstream) -> None:
    old = [(b"kept.py", b"k\n"), (b"edited.py", lines(9)), (b"gone.py", lines(30, "gone"))]
    site.commit("2024-02-01T00:00:00Z", *old, (b"moved.py", lines(40, "moved")))
    site.commit("2024-03-05T00:00:00Z", (b"brief.py", b"b\n"), (b"edited.py", lines(10)))
    site.commit("2024-03-06T00:00:00Z", (b"brief.py", None), (b"gone.py", None))
    site.commit("2024-03-07T00:00:00Z", (b"moved.py", None))
    site.commit("2024-03-08T00:00:00Z", (b"sub/moved too.py", lines(44, "moved")))
    site.commit("2024-03-09T00:00:00Z", (b"kept.py", b"x\n"), (b"notes.txt", b"n\n"))
    site.commit("2024-03-10T00:00:00Z", (b"kept.py", b"k\n"))
    work = work_of(git)
    assert [(change.path, change.status) for change in work.changes] == [("edited.py", "M")]
    (change,) = work.changes
    with open_now(git).blobs() as blobs:
        assert blobs.read(change.old_oid) == lines(9)
        assert blobs.read(change.new_oid) == lines(10)


def test_a_young_repository_is_flagged(git: Git, site: Upstream) -> None:
    site.commit("2024-03-05T00:00:00Z", (b"a.py", b"1\n"), (b"LICENSE", b"MIT"))
    work = work_of(git)
    assert work.is_initial
    assert [change.path for change in work.changes] == ["a.py"]
    with open_now(git).blobs() as blobs:
        assert [blobs.read(oid) for oid in work.top_oids] == [b"MIT"]
    with refused("not_yet_created", "no commit before 2024-03-01"):
        open_now(git).work(Month("2024-02").start, MARCH.start, ("*.py",), LICENCE)


def test_an_empty_answer_is_not_taken_for_an_empty_repository(
    git: Git, web: Web, site: Upstream
) -> None:
    site.commit("2024-03-05T00:00:00Z", (b"a.py", b"1\n"))
    web.faults.append(Fault("status", "github", "info/refs", status=200, body=b""))
    with pytest.raises(SourceUnavailable, match="has no commit"):
        open_now(git)
    assert [change.path for change in work_of(git).changes] == ["a.py"]
    web.faults.append(Fault("status", "github", "info/refs", times=3, status=200, body=b""))
    with pytest.raises(SourceUnavailable, match="couldn't find remote ref HEAD"):
        open_now(git)


def test_a_quiet_month_asks_for_nothing(git: Git, web: Web, site: Upstream) -> None:
    site.commit("2024-02-01T00:00:00Z", (b"a.py", b"1\n"), (b"b.py", b"2\n"))
    site.commit("2024-03-05T00:00:00Z", (b"a.txt", b"1\n"), (b"b.py", None))
    mirror = open_now(git)
    num_requests = len(web.requests)
    assert mirror.work(MARCH.start, MARCH.end, ("*.py",), LICENCE) is None
    assert mirror.work((MARCH + 1).start, (MARCH + 1).end, ("*.py",), LICENCE) is None
    assert len(web.requests) == num_requests


def test_a_months_contents_are_fetched_once_and_in_one_go(
    git: Git, web: Web, site: Upstream
) -> None:
    site.commit("2024-02-01T00:00:00Z", *[(b"old%d.py" % n, lines(9)) for n in range(50)])
    changes = [(b"old%d.py" % n, lines(9, f"changed {n}")) for n in range(50)]
    added = [(b"new%d.py" % n, lines(20, f"new {n}")) for n in range(50)]
    site.commit("2024-03-05T00:00:00Z", *changes, *added, (b"big.bin", bytes(10**6)))
    mirror = open_now(git)
    num_requests = len(web.requests)
    first, second = (mirror.work(MARCH.start, MARCH.end, ("*.py",), LICENCE) for _ in range(2))
    assert first is not None
    assert first == second
    assert [method for _, method, _ in web.requests[num_requests:]] == ["GET", "POST"]
    with mirror.blobs() as blobs:
        for change in first.changes:
            assert blobs.read(change.new_oid) is not None
    assert len(web.requests) == num_requests + 2


def test_what_was_not_fetched_is_not_fetched_one_by_one(git: Git, web: Web, site: Upstream) -> None:
    site.commit("2024-03-05T00:00:00Z", (b"a.py", b"1\n"))
    oid = site.git("rev-parse", "main:a.py").decode().strip()
    mirror = open_now(git)
    num_requests = len(web.requests)
    with mirror.blobs() as blobs, pytest.raises(StorageError, match=f"no contents for {oid}"):
        blobs.read(oid)
    assert len(web.requests) == num_requests


def test_odd_paths_are_data(git: Git, site: Upstream, tmp_path: Path) -> None:
    names = [b"-n.py", b"a b.py", b"\xff\xfe.py", b"\x01 .py", "ü/名.py".encode(), b"$(id).py"]
    quoted = [b'"' + b"".join(b"\\%03o" % byte for byte in name) + b'"' for name in names]
    site.commit("2024-03-05T00:00:00Z", *[(name, name) for name in quoted])
    work = work_of(git)
    expected = {name.decode(errors="backslashreplace") for name in names}
    assert {change.path for change in work.changes} == set(work.touches) == expected
    assert not list((tmp_path / "scratch").rglob("*.py"))


def test_a_large_file_is_not_read_into_memory(git: Git, site: Upstream) -> None:
    large = (b"a.py", bytes(MAX_BLOB_BYTES)), (b"b.py", bytes(3 * MAX_BLOB_BYTES)), (b"c.py", b"")
    site.commit("2024-03-05T00:00:00Z", *large)
    with open_now(git).blobs() as blobs:
        contents = [blobs.read(change.new_oid) for change in work_of(git).changes]
    assert contents == [bytes(MAX_BLOB_BYTES), None, b""]


def test_impossible_and_disordered_dates_do_no_harm(git: Git, site: Upstream) -> None:
    site.commit("1970-01-02T00:00:00Z", (b"a.py", b"1\n"))
    site.commit("2024-03-05T00:00:00Z", (b"b.py", b"2\n"))
    site.commit("2099-01-01T00:00:00Z", (b"c.py", b"3\n"))
    head = site.commit("2024-03-06T00:00:00Z", (b"d.py", b"4\n"))
    work = work_of(git)
    assert work.head.oid == head
    assert [change.path for change in work.changes] == ["b.py", "c.py", "d.py"]


def test_a_mirror_is_fetched_again_only_for_a_month_that_was_not_over(
    git: Git, web: Web, site: Upstream
) -> None:
    site.commit("2024-02-05T00:00:00Z", (b"a.py", b"1\n"))
    open_now(git)
    num_requests = len(web.requests)
    site.commit("2024-03-05T00:00:00Z", (b"b.py", b"2\n"))
    stale = open_mirror(git, NAME, MARCH.end)
    assert stale.work(MARCH.start, MARCH.end, ("*.py",), LICENCE) is None
    assert len(web.requests) == num_requests
    assert [change.path for change in work_of(git).changes] == ["b.py"]


def test_rewritten_history_is_followed(git: Git, site: Upstream) -> None:
    for file, force in ((b"a.py", False), (b"b.py", True)):
        site.commit("2024-03-05T00:00:00Z", (file, b"1\n"), force=force)
        assert [change.path for change in work_of(git).changes] == [file.decode()]


def test_what_a_killed_git_left_behind_is_no_hindrance(
    git: Git, site: Upstream, tmp_path: Path
) -> None:
    half = git.root / f"{NAME}.git"
    (half / "objects").mkdir(parents=True)
    (half / "HEAD").write_text("ref: refs/heads/main")  # left by another program's clone
    site.commit("2024-02-05T00:00:00Z", (b"a.py", b"1\n"))
    open_now(git)
    (half / "refs/heads/main.lock").touch()
    (half / "objects/pack/tmp_pack_x").write_bytes(b"half")
    site.commit("2024-03-05T00:00:00Z", (b"b.py", b"2\n"))
    assert [change.path for change in work_of(git).changes] == ["b.py"]


KILLED = """
import sys, pathlib, datetime
from crawlers.git.binary import Git
from crawlers.git.mirror import open_mirror
git = Git(pathlib.Path(sys.argv[1]), sys.argv[2], "agent", 0.0)
open_mirror(git, "owner/project", datetime.datetime.now(datetime.UTC))
"""


def test_a_killed_clone_is_redone(git: Git, web: Web, site: Upstream, tmp_path: Path) -> None:
    site.commit("2024-03-05T00:00:00Z", (b"a.py", b"1\n"))
    web.faults.append(Fault("stall", "github", "git-upload-pack$"))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "scratch"), web.urls["github"]]
    with subprocess.Popen(command) as crawl:
        found = tmp_path / "scratch"
        [partial] = wait_for(lambda: list(found.glob("*/owner/project.git.partial-*")))
        crawl.send_signal(signal.SIGKILL)
    web.faults.clear()
    assert partial.exists()
    assert [change.path for change in work_of(git).changes] == ["a.py"]
    for process in psutil.process_iter():  # git has outlived the crawl
        with contextlib.suppress(psutil.Error):
            if str(partial) in process.cmdline():
                process.kill()
                process.wait(10)
    open_now(git)
    assert not list((tmp_path / "scratch").glob("*/owner/*partial*"))


def test_many_at_once_clone_once(web: Web, site: Upstream, tmp_path: Path) -> None:
    site.commit("2024-03-05T00:00:00Z", (b"a.py", b"1\n"))
    until, found = dt.datetime.now(dt.UTC), []

    def crawl() -> None:
        git = Git(tmp_path / "scratch", web.urls["github"], "agent", 0.0)
        found.append(open_mirror(git, NAME, until).work(MARCH.start, MARCH.end, ("*",), LICENCE))

    threads = [threading.Thread(target=crawl) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is not None
    assert [work == found[0] for work in found] == [True] * 4
    assert len(web.requests) == 3 + 2  # to clone: greeting, branches, history; contents: two


def test_a_refusal_is_remembered_for_the_backfill_but_not_for_ever(
    git: Git, web: Web, site: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.commit("2024-03-05T00:00:00Z", (b"a.py", b"1\n"))
    web.faults.append(Fault("status", "github", status=404))
    for month in (MARCH, MARCH + 1):
        with refused("deleted", "not found"):
            open_mirror(git, NAME, month.end)
    assert len(web.requests) == 1
    monkeypatch.setattr("crawlers.git.mirror._REFUSAL_LASTS", dt.timedelta(0))
    assert open_mirror(git, NAME, MARCH.end).work(MARCH.start, MARCH.end, ("*.py",), LICENCE)


@pytest.mark.parametrize(
    "name",
    [
        "a", "../b/c", "a/..", "a/.", "-a/b", "a/-b", "a/b.git", "a/b/c", "a b/c", "a/b\n", "/a",
        "a/",
    ],
)  # fmt: skip
def test_a_name_must_be_owner_and_repository(name: str, git: Git, web: Web) -> None:
    with pytest.raises(UsageError, match="expected owner/name"):
        open_mirror(git, name, MARCH.end)
    assert not web.requests


def cut_history(site: Upstream, tmp_path: Path) -> None:
    """Make the site's repository a shallow one, of which only the last commit is known."""
    folder = tmp_path / "upstream" / NAME
    whole = tmp_path / "whole"
    folder.rename(whole)
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--depth=1", f"file://{whole}", str(folder)], check=True
    )
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        site.git("config", key, "true")


def test_a_repository_whose_history_is_cut_off_is_refused(
    git: Git, site: Upstream, tmp_path: Path
) -> None:
    site.commit("2024-01-05T00:00:00Z", (b"old.py", b"1\n"))
    site.commit("2024-03-05T00:00:00Z", (b"new.py", b"2\n"))
    cut_history(site, tmp_path)
    with refused("shallow", "source repository is shallow"):
        open_now(git)


def test_a_mirror_takes_no_cut_from_its_source(git: Git, site: Upstream, tmp_path: Path) -> None:
    site.commit("2024-01-05T00:00:00Z", (b"old.py", b"1\n"))
    site.commit("2024-03-05T00:00:00Z", (b"new.py", b"2\n"))
    assert [change.path for change in work_of(git).changes] == ["new.py"]
    site.commit("2024-03-06T00:00:00Z", (b"newer.py", b"3\n"))
    cut_history(site, tmp_path)
    with refused("shallow", "source repository is shallow"):
        open_now(git)
    work = open_mirror(git, NAME, MARCH.end).work(MARCH.start, MARCH.end, ("*.py",), LICENCE)
    assert work is not None
    assert [change.path for change in work.changes] == ["new.py"]
