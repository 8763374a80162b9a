import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    OPTConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from core.errors import NotMeasurable
from models.scoring.forward import Forward
from models.scoring.scorer import DeviceFull, Losses, Tokens
from tests.models.conftest import random_model

VOCABULARY = 400
SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}
HEADS = SMALL | {"intermediate_size": 48, "num_attention_heads": 2}
CONFIGS: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(**HEADS),
    "gpt2": GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=64),
    "mamba": MambaConfig(**SMALL, state_size=8, expand=2),
    # Its body and head cannot be separated by name.
    "opt": OPTConfig(
        **SMALL, ffn_dim=48, num_attention_heads=2, word_embed_proj_dim=32,
        max_position_embeddings=64,
    ),
    # Its head caps the logits.
    "gemma2": Gemma2Config(
        **HEADS, num_key_value_heads=2, head_dim=16, final_logit_softcapping=0.5
    ),
}  # fmt: skip


def make_model(kind: str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    # With larger weights, a recurrence amplifies rounding errors.
    return random_model(CONFIGS[kind], 2 if kind == "mamba" else 6).to(dtype)


@pytest.fixture(scope="module")
def forwards() -> dict[str, Forward]:
    return {kind: Forward(make_model(kind)) for kind in CONFIGS}


def in_float64(model: PreTrainedModel, inputs: Tokens, targets: Tokens) -> Losses:
    with torch.inference_mode():
        logits = model.double()(input_ids=torch.from_numpy(inputs)[None]).logits[0]
    losses = logits.logsumexp(-1)[-len(targets) :] - logits[-len(targets) :].gather(
        -1, torch.from_numpy(targets)[:, None]
    ).squeeze(-1)
    return losses.numpy()


@st.composite
def rows(draw: st.DrawFn) -> tuple[Tokens, Tokens]:
    length = draw(st.integers(1, 60))
    scored = draw(st.integers(1, length))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    return (generator.integers(0, VOCABULARY, length), generator.integers(0, VOCABULARY, scored))


@pytest.mark.parametrize("kind", CONFIGS)
@hypothesis_settings(max_examples=10, deadline=None)
@given(batch=st.lists(rows(), min_size=1, max_size=6), data=st.data())
def test_a_row_s_losses_do_not_depend_on_what_shares_its_batch(kind, forwards, batch, data):
    forward = forwards[kind]
    order = data.draw(st.permutations(range(len(batch))))
    inputs, targets = zip(*batch, strict=True)
    together = forward.losses(inputs, targets)
    shuffled = forward.losses([inputs[row] for row in order], [targets[row] for row in order])
    for place, row in enumerate(order):
        (alone,) = forward.losses([inputs[row]], [targets[row]])
        assert alone.dtype == np.float64
        assert alone.shape == targets[row].shape
        assert together[row].sum() == pytest.approx(alone.sum(), rel=1e-6)
        assert shuffled[place].sum() == pytest.approx(alone.sum(), rel=1e-6)
        np.testing.assert_allclose(together[row], alone, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("kind", CONFIGS)
def test_losses_are_those_of_the_whole_model_in_float64(kind, forwards):
    generator = np.random.default_rng(0)
    inputs = [generator.integers(0, VOCABULARY, length) for length in (50, 9, 33)]
    targets = [generator.integers(0, VOCABULARY, length) for length in (50, 2, 8)]
    exact = make_model(kind)
    assert "NewGELU" not in str(forwards[kind].model)
    for found, given_inputs, wanted in zip(
        forwards[kind].losses(inputs, targets), inputs, targets, strict=True
    ):
        np.testing.assert_allclose(found, in_float64(exact, given_inputs, wanted), rtol=1e-5)


def test_only_heads_that_are_one_matrix_product_are_taken_for_one(forwards):
    ways = {
        kind: (each._head is not None, each.linear is not None) for kind, each in forwards.items()
    }
    assert ways == {
        "llama": (True, True),
        "gpt2": (True, True),
        "mamba": (True, True),
        "opt": (False, False),
        "gemma2": (True, False),
    }
    assert forwards["llama"].max_batch_tokens is None
    assert forwards["opt"].max_batch_tokens == 2**30 // (4 * VOCABULARY)


def test_a_weak_cap_on_small_logits_is_seen():
    """A cap of 30 changes a fresh model's logits by less than float rounding."""
    config = Gemma2Config(**(CONFIGS["gemma2"].to_dict() | {"final_logit_softcapping": 30.0}))
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    assert Forward(model).linear is None


@pytest.mark.parametrize("kind", ["llama", "opt", "gemma2"])
def test_an_alphabet_renormalises(kind, forwards):
    generator = np.random.default_rng(1)
    alphabet = generator.permutation(VOCABULARY)[:256]
    inputs = generator.integers(0, VOCABULARY, 40)
    targets = alphabet[generator.integers(0, 256, 12)]
    (found,) = forwards[kind].losses([inputs], [targets], alphabet)
    with torch.inference_mode():
        logits = make_model(kind).double()(input_ids=torch.from_numpy(inputs)[None]).logits[0, -12:]
    among = logits[:, torch.from_numpy(alphabet)].softmax(-1)
    place = [int(np.flatnonzero(alphabet == target)[0]) for target in targets]
    np.testing.assert_allclose(found, -among[range(12), place].log().numpy(), rtol=1e-5)


class _Toy(PreTrainedModel):
    config_class = PreTrainedConfig

    def __init__(self, sees_all: bool = False) -> None:
        super().__init__(PreTrainedConfig())
        self.embedding = torch.nn.Embedding(12, 4)
        self.sees_all = sees_all

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self.embedding

    def forward(self, input_ids: torch.Tensor, **_: object) -> tuple[torch.Tensor]:
        if input_ids.numel() > 16:
            raise torch.OutOfMemoryError("full")
        seen = input_ids.sum(-1, keepdim=True) if self.sees_all else input_ids
        return (seen[..., None].float() * torch.ones(*input_ids.shape, 12),)


def test_full_memory_is_told_and_passes():
    forward = Forward(_Toy())
    eight = np.arange(8)
    with pytest.raises(DeviceFull, match="full"):
        forward.losses([eight] * 3, [eight] * 3)
    for nats in forward.losses([eight] * 2, [eight] * 2):
        np.testing.assert_allclose(nats, np.log(12), rtol=1e-6)


def test_a_model_that_looks_ahead_is_refused():
    with pytest.raises(NotMeasurable, match="later tokens"):
        Forward(_Toy(sees_all=True))


class LargestResult(TorchDispatchMode):
    """Notes the number of elements of the largest new tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.found = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and not result._is_view():
            self.found = max(self.found, result.numel())
        return result


def test_a_tied_head_of_262144_rows_makes_no_row_of_logits_whole() -> None:
    """Whole logits of 96 tokens are 25 million numbers; tiles of 2,048 columns are below a million.

    The losses are those of the whole logits in float64.
    """
    vocabulary = 262_144
    config = Gemma3TextConfig(
        vocab_size=vocabulary, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, head_dim=8, max_position_embeddings=128,
    )  # fmt: skip
    model = random_model(config, 4)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    forward = Forward(model)
    ids = np.random.default_rng(1).integers(0, vocabulary, 97)
    with LargestResult() as largest:
        (found,) = forward.losses([ids[:-1]], [ids[1:]])
    assert 0 < largest.found < 1_000_000
    np.testing.assert_allclose(found, in_float64(model, ids[:-1], ids[1:]), rtol=1e-5)
