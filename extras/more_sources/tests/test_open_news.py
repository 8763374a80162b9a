import pytest

from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from extras.more_sources import global_voices, govuk
from extras.more_sources.simulator import global_voices as voices_site
from extras.more_sources.simulator import govuk as govuk_site
from simulator.server import serve_sites
from simulator.world import World

MONTH = Month("2024-02")
# Global Voices publishes 50 to 140 stories a month, GOV.UK some ten times as many.
WORLDS = (World(1, MONTH, MONTH, stories_per_month=420), World(1, MONTH, MONTH, 80))


@pytest.mark.slow  # test_every_source.py crawls a smaller month of each, without a limit too
def test_a_month_has_three_hundred_articles_without_any_setting(
    settings: Settings, store: Store
) -> None:
    sites = [govuk_site.Site(WORLDS[0]), voices_site.Site(WORLDS[1])]
    with serve_sites(sites) as web:
        own = settings.model_copy(update={"sites": web.urls})
        seals = [crawl_partition(name, MONTH, store, own) for name in ("govuk", "global_voices")]
    assert [seal.manifest["status"] for seal in seals] == ["complete", "complete"]
    assert sum(seal.num_documents for seal in seals) >= 300
    assert seals[1].num_documents >= 80


def test_the_two_sources_share_the_volume_of_the_papers_news() -> None:
    """Paper 000, table 1: 6 MB a month."""
    sizes = [source.INFO.monthly_bytes or 0 for source in (govuk, global_voices)]
    assert sum(sizes) == 6_000_000
    assert sizes[1] >= 140 * 10_000  # all of the longest months of Global Voices


@pytest.mark.parametrize("source", [govuk, global_voices])
def test_months_since_2017_can_be_had(source: object) -> None:
    info = source.INFO  # type: ignore[attr-defined]
    assert info.lacks(Month("2017-01")) is None and info.lacks(Month("2026-09")) is None
