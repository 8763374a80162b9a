"""Hacker News: recorded results of a search, and records of stories, as one month of the site."""

import html
import json
import re
from pathlib import Path
from typing import Any

from core.month import Month
from core.settings import Settings
from crawlers import hackernews
from crawlers.contract import CrawlContext, Document, Drop
from simulator.server import Request, Response, as_json
from tests.crawlers.recorded import Case, Replay, replay

MONTH = Month("2018-11")
Row = dict[str, Any]


def check_month(folder: Path, settings: Settings) -> None:
    records = [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    stories = [record for record in records if "children" in record]
    hits = {hit["objectID"]: hit for record in records for hit in record.get("hits", [])}
    hits |= {str(story["id"]): _hit_of(story) for story in stories}
    assert stories and len(hits) > len(stories)

    def respond(request: Request) -> Response | None:
        if request.path == "/api/v1/search_by_date":
            start, end = map(
                int, re.findall(r"created_at_i>?[>=<]+(\d+)", request.arg("numericFilters"))
            )
            found = [hit for hit in hits.values() if start <= hit["created_at_i"] < end]
            return as_json({"hits": found, "nbHits": len(found)})
        named = [story for story in stories if request.path == f"/api/v1/items/{story['id']}"]
        return as_json(named[0]) if named else None

    with replay(settings, Replay((hackernews.SITE,), respond)) as (found, _):
        context = CrawlContext(found, hackernews.INFO.open_fetcher(found))
        items = {item.native_id: item for item in hackernews.fetch_month(MONTH, context)}
    assert items.keys() == hits.keys()
    for story in stories:
        _check_story(items.pop(str(story["id"])), story)
    for item in items.values():  # the recorded hits are comments, which have no title
        assert isinstance(item, Drop) and item.reason == "deleted"


def _hit_of(story: Row) -> Row:
    hit = {name: story[name] for name in ("created_at", "created_at_i", "title", "url", "points")}
    text, number = story["text"], len(story["children"])
    return {**hit, "objectID": str(story["id"]), "story_text": text, "num_comments": number}


def _check_story(item: object, story: Row) -> None:
    assert isinstance(item, Document)
    assert item.title == story["title"]
    assert f"{item.event_time:%Y-%m-%dT%H:%M:%S}" == story["created_at"][:19]
    of_month = [child for child in story["children"] if child["created_at"][:7] == str(MONTH)]
    of_month.sort(key=lambda child: child["created_at"])
    markup = "".join([story["text"], *(child["text"] for child in of_month)])
    assert item.extra["num_comments"] == len(of_month)
    plain = html.unescape(re.sub("<[^<>]*>", "", markup))
    assert "".join(item.text.split()) == "".join(plain.split())


CASES = [Case("hackernews", check_month)]
