"""Wikinews: a recorded article, crawled from its day's category."""

import datetime as dt
from pathlib import Path

from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext
from extras.more_sources import wikinews
from simulator.server import Request, Response, as_json
from tests.crawlers.conftest import documents_of
from tests.crawlers.recorded import Case, Replay, replay

MONTH = Month("2018-04")
SENTENCE = "On Tuesday Google researchers published a NER paper."
# Templates and type of other articles of 2018, and what is left of them.
MORE = {
    '{{translated quote|ru|"Это работает."|"It works."}}': '"It works."',
    "A {{translation note|dacha|a house in the country|ru}} burnt.": "A dacha burnt.",
    "He {{wikt|abscond|absconded}} to {{w|Perth, Scotland|Perth}}.": "He absconded to Perth.",
    "It fell {{ft to m|100}}, {{mi to km|20}} away.": "It fell 100 feet, 20 miles away.",
    "The ''Mirror'''s and the ''Sun'''s staff.": "The Mirror's and the Sun's staff.",
    "It costs {{nowrap|5 million}} euros.": "It costs 5 million euros.",
}


def check_article(path: Path, settings: Settings) -> None:
    article = path.read_text(encoding="utf-8")
    longer = article.replace("\n{{haveyoursay}}", "\n" + "\n\n".join(MORE) + "\n\n{{haveyoursay}}")
    found = crawl_articles([article, longer], settings)
    assert found == [SENTENCE, "\n\n".join([SENTENCE, *MORE.values()])]


def crawl_articles(wikitexts: list[str], settings: Settings) -> list[str]:
    """Return the texts of the articles of a month, all of one day."""

    def respond(request: Request) -> Response:
        pages = [{"pageid": n, "ns": 0, "title": f"A{n}"} for n in range(1, len(wikitexts) + 1)]
        if request.arg("list") == "categorymembers":
            is_day = request.arg("cmtitle") == "Category:April 10, 2018"
            query = {"categorymembers": pages if is_day else []}
        else:
            query = {"pages": [{**page, "revisions": [revision(page["pageid"])]} for page in pages]}
        return as_json({"batchcomplete": True, "query": query})

    def revision(number: object) -> dict[str, object]:
        assert isinstance(number, int)
        slots = {"main": {"contentmodel": "wikitext", "content": wikitexts[number - 1]}}
        return {"revid": 10 * number, "timestamp": "2018-04-11T00:00:00Z", "slots": slots}

    with replay(settings, Replay((wikinews.SITE,), respond)) as (own, _):
        context = CrawlContext(own, wikinews.INFO.open_fetcher(own))
        documents = documents_of(list(wikinews.fetch_month(MONTH, context)))
    assert {each.event_time for each in documents} == {dt.datetime(2018, 4, 10, tzinfo=dt.UTC)}
    return [each.text for each in documents]


CASES = [Case("wikinews/drer_sample.wikitext", check_article)]
