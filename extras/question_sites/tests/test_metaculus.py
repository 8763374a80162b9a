import functools
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import zstandard

from core.corpus.questions import list_questions
from core.errors import AccessRefused, SourceChanged, TokenRefused
from core.storage.store import Store
from crawlers.questions.crawl import crawl_questions
from crawlers.web import pacing
from extras.question_sites.simulator.metaculus import GROUPED, TOKEN, Site
from simulator.forecasts import questions
from simulator.server import Fault, Web
from tests.crawlers.questions.scene import (
    FEBRUARY,
    MARCH,
    WORLD,
    Outcome,
    crawl_source,
    settings_of,
)

crawl = functools.partial(crawl_source, "metaculus")
BY_ID = {question.id: question for question in questions(WORLD, "metaculus")}


def question_of(site: Site, name: str) -> dict[str, Any]:
    [found] = [
        post["question"]
        for post in site.posts
        if "question" in post and post["question"]["id"] == int(name)
    ]
    return found  # type: ignore[no-any-return]


def test_a_question_is_what_the_world_asked(outcomes: list[Outcome]) -> None:
    for month, outcome in zip((FEBRUARY, MARCH), outcomes, strict=True):
        there = {name for name, each in BY_ID.items() if each.resolved and each.resolved in month}
        assert outcome.questions.keys() == there
        first, grouped = (f"{month.start:%y%m}{number:03d}" for number in GROUPED)
        for name, question in outcome.questions.items():
            true = BY_ID[name]
            assert question.options == true.options
            assert question.answer_index == true.answer_index
            assert question.status == ("void" if true.is_void else "resolved")
            assert (question.opened_at, question.closed_at) == (true.opened, true.closed)
            assert question.tags == (true if name != grouped else BY_ID[first]).tags
            assert question.resolution_criteria.startswith("The council of ")  # type: ignore[union-attr]
            assert question.background


def test_the_month_is_that_in_which_the_answer_was_set(outcomes: list[Outcome]) -> None:
    question = outcomes[1].questions["2403000"]
    assert BY_ID["2403000"].resolved == MARCH.start
    assert question.resolved_at == BY_ID["2403000"].closed
    assert question.resolved_at < MARCH.start  # known before


def test_questions_of_groups_have_whole_titles_and_shared_texts(outcomes: list[Outcome]) -> None:
    found = outcomes[1].questions
    title = f"{BY_ID['2403006'].title} By region"
    assert (found["2403006"].title, found["2403010"].title) == (
        f"{title} (North)",
        f"{title} (South)",
    )
    assert found["2403010"].background == BY_ID["2403006"].background
    assert found["2403010"].url == found["2403006"].url


def test_a_question_of_a_group_that_is_still_open_is_found(outcomes: list[Outcome]) -> None:
    found = outcomes[1].questions
    assert "(North)" in found["2403009"].title
    assert "2403012" not in found


def test_the_last_forecast_before_closing_is_the_crowds(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        for name, question in outcome.questions.items():
            given = [each.probability for each in question.crowd_forecast]
            if name.endswith("005"):  # later than the answer
                assert given == []
            else:
                assert given == pytest.approx(BY_ID[name].crowd)
                assert all(each.at < question.closed_at for each in question.crowd_forecast)  # type: ignore[operator]


def test_a_community_forecast_may_be_hidden(site: Site, web: Web, tmp_path: Path) -> None:
    hidden = [None, {}, {"start_time": 1.0, "centers": ["x"]}, "hidden"]
    for number, latest in enumerate(hidden, 1):
        row = question_of(site, f"240300{number}")
        row["aggregations"] = {"recency_weighted": {"latest": latest}}
    found = crawl(web, tmp_path)[1].questions
    for number, latest in enumerate(hidden, 1):
        assert found[f"240300{number}"].crowd_forecast == (), latest


def test_options_that_were_changed_while_it_ran_are_dropped(
    site: Site, web: Web, tmp_path: Path
) -> None:
    row = question_of(site, "2403002")
    row["options_history"] = [["0001-01-01", row["options"][:-1]], ["2024-02-01", row["options"]]]
    outcome = crawl(web, tmp_path)[1]
    assert "2403002" not in outcome.questions
    assert {other["reason"] for other in outcome.others} == {"edited_later"}


def test_an_answer_that_is_no_option_is_dropped(site: Site, web: Web, tmp_path: Path) -> None:
    question_of(site, "2403001")["resolution"] = "perhaps"
    outcome = crawl(web, tmp_path)[1]
    assert [(each["native_id"], each["reason"]) for each in outcome.others] == [
        ("2403001", "parse_error")
    ]


def test_without_a_token_nothing_is_asked(web: Web, tmp_path: Path) -> None:
    with pytest.raises(TokenRefused, match=r"TIDEMARK_TOKENS__METACULUS") as refusal:
        crawl(web, tmp_path, tokens={})
    assert "settings of an account" in str(refusal.value)
    assert web.requests == []


def test_a_wrong_token_is_refused_and_not_shown(web: Web, tmp_path: Path) -> None:
    wrong = "f" * 40
    with pytest.raises(AccessRefused) as refusal:
        crawl(web, tmp_path, tokens={"metaculus": wrong})
    assert wrong not in str(refusal.value)
    assert list_questions(Store(str(tmp_path))) == []


def test_a_token_is_in_no_file_message_or_log(
    web: Web, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.001)
    caplog.set_level(logging.DEBUG)
    body = f'{{"detail": "bad token {TOKEN}"}}'.encode()
    web.faults.append(Fault("status", "metaculus", "offset=0", 1, 200, {}, body))
    crawl(web, tmp_path)
    web.faults.append(Fault("status", "metaculus", "", 10**6, 401, {"X-Echo": TOKEN}, body))
    with pytest.raises(AccessRefused) as refusal:
        crawl(web, tmp_path / "other")
    assert TOKEN not in f"{refusal.value!r} {caplog.text}"
    assert all(TOKEN not in target for _, _, target in web.requests)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".zst":
                data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
            assert TOKEN.encode() not in data


def test_without_a_permission_nothing_is_asked(web: Web, tmp_path: Path) -> None:
    for tokens in ({}, {"metaculus": TOKEN}):
        settings = settings_of(web, tmp_path, tokens=tokens)
        with pytest.raises(AccessRefused, match="terms of use forbid") as refusal:
            crawl_questions("metaculus", [MARCH], Store(str(tmp_path)), settings)
        assert "tidemark sources permit metaculus --note" in str(refusal.value)
    assert web.requests == []


def test_what_is_withheld_is_dropped_and_never_counts_as_open(
    site: Site, web: Web, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_before = crawl(web, tmp_path / "whole")[1].manifest["passed_over"]["open"]
    assert "withholds" not in caplog.text
    names = ("2403001", "2403002", "2403006", "2403010")  # the last two form a group
    site.withheld = frozenset(map(int, names))
    february, march = crawl(web, tmp_path)
    dropped = [(each["native_id"], each["reason"]) for each in march.others]
    assert sorted(dropped) == [(name, "permission") for name in names]
    assert march.manifest["dropped"] == {"permission": 4} and february.others == []
    assert march.manifest["passed_over"]["open"] == open_before
    assert len(march.questions) == 12 - len(names)
    assert "metaculus withholds 4 questions" in caplog.text


def test_a_question_of_which_the_dates_are_withheld_too_is_of_the_newest_month(
    site: Site, web: Web, tmp_path: Path
) -> None:
    times = ("resolution_set_time", "actual_resolve_time", "actual_close_time")
    question_of(site, "2402001").update(dict.fromkeys(("resolution", *times)))
    february, march = crawl(web, tmp_path)
    assert february.others == []
    assert [(each["native_id"], each["reason"]) for each in march.others] == [
        ("2402001", "permission")
    ]


@pytest.mark.parametrize("limit", [4, 12, 21, 100])  # 21 resolved posts
def test_a_list_ends_with_an_empty_page_whose_link_goes_on(
    site: Site, web: Web, tmp_path: Path, limit: int
) -> None:
    site.max_limit = limit
    assert [len(outcome.questions) for outcome in crawl(web, tmp_path)] == [12, 12]
    resolved = [target for _, _, target in web.requests if "statuses=resolved" in target]
    pages = -(-21 // limit) + 1
    assert len(resolved) == pages + (21 % limit == 0)  # after a full page the end is checked


def test_an_empty_page_after_a_full_one_is_not_believed(
    site: Site, web: Web, tmp_path: Path
) -> None:
    site.max_limit = 7
    body = b'{"next": "https://www.metaculus.com/api/posts/?limit=7&offset=14", "results": []}'
    web.faults.append(Fault("status", "metaculus", "offset=7&", 10**6, 200, {}, body))
    outcomes = crawl(web, tmp_path)
    assert outcomes and all(each.manifest["status"] == "partial" for each in outcomes)
    assert "was empty, though posts follow" in outcomes[0].manifest["ended_early"]
    web.faults.clear()
    assert [len(outcome.questions) for outcome in crawl(web, tmp_path)] == [12, 12]


def test_a_site_that_ignores_the_offset_ends_the_crawl(web: Web, tmp_path: Path) -> None:
    post = {"id": 7, "question": {"id": 8, "type": "binary", "status": "open"}}
    body = json.dumps({"next": "https://x/?limit=1&offset=1", "results": [post] * 50}).encode()
    web.faults.append(Fault("status", "metaculus", "posts", 10**6, 200, {}, body))
    with pytest.raises(SourceChanged, match="each on one page"):
        crawl(web, tmp_path)
