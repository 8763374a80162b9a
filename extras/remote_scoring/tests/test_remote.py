import datetime as dt
import importlib
import json
from collections.abc import Callable, Iterator
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import SecretStr

import extras.remote_scoring.client
from core.errors import MalformedInput, ModelError, ModelLoadError, NotMeasurable, UsageError
from core.settings import Settings
from extras.remote_scoring.backends import BACKENDS
from extras.remote_scoring.engine import RemoteEngine, RemoteModel, open_remote
from extras.remote_scoring.tests.engines import MAX_MODEL_LEN, Answer, Spoil
from extras.remote_scoring.tests.engines import VllmServer as Server
from extras.remote_scoring.vllm import VllmDialect
from models.backends import (
    find_backend,
    identify,
    identify_texts,
    kind_of,
    load_generator,
    load_scorer,
)
from models.catalogue import ModelEntry, parse_catalogue
from models.generation import Decoding, Generation, GenerationRequest
from models.options.answering import load_answerer
from models.options.protocols import get_answer_protocol
from models.scoring.protocols import get_protocol
from models.scoring.token_scorer import CausalLM
from models.servers.budget import Budget
from simulator.server import serve_sites
from tests.loopback import free_port
from tests.models.conftest import BatchOf, CopyOf, question

TEXTS = [
    "The tide leaves a mark on the sand, and the next tide washes it away. " * 6,
    "Ein naïver Café-Besuch kostet 3,50 € – 早い者勝ち。 Ещё раз: привет, мир! 🙂",
    "x",
    "",
]


@pytest.fixture
def server(llama_folder: str, tokenizer_alone: str, settings: Settings) -> Iterator[Server]:
    state = Server(llama_folder, settings, named=tokenizer_alone)
    with serve_sites([state]) as state.web:
        yield state


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras.remote_scoring.client, "_PAUSE_S", 0.01)


def entry_of(server: Server, **fields: Any) -> ModelEntry:
    return server.entry(**fields)


def scorer_of(server: Server, **fields: Any) -> Any:
    return load_scorer(entry_of(server, **fields), server.settings)


def identity_of(server: Server, **fields: Any) -> Any:
    return identify(entry_of(server, **fields), server.settings)


def opened(server: Server, **fields: Any) -> RemoteModel:
    return open_remote(entry_of(server, **fields), server.settings)


def generator_of(server: Server) -> Any:
    return load_generator(entry_of(server), server.settings, Budget())


def rows_of(scorer: Any, batch: pa.RecordBatch, protocol: str = "default") -> list[Any]:
    tables = list(scorer.score([batch], get_protocol(protocol)))
    rows: list[Any] = pa.concat_tables(tables).to_pylist()
    return rows


def pairs_of(server: Server, batch: pa.RecordBatch, protocol: str) -> list[tuple[Any, Any]]:
    here = rows_of(CausalLM.load(server.folder, None, server.settings), batch, protocol)
    there = rows_of(scorer_of(server), batch, protocol)
    return list(zip(there, here, strict=True))


@pytest.mark.parametrize("protocol", ["default", "disjoint-16", "sliding-32-8", "lm-eval-24"])
def test_losses_are_those_of_the_same_weights_here(
    server: Server, batch_of: BatchOf, protocol: str
) -> None:
    pairs = pairs_of(server, batch_of(*TEXTS), protocol)
    assert len(pairs) > 4
    for there, here in pairs:
        same = ["document_id", "chunk_index", "num_tokens", "num_chars", "num_bytes", "reason"]
        assert [there[name] for name in same] == [here[name] for name in same]
        assert there["nll_nats"] == pytest.approx(here["nll_nats"], rel=1e-5, nan_ok=True)
    assert {there["model"] for there, _ in pairs} == {"remote-tiny"}


@pytest.mark.smoke
def test_windows_may_be_as_long_as_the_server_takes(server: Server, batch_of: BatchOf) -> None:
    pairs = pairs_of(server, batch_of(*TEXTS), "lm-eval")  # at the model's own context
    assert max(len(body["prompt"]) for body in server.bodies) == MAX_MODEL_LEN - 1
    for there, here in pairs:
        assert there["nll_nats"] == pytest.approx(here["nll_nats"], rel=1e-5, nan_ok=True)


def test_the_kind_can_score_answer_and_write() -> None:
    [kind] = BACKENDS
    assert find_backend("remote") == kind
    assert kind.load and kind.answers and kind.load_generator and not kind.codes
    for name in vars(kind).values():
        if isinstance(name, str) and ":" in name:
            module, _, function = name.partition(":")
            assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("kind: api, served_name: m, tokenizer: a/b", "tokenizer is for models of kind remote"),
        ("kind: remote", "a model of kind remote needs its tokenizer"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(entry: str, says: str) -> None:
    data = f"- {{name: x, location: https://host/v1, {entry}}}"
    with pytest.raises(MalformedInput, match=says):
        parse_catalogue(data.encode(), "mine.yaml")


def test_several_prompts_are_in_flight_but_not_all(server: Server, batch_of: BatchOf) -> None:
    scorer = scorer_of(server)
    rows_of(scorer, batch_of(*[TEXTS[0]] * 10), "disjoint-8")
    assert 2 <= server.web.traffic["likelihoods"].most_at_once <= 8


def test_identity_follows_tokenizer_and_what_the_server_states(
    server: Server, startless_folder: str
) -> None:
    first = identity_of(server)
    assert len(first.revision) == 16
    assert first == identity_of(server)  # not "created"
    assert opened(server).context == MAX_MODEL_LEN - 2
    other = identity_of(server, tokenizer=startless_folder)
    server.root = "served/tiny-2"
    moved = identity_of(server)
    assert len({first.revision, other.revision, moved.revision}) == 3
    with pytest.raises(ModelLoadError, match="expected 0123"):
        identity_of(server, revision="0123")


def test_a_server_without_a_maximum_has_the_catalogues(server: Server) -> None:
    server.max_model_len = None
    assert opened(server).context is None
    assert opened(server, context=32).context == 32


def test_the_served_name_is_asked_for(server: Server) -> None:
    assert opened(server, served_name="served/tiny").served.name
    with pytest.raises(ModelLoadError, match="serves 'served/tiny'; set the entry's served_name"):
        identity_of(server, served_name="other")


@pytest.mark.parametrize("suffix", ["/", "/v1", "/v1/"])
def test_addresses_as_people_write_them(server: Server, suffix: str) -> None:
    assert identity_of(server, location=server.address + suffix) == identity_of(server)


def test_no_proxy_is_asked_for_this_machine(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")  # nobody listens
    assert identity_of(server).revision


def test_a_key_is_sent_and_never_shown(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.api_key = "sesame-1234"
    with pytest.raises(ModelLoadError, match="401.*TIDEMARK_REMOTE_API_KEY"):
        scorer_of(server)
    wrong = server.settings.model_copy(update={"remote_api_key": SecretStr("wrong-key")})
    with pytest.raises(ModelLoadError) as caught:
        load_scorer(entry_of(server), wrong)
    right = server.settings.model_copy(update={"remote_api_key": SecretStr("sesame-1234")})
    load_scorer(entry_of(server), right)
    assert "wrong-key" not in str(caught.value)
    assert "sesame" not in repr(right) + caplog.text
    assert set(server.authorizations) == {None, "Bearer wrong-key", "Bearer sesame-1234"}


def test_a_key_that_no_header_can_have_is_not_shown(server: Server) -> None:
    odd = server.settings.model_copy(update={"remote_api_key": SecretStr("two\nlines")})
    with pytest.raises(UsageError) as caught:
        load_scorer(entry_of(server), odd)
    assert "two" not in str(caught.value)


def entries_of(answer: Answer) -> list[Any]:
    entries: list[Any] = answer["choices"][0]["prompt_logprobs"]
    return entries


def editing(edit: Callable[[list[Any], list[int]], object]) -> Spoil:
    def spoil(answer: Answer, prompt: list[int]) -> object:
        edit(entries_of(answer), prompt)
        return answer

    return spoil


def valued(value: object) -> Spoil:
    return editing(lambda entries, prompt: entries[2][str(prompt[2])].update(logprob=value))


SPOILT = [
    (lambda answer, prompt: {"choices": [{"index": 0}]}, "no prompt_logprobs"),
    (lambda answer, prompt: {"choices": []}, "no prompt_logprobs"),
    (lambda answer, prompt: [], "no prompt_logprobs"),
    (
        editing(lambda each, _: each.__setitem__(3, None)),
        r"token 3: .*has nothing where .*token \d",
    ),
    (editing(lambda each, _: each.pop()), r"has \d+ entries for a prompt of \d+ tokens; .* cut"),
    (editing(lambda each, _: each.insert(1, {"0": {"logprob": -1.0}})), r"has \d+ entries for a"),
    (
        editing(lambda entries, prompt: entries.__setitem__(2, {str(prompt[2] + 1): {}})),
        "token 2: prompt_logprobs has other tokens",
    ),
    (valued(float("nan")), "log-probability of token .* is nan"),
    (valued(float("-inf")), "is -inf"),
    (valued(-9999.0), "is -9999.0.*stands for minus infinity"),
    (valued(0.5), "is 0.5; expected a finite number, not above 0"),
    (valued(10**400), "is 1000"),
    (valued("-1.5"), "is -1.5"),
    (valued(None), "is None"),
    (valued(True), "is True"),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILT)
def test_what_a_server_does_not_say_is_found_out_before_a_run(
    server: Server, spoil: Spoil, message: str
) -> None:
    server.spoil = spoil
    with pytest.raises(NotMeasurable, match=message) as caught:
        scorer_of(server)
    assert f"served/tiny at {server.address}" in str(caught.value)


def test_another_models_tokenizer_is_refused(server: Server, copy_of: CopyOf) -> None:
    folder = copy_of(server.folder)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:20]
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(ModelLoadError, match="makes other tokens"):
        scorer_of(server, tokenizer=str(folder))
    server.tokenizes = False  # some servers state none; then the entry counts
    scorer_of(server, tokenizer=str(folder))


NOW = format_datetime(dt.datetime.now(dt.UTC), usegmt=True)


@pytest.mark.parametrize(
    "failure",
    [
        {"kind": "disconnect"},
        {"status": 429, "headers": {"Retry-After": "0"}, "body": b"slow down"},
        {"status": 503, "headers": {"Retry-After": NOW}, "body": b"busy"},
        {"status": 503, "headers": {"Retry-After": "soon"}, "body": b"busy"},
        {"status": 502, "body": b"<html>bad gateway</html>"},
    ],
    ids=["disconnect", "429", "a date", "no date", "502"],
)
def test_passing_failures_are_waited_out(
    server: Server, batch_of: BatchOf, failure: dict[str, Any]
) -> None:
    scorer = scorer_of(server)
    expected = rows_of(scorer, batch_of(TEXTS[1]))
    before = server.num_completions
    server.fail(**{"kind": "status", "times": 4, **failure})
    found = rows_of(scorer, batch_of(TEXTS[1]))
    assert found == expected
    assert server.num_completions - before == len(expected) + 4


def test_failures_that_do_not_pass_end_the_scoring(server: Server, batch_of: BatchOf) -> None:
    scorer = scorer_of(server)
    server.fail("status", 100, status=503, body=b"overloaded")
    with pytest.raises(ModelError, match="no answer in 5 tries .*503: 'overloaded'"):
        rows_of(scorer, batch_of(TEXTS[2]))


ELSEWHERE = {"Location": "http://169.254.169.254/"}


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        ({"status": 500, "body": b"no memory"}, ModelError, "answered 500: 'no memory'"),
        ({"status": 400, "body": b"bad token"}, NotMeasurable, "400: 'bad token'"),
        ({"status": 302, "headers": ELSEWHERE}, ModelLoadError, "answered 302"),
        ({"status": 200, "body": b"<html>hello</html>"}, ModelError, "not JSON"),
        ({"status": 200, "body": b"[" * 100_000}, ModelError, "not JSON"),
        ({"status": 200, "body": b" " * 2**21}, ModelError, "more than .* bytes"),
    ],
)
def test_answers_that_no_patience_mends(
    server: Server, failure: Any, error: Any, message: str
) -> None:
    server.fail("status", **failure)
    with pytest.raises(error, match=message) as caught:
        scorer_of(server)
    assert type(caught.value) is error
    assert server.num_completions == 1


def test_a_server_that_dies_half_way_leaves_no_figures(server: Server, batch_of: BatchOf) -> None:
    landed: list[pa.Table] = []
    scorer = scorer_of(server)
    loaded = server.num_completions

    def dying(answer: Answer, prompt: list[int]) -> object:
        if server.num_completions > loaded + 10:
            server.fail("disconnect", 1000)
        return answer

    server.spoil = dying
    with pytest.raises(ModelError, match="no answer in 5 tries"):
        landed += scorer.score([batch_of(*[TEXTS[0]] * 5)], get_protocol("disjoint-16"))
    assert landed == []


def test_a_server_that_is_not_there_is_named(settings: Settings, llama_folder: str) -> None:
    state = Server(llama_folder, settings)
    with serve_sites([state]) as state.web:
        pass  # its port is free again
    for attempt in (identity_of, scorer_of):
        with pytest.raises(ModelError, match=f"{state.address}/v1/models: no answer in 5 tries"):
            attempt(state)


def test_a_prompt_that_is_too_long_is_refused_by_the_server(server: Server) -> None:
    engine = RemoteEngine(opened(server))
    ids = np.arange(MAX_MODEL_LEN + 10) % 300
    with pytest.raises(NotMeasurable, match="maximum context length is 66.*--max-model-len"):
        engine.losses([ids[:-1]], [ids[1:]])


def test_bytes_are_not_measurable(server: Server) -> None:
    ids = np.arange(8)
    assert scorer_of(server).text_model.byte_tokens is None
    with pytest.raises(NotMeasurable, match="local models only"):
        RemoteEngine(opened(server)).losses([ids[:-1]], [ids[1:]], np.arange(256))


def test_answers_may_name_more_than_the_prompts_tokens() -> None:
    several = {"7": {"logprob": -2.5}, "9": {"logprob": -0.1}}
    entries = [None, several, {"5": {"logprob": 0, "rank": 1}}]
    answer = {"choices": [{"prompt_logprobs": entries}]}
    assert VllmDialect().read(answer, [3, 7, 5], "here").tolist() == [2.5, 0.0]
    own = {"logprob": -1.0}
    first = {"choices": [{"prompt_logprobs": [{"3": own}, {"7": own}]}]}
    assert VllmDialect().read(first, [3, 7], "here").tolist() == [1.0]


def test_the_kind_follows_from_the_location(tmp_path: Path) -> None:
    assert kind_of("https://host:8000/v1") == "remote"
    assert kind_of("org/model") == kind_of(str(tmp_path)) == "causal_lm"


def test_questions_are_answered_as_by_the_same_weights_here(server: Server) -> None:
    options = ("Yes", "No, never", "早い者勝ち")
    asked = [question(question_id=title, title=title, options=options) for title in TEXTS]
    protocol = get_answer_protocol("text-unconditional")
    here = load_answerer(ModelEntry(name="here", location=server.folder), server.settings)
    remote = load_answerer(entry_of(server), server.settings)
    for ours, theirs in zip(
        here.answer(asked, protocol), remote.answer(asked, protocol), strict=True
    ):
        assert ours.question_id == theirs.question_id
        assert theirs.probabilities == pytest.approx(ours.probabilities, rel=1e-4)
    assert remote.answering_id(protocol) != here.answering_id(protocol)


WRITING = Decoding(24, min_new_tokens=2)
PROMPTS = ["The tide", "Models read what was written", "", "def add(a", TEXTS[0]]
ASKED = [GenerationRequest(str(n), prompt, 2**64 - 1) for n, prompt in enumerate(PROMPTS)]


def written(entry: ModelEntry, settings: Settings, decoding: Decoding) -> list[Generation]:
    generator = load_generator(entry, settings, Budget())
    found = {each.key: each for each in generator.generate(ASKED, decoding)}
    return [found[request.key] for request in ASKED]


@pytest.mark.parametrize("stop", [None, "e|a"])
def test_texts_are_those_of_the_same_weights_here(server: Server, stop: str | None) -> None:
    decoding = Decoding(24, min_new_tokens=2, stop=stop)
    here = written(ModelEntry(name="here", location=server.folder), server.settings, decoding)
    there = written(entry_of(server), server.settings, decoding)
    assert [(each.text, each.finish, each.reason) for each in there] == [
        (each.text, each.finish, each.reason) for each in here
    ]
    assert there[-1] == Generation("4", "", "error", 0, "too_long")
    assert len({each.text for each in there}) > 3
    if stop:
        assert any(each.text[-1:] in ("e", "a") and each.finish == "stop" for each in there)
    else:
        assert [each.num_tokens for each in there[:2]] == [each.num_tokens for each in here[:2]]


def test_settings_of_decoding_are_sent(server: Server) -> None:
    generator = generator_of(server)
    probing = Decoding(9, 3, temperature=0.9, top_p=0.95, top_k=60, repetition_penalty=1.2)
    server.fail("status", 100, status=400, body=b"not now")
    (found,) = generator.generate(ASKED[:1], probing)
    sent = {"max_tokens": 9, "min_tokens": 3, "temperature": 0.9, "top_p": 0.95, "top_k": 60}
    request = server.web.requests[-1]
    assert (found.finish, found.num_tokens) == ("error", None) and "not now" in str(found.reason)
    assert request[2] == "/v1/completions"
    server.web.faults.clear()
    with pytest.raises(ModelError):  # the server of this test writes greedily only, and fails
        list(generator.generate(ASKED[:1], probing))
    body = server.bodies[-1]
    assert sent.items() <= body.items()
    assert (body["repetition_penalty"], body["seed"]) == (1.2, 2**53 - 1)


def test_a_server_that_writes_no_text_is_refused_by_name(server: Server) -> None:
    server.spoil = lambda answer, prompt: {"choices": [{"prompt_logprobs": []}]}
    with pytest.raises(NotMeasurable, match=f"remote-tiny: the server at {server.address} writes"):
        generator_of(server)


def test_texts_have_an_identity_before_the_server_writes(server: Server) -> None:
    identity = identify_texts(entry_of(server), server.settings)
    assert server.num_completions == 0
    generator = generator_of(server)
    assert (generator.name, generator.revision) == (identity.name, identity.revision)
    assert generator.generation_id(WRITING) == identity.generation_id(WRITING)
    assert generator.generation_id(Decoding(25)) != identity.generation_id(WRITING)


def test_no_text_is_requested_after_the_caller_stops(server: Server) -> None:
    generator: Any = generator_of(server)
    asked = [GenerationRequest(str(n), f"The tide {n}", n) for n in range(60)]
    written = generator.generate(asked, Decoding(2))
    next(written)
    written.close()
    assert server.num_completions < 60
