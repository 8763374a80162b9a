"""Pages of the simulated GitHub for a person to click through: trending, repositories, files."""

from __future__ import annotations

import html
import re

from simulator.repositories import Commit, Repository, new_repositories, trending_repositories
from simulator.server import Request, Response
from simulator.world import World

_HTML = {"Content-Type": "text/html; charset=utf-8"}
_PERIODS = {"daily": "today", "weekly": "this week", "monthly": "this month"}


class Pages:
    """Answers for all of github.com that is not git."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._trending = trending_repositories(world)
        self._known = {repository.name: repository for repository in self._trending}

    def respond(self, request: Request) -> Response:
        """Show the page of a path."""
        if re.fullmatch("/|/trending(/python)?", request.path):
            since = request.arg("since", "daily")
            return _page("Trending Python repositories", self._rows(_PERIODS.get(since, "today")))
        parts = request.path[1:].split("/", 4)
        repository = self._find("/".join(parts[:2]))
        if repository is None or repository.is_gone:
            return _page("Not Found", "This is not the web page you are looking for.", 404)
        if len(parts) == 2:
            return _page(repository.name, _repository(repository))
        if len(parts) == 5 and parts[2] == "blob":
            return _file(repository, parts[3], parts[4])
        return _page("Not Found", "", 404)

    def _find(self, name: str) -> Repository | None:
        for month in self._world.months if name not in self._known else []:
            for repository in new_repositories(self._world, month):
                self._known.setdefault(repository.name, repository)
        return self._known.get(name)

    def _rows(self, period: str) -> str:
        return "\n".join(_trending_row(repository, period) for repository in self._trending)


def _trending_row(repository: Repository, period: str) -> str:
    """As GitHub writes it: the link's text is spread over lines, a sponsor's link comes first."""
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


def _repository(repository: Repository) -> str:
    if not repository.commits:
        return "<p>This repository is empty.</p>"
    commit = repository.commits[0]
    rows = [
        f'<li><a href="/{repository.name}/blob/{commit.sha}/{path}">{html.escape(path)}</a></li>'
        for path in sorted(commit.files)
    ]
    about = html.escape(repository.description)
    return f"<p>{about}</p><ul>{''.join(rows)}</ul><pre>{_text(commit, 'README.md')}</pre>"


def _file(repository: Repository, sha: str, path: str) -> Response:
    for commit in repository.commits:
        if commit.sha == sha and path in commit.files:
            return _page(path, f"<pre>{_text(commit, path)}</pre>")
    return _page("Not Found", "", 404)


def _text(commit: Commit, path: str) -> str:
    _, data = commit.files.get(path, ("", b""))
    return html.escape(data[:100_000].decode(errors="replace"))


def _page(title: str, body: str, status: int = 200) -> Response:
    text = f"<!DOCTYPE html><html lang=en><head><title>{html.escape(title)} · GitHub</title></head>"
    text += (
        f'<body><a href="/trending">Trending</a><h1>{html.escape(title)}</h1>{body}</body></html>'
    )
    return Response(status, _HTML, text.encode())
