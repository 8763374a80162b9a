import functools
import json
from pathlib import Path
from typing import Any

import pytest

from core.corpus.questions import Question, list_questions
from core.errors import SourceChanged
from core.storage.store import Store
from simulator.forecasts import questions
from simulator.server import Web
from simulator.sites.polymarket import Site
from tests.crawlers.questions.scene import FEBRUARY, MARCH, WORLD, crawl_source

crawl = functools.partial(crawl_source, "polymarket")
BY_ID = {question.id: question for question in questions(WORLD, "polymarket")}


def market(site: Site, name: str) -> dict[str, Any]:
    [found] = [each for each in site.markets if each["id"] == name]
    return found


def test_a_question_is_what_the_world_asked(web: Web, tmp_path: Path) -> None:
    for month, outcome in zip((FEBRUARY, MARCH), crawl(web, tmp_path), strict=True):
        there = {name for name, each in BY_ID.items() if each.resolved and each.resolved in month}
        assert outcome.questions.keys() == there
        for name, question in outcome.questions.items():
            true = BY_ID[name]
            assert (question.title, question.options) == (true.title, true.options)
            assert question.answer_index == true.answer_index
            assert question.status == ("void" if true.is_void else "resolved")
            assert (question.opened_at, question.resolved_at) == (true.opened, true.resolved)
            assert question.tags == true.tags
            assert question.resolution_criteria == f"{true.background}\n\n{true.criteria}"


def test_the_price_after_the_answer_is_never_a_forecast(web: Web, tmp_path: Path) -> None:
    found = [each for outcome in crawl(web, tmp_path) for each in outcome.questions.values()]
    assert found and not any(each.crowd_forecast for each in found)


def test_a_market_belongs_to_the_month_in_which_it_was_settled(web: Web, tmp_path: Path) -> None:
    question: Question = crawl(web, tmp_path)[1].questions["2403000"]
    assert question.closed_at is not None and question.closed_at in FEBRUARY
    assert question.resolved_at == MARCH.start


def test_what_has_no_answer_is_not_given_one(web: Web, tmp_path: Path) -> None:
    outcome = crawl(web, tmp_path)[1]
    reasons = {other["native_id"]: other["reason"] for other in outcome.others}
    assert reasons == {"992": "unknown_format", "993": "unknown_format", "994": "parse_error"}
    assert outcome.manifest["passed_over"]["open"] == 1  # the one in dispute


@pytest.mark.parametrize(
    ("prices", "status", "right"),
    [
        (["1", "0"], "resolved", 0),
        (["0", "1"], "resolved", 1),
        (["0.5", "0.5"], "void", None),
        (["0.30", "0.70"], "void", None),
        (["0.999", "0.001"], "void", None),
    ],
)
def test_only_prices_of_one_and_zero_are_an_answer(
    site: Site, web: Web, tmp_path: Path, prices: list[str], status: str, right: int | None
) -> None:
    market(site, "2403001")["outcomePrices"] = json.dumps(prices)
    question = crawl(web, tmp_path)[1].questions["2403001"]
    assert (question.status, question.answer_index) == (status, right)


@pytest.mark.parametrize(
    "odd",
    [
        {"outcomes": "Yes, No"}, {"outcomes": ["Yes", "No"]}, {"outcomePrices": '["1"]'},
        {"outcomePrices": '["one", "zero"]'}, {"outcomePrices": "[" * 100_000}, {"question": None},
    ],
)  # fmt: skip
def test_an_odd_market_is_dropped_and_its_neighbours_stay(
    site: Site, web: Web, tmp_path: Path, odd: dict[str, Any]
) -> None:
    market(site, "2403001").update(odd)
    outcome = crawl(web, tmp_path)[1]
    assert len(outcome.questions) == 11
    assert {"native_id": "2403001", "outcome": "dropped", "reason": "parse_error"}.items() <= next(
        each for each in outcome.others if each["native_id"] == "2403001"
    ).items()


def test_a_walk_ends_some_weeks_before_the_earliest_month(
    site: Site, web: Web, tmp_path: Path
) -> None:
    site.max_limit = 1
    early = {"closed": True, "closedTime": "2021-01-05 10:00:00+00", "umaEndDate": None}
    for number in range(5):
        odd = {**site.markets[0], **early, "id": f"7{number}", "slug": f"early-{number}"}
        site.markets.insert(0, odd)
    assert len(crawl(web, tmp_path, MARCH)[0].questions) == 12
    asked = [path for _, _, path in web.requests if path.startswith("/markets/keyset")]
    assert len(asked) < len(site.markets) - 5


def test_a_list_in_another_order_has_changed(site: Site, web: Web, tmp_path: Path) -> None:
    site.markets.sort(key=lambda each: each["id"])
    site.markets.reverse()
    with pytest.raises(SourceChanged, match="the last closed first"):
        crawl(web, tmp_path)
    assert list_questions(Store(str(tmp_path))) == []
