import datetime as dt
import socket
from collections import Counter
from typing import Any

import pytest
from lxml import html
from playwright.sync_api import sync_playwright
from pydantic import SecretStr

from core.corpus.permissions import record_permission
from core.corpus.questions import Question, QuestionSeal, read_questions
from core.errors import AccessRefused, SourceChanged, SourceUnavailable, TokenRefused, UsageError
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.questions.contract import list_question_sources
from crawlers.questions.crawl import crawl_questions
from crawlers.web.fetcher import Fetched
from extras.browser_questions import good_judgment_open
from extras.browser_questions.browser.fetching import find_chromium
from extras.browser_questions.simulator import gjo
from simulator.forecasts import SimulatedQuestion
from simulator.server import Fault, Web
from simulator.world import World
from tests.crawlers.questions.scene import FEBRUARY, MARCH

SOURCE = good_judgment_open.SITE
TOKENS = {SOURCE: SecretStr(f"{gjo.USER}:{gjo.PASSWORD}")}
LATER = str(dt.datetime.now(dt.UTC).date() + dt.timedelta(days=9))
NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


@pytest.fixture
def site() -> gjo.Site:
    return gjo.Site(World(3, FEBRUARY, MARCH))


@pytest.fixture
def at_site(web: Web, settings: Settings) -> Settings:
    return settings.model_copy(update={"sites": web.urls, "tokens": TOKENS})


@pytest.fixture
def for_all(
    web: Web, settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    monkeypatch.setattr("crawlers.web.pacing.BACKOFF_BASE_S", 0.001)
    record_permission(store, SOURCE, "A. Smith, by mail", LATER)
    return settings.model_copy(update={"sites": web.urls})


@pytest.fixture
def permitted(store: Store) -> None:
    with sync_playwright() as playwright:
        try:
            find_chromium(Settings(), playwright)
        except UsageError as error:
            pytest.skip(f"no browser (`make chromium` installs one): {error}")
    record_permission(store, SOURCE, "A. Smith, by mail", LATER)


def by_id(store: Store, seal: QuestionSeal) -> dict[str, Question]:
    return {question.question_id: question for question in read_questions(store, seal)}


def test_it_is_a_source_and_off_without_a_permission(store: Store, settings: Settings) -> None:
    assert SOURCE in list_question_sources()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        for tokens in (TOKENS, {}):
            given = settings.model_copy(update={"sites": {SOURCE: url}, "tokens": tokens})
            with pytest.raises(AccessRefused) as error:
                crawl_questions(SOURCE, [MARCH], store, given)
            assert "its list of resolved questions is for members" in str(error.value)
            assert f"tidemark sources permit {SOURCE} --note" in str(error.value)
        text = f'{{"source": "{SOURCE}", "note": "n", "until": "2020-01-01", "recorded_at": '
        path = f"permissions/{SOURCE}.json"
        store.write_bytes(path, f'{text}"2019-01-01T00:00:00Z"}}'.encode())
        with pytest.raises(AccessRefused, match="the one recorded ended on 2020-01-01"):
            crawl_questions(SOURCE, [MARCH], store, given)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody ever connected
            server.accept()


def test_without_a_token_the_public_list_is_read(
    site: gjo.Site, web: Web, for_all: Settings, store: Store
) -> None:
    seals = crawl_questions(SOURCE, [FEBRUARY, MARCH], store, for_all)
    found = {name: each for seal in seals for name, each in by_id(store, seal).items()}
    assert found.keys() == {each.id for each in site.questions}
    for each in site.questions:
        assert_same(found[each.id], each)
    targets = [target for _, _, target in web.requests]
    assert not any("sign_in" in target or "leaderboards" in target for target in targets)
    assert sum(target.startswith("/questions?page=") for target in targets) == 3


def test_by_the_public_list_questions_of_other_months_are_not_requested(
    site: gjo.Site, web: Web, for_all: Settings, store: Store
) -> None:
    [seal] = crawl_questions(SOURCE, [MARCH], store, for_all)
    assert len(by_id(store, seal)) == 12
    assert seal.manifest["passed_over"] == {"other_month": 12}
    assert sum("/questions/" in target for _, _, target in web.requests) == 12


def test_where_the_public_list_asks_for_a_login_the_months_are_partial(
    site: gjo.Site, for_all: Settings, store: Store
) -> None:
    site.public_pages = 1
    seals = crawl_questions(SOURCE, [FEBRUARY, MARCH], store, for_all)
    assert [len(by_id(store, seal)) for seal in seals] == [gjo.ON_A_PAGE]  # nothing of February
    assert seals[0].is_partial
    assert "set TIDEMARK_TOKENS__GOOD_JUDGMENT_OPEN" in str(seals[0].manifest["ended_early"])
    site.public_pages = 0
    with pytest.raises(SourceUnavailable, match="page 1 .* is for members"):
        crawl_questions(SOURCE, [FEBRUARY], store, for_all, replace=True)


def test_an_empty_page_of_the_public_list_is_requested_again(
    site: gjo.Site, for_all: Settings, store: Store
) -> None:
    site.quirks = {"empty_page": 2}
    [seal] = crawl_questions(SOURCE, [MARCH], store, for_all)
    assert len(by_id(store, seal)) == 12 and not seal.is_partial
    site.quirks = {"empty_page": 99}
    with pytest.raises(SourceUnavailable, match="busy"):
        crawl_questions(SOURCE, [FEBRUARY], store, for_all, replace=True)


ODD_ROW = '<div class="question-row-component"><h5>{}</h5></div>'


def test_odd_links_of_the_public_list_are_counted(
    site: gjo.Site, web: Web, for_all: Settings, store: Store
) -> None:
    odd = [ODD_ROW.format(f'<a href="{link}">x</a>') for link in ("http://[", "/questions/new", "")]
    page = "".join([*odd, gjo._public_row(site.questions[0])]).encode()
    web.faults.append(Fault("status", SOURCE, "status=resolved", 1, 200, {}, page))
    [seal] = crawl_questions(SOURCE, [MARCH], store, for_all)
    assert by_id(store, seal).keys() == {site.questions[0].id}
    assert seal.manifest["passed_over"] == {"not_a_choice": 3}


@pytest.mark.parametrize("content", ["", "<a>x</a>", "<p>A question</p>"])
def test_a_row_of_the_public_list_without_a_link_is_a_change(
    web: Web, for_all: Settings, store: Store, content: str
) -> None:
    page = ODD_ROW.format(content).encode()
    web.faults.append(Fault("status", SOURCE, "status=resolved", 1, 200, {}, page))
    with pytest.raises(SourceChanged, match="expected a link"):
        crawl_questions(SOURCE, [MARCH], store, for_all)


@pytest.mark.usefixtures("permitted")
def test_months_are_sealed_as_the_site_has_them(
    site: gjo.Site, web: Web, at_site: Settings, store: Store
) -> None:
    site.quirks = {"moving_items": 1}
    seals = crawl_questions(SOURCE, [FEBRUARY, MARCH], store, at_site)
    assert [seal.month for seal in seals] == [FEBRUARY, MARCH]
    found = {name: each for seal in seals for name, each in by_id(store, seal).items()}
    expected = {each.id: each for each in site.questions}
    assert found.keys() == expected.keys()
    for name, question in found.items():
        assert_same(question, expected[name])
    manifests: list[dict[str, Any]] = [seal.manifest for seal in seals]
    assert [each["permission"]["note"] for each in manifests] == ["A. Smith, by mail"] * 2
    assert sum(each["repeated"] for each in manifests) == 1
    assert [each["status"] for each in manifests] == ["complete", "complete"]
    assert manifests[0]["requests"]["requests"] == len(web.requests)
    assert manifests[0]["requests"]["pages"] == 3
    assert manifests[0]["passed_over"]["not_a_choice"] == 1  # the junk row
    assert site.seen == {"/": 1}
    assert gjo.PASSWORD not in str(manifests)
    assert [path for _, method, path in web.requests if method == "POST"] == ["/users/sign_in"]
    num_asked = Counter(path for _, _, path in web.requests)
    assert {n for path, n in num_asked.items() if path.startswith("/leaderboards/q")} == {1}
    assert crawl_questions(SOURCE, [MARCH], store, at_site) == seals[1:]
    assert sum(num_asked.values()) == len(web.requests)


def assert_same(question: Question, expected: SimulatedQuestion) -> None:
    assert question.title == expected.title
    assert question.background == f"{expected.background}\n\n{expected.criteria}"
    assert question.options == expected.options
    assert question.answer_index == expected.answer_index
    assert question.status == ("void" if expected.is_void else "resolved")
    assert question.opened_at == expected.opened
    assert question.resolved_at == question.closed_at == expected.resolved
    assert question.tags == (*expected.tags, "World")
    crowd = [(each.option, each.probability) for each in question.crowd_forecast]
    assert crowd == list(zip(expected.options, expected.crowd, strict=True))
    told = f"{question.title} {question.background}"
    assert "%" not in told  # models do not read the crowd's forecast


@pytest.mark.slow
@pytest.mark.usefixtures("permitted")
def test_a_page_that_fails_makes_months_partial_and_comes_with_the_next_crawl(
    site: gjo.Site, web: Web, at_site: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlers.web.exchange.MAX_TRIES", 1)
    monkeypatch.setattr("crawlers.web.pacing.BACKOFF_BASE_S", 0.001)
    [missing] = [each for each in site.questions if each.id == "2403004"]
    web.faults.append(Fault("status", SOURCE, f"/{missing.id}-", times=9, status=503))
    [seal] = crawl_questions(SOURCE, [MARCH], store, at_site)
    assert seal.is_partial
    assert seal.manifest["failed"] == {"http_5xx": 1}
    assert missing.id not in by_id(store, seal)
    web.faults.clear()
    [seal] = crawl_questions(SOURCE, [MARCH], store, at_site)
    assert not seal.is_partial
    assert missing.id in by_id(store, seal)


@pytest.mark.usefixtures("permitted")
def test_a_wrong_password_seals_nothing_and_is_never_shown(
    at_site: Settings, store: Store, site: gjo.Site
) -> None:
    site.users = {gjo.USER: "another-one-1"}
    with pytest.raises(TokenRefused, match="does not accept the user name and password") as error:
        crawl_questions(SOURCE, [MARCH], store, at_site)
    assert gjo.PASSWORD not in repr(error.value)
    odd = at_site.model_copy(update={"tokens": {SOURCE: SecretStr("no-colon-in-it")}})
    with pytest.raises(TokenRefused, match="expected USER:PASSWORD in TIDEMARK_TOKENS__GOOD"):
        crawl_questions(SOURCE, [MARCH], store, odd)
    assert store.list("questions/**/*.json") == []


@pytest.mark.usefixtures("permitted")
def test_an_empty_page_of_the_list_is_not_taken_for_its_end(
    site: gjo.Site, at_site: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(good_judgment_open, "PAGE_S", 20.0)
    site.quirks = {"empty_page": 1}
    with pytest.raises(SourceUnavailable, match="had no div.row"):
        crawl_questions(SOURCE, [MARCH], store, at_site)
    assert store.list("questions/**/*.json") == []


def test_an_invalid_link_to_the_next_page_is_a_change_of_the_site() -> None:
    tree = html.fromstring("<a rel=next href='//[0/'>2</a>")
    with pytest.raises(SourceChanged, match=r"leads to '//\[0/'"):
        good_judgment_open._next_page("https://gjo.invalid/questions", tree)


PAGE = """<h3 id="question-name-header">Will it {void} rain?</h3>
<span class="info-heading">Started</span><span data-localizable-timestamp="{started}">x</span>
<span class="info-heading">Closed</span><span data-localizable-timestamp="{closed}">x</span>
{notes}<div class="smb">{description}</div><table><tbody>{rows}</tbody></table>"""
ROW = "<tr><td>{}</td><td>{}</td><td>{}</td></tr>"
CHECK = '<i class="fa fa-check-circle"></i>'
YES = ROW.format(" Yes\n", CHECK, "97%")
NO = ROW.format("No", "", "3 %")


def read(**parts: str) -> good_judgment_open._Page:
    given = {
        "void": "", "started": "2024-02-02T18:00:00Z", "closed": "2024-03-01T00:00:00-05:00",
        "notes": "", "description": "Plain words.", "rows": YES + NO, **parts,
    }  # fmt: skip
    body = PAGE.format(**given).encode()
    return good_judgment_open._Page("7", Fetched("https://gjo.invalid/7", {}, body, NOW))


def question_of(**parts: str) -> Question | Drop:
    page = read(**parts)
    assert page.closed_at is not None
    return page.question(page.closed_at)


def test_dates_are_those_of_the_attribute_in_utc() -> None:
    page = read()
    assert page.opened_at == dt.datetime(2024, 2, 2, 18, tzinfo=dt.UTC)
    assert page.closed_at == dt.datetime(2024, 3, 1, 5, tzinfo=dt.UTC)
    for odd in ("", "soon", "2024-13-01"):
        assert read(closed=odd).closed_at is None
        assert question_of(started=odd) == Drop("7", "no_date", "https://gjo.invalid/7: no Started")


def test_void_is_what_the_header_says_and_no_description() -> None:
    none = ROW.format("Yes", "", "60%") + ROW.format("No", "", "40%")
    asked = question_of(rows=none, notes='<div class="alert">This question was voided.</div>')
    assert isinstance(asked, Question)
    assert (asked.status, asked.answer_index) == ("void", None)
    undecided = read(rows=none, void="void", description="It is voided if nobody looks.")
    assert not undecided.is_final
    right = question_of(notes='<div class="alert">Others were voided.</div>')
    assert isinstance(right, Question)
    assert (right.status, right.answer_index) == ("resolved", 0)
    assert [each.probability for each in right.crowd_forecast] == [0.97, 0.03]


def test_what_is_no_question_with_one_answer_is_dropped() -> None:
    for parts, reason in (
        ({"rows": YES}, "parse_error"),
        ({"rows": ""}, "parse_error"),
        ({"rows": YES + YES}, "unknown_format"),
    ):
        found = question_of(**parts)
        assert isinstance(found, Drop)
        assert found.reason == reason
    bare = question_of(rows=ROW.format("A", CHECK, "–") + ROW.format("B", "", ""), description="")
    assert isinstance(bare, Question)
    assert bare.crowd_forecast == ()
    assert bare.background is None


def test_a_description_is_whole() -> None:
    asked = question_of(description="<p>First.</p> <ul><li>One</li></ul><p>Last\n line.</p>")
    assert isinstance(asked, Question)
    assert asked.background == "First.\n\nOne\n\nLast line."
