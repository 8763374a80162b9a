"""Subsets of sources as sources of their own: one language, archive or site."""

import datetime as dt
from collections.abc import Iterator

import pytest

from core.corpus.partition import Seal
from core.errors import UnknownName
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.crawling.source_list import list_source_facts
from crawlers.registry import is_source, load_crawler
from simulator.repositories import LICENCES, Commit, Repository
from simulator.server import Web, serve
from simulator.sites.github_api import Site
from simulator.world import World
from tests.crawlers.conftest import rows_of

MONTH = Month("2024-02")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(3, MONTH - 1, MONTH, stories_per_month=24)) as running:
        api = running.sites["github_api"]
        assert isinstance(api, Site)
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


@pytest.fixture
def store(tmp_path: object) -> Store:
    return Store(str(tmp_path))


def _crawl(source: str, store: Store, web: Web) -> Seal:
    settings = Settings(home=store.root, sites=dict(web.urls), request_interval_s=0)
    return crawl_partition(source, MONTH, store, settings)


@pytest.mark.parametrize(
    ("source", "column", "values"),
    [
        ("github_new:cpp", "language", {"code:cpp"}),
        ("github_new:markdown", "language", {"code:markdown"}),
        ("github_new:javascript", "language", {"code:javascript"}),
        ("wikipedia_new:de", "language", {"de"}),
    ],
)
def test_a_subset_is_sealed_beside_its_source(
    source: str, column: str, values: set[str], store: Store, web: Web
) -> None:
    seal = _crawl(source, store, web)
    assert seal.partition.source == source
    rows = rows_of(store, seal)
    assert rows
    assert {row["source"] for row in rows} == {source}
    assert {row[column] for row in rows} == values


def test_a_sealed_subset_is_listed_as_crawled(store: Store, web: Web) -> None:
    _crawl("github_new:markdown", store, web)
    facts = {each.source: each for each in list_source_facts(Settings(home=store.root))}
    assert (facts["github_new:markdown"].kind, facts["github_new:markdown"].last_sealed) == (
        "code",
        "2024-02",
    )
    assert "wikipedia_new:de" not in facts


def test_the_description_is_that_of_the_subset() -> None:
    german, cpp = load_crawler("wikipedia_new:de").INFO, load_crawler("github_new:cpp").INFO
    assert (german.name, german.language) == ("wikipedia_new:de", "de")
    assert german.sites["wikipedia_de"] == "https://de.wikipedia.org"
    assert (cpp.name, cpp.language) == ("github_new:cpp", "code:cpp")


@pytest.mark.parametrize(
    "name",
    ["github_new:cobol", "github_new:", "hackernews:math", "wikipedia_new:../x",
     "wikipedia_new:de:fr", "nowhere:de"],
)  # fmt: skip
def test_an_unknown_subset_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnknownName, match=name.partition(":")[0]):
        load_crawler(name)


def test_imported_sources_are_not_subsets() -> None:
    assert is_source("wikipedia_new:de")
    for name in ("mine:de", "hackernews:mine", "wikipedia_monitored:week", "github_new:cobol"):
        assert not is_source(name)
