"""Subsets of sources as sources of their own: one language, archive or site."""

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
from simulator.server import Web, serve
from simulator.world import World
from tests.crawlers.conftest import rows_of

MONTH = Month("2024-02")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(3, MONTH - 1, MONTH, stories_per_month=24)) as running:
        yield running


@pytest.fixture
def store(tmp_path: object) -> Store:
    return Store(str(tmp_path))


def seal_subset(source: str, store: Store, web: Web) -> Seal:
    settings = Settings(home=store.root, sites=dict(web.urls), request_interval_s=0)
    return crawl_partition(source, MONTH, store, settings)


@pytest.mark.parametrize(
    ("source", "column", "values"),
    [
        ("wikipedia_new:de", "language", {"de"}),
    ],
)
def test_a_subset_is_sealed_beside_its_source(
    source: str, column: str, values: set[str], store: Store, web: Web
) -> None:
    seal = seal_subset(source, store, web)
    assert seal.partition.source == source
    rows = rows_of(store, seal)
    assert rows
    assert {row["source"] for row in rows} == {source}
    assert {row[column] for row in rows} == values


def test_a_sealed_subset_is_listed_as_crawled(store: Store, web: Web) -> None:
    seal_subset("wikipedia_new:de", store, web)
    facts = {each.source: each for each in list_source_facts(Settings(home=store.root))}
    assert facts["wikipedia_new:de"].kind == facts["wikipedia_new"].kind
    assert facts["wikipedia_new:de"].last_sealed == "2024-02"
    assert "wikipedia_new:fr" not in facts


def test_the_description_is_that_of_the_subset() -> None:
    german = load_crawler("wikipedia_new:de").INFO
    assert (german.name, german.language) == ("wikipedia_new:de", "de")
    assert german.sites["wikipedia_de"] == "https://de.wikipedia.org"


@pytest.mark.parametrize(
    "name",
    ["wikipedia_new:", "hackernews:math", "wikipedia_new:../x",
     "wikipedia_new:de:fr", "nowhere:de"],
)  # fmt: skip
def test_an_unknown_subset_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnknownName, match=name.partition(":")[0]):
        load_crawler(name)


def test_imported_sources_are_not_subsets() -> None:
    assert is_source("wikipedia_new:de")
    for name in ("mine:de", "hackernews:mine", "hackernews:month"):
        assert not is_source(name)
