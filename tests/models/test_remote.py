"""Remote models, against a server on loopback that has a real model and speaks vLLM's format."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
import yaml
from pydantic import SecretStr
from transformers import AutoModelForCausalLM, AutoTokenizer

import models.remote_client
from core.errors import MalformedInput, ModelError, ModelLoadError, NotMeasurable, UsageError
from core.questions import Question
from core.settings import Settings
from models.answer_protocols import get_answer_protocol
from models.answering import load_answerer
from models.catalogue import ModelEntry, add_model, find_model, kind_of, parse_catalogue
from models.causal_lm import CausalLM
from models.load import identify, load_scorer
from models.protocols import get_protocol
from models.remote import RemoteBackend, load_remote, open_remote, read_losses

MAX_MODEL_LEN = 66  # of which the scorer has 64: a token is predicted last, and one is made

TEXTS = [
    "The tide leaves a mark on the sand, and the next tide washes it away. " * 6,
    "Ein naïver Café-Besuch kostet 3,50 € – 早い者勝ち。 Ещё раз: привет, мир! 🙂",
    "x",
    "",
]

Answer = dict[str, Any]


@dataclass
class LikelihoodServer:
    """What of the server can be turned.

    Attributes:
        folder: of the model that it runs.
        name: that it serves it under.
        root: where it says the model is from.
        api_key: that it asks for.
        max_model_len: that it states, and refuses longer prompts by.
        spoil: changes an answer to a completion.
        failures: (status, headers, body) sent in place of the next answers to completions; None is
            a connection that is closed without one.
        requests: (path, body) so far.
        authorizations: headers so far.
    """

    folder: str
    name: str = "served/tiny"
    root: str = "served/tiny"
    api_key: str | None = None
    max_model_len: int | None = MAX_MODEL_LEN
    tokenizes: bool = True
    spoil: Callable[[Answer, list[int]], object] = lambda answer, prompt: answer
    failures: list[tuple[int, dict[str, str], bytes] | None] = field(default_factory=list)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    address: str = ""
    busy: int = 0
    most_busy: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(self.folder).eval()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(self.folder)

    @property
    def num_completions(self) -> int:
        return sum(path == "/v1/completions" for path, _ in self.requests)

    def models(self) -> Answer:
        record = {
            "id": self.name,
            "object": "model",
            "created": 1_700_000_000 + len(self.requests),
            "owned_by": "vllm",
            "root": self.root,
            "parent": None,
            "max_model_len": self.max_model_len,
        }
        return {"object": "list", "data": [record]}

    def tokenize(self, body: Any) -> Answer:
        ids = self.tokenizer(body["prompt"], add_special_tokens=False)["input_ids"]
        return {"count": len(ids), "max_model_len": self.max_model_len, "tokens": ids}

    def complete(self, body: Any) -> tuple[int, object]:
        prompt = body["prompt"]
        assert body["prompt_logprobs"] == 0
        assert body["max_tokens"] == 1
        if self.max_model_len is not None and len(prompt) + 1 > self.max_model_len:
            message = f"This model's maximum context length is {self.max_model_len} tokens."
            return 400, {"error": {"message": message, "type": "BadRequestError", "code": 400}}
        with torch.inference_mode():
            logits = self.model(torch.tensor([prompt])).logits[0].double()
        rows = torch.log_softmax(logits, dim=-1)
        entries: list[Answer | None] = [None]
        for row, token in zip(rows, prompt[1:], strict=False):
            rank = int((row > row[token]).sum()) + 1
            own = {"logprob": float(row[token]), "rank": rank, "decoded_token": "?"}
            entries.append({str(token): own})
        choice = {
            "index": 0,
            "text": "",
            "logprobs": None,
            "finish_reason": "length",
            "prompt_logprobs": entries,
        }
        usage = {"prompt_tokens": len(prompt), "completion_tokens": 1}
        answer = {"id": "cmpl-1", "model": self.name, "choices": [choice], "usage": usage}
        return 200, self.spoil(answer, prompt)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: LikelihoodServer

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self, body: Any) -> None:
        state = self.state
        state.requests.append((self.path, body))
        state.authorizations.append(self.headers.get("Authorization"))
        if state.api_key and self.headers.get("Authorization") != f"Bearer {state.api_key}":
            self._send(401, {}, b'{"error": "Unauthorized"}')
        elif self.path == "/v1/models":
            self._send_json(200, state.models())
        elif self.path == "/tokenize" and state.tokenizes:
            self._send_json(200, state.tokenize(body))
        elif self.path == "/v1/completions":
            self._complete(body)
        else:
            self._send(404, {}, b'{"detail":"Not Found"}')

    def _complete(self, body: Any) -> None:
        state = self.state
        with state.lock:
            state.busy += 1
            state.most_busy = max(state.most_busy, state.busy)
            failure = state.failures.pop(0) if state.failures else (0, {}, b"")
        try:
            if failure is None:
                self.close_connection = True
            elif failure[0]:
                self._send(*failure)
            else:
                self._send_json(*state.complete(body))
        finally:
            with state.lock:
                state.busy -= 1

    def _send_json(self, status: int, answer: object) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self._send(status, {"Content-Type": "application/json"}, data)

    def _send(self, status: int, headers: dict[str, str], data: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # a client that gives up
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)


@contextlib.contextmanager
def running(state: LikelihoodServer) -> Iterator[ThreadingHTTPServer]:
    handler = type("_Handler", (_Handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        state.address = f"http://127.0.0.1:{http.server_port}"
        try:
            yield http
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture
def server(llama_folder: str) -> Iterator[LikelihoodServer]:
    state = LikelihoodServer(llama_folder)
    with running(state):
        yield state


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.remote_client, "_PAUSE_S", 0.01)


def entry_of(server: LikelihoodServer, **fields: Any) -> ModelEntry:
    given = {"name": "remote-tiny", "kind": "remote", "location": server.address}
    return ModelEntry(**({**given, "tokenizer": server.folder} | fields))


def rows_of(scorer: Any, batch: pa.RecordBatch, protocol: str = "default") -> list[Any]:
    tables = list(scorer.score([batch], get_protocol(protocol)))
    rows: list[Any] = pa.concat_tables(tables).to_pylist()
    return rows


def pairs_of(
    server: LikelihoodServer, settings: Settings, batch: pa.RecordBatch, protocol: str
) -> list[tuple[Any, Any]]:
    """Rows of the remote model beside those of the same weights here."""
    here = rows_of(CausalLM.load(server.folder, None, settings), batch, protocol)
    there = rows_of(load_scorer(entry_of(server), settings), batch, protocol)
    return list(zip(there, here, strict=True))


@pytest.mark.parametrize("protocol", ["default", "disjoint-16", "sliding-32-8", "lm-eval-24"])
def test_losses_are_those_of_the_same_weights_here(
    server: LikelihoodServer,
    settings: Settings,
    batch_of: Callable[..., pa.RecordBatch],
    protocol: str,
) -> None:
    pairs = pairs_of(server, settings, batch_of(*TEXTS), protocol)

    assert len(pairs) > 4
    for there, here in pairs:
        same = ["document_id", "chunk_index", "num_tokens", "num_chars", "num_bytes", "reason"]
        assert [there[name] for name in same] == [here[name] for name in same]
        assert there["nll_nats"] == pytest.approx(here["nll_nats"], rel=1e-5, nan_ok=True)
    assert {there["model"] for there, _ in pairs} == {"remote-tiny"}


def test_windows_may_be_as_long_as_the_server_takes(
    server: LikelihoodServer, settings: Settings, batch_of: Callable[..., pa.RecordBatch]
) -> None:
    pairs = pairs_of(server, settings, batch_of(*TEXTS), "lm-eval")  # at the model's own context

    prompts = [body["prompt"] for path, body in server.requests if path == "/v1/completions"]
    assert max(map(len, prompts)) == MAX_MODEL_LEN - 1
    for there, here in pairs:
        assert there["nll_nats"] == pytest.approx(here["nll_nats"], rel=1e-5, nan_ok=True)


def test_without_a_start_token_the_first_token_is_charged_here(
    startless_folder: str, settings: Settings, batch_of: Callable[..., pa.RecordBatch]
) -> None:
    state = LikelihoodServer(startless_folder)
    with running(state):
        pairs = pairs_of(state, settings, batch_of(*TEXTS), "default")

    for there, here in pairs:
        assert there["nll_nats"] == pytest.approx(here["nll_nats"], rel=1e-5, nan_ok=True)


def test_several_prompts_are_in_flight_but_not_all(
    server: LikelihoodServer, settings: Settings, batch_of: Callable[..., pa.RecordBatch]
) -> None:
    scorer = load_scorer(entry_of(server), settings)

    rows_of(scorer, batch_of(*[TEXTS[0]] * 10), "disjoint-8")

    assert 2 <= server.most_busy <= 8


def test_identity_follows_tokenizer_and_what_the_server_states(
    server: LikelihoodServer, settings: Settings, startless_folder: str
) -> None:
    first = identify(entry_of(server), settings)
    assert len(first.revision) == 16
    assert first == identify(entry_of(server), settings)  # not "created"
    assert open_remote(entry_of(server), settings).context == MAX_MODEL_LEN - 2

    other = identify(entry_of(server, tokenizer=startless_folder), settings)
    server.root = "served/tiny-2"
    moved = identify(entry_of(server), settings)

    assert len({first.revision, other.revision, moved.revision}) == 3
    with pytest.raises(ModelLoadError, match="expected 0123"):
        identify(entry_of(server, revision="0123"), settings)


def test_a_server_without_a_maximum_has_the_catalogues(
    server: LikelihoodServer, settings: Settings
) -> None:
    server.max_model_len = None

    assert open_remote(entry_of(server), settings).context is None
    assert open_remote(entry_of(server, context=32), settings).context == 32


def test_the_served_name_is_asked_for(server: LikelihoodServer, settings: Settings) -> None:
    assert open_remote(entry_of(server, served_name="served/tiny"), settings).served_name
    with pytest.raises(ModelLoadError, match="serves 'served/tiny'; set the entry's served_name"):
        identify(entry_of(server, served_name="other"), settings)


@pytest.mark.parametrize("suffix", ["/", "/v1", "/v1/"])
def test_addresses_as_people_write_them(
    server: LikelihoodServer, settings: Settings, suffix: str
) -> None:
    entry = entry_of(server, location=server.address + suffix)

    assert identify(entry, settings) == identify(entry_of(server), settings)


def test_a_key_is_sent_and_never_shown(
    server: LikelihoodServer, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    server.api_key = "sesame-1234"
    with pytest.raises(ModelLoadError, match="401.*TIDEMARK_REMOTE_API_KEY"):
        load_scorer(entry_of(server), settings)
    wrong = settings.model_copy(update={"remote_api_key": SecretStr("wrong-key")})
    with pytest.raises(ModelLoadError) as caught:
        load_scorer(entry_of(server), wrong)
    right = settings.model_copy(update={"remote_api_key": SecretStr("sesame-1234")})
    load_scorer(entry_of(server), right)

    assert "wrong-key" not in str(caught.value)
    assert "sesame" not in repr(right) + caplog.text
    assert set(server.authorizations) == {None, "Bearer wrong-key", "Bearer sesame-1234"}


def test_a_key_that_no_header_can_have_is_not_shown(
    server: LikelihoodServer, settings: Settings
) -> None:
    odd = settings.model_copy(update={"remote_api_key": SecretStr("two\nlines")})

    with pytest.raises(UsageError) as caught:
        load_scorer(entry_of(server), odd)
    assert "two" not in str(caught.value)


def without_logprobs(answer: Answer, prompt: list[int]) -> object:
    del answer["choices"][0]["prompt_logprobs"]
    return answer


def with_null(answer: Answer, prompt: list[int]) -> object:
    answer["choices"][0]["prompt_logprobs"][3] = None
    return answer


def cut_short(answer: Answer, prompt: list[int]) -> object:
    del answer["choices"][0]["prompt_logprobs"][-1]
    return answer


def lengthened(answer: Answer, prompt: list[int]) -> object:
    answer["choices"][0]["prompt_logprobs"].insert(1, {"0": {"logprob": -1.0}})
    return answer


def without_own(answer: Answer, prompt: list[int]) -> object:
    entries = answer["choices"][0]["prompt_logprobs"]
    entries[2] = {str(prompt[2] + 1): entries[2][str(prompt[2])]}
    return answer


def valued(value: object) -> Callable[[Answer, list[int]], object]:
    def spoil(answer: Answer, prompt: list[int]) -> object:
        answer["choices"][0]["prompt_logprobs"][2][str(prompt[2])]["logprob"] = value
        return answer

    return spoil


SPOILT = [
    (without_logprobs, "no prompt_logprobs"),
    (lambda answer, prompt: {"choices": []}, "no prompt_logprobs"),
    (lambda answer, prompt: [], "no prompt_logprobs"),
    (with_null, r"token 3: prompt_logprobs has nothing where the prompt has token \d+"),
    (cut_short, r"has \d+ entries for a prompt of \d+ tokens; the server cut"),
    (lengthened, r"has \d+ entries for a prompt of \d+ tokens"),
    (without_own, "token 2: prompt_logprobs has other tokens"),
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
    server: LikelihoodServer,
    settings: Settings,
    spoil: Callable[[Answer, list[int]], object],
    message: str,
) -> None:
    server.spoil = spoil

    with pytest.raises(NotMeasurable, match=message) as caught:
        load_scorer(entry_of(server), settings)
    assert f"served/tiny at {server.address}" in str(caught.value)


@pytest.mark.parametrize(("spoil", "message"), SPOILT[3:8])
def test_and_during_a_run(
    server: LikelihoodServer,
    settings: Settings,
    batch_of: Callable[..., pa.RecordBatch],
    spoil: Callable[[Answer, list[int]], object],
    message: str,
) -> None:
    scorer = load_scorer(entry_of(server), settings)
    good = server.num_completions + 3

    def later(answer: Answer, prompt: list[int]) -> object:
        return spoil(answer, prompt) if server.num_completions > good else answer

    server.spoil = later
    with pytest.raises(NotMeasurable, match=message):
        rows_of(scorer, batch_of(TEXTS[0]), "disjoint-16")


def test_a_server_that_answers_twice_differently_is_refused(
    server: LikelihoodServer, settings: Settings
) -> None:
    def drifting(answer: Answer, prompt: list[int]) -> object:
        entries = answer["choices"][0]["prompt_logprobs"]
        entries[5][str(prompt[5])]["logprob"] -= server.num_completions
        return answer

    server.spoil = drifting

    with pytest.raises(NotMeasurable, match="1.00 nats apart.*no-enable-prefix-caching"):
        load_scorer(entry_of(server), settings)


def test_another_models_tokenizer_is_refused(
    server: LikelihoodServer, settings: Settings, copy_of: Callable[[str], Path]
) -> None:
    folder = copy_of(server.folder)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:20]
    path.write_text(json.dumps(tokenizer))
    entry = entry_of(server, tokenizer=str(folder))

    with pytest.raises(ModelLoadError, match="makes other tokens"):
        load_scorer(entry, settings)
    server.tokenizes = False  # not every server tells; then the entry is believed
    load_scorer(entry, settings)


@pytest.mark.parametrize(
    "failure",
    [
        None,
        (429, {"Retry-After": "0"}, b"slow down"),
        (503, {"Retry-After": format_datetime(dt.datetime.now(dt.UTC), usegmt=True)}, b"busy"),
        (503, {"Retry-After": "soon"}, b"busy"),
        (502, {}, b"<html>bad gateway</html>"),
    ],
)
def test_passing_failures_are_waited_out(
    server: LikelihoodServer,
    settings: Settings,
    batch_of: Callable[..., pa.RecordBatch],
    failure: tuple[int, dict[str, str], bytes] | None,
) -> None:
    scorer = load_scorer(entry_of(server), settings)
    expected = rows_of(scorer, batch_of(TEXTS[1]))
    before = server.num_completions
    server.failures = [failure] * 4

    found = rows_of(scorer, batch_of(TEXTS[1]))

    assert found == expected
    assert server.num_completions - before == len(expected) + 4


def test_failures_that_do_not_pass_end_the_scoring(
    server: LikelihoodServer, settings: Settings, batch_of: Callable[..., pa.RecordBatch]
) -> None:
    scorer = load_scorer(entry_of(server), settings)
    server.failures = [(503, {}, b"overloaded")] * 100

    with pytest.raises(ModelError, match="no answer in 5 tries .*503: 'overloaded'"):
        rows_of(scorer, batch_of(TEXTS[2]))


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        ((500, {}, b"out of memory"), ModelError, "answered 500: 'out of memory'"),
        ((400, {}, b"token id out of range"), NotMeasurable, "400: 'token id out of range'"),
        ((302, {"Location": "http://169.254.169.254/"}, b""), ModelLoadError, "answered 302"),
        ((200, {}, b"<html>hello</html>"), ModelError, "not JSON"),
        ((200, {}, b"[" * 100_000), ModelError, "not JSON"),
        ((200, {}, b" " * 2**21), ModelError, "more than .* bytes"),
    ],
)
def test_answers_that_no_patience_mends(
    server: LikelihoodServer,
    settings: Settings,
    failure: tuple[int, dict[str, str], bytes],
    error: type[ModelError],
    message: str,
) -> None:
    server.failures = [failure]

    with pytest.raises(error, match=message) as caught:
        load_scorer(entry_of(server), settings)
    assert type(caught.value) is error
    assert server.num_completions == 1


def test_a_server_that_dies_half_way_leaves_no_figures(
    llama_folder: str, settings: Settings, batch_of: Callable[..., pa.RecordBatch]
) -> None:
    state = LikelihoodServer(llama_folder)
    landed: list[pa.Table] = []
    with running(state) as http:
        scorer = load_scorer(entry_of(state), settings)

        def dying(answer: Answer, prompt: list[int]) -> object:
            if state.num_completions > 10 and not state.failures:
                state.failures = [None] * 1000  # on the connections that there are
                http.shutdown()
                http.server_close()
            return answer

        state.spoil = dying
        with pytest.raises(ModelError, match="no answer in 5 tries"):
            landed += scorer.score([batch_of(*[TEXTS[0]] * 5)], get_protocol("disjoint-16"))

    assert landed == []


def test_a_server_that_is_not_there_is_named(settings: Settings, llama_folder: str) -> None:
    state = LikelihoodServer(llama_folder)
    with running(state):
        pass  # its port is free again

    for attempt in (identify, load_scorer):
        with pytest.raises(ModelError, match=f"{state.address}/v1/models: no answer in 5 tries"):
            attempt(entry_of(state), settings)


def test_a_prompt_that_is_too_long_is_refused_by_the_server(
    server: LikelihoodServer, settings: Settings
) -> None:
    backend = RemoteBackend(open_remote(entry_of(server), settings))
    ids = np.arange(MAX_MODEL_LEN + 10) % 300

    with pytest.raises(NotMeasurable, match="maximum context length is 66.*--max-model-len"):
        backend.losses([ids[:-1]], [ids[1:]])


def test_bytes_are_not_measurable(
    server: LikelihoodServer, settings: Settings, batch_of: Callable[..., pa.RecordBatch]
) -> None:
    scorer = load_remote(entry_of(server), settings)
    ids = np.arange(8)

    assert scorer.text_model.byte_tokens is None
    with pytest.raises(NotMeasurable, match="local models only"):
        RemoteBackend(open_remote(entry_of(server), settings)).losses(
            [ids[:-1]], [ids[1:]], np.arange(256)
        )


def test_answers_may_name_more_than_the_prompts_tokens() -> None:
    answer = {
        "choices": [
            {
                "prompt_logprobs": [
                    None,
                    {"7": {"logprob": -2.5}, "9": {"logprob": -0.1}},
                    {"5": {"logprob": 0, "rank": 1}},
                ]
            }
        ]
    }

    assert read_losses(answer, [3, 7, 5], "here").tolist() == [2.5, 0.0]
    own = {"logprob": -1.0}
    first = {"choices": [{"prompt_logprobs": [{"3": own}, {"7": own}]}]}
    assert read_losses(first, [3, 7], "here").tolist() == [1.0]


def test_an_entry_is_kept_in_the_catalogue(server: LikelihoodServer, tmp_path: Path) -> None:
    own = Settings(home=str(tmp_path / "home"), device="cpu")
    entry = entry_of(server, served_name="served/tiny", cutoff=None)

    add_model(entry, own)

    assert find_model("remote-tiny", own) == entry


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("location: http://host:8000", "needs its tokenizer"),
        ("{location: 'host:8000', tokenizer: org/m}", "server's address"),
        ("{location: 'http://u:secret@host', tokenizer: org/m}", "server's address"),
        ("{location: 'http://host/?key=1', tokenizer: org/m}", "server's address"),
        ("{location: org/m, kind: causal_lm, tokenizer: org/m}", "of kind remote"),
    ],
)
def test_entries_that_make_no_remote_model_are_refused(record: str, message: str) -> None:
    fields = {"name": "m", "kind": "remote"} | yaml.safe_load(record)

    with pytest.raises(MalformedInput, match=message):
        parse_catalogue(yaml.safe_dump([fields]).encode(), "catalogue.yaml")


def test_the_kind_follows_from_the_location(tmp_path: Path) -> None:
    assert kind_of("https://host:8000/v1") == "remote"
    assert kind_of("RWKV-x070.pth") == "rwkv"
    assert kind_of("org/model") == kind_of(str(tmp_path)) == "causal_lm"


def test_questions_are_answered_as_by_the_same_weights_here(
    server: LikelihoodServer, settings: Settings
) -> None:
    asked = [
        Question(
            question_id=str(number),
            source="test",
            title=title,
            options=("Yes", "No, never", "早い者勝ち"),
            opened_at=dt.datetime(2024, 3, 5, tzinfo=dt.UTC),
            status="open",
            licence="MIT",
        )
        for number, title in enumerate(TEXTS)
    ]
    protocol = get_answer_protocol("text-unconditional")
    here = load_answerer(ModelEntry(name="here", location=server.folder), settings)
    remote = load_answerer(entry_of(server), settings)
    for ours, theirs in zip(
        here.answer(asked, protocol), remote.answer(asked, protocol), strict=True
    ):
        assert ours.question_id == theirs.question_id
        assert theirs.probabilities == pytest.approx(ours.probabilities, rel=1e-4)
    assert remote.answering_id(protocol) != here.answering_id(protocol)
