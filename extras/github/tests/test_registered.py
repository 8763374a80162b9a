"""The sources of the extra among the others: default runs, subsets, periods."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import UnknownName
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.source_list import list_source_facts
from crawlers.registry import is_source, list_sources, load_crawler
from simulator.repositories import LICENCES, Commit, Repository
from simulator.server import Web, serve
from simulator.sites.github_api import Site
from simulator.world import World
from tests.crawlers.test_periods import test_two_halves_are_the_month as check_two_halves
from tests.crawlers.test_subsets import MONTH, seal_subset
from tests.crawlers.test_subsets import test_a_subset_is_sealed_beside_its_source as check_subset


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(3, MONTH - 1, MONTH, stories_per_month=24)) as running:
        api = running.sites["github_api"]
        assert isinstance(api, Site)
        api.limits = dict.fromkeys(api.limits, (10**9, 60.0))  # no test waits for a minute
        made = [(number, name) for number, name in enumerate(("cpp/a", "cpp/b", "md/c"))]
        for number, name in made:
            language, path = (
                ("cpp", "src/main.cpp") if name.startswith("cpp") else ("markdown", "notes.md")
            )
            api.repositories[name] = _repository(900_000 + number, name, language, path)
        yield running


def _repository(number: int, name: str, language: str, path: str) -> Repository:
    at = MONTH.start + dt.timedelta(days=number % 10)
    line = "An evening of late winter, counted by hand: {} visitors at the gate.\n"
    text = "".join(line.format(number * 31 + each) for each in range(20))
    files = {
        "LICENSE": ("100644", LICENCES["MIT"].encode()),
        path: ("100644", text.encode()),
        "tool.py": ("100644", b"print('not of this language, but of the same repository')\n" * 9),
    }
    return Repository(
        number, name, at, "MIT", language=language, history=lambda: [Commit(at, files)]
    )


@pytest.mark.smoke
def test_default_runs_have_them() -> None:
    assert {"github_new", "github_projects", "github_trending"} <= {*list_sources()}


@pytest.mark.parametrize("language", ["cpp", "markdown", "javascript"])
def test_a_language_is_a_subset(language: str, store: Store, web: Web) -> None:
    check_subset(f"github_new:{language}", "language", {f"code:{language}"}, store, web)


def test_a_sealed_subset_is_listed_as_crawled(store: Store, web: Web) -> None:
    seal_subset("github_new:markdown", store, web)
    facts = {each.source: each for each in list_source_facts(Settings(home=store.root))}
    found = facts["github_new:markdown"]
    assert (found.kind, found.last_sealed) == ("code", "2024-02")


def test_the_description_is_that_of_the_subset() -> None:
    cpp = load_crawler("github_new:cpp").INFO
    assert (cpp.name, cpp.language) == ("github_new:cpp", "code:cpp")


@pytest.mark.parametrize("name", ["github_new:cobol", "github_new:"])
def test_an_unknown_language_is_refused(name: str) -> None:
    assert not is_source(name)
    with pytest.raises(UnknownName, match="github_new"):
        load_crawler(name)


def test_two_halves_are_the_month(web: Web, tmp_path: Path) -> None:
    check_two_halves("github_new", True, web, tmp_path)


@pytest.mark.smoke
def test_trending_repositories_are_of_whole_months() -> None:
    why = load_crawler("github_trending").INFO.whole_months
    assert why == "GitHub's list is of a month"
