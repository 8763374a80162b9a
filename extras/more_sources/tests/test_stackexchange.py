import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from core.errors import AccessRefused, SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers.apis.fields import Fields
from crawlers.contract import CrawlContext, Document, Item
from crawlers.web.fetcher import Fetcher
from extras.more_sources import stackexchange, stackexchange_api
from extras.more_sources.simulator import stackexchange as simulated
from extras.more_sources.stackexchange import INFO, SITES, fetch_month
from simulator.server import Fault, Web, serve_sites
from simulator.world import World
from tests.crawlers.conftest import Crawl, by_id, reasons_of
from tests.crawlers.sources.conftest import Whole

MONTH = Month("2023-02")
STORIES = 16
WORLD = World(0, Month("2023-01"), Month("2023-03"), stories_per_month=STORIES)
Site = simulated.Site


def start(own: Settings, **choices: Any) -> Iterator[Item]:
    return fetch_month(MONTH, CrawlContext(own, Fetcher(own, INFO.sites, 0), **choices))


def asked(web: Web, what: str) -> list[dict[str, list[str]]]:
    parts = [urlsplit(target) for _, _, target in web.requests]
    return [parse_qs(part.query) for part in parts if part.path.endswith(what)]


def by_number(items: list[Item]) -> dict[int, Document]:
    return {int(key.split(":")[1]) // 10 % 10_000: item for key, item in by_id(items).items()}


def answer(items: list[dict[str, Any]], **more: Any) -> bytes:
    return json.dumps({"items": items, "has_more": False, "quota_remaining": 9, **more}).encode()


def post(number: int = 1, body: object = "<p>Text", created: int = 1675300000, **more: Any) -> Any:
    row = {"question_id": number, "title": "T", "body": body, "creation_date": created}
    return {**row, "answer_count": 0, **more}


def fake(
    web: Web, body: bytes, pattern: str = "withbody", times: int = 99, code: int = 200
) -> None:
    web.faults.append(Fault("status", "stackexchange", pattern, times, code, {}, body))


def only(web: Web, rows: list[Any]) -> None:
    fake(web, answer(rows), "questions\\?.*withbody.*site=math")
    fake(web, answer([]), "questions\\?.*withbody")


def test_a_document_is_a_question_with_the_answers_of_its_month(
    whole: Whole, site: simulated.Site
) -> None:
    found = by_id(whole.items)
    assert len(found) == STORIES
    for document in found.values():
        question = site.questions[int(document.native_id.split(":")[1])]
        answers = [
            each
            for each in site.answers[question.id]
            if each.created_at < MONTH.end and (each.edited_at or each.created_at) < MONTH.end
        ]
        assert document.text == "\n\n".join(each.text for each in [question, *answers])
        assert document.is_plain
        assert document.title == question.title
        assert document.event_time == question.created_at
        assert document.extra["num_answers"] == len(answers)
    assert {document.category for document in found.values()} == SITES.keys()


def test_a_document_says_where_it_is_from(whole: Whole) -> None:
    document = by_number(whole.items)[1]
    assert document.native_id == "math:230200010"
    assert document.url == "https://math.stackexchange.com/questions/230200010"
    assert document.licence == "CC-BY-SA-4.0"
    assert document.attribution == (
        "contributors of math.stackexchange.com: "
        "https://math.stackexchange.com/questions/230200010 "
        "https://math.stackexchange.com/a/230200011"
    )
    assert (document.date_kind, document.language) == ("created", None)
    assert document.event_time < document.text_as_of < MONTH.end  # edited within the month
    assert document.retrieved_at > document.text_as_of
    assert document.extra["tags"] == ["example", "topic-0"]


def test_no_user_is_named(whole: Whole) -> None:
    told = repr(whole.items)
    assert not [
        name for name in ("Ada Example", "boris_sample", "user1234567", "/users/") if name in told
    ]


def test_each_post_keeps_its_own_licence(crawl: Crawl, web: Web) -> None:
    rows = [post(1, content_license="CC BY-SA 3.0", answer_count=1), post(2)]
    only(web, rows)
    reply = {"answer_id": 7, "question_id": 1, "body": "x", "creation_date": 1675300001}
    fake(web, answer([{**reply, "content_license": "CC BY-SA 4.0"}]), "/answers")
    found = by_id(crawl())
    assert found["math:1"].licence == "CC-BY-SA-3.0 AND CC-BY-SA-4.0"
    assert found["math:2"].licence == "CC-BY-SA-4.0"  # not told, but known from the day


def test_a_question_of_the_next_months_first_second_is_dropped(whole: Whole) -> None:
    assert reasons_of(whole.items)["stackoverflow:230300000"] == "outside_month"


def test_text_edited_after_the_month_is_not_the_months(whole: Whole) -> None:
    items = whole.items
    assert reasons_of(items)["medicalsciences:230200160"] == "edited_later"
    assert by_number(items)[7].extra["num_answers_later"] == 1  # an answer edited later


def test_old_months_can_be_filled_in(crawl: Crawl, settings: Settings) -> None:
    month = Month("2017-01")
    with serve_sites([simulated.Site(World(0, month, month, stories_per_month=7))]) as web:
        found = by_id(crawl(month, own=settings.model_copy(update={"sites": web.urls})))
    assert len(found) == 7
    assert {document.licence for document in found.values()} == {"CC-BY-SA-3.0"}
    assert INFO.lacks(month) is None


def test_batches_do_not_attach_earlier_answers_again(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = crawl()
    monkeypatch.setattr(stackexchange, "BATCH", 2)
    again = by_id(crawl())
    assert {k: d.text for k, d in again.items()} == {k: d.text for k, d in by_id(whole).items()}
    answers = [line for d in again.values() for line in d.attribution.split() if "/a/" in line]
    assert len(answers) == len(set(answers)) > 8


def test_the_last_batch_is_fetched_too(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stackexchange, "BATCH", 2)
    only(web, [post(n, answer_count=1, created=1675300000 + n) for n in (1, 2, 3)])
    reply = {"body": "Reply", "creation_date": 1675400000}
    for ids, questions in (("1;2", (1, 2)), ("3", (3,))):
        rows = [{**reply, "answer_id": 10 + n, "question_id": n} for n in questions]
        fault = Fault("status", "stackexchange", f"/{ids}/answers", 1, 200, {}, answer(rows))
        web.faults.insert(0, fault)
    found = by_id(crawl())
    assert [document.text for document in found.values()] == ["Text\n\nReply"] * 3


def test_pages_follow_each_other(crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = by_id(crawl())
    monkeypatch.setattr(stackexchange_api, "PAGE_SIZE", 1)
    paged = by_id(crawl())
    assert {k: d.text for k, d in paged.items()} == {k: d.text for k, d in whole.items()}
    pages = {params["page"][0] for params in asked(web, "questions") if "page" in params}
    assert pages >= {"1", "3"}


def test_a_list_without_an_end_is_a_change_of_the_site(crawl: Crawl, web: Web) -> None:
    fake(web, answer([post()], has_more=True))
    with pytest.raises(SourceChanged, match="25 pages"):
        crawl()


def test_a_large_site_is_read_in_spans_of_about_a_page(
    crawl: Crawl, web: Web, site: simulated.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = crawl()
    monkeypatch.setattr(stackexchange, "SPAN_QUESTIONS", 1)
    spans = crawl()
    assert by_id(spans).keys() == by_id(whole).keys()
    windows = [
        (int(p["fromdate"][0]), int(p["todate"][0]))
        for p in asked(web, "questions")
        if p["site"] == ["math"] and p["filter"] == ["withbody"]
    ][1:]
    assert len(windows) == 4  # a power of two
    assert [first for first, _ in windows[1:]] == [last for _, last in windows[:-1]]


def test_a_small_sample_takes_few_requests(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stackexchange, "SPAN_QUESTIONS", 1)
    crawl(limit=2)
    assert len(asked(web, "questions")) == 2 * len(SITES)  # a count and one span of each
    assert len(asked(web, "answers")) <= 2


def test_a_backoff_is_obeyed(web: Web, own: Settings, site: simulated.Site) -> None:
    site.backoff_s = 1
    site.quota[False] = 300
    started = time.monotonic()
    items = start(own, limit=2)
    next(items)
    num_answers = len([r for r in web.requests if "withbody" in r[2]])
    assert time.monotonic() - started >= num_answers - 1
    assert site.quota[False] == 300 - len(asked(web, "questions")) - len(asked(web, "answers"))


@pytest.mark.long
def test_a_backoff_read_from_the_cache_is_over(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(web, answer([], backoff=1))
    crawl(use_cache=True)
    monkeypatch.setattr(time, "sleep", pytest.fail)
    crawl(use_cache=True)


def test_a_quota_that_is_used_up_ends_the_month_early(
    web: Web, own: Settings, site: simulated.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stackexchange, "BATCH", 1)
    site.quota[False] = 12
    items = start(own)
    kept = [next(items)]
    with pytest.raises(SourceUnavailable, match="used up"):
        kept += items
    assert any(isinstance(item, Document) for item in kept)
    assert site.quota[False] == 0
    assert len([r for r in web.requests if r[2].startswith("/2.3")]) == 12  # none beyond it


def test_a_quota_of_another_day_says_nothing_of_today(own: Settings) -> None:
    api = stackexchange_api.StackExchange(Fetcher(own, INFO.sites, 0))
    used_up = Fields.of("test", {"quota_remaining": 0})
    api._note_quota(used_up, dt.datetime.now(dt.UTC) - dt.timedelta(days=1))
    assert api.count_questions("math", 1675209600, 1677628800) > 0
    api._note_quota(used_up, dt.datetime.now(dt.UTC))
    with pytest.raises(SourceUnavailable, match="used up"):
        api.count_questions("math", 1675209600, 1677628800)


@pytest.mark.parametrize("status", [200, 400, 502])
def test_a_throttle_violation_is_not_tried_again(crawl: Crawl, web: Web, status: int) -> None:
    body = {"error_id": 502, "error_name": "throttle_violation", "error_message": "too many"}
    fake(web, json.dumps(body).encode(), "/2.3", code=status)
    with pytest.raises(SourceUnavailable, match="throttle_violation"):
        crawl()
    assert len(asked(web, "questions")) == 1


@pytest.mark.parametrize(
    ("number", "error"), [(400, SourceChanged), (403, AccessRefused), (404, SourceChanged)]
)
def test_an_error_under_its_own_status_is_told(
    crawl: Crawl, web: Web, number: int, error: type[Exception]
) -> None:
    body = {"error_id": number, "error_name": "some_name", "error_message": "why"}
    fake(web, json.dumps(body).encode(), "/2.3", code=number)
    with pytest.raises(error, match="some_name: why"):
        crawl()


def test_with_a_key_there_are_more_requests_and_the_key_is_nowhere_else(
    crawl: Crawl, own: Settings, web: Web, site: simulated.Site, tmp_path: Path
) -> None:
    site.quota = {True: 10_000, False: 0}
    with pytest.raises(SourceUnavailable, match="throttle_violation"):
        crawl()
    own = own.model_copy(update={"tokens": {"stackexchange": SecretStr(simulated.KEY)}})
    items = crawl(own=own, use_cache=True)
    assert len(by_id(items)) == STORIES
    assert 0 < (site.quota[True] or 0) < 10_000
    assert simulated.KEY not in repr(items)
    for file in tmp_path.rglob("*"):
        assert simulated.KEY.encode() not in (file.read_bytes() if file.is_file() else b"")
    web.faults.append(Fault("status", "stackexchange", "/2.3", 99, 418))
    with pytest.raises(SourceChanged) as caught:
        crawl(Month("2023-03"), own=own)
    assert simulated.KEY not in str(caught.value)


def test_a_key_that_is_not_accepted_is_told(crawl: Crawl, own: Settings) -> None:
    own = own.model_copy(update={"tokens": {"stackexchange": SecretStr("wrong-key-1")}})
    with pytest.raises(SourceChanged, match="doesn't match") as caught:
        crawl(own=own)
    assert "wrong-key-1" not in str(caught.value)


@pytest.mark.parametrize(
    "row",
    [
        {"question_id": 9},
        post(creation_date="soon"),
        post(creation_date=10**18),
        post(body=None),
        post(question_id="<b>1</b>"),
    ],
)
def test_a_post_that_cannot_be_read_costs_itself_only(crawl: Crawl, web: Web, row: Any) -> None:
    only(web, [row, post(5)])
    items = crawl()
    assert list(by_id(items)) == ["math:5"]
    assert list(reasons_of(items).values()) == ["parse_error"]


@pytest.mark.parametrize("total", [b"1000000000000000", b"{}", b"true", b"-1", b"9" * 5000])
def test_a_total_that_no_site_has_is_a_change_of_the_source(
    crawl: Crawl, web: Web, total: bytes
) -> None:
    fake(web, b'{"total": %s}' % total, "filter=total")
    with pytest.raises(SourceChanged, match="total is .* expected a number up to 1000000"):
        crawl()


@pytest.mark.parametrize(
    "body", [b"[]", b'{"items": 5}', b"<html>", b"{}", b'{"error_id": [], "items": {}}']
)
def test_what_is_no_list_is_a_change_of_the_source(crawl: Crawl, web: Web, body: bytes) -> None:
    fake(web, body)
    with pytest.raises(SourceChanged):
        crawl()


def test_titles_hold_no_markup(crawl: Crawl, web: Web) -> None:
    title = "Is &lt;b class=&quot;x&quot;&gt;a &amp;lt; b&lt;/b&gt; &#39;true&#39;?\n"
    only(web, [post(title=title, tags=["<b>", "c++", 5])])
    [document] = by_id(crawl()).values()
    assert document.title == "Is a < b 'true'?"
    assert document.extra["tags"] == ["c++"]
