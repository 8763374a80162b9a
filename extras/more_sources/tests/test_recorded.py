"""Recordings of the real sites; Stack Exchange also without the later edit of a question."""

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Document, Drop, Item
from extras.more_sources import stackexchange
from extras.more_sources.stackexchange_api import SITE
from extras.more_sources.tests import recorded_govuk, recorded_wikinews
from simulator.server import Request, Response, as_json
from tests.crawlers.recorded import Case, Replay, replay

Row = dict[str, Any]
CASES = [*recorded_govuk.CASES, *recorded_wikinews.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_a_recording_gives_what_it_should(case: Case, shared: Path, settings: Settings) -> None:
    path = shared / "recordings" / case.path
    if not path.exists():
        pytest.skip(f"no recording at {path}")
    case.check(path, settings)


def test_recorded_questions_are_read(shared: Path, settings: Settings) -> None:
    folder = shared / "recordings" / "stackexchange"
    if not folder.exists():
        pytest.skip(f"no recording at {folder}")
    answers = [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    assert answers
    for answer in answers:
        [row] = answer["items"]
        site = row["link"].split("/")[2].removesuffix(".com")
        asked_at = dt.datetime.fromtimestamp(row["creation_date"], dt.UTC)
        [item] = _crawl(answer, site, Month.of(asked_at), settings)
        assert isinstance(item, Drop) and item.reason == "edited_later"
        del row["last_edit_date"]
        [item] = _crawl(answer, site, Month.of(asked_at), settings)
        assert isinstance(item, Document)
        assert (item.native_id, item.event_time) == (f"{site}:{row['question_id']}", asked_at)
        _check_text(item, row)


def _crawl(recorded: Row, site: str, month: Month, settings: Settings) -> list[Item]:
    created_at = recorded["items"][0]["creation_date"]
    empty = {**recorded, "items": []}

    def respond(request: Request) -> Response:
        window = (int(request.arg(name, "0")) for name in ("fromdate", "todate"))
        start, end = window
        is_there = request.arg("site") == site and start <= created_at <= end
        if request.arg("filter") == "total":
            return as_json({"total": int(is_there)})
        return as_json(recorded if is_there else empty)

    with replay(settings, Replay((SITE,), respond)) as (found, _):
        context = CrawlContext(found, stackexchange.INFO.open_fetcher(found))
        return list(stackexchange.fetch_month(month, context))


def _check_text(document: Document, row: Row) -> None:
    assert document.title == html.fromstring(row["title"]).text_content()
    assert document.licence == f"CC-BY-SA-{row['content_license'].removeprefix('CC BY-SA ')}"
    assert document.extra["tags"] == row["tags"]
    body = html.fragment_fromstring(row["body"], create_parent=True)
    for code in body.xpath("//pre"):
        assert code.text_content().strip("\n") in document.text
    lines = document.text.splitlines()
    for entry in body.xpath("//ul/li[not(.//p or .//pre)]"):
        assert f"- {' '.join(entry.text_content().split())}" in lines
    unmarked = re.sub(r"^(?:- |\d+\. )", "", document.text, flags=re.MULTILINE)
    assert "".join(unmarked.split()) == "".join(body.text_content().split())
