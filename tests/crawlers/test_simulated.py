"""Simulated items carry the simulator's licence, and others do not."""

from pathlib import Path

from core.cells.tokens import is_open
from core.corpus.questions import read_questions
from core.corpus.simulated import ATTRIBUTION, LICENCE
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.questions.crawl import crawl_questions
from crawlers.web.fetcher import Fetcher
from simulator.server import Request, Response, Site, running, serve_sites
from simulator.sites import hackernews, manifold
from simulator.world import World
from tests.crawlers.conftest import rows_of

MONTH = Month("2024-02")
WORLD = World(0, MONTH, MONTH, stories_per_month=2)
ROOT = Path(__file__).parents[2]


def origins(store: Store, settings: Settings, source: str) -> set[tuple[str, str]]:
    seal = crawl_partition(source, MONTH, store, settings)
    return {(row["licence"], row["attribution"]) for row in rows_of(store, seal)}


def test_documents_of_a_simulated_site_are_the_simulator_s(
    settings: Settings, store: Store
) -> None:
    with serve_sites([hackernews.Site(WORLD)]) as web:
        own = settings.model_copy(update={"sites": web.urls, "request_interval_s": 0.0})
        assert origins(store, own, "hackernews") == {(LICENCE, ATTRIBUTION)}
    assert is_open(LICENCE)


def test_questions_of_a_simulated_site_are_the_simulator_s(
    settings: Settings, store: Store
) -> None:
    with serve_sites([manifold.Site(WORLD)]) as web:
        own = settings.model_copy(update={"sites": web.urls, "request_interval_s": 0.0})
        [seal] = crawl_questions("manifold", [MONTH], store, own)
        assert {each.licence for each in read_questions(store, seal)} == {LICENCE}


class Mirror(Site):
    """A site on loopback that is no simulation, such as one's own mirror."""

    keys = ("hackernews",)
    robots = None

    def __init__(self) -> None:
        self.quirks = {}

    def respond(self, request: Request) -> Response:
        return Response(200, {}, b"a page")


def test_a_cached_response_tells_it_too_and_a_mirror_is_not_simulated(settings: Settings) -> None:
    with serve_sites([hackernews.Site(WORLD)]) as web:
        own = settings.model_copy(update={"sites": web.urls, "request_interval_s": 0.0})
        fetchers = [Fetcher(own, {"hackernews": "https://hn.algolia.com"}, 0.0) for _ in range(2)]
        for fetcher in fetchers:
            fetcher.get("hackernews", "/api/v1/search_by_date", {"tags": "story"})
        assert fetchers[1].stats["requests"] == 0
        assert all(fetcher.is_simulated() for fetcher in fetchers)
        with running(Mirror(), web) as url:
            mine = own.model_copy(update={"sites": {"hackernews": url}})
            for is_read in (False, True):
                fetcher = Fetcher(mine, {"hackernews": "https://hn.algolia.com"}, 0.0)
                if is_read:
                    fetcher.get("hackernews", "/page")
                assert not fetcher.is_simulated()


def test_a_real_site_is_not_asked(settings: Settings) -> None:
    fetcher = Fetcher(settings, {"github": "https://github.com"}, 0.0)
    assert not fetcher.is_simulated()
    assert fetcher.stats["requests"] == 0


def test_the_view_reads_the_licence_that_crawls_write() -> None:
    view = ROOT / "warehouse/views/overview/simulated_sources.sql"
    assert view.read_text(encoding="utf-8").count(f"licence = '{LICENCE}'") == 2
