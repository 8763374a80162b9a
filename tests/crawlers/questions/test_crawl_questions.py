import datetime as dt
import inspect
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.corpus.questions import Question, list_questions, read_question_seal
from core.errors import (
    EmptyPartition,
    FutureMonth,
    SourceChanged,
    SourceUnavailable,
    UnknownName,
    UsageError,
)
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Drop, Failure, Repeat
from crawlers.questions import crawl as crawl_module
from crawlers.questions.contract import (
    Found,
    QuestionContext,
    QuestionSourceInfo,
    list_question_sources,
    load_question_crawler,
)
from crawlers.questions.crawl import crawl_questions, tidy
from crawlers.registry import list_sources
from crawlers.web import pacing
from crawlers.web.fetcher import Fetcher
from simulator.server import Fault, Web
from tests.crawlers.questions.scene import FEBRUARY, MARCH, outcome_of, settings_of, small_web
from tests.forks import ROOT

JANUARY = Month("2024-01")
INFO = QuestionSourceInfo(
    name="toy", title="Toy", licence="MIT", language="en", category="forecasting",
    sites={"toy": "http://127.0.0.1:9"},
)  # fmt: skip


def question(name: str, month: Month = MARCH, **fields: Any) -> Question:
    given: dict[str, Any] = {
        "question_id": name, "source": "toy", "title": f"Will {name} come?",
        "options": ("Yes", "No"), "answer_index": 0, "status": "resolved", "licence": "MIT",
        "opened_at": month.start - dt.timedelta(days=40), "resolved_at": month.start,
    }  # fmt: skip
    return Question(**{**given, **fields})


TOLD = (
    "EDIT: Resolving YES since it opened.", "I resolved this YES.", "Resolved N/A: ambiguous.",
    "The question was resolved **Yes** by an admin.", "Resolved positively on 4 May 2022.",
    "This question resolved as 4.", 'NOTE: The question closed "Yes" on 4 March.',
    'The correct answer was "No."', "Outcome proposed: Yes. Final outcome: Yes", "Winner: Yes",
    'The oracle resolved this market to "Yes".', "It was resolved in favor of No.",
    "[RESOLVED: No] Will it open?", "Resolved: will it open?", "Will it open? — RESOLVED YES",
    "Will it open? [CLOSED, RESOLVED NO]", "Will it open? (resolves N/A)", "Update: resolved NO",
    "This market resolved YES.", 'The market has resolved to "No" on 3 May.', "Outcome: Yes.",
    "Question resolved positively", 'It was resolved to "No" on 6 March.',
    "Market settled: No", "Will it open? (settled NO)", "Will it open? | Resolved: 42%",
)  # fmt: skip
UNTOLD = (
    "Resolution: Yes, if the ministry says so", "If this market resolved YES, another follows.",
    "Will the dispute be resolved by June?", "A strike was resolved to everyone's joy.",
    'If the market has already resolved to "Yes", later prices do not matter.',
    "The market settled at 4,200 on Friday.", "The stock market closed with gains.",
    "The case settled: no damages were paid.", "Update: no further decisions are planned.",
    "If it has not been resolved as Yes by May, I will resolve No.", "EDIT: Yes votes are counted.",
    "It was resolved to No. 10's satisfaction.", "Will it end (resolved by treaty)?",
    "I'm going to resolve this as YES if it opens.", "The committee resolved no issues.",
)  # fmt: skip


def test_texts_tell_an_outcome_in_many_words() -> None:
    for field in ("title", "background", "resolution_criteria"):
        for text in (*TOLD, *UNTOLD):
            fields: Any = {field: text}
            found = tidy(question("x", **fields))
            assert isinstance(found, Drop) == (text in TOLD), (field, text, found)


class Toy:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, info: QuestionSourceInfo = INFO) -> None:
        self.INFO = info
        self.gives: list[tuple[Month, Found] | Exception] = []
        self.asked: list[Sequence[Month]] = []
        self.passed_over: dict[str, int] = {}
        monkeypatch.setattr(crawl_module, "load_question_crawler", lambda name: self)

    def fetch_questions(
        self, months: Sequence[Month], context: QuestionContext
    ) -> Iterator[tuple[Month, Found]]:
        self.asked.append(months)
        context.passed_over.update(self.passed_over)  # type: ignore[arg-type]
        for each in self.gives:
            if isinstance(each, Exception):
                raise each
            if each[0] in months:
                yield each


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Toy:
    return Toy(monkeypatch)


def crawl(store: Store, settings: Settings, *months: Month, **options: Any) -> list[Any]:
    return crawl_questions("toy", months or [MARCH], store, settings, **options)


def counts(seal: Any) -> tuple[object, ...]:
    found = seal.manifest
    kept = (found["status"], found["requested"], found["kept"])
    return (*kept, found["dropped"], found["failed"], found["repeated"])


def test_one_walk_serves_all_months(toy: Toy, store: Store, settings: Settings) -> None:
    toy.gives = [(JANUARY, question("a", JANUARY)), (MARCH, question("b")), (MARCH, question("c"))]
    seals = crawl(store, settings, MARCH, JANUARY, FEBRUARY, MARCH)
    assert toy.asked == [[JANUARY, FEBRUARY, MARCH]]
    assert [(seal.month, seal.num_questions) for seal in seals] == [
        (JANUARY, 1), (FEBRUARY, 0), (MARCH, 2),
    ]  # fmt: skip
    assert not any(seal.is_partial for seal in seals)


def test_what_is_sealed_is_not_asked_for_again(toy: Toy, store: Store, settings: Settings) -> None:
    toy.gives = [(FEBRUARY, question("a", FEBRUARY)), (MARCH, question("b"))]
    first = crawl(store, settings, FEBRUARY)
    assert crawl(store, settings, FEBRUARY) == first
    assert toy.asked == [[FEBRUARY]]
    both = crawl(store, settings, FEBRUARY, MARCH)
    assert both[0] == first[0] and toy.asked[-1] == [MARCH]
    crawl(store, settings, FEBRUARY, replace=True)
    assert toy.asked[-1] == [FEBRUARY]


def test_the_ledger_adds_up(toy: Toy, store: Store, settings: Settings) -> None:
    toy.gives = [
        (MARCH, question("a")), (MARCH, question("a")), (MARCH, Repeat("a", "on two pages")),
        (MARCH, Drop("b", "low_quality")), (MARCH, Failure("c", "timeout", "slow")),
        (MARCH, question("d", options=("Yes",))), (MARCH, question("e", title=" <b></b> ")),
        (MARCH, question("f", options=("Same", " Same "))),
    ]  # fmt: skip
    toy.passed_over = {"open": 3}
    [seal] = crawl(store, settings)
    dropped = {"unknown_format": 2, "low_quality": 1, "empty": 1}
    assert counts(seal) == ("partial", 8, 1, dropped, {"timeout": 1}, 2)
    assert seal.manifest["passed_over"] == {"open": 3}
    others = outcome_of(store, seal).others
    assert [each["native_id"] for each in others] == ["a", "a", "b", "c", "d", "e", "f"]
    for key in ("base_urls", "user_agent", "requests", "code_version", "window", "ended_early"):
        assert key in seal.manifest


def test_texts_are_cleaned(toy: Toy, store: Store, settings: Settings) -> None:
    toy.gives = [
        (MARCH, question("a", title="Will  it\n<i>rain</i>?", background="<p>One</p>\r\n"))
    ]
    [seal] = crawl(store, settings)
    found = outcome_of(store, seal).questions["a"]
    assert (found.title, found.background) == ("Will it rain?", "One")


def test_a_site_that_gives_out_leaves_partial_months_which_are_completed(
    toy: Toy, store: Store, settings: Settings
) -> None:
    whole = [(MARCH, question("a")), (MARCH, question("b")), (FEBRUARY, question("c", FEBRUARY))]
    toy.gives = [*whole[:1], SourceUnavailable("the site went home")]
    seals = crawl(store, settings, JANUARY, FEBRUARY, MARCH)
    assert [seal.month for seal in seals] == [MARCH]  # no question of the other months came
    assert seals[0].is_partial and seals[0].manifest["ended_early"] == "the site went home"
    toy.gives = list(whole)
    seals = crawl(store, settings, JANUARY, FEBRUARY, MARCH)
    assert [seal.num_questions for seal in seals] == [0, 1, 2]
    assert not any(seal.is_partial for seal in seals)


def test_a_partial_month_is_never_replaced_by_one_with_fewer_questions(
    toy: Toy, store: Store, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    toy.gives = [(MARCH, question("a")), (MARCH, question("b")), SourceUnavailable("gone")]
    [former] = crawl(store, settings)
    for gives in (
        [(MARCH, question("a")), SourceUnavailable("gone")],
        [(MARCH, question("a")), (MARCH, Failure("b", "timeout"))],
        [(MARCH, question("a"))],  # apparently complete
        [SourceUnavailable("gone at once")],
    ):
        toy.gives = gives
        assert crawl(store, settings) == [former]
    toy.gives = [(MARCH, question("a")), SourceUnavailable("gone")]
    assert crawl(store, settings, replace=True) == [former]
    assert read_question_seal(store, "toy", MARCH) == former
    assert "--replace" in caplog.text
    toy.gives = [(MARCH, question("a"))]
    assert crawl(store, settings, replace=True)[0].num_questions == 1


def test_a_whole_month_is_never_replaced_by_a_partial_one(
    toy: Toy, store: Store, settings: Settings
) -> None:
    toy.gives = [(MARCH, question("a"))]
    [former] = crawl(store, settings)
    toy.gives = [(MARCH, question("a")), (MARCH, question("b")), SourceUnavailable("gone")]
    assert crawl(store, settings, replace=True) == [former]


def test_a_walk_that_brought_nothing_seals_nothing(
    toy: Toy, store: Store, settings: Settings
) -> None:
    with pytest.raises(EmptyPartition, match="no question"):
        crawl(store, settings)
    toy.passed_over = {"other_month": 5}  # then the list was read, and the month is empty
    assert [counts(seal) for seal in crawl(store, settings)] == [("complete", 0, 0, {}, {}, 0)]


@pytest.mark.parametrize("error", [SourceUnavailable("away"), SourceChanged("new")])
def test_an_error_before_anything_came_is_raised(
    toy: Toy, store: Store, settings: Settings, error: Exception
) -> None:
    toy.gives = [error]
    with pytest.raises(type(error)):
        crawl(store, settings)
    assert list_questions(store) == []


def test_a_site_that_is_away_is_no_answer_to_replace(
    toy: Toy, store: Store, settings: Settings
) -> None:
    toy.gives = [(MARCH, question("a"))]
    former = crawl(store, settings)
    toy.gives = [SourceUnavailable("away")]
    with pytest.raises(SourceUnavailable):
        crawl(store, settings, replace=True)
    assert list_questions(store) == former


def test_a_site_that_changed_seals_nothing(toy: Toy, store: Store, settings: Settings) -> None:
    toy.gives = [(MARCH, question("a")), SourceChanged("new")]
    with pytest.raises(SourceChanged):
        crawl(store, settings)
    assert list_questions(store) == []


def test_failures_alone_are_not_sealed(toy: Toy, store: Store, settings: Settings) -> None:
    toy.gives = [(MARCH, Failure("a", "timeout"))]
    with pytest.raises(SourceUnavailable, match="no question was found"):
        crawl(store, settings)
    assert list_questions(store) == []


def test_months_that_cannot_be_asked_for(toy: Toy, store: Store, settings: Settings) -> None:
    now = Month.of(dt.datetime.now(dt.UTC))
    with pytest.raises(FutureMonth):
        crawl(store, settings, MARCH, now)
    with pytest.raises(UsageError, match="begins with 2017-01"):
        crawl(store, settings, MARCH, Month("2016-12"))
    with pytest.raises(UsageError, match="at least one"):
        crawl_questions("toy", [], store, settings)
    assert toy.asked == []


def test_sources_of_questions_are_no_sources_of_documents() -> None:
    known = list_question_sources()
    assert "manifold" in known
    assert not {*known} & {*list_sources()}
    assert not {"contract", "crawl", "files", "fields"} & {*known}
    with pytest.raises(UnknownName, match="manifold"):
        load_question_crawler("wikipedia")


@pytest.mark.parametrize("source", list_question_sources())
def test_a_source_of_questions_says_what_it_is(source: str) -> None:
    module = load_question_crawler(source)
    info = module.INFO
    assert info.name == source
    assert info.licence and info.title and info.sites
    others = {each for each in list_question_sources() if each != source}
    text = inspect.getsource(module)
    assert not [each for each in others if f"crawlers.questions.{each}" in text]
    tests = [each for folder in ("tests", "extras") for each in (ROOT / folder).rglob("test_*.py")]
    assert f"test_{source}.py" in {each.name for each in tests}


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with small_web() as running:
        yield running


def test_a_real_list_that_breaks_off_is_completed_from_the_cache(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.001)
    store, settings = Store(str(tmp_path)), settings_of(web, tmp_path)
    web.faults.append(Fault("status", "manifold", "before=", 10**6, 404))
    with pytest.raises(SourceChanged):  # no page where the list says there is one
        crawl_questions("manifold", [FEBRUARY, MARCH], store, settings)
    web.faults[:] = [Fault("disconnect", "manifold", "before=", 10**6)]
    seals = crawl_questions("manifold", [FEBRUARY, MARCH], store, settings)
    assert [seal.month for seal in seals] == [MARCH]
    assert seals[0].is_partial and "before=" in str(seals[0].manifest["ended_early"])
    web.faults.clear()
    begun = len(web.requests)
    seals = crawl_questions("manifold", [FEBRUARY, MARCH], store, settings)
    assert [(seal.num_questions, seal.is_partial) for seal in seals] == [(12, False), (12, False)]
    asked = [target for _, _, target in web.requests[begun:]]
    assert "before=" in asked[0]  # the first page is in the cache


def test_an_answer_from_before_an_instant_is_asked_for_anew(web: Web, tmp_path: Path) -> None:
    settings = settings_of(web, tmp_path)
    fetcher = Fetcher(settings, {"manifold": "http://127.0.0.1:9"}, 0)

    def get(not_before: dt.datetime | None) -> tuple[int, dt.datetime]:
        begun = len(web.requests)
        found = fetcher.get("manifold", "/v0/markets", {"limit": 1}, not_before=not_before)
        return len(
            [each for each in web.requests[begun:] if "robots" not in each[2]]
        ), found.retrieved_at

    first, given_at = get(None)
    assert first == 1
    assert get(given_at) == (0, given_at)
    later = given_at + dt.timedelta(microseconds=1)
    again, renewed_at = get(later)
    assert again == 1 and renewed_at >= later
    assert get(later) == (0, renewed_at)
