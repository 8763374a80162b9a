import datetime as dt

from core.month import Month
from extras.more_sources.simulator.biorxiv import Site
from simulator.server import Fault, Web
from simulator.world import World
from tests.crawlers.conftest import Crawl, by_id, count_drops
from tests.crawlers.sources.conftest import Whole

MONTH = Month("2024-02")
WORLD = World(5, MONTH - 1, MONTH, stories_per_month=40)  # two pages a server


def test_each_new_preprint_has_its_abstract_day_and_licence(whole: Whole, site: Site) -> None:
    found = by_id(whole.items)
    plain = [
        article
        for newsroom in site.newsrooms.values()
        for article in newsroom.of_month(MONTH)
        if not article.oddity
    ]
    assert len(found) == len(plain)
    for article in site.newsrooms["biorxiv"].of_month(MONTH)[:40]:
        item = found[f"10.64898/{article.published:%Y.%m.%d}.{600_000 + article.number}"]
        assert item.text == " ".join(article.story.paragraphs)
        assert item.title == article.title
        assert item.event_time == article.published.replace(hour=0, minute=0, second=0)
        assert item.licence.startswith("CC")


def test_what_is_no_open_first_version_is_dropped(whole: Whole) -> None:
    reasons = count_drops(whole.items)
    assert reasons == {"outside_month": 2, "licence": 2, "parse_error": 2, "no_date": 2}


def test_a_month_without_posts_is_empty_and_no_error(crawl: Crawl) -> None:
    assert crawl(Month("2019-01")) == []


def test_the_record_of_2026_is_read(crawl: Crawl, web: Web) -> None:
    """Fields and values as printed by others in 2026-04 and 2026-08; text shortened."""
    record = (
        b'{"title": "Neural computations in the foveal visual fields", "authors": "Zhang, J.", '
        b'"doi": "10.1101/2021.11.22.469359", "date": "2024-02-08", "version": "1", "type": '
        b'"new results", "license": "cc_by_nc_nd", "category": "neuroscience", "jatsxml": "u", '
        b'"abstract": "Active vision requires coordinated processing.", "funder": [{"name": "N"}], '
        b'"published": "NA", "server": "bioRxiv"}'
    )
    message = b'{"status": "ok", "interval": "a:b", "cursor": 0, "count": 1, "total": "1"}'
    body = b'{"messages": [%s], "collection": [%s]}' % (message, record)
    web.faults.append(Fault("status", "biorxiv_api", "/details/biorxiv", 9, 200, {}, body))
    [item] = [each for name, each in by_id(crawl()).items() if "10.1101" in name]
    assert item.licence == "CC-BY-NC-ND-4.0"
    assert item.event_time == dt.datetime(2024, 2, 8, tzinfo=dt.UTC)
