"""Each dialect of a server of likelihoods, against a stub that speaks it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer
from typer.testing import CliRunner

from cli.main import app
from core.errors import ModelLoadError, NotMeasurable
from core.settings import Settings
from extras.remote_scoring.dialects import DIALECTS
from extras.remote_scoring.engine import open_remote
from extras.remote_scoring.sglang import SglangDialect
from extras.remote_scoring.tests.engines import (
    Answer,
    EchoServer,
    Engine,
    LlamaCppServer,
    SglangServer,
    VllmServer,
    log_probabilities,
)
from models.backends import identify, load_scorer
from models.catalogue import find_model, make_entry
from models.scoring.protocols import get_protocol
from models.scoring.token_scorer import CausalLM
from simulator.server import serve_sites
from tests.models.conftest import BatchOf

TEXT = "Ein naïver Café-Besuch kostet 3,50 € – 早い者勝ち。 Models read what was written. 🙂"
FORMS = ["generated", "prompt alone", "first left out", "together", "ids", "pieces"]
PROMPT = [0, *range(40, 60)]


@pytest.fixture
def run(llama_folder: str, tokenizer_alone: str, settings: Settings) -> Iterator[Any]:
    """Return a function that starts a stub."""
    with ExitStack() as stack:

        def start(kind: type[Engine], **fields: Any) -> Engine:
            server = kind(llama_folder, settings, named=tokenizer_alone)
            for name, value in fields.items():
                setattr(server, name, value)
            server.web = stack.enter_context(serve_sites([server]))
            return server

        yield start


def nats_of(scorer: Any, batch: Any) -> list[float]:
    tables = scorer.score([batch], get_protocol("disjoint-16"))
    return [row["nll_nats"] for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "fields", "stated"),
    [
        (VllmServer, {}, None),
        (SglangServer, {}, None),
        (SglangServer, {"info_path": "/get_model_info"}, None),
        *((EchoServer, {"form": form}, "echo") for form in FORMS),
    ],
)
def test_losses_are_those_of_the_same_weights_here(
    run: Any, batch_of: BatchOf, kind: type[Engine], fields: dict[str, str], stated: str | None
) -> None:
    server = run(kind, **fields)
    is_compared = "form" not in fields  # each takes as long as all the rest
    entry = server.entry(dialect=stated, **{"tokenizer": server.folder} if is_compared else {})
    scorer: Any = load_scorer(entry, server.settings)
    here = CausalLM.load(server.folder, None, server.settings)
    batch = batch_of(TEXT, "x")
    assert nats_of(scorer, batch) == pytest.approx(nats_of(here, batch), rel=1e-5)
    versions = scorer.facts.versions
    by = "" if fields.get("form") == "together" else f", by {server.owner}"  # states none
    assert versions["engine"] == f"{stated or server.owner}{by}"
    assert ("compared with the same weights" in versions["probe"]) == is_compared
    assert scorer.scoring_id(get_protocol("default")) == identify(
        entry, server.settings
    ).scoring_id(get_protocol("default"))


def test_dialects_have_different_cells(run: Any) -> None:
    vllm = run(VllmServer)
    ids = set()
    for stated in (None, "vllm", "sglang", "echo"):
        identity = identify(vllm.entry(dialect=stated), vllm.settings)
        ids.add(identity.scoring_id(get_protocol("default")))
    assert len(ids) == 3


def test_weights_of_sglang_are_a_part_of_the_revision(run: Any) -> None:
    server = run(SglangServer)
    first = open_remote(server.entry(), server.settings).revision
    server.weights = "/weights/other"
    second = open_remote(server.entry(), server.settings).revision
    server.info_path = "/nowhere"
    third = open_remote(server.entry(), server.settings).revision
    assert len({first, second, third}) == 3


def test_the_length_that_together_states_is_the_context(run: Any) -> None:
    server = run(EchoServer, form="together", max_model_len=40)
    assert open_remote(server.entry(dialect="echo"), server.settings).context == 38


@pytest.mark.parametrize("stated", [None, "vllm", "echo"])
def test_llama_cpp_is_refused_by_name(run: Any, stated: str | None) -> None:
    server = run(LlamaCppServer)
    for act in (identify, load_scorer):
        with pytest.raises(NotMeasurable, match=r"served/tiny at .*llama\.cpp's server returns"):
            act(server.entry(dialect=stated), server.settings)
    assert server.num_completions == 0


def test_an_unknown_dialect_is_refused() -> None:
    known = {"name": "x", "kind": "remote", "location": "http://h:1", "tokenizer": "a/b"}
    with pytest.raises(Exception, match="dialect: .*'vllm', 'sglang' or 'echo'"):
        make_entry({**known, "dialect": "tgi"})
    with pytest.raises(Exception, match="dialect is for models of kind remote"):
        make_entry({"name": "x", "location": "a/b", "dialect": "echo"})


def entries(answer: Answer) -> list[Any]:
    found: list[Any] = answer["meta_info"]["input_token_logprobs"]
    return found


def spoiling(edit: Any) -> Any:
    def spoil(answer: Answer, prompt: list[int]) -> object:
        edit(answer)
        return answer

    return spoil


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda answer: answer.pop("meta_info"), "has no input_token_logprobs"),
        (lambda answer: answer["meta_info"].pop("input_token_logprobs"), "has no input_token_log"),
        (lambda answer: entries(answer).clear(), r"has 0 entries for a prompt of \d+ tokens"),
        (lambda answer: entries(answer).pop(0), r"has \d+ entries for a prompt of"),
        (lambda answer: entries(answer)[4].__setitem__(1, 3), r"token 4: .* where the prompt has"),
        (lambda answer: entries(answer).__setitem__(4, None), "token 4: .* has None where"),
        (lambda answer: entries(answer)[4].__setitem__(0, None), "token 4: the log-prob.* is None"),
        (lambda answer: entries(answer)[4].__setitem__(0, -9999.0), "is -9999.0; expected"),
    ],
)
def test_what_sglang_does_not_say_is_found_out(run: Any, edit: Any, message: str) -> None:
    server = run(SglangServer, spoil=spoiling(edit))
    with pytest.raises(NotMeasurable, match=message):
        load_scorer(server.entry(), server.settings)
    assert server.num_completions == 1


def test_sglang_shows_the_last_id_of_the_vocabulary_as_0(llama_folder: str) -> None:
    """As ``_process_input_token_logprobs`` of version 0.5.23; its values are those of the token."""
    tokenizer: Any = AutoTokenizer.from_pretrained(llama_folder)
    last = len(tokenizer) - 1
    dialect = SglangDialect(tokenizer)
    rows = [[None, 5, None], [-1.5, 0, None], [-0.5, 7, None]]
    answer = {"meta_info": {"input_token_logprobs": rows, "prompt_tokens": 3}}
    assert dialect.read(answer, [5, last, 7], "big").tolist() == [1.5, 0.5]
    with pytest.raises(NotMeasurable, match=r"token 1: .* where the prompt has"):
        dialect.read(answer, [5, last - 1, 7], "big")


def lists(answer: Answer) -> Any:
    return answer["choices"][0]["logprobs"]


def put_before(answer: Answer) -> None:
    lists(answer)["tokens"].insert(0, "<s>")
    lists(answer)["token_logprobs"].insert(0, None)


def cut(answer: Answer) -> None:
    del lists(answer)["tokens"][1:9]
    del lists(answer)["token_logprobs"][1:9]


def keep_generated(answer: Answer) -> None:
    answer["choices"][0]["logprobs"] = {"tokens": ["!"], "token_logprobs": [-0.5]}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (keep_generated, "it does not repeat the prompt: echo is ignored"),
        (put_before, "it put '<s>' before the prompt, such as a start token"),
        (cut, "it cut the prompt, added tokens to it, or has another tokenizer"),
        (lambda answer: lists(answer)["tokens"].reverse(), "or has another tokenizer"),
        (lambda answer: lists(answer)["tokens"].pop(), "tokens and token_logprobs of one length"),
        (lambda answer: lists(answer).pop("token_logprobs"), "has no logprobs with tokens and"),
        (lambda answer: answer["choices"][0].update(logprobs=None), "has no logprobs with tokens"),
        (lambda answer: answer["choices"][0].update(logprobs=[-1.0]), "has no logprobs with"),
        (lambda answer: answer.pop("choices"), "has no logprobs with tokens"),
        (
            lambda answer: lists(answer)["token_logprobs"].__setitem__(3, None),
            "token 3: .* is None",
        ),
        (lambda answer: lists(answer)["token_logprobs"].__setitem__(3, -9999.0), "is -9999.0;"),
    ],
)
def test_what_an_echo_does_not_say_is_found_out(run: Any, edit: Any, message: str) -> None:
    server = run(EchoServer, spoil=spoiling(edit))
    with pytest.raises(NotMeasurable, match=message):
        load_scorer(server.entry(dialect="echo"), server.settings)
    assert server.num_completions == 1


@pytest.mark.parametrize("form", FORMS)
def test_an_echo_is_read_token_by_token(run: Any, form: str) -> None:
    server = run(EchoServer, form=form)
    model = open_remote(server.entry(dialect="echo"), server.settings)
    answer = model.dialect.ask(model.client, model.served, PROMPT)
    expected = log_probabilities(server.folder, tuple(PROMPT))[1:]
    found = model.dialect.read(answer, PROMPT, "here")
    assert found == pytest.approx(-np.array(expected, dtype=float))


@pytest.mark.parametrize(
    ("kind", "stated"), [(VllmServer, None), (SglangServer, None), (EchoServer, "echo")]
)
@pytest.mark.parametrize("more", [-9, 1])
def test_another_number_of_tokens_than_was_sent_is_refused(
    run: Any, kind: type[Engine], stated: str | None, more: int
) -> None:
    """The server cuts the prompt or adds a start token, and hides it in its lists."""

    def spoil(answer: Answer, prompt: list[int]) -> object:
        where = answer["meta_info"] if kind is SglangServer else answer.setdefault("usage", {})
        where["prompt_tokens"] = len(prompt) + more
        return answer

    server = run(kind, spoil=spoil)
    with pytest.raises(NotMeasurable, match=r"the server read \d+ tokens of a prompt of"):
        load_scorer(server.entry(dialect=stated), server.settings)


def test_a_server_without_the_path_of_a_dialect_is_named(run: Any) -> None:
    server = run(VllmServer)
    with pytest.raises(ModelLoadError, match="/generate: the server answered 404"):
        load_scorer(server.entry(dialect="sglang"), server.settings)


def test_requests_are_those_that_the_engines_take(run: Any) -> None:
    sent = {}
    for kind, stated in ((VllmServer, None), (SglangServer, None), (EchoServer, "echo")):
        server = run(kind)
        model = open_remote(server.entry(dialect=stated), server.settings)
        model.dialect.ask(model.client, model.served, np.array(PROMPT).tolist())
        sent[kind.__name__] = server.bodies[-1]
    assert json.dumps(sent)
    assert sent["SglangServer"] == {
        "input_ids": PROMPT,
        "sampling_params": {"temperature": 0.0, "max_new_tokens": 1},
        "return_logprob": True,
        "logprob_start_len": 0,
    }
    assert sent["VllmServer"]["prompt"] == sent["EchoServer"]["prompt"] == PROMPT


RECORDED = Path(__file__).with_name("vllm_0_32.json")  # answers of vLLM 0.32.0 on a CPU
RECORDED_PROMPT = [0, 54, 72, 261, 300, 5]
RECORDED_NATS = [6.4806976, 6.2103972, 5.9327302, 7.2660069, 6.5797296]


@pytest.mark.parametrize("name", ["vllm", "echo 0", "echo 1"])
def test_answers_of_a_real_vllm_are_read(llama_folder: str, name: str) -> None:
    """The model is a tiny one with random weights; 0 and 1 are ``max_tokens``."""
    answer = json.loads(RECORDED.read_text())[name]
    tokenizer: Any = AutoTokenizer.from_pretrained(llama_folder)
    dialect = DIALECTS[name.split()[0]](tokenizer)
    assert dialect.read(answer, RECORDED_PROMPT, "here") == pytest.approx(RECORDED_NATS)
    with pytest.raises(NotMeasurable, match="here"):
        dialect.read(answer, [0, *RECORDED_PROMPT], "here")


def test_an_answer_of_a_real_sglang_is_read(llama_folder: str) -> None:
    """SGLang 0.5.23 on a CPU, with another tiny model with random weights."""
    answer = json.loads(Path(__file__).with_name("sglang_0_5_23.json").read_text())
    dialect = DIALECTS["sglang"](AutoTokenizer.from_pretrained(llama_folder))
    nats = [11.030919, 6.956686, 7.697305, 8.255798, 7.849358]
    assert dialect.read(answer, RECORDED_PROMPT, "here") == pytest.approx(nats)
    with pytest.raises(NotMeasurable, match="here"):
        dialect.read(answer, [0, *RECORDED_PROMPT], "here")


def test_an_entry_states_its_dialect(settings: Settings, tmp_path: Path) -> None:
    own = settings.model_copy(update={"home": str(tmp_path)})
    command = ["--home", own.home, "models", "add", "hosted", "https://api.host.example/v1"]
    done = CliRunner().invoke(app, [*command, "--tokenizer", "a/b", "--dialect", "echo"])
    assert done.exit_code == 0, done.output
    entry = find_model("hosted", own)
    assert (entry.kind, entry.dialect) == ("remote", "echo")
