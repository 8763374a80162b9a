import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from core.corpus.questions import Question, list_questions
from core.errors import SourceChanged
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.questions.contract import QuestionContext
from crawlers.web.fetcher import Fetcher
from extras.question_sites import polymarket
from extras.question_sites.simulator.polymarket import Site
from simulator.forecasts import questions
from simulator.server import Request, Response, Web, serve_sites
from simulator.world import World
from tests.crawlers.questions.scene import FEBRUARY, MARCH, WORLD, Outcome, crawl_source

crawl = functools.partial(crawl_source, "polymarket")
ALL = questions(WORLD, "polymarket")
BY_ID = {question.id: question for question in ALL if "Sports" not in question.tags}
GAMES = {question.id for question in ALL if question.id not in BY_ID}


def market(site: Site, name: str) -> dict[str, Any]:
    [found] = [each for each in site.markets if each["id"] == name]
    return found


def test_a_question_is_what_the_world_asked(outcomes: list[Outcome]) -> None:
    for month, outcome in zip((FEBRUARY, MARCH), outcomes, strict=True):
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


def test_the_price_after_the_answer_is_never_a_forecast(outcomes: list[Outcome]) -> None:
    found = [each for outcome in outcomes for each in outcome.questions.values()]
    assert found and not any(each.crowd_forecast for each in found)


def test_a_market_belongs_to_the_month_in_which_it_was_settled(outcomes: list[Outcome]) -> None:
    question: Question = outcomes[1].questions["2403000"]
    assert question.closed_at is not None and question.closed_at in FEBRUARY
    assert question.resolved_at == MARCH.start


def test_what_has_no_answer_is_not_given_one(outcomes: list[Outcome]) -> None:
    outcome = outcomes[1]
    reasons = {other["native_id"]: other["reason"] for other in outcome.others}
    games = dict.fromkeys(("2403001", "2403007", "995", "996"), "low_quality")
    odd = {"992": "unknown_format", "993": "unknown_format", "994": "parse_error"}
    assert reasons == games | odd and {"2403001", "2403007"} <= GAMES
    assert outcome.manifest["passed_over"]["open"] == 1  # the one in dispute


NAMES = sorted(name for name, each in BY_ID.items() if each.resolved)


def test_only_prices_of_one_and_zero_are_an_answer(site: Site, web: Web, tmp_path: Path) -> None:
    cases: list[tuple[list[str], str, int | None]] = [
        (["1", "0"], "resolved", 0),
        (["0", "1"], "resolved", 1),
        (["0.5", "0.5"], "void", None),
        (["0.30", "0.70"], "void", None),
        (["0.999", "0.001"], "void", None),
    ]
    binary = [name for name in NAMES if BY_ID[name].is_binary]
    for name, (prices, _, _) in zip(binary, cases, strict=False):
        market(site, name)["outcomePrices"] = json.dumps(prices)
    found = questions_of(crawl(web, tmp_path))
    for name, (prices, status, right) in zip(binary, cases, strict=False):
        assert (found[name].status, found[name].answer_index) == (status, right), prices
    assert len(binary) >= len(cases)


def test_an_odd_market_is_dropped_and_its_neighbours_stay(
    site: Site, web: Web, tmp_path: Path
) -> None:
    cases: list[dict[str, Any]] = [
        {"outcomes": "Yes, No"}, {"outcomes": ["Yes", "No"]}, {"outcomePrices": '["1"]'},
        {"outcomePrices": '["one", "zero"]'}, {"outcomePrices": "[" * 100_000}, {"question": None},
        {"outcomes": '["Yes", 7, "No"]'}, {"outcomePrices": '["1", null, "0"]'},
    ]  # fmt: skip
    for name, odd in zip(NAMES, cases, strict=False):
        market(site, name).update(odd)
    outcomes = crawl(web, tmp_path)
    reasons = {each["native_id"]: each["reason"] for out in outcomes for each in out.others}
    for name, odd in zip(NAMES, cases, strict=False):
        assert reasons[name] == "parse_error", odd
    assert questions_of(outcomes).keys() == {*NAMES[len(cases) :]}


def questions_of(outcomes: list[Outcome]) -> dict[str, Question]:
    return {name: each for outcome in outcomes for name, each in outcome.questions.items()}


def test_a_walk_ends_some_days_before_the_month(site: Site, web: Web, tmp_path: Path) -> None:
    site.max_limit = 1
    early = {"closed": True, "closedTime": "2021-01-05 10:00:00+00", "umaEndDate": None}
    for number in range(5):
        odd = {**site.markets[0], **early, "id": f"7{number}", "slug": f"early-{number}"}
        site.markets.insert(0, odd)
    assert len(crawl(web, tmp_path, MARCH)[0].questions) == 10
    asked = [path for _, _, path in web.requests if path.startswith("/markets/keyset")]
    assert len(asked) < len(site.markets) - 5


def test_a_list_in_another_order_has_changed(site: Site, web: Web, tmp_path: Path) -> None:
    site.markets.sort(key=lambda each: each["id"])
    site.markets.reverse()
    with pytest.raises(SourceChanged, match="the last closed first"):
        crawl(web, tmp_path)
    assert list_questions(Store(str(tmp_path))) == []


LEFT_OUT: list[dict[str, Any]] = [
    {"tags": [{"slug": "games", "label": "Games"}]}, {"tags": [{"slug": "esports"}]},
    {"sportsMarketType": "totals"}, {"gameStartTime": "2024-03-02 19:00:00+00"},
    {"events": [{"gameId": 7}]}, {"category": "Sports"},
    {"slug": "btc-updown-5m-1781770200"}, {"slug": "bitcoin-up-or-down-march-2-8pm-et"},
    {"tags": [{"slug": "crypto"}, {"slug": "up-or-down"}]}, {"outcomes": '["Up", "Down"]'},
    {"events": [{"seriesSlug": "eth-up-or-down-hourly"}]},
]  # fmt: skip
ALIKE: list[dict[str, Any]] = [
    {"slug": "will-the-government-shut-down"}, {"slug": "will-it-go-up-and-then-down-again"},
    {"tags": [{"slug": "video-games"}, None, "sports"]}, {"category": "Crypto"},
    {"events": [{"seriesSlug": "fed-rates", "gameId": None}, 7]}, {"sportsMarketType": ""},
]  # fmt: skip


def test_sport_and_up_or_down_series_are_left_out_and_what_only_sounds_so_is_kept(
    site: Site, web: Web, tmp_path: Path
) -> None:
    cases = [*LEFT_OUT, *ALIKE]
    for name, fields in zip(NAMES, cases, strict=False):
        market(site, name).update(fields)
    outcomes = crawl(web, tmp_path)
    drops = {each["native_id"]: each for outcome in outcomes for each in outcome.others}
    assert len(NAMES) >= len(cases)
    for name, fields in zip(NAMES, LEFT_OUT, strict=False):
        assert drops[name]["reason"] == "low_quality", fields
        assert "left out" in drops[name]["detail"], fields
    for name, fields in zip(NAMES[len(LEFT_OUT) :], ALIKE, strict=False):
        assert name in questions_of(outcomes), fields


@pytest.fixture
def recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polymarket, "SAMPLED_FROM", FEBRUARY)


def spread(site: Site) -> set[str]:
    """Move every other market into a drawn band of volumes; return these markets."""
    context = QuestionContext(Settings(), Fetcher(Settings(), {}, 0))
    bands = polymarket._bands(MARCH, context)
    for number, each in enumerate(site.markets):
        low, high = bands[number % len(bands)]
        each["volumeNum"] = (float(low or 0) + float(high or 9e9)) / 2 if number % 2 else 1e5 + 1
    return {each["id"] for each in site.markets[1::2]}


@pytest.mark.usefixtures("recent")
def test_a_month_is_sampled_by_bands_of_volume(site: Site, web: Web, tmp_path: Path) -> None:
    drawn = spread(site)
    outcomes = crawl(web, tmp_path)
    for month, outcome in zip((FEBRUARY, MARCH), outcomes, strict=True):
        there = {name for name, each in BY_ID.items() if each.resolved and each.resolved in month}
        assert outcome.questions.keys() == there & drawn != there
        left_out = [each for each in outcome.others if each["reason"] == "sample_cap"]
        assert "620 of 640 bands of volume were not drawn" in str(left_out)
        assert outcome.manifest["sample"]["seed"] == 0
        assert "20 of 640 bands of volume" in outcome.manifest["sample"]["rule"]
    assert len(web.requests) <= 2 * 2 * polymarket.NUM_DRAWN + 1
    again = crawl(web, tmp_path / "again")
    assert [o.manifest["digest"] for o in again] == [o.manifest["digest"] for o in outcomes]


@pytest.mark.usefixtures("recent")
def test_the_pages_of_a_month_are_limited(
    site: Site, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in site.markets:
        each["volumeNum"] = 1_000_000_000.0
    monkeypatch.setattr(polymarket, "NUM_BANDS", 2)
    monkeypatch.setattr(polymarket, "NUM_DRAWN", 2)
    monkeypatch.setattr(polymarket, "MAX_PAGES", 8)
    site.max_limit = 3
    [outcome] = crawl(web, tmp_path, MARCH)
    assert 0 < len(outcome.questions) < 10
    assert "after 4 pages" in str([e for e in outcome.others if e["reason"] == "sample_cap"])
    assert len([target for _, _, target in web.requests if "keyset" in target]) == 1 + 4


class Careless(Site):
    def respond(self, request: Request) -> Response:
        query = {name: values for name, values in request.query.items() if "start" not in name}
        return super().respond(dataclasses.replace(request, query=query))


def test_a_list_that_does_not_come_to_its_month_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Careless(WORLD)
    site.max_limit = 4
    monkeypatch.setattr(polymarket, "MAX_PAGES", 2)
    with serve_sites([site]) as web, pytest.raises(SourceChanged, match="began before the month"):
        crawl(web, tmp_path, FEBRUARY)


def test_old_markets_need_no_start(tmp_path: Path) -> None:
    months = (Month("2021-01"), Month("2021-02"))
    site = Site(World(3, *months))
    for each in site.markets:
        each["startDate"] = None
    with serve_sites([site]) as web:
        assert [len(outcome.questions) for outcome in crawl(web, tmp_path, *months)] == [10, 10]
