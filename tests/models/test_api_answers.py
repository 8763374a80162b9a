"""Models behind a paid API: nothing answered is lost, nothing is paid twice, no key is shown.

The truth is the simulated server's own ledger of what it answered and billed.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import models.api_answers
import models.api_client
import models.api_requests
from core.answers import Answer, NoAnswer
from core.errors import (
    BudgetReached,
    MalformedInput,
    ModelError,
    ModelLoadError,
    NotMeasurable,
    StorageError,
    UsageError,
)
from core.questions import Question
from core.settings import Settings, load_settings
from core.storage import Store
from models.answer_budget import Budget
from models.answer_cache import AnswerCache, read_spending
from models.answer_protocols import get_answer_protocol
from models.api_answers import ApiAnswerer, load_api_answerer
from models.catalogue import ModelEntry, add_model, find_model, parse_catalogue
from models.load import identify, load_scorer
from models.question_prompt import LETTERS, prompts_of
from simulator.faults import Fault, FaultKind
from simulator.server import Response, Web, serve_sites
from simulator.sites.openai_api import (
    CONTEXT_TOKENS,
    KEY,
    MODEL,
    Mishap,
    Site,
    chosen_letter,
    refusal,
)
from tests.object_store import object_store

ROOT = Path(__file__).resolve().parents[2]
GENERATE = get_answer_protocol("generate")
PRICES = {
    "dollars_per_million_input_tokens": 2.5,
    "dollars_per_million_output_tokens": 10.0,
}


@dataclass
class Api:
    """A simulated API, and a data root."""

    site: Site
    web: Web
    store: Store
    settings: Settings

    def entry(self, **fields: Any) -> ModelEntry:
        given: dict[str, Any] = {
            "name": "sim",
            "kind": "api",
            "location": f"{self.web.urls['openai_api']}/v1",
            "served_name": MODEL,
            "api_key": "sim",
            "max_output_tokens": 16,
        }
        return ModelEntry(**(given | PRICES | fields))

    def answerer(self, budget: Budget | None = None, **fields: Any) -> ApiAnswerer:
        entry = self.entry(**fields)
        return load_api_answerer(entry, self.settings, budget or Budget(), self.store)

    def ask(self, questions: list[Question], budget: Budget | None = None) -> list[Answer]:
        return whole(self.answerer(budget).answer(questions, GENERATE))

    @property
    def num_kept(self) -> int:
        return len(self.store.list("answer-cache/*/answers/*/*.json"))

    @property
    def num_notes(self) -> int:
        return len(self.store.list("answer-cache/*/sent/*.json"))

    def fail(self, kind: FaultKind, times: int = 1, **fields: Any) -> Fault:
        fault = Fault(kind, "openai_api", times=times, **fields)
        self.web.faults.append(fault)
        return fault


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serve_sites([site := Site()]) as web:
        settings = settings_with(KEY, home=str(tmp_path / "home"))
        yield Api(site, web, Store(settings.home), settings)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.api_requests, "_PAUSE_S", 0.01)
    monkeypatch.setattr("core.claims.LOOK_S", 0.1)


def settings_with(key: str, **fields: Any) -> Settings:
    return Settings(api_keys={"sim": SecretStr(key)}, **fields)


def questions(count: int, first: int = 0, **changes: object) -> list[Question]:
    fields: dict[str, object] = {
        "source": "manifold",
        "options": ("Yes", "No", "Annulled"),
        "answer_index": 1,
        "opened_at": dt.datetime(2024, 3, 5, tzinfo=dt.UTC),
        "status": "resolved",
        "licence": "MIT",
    }
    return [
        Question(
            question_id=f"q{number}",
            title=f"Will bridge {number} of Rovinal open?",
            **{**fields, **changes},  # type: ignore[arg-type]
        )
        for number in range(first, first + count)
    ]


def whole(answers: Iterable[Answer | NoAnswer]) -> list[Answer]:
    """Return the answers, of which there is one to every question."""
    found = list(answers)
    assert not [each for each in found if isinstance(each, NoAnswer)]
    return [each for each in found if isinstance(each, Answer)]


def prompt_of(question: Question) -> str:
    return prompts_of(question, GENERATE)[0].text


def expect_complete(api: Api, asked: list[Question], answers: list[Answer]) -> None:
    """Each question has its answer, in order, which was billed once."""
    assert [answer.question_id for answer in answers] == [each.question_id for each in asked]
    letters = [LETTERS[answer.chosen_index or 0] for answer in answers]
    assert letters == [chosen_letter(prompt_of(each)) for each in asked]
    assert all(answer.reason is None and answer.response for answer in answers)
    assert api.site.billed == dict.fromkeys(map(prompt_of, asked), 1)


def test_each_question_is_answered_and_billed_once(api: Api) -> None:
    asked = questions(40)
    answerer = api.answerer()

    expect_complete(api, asked, whole(answerer.answer(asked, GENERATE)))
    again = api.ask(asked)

    expect_complete(api, asked, again)
    assert len(api.site.requests) == len(asked)
    assert all(answer.probabilities is None for answer in again)
    body = api.site.bodies[0]
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0, 16, 0)
    assert answerer.name == "sim"
    assert answerer.revision == api.answerer().revision


def test_as_many_questions_are_in_flight_as_the_settings_say(api: Api) -> None:
    api.site.pause_s = 0.05
    api.settings = api.settings.model_copy(update={"api_in_flight": 3})
    api.ask(questions(12))
    assert api.site.most_busy == 3


def test_what_was_spent_is_what_the_server_billed(api: Api) -> None:
    budget = Budget()
    api.site.mishaps = ["rate_limit", "server_error"]
    api.ask(questions(10), budget)
    api.ask(questions(15), budget)

    spending = read_spending(api.store, api.entry())
    assert spending.cost.tokens == budget.spent.tokens == api.site.billed_tokens
    inputs = sum(bill.input_tokens for bill in api.site.ledger)
    outputs = sum(bill.output_tokens for bill in api.site.ledger)
    assert (spending.cost.input_tokens, spending.cost.output_tokens) == (inputs, outputs)
    assert spending.cost.dollars == pytest.approx((inputs * 2.5 + outputs * 10) / 1e6)
    assert (spending.num_answers, spending.num_lost, spending.num_refused) == (15, 0, 2)
    assert (spending.num_requests, spending.num_estimated) == (17, 0)


def test_the_same_question_published_twice_is_asked_once(api: Api) -> None:
    one, *_ = questions(1)
    answers = api.ask([one, replace(one, question_id="again")])
    assert [answer.question_id for answer in answers] == ["q0", "again"]
    assert api.site.billed == {prompt_of(one): 1}


def test_another_request_is_another_answer(api: Api) -> None:
    api.ask(questions(1))
    assert list(api.answerer(max_output_tokens=17).answer(questions(1), GENERATE))
    assert len(api.site.ledger) == 2


# What passes


@pytest.mark.parametrize("mishap", ["rate_limit", "server_error"])
def test_what_passes_is_waited_out(api: Api, mishap: Mishap) -> None:
    api.site.mishaps = [mishap] * 6
    asked = questions(12)
    expect_complete(api, asked, api.ask(asked))
    assert len(api.site.requests) == 12 + 6


@pytest.mark.parametrize("status", [409, 425, 429, 500, 502, 503, 529])
def test_errors_of_the_server_are_asked_again(api: Api, status: int) -> None:
    api.fail("status", status=status, times=2)
    asked = questions(3)
    expect_complete(api, asked, api.ask(asked))
    assert api.num_notes == 0


@pytest.mark.parametrize("status", [408, 504, 522, 524])
def test_an_answer_that_a_gateway_did_not_wait_for_counts_as_paid(api: Api, status: int) -> None:
    """It is asked for under its old id, so that servers that know it do not bill it again."""
    api.fail("status", status=status, headers={"Retry-After": "0"})
    asked, budget = questions(1), Budget()
    expect_complete(api, asked, api.ask(asked, budget))
    spending = read_spending(api.store, api.entry())
    assert (spending.num_lost, spending.num_refused, spending.num_estimated) == (1, 0, 1)
    assert spending.cost.tokens == budget.spent.tokens > api.site.billed_tokens

    api.site.refusals["bridge 1 "] = refusal(status, None, "no word")
    [answer] = api.answerer().answer(questions(1, first=1), GENERATE)
    assert isinstance(answer, NoAnswer) and f"answered {status}" in answer.reason
    assert len(api.site.ids) == 1 + 3 and len(set(api.site.ids[1:])) == 1
    assert read_spending(api.store, api.entry()).num_lost == 1 + 3


def test_a_server_with_a_narrow_limit_is_waited_for_while_it_serves_others(api: Api) -> None:
    api.web.limits["openai_api"] = 0.02  # says Retry-After: 1
    asked = questions(10)
    expect_complete(api, asked, api.ask(asked))


def test_retry_after_is_respected_by_all(api: Api) -> None:
    api.fail("status", status=429, headers={"Retry-After": "1"})
    started = time.monotonic()
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    api.ask(questions(3))
    assert time.monotonic() - started > 1


def test_a_server_that_asks_for_hours_ends_the_run(api: Api) -> None:
    api.fail("status", status=429, headers={"Retry-After": "7200"})
    with pytest.raises(ModelError, match=r"pause of 7200 s.*run the same command again"):
        api.ask(questions(3))


@pytest.mark.parametrize("kind", ["disconnect", "empty"])
def test_a_lost_answer_is_asked_again_and_counted_as_paid(api: Api, kind: FaultKind) -> None:
    api.fail(kind, times=2)
    asked = questions(6)
    budget = Budget()
    answers = api.ask(asked, budget)

    assert all(answer.chosen_index is not None for answer in answers)
    spending = read_spending(api.store, api.entry())
    assert (spending.num_lost, spending.num_estimated) == (2, 2)
    assert spending.cost.tokens == budget.spent.tokens
    assert spending.cost.dollars == pytest.approx(budget.spent.dollars)
    assert budget.spent.tokens > api.site.billed_tokens  # at its most


def test_a_body_that_is_whole_is_read_though_more_was_promised(api: Api) -> None:
    api.fail("truncate", times=2)
    asked = questions(6)
    expect_complete(api, asked, api.ask(asked))


def test_cut_json_is_asked_again_and_counted_as_paid(api: Api) -> None:
    api.site.mishaps = ["cut_json", "cut_json"]
    asked, budget = questions(6), Budget()
    answers = api.ask(asked, budget)

    assert all(answer.chosen_index is not None for answer in answers)
    assert len(api.site.ledger) == 8  # the server made them, whatever arrived
    assert budget.spent.tokens >= api.site.billed_tokens
    assert read_spending(api.store, api.entry()).num_lost == 2


def test_a_gateway_that_knows_repeated_requests_does_not_bill_a_lost_answer_twice(api: Api) -> None:
    api.site.replays = True
    api.site.mishaps = ["cut_json", "server_error", "cut_json"]
    asked = questions(6)
    expect_complete(api, asked, api.ask(asked))


def test_an_answer_that_is_always_lost_is_given_up_and_the_others_are_kept(api: Api) -> None:
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    api.site.mishaps = ["cut_json"] * 3
    asked = questions(6)
    first, *others = api.answerer().answer(asked, GENERATE)
    assert isinstance(first, NoAnswer) and first.question_id == "q0"
    assert "3 answers were lost" in first.reason
    assert all(isinstance(each, Answer) and each.chosen_index is not None for each in others)

    assert len(api.ask(asked)) == 6
    assert api.site.billed == {prompt_of(each): 4 if n == 0 else 1 for n, each in enumerate(asked)}


def test_a_question_that_is_never_served_leaves_the_others_theirs(api: Api) -> None:
    api.site.refusals["bridge 3 "] = refusal(500, None, "The server had an error.")
    for _ in range(2):
        answers = list(api.answerer().answer(questions(6), GENERATE))
        assert [isinstance(each, NoAnswer) for each in answers] == [n == 3 for n in range(6)]
    assert len(api.site.ledger) == 5 and len(api.site.requests) == 5 + 2 * 8


def test_a_slow_answer_is_left_after_a_while(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.api_client, "_ANSWER_TIMEOUT_S", 0.6)
    api.fail("drip")
    api.fail("stall")
    asked = questions(2)
    answers = api.ask(asked)
    assert all(answer.chosen_index is not None for answer in answers)
    assert read_spending(api.store, api.entry()).num_lost >= 2
    api.web.faults.clear()


def test_a_huge_answer_is_not_read(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.api_client, "_MAX_BYTES", 2**16)
    api.fail("gzip_bomb")
    assert len(api.ask(questions(2))) == 2
    assert read_spending(api.store, api.entry()).num_lost == 1


def test_a_server_that_is_away_ends_the_run_soon(api: Api) -> None:
    api.fail("status", status=503, times=10_000)
    with pytest.raises(ModelError, match=r"answered 503.*0 of 400 questions"):
        api.ask(questions(400))
    assert len(api.web.requests) <= 8 * (5 + 8)
    gone = api.entry(location="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match="Connection refused"):
        list(load_api_answerer(gone, api.settings, Budget(), api.store).answer(
            questions(9), GENERATE))  # fmt: skip
    with pytest.raises(ModelError, match="2 questions have no answer"):
        api.ask(questions(2))  # it has never answered


def test_an_error_under_status_200_is_asked_again(api: Api) -> None:
    api.site.quirks = {"error_as_200": 2, "extra_fields": 3}
    asked = questions(4)
    expect_complete(api, asked, api.ask(asked))


@pytest.mark.parametrize("status", [201, 206])
def test_a_whole_answer_is_taken_under_any_status_of_success(api: Api, status: int) -> None:
    api.fail("status", status=status, body=_completion("B"))
    [answer] = api.ask(questions(1))
    assert (answer.chosen_index, len(api.web.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("field", "value", "num_estimated"),
    [
        ("x", "[" * 300 + "]" * 300, 0),
        ("usage", f'{{"prompt_tokens": {10**400}, "completion_tokens": 1}}', 1),
        ("usage", f'{{"prompt_tokens": 5, "completion_tokens": {10**12}}}', 1),
        (
            "usage",
            f'{{"prompt_tokens": 5, "completion_tokens": 1, "x": {"[" * 300 + "]" * 300}}}',
            0,
        ),
        ("x", "NaN", 0),
        ("x", '"\\ud800"', 0),
    ],
)
def test_odd_fields_of_an_answer_do_no_harm(
    api: Api, field: str, value: str, num_estimated: int
) -> None:
    usage = "" if field == "usage" else ', "usage": {"prompt_tokens": 5, "completion_tokens": 1}'
    body = _completion("B")[:-1].decode() + f', "{field}": {value}{usage}}}'
    api.fail("status", status=200, body=body.encode())
    for _ in range(2):  # the second time from the cache
        [answer] = api.ask(questions(1))
        assert answer.chosen_index == 1
    assert len(api.web.requests) == 1
    [path] = api.store.list("answer-cache/*/answers/*/*.json")
    kept = json.loads(api.store.read_bytes(path))["answer"]
    assert set(kept) <= {"id", "model", "choices", "usage"}
    spending = read_spending(api.store, api.entry())
    assert (spending.num_answers, spending.num_estimated) == (1, num_estimated)
    assert spending.cost.tokens < 2_000


def test_half_an_emoji_in_a_question_is_asked_and_paid_once(api: Api) -> None:
    asked = questions(1, background="a storm \ud83d of things")
    assert api.ask(asked) == api.ask(asked)
    assert "a storm \ufffd of things" in api.site.requests[0]
    assert len(api.site.ledger) == 1


def test_an_answer_that_cannot_be_handled_is_one_question_s_failure(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.ask(questions(1, first=1))
    monkeypatch.setattr("models.api_requests.usage_of", lambda answer: 1 // 0)
    [answer] = api.answerer().answer(questions(1), GENERATE)
    assert isinstance(answer, NoAnswer)
    assert answer.reason == "ZeroDivisionError: integer division or modulo by zero"
    assert read_spending(api.store, api.entry()).num_lost == 1  # it may have been paid


def test_an_error_under_status_200_that_says_what_it_is_costs_nothing(api: Api) -> None:
    busy = replace(refusal(429, "rate_limit_exceeded", "Slow down."), status=200)
    api.fail("status", status=200, body=busy.body, times=4)
    asked = questions(2)
    expect_complete(api, asked, api.ask(asked))
    spending = read_spending(api.store, api.entry())
    assert (spending.num_lost, spending.num_refused) == (0, 4)

    poor = refusal(429, "insufficient_quota", "You exceeded your quota.")
    api.fail("status", status=200, body=poor.body, times=9)
    with pytest.raises(ModelLoadError, match="no money or quota left"):
        api.ask(questions(1, first=5))
    assert api.num_notes == 0


# What does not pass


def test_a_revoked_key_ends_the_run_at_once_and_loses_nothing(api: Api) -> None:
    api.site.revoke_after = 10
    with pytest.raises(ModelLoadError, match=r"refuses the key.*TIDEMARK_API_KEYS__SIM.*10 of 40"):
        api.ask(questions(40))
    assert api.num_kept == len(api.site.ledger) == 10
    assert len(api.web.requests) <= 10 + api.settings.api_in_flight

    api.site.revoke_after, api.site.keys_accepted = None, {KEY}
    asked = questions(40)
    expect_complete(api, asked, api.ask(asked))
    assert api.num_notes == 0


@pytest.mark.parametrize(
    ("fault", "says", "asked"),
    [
        ({"status": 401}, "refuses the key", 1),
        ({"status": 402, "body": b'{"error": {"code": 402, "message": "no"}}'}, "no money", 1),
        ({"status": 404}, "expected location and served_name", 1),
        ({"status": 302, "headers": {"Location": "http://127.0.0.1:9/"}}, "a redirect", 1),
        # These may be about one question alone.
        ({"status": 403}, "refuses the key", 5),
        ({"status": 400, "body": b'{"error": {"message": "What?"}}'}, "answered 400: 'What", 5),
        ({"status": 422, "body": b'{"error": {"message": "What?"}}'}, "answered 422: 'What", 5),
    ],
)
def test_what_waiting_does_not_help_ends_the_run(
    api: Api, fault: dict[str, Any], says: str, asked: int
) -> None:
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    api.fail("status", times=9, **fault)
    with pytest.raises(ModelError, match=says):
        api.ask(questions(9))
    assert len(api.web.requests) == asked


def test_a_quota_that_is_used_up_is_not_asked_again(api: Api) -> None:
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    api.site.mishaps = ["no_quota"]
    with pytest.raises(ModelLoadError, match=r"no money or quota.*insufficient_quota"):
        api.ask(questions(5))
    assert len(api.site.requests) == 1


def test_an_unknown_model_is_named(api: Api) -> None:
    with pytest.raises(ModelLoadError, match="`gone` does not exist"):
        list(api.answerer(served_name="gone").answer(questions(5), GENERATE))


def test_parameters_that_a_model_does_not_take_are_left_out(api: Api) -> None:
    api.site.unsupported = ("max_tokens", "temperature")
    asked = questions(5)
    expect_complete(api, asked, api.ask(asked))
    body = api.site.bodies[-1]
    assert body["max_completion_tokens"] == 16
    assert not {"max_tokens", "temperature"} & set(body)
    api.site.unsupported = ()  # what was paid is found though the request would be another now
    expect_complete(api, asked, api.ask(asked))


# Answers without a choice


@pytest.mark.parametrize(
    ("mishap", "reason", "response"),
    [
        ("refusal", "refusal", "I'm sorry, I can't help with that."),
        ("filtered", "content_filter", ""),
        ("cut", "length", "Let me think about A"),
        ("silent", "empty", ""),
    ],
)
def test_an_answer_without_a_choice_is_kept_with_a_reason(
    api: Api, mishap: Mishap, reason: str, response: str
) -> None:
    api.site.mishaps = [mishap]
    for _ in range(2):  # the second time from the cache
        [answer] = api.ask(questions(1))
        assert (answer.chosen_index, answer.reason, answer.response) == (None, reason, response)
    assert len(api.site.ledger) == 1


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ('[{"finish_reason": "content_filter"}]', "content_filter"),
        ('[{"finish_reason": "stop", "message": null}]', "empty"),
        ("[]", "empty"),
    ],
)
def test_an_answer_without_a_message_is_paid_once(api: Api, choices: str, reason: str) -> None:
    usage = '"usage": {"prompt_tokens": 7, "completion_tokens": 0}'
    api.fail("status", status=200, body=f'{{"choices": {choices}, {usage}}}'.encode())
    for _ in range(2):
        [answer] = api.ask(questions(1))
        assert (answer.chosen_index, answer.reason) == (None, reason)
    assert len(api.web.requests) == 1
    assert read_spending(api.store, api.entry()).cost.tokens == 7


def test_reasoning_among_the_parts_of_an_answer_is_not_the_answer(api: Api) -> None:
    parts = [
        {"type": "reasoning", "text": "The answer is A."},
        {"type": "thinking", "text": "The answer is C."},
        {"type": "text", "text": "Answer: "},
        {"type": "output_text", "text": "B"},
        {"text": "."},
        {"type": "tool", "text": "A"},
        "A",
    ]
    body = json.dumps({"choices": [{"message": {"content": parts}}]})
    api.fail("status", status=200, body=body.encode())
    [answer] = api.ask(questions(1))
    assert (answer.chosen_index, answer.response) == (1, "Answer: B.")


def test_a_question_that_is_too_long_has_a_reason_and_its_neighbours_answers(api: Api) -> None:
    [long] = questions(1, background="word " * CONTEXT_TOKENS)
    too_many = replace(questions(1)[0], options=tuple(map(str, range(27))))
    first, second, third = api.ask([long, too_many, *questions(1, first=1)])
    assert (first.chosen_index, first.reason) == (None, "too_long")
    assert (second.chosen_index, second.reason) == (None, "too_many_options")
    assert third.chosen_index is not None
    assert len(api.site.ledger) == 1


@pytest.mark.parametrize(
    "answered",
    [
        refusal(400, "invalid_prompt", "Invalid prompt: it was flagged."),
        refusal(400, "content_policy_violation_input", "No."),
        refusal(400, None, "Your prompt was flagged as potentially violating our policy."),
        refusal(403, 403, "flagged", metadata={"reasons": ["x"]}),
        refusal(403, 403, "flagged by moderation"),
        refusal(451, None, "Unavailable For Legal Reasons"),
    ],
)
def test_a_question_that_is_flagged_has_a_reason(api: Api, answered: Response) -> None:
    api.site.refusals["bridge 0 "] = answered
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    first, second = api.ask(questions(2))
    assert (first.reason, second.reason) == ("content_filter", None)


# The limit of a run


def test_the_limit_of_tokens_is_kept_and_what_was_answered_too(api: Api) -> None:
    api.site.pause_s = 0.01
    asked, limit = questions(60), 2_000
    with pytest.raises(BudgetReached, match=r"left: \d+ of 2000 tokens.*questions are answered"):
        api.ask(asked, Budget(max_tokens=limit))

    assert limit - 600 < api.site.billed_tokens <= limit
    assert api.num_kept == len(api.site.ledger) < 60
    while api.num_kept < 60:  # each run goes on where the last one ended
        before = api.num_kept
        try:
            api.ask(asked, Budget(max_tokens=limit))
        except BudgetReached:
            assert api.num_kept > before
    expect_complete(api, asked, api.ask(asked, Budget(max_tokens=0)))


def test_a_server_that_bills_more_than_was_asked_for_passes_no_limit(api: Api) -> None:
    api.site.num_thought = 5_000
    api.site.pause_s = 0.05
    for num_done in (2, 4):  # the second run knows it from the first one's answers
        before = api.site.billed_tokens
        with pytest.raises(BudgetReached, match=r"left: \d+ of 11000 tokens"):
            api.ask(questions(20), Budget(max_tokens=11_000))
        assert api.site.billed_tokens - before <= 11_000
        assert api.num_kept == num_done
    budget = Budget(max_tokens=100)
    with pytest.raises(BudgetReached, match=r"left: 100 of 100 tokens"):
        api.ask(questions(20), budget)
    assert api.num_kept == 4 and budget.spent.tokens == 0


def test_what_is_left_of_a_limit_that_was_passed_is_nothing(api: Api) -> None:
    api.site.num_thought = 5_000
    with pytest.raises(BudgetReached, match=r"left: 0 of 600 tokens"):
        api.ask(questions(20), Budget(max_tokens=600))
    assert len(api.site.ledger) == 1  # nobody could know


def test_the_limit_of_money_is_kept(api: Api) -> None:
    api.site.pause_s = 0.01
    asked, limit = questions(60), 0.004
    with pytest.raises(BudgetReached, match=r"dollars.*left: 0.\d+ of 0.004 dollars"):
        api.ask(asked, Budget(max_dollars=limit))
    billed = sum(bill.input_tokens * 2.5 + bill.output_tokens * 10 for bill in api.site.ledger)
    assert 0 < billed / 1e6 <= limit
    assert api.num_kept == len(api.site.ledger)
    spent = read_spending(api.store, api.entry()).cost.dollars
    assert spent == pytest.approx(billed / 1e6)


def test_a_limit_of_money_without_prices_is_refused_before_anything_is_sent(api: Api) -> None:
    no_prices = dict.fromkeys(PRICES)
    with pytest.raises(UsageError, match="no prices"):
        api.answerer(Budget(max_dollars=1.0), **no_prices)
    assert list(api.answerer(Budget(max_tokens=10**6), **no_prices).answer(questions(1), GENERATE))
    assert read_spending(api.store, api.entry()).cost.dollars is None


def test_what_is_lost_counts_against_the_limit(api: Api) -> None:
    api.site.mishaps = ["cut_json"] * 100
    with pytest.raises(ModelError):
        api.ask(questions(60), Budget(max_tokens=2_000))
    assert api.site.billed_tokens <= 2_000


def test_a_server_that_does_not_say_what_it_took_is_counted_at_its_most(api: Api) -> None:
    api.site.quirks = {"missing_fields": 3}
    budget = Budget()
    api.ask(questions(3), budget)
    spending = read_spending(api.store, api.entry())
    assert (spending.num_answers, spending.num_estimated) == (3, 3)
    assert budget.spent.tokens == spending.cost.tokens > api.site.billed_tokens


def test_the_settings_give_a_run_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_MAX_ANSWER_TOKENS", "5000")
    monkeypatch.setenv("TIDEMARK_MAX_ANSWER_DOLLARS", "0.25")
    budget = Budget.of(load_settings())
    assert (budget.max_tokens, budget.max_dollars) == (5000, 0.25)


# Kills, several at once, disks

SCRIPT = """
import sys
from core.settings import load_settings
from core.storage import Store
from models.answer_budget import Budget
from models.answer_protocols import get_answer_protocol
from models.api_answers import load_api_answerer
from models.catalogue import find_model
from tests.models.test_api_answers import questions

settings = load_settings()
entry = find_model("sim", settings)
answerer = load_api_answerer(entry, settings, Budget(), Store(settings.home))
answers = list(answerer.answer(questions(int(sys.argv[1])), get_answer_protocol("generate")))
print(len(answers), sum(answer.chosen_index is not None for answer in answers))
"""


def start(api: Api, count: int) -> subprocess.Popen[str]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "TIDEMARK_HOME": api.settings.home,
        "TIDEMARK_API_KEYS__SIM": KEY,
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    command = [sys.executable, "-c", SCRIPT, str(count)]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def test_a_killed_run_is_gone_on_with_and_what_was_in_flight_is_counted(api: Api) -> None:
    add_model(api.entry(), api.settings)
    api.site.pause_s = 0.05
    asked = questions(60)
    with start(api, 60) as process:
        while len(api.site.ledger) < 20 and process.poll() is None:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
    time.sleep(0.2)  # the server goes on with what it was asked
    cache = AnswerCache(api.store, api.entry())
    body = api.answerer()._body
    kept = {prompt_of(q) for q in asked if cache.has(cache.key_of(body(prompt_of(q))))}
    assert 0 < len(kept) < 60
    billed = set(api.site.billed)
    in_flight = billed - kept
    assert kept <= billed and len(in_flight) <= api.settings.api_in_flight

    answers = api.ask(asked)

    assert all(answer.chosen_index is not None for answer in answers)
    twice = {prompt for prompt, times in api.site.billed.items() if times > 1}
    assert twice <= in_flight  # nobody had received these
    assert read_spending(api.store, api.entry()).cost.tokens >= api.site.billed_tokens


def test_a_kill_between_an_answer_and_its_note_counts_once(api: Api) -> None:
    api.ask(questions(1))
    cache = AnswerCache(api.store, api.entry())
    received = cache.find(cache.key_of(api.answerer()._body(prompt_of(questions(1)[0]))))
    assert received is not None
    cache.note_lost(received.note, "its request", received.paid, "as if it were still there")
    assert api.num_notes == 1
    assert cache.spending().num_lost == 0
    assert cache.spending().cost.tokens == api.site.billed_tokens


def test_two_runs_at_once_pay_once(api: Api) -> None:
    add_model(api.entry(), api.settings)
    api.site.pause_s = 0.03
    with start(api, 50) as first, start(api, 50) as second:
        out = [process.communicate(timeout=60) for process in (first, second)]
    assert [line for line, _ in out] == ["50 50\n"] * 2, out
    asked = questions(50)
    expect_complete(api, asked, api.ask(asked))


def test_two_machines_on_an_object_store_pay_once(api: Api, tmp_path: Path) -> None:
    with object_store() as port:
        url = f"http://127.0.0.1:{port}"
        keys = {"key": "k", "secret": "s3cret", "endpoint_url": url}
        stores = [Store("s3://bucket/x", tmp_path / name, **keys) for name in ("one", "two")]
        stores[0]._fs.mkdir("bucket")
        asked, done = questions(20), []

        def ask(store: Store) -> None:
            done.append(replace(api, store=store).ask(asked))

        threads = [threading.Thread(target=ask, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 2
        for answers in done:
            expect_complete(api, asked, answers)
        spent = read_spending(stores[1], api.entry())
        assert spent.cost.tokens == api.site.billed_tokens
        assert spent.num_lost == 0


def test_threads_of_a_process_pay_once(api: Api) -> None:
    asked = questions(30)
    api.site.pause_s = 0.01
    done: list[list[Answer]] = []
    threads = [threading.Thread(target=lambda: done.append(api.ask(asked))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 3
    for answers in done:
        expect_complete(api, asked, answers)


def test_nothing_is_asked_that_could_not_be_kept(api: Api) -> None:
    answerer = api.answerer()
    (Path(api.settings.home) / "answer-cache").parent.mkdir(parents=True)
    (Path(api.settings.home) / "answer-cache").write_text("a file where a folder should be")
    with pytest.raises(StorageError):
        list(answerer.answer(questions(3), GENERATE))
    assert api.site.ledger == []


def test_a_damaged_answer_is_named_rather_than_paid_again(api: Api) -> None:
    api.ask(questions(1))
    [path] = api.store.list("answer-cache/*/answers/*/*.json")
    api.store.write_bytes(path, b'{"asked"')
    with pytest.raises(StorageError, match=path.rsplit("/", 1)[-1]):
        api.ask(questions(1))
    assert len(api.site.ledger) == 1


# The key


def test_the_key_is_seen_nowhere(
    api: Api, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    api.fail("status", status=500, body=f"{'x' * 280} bad key {KEY} of yours".encode())
    api.fail("status", status=429, body=f'{{"error": {{"message": "Bearer {KEY}"}}}}'.encode())
    api.fail("status", status=200, body=_completion(f"B, and your key is {KEY}"))
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    seen += map(repr, api.ask(questions(3)))
    for body in [
        f'{{"error": {{"message": "{KEY}"}}}}', f"{'y' * 290}{KEY}", f'"{KEY}"',
        '{"error": {"message": "' + "".join(f"\\u{ord(c):04x}" for c in KEY) + '"}}',
    ]:  # fmt: skip
        for status in (400, 401, 402, 403, 404, 422, 302):
            api.fail("status", status=status, body=body.encode(), headers={"Location": f"/{KEY}"})
            try:  # some are about one question alone
                seen += map(repr, api.answerer().answer(questions(1, first=100), GENERATE))
            except ModelError as error:
                seen += traceback.format_exception(error)
            api.web.faults.clear()
    api.site.mishaps = ["repeat_key"]
    with pytest.raises(ModelLoadError) as caught:
        api.ask(questions(1, first=100))
    seen += [*traceback.format_exception(caught.value), repr(api.settings), repr(vars(caught))]

    files = [path for path in Path(api.settings.home).rglob("*") if path.is_file()]
    assert len(files) >= 3
    seen += [path.read_text(encoding="utf-8", errors="replace") for path in files]
    captured = capfd.readouterr()
    everything = "\n".join([*seen, caplog.text, captured.out, captured.err])
    assert "[key]" in everything
    assert KEY not in everything
    assert KEY[-8:] not in everything


def _completion(text: str) -> bytes:
    return f'{{"choices": [{{"message": {{"content": "{text}"}}}}]}}'.encode()


@pytest.mark.parametrize(
    "key", ["short", "with a space in it", "line\nbreak-0123456", "schlüssel-ä"]
)
def test_a_key_that_cannot_be_one_is_refused_unseen(api: Api, key: str) -> None:
    settings = settings_with(key)
    with pytest.raises(UsageError, match="TIDEMARK_API_KEYS__SIM") as caught:
        load_api_answerer(api.entry(), settings, Budget(), api.store)
    assert key not in "".join(traceback.format_exception(caught.value))


def test_a_missing_key_is_named(api: Api) -> None:
    with pytest.raises(UsageError, match="TIDEMARK_API_KEYS__OTHER"):
        api.answerer(api_key="other")


def test_the_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_API_KEYS__OPEN_ROUTER", KEY)
    settings = load_settings()
    assert settings.api_keys["open_router"].get_secret_value() == KEY
    assert KEY not in repr(settings) + settings.model_dump_json()


# The catalogue


def test_an_entry_is_written_and_read_back(api: Api) -> None:
    add_model(api.entry(cutoff="2023-10", cutoff_provenance="stated", cutoff_precision="month"),
              api.settings)  # fmt: skip
    assert find_model("sim", api.settings).dollars_per_million_output_tokens == 10.0


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("served_name: null", "served_name"),
        ("location: org/model", "address"),
        ("location: https://user:pass@host/v1", "address"),
        ("location: https://host/v1?key=abc", "address"),
        ("dollars_per_million_input_tokens: 1", "both prices"),
        ("dollars_per_million_input_tokens: -1", "greater than or equal"),
        ("api_key: sk-abc", "pattern"),
        ("tokenizer: org/model", "kind remote"),
        ("kind: remote", "tokenizer"),
        ("max_output_tokens: 0", "greater than 0"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(line: str, says: str) -> None:
    given = ["name: x", "kind: api", "location: https://host/v1", "served_name: m"]
    lines = [each for each in given if each.split(":")[0] != line.split(":")[0]]
    data = "- " + "\n  ".join([*lines, line])
    with pytest.raises(MalformedInput, match=says):
        parse_catalogue(data.encode(), "mine.yaml")


@pytest.mark.parametrize("load", [load_scorer, identify])
def test_such_a_model_is_not_scored(api: Api, load: Any) -> None:
    with pytest.raises(NotMeasurable, match="sim is behind an API.*no likelihoods of text"):
        load(api.entry(), api.settings)


@pytest.mark.parametrize("protocol", ["letter", "text-byte", "letter-rotated-chat"])
def test_such_a_model_has_no_likelihoods_of_options(api: Api, protocol: str) -> None:
    with pytest.raises(NotMeasurable, match="generate"):
        list(api.answerer().answer(questions(1), get_answer_protocol(protocol)))
    with pytest.raises(NotMeasurable, match="generate"):
        api.answerer().answering_id(get_answer_protocol(protocol))


def test_answers_have_an_identity(api: Api) -> None:
    first = api.answerer()
    assert len(first.answering_id(GENERATE)) == 8
    assert first.answering_id(GENERATE) == api.answerer().answering_id(GENERATE)
    assert first.answering_id(GENERATE) != api.answerer(max_output_tokens=9).answering_id(GENERATE)
    assert first.revision != api.answerer(served_name="other").revision
