"""Wrong answers to crawlers of this extra: the check of ``tests/crawlers``."""

import pytest

from extras.more_sources import github_trending, global_voices
from extras.more_sources.simulator import global_voices as global_voices_site
from simulator.sites import github, github_api
from tests.crawlers.test_mutated_answers import WORLD, api, check_answers


def test_no_answer_of_global_voices_ends_in_anything_else() -> None:
    check_answers(global_voices, {"global_voices": global_voices_site.Site(WORLD)})


def test_no_answer_of_github_ends_in_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(github_trending, "RECENT_DAYS", 100_000)
    archive = github_api.Archive(WORLD)
    sites = {"github": github.Site(WORLD), "github_api": api(), "gharchive": archive}
    check_answers(github_trending, sites)
