import datetime as dt
import functools
from pathlib import Path
from typing import Any

import pytest

from core.corpus.questions import list_questions
from core.errors import SourceChanged, UsageError
from core.settings import Settings
from core.storage.store import Store
from crawlers.questions.contract import QuestionContext
from crawlers.web.fetcher import Fetcher
from extras.question_sites import kalshi
from extras.question_sites.simulator.kalshi import PATH, Site, market_rows
from simulator.forecasts import questions
from simulator.server import Web, serve_sites
from tests.crawlers.questions.scene import FEBRUARY, MARCH, WORLD, Outcome, crawl_source

crawl = functools.partial(crawl_source, "kalshi")
ALL = [each for each in questions(WORLD, "kalshi") if "Sports" not in each.tags]
GAMES = [each for each in questions(WORLD, "kalshi") if "Sports" in each.tags]
TRUE = {
    str(row["ticker"]): (each, index) for each in ALL for index, row in enumerate(market_rows(each))
}


def some_of_march(number: int) -> list[str]:
    names = [name for name, (each, _) in TRUE.items() if each.resolved and each.resolved in MARCH]
    return names[:number]


@pytest.fixture(name="site")
def _site() -> Site:
    return Site(WORLD)


@pytest.fixture
def web(site: Site) -> Any:
    with serve_sites([site]) as web:
        yield web


def market(site: Site, name: str) -> dict[str, Any]:
    [found] = [each for each in site.markets if each["ticker"] == name]
    return found


def test_a_question_is_what_the_world_asked(outcomes: list[Outcome]) -> None:
    for month, outcome in zip((FEBRUARY, MARCH), outcomes, strict=True):
        there = {n for n, (each, _) in TRUE.items() if each.resolved and each.resolved in month}
        assert outcome.questions.keys() == there
        for name, question in outcome.questions.items():
            true, index = TRUE[name]
            title = true.title if true.is_binary else f"{true.options[index]}: {true.title}"
            assert (question.title, question.options) == (title, ("Yes", "No"))
            right = None if true.is_void else int(true.answer_index != index)
            assert question.answer_index == right
            assert question.status == ("void" if true.is_void else "resolved")
            assert (question.opened_at, question.resolved_at) == (true.opened, true.resolved)
            assert question.tags == (true.tags[0], f"{true.tags[0]} news")
            assert question.resolution_criteria and true.criteria in question.resolution_criteria
            assert question.crowd_forecast == ()


def test_every_answer_of_an_event_is_a_question_and_one_is_right(outcomes: list[Outcome]) -> None:
    found = outcomes[1].questions
    events = [each for each in ALL if not each.is_binary and each.resolved in MARCH]  # type: ignore[operator]
    for event in events:
        markets = [found[str(row["ticker"])] for row in market_rows(event)]
        assert len(markets) == len(event.options)
        assert len({each.title for each in markets}) == len(markets)
        if not event.is_void:
            assert sum(each.answer_index == 0 for each in markets) == 1


def test_what_has_no_answer_is_not_given_one(outcomes: list[Outcome]) -> None:
    outcome = outcomes[1]
    reasons = {other["native_id"]: other["reason"] for other in outcome.others}
    games = {str(row["ticker"]) for each in GAMES for row in market_rows(each)}
    odd = [reason for name, reason in sorted(reasons.items()) if "-ODD" in name]
    assert odd == ["low_quality", "parse_error", "no_date", "low_quality"]
    assert all(reason == "low_quality" for name, reason in reasons.items() if name in games)
    assert reasons.keys() - games == {name for name in reasons if "-ODD" in name}
    assert outcome.manifest["passed_over"] == {"open": 1, "not_a_choice": 1}


def test_only_yes_and_no_are_an_answer(site: Site, web: Web, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str, int | None]] = [
        ({"result": "yes"}, "resolved", 0),
        ({"result": "no"}, "resolved", 1),
        ({"result": "scalar"}, "void", None),
        ({"result": ""}, "void", None),
        ({"volume_fp": None, "volume": 5000, "result": "yes"}, "resolved", 0),
    ]
    names = some_of_march(len(cases))
    for name, (fields, _, _) in zip(names, cases, strict=True):
        market(site, name).update(fields)
    questions = crawl(web, tmp_path, MARCH)[0].questions
    for name, (fields, status, right) in zip(names, cases, strict=True):
        assert (questions[name].status, questions[name].answer_index) == (status, right), fields


# The other fields of a market, and forms of values, as in answers of September 2026.
REAL = {
    "can_close_early": True, "cap_strike": None, "floor_strike": 0.2, "strike_type": "greater",
    "custom_strike": {"Person": "Ann Example"}, "early_close_condition": "If the event occurs.",
    "close_time": "2024-03-19T12:25:00Z", "expected_expiration_time": "2024-03-19T14:00:00Z",
    "expiration_time": "2024-06-19T13:56:00Z", "latest_expiration_time": "2024-06-19T13:56:00Z",
    "occurrence_datetime": None, "expiration_value": "0.4", "exchange_index": 0,
    "fractional_trading_enabled": True, "is_provisional": False, "response_price_units": "usd_cent",
    "price_level_structure": "deci_cent", "tick_size": 1, "notional_value_dollars": "1.0000",
    "price_ranges": [{"start": "0.0000", "end": "1.0000", "step": "0.0010"}],
    "yes_bid_dollars": "0.0000", "yes_ask_dollars": "1.0000", "no_bid_dollars": "0.0000",
    "last_price_dollars": "0.9900", "settlement_timer_seconds": 300, "subtitle": ":: Economics",
    "settlement_value_dollars": "1.0000", "settlement_ts": "2024-03-19T13:28:53.70625Z",
    "open_time": "2024-02-17T15:00:00Z", "created_time": "2024-02-16T15:24:02.365115Z",
    "volume_fp": "46415.00", "volume_24h_fp": "88.00", "open_interest_fp": "1250.00",
}  # fmt: skip


def test_markets_as_the_site_gives_them(site: Site, web: Web, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str, str, int | None]] = [
        (
            {"title": "Will the **high in X** be >79° on May 1?", "yes_sub_title": "80° or up"},
            "80° or up: Will the high in X be >79° on May 1?", "resolved", 0,
        ),
        (
            {"title": "Smith or Jones: who wins?", "yes_sub_title": "Smith", "result": "no"},
            "Smith: Smith or Jones: who wins?", "resolved", 1,
        ),
        (
            {"title": "How many cuts in 2024?", "yes_sub_title": "2", "result": "scalar",
             "settlement_value_dollars": "0.3500"},
            "2: How many cuts in 2024?", "void", None,
        ),
        ({"title": "Will X happen?", "yes_sub_title": ""}, "Will X happen?", "resolved", 0),
    ]  # fmt: skip
    names = some_of_march(len(cases))
    for name, (fields, *_) in zip(names, cases, strict=True):
        market(site, name).update({**REAL, "result": "yes", **fields})
    questions = crawl(web, tmp_path, MARCH)[0].questions
    for name, (_, title, status, right) in zip(names, cases, strict=True):
        found = questions[name]
        assert (found.title, found.status, found.answer_index) == (title, status, right)
        assert found.closed_at == dt.datetime(2024, 3, 19, 12, 25, tzinfo=dt.UTC)
        assert found.resolved_at == dt.datetime(2024, 3, 19, 13, 28, 53, 706250, dt.UTC)


def test_a_series_without_tags_has_null_in_their_place(
    site: Site, web: Web, tmp_path: Path
) -> None:
    for record in site._series.values():
        record.update({"tags": None, "additional_prohibitions": None, "fee_multiplier": 1})
    [outcome] = crawl(web, tmp_path, MARCH)
    assert outcome.questions
    assert all(len(each.tags) == 1 for each in outcome.questions.values())


def test_an_odd_market_is_dropped_and_its_neighbours_stay(
    site: Site, web: Web, tmp_path: Path
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"result": None}, "parse_error"), ({"result": 1}, "parse_error"),
        ({"result": {}}, "parse_error"), ({"result": ["yes"]}, "parse_error"),
        ({"title": " "}, "parse_error"), ({"event_ticker": "../x-1"}, "parse_error"),
        ({"event_ticker": "KXNOBODY-1"}, "http_404"), ({"volume_fp": "999.99"}, "low_quality"),
        ({"volume_fp": "many"}, "low_quality"), ({"yes_sub_title": None}, "parse_error"),
    ]  # fmt: skip
    names = some_of_march(len(cases))
    for name, (fields, _) in zip(names, cases, strict=True):
        market(site, name).update(fields)
    outcome = crawl(web, tmp_path, MARCH)[0]
    reasons = {each["native_id"]: each["reason"] for each in outcome.others}
    for name, (fields, reason) in zip(names, cases, strict=True):
        assert reasons[name] == reason, fields
    there = {n for n, (each, _) in TRUE.items() if each.resolved and each.resolved in MARCH}
    assert outcome.questions.keys() == there - {*names}


def test_a_series_is_requested_once(web: Web, tmp_path: Path) -> None:
    crawl(web, tmp_path)
    asked = [path for _, _, path in web.requests if "/series/" in path]
    assert len(asked) == len({*asked}) == 6 + 1  # the topics, and the series of fifteen minutes


def test_months_of_the_archive_are_refused_before_a_list(
    site: Site, web: Web, tmp_path: Path
) -> None:
    site.archived_before = MARCH.start
    with pytest.raises(UsageError, match="leave out 2024-02"):
        crawl(web, tmp_path)
    assert not [path for _, _, path in web.requests if path.startswith(f"{PATH}/markets")]
    assert list_questions(Store(str(tmp_path))) == []
    [outcome] = crawl(web, tmp_path, MARCH)
    assert outcome.manifest["status"] == "complete"


class Looping(Site):
    def respond(self, request: Any) -> Any:
        request.query.pop("cursor", None)
        return super().respond(request)


def test_a_cursor_that_comes_again_is_a_change_of_the_site(tmp_path: Path) -> None:
    site = Looping(WORLD)
    site.max_limit = 4
    with serve_sites([site]) as web, pytest.raises(SourceChanged, match="another cursor"):
        crawl(web, tmp_path, MARCH)


def test_pages_beyond_the_limit_are_told(
    site: Site, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.max_limit = 3
    monkeypatch.setattr(kalshi, "MAX_PAGES", 2)
    [outcome] = crawl(web, tmp_path, MARCH)
    assert "more than 2 pages" in str(outcome.others)
    assert 0 < len(outcome.questions) <= 6


def windows() -> list[kalshi.Window]:
    return kalshi._windows(MARCH, QuestionContext(Settings(), Fetcher(Settings(), {}, 0)))


@pytest.fixture
def recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kalshi, "SAMPLED_FROM", FEBRUARY)


@pytest.mark.usefixtures("recent")
def test_a_window_is_drawn_from_each_part_of_a_month() -> None:
    part = (MARCH.end - MARCH.start) / kalshi.NUM_DRAWN
    drawn = windows()
    for number, (start, end) in enumerate(drawn):
        assert end - start == kalshi.WINDOW
        assert MARCH.start + number * part <= start < end <= MARCH.start + (number + 1) * part
    assert len(drawn) == kalshi.NUM_DRAWN
    places = [(start - MARCH.start) % part for start, _ in drawn]
    assert len({*places}) > 20  # of 31


@pytest.mark.usefixtures("recent")
def test_a_month_is_sampled_by_windows_of_time(site: Site, web: Web, tmp_path: Path) -> None:
    rows = [each for each in site.markets if str(each["settlement_ts"]).startswith("2024-03")]
    drawn = set()
    drawn_windows = windows()
    for number, each in enumerate(rows):
        start, end = drawn_windows[7 * (number % 20)]
        moments = [start, end - dt.timedelta(milliseconds=1), end]
        each["settlement_ts"] = f"{moments[number % 3]:%Y-%m-%dT%H:%M:%S.%f}Z"
        each["open_time"] = "2024-02-01T00:00:00Z"
        drawn |= {str(each["ticker"])} if number % 3 < 2 else set()
    [outcome] = crawl(web, tmp_path, MARCH)
    assert outcome.questions.keys() == TRUE.keys() & drawn
    left_out = [each for each in outcome.others if each["reason"] == "sample_cap"]
    assert any("144 windows of 0:10:00 were drawn" in each["detail"] for each in left_out)
    assert sum("no market was settled" in each["detail"] for each in left_out) >= 100
    assert "144 windows of 10 minutes" in outcome.manifest["sample"]["rule"]
    assert outcome.manifest["sample"]["seed"] == 0
    lists = [path for _, _, path in web.requests if path.startswith(f"{PATH}/markets?")]
    assert len(lists) == kalshi.NUM_DRAWN
