"""Faults of servers that were reported: one is planted at a time, and the probe finds it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import NotMeasurable
from core.settings import Settings
from extras.remote_scoring.engine import open_remote
from extras.remote_scoring.probe import LARGEST, LONG, SHORT, TOLERANCE, plan_probe
from extras.remote_scoring.reference import open_reference
from extras.remote_scoring.tests.engines import Engine, Plant, Values, VllmServer, log_probabilities
from models.backends import load_scorer
from models.scoring.text_model import text_model_of
from simulator.server import serve_sites
from tests.models.conftest import byte_level_bpe, llama_config, save_model

BLOCK = 16
STEP = 24
FLOOR = -6.75


@pytest.fixture
def server(llama_folder: str, settings: Settings) -> Iterator[VllmServer]:
    state = VllmServer(llama_folder, settings)
    with serve_sites([state]) as state.web:
        yield state


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of the same tokenizer and shape with other weights."""
    folder = tmp_path_factory.mktemp("models") / "other"
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    return save_model(folder, llama_config(), byte_level_bpe(), scale=5, **special)


def probed(server: Engine, tokenizer: str) -> str:
    scorer: Any = load_scorer(server.entry(tokenizer=tokenizer), server.settings)
    found: str = scorer.facts.versions["probe"]
    return found


def num_known(server: Engine, prompt: list[int]) -> int:
    """Return how many first tokens of a prompt are in a cache of whole blocks."""
    known = 0
    for earlier, _ in server.asked:
        same = np.array(earlier[: len(prompt)]) == np.array(prompt[: len(earlier)])
        shared = len(same) if same.all() else int(same.argmin())
        known = max(known, shared // BLOCK * BLOCK)
    return min(known, (len(prompt) - 1) // BLOCK * BLOCK)


def stale(server: Engine, prompt: list[int], values: Values) -> Values:
    """vllm#42019: tokens of the cache have what the buffer holds of the prompt before."""
    known = num_known(server, prompt)
    if not known:
        return values
    buffer = server.asked[-1][1]
    return [values[0], *buffer[1:known], *values[min(known, len(buffer)) :]][: len(values)]


def zeroed(server: Engine, prompt: list[int], values: Values) -> Values:
    """vllm#42245: tokens of the cache have zeros."""
    return zero(values, num_known(server, prompt))


def always_zeroed(server: Engine, prompt: list[int], values: Values) -> Values:
    """The same on a server whose cache holds the probe of an earlier run."""
    return zero(values, (len(prompt) - 1) // BLOCK * BLOCK)


def zero(values: Values, known: int) -> Values:
    return [v if v is None or place >= known else 0.0 for place, v in enumerate(values)]


def by_neighbour(server: Engine, prompt: list[int], values: Values) -> Values:
    """The state of the prompt before leaks into the first tokens."""
    leak = server.asked[-1][0][-1] / 100 if server.asked else 0.0
    return [values[0], *[v and v - leak for v in values[1:4]], *values[4:]]


def by_batch(server: Engine, prompt: list[int], values: Values) -> Values:
    """vllm#51187: kernels for larger batches round otherwise; here by the number of requests."""
    noise = np.random.default_rng(len(server.asked)).normal(0, 0.2, len(values))
    return [v if v is None else v - abs(n) for v, n in zip(values, noise, strict=True)]


def by_steps(server: Engine, prompt: list[int], values: Values) -> Values:
    """Chunked prefill: the token at a step's end is wrong; steps go on over all prompts."""
    before = sum(len(earlier) for earlier, _ in server.asked)
    return [
        v if v is None or (before + place) % STEP else v - 3.0 for place, v in enumerate(values)
    ]


def at_fixed_steps(server: Engine, prompt: list[int], values: Values) -> Values:
    """Chunked prefill: the token at a step's end is wrong, at the same places each time."""
    return [v if v is None or place % STEP else v - 3.0 for place, v in enumerate(values)]


def cut_to_top(server: Engine, prompt: list[int], values: Values) -> Values:
    """Tokens that are not among the most likely have a floor."""
    return [v if v is None else max(v, FLOOR) for v in values]


def shared_out(server: Engine, prompt: list[int], values: Values) -> Values:
    """The log-probabilities are those after a cut, so the rest is larger."""
    return [v if v is None else min(0.0, v + 0.2) for v in values]


def one_ahead(server: Engine, prompt: list[int], values: Values) -> Values:
    return [None, *values[2:], -1.0]


def one_behind(server: Engine, prompt: list[int], values: Values) -> Values:
    return [None, -1.0, *values[1:-1]]


def without_start(server: Engine, prompt: list[int], values: Values) -> Values:
    """A start token at the beginning is dropped."""
    if prompt[0] != server.tokenizer.bos_token_id:
        return values
    return [None, -6.0, *log_probabilities(server.folder, tuple(prompt[1:]))[1:]]


def with_start(server: Engine, prompt: list[int], values: Values) -> Values:
    """A start token is put before each prompt that has none."""
    start = server.tokenizer.bos_token_id
    if prompt[0] == start:
        return values
    return [None, *log_probabilities(server.folder, (start, *prompt))[2:]]


def with_two_starts(server: Engine, prompt: list[int], values: Values) -> Values:
    """A start token is put before each prompt, also where there is one."""
    start = server.tokenizer.bos_token_id
    return [None, *log_probabilities(server.folder, (start, *prompt))[2:]]


def cut_at_the_beginning(server: Engine, prompt: list[int], values: Values) -> Values:
    """Only the last 32 tokens of a long prompt are read; the values of the others are made up."""
    kept = tuple(prompt[-32:])
    return [*values[:-31], *log_probabilities(server.folder, kept)[1:]]


def summed(server: Engine, prompt: list[int], values: Values) -> Values:
    """Each value is that of the whole text so far (cumulative_logprob)."""
    return [None, *np.cumsum([value or 0.0 for value in values[1:]]).tolist()]


def zero_at_the_end(server: Engine, prompt: list[int], values: Values) -> Values:
    """The entry of the last token is filled with zero."""
    return [*values[:-1], 0.0]


def rounded(step: float) -> Plant:
    return lambda engine, prompt, values: [v and step * round(v / step) for v in values]


def warmer(server: Engine, prompt: list[int], values: Values) -> Values:
    """A temperature is applied to the prompt, too; here as a straight line."""
    return [v and 0.7 * v - 1.5 for v in values]


OF_CACHE = "depend on order, on neighbours or on what a cache of prefixes holds; the largest"
ZEROS = "all tokens have a loss of exactly 0 nats; .* or returns a fixed value for tokens in its"


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (stale, OF_CACHE),
        (zeroed, f"{OF_CACHE}|{ZEROS}"),
        (by_neighbour, OF_CACHE),
        (by_batch, OF_CACHE),
        (by_steps, OF_CACHE),
        (always_zeroed, ZEROS),
        (cut_to_top, r"unlikely tokens have a loss of exactly 6.75 nats; the server cuts"),
        (one_ahead, r"each value belongs to the token after \(off by one\)"),
        (one_behind, r"each value belongs to the token before \(off by one\)"),
        (without_start, "with a start token and without it, so the server drops the token or adds"),
        (with_start, "with a start token and without it, so the server drops the token or adds"),
        (cut_at_the_beginning, "after another beginning, so the server cuts long prompts, or"),
        (summed, "no token has a smaller loss than .* each value is a sum over the tokens so far"),
        (zero_at_the_end, "the last token of each prompt has a loss of exactly 0 nats"),
        (rounded(0.2), "the server rounds the .* difference is 0.10 nats a token, RMS 0.058"),
        (rounded(1), "the server rounds the log-probabilities, so that most of them are equal"),
    ],
)
def test_a_fault_is_found_without_the_weights(
    server: VllmServer, tokenizer_alone: str, plant: Plant, message: str
) -> None:
    server.plant = plant
    with pytest.raises(NotMeasurable, match=message) as caught:
        probed(server, tokenizer_alone)
    assert str(caught.value).startswith(f"served/tiny at {server.address}: ")


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (at_fixed_steps, "the same weights here have other losses: the server has other weights"),
        (shared_out, "the same weights here have other losses: the server has other weights"),
        (warmer, "the same weights here have other losses: .* the distribution .temperature"),
        (with_two_starts, "have other losses: the server adds a second start token"),
    ],
)
def test_a_fault_that_looks_like_other_weights_is_found_with_the_weights(
    server: VllmServer, tokenizer_alone: str, plant: Plant, message: str
) -> None:
    server.plant = plant
    assert "not compared with the weights, which are not on this" in probed(server, tokenizer_alone)
    with pytest.raises(NotMeasurable, match=message):
        probed(server, server.folder)


def test_rounding_that_is_tolerated_is_recorded_and_told(
    server: VllmServer, tokenizer_alone: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.plant = rounded(0.1)
    found = probed(server, tokenizer_alone)
    assert found.startswith("largest difference 0.05 nats a token, RMS 0.029, of 32 prompts")
    assert "largest difference 0.05 nats" in caplog.text


def test_other_weights_than_named_are_refused(server: VllmServer, other_folder: str) -> None:
    with pytest.raises(NotMeasurable, match="has other weights than those beside the entry's"):
        probed(server, other_folder)


@pytest.mark.parametrize(
    ("nats", "is_refused"), [(TOLERANCE * 0.8, False), (TOLERANCE * 1.2, True)]
)
def test_the_tolerance_is_the_stated_one(
    server: VllmServer, nats: float, is_refused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is wrong by the same number of nats at every token."""
    server.plant = lambda engine, prompt, values: [v and v - nats for v in values]
    if is_refused:
        with pytest.raises(NotMeasurable, match=r"RMS 0.060 \(tolerated: 0.5 and 0.05\); vLLM: "):
            probed(server, server.folder)
    else:
        assert "largest difference 0.04 nats a token, RMS 0.04, of 32" in probed(
            server, server.folder
        )
        assert "largest difference 0.04 nats" in caplog.text  # told, since it is not small


def test_one_token_that_is_wrong_is_enough(server: VllmServer) -> None:
    wrong = plan_of(server).prompts[9].tolist()

    def plant(engine: Engine, prompt: list[int], values: Values) -> Values:
        return [*values[:-1], (values[-1] or 0.0) - 1.2 * LARGEST] if prompt == wrong else values

    server.plant = plant
    with pytest.raises(NotMeasurable, match="the largest difference is 0.60 nats a token, RMS 0.0"):
        probed(server, server.folder)


def test_the_difference_is_recorded_with_a_model(server: VllmServer) -> None:
    found = probed(server, server.folder)
    assert found.startswith("largest difference ")
    assert "of 32 prompts of 65 to 65 tokens alone and in two orders; compared with the" in found
    largest = float(found.split()[2])
    assert 0 < largest < 1e-3  # float32 here, float64 there
    assert server.num_completions == 3 * 32 + 1 + num_of_check_rows(server)


def num_of_check_rows(server: Engine) -> int:
    """Return the number of short prompts, with which the scorer tests rows."""
    lengths = [len(prompt) for prompt, _ in server.asked]
    return sum(length not in (64, 65) for length in lengths)


def plan_of(server: Engine) -> Any:
    model = open_remote(server.entry(), server.settings)
    return plan_probe(text_model_of(model.tokenizer), model.context)


def test_prompts_are_longer_than_three_blocks_and_share_beginnings(server: VllmServer) -> None:
    plan = plan_of(server)
    assert len(plan.prompts) == len(plan.shared) == 32
    assert {len(prompt) for prompt in plan.prompts} == {65}
    server.max_model_len = None
    plan = plan_of(server)
    assert {len(prompt) for prompt in plan.prompts} == {SHORT, LONG}
    assert len({prompt.tobytes() for prompt in plan.prompts}) == 32
    for number, (prompt, shared) in enumerate(zip(plan.prompts, plan.shared, strict=True)):
        stem = plan.prompts[number - number % 8]
        assert prompt[:shared].tolist() == stem[:shared].tolist()
        assert number % 8 == 0 or prompt[shared] != stem[shared]
        assert prompt[0] == 0  # the start token
    assert max(shared for shared in plan.shared if shared < SHORT) > 3 * 64


def test_weights_that_cannot_be_used_are_told(
    tokenizer_alone: str, llama_folder: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_reference(Path(tokenizer_alone), settings).engine is None
    found = open_reference(Path(llama_folder), settings)
    assert found.engine is not None and "in float32" in found.about
    monkeypatch.setattr("extras.remote_scoring.reference._MOST_BYTES", 1000)
    large = open_reference(Path(llama_folder), settings)
    assert large.engine is None and "bytes" in large.about
