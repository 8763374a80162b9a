"""arXiv: responses of the query API, templates of the OAI-PMH server, robots.txt."""

import datetime as dt
import functools
import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest

from core.errors import SourceChanged, SourceError, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Document, Drop, Item
from extras.arxiv import arxiv
from extras.arxiv.lists import MAX_PAPERS, Entry, find_papers
from simulator.server import Request, Response
from tests.crawlers.conftest import reasons_of
from tests.crawlers.recorded import Case, Replay, replay
from tests.crawlers.recorded.robots import Robots, check_robots

MONTH = Month("2026-04")
CLOSED = "User-agent: *\nDisallow: /\n"
_TOTAL = re.compile(r"(<opensearch:totalResults[^>]*>)(\d+)<")


def check_responses(folder: Path, settings: Settings) -> None:
    for path in sorted(folder.glob("*.json")):
        recorded = json.loads(path.read_text(encoding="utf-8"))
        check_response(path.name, int(recorded["status_code"]), recorded["body"] or "", settings)


def check_response(name: str, status: int, body: str, settings: Settings) -> None:
    if status != 200:
        with pytest.raises(SourceError):
            list_as(Month("2024-01"), status, body, settings)
        return
    total = int(_TOTAL.search(body)[2])  # type: ignore[index]
    expected = re.findall(r"<id>https?://arxiv.org/abs/(.+)v(\d+)</id>", body)
    dates = re.findall(r"<published>(.+)</published>", body)
    month = Month.of(dt.datetime.fromisoformat(dates[0])) if dates else Month("2024-01")
    if total > MAX_PAPERS:
        with pytest.raises(SourceChanged, match=f"at most {MAX_PAPERS} papers, got {total}"):
            list_as(month, status, body, settings)
        body = _TOTAL.sub(rf"\g<1>{len(expected)}<", body)
    papers = list_as(month, status, body, settings)
    assert sorted(each.id for each in papers) == sorted(paper for paper, _ in expected), name
    assert [each.published for each in papers] == sorted(map(dt.datetime.fromisoformat, dates))
    assert {each.id for each in papers if each.is_revised} == {n for n, v in expected if v != "1"}
    assert all(each.title and each.authors and each.category in each.categories for each in papers)
    crawl_without_oai(month, papers, body, settings)


def list_as(month: Month, status: int, body: str, settings: Settings) -> list[Entry]:
    headers = {"Content-Type": "application/atom+xml; charset=utf-8", "Retry-After": "0"}
    response = Response(status, headers, body.encode())
    with replay(settings, Replay(("arxiv",), lambda _: response, CLOSED)) as (own, _):
        papers = find_papers(month, arxiv.CATEGORIES, arxiv.INFO.open_fetcher(own))
    assert not [each for each in papers if isinstance(each, Drop)]
    return [each for each in papers if isinstance(each, Entry)]


def crawl_without_oai(month: Month, papers: list[Entry], body: str, settings: Settings) -> None:
    def respond(request: Request) -> Response | None:
        return Response(body=body.encode()) if request.path == "/api/query" else None

    sites = Replay(("arxiv",), respond, CLOSED), Replay(("arxiv_oai",), lambda _: None)
    items: list[Item] = []
    with (
        replay(settings, *sites) as (own, _),
        pytest.raises(SourceUnavailable, match="answered 404"),
    ):
        crawl(month, own, items)
    reasons = reasons_of(items)
    assert reasons.keys() == {each.id for each in papers}
    inside = {each.id for each in papers if each.published in month and not each.is_withdrawn}
    assert {name for name, reason in reasons.items() if reason == "http_404"} == inside


def crawl(month: Month, own: Settings, items: list[Item]) -> None:
    for item in arxiv.fetch_month(month, CrawlContext(own, arxiv.INFO.open_fetcher(own))):
        items.append(item)


@dataclass
class Server:
    """A server of OAI-PMH that answers with the templates; a page has one record."""

    templates: jinja2.Environment
    refusals: int  # how often the next token is refused

    def respond(self, request: Request) -> Response | None:
        given = {name: values[-1] for name, values in request.query.items()}
        token = given.get("resumptionToken")
        if token and self.refusals:
            self.refusals -= 1
            return self.render("errors.xml", error=error_of("badResumptionToken", given))
        if token is None and given.get("from") != str(MONTH.first_day):
            return self.render("errors.xml", error=error_of("noRecordsMatch", given))
        number = int(token.partition("skip%3D")[2]) if token else 0
        is_last = number == len(RECORDS) - 1
        following = f"verb%3DListRecords%26skip%3D{number + 1}"
        return self.render(
            "list_records.xml",
            query_params=given,
            records=[RECORDS[number]],
            format="arXivRaw",
            token=SimpleNamespace(empty=is_last, expires=MONTH.end, token_str=following),
        )

    def render(self, name: str, **values: Any) -> Response:
        now = MONTH.end + dt.timedelta(days=7)
        page = self.templates.get_template(name).render(response_date=now, **values)
        return Response(200, {"Content-Type": "text/xml"}, page.encode())


def error_of(code: str, given: dict[str, str]) -> SimpleNamespace:
    return SimpleNamespace(code=code, description="A <fault>.", reason="A", query_params=given)


def record_of(number: int, versions: int = 1, **changes: Any) -> SimpleNamespace:
    paper = f"2604.{number % 100:05d}"
    day = MONTH.start + dt.timedelta(days=number)
    meta = {
        "paper_id": paper, "submitter_name": "A. B.", "title": r"Caf\'e & <tea> of $a<b$",
        "authors": r"Ada L\o{}ve and B. Two (Here & there)", "abs_categories": "cs.CL cs.AI",
        "comments": "9 pages", "license": "http://creativecommons.org/licenses/by/4.0/",
        "abstract": "We drink.", **changes,
    }  # fmt: skip
    sets = ["cs:cs:CL", "cs:cs:AI"]
    return SimpleNamespace(
        header=SimpleNamespace(id=f"oai:arXiv.org:{paper}", date=day, sets=sets),
        current_meta=SimpleNamespace(**{"proxy": None, "report_num": None, **meta}),
        versions=[
            SimpleNamespace(
                version=version + 1,
                submitted_date=day + dt.timedelta(days=version),
                size_kilobytes=9,
                source_flag=None,
            )
            for version in range(versions)
        ],
    )


RECORDS = [
    record_of(1),
    record_of(2, versions=2),
    record_of(3, license=None),
    record_of(4, comments="This paper has been withdrawn by the authors"),
    record_of(5, abs_categories="cs.XX"),
    record_of(-1),  # of the month before
]


def check_templates(folder: Path, settings: Settings) -> None:
    loader = jinja2.FileSystemLoader(folder)
    templates = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.globals["url_for"] = lambda *_, **__: "https://oaipmh.arxiv.org/oai"
    server = Server(templates, refusals=2)
    items = list[Item]()
    text = gzip.compress(rb"\documentclass{a}\begin{document}\section{Introduction} Tea is tea.")
    source = Replay(("arxiv",), lambda _: Response(body=text), CLOSED)
    with replay(settings, source, Replay(("arxiv_oai",), server.respond)) as (own, _):
        crawl(MONTH, own, items)
    found = [(each.native_id, each.licence) for each in items if isinstance(each, Document)]
    by = "http://creativecommons.org/licenses/by/4.0/"
    unknown = "LicenseRef-unknown"
    assert found == [("2604.00001", by), ("2604.00002", unknown), ("2604.00003", unknown)]
    assert reasons_of(items) == {"2604.00004": "withdrawn"}
    [first, *_] = [each for each in items if isinstance(each, Document)]
    assert first.event_time == MONTH.start + dt.timedelta(days=1)
    assert (first.title, first.category) == ("Café & <tea> of $a<b$", "cs.CL")
    assert first.attribution == f"Ada Løve, B. Two: {first.title}, arXiv:2604.00001v1"


ROBOTS: Robots = {
    "export.arxiv.org": (
        arxiv.INFO.robots_exempt_paths,
        ("/api/query?start=0", "/src/2604.00001v1", "/src/math.GT/0309136v1"),
        ("/", "/abs/2604.00001", "/api/other", "/src/", "/src/../abs/1", "/pdf/1", "/oai2"),
    ),
    "arxiv.org": ((), ("/abs/2604.00001", "/list/cs/new"), ("/src/1v1", "/api/query")),
}
CASES = [
    Case("arxiv/api", check_responses),
    Case("arxiv/oaipmh_templates", check_templates),
    Case("robots", functools.partial(check_robots, ROBOTS)),
]
