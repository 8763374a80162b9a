import json
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import models.api
import models.servers.chat
import models.servers.rounds
from core.cells.answers import Answer, NoAnswer
from core.corpus.questions import Question
from core.errors import (
    BudgetReached,
    MalformedInput,
    ModelError,
    ModelLoadError,
    NotMeasurable,
    StorageError,
    UsageError,
)
from core.settings import load_settings
from core.storage.store import Store
from models.api import load_api_answerer
from models.backends import identify, load_scorer
from models.catalogue import add_model, parse_catalogue
from models.options.protocols import LETTERS, get_answer_protocol, prompts_of
from models.servers.budget import AnswerCache, Budget
from simulator.server import Response
from simulator.sites.openai_api import CONTEXT_TOKENS, KEY, Mishap, chosen_letter, refusal
from tests.models.conftest import question
from tests.models.servers.conftest import PRICES, Api, settings_with
from tests.object_store import object_store
from tests.tiers import needs_extra

ROOT = Path(__file__).resolve().parents[3]
GENERATE = get_answer_protocol("generate")


def ask(api: Api, asked: list[Question], budget: Budget | None = None) -> list[Answer]:
    return whole(api.answerer(budget).answer(asked, GENERATE))


def questions(count: int, first: int = 0, **changes: object) -> list[Question]:
    fields = {"source": "manifold", "options": ("Yes", "No", "Annulled"), **changes}
    return [
        question(question_id=f"q{number}", title=f"Will bridge {number} of Rovinal open?", **fields)
        for number in range(first, first + count)
    ]


def whole(answers: Iterable[Answer | NoAnswer]) -> list[Answer]:
    found = list(answers)
    assert not [each for each in found if isinstance(each, NoAnswer)]
    return [each for each in found if isinstance(each, Answer)]


def prompt_of(question: Question) -> str:
    return prompts_of(question, GENERATE)[0].text


def index_of_b() -> int:
    """Return the index of the option that the first question shows as B."""
    return prompts_of(questions(1)[0], GENERATE)[0].order[1]


def expect_complete(api: Api, asked: list[Question], answers: list[Answer]) -> None:
    assert [answer.question_id for answer in answers] == [each.question_id for each in asked]
    orders = [prompts_of(each, GENERATE)[0].order for each in asked]
    pairs = zip(answers, orders, strict=True)
    letters = [LETTERS[order.index(answer.chosen_index or 0)] for answer, order in pairs]
    assert letters == [chosen_letter(prompt_of(each)) for each in asked]
    assert all(answer.reason is None and answer.response for answer in answers)
    assert api.site.billed == dict.fromkeys(map(prompt_of, asked), 1)


def test_each_question_is_answered_and_billed_once(api: Api) -> None:
    asked = questions(40)
    answerer = api.answerer()
    expect_complete(api, asked, whole(answerer.answer(asked, GENERATE)))
    again = ask(api, asked)
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
    ask(api, questions(12))
    assert api.site.most_busy == 3


def test_what_was_spent_is_what_the_server_billed(api: Api) -> None:
    budget = Budget()
    api.site.mishaps = ["rate_limit", "server_error"]
    ask(api, questions(10), budget)
    ask(api, questions(15), budget)
    spending = api.spending()
    assert spending.cost.tokens == budget.spent.tokens == api.site.billed_tokens
    inputs = sum(bill.input_tokens for bill in api.site.ledger)
    outputs = sum(bill.output_tokens for bill in api.site.ledger)
    assert (spending.cost.input_tokens, spending.cost.output_tokens) == (inputs, outputs)
    assert spending.cost.dollars == pytest.approx((inputs * 2.5 + outputs * 10) / 1e6)
    assert (spending.num_answers, spending.num_lost, spending.num_refused) == (15, 0, 2)
    assert spending.num_estimated == 0


def test_the_same_question_published_twice_is_asked_once(api: Api) -> None:
    one, *_ = questions(1)
    answers = ask(api, [one, replace(one, question_id="again")])
    assert [answer.question_id for answer in answers] == ["q0", "again"]
    assert api.site.billed == {prompt_of(one): 1}


def test_another_request_is_another_answer(api: Api) -> None:
    ask(api, questions(1))
    assert list(api.answerer(max_output_tokens=17).answer(questions(1), GENERATE))
    assert len(api.site.ledger) == 2


@pytest.mark.parametrize("status", [409, 425, 429, 500, 502, 503, 529])
def test_errors_of_the_server_are_asked_again(api: Api, status: int) -> None:
    api.fail("status", status=status, times=2)
    asked = questions(3)
    expect_complete(api, asked, ask(api, asked))
    assert api.num_notes == 0


@pytest.mark.parametrize("status", [408, 504, 522, 524])
def test_an_answer_that_a_gateway_did_not_wait_for_counts_as_paid(api: Api, status: int) -> None:
    """The retry has the same id, so that a server that knows the id bills once."""
    api.fail("status", status=status, headers={"Retry-After": "0"})
    asked, budget = questions(1), Budget()
    expect_complete(api, asked, ask(api, asked, budget))
    spending = api.spending()
    assert (spending.num_lost, spending.num_refused, spending.num_estimated) == (1, 0, 1)
    assert spending.cost.tokens == budget.spent.tokens > api.site.billed_tokens
    api.site.refusals["bridge 1 "] = refusal(status, None, "no word")
    [answer] = api.answerer().answer(questions(1, first=1), GENERATE)
    assert isinstance(answer, NoAnswer) and f"answered {status}" in answer.reason
    assert len(api.site.ids) == 1 + 3 and len(set(api.site.ids[1:])) == 1
    assert api.spending().num_lost == 1 + 3


def test_retry_after_is_respected_by_all(api: Api) -> None:
    api.fail("status", status=429, headers={"Retry-After": "1"})
    started = time.monotonic()
    api.one_at_a_time()
    ask(api, questions(3))
    assert time.monotonic() - started > 1


def test_a_server_that_asks_for_hours_ends_the_run(api: Api) -> None:
    api.fail("status", status=429, headers={"Retry-After": "7200"})
    with pytest.raises(ModelError, match=r"pause of 7200 s.*run the same command again"):
        ask(api, questions(3))


@pytest.mark.parametrize("kind", ["disconnect", "empty", "cut_json"])
def test_a_lost_answer_is_asked_again_and_counted_as_paid(api: Api, kind: Any) -> None:
    if kind == "cut_json":
        api.site.mishaps = [kind] * 2
    else:
        api.fail(kind, times=2)
    asked = questions(6)
    budget = Budget()
    answers = ask(api, asked, budget)
    assert all(answer.chosen_index is not None for answer in answers)
    spending = api.spending()
    assert (spending.num_lost, spending.num_estimated) == (2, 2)
    assert spending.cost.tokens == budget.spent.tokens
    assert spending.cost.dollars == pytest.approx(budget.spent.dollars)
    assert len(api.site.ledger) == (6 if kind == "disconnect" else 8)  # made, received or not
    assert budget.spent.tokens >= api.site.billed_tokens  # at its most


def test_a_body_that_is_whole_is_read_though_more_was_promised(api: Api) -> None:
    api.fail("truncate", times=2)
    asked = questions(6)
    expect_complete(api, asked, ask(api, asked))


def test_a_gateway_that_knows_repeated_requests_does_not_bill_a_lost_answer_twice(api: Api) -> None:
    api.site.replays = True
    api.site.mishaps = ["server_error", "cut_json", "cut_json"]
    asked = questions(6)
    expect_complete(api, asked, ask(api, asked))


def test_an_answer_that_is_always_lost_is_given_up_and_the_others_are_kept(api: Api) -> None:
    api.one_at_a_time()
    api.site.mishaps = ["cut_json"] * 3
    asked = questions(6)
    first, *others = api.answerer().answer(asked, GENERATE)
    assert isinstance(first, NoAnswer) and first.question_id == "q0"
    assert "3 answers were lost" in first.reason
    assert all(isinstance(each, Answer) and each.chosen_index is not None for each in others)
    assert len(ask(api, asked)) == 6
    assert api.site.billed == {prompt_of(each): 4 if n == 0 else 1 for n, each in enumerate(asked)}


@pytest.mark.long
def test_a_question_that_is_never_served_leaves_the_others_theirs(api: Api) -> None:
    api.site.refusals["bridge 3 "] = refusal(500, None, "The server had an error.")
    for _ in range(2):
        answers = list(api.answerer().answer(questions(6), GENERATE))
        assert [isinstance(each, NoAnswer) for each in answers] == [n == 3 for n in range(6)]
    assert len(api.site.ledger) == 5 and len(api.site.requests) == 5 + 2 * 8


def test_a_slow_answer_is_left_after_a_while(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.servers.chat, "_ANSWER_TIMEOUT_S", 0.6)
    api.fail("drip")
    api.fail("stall")
    asked = questions(2)
    answers = ask(api, asked)
    assert all(answer.chosen_index is not None for answer in answers)
    assert api.spending().num_lost >= 2
    api.web.faults.clear()


def test_a_huge_answer_is_not_read(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.servers.chat, "_MAX_BYTES", 2**16)
    api.fail("gzip_bomb")
    assert len(ask(api, questions(2))) == 2
    assert api.spending().num_lost == 1


@pytest.mark.long
def test_a_server_that_is_away_ends_the_run_soon(api: Api) -> None:
    api.fail("status", status=503, times=10_000)
    with pytest.raises(ModelError, match=r"answered 503.*0 of 400 questions"):
        ask(api, questions(400))
    assert len(api.web.requests) <= 8 * (5 + 8)
    gone = api.entry(location="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match="Connection refused"):
        list(load_api_answerer(gone, api.settings, Budget()).answer(
            questions(9), GENERATE))  # fmt: skip
    with pytest.raises(ModelError, match="2 questions have no answer"):
        ask(api, questions(2))  # it has never answered


def test_an_error_under_status_200_is_asked_again(api: Api) -> None:
    api.site.quirks = {"error_as_200": 2, "extra_fields": 3}
    asked = questions(4)
    expect_complete(api, asked, ask(api, asked))


@pytest.mark.parametrize("status", [201, 206])
def test_a_whole_answer_is_taken_under_any_status_of_success(api: Api, status: int) -> None:
    api.fail("status", status=status, body=_completion("B"))
    [answer] = ask(api, questions(1))
    assert (answer.chosen_index, len(api.web.requests)) == (index_of_b(), 1)
    assert answer.place_probabilities is not None
    assert answer.place_probabilities[:2] == (0.0, 1.0)  # B is the second in the shown list


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
        [answer] = ask(api, questions(1))
        assert answer.chosen_index == index_of_b()
    assert len(api.web.requests) == 1
    [path] = api.store.list("answer-cache/*/answers/*/*.json")
    kept = json.loads(api.store.read_bytes(path))["answer"]
    assert set(kept) <= {"id", "model", "choices", "usage"}
    spending = api.spending()
    assert (spending.num_answers, spending.num_estimated) == (1, num_estimated)
    assert spending.cost.tokens < 2_000


def test_half_an_emoji_in_a_question_is_asked_and_paid_once(api: Api) -> None:
    asked = questions(1, background="a storm \ud83d of things")
    assert ask(api, asked) == ask(api, asked)
    assert "a storm \ufffd of things" in api.site.requests[0]
    assert len(api.site.ledger) == 1


def test_an_answer_that_cannot_be_handled_is_one_question_s_failure(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(api, questions(1, first=1))
    monkeypatch.setattr("models.servers.rounds.usage_of", lambda answer: 1 // 0)
    [answer] = api.answerer().answer(questions(1), GENERATE)
    assert isinstance(answer, NoAnswer)
    assert answer.reason == "ZeroDivisionError: integer division or modulo by zero"
    assert api.spending().num_lost == 1  # it may have been paid


def test_an_error_under_status_200_that_says_what_it_is_costs_nothing(api: Api) -> None:
    busy = replace(refusal(429, "rate_limit_exceeded", "Slow down."), status=200)
    api.fail("status", status=200, body=busy.body, times=4)
    asked = questions(2)
    expect_complete(api, asked, ask(api, asked))
    spending = api.spending()
    assert (spending.num_lost, spending.num_refused) == (0, 4)
    poor = refusal(429, "insufficient_quota", "You exceeded your quota.")
    api.fail("status", status=200, body=poor.body, times=9)
    with pytest.raises(ModelLoadError, match="no money or quota left"):
        ask(api, questions(1, first=5))
    assert api.num_notes == 0


@pytest.mark.long
def test_a_revoked_key_ends_the_run_at_once_and_loses_nothing(api: Api) -> None:
    api.site.revoke_after = 10
    with pytest.raises(ModelLoadError, match=r"refuses the key.*TIDEMARK_API_KEYS__SIM.*10 of 40"):
        ask(api, questions(40))
    assert api.num_kept == len(api.site.ledger) == 10
    assert len(api.web.requests) <= 10 + api.settings.api_in_flight
    api.site.revoke_after, api.site.keys_accepted = None, {KEY}
    asked = questions(40)
    expect_complete(api, asked, ask(api, asked))
    assert api.num_notes == 0


@pytest.mark.parametrize(
    ("fault", "says", "asked"),
    [
        ({"status": 401}, "refuses the key", 1),
        ({"status": 402, "body": b'{"error": {"code": 402, "message": "no"}}'}, "no money", 1),
        ({"status": 404}, "expected location and served_name", 1),
        ({"status": 302, "headers": {"Location": "http://127.0.0.1:9/"}}, "a redirect", 1),
        ({"status": 403}, "refuses the key", 5),
        ({"status": 400, "body": b'{"error": {"message": "What?"}}'}, "answered 400: 'What", 5),
        ({"status": 422, "body": b'{"error": {"message": "What?"}}'}, "answered 422: 'What", 5),
    ],
)
def test_what_waiting_does_not_help_ends_the_run(
    api: Api, fault: dict[str, Any], says: str, asked: int
) -> None:
    api.one_at_a_time()
    api.fail("status", times=9, **fault)
    with pytest.raises(ModelError, match=says):
        ask(api, questions(9))
    assert len(api.web.requests) == asked


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (200, "text/event-stream", b"{}"),
        (200, "text/plain", b'\ndata: {"choices": []}\n\ndata: [DONE]'),
        (200, "text/plain", b": OPENROUTER PROCESSING\n\ndata: {}"),
        (200, "application/x-ndjson", b'{"done": false}\n{"done": true}'),
        (200, "application/json", b'{"object": "chat.completion.chunk", "choices": []}'),
        (400, "application/json", b'{"error": {"message": "It only supports streaming"}}'),
        (400, "application/json", b'{"error": {"message": "stream=false is not supported"}}'),
        (422, "application/json", b'{"detail": [{"loc": ["stream"], "msg": "Field required"}]}'),
        (501, "text/plain", b"non-streaming mode is not implemented"),
        (200, "text/html; charset=utf-8", b"<!DOCTYPE html><title>Sign in</title>"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_used_is_told_at_the_first_request(
    api: Api, status: int, kind: str, body: bytes
) -> None:
    api.fail("status", status=status, body=body, headers={"Content-Type": kind}, times=99)
    with pytest.raises(ModelLoadError, match="a web page" if "html" in kind else "in a stream"):
        ask(api, questions(40))
    assert (len(api.web.requests), api.settings.api_in_flight) == (1, 8)


@pytest.mark.parametrize(
    ("status", "said"), [(429, "Only 3 streams at a time"), (500, "Non-streaming call timed out")]
)
def test_a_passing_error_that_names_streams_is_asked_again(
    api: Api, status: int, said: str
) -> None:
    api.fail("status", status=status, body=json.dumps({"error": {"message": said}}).encode())
    expect_complete(api, questions(3), ask(api, questions(3)))


def test_an_unknown_model_is_named(api: Api) -> None:
    with pytest.raises(ModelLoadError, match="`gone` does not exist"):
        list(api.answerer(served_name="gone").answer(questions(5), GENERATE))


def test_parameters_that_a_model_does_not_take_are_left_out(api: Api) -> None:
    api.site.unsupported = ("max_tokens", "temperature")
    asked = questions(5)
    expect_complete(api, asked, ask(api, asked))
    body = api.site.bodies[-1]
    assert body["max_completion_tokens"] == 16
    assert not {"max_tokens", "temperature"} & set(body)
    api.site.unsupported = ()  # paid answers are found though the request would differ now
    expect_complete(api, asked, ask(api, asked))


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
        [answer] = ask(api, questions(1))
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
        [answer] = ask(api, questions(1))
        assert (answer.chosen_index, answer.reason) == (None, reason)
    assert len(api.web.requests) == 1
    assert api.spending().cost.tokens == 7


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
    [answer] = ask(api, questions(1))
    assert (answer.chosen_index, answer.response) == (index_of_b(), "Answer: B.")


def test_a_question_that_is_too_long_has_a_reason_and_its_neighbours_answers(api: Api) -> None:
    [long] = questions(1, background="word " * CONTEXT_TOKENS)
    too_many = replace(questions(1)[0], options=tuple(map(str, range(27))))
    first, second, third = ask(api, [long, too_many, *questions(1, first=1)])
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
    api.one_at_a_time()
    first, second = ask(api, questions(2))
    assert (first.reason, second.reason) == ("content_filter", None)


@pytest.mark.long
def test_the_limit_of_tokens_is_kept_and_what_was_answered_too(api: Api) -> None:
    api.site.pause_s = 0.01
    asked, limit = questions(60), 2_000
    with pytest.raises(BudgetReached, match=r"left: \d+ of 2000 tokens.*questions are answered"):
        ask(api, asked, Budget(max_tokens=limit))
    assert limit - 600 < api.site.billed_tokens <= limit
    assert api.num_kept == len(api.site.ledger) < 60
    while api.num_kept < 60:  # each run goes on where the last one ended
        before = api.num_kept
        try:
            ask(api, asked, Budget(max_tokens=limit))
        except BudgetReached:
            assert api.num_kept > before
    expect_complete(api, asked, ask(api, asked, Budget(max_tokens=0)))


def test_a_server_that_bills_more_than_was_asked_for_passes_no_limit(api: Api) -> None:
    api.site.num_thought = 5_000
    api.site.pause_s = 0.05
    for num_done in (2, 4):  # the second run knows it from the first one's answers
        before = api.site.billed_tokens
        with pytest.raises(BudgetReached, match=r"left: \d+ of 11000 tokens"):
            ask(api, questions(20), Budget(max_tokens=11_000))
        assert api.site.billed_tokens - before <= 11_000
        assert api.num_kept == num_done
    budget = Budget(max_tokens=100)
    with pytest.raises(BudgetReached, match=r"left: 100 of 100 tokens"):
        ask(api, questions(20), budget)
    assert api.num_kept == 4 and budget.spent.tokens == 0


def test_what_is_left_of_a_limit_that_was_passed_is_nothing(api: Api) -> None:
    api.site.num_thought = 5_000
    with pytest.raises(BudgetReached, match=r"left: 0 of 600 tokens"):
        ask(api, questions(20), Budget(max_tokens=600))
    assert len(api.site.ledger) == 1  # its cost was unknown before


def test_the_limit_of_money_is_kept(api: Api) -> None:
    api.site.pause_s = 0.01
    asked, limit = questions(60), 0.004
    with pytest.raises(BudgetReached, match=r"dollars.*left: 0.\d+ of 0.004 dollars"):
        ask(api, asked, Budget(max_dollars=limit))
    billed = sum(bill.input_tokens * 2.5 + bill.output_tokens * 10 for bill in api.site.ledger)
    assert 0 < billed / 1e6 <= limit
    assert api.num_kept == len(api.site.ledger)
    spent = api.spending().cost.dollars
    assert spent == pytest.approx(billed / 1e6)


def test_a_limit_of_money_without_prices_is_refused_before_anything_is_sent(api: Api) -> None:
    no_prices = dict.fromkeys(PRICES)
    with pytest.raises(UsageError, match="no prices"):
        api.answerer(Budget(max_dollars=1.0), **no_prices)
    assert list(api.answerer(Budget(max_tokens=10**6), **no_prices).answer(questions(1), GENERATE))
    assert api.spending().cost.dollars is None


def test_what_is_lost_counts_against_the_limit(api: Api) -> None:
    api.site.mishaps = ["cut_json"] * 100
    with pytest.raises(ModelError):
        ask(api, questions(60), Budget(max_tokens=2_000))
    assert api.site.billed_tokens <= 2_000


def test_a_server_that_does_not_say_what_it_took_is_counted_at_its_most(api: Api) -> None:
    api.site.quirks = {"missing_fields": 3}
    budget = Budget()
    ask(api, questions(3), budget)
    spending = api.spending()
    assert (spending.num_answers, spending.num_estimated) == (3, 3)
    assert budget.spent.tokens == spending.cost.tokens > api.site.billed_tokens


def test_the_settings_give_a_run_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_MAX_ANSWER_TOKENS", "5000")
    monkeypatch.setenv("TIDEMARK_MAX_ANSWER_DOLLARS", "0.25")
    budget = Budget.of(load_settings())
    assert (budget.max_tokens, budget.max_dollars) == (5000, 0.25)


SCRIPT = """
import sys
from core.settings import load_settings
from core.storage.store import Store
from models.servers.budget import Budget
from models.options.protocols import get_answer_protocol
from models.api import load_api_answerer
from models.catalogue import find_model
from tests.models.servers.test_api_answers import questions

settings = load_settings()
entry = find_model("sim", settings)
answerer = load_api_answerer(entry, settings, Budget())
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


@pytest.mark.slow
def test_a_killed_run_is_gone_on_with_and_what_was_in_flight_is_counted(api: Api) -> None:
    add_model(api.entry(max_output_tokens=16), api.settings)
    api.site.pause_s = 0.05
    asked = questions(60)
    with start(api, 60) as process:
        while len(api.site.ledger) < 20 and process.poll() is None:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
    time.sleep(0.2)  # the server continues the pending requests
    cache = AnswerCache(api.store, api.entry())
    body = api.answerer()._body
    kept = {prompt_of(q) for q in asked if cache.has(cache.key_of(body(prompt_of(q))))}
    assert 0 < len(kept) < 60
    billed = set(api.site.billed)
    in_flight = billed - kept
    assert kept <= billed and len(in_flight) <= api.settings.api_in_flight
    answers = ask(api, asked)
    assert all(answer.chosen_index is not None for answer in answers)
    twice = {prompt for prompt, times in api.site.billed.items() if times > 1}
    assert twice <= in_flight  # nobody had received these
    assert api.spending().cost.tokens >= api.site.billed_tokens


def test_a_kill_between_an_answer_and_its_note_counts_once(api: Api) -> None:
    ask(api, questions(1))
    cache = AnswerCache(api.store, api.entry())
    received = cache.find(cache.key_of(api.answerer()._body(prompt_of(questions(1)[0]))))
    assert received is not None
    cache.note_lost(received.note, "its request", received.paid, "as if it were still there")
    assert api.num_notes == 1
    assert cache.spending().num_lost == 0
    assert cache.spending().cost.tokens == api.site.billed_tokens


@pytest.mark.slow
def test_two_runs_at_once_pay_once(api: Api) -> None:
    add_model(api.entry(max_output_tokens=16), api.settings)
    api.site.pause_s = 0.03
    with start(api, 50) as first, start(api, 50) as second:
        out = [process.communicate(timeout=60) for process in (first, second)]
    assert [line for line, _ in out] == ["50 50\n"] * 2, out
    asked = questions(50)
    expect_complete(api, asked, ask(api, asked))


def pay_once_together(api: Api, stores: list[Store], asked: list[Question]) -> None:
    with ThreadPoolExecutor(len(stores)) as threads:
        calls = [threads.submit(ask, replace(api, store=store), asked) for store in stores]
    for call in calls:
        expect_complete(api, asked, call.result())


@needs_extra("object_store")
@pytest.mark.slow  # threads pay once below, and the extra's tests have claims on S3
def test_two_machines_on_an_object_store_pay_once(api: Api, tmp_path: Path) -> None:
    with object_store() as port:
        url = f"http://127.0.0.1:{port}"
        keys = {"key": "k", "secret": "s3cret", "endpoint_url": url}
        stores = [Store("s3://bucket/x", tmp_path / name, **keys) for name in ("one", "two")]
        stores[0]._fs.mkdir("bucket")
        pay_once_together(api, stores, questions(20))
        spent = AnswerCache(stores[1], api.entry()).spending()
        assert spent.cost.tokens == api.site.billed_tokens
        assert spent.num_lost == 0


def test_threads_of_a_process_pay_once(api: Api) -> None:
    api.site.pause_s = 0.01
    pay_once_together(api, [api.store] * 3, questions(30))


def test_nothing_is_asked_that_could_not_be_kept(api: Api) -> None:
    answerer = api.answerer()
    (Path(api.settings.home) / "answer-cache").parent.mkdir(parents=True)
    (Path(api.settings.home) / "answer-cache").write_text("a file where a folder should be")
    with pytest.raises(StorageError):
        list(answerer.answer(questions(3), GENERATE))
    assert api.site.ledger == []


def test_a_damaged_answer_is_named_rather_than_paid_again(api: Api) -> None:
    ask(api, questions(1))
    [path] = api.store.list("answer-cache/*/answers/*/*.json")
    api.store.write_bytes(path, b'{"asked"')
    with pytest.raises(StorageError, match=path.rsplit("/", 1)[-1]):
        ask(api, questions(1))
    assert len(api.site.ledger) == 1


def test_the_key_is_seen_nowhere(
    api: Api, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    api.fail("status", status=500, body=f"{'x' * 280} bad key {KEY} of yours".encode())
    api.fail("status", status=429, body=f'{{"error": {{"message": "Bearer {KEY}"}}}}'.encode())
    api.fail("status", status=200, body=_completion(f"B, and your key is {KEY}"))
    api.one_at_a_time()
    seen += map(repr, ask(api, questions(3)))
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
        ask(api, questions(1, first=100))
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
        load_api_answerer(api.entry(), settings, Budget())
    assert key not in "".join(traceback.format_exception(caught.value))


def test_a_missing_key_is_named(api: Api) -> None:
    with pytest.raises(UsageError, match="TIDEMARK_API_KEYS__OTHER"):
        api.answerer(api_key="other")


def test_the_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_API_KEYS__OPEN_ROUTER", KEY)
    settings = load_settings()
    assert settings.api_keys["open_router"].get_secret_value() == KEY
    assert KEY not in repr(settings) + settings.model_dump_json()


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
        ("trust: code", "kind causal_lm"),
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
    with pytest.raises(NotMeasurable, match="sim: an API writes answers and gives no likelihoods"):
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
