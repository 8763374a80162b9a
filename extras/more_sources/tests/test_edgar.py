import pytest

from core.errors import AccessRefused
from core.month import Month
from core.settings import Settings
from crawlers.contract import Repeat
from extras.more_sources import edgar
from extras.more_sources.simulator.edgar import Site, accession_of
from simulator.server import Fault, Web
from simulator.world import World
from tests.crawlers.conftest import Crawl, by_id, count_drops, documents_of

MONTH = Month("2024-02")
WORLD = World(6, MONTH - 1, MONTH, stories_per_month=12)
APPLE = b"""<SEC-DOCUMENT>0000320193-20-000060.txt
<DOCUMENT>
<TYPE>8-K
<SEQUENCE>1
<FILENAME>aapl-20200730.htm
<DESCRIPTION>8-K
<TEXT><html><body>Item 2.02. Results of Operations.</body></html></TEXT>
</DOCUMENT>
<DOCUMENT>
<TYPE>EX-99.1
<SEQUENCE>2
<FILENAME>aapl-20200730xex991.htm
<DESCRIPTION>PRESS RELEASE
<TEXT><html><body>
Apple's Board of Directors has declared a cash dividend of $0.82 per share of
the Company's common stock.
</body></html></TEXT>
</DOCUMENT>
"""


def test_the_text_is_that_of_the_press_exhibits(crawl: Crawl, site: Site) -> None:
    found = by_id(crawl())
    articles = {accession_of(article): article for article in site.newsroom.of_month(MONTH)}
    assert len(found) == 14  # with the plain text and the filing of two companies
    for name, item in found.items():
        article = articles[name]
        is_plain = article.oddity == "plain_exhibit"
        text = "\n\n".join(article.story.paragraphs) if is_plain else article.text
        assert item.text == text
        assert item.event_time.date() == article.published.date()
        assert item.licence == "LicenseRef-unknown"


def test_other_filings_are_dropped_or_never_asked_for(crawl: Crawl, web: Web) -> None:
    items = crawl()
    assert count_drops(items) == {"empty": 2, "http_404": 1}
    assert len([item for item in items if isinstance(item, Repeat)]) == 1
    asked = [path for _, _, path in web.requests]
    assert len([path for path in asked if "master.idx" in path]) == 1
    assert len([path for path in asked if "/data/" in path]) == 17


def test_a_filing_as_others_recorded_it_is_read(crawl: Crawl, web: Web, site: Site) -> None:
    """Filing 0000320193-20-000060 of 2020-07-30, as a public client's test has it, shortened."""
    web.faults.append(Fault("status", "edgar", "/data/", 1, 200, {}, APPLE))
    first = documents_of(crawl())[0]
    assert first.text == (
        "Apple's Board of Directors has declared a cash dividend of $0.82 per share of the "
        "Company's common stock."
    )


def test_live_crawls_need_the_operators_contact(settings: Settings) -> None:
    with pytest.raises(AccessRefused, match="TIDEMARK_CONTACT"):
        edgar.INFO.require_contact(settings.model_copy(update={"sites": {}}))
