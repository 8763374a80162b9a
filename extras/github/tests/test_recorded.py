"""Recordings of GitHub: its API, its list of trending repositories, robots.txt."""

import functools
from pathlib import Path

import pytest

from core.settings import Settings
from extras.github import github_new
from extras.github.tests import recorded_github, recorded_github_trending
from tests.crawlers.recorded import Case
from tests.crawlers.recorded.robots import Robots, check_robots

ROBOTS: Robots = {
    "github.com": (
        github_new.INFO.robots_exempt_paths,
        ("/trending/python", "/trending"),
        ("/trending?since=monthly", "/trending/python?since=monthly", "/a/b/commits/c", "/a/b.git"),
    ),
}
CASES = [
    *recorded_github.CASES,
    *recorded_github_trending.CASES,
    Case("robots", functools.partial(check_robots, ROBOTS)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_a_recording_gives_what_it_should(case: Case, shared: Path, settings: Settings) -> None:
    path = shared / "recordings" / case.path
    if not path.exists():
        pytest.skip(f"no recording at {path}")
    case.check(path, settings)
