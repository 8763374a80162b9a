"""Simulated github.com: git repositories, served over HTTP by ``git http-backend``.

The first request for a repository creates it; its commits are deterministic. Requests for
repositories that do not exist get status 401, as on GitHub. A former name of a repository
(``renamed``) redirects to the present one. The files are generated from the world and differ from
the files of the real projects. In every month of the world, each repository:
- adds files: in the month's first second, in its middle and in its last second;
- merges, on the 20th, a branch that was committed in the previous month;
- rewrites a file of the previous month, which counts as new text;
- edits a file a little, renames a file, and adds vendored, minified and generated files, a link and
  a submodule; none of these counts as new text.

Repositories of dated texts are in ``simulator/posts.py``.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import html
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from core.month import Month
from simulator.fast_import import commit, write_file
from simulator.posts import history, read_series
from simulator.repositories import LICENCES, Repository, trending_repositories
from simulator.server import Request, Response, WorldSite
from simulator.world import World

REPOSITORIES = {  # repository name: licence
    "pallets/flask": "BSD-3-Clause",
    "psf/black": "MIT",
    "pytest-dev/pytest": "MIT",
    "scrapy/scrapy": "BSD-2-Clause",
    "tox-dev/tox": "GPL-3.0-only",  # crawlers drop repositories with this licence
}
YOUNG = "psf/black"  # this repository begins in the world's first month
_NUM_GIVING = sum(not licence.startswith("GPL") for licence in REPOSITORIES.values())
# GitHub's own rules on repositories and lists, from copies of its robots.txt (2026-11).
ROBOTS = """# If you would like to crawl GitHub contact us via https://support.github.com
# We also provide an extensive API: https://docs.github.com
User-agent: *

Disallow: /*/*/commits/
Disallow: /*/*/stargazers
Disallow: /*/tree/
Disallow: /*/archive/
Disallow: /*/raw/
Disallow: /*.git$
Disallow: /search$
Disallow: /*q=
Disallow: */tarball/
Disallow: */zipball/
Disallow: /*since=*
Disallow: /*until=*
"""
_PERIODS = {"daily": "today", "weekly": "this week", "monthly": "this month"}
_DAY = dt.timedelta(days=1)
_SECOND = dt.timedelta(seconds=1)


class Site(WorldSite):
    """The simulated github.com; see the module docstring."""

    keys: tuple[str, ...] = ("github",)
    robots: str | None = ROBOTS

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._trending = trending_repositories(world)
        self.renamed: dict[str, str] = {}  # former name -> name
        self._lock = threading.Lock()
        self._folder: Path | None = None

    def respond(self, request: Request) -> Response:
        """Respond with the trending list, or pass a request for a repository to git."""
        if not request.path.endswith(("/info/refs", "/git-upload-pack")):
            return self._list(request)
        owner, repository, rest = [*request.path[1:].split("/", 2), "", ""][:3]
        name = f"{owner}/{repository.removesuffix('.git')}"
        new_name = self.renamed.get(name)
        if new_name:
            base = f"http://{request.headers['host']}/{new_name}.git/{rest}"
            return Response(301, {"Location": f"{base}?{request.raw_query}"})
        if name not in REPOSITORIES and name not in read_series():
            challenge = {"WWW-Authenticate": 'Basic realm="GitHub"', "Content-Type": "text/plain"}
            return Response(401, challenge, b"Repository not found.")
        with self._lock:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="tidemark-github-"))
            folder = self._folder / name
            if not folder.exists():
                is_code = name in REPOSITORIES
                past = _history(self.world, name) if is_code else history(self.world, name)
                _make_repository(folder, past)
        return run_backend(self._folder, dataclasses.replace(request, path=f"/{name}/{rest}"))

    def _list(self, request: Request) -> Response:
        """Answer the list of trending repositories."""
        if not re.fullmatch("/trending(/python)?", request.path):
            return Response(404)
        period = _PERIODS.get(request.arg("since", "daily"), "today")
        rows = "\n".join(_trending_row(repository, period) for repository in self._trending)
        head = "<!DOCTYPE html><html lang=en><head><title>Trending</title></head>"
        text = f"{head}<body>{rows}</body></html>"
        return Response(200, {"Content-Type": "text/html; charset=utf-8"}, text.encode())

    def close(self) -> None:
        """Delete the repositories from the disk."""
        if self._folder is not None:
            shutil.rmtree(self._folder)


def _trending_row(repository: Repository, period: str) -> str:
    """Return the HTML of a repository in the list of trending ones."""
    owner, name = repository.name.split("/")
    return f"""<article class="Box-row">
  <div class="float-right d-flex"><a href="/sponsors/{owner}" class="btn-sm btn">Sponsor</a></div>
  <h2 class="h3 lh-condensed">
    <a href="/{owner}/{name}" data-view-component="true" class="Link">
      <svg aria-hidden="true" class="octicon octicon-repo"><path d="M2 2.5"></path></svg>
      <span data-view-component="true" class="text-normal">
        {owner} /</span>
      {name}</a>
  </h2>
  <p class="col-9 color-fg-muted my-1 pr-4">
    {html.escape(repository.description)}
  </p>
  <div class="f6 color-fg-muted mt-2">
    <span itemprop="programmingLanguage">{repository.language}</span>
    <a href="/{owner}/{name}/stargazers" class="Link Link--muted"> {repository.stars:,}</a>
    <span class="d-inline-block float-sm-right"> {repository.stars // 10:,} stars {period}</span>
  </div>
</article>"""


def _make_repository(folder: Path, history: Iterator[bytes]) -> None:
    _git("init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(folder))
    stream = b"".join(history)
    _git(f"--git-dir={folder}", "fast-import", "--quiet", stdin=stream)
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        _git(f"--git-dir={folder}", "config", key, "true")


def _git(*arguments: str, stdin: bytes = b"") -> None:
    subprocess.run(["git", *arguments], input=stdin, env=_environment(), check=True)


def _environment() -> dict[str, str]:
    return {
        "PATH": f"{Path(shutil.which('git') or '/usr/bin/git').parent}:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def run_backend(folder: Path, request: Request) -> Response:
    """Pass a request for a folder's repositories to ``git http-backend`` as CGI (RFC 3875)."""
    done = subprocess.run(
        ["git", "http-backend"],
        input=request.body,
        capture_output=True,
        check=False,  # git reports errors in its response
        env=_environment()
        | {
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": str(folder),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "PATH_INFO": request.path,
            "QUERY_STRING": request.raw_query,
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": request.method,
        },
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    status = int(headers.pop("Status", "200 OK").split(" ")[0])
    return Response(status, headers, body)


def _history(world: World, name: str) -> Iterator[bytes]:
    born_at = world.first.start if name == YOUNG else world.first.start - _DAY
    yield commit("main", born_at, write_file("LICENSE", LICENCES[REPOSITORIES[name]]))
    for month in world.months:
        yield from _month(world, name, month)


def _month(world: World, name: str, month: Month) -> Iterator[bytes]:
    """Yield a month's commits to a project as git's fast-import reads them."""
    has_past = month > world.first
    num_files = max(4, world.stories_per_month // _NUM_GIVING)
    texts = [world.module(month, "github", _number(name, index)) for index in range(num_files)]
    added = [write_file(_path(month, index), text) for index, text in enumerate(texts)]
    if has_past:
        added[1] = write_file(_path(month - 1, 1), texts[1])  # replaces one of the previous month
    branch = f"work-{month}"
    yield commit(branch, month.start - _SECOND, added[2], parent="refs/heads/main")
    yield commit("main", month.start, added[0])
    if has_past:
        yield commit("main", month.start + 9 * _DAY, *_old_text(world, name, month - 1))
    yield commit("main", month.start + 14 * _DAY, added[1], *added[3:-1], *_decoys(month, texts))
    yield commit("main", month.start + 19 * _DAY, added[2], merged=f"refs/heads/{branch}")
    yield commit("main", month.end - _SECOND, added[-1])


def _old_text(world: World, name: str, month: Month) -> list[bytes]:
    """Return two changes without new text: edit one file of ``month`` a little, rename another."""
    text = world.module(month, "github", _number(name, 2))
    old = _path(month, 0)
    new = f"src/old/{_path(month, 0).rpartition('/')[2]}"
    return [write_file(_path(month, 2), text + "# checked\n"), f"R {old} {new}\n".encode()]


def _decoys(month: Month, texts: list[str]) -> list[bytes]:
    """Return changes of files that no crawl may keep."""
    return [
        write_file(f"src/_vendor/copy_{month}.py", texts[0] + "\n"),
        write_file(f"src/packed_{month}.py", f"DATA = {'0,' * 600!r}\n"),
        write_file(f"src/made_{month}.py", f"# Generated by a tool. DO NOT EDIT.\n{texts[1]}"),
        write_file(f"src/link_{month}.py", "../README.md", mode="120000"),
        f"M 160000 {'1' * 40} libs/sub_{month}.py\n".encode(),
        write_file("README.md", f"Release of {month}.\n"),
    ]


def _number(name: str, index: int) -> int:
    return 300 * list(REPOSITORIES).index(name) + index


def _path(month: Month, index: int) -> str:
    return f"src/records_{month}_{index}.py"
