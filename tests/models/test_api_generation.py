"""Texts of models behind an API: what is asked, what becomes of faults, and what is paid.

The truth is the simulated server's own record of what it was asked and what it billed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import models.api_requests
from core.errors import BudgetReached, ModelError, ModelLoadError, UsageError
from core.settings import Settings
from core.storage import Store
from models.answer_budget import Budget
from models.answer_cache import read_spending
from models.api_generation import ApiGenerator, load_api_generator
from models.catalogue import ModelEntry, add_model
from models.generator import Decoding, Generation, GenerationRequest
from simulator.faults import Fault, FaultKind
from simulator.server import Web, serve_sites
from simulator.sites.openai_api import KEY, MODEL, Site, refusal, write_answer

ROOT = Path(__file__).resolve().parents[2]
PROBE = Decoding(1024, 16, temperature=0.9, top_p=0.95, top_k=60, repetition_penalty=1.2)
GREEDY = Decoding(2048, stop="answer")


@dataclass
class Api:
    """A simulated API, and a data root."""

    site: Site
    web: Web
    settings: Settings

    @property
    def store(self) -> Store:
        return Store(self.settings.home)

    @property
    def entry(self) -> ModelEntry:
        address = f"{self.web.urls['openai_api']}/v1"
        return ModelEntry("sim", "api", address, served_name=MODEL, api_key="sim")

    def generator(self, budget: Budget | None = None, **fields: Any) -> ApiGenerator:
        entry = replace(self.entry, **fields)
        return load_api_generator(entry, self.settings, budget or Budget(), self.store)

    def write(
        self, requests: list[GenerationRequest], decoding: Decoding = GREEDY, **fields: Any
    ) -> list[Generation]:
        found = {each.key: each for each in self.generator(**fields).generate(requests, decoding)}
        return [found[request.key] for request in requests]

    def fail(self, kind: FaultKind, **fields: Any) -> None:
        self.web.faults.append(Fault(kind, "openai_api", **fields))


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serve_sites([site := Site()]) as web:
        yield Api(site, web, Settings(home=str(tmp_path), api_keys={"sim": SecretStr(KEY)}))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.api_requests, "_PAUSE_S", 0.01)


def requests(count: int) -> list[GenerationRequest]:
    return [GenerationRequest(f"r{n}", f"Sort the list of pier {n}.", n) for n in range(count)]


def expect_whole(asked: list[GenerationRequest], found: list[Generation]) -> None:
    assert [each.text for each in found] == [write_answer(each.prompt) for each in asked]
    assert {each.finish for each in found} == {"stop"}


def test_what_is_asked_is_what_the_api_has_parameters_for(api: Api) -> None:
    seed = 2**64 - 1
    (found,) = api.write([GenerationRequest("k", "Write lists.", seed)], PROBE)
    (greedy,) = api.write([GenerationRequest("k", "Write lists.", 5)], max_output_tokens=16)
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
    expect_whole(asked, api.write(asked))
    expect_whole(asked, api.write(asked))
    assert set(api.site.billed.values()) == {1} and len(api.site.billed) == 30
    api.write([replace(each, seed=each.seed + 1) for each in asked])
    assert set(api.site.billed.values()) == {2}  # another draw is another text


def test_the_same_request_is_paid_once(api: Api) -> None:
    asked = [GenerationRequest(key, "Write lists.", 1) for key in ("a", "b")]
    expect_whole(asked, api.write(asked))
    assert len(api.site.ledger) == 1


def test_as_many_are_in_flight_as_the_settings_say(api: Api) -> None:
    api.settings = api.settings.model_copy(update={"api_in_flight": 3})
    api.site.pause_s = 0.02
    api.write(requests(12))
    assert api.site.most_busy == 3


def test_texts_are_given_as_they_come(api: Api) -> None:
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    written: Any = api.generator().generate(requests(20), GREEDY)
    next(written)
    assert len(api.site.ledger) < 20
    written.close()
    assert len(api.site.ledger) < 20  # who asks no further pays no further


@pytest.mark.parametrize("mishap", ["rate_limit", "server_error", "cut_json"])
def test_what_passes_is_waited_out(api: Api, mishap: Any) -> None:
    api.site.mishaps += [mishap] * 2
    asked = requests(5)
    expect_whole(asked, api.write(asked))


def test_retry_after_is_respected(api: Api) -> None:
    api.fail("status", status=429, headers={"Retry-After": "1"})
    started = time.monotonic()
    asked = requests(3)
    expect_whole(asked, api.write(asked))
    assert time.monotonic() - started >= 1


def test_a_text_that_does_not_come_is_asked_for_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.api_client._ANSWER_TIMEOUT_S", 0.3)
    api.fail("stall", times=1)
    asked = requests(3)
    expect_whole(asked, api.write(asked))


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
    (found,) = api.write(requests(1))
    assert replace(found, num_tokens=0) == expected
    assert api.write(requests(1)) == [found]  # and was kept as it came


def test_an_answer_without_a_message_is_paid_once(api: Api) -> None:
    body = b'{"choices": [{"finish_reason": "content_filter"}]}'
    api.fail("status", status=200, body=body)
    for _ in range(2):
        assert api.write(requests(1)) == [Generation("r0", "", "error", None, "content_filter")]
    assert len(api.web.requests) == 1


def test_half_an_emoji_is_kept_and_paid_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api.site, "write", lambda prompt, seed: "cut \ud83d off \ud83d\ude00")
    (found,) = api.write(requests(1))
    assert found.text == "cut \ufffd off \U0001f600"
    assert api.write(requests(1)) == [found]
    assert len(api.site.ledger) == 1


def test_a_prompt_that_is_too_long_has_a_reason_and_its_neighbours_texts(api: Api) -> None:
    asked = requests(4)
    asked[1] = replace(asked[1], prompt="1 " * 20_000)
    found = api.write(asked)
    assert found.pop(1) == Generation("r1", "", "error", None, "too_long")
    expect_whole(asked[:1] + asked[2:], found)


def test_a_request_on_which_the_server_always_fails_has_a_reason(api: Api) -> None:
    """The others go on; the next run asks for that one alone."""
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    api.site.mishaps += ["cut_json"] * 3
    asked = requests(4)
    found = api.write(asked)
    failed = found.pop(0)
    assert (failed.key, failed.text, failed.finish) == ("r0", "", "error")
    assert "3 answers were lost" in str(failed.reason)
    expect_whole(asked[1:], found)
    before = len(api.site.ledger)
    expect_whole(asked, api.write(asked))
    assert len(api.site.ledger) == before + 1


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_request_that_the_server_refuses_for_no_known_reason_has_one(
    api: Api, status: int
) -> None:
    api.settings = api.settings.model_copy(update={"api_in_flight": 1})
    asked = requests(20)
    for number in (0, 1, 2, 3, 7, 8, 9):  # many, of which only four follow on each other
        api.site.refusals[f"pier {number}."] = refusal(status, "odd", "What?")
    found = api.write(asked)
    failed = [each for each in found if each.finish == "error"]
    assert [each.key for each in failed] == ["r0", "r1", "r2", "r3", "r7", "r8", "r9"]
    assert all(f"answered {status}" in str(each.reason) for each in failed)
    before = len(api.site.requests)
    assert api.write(asked[:4]) == found[:4]  # as often as it is asked for, if it has ever served
    assert len(api.site.requests) == before + 4


def test_a_model_that_has_never_answered_ends_the_run_however_few_were_asked(api: Api) -> None:
    api.site.refusals["pier"] = refusal(400, None, "What?")
    with pytest.raises(ModelError, match="2 questions have no answer, the first: .*answered 400"):
        api.write(requests(2))


def test_a_server_that_is_away_ends_the_run(api: Api) -> None:
    api.fail("status", status=503, times=10_000)
    with pytest.raises(ModelError, match=r"questions have no answer, the first: .*0 of 40 "):
        api.write(requests(40))


def test_a_revoked_key_ends_the_run_and_loses_nothing(api: Api) -> None:
    api.settings = api.settings.model_copy(update={"api_in_flight": 2})
    api.site.revoke_after = 6
    asked = requests(20)
    with pytest.raises(ModelLoadError, match=r"refuses the key.*6 of 20 questions are answered"):
        api.write(asked)
    api.site.revoke_after = None
    api.site.keys_accepted.add(KEY)
    expect_whole(asked, api.write(asked))
    assert set(api.site.billed.values()) == {1}


def test_the_budget_is_kept(api: Api) -> None:
    asked, budget = requests(20), Budget(max_tokens=300)
    with pytest.raises(BudgetReached, match="questions are answered, and kept"):
        api.write(asked, replace(GREEDY, max_new_tokens=64), budget=budget)
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


SCRIPT = """
from core.settings import load_settings
from core.storage import Store
from models.answer_budget import Budget
from models.api_generation import load_api_generator
from models.catalogue import find_model
from tests.models.test_api_generation import GREEDY, requests

settings = load_settings()
entry = find_model("sim", settings)
generator = load_api_generator(entry, settings, Budget(), Store(settings.home))
list(generator.generate(requests(60), GREEDY))
"""


def test_a_killed_run_asks_only_for_what_is_left(api: Api) -> None:
    add_model(api.entry, api.settings)
    api.site.pause_s = 0.05
    environment = {
        "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "TIDEMARK_HOME": api.settings.home,
        "TIDEMARK_API_KEYS__SIM": KEY, "OMP_WAIT_POLICY": "PASSIVE",
    }  # fmt: skip
    with subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment) as process:
        while len(api.site.ledger) < 20 and process.poll() is None:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
    time.sleep(0.2)  # the server goes on with what it was asked
    num_kept = len(api.store.list("answer-cache/*/answers/*/*.json"))
    assert 0 < num_kept < 60
    before = len(api.site.ledger)
    assert before - num_kept <= api.settings.api_in_flight

    asked = requests(60)
    expect_whole(asked, api.write(asked))

    assert len(api.site.ledger) - before == 60 - num_kept
    assert read_spending(api.store, api.entry).cost.tokens >= api.site.billed_tokens
