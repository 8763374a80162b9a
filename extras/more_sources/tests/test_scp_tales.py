from core.month import Month
from extras.more_sources.simulator.dumps import ScpTales as Site
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, documents_of

MONTH = Month("2024-02")
WORLD = World(6, MONTH - 1, MONTH, stories_per_month=12)


def test_stories_without_later_edits_are_kept(crawl: Crawl, site: Site) -> None:
    items = crawl()
    articles = {each.slug: each for each in site.newsroom.of_month(MONTH)}
    found = documents_of(items)
    assert len(found) == 13  # an edit of tags is none
    for item in found:
        article = articles[item.native_id]
        assert (item.text, item.title) == (article.text, article.title)
        assert (item.event_time, item.text_as_of) == (article.published, article.changed)
    assert count_drops(items) == {"edited_later": 2, "no_date": 2}  # no date: in no month
