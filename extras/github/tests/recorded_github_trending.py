"""GitHub's page of trending repositories, and the end of its robots.txt."""

from pathlib import Path

from core.settings import Settings
from extras.github import github_trending
from extras.github.api import NAME
from simulator.server import Request, Response
from tests.crawlers.recorded import Case, Replay, replay


def check_pages(folder: Path, settings: Settings) -> None:
    robots = (folder.parent / "robots" / "github.com.partial.txt").read_text(encoding="utf-8")
    for path in sorted(folder.glob("*.html")):

        def respond(request: Request, page: Path = path) -> Response:
            return Response(200, {"Content-Type": "text/html"}, page.read_bytes())

        with replay(settings, Replay(("github",), respond, robots)) as (found, web):
            period, rows = github_trending._fetch_list(github_trending.INFO.open_fetcher(found))
        assert period == "daily"
        assert not any("since=" in target for _, _, target in web.requests)
        names = [row for row in rows if isinstance(row, str)]
        assert len(names) == len(set(names)) == (20 if path.name == "github_trending.html" else
                                                 len(rows))  # fmt: skip
        assert all(map(NAME.fullmatch, names))


CASES = [Case("github_trending", check_pages)]
