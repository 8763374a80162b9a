"""Wrong answers to crawlers of this extra: the check of ``tests/crawlers``."""

import pytest

from extras.github import github_new, github_trending
from simulator.server import Site
from simulator.sites import github, github_api
from tests.crawlers.test_mutated_answers import WORLD, check_answers

TOKENS = {"github_api": github_api.TOKEN}


def api() -> Site:
    site = github_api.Site(WORLD)
    site.limits = dict.fromkeys(site.limits, (10**9, 60.0))
    return site


def test_no_answer_of_the_api_ends_in_anything_else() -> None:
    check_answers(github_new, dict.fromkeys(github_new.INFO.sites, api()), TOKENS)


def test_no_answer_of_the_list_ends_in_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(github_trending, "RECENT_DAYS", 100_000)
    archive = github_api.Archive(WORLD)
    sites = {"github": github.Site(WORLD), "github_api": api(), "gharchive": archive}
    check_answers(github_trending, sites, TOKENS)
