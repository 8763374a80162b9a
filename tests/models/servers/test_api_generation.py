from dataclasses import replace
from typing import Any

import pytest

from core.errors import BudgetReached, ModelError, UsageError
from models.generation import Decoding, Generation, GenerationRequest
from models.servers.budget import Budget
from simulator.sites.openai_api import MODEL, refusal, write_answer
from tests.models.servers.conftest import Api

PROBE = Decoding(1024, 16, temperature=0.9, top_p=0.95, top_k=60, repetition_penalty=1.2)
GREEDY = Decoding(2048, stop="answer")


def write(
    api: Api, asked: list[GenerationRequest], decoding: Decoding = GREEDY, **fields: Any
) -> list[Generation]:
    found = {each.key: each for each in api.generator(**fields).generate(asked, decoding)}
    return [found[request.key] for request in asked]


def requests(count: int) -> list[GenerationRequest]:
    return [GenerationRequest(f"r{n}", f"Sort the list of pier {n}.", n) for n in range(count)]


def expect_whole(asked: list[GenerationRequest], found: list[Generation]) -> None:
    assert [each.text for each in found] == [write_answer(each.prompt) for each in asked]
    assert {each.finish for each in found} == {"stop"}


def test_what_is_asked_is_what_the_api_has_parameters_for(api: Api) -> None:
    seed = 2**64 - 1
    (found,) = write(api, [GenerationRequest("k", "Write lists.", seed)], PROBE)
    (greedy,) = write(api, [GenerationRequest("k", "Write lists.", 5)], max_output_tokens=16)
    assert api.site.bodies == [
        {
            "model": MODEL, "messages": [{"role": "user", "content": "Write lists."}],
            "temperature": 0.9, "top_p": 0.95, "max_tokens": 1024, "seed": 2**53 - 1,
        },
        {
            "model": MODEL, "messages": [{"role": "user", "content": "Write lists."}],
            "temperature": 0.0, "max_tokens": 16, "seed": 5,
        },
    ]  # fmt: skip
    text = write_answer("Write lists.")
    assert found == greedy == Generation("k", text, "stop", -(-len(text) // 4))


def test_each_text_is_billed_once_and_kept_for_the_next_run(api: Api) -> None:
    asked = requests(30)
    expect_whole(asked, write(api, asked))
    expect_whole(asked, write(api, asked))
    assert set(api.site.billed.values()) == {1} and len(api.site.billed) == 30
    write(api, [replace(each, seed=each.seed + 1) for each in asked])
    assert set(api.site.billed.values()) == {2}  # another draw is another text


def test_texts_are_given_as_they_come(api: Api) -> None:
    api.one_at_a_time()
    written: Any = api.generator().generate(requests(20), GREEDY)
    next(written)
    assert len(api.site.ledger) < 20
    written.close()
    assert len(api.site.ledger) < 20  # no further requests, no further cost


@pytest.mark.parametrize(
    ("mishap", "expected"),
    [
        ("silent", Generation("r0", "", "stop", 0)),
        ("cut", Generation("r0", "Let me think about A", "length", 0)),
        ("filtered", Generation("r0", "", "error", 0, "content_filter")),
        ("refusal", Generation("r0", "I'm sorry, I can't help with that.", "stop", 0)),
    ],
)
def test_what_came_back_is_handed_on(api: Api, mishap: Any, expected: Generation) -> None:
    api.site.mishaps.append(mishap)
    (found,) = write(api, requests(1))
    assert replace(found, num_tokens=0) == expected
    assert write(api, requests(1)) == [found]  # and was kept as it came


def test_half_an_emoji_is_kept_and_paid_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api.site, "write", lambda prompt, seed: "cut \ud83d off \ud83d\ude00")
    (found,) = write(api, requests(1))
    assert found.text == "cut \ufffd off \U0001f600"
    assert write(api, requests(1)) == [found]
    assert len(api.site.ledger) == 1


def test_a_prompt_that_is_too_long_has_a_reason_and_its_neighbours_texts(api: Api) -> None:
    asked = requests(4)
    asked[1] = replace(asked[1], prompt="1 " * 20_000)
    found = write(api, asked)
    assert found.pop(1) == Generation("r1", "", "error", None, "too_long")
    expect_whole(asked[:1] + asked[2:], found)


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_request_that_the_server_refuses_for_no_known_reason_has_one(
    api: Api, status: int
) -> None:
    api.one_at_a_time()
    asked = requests(20)
    for number in (0, 1, 2, 3, 7, 8, 9):  # many, of which only four follow on each other
        api.site.refusals[f"pier {number}."] = refusal(status, "odd", "What?")
    found = write(api, asked)
    failed = [each for each in found if each.finish == "error"]
    assert [each.key for each in failed] == ["r0", "r1", "r2", "r3", "r7", "r8", "r9"]
    assert all(f"answered {status}" in str(each.reason) for each in failed)
    before = len(api.site.requests)
    assert write(api, asked[:4]) == found[:4]  # as often as it is asked for, if it has ever served
    assert len(api.site.requests) == before + 4


def test_a_model_that_has_never_answered_ends_the_run_however_few_were_asked(api: Api) -> None:
    api.site.refusals["pier"] = refusal(400, None, "What?")
    with pytest.raises(ModelError, match="2 questions have no answer, the first: .*answered 400"):
        write(api, requests(2))


def test_the_budget_is_kept(api: Api) -> None:
    asked, budget = requests(20), Budget(max_tokens=300)
    with pytest.raises(BudgetReached, match="questions are answered, and kept"):
        write(api, asked, replace(GREEDY, max_new_tokens=64), budget=budget)
    assert 0 < budget.spent.tokens <= 300
    assert budget.spent.tokens == api.site.billed_tokens


def test_another_kind_is_refused(api: Api) -> None:
    with pytest.raises(UsageError, match="of kind causal_lm, not a model behind an API"):
        api.generator(kind="causal_lm", served_name=None, api_key=None)


def test_texts_have_an_identity(api: Api) -> None:
    generator = api.generator()
    assert generator.name == "sim" and len(generator.revision) == 16
    ids = {generator.generation_id(each) for each in (GREEDY, PROBE, replace(PROBE, top_k=5))}
    assert len(ids) == 3 and all(len(each) == 8 for each in ids)
    assert api.generator(max_output_tokens=9).generation_id(GREEDY) not in ids
