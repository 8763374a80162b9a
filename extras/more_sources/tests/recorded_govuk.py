"""GOV.UK: recorded pages of the content API, each as the only entry of its month's list."""

import functools
import json
from pathlib import Path
from typing import Any

from lxml import html

from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Document, Drop, Item
from extras.more_sources import govuk
from simulator.server import Request, Response, as_json
from tests.crawlers.recorded import Case, Replay, replay
from tests.crawlers.recorded.robots import Robots, check_robots

EDITED = ("-event", "speech-with-updates", "written-statement-parliament")  # ends of names
_LEFT_OUT = "ancestor::figure or ancestor::table or ancestor::*[contains(@class, 'contact')]"


def check_pages(folder: Path, settings: Settings) -> None:
    pages = sorted(folder.glob("*/*.json"))
    assert pages
    for path in pages:
        record = json.loads(path.read_bytes())
        item = _crawl(record, settings)
        reason = _reason(path, record)
        if reason is None:
            assert isinstance(item, Document), (path.name, item)
            _check_document(item, record)
        else:
            assert isinstance(item, Drop) and item.reason == reason, (path.name, item)


def _reason(path: Path, record: dict[str, Any]) -> str | None:
    if path.parent.name in ("gone", "redirect"):
        return "redirect_page"
    if (record.get("withdrawn_notice") or {}).get("withdrawn_at"):
        return "withdrawn"
    if record["locale"] != "en":
        return "wrong_language"
    return "edited_later" if path.stem.endswith(EDITED) else None


def _crawl(record: dict[str, Any], settings: Settings) -> Item:
    path = record["base_path"]
    day = record.get("first_published_at") or record["updated_at"]

    def respond(request: Request) -> Response | None:
        if request.path == "/api/search.json":
            return as_json({"results": [{"link": path}], "total": 1, "start": 0})
        return as_json(record) if request.path == f"/api/content{path}" else None

    with replay(settings, Replay((govuk.SITE,), respond)) as (found, _):
        context = CrawlContext(found, govuk.INFO.open_fetcher(found))
        items = list(govuk.fetch_month(Month(day[:7]), context))
    [item] = [item for item in items if item.native_id == path]  # others are translations
    return item


def _check_document(document: Document, record: dict[str, Any]) -> None:
    assert document.title == record["title"]
    assert document.url == f"https://www.gov.uk{record['base_path']}"
    for organisation in record["links"].get("organisations", []):
        assert organisation["title"] in document.attribution
    text = " ".join(document.text.split())
    body = html.fragment_fromstring(record["details"]["body"], create_parent=True)
    paragraphs = body.xpath(f"//p[not({_LEFT_OUT})][not(.//img)]")
    assert paragraphs
    for paragraph in paragraphs:
        assert " ".join(paragraph.text_content().split()) in text
    assert "<" not in text


ROBOTS: Robots = {
    "www.gov.uk": (
        govuk.INFO.robots_exempt_paths,
        ("/api/search.json?start=0", "/api/content/government/news/a-b"),
        ("/search/all?keywords=a", "/government/news/a/print"),
    ),
}
CASES = [
    Case("govuk", check_pages),
    Case("robots", functools.partial(check_robots, ROBOTS)),
]
