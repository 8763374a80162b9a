import dataclasses
from pathlib import Path
from typing import Any

import pytest

from core.corpus.questions import list_questions
from core.corpus.simulated import LICENCE
from core.errors import SourceChanged
from core.storage.store import Store
from crawlers.questions.manifold import _PRIVATE_TITLE, INFO
from simulator.forecasts import SimulatedQuestion, questions
from simulator.server import Web
from simulator.sites.manifold import ODDITIES, UPDATE, Site
from tests.crawlers.questions.scene import FEBRUARY, MARCH, WORLD, Outcome, crawl_source

BY_ID = {f"mf{question.id}AbC": question for question in questions(WORLD, "manifold")}


def crawl(web: Web, home: Path) -> dict[str, Any]:
    outcomes = crawl_source("manifold", web, home)
    return {name: each for outcome in outcomes for name, each in outcome.questions.items()}


def resolved(month: Any) -> set[str]:
    return {name for name, each in BY_ID.items() if each.resolved and each.resolved in month}


@pytest.fixture(scope="module")
def whole(outcomes: list[Outcome]) -> dict[str, Any]:
    return {name: each for outcome in outcomes for name, each in outcome.questions.items()}


def test_a_question_is_what_the_world_asked(whole: dict[str, Any]) -> None:
    found = whole
    assert found.keys() == resolved(FEBRUARY) | resolved(MARCH)
    for name, question in found.items():
        true: SimulatedQuestion = BY_ID[name]
        assert (question.title, question.options) == (true.title, true.options)
        assert question.answer_index == true.answer_index
        assert question.status == ("void" if true.is_void else "resolved")
        dates = (question.opened_at, question.closed_at, question.resolved_at)
        assert dates == (true.opened, true.closed, true.resolved)
        assert question.background == f"{true.background}\n\n{true.criteria}"
        assert UPDATE not in question.background
        assert question.url.startswith("https://manifold.markets/")
        assert question.licence == LICENCE
    assert INFO.licence == "LicenseRef-unknown"
    assert found["mf2403000AbC"].tags == ("technology", "health")
    assert BY_ID["mf2403004AbC"].opened < FEBRUARY.start  # years before


def test_the_last_price_is_the_crowd_but_never_one_that_was_set_by_the_answer(
    whole: dict[str, Any],
) -> None:
    for name, question in whole.items():
        true, at = BY_ID[name], None
        if question.crowd_forecast:
            at = question.crowd_forecast[0].at
            assert at < question.closed_at
        given = tuple(zip(question.options, true.crowd, strict=True))
        pairs = tuple(
            (each.option, pytest.approx(each.probability)) for each in question.crowd_forecast
        )
        if true.is_binary or true.is_void:
            assert given == pairs
        else:  # the list has 1 and 0 for them
            assert question.crowd_forecast == ()


def test_a_price_of_one_and_a_bet_after_closing_are_no_forecasts(
    site: Site, web: Web, tmp_path: Path
) -> None:
    certain, late = "mf2403001AbC", "mf2403000AbC"
    site.markets[certain]["probability"] = 1.0
    site.markets[late]["lastBetTime"] = site.markets[late]["closeTime"] + 1
    found = crawl(web, tmp_path)
    assert found[certain].crowd_forecast == found[late].crowd_forecast == ()


def test_what_nobody_should_keep_is_dropped_with_its_reason(
    whole: dict[str, Any], outcomes: list[Outcome]
) -> None:
    assert not [name for name in whole if name.startswith("odd")]
    outcome = outcomes[1]
    reasons = {other["native_id"]: other["reason"] for other in outcome.others}
    by_kind = {kind: reasons.get(f"odd{number}") for number, kind in enumerate(ODDITIES)}
    assert by_kind == {
        "personal": "low_quality", "meta": "low_quality", "private topic": "low_quality",
        "few bettors": "low_quality", "numeric": None, "late answer": "edited_later",
        "independent answers": "unknown_format",
    }  # fmt: skip
    assert outcome.manifest["passed_over"]["not_a_choice"] == 1


@pytest.mark.parametrize(
    ("title", "is_private"),
    [
        ("Will I finish my thesis?", True),
        ("Will Manifold have a million users?", True),
        ("Will this market have 100 traders?", True),
        ("Should I move to Berlin?", True),
        ("Will the World War I memorial be restored?", False),
        ("Will Elizabeth I be named in the speech?", False),
        ("Will a manifold theorem be proved?", False),
        ("Will the court decide for Mexico?", False),
    ],
)
def test_titles_that_are_personal_or_meta(title: str, is_private: bool) -> None:
    assert bool(_PRIVATE_TITLE.search(title)) == is_private


def test_mkt_of_a_yes_no_question_is_void(site: Site, web: Web, tmp_path: Path) -> None:
    site.markets["mf2403001AbC"] |= {"resolution": "MKT", "resolutionProbability": 0.5}
    question = crawl(web, tmp_path)["mf2403001AbC"]
    assert (question.status, question.answer_index) == ("void", None)


def test_a_list_that_goes_in_circles_has_changed(
    site: Site, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.max_limit = 5
    respond = site.respond

    def circling(request: Any) -> Any:
        if "before" in request.query:
            request = dataclasses.replace(request, query={"limit": ["1000"]})
        return respond(request)

    monkeypatch.setattr(site, "respond", circling)
    with pytest.raises(SourceChanged, match="no market that was not on a former one"):
        crawl(web, tmp_path)
    assert list_questions(Store(str(tmp_path))) == []


def test_records_are_asked_for_only_of_what_may_be_kept(web: Web, tmp_path: Path) -> None:
    crawl(web, tmp_path)
    asked = {path for _, _, path in web.requests if path.startswith("/v0/market/")}
    assert "/v0/market/mf2403012AbC" not in asked  # open
    assert len(asked) == 24 + len(["private topic", "late answer", "independent answers"])


HOSTILE: list[dict[str, Any]] = [
    {"url": "https://\ud800"}, {"groupSlugs": ["\ud800", 3, None]}, {"closeTime": 10**400},
    {"createdTime": "now"}, {"textDescription": "<b>" * 40_000}, {"resolution": None},
    {"probability": "high"}, {"question": ["x"]}, {"resolutionTime": -5},
]  # fmt: skip


def test_what_a_hostile_market_says_harms_no_other(
    site: Site, web: Web, tmp_path: Path, whole: dict[str, Any]
) -> None:
    names = sorted(resolved(MARCH))
    hostile = dict(zip(names[1:], HOSTILE, strict=False))
    assert len(hostile) == len(HOSTILE)
    for name, fields in hostile.items():
        site.markets[name] |= fields
    others = {name: question for name, question in whole.items() if name not in hostile}
    found = crawl(web, tmp_path)
    assert {name: question for name, question in found.items() if name not in hostile} == others
