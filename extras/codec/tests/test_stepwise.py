import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from transformers import (
    GPT2Config,
    LlamaConfig,
    Mamba2Config,
    MambaConfig,
    MistralConfig,
    MixtralConfig,
    OpenAIGPTConfig,
    PreTrainedConfig,
    PreTrainedModel,
    RwkvConfig,
)

from core.errors import ModelLoadError, NotMeasurable
from extras.codec.stepwise import StepwiseModel, decode_chunks, encode_chunks, probe_digest
from tests.models.conftest import random_model

VOCABULARY = 300
SHAPE = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}
HEADS = {**SHAPE, "num_attention_heads": 2, "intermediate_size": 48}
KINDS: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(**HEADS, max_position_embeddings=64),
    "gpt2": GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=64),
    "sliding-window": MistralConfig(**HEADS, num_key_value_heads=1, sliding_window=6),
    "experts": MixtralConfig(**HEADS, num_key_value_heads=1, num_local_experts=4),
    "mamba": MambaConfig(**SHAPE, state_size=8),
    "mamba2": Mamba2Config(**SHAPE, state_size=8, num_heads=4, head_dim=16, n_groups=1),
    "rwkv": RwkvConfig(**SHAPE, attention_hidden_size=32, context_length=64),
    "no-cache": OpenAIGPTConfig(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=64
    ),
}
# transformers 5.23 mixes up the rows of an RWKV that is fed one token each.
ONE_ROW = {"rwkv"}


def build(kind: str) -> PreTrainedModel:
    return random_model(KINDS[kind], 4)


@pytest.fixture(scope="module")
def models() -> dict[str, StepwiseModel]:
    return {kind: StepwiseModel(build(kind)) for kind in KINDS}


def silent(num_tokens: int) -> None:
    """Nobody listens."""


def chunks_of(*lengths: int) -> list[np.ndarray]:
    generator = np.random.default_rng(sum(lengths))
    return [generator.integers(0, VOCABULARY, length) for length in lengths]


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_model_gives_its_chunks_back_at_the_cost_of_a_parallel_pass(kind, models):
    stepwise = models[kind]
    assert stepwise.keeps_state == (kind != "no-cache")
    assert (stepwise.max_rows == 1) == (kind in ONE_ROW)
    chunks = chunks_of(37) if kind in ONE_ROW else chunks_of(37, 1, 20)
    coded = encode_chunks(stepwise, chunks, 2, silent)
    codes = [(chunk.code, len(ids)) for chunk, ids in zip(coded, chunks, strict=True)]
    decoded = decode_chunks(stepwise, codes, 2, silent)
    assert [ids.tolist() for ids in decoded] == [ids.tolist() for ids in chunks]
    for chunk, ids in zip(coded, chunks, strict=True):
        inputs = torch.tensor([[2, *ids[:-1].tolist()]])
        with torch.no_grad():
            logits = build(kind)(input_ids=inputs, use_cache=False)[0][0].double()
        nats = -float(logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).sum())
        assert chunk.nats == pytest.approx(nats, rel=1e-4)
        assert chunk.floored_bits == pytest.approx(0, abs=1e-9)
        assert len(chunk.code) <= nats / math.log(2) / 8 * 1.001 + 2


@hypothesis_settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    chunks=st.lists(
        st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=24), min_size=1, max_size=5
    ),
    has_start=st.booleans(),
    kind=st.sampled_from(["llama", "gpt2", "mamba", "experts"]),
)
def test_any_group_of_chunks_comes_back(chunks, has_start, kind, models):
    arrays = [np.array(chunk) for chunk in chunks]
    first = 0 if has_start else range(VOCABULARY)
    coded = encode_chunks(models[kind], arrays, first, silent)
    for chunk, ids in zip(coded, chunks, strict=True):
        bits = chunk.nats / math.log(2) - chunk.floored_bits
        assert len(chunk.code) <= bits / 8 * 1.00001 + 2
        if not has_start and len(ids) == 1:
            assert chunk.nats == pytest.approx(math.log(VOCABULARY))
    codes = [(chunk.code, len(ids)) for chunk, ids in zip(coded, chunks, strict=True)]
    decoded = decode_chunks(models[kind], codes, first, silent)
    assert [ids.tolist() for ids in decoded] == chunks


def test_an_uneven_set_of_first_tokens_is_coded_by_place(models):
    coded = encode_chunks(models["llama"], chunks_of(1), [7, 9, *range(20, 290)], silent)
    assert coded[0].nats == pytest.approx(math.log(272))
    assert decode_chunks(
        models["llama"], [(coded[0].code, 1)], [7, 9, *range(20, 290)], silent
    ) == [chunks_of(1)[0]]


def test_each_step_reports_the_tokens_it_coded(models):
    seen: list[int] = []
    encode_chunks(models["llama"], chunks_of(4, 2, 1), 0, seen.append)
    assert seen == [3, 2, 1, 1]


def test_a_wrong_code_gives_other_tokens_and_no_crash(models):
    chunks = chunks_of(30, 30)
    coded = encode_chunks(models["llama"], chunks, 0, silent)
    codes = [(b"\xff" * len(coded[0].code), 30), (b"", 30)]
    decoded = decode_chunks(models["llama"], codes, 0, silent)
    assert [len(ids) for ids in decoded] == [30, 30]
    assert decoded[0].tolist() != chunks[0].tolist()


def test_a_token_rarer_than_the_floor_is_coded_for_less_and_counted():
    model = build("llama")
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(1000)
    [chunk] = encode_chunks(StepwiseModel(model), chunks_of(30), 0, silent)
    bits = chunk.nats / math.log(2)
    assert chunk.floored_bits > 0
    assert len(chunk.code) == pytest.approx((bits - chunk.floored_bits) / 8, abs=2)


def test_the_probe_tells_weights_and_shapes_apart_and_nothing_else(models):
    digest = probe_digest(models["llama"], 3)
    assert digest == probe_digest(StepwiseModel(build("llama")), 3)
    assert digest != probe_digest(models["llama"], 4)
    other = build("llama")
    with torch.no_grad():
        weight = next(other.parameters())
        weight[40, 0] = torch.nextafter(weight[40, 0], torch.tensor(9.0))
    found = probe_digest(StepwiseModel(other), 3)
    assert found == digest  # token 40 is not among the few that are fed …
    with torch.no_grad():
        weight[5] = torch.nextafter(weight[5], torch.tensor(9.0))
    assert probe_digest(StepwiseModel(other), 3) != digest  # … token 5 is


def test_a_model_without_finite_logits_codes_nothing():
    model = build("llama")
    with torch.no_grad():
        model.get_output_embeddings().weight[7] = math.nan
    with pytest.raises(NotMeasurable, match="not finite"):
        encode_chunks(StepwiseModel(model), chunks_of(3), 0, silent)


@pytest.mark.parametrize(
    ("module", "size", "says"),
    [
        ("model.layers.0.mlp.up_proj", (5, 5), "does not run"),
        ("lm_head", (32, VOCABULARY + 1), "could not be read"),  # predicts what it cannot read
    ],
)
def test_a_model_that_cannot_run_is_refused(module, size, says):
    model = build("llama")
    model.set_submodule(module, torch.nn.Linear(*size))
    with pytest.raises(ModelLoadError, match=says):
        StepwiseModel(model)
