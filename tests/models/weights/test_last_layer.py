"""The last layer at chosen positions gives the losses of the whole layer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import (
    BloomConfig,
    FalconConfig,
    Gemma3TextConfig,
    GPTJConfig,
    GPTNeoXConfig,
    MixtralConfig,
    PhiConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2MoeConfig,
)

from models.scoring.forward import Forward
from models.scoring.scorer import Losses, Tokens
from models.weights.last_layer import LastLayer, pointwise_parts
from tests.models.conftest import random_model
from tests.models.scoring.test_forward import CONFIGS, HEADS, SMALL, VOCABULARY

EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 24}
GROUPS = HEADS | {"num_key_value_heads": 2}
# Configurations, and the names of the parts that run at chosen positions.
LAYERS: dict[str, tuple[PreTrainedConfig, set[str]]] = {
    "gpt2": (CONFIGS["gpt2"], {"mlp", "c_proj"}),
    "gptj": (
        GPTJConfig(
            vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=64, rotary_dim=8
        ),
        {"mlp", "q_proj", "out_proj"},
    ),
    "llama": (CONFIGS["llama"], {"mlp", "q_proj", "o_proj"}),
    "gemma3": (Gemma3TextConfig(**GROUPS, head_dim=16), {"mlp", "q_proj", "o_proj"}),
    "gpt_neox": (GPTNeoXConfig(**HEADS), {"mlp", "dense"}),
    "bloom": (
        BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=2),
        {"mlp", "dense"},
    ),
    "falcon": (FalconConfig(**SMALL, num_attention_heads=2), {"mlp", "dense"}),
    "phi": (PhiConfig(**GROUPS), {"mlp", "q_proj", "dense"}),
    "mixtral": (MixtralConfig(**GROUPS, num_local_experts=4), {"mlp", "q_proj", "o_proj"}),
    "qwen2_moe": (
        Qwen2MoeConfig(**GROUPS, **EXPERTS, num_experts=4, shared_expert_intermediate_size=24),
        {"mlp", "q_proj", "o_proj"},
    ),
}


def names_of(body: nn.Module) -> set[str]:
    names = {id(module): name for name, module in body.named_modules()}
    return {names[id(part)].rpartition(".")[2] for part in pointwise_parts(body)}


def windows(seed: int) -> tuple[list[Tokens], list[Tokens]]:
    """Return rows of which few positions are scored, as in windows that overlap."""
    dice = np.random.default_rng(seed)
    inputs = [dice.integers(0, VOCABULARY, size) for size in (40, 23, 40, 7)]
    targets = [dice.integers(0, VOCABULARY, size) for size in (10, 3, 1, 7)]
    return inputs, targets


def whole(forward: Forward, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Losses]]:
    monkeypatch.setattr(forward, "_last_layer", None)
    return forward.losses


@pytest.mark.parametrize("kind", LAYERS)
def test_losses_are_those_of_the_whole_layer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, names = LAYERS[kind]
    model = random_model(config, 6)
    assert names_of(model.base_model) == names
    forward = Forward(model)
    found = forward.losses(*windows(1))
    computed = count_rows(forward)
    forward.losses(*windows(1))
    # Bloom hands its parts the residual too, so they are computed whole.
    assert set(computed) == {160 if kind == "bloom" else 10 + 3 + 1 + 7}
    expected = whole(forward, monkeypatch)(*windows(1))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def count_rows(forward: Forward) -> list[int]:
    """Return a list to which the first part of the last layer adds its number of positions."""
    seen: list[int] = []
    part = parts_of_replaced(forward)[0]
    inner = part.forward.args[0]

    def counting(states: torch.Tensor, *others: Any) -> Any:
        seen.append(states.shape[:-1].numel())
        return inner(states, *others)

    run = part.forward.func
    part.forward = lambda *given: run(counting, *given)
    return seen


def parts_of_replaced(forward: Forward) -> list[nn.Module]:
    assert forward._last_layer is not None
    return forward._last_layer._parts


def test_all_positions_are_computed_where_most_are_scored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forward = Forward(random_model(CONFIGS["gpt2"], 6))
    ids = np.arange(40) % VOCABULARY
    seen = count_rows(forward)
    (found,) = forward.losses([ids], [ids[1:]])
    assert seen == [40]
    (expected,) = whole(forward, monkeypatch)([ids], [ids[1:]])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["mamba", "opt"])
def test_other_structures_are_scored_as_before(kind: str) -> None:
    forward = Forward(random_model(CONFIGS[kind], 2))
    inputs, targets = windows(2)
    together = forward.losses(inputs, targets)
    alone = [
        forward.losses([row], [wanted])[0] for row, wanted in zip(inputs, targets, strict=True)
    ]
    for ours, theirs in zip(together, alone, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


class Mixing(nn.Module):
    """A feed-forward part that also reads the position before, as RWKV's does."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, states: torch.Tensor) -> Any:
        before = nn.functional.pad(states, (0, 0, 1, 0))[:, :-1]
        return self.inner(states + before)


def test_a_part_that_mixes_positions_is_computed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(CONFIGS["llama"], 6)
    model.model.layers[-1].mlp = Mixing(model.model.layers[-1].mlp)
    forward = Forward(model)
    assert forward._last_layer is None
    assert all("forward" not in part.__dict__ for part in model.modules())
    inputs, targets = windows(3)
    found = forward.losses(inputs, targets)
    with torch.inference_mode():
        logits = model(input_ids=torch.from_numpy(inputs[0])[None]).logits[0, -10:]
    expected = logits.logsumexp(-1) - logits.gather(-1, torch.from_numpy(targets[0])[:, None])[:, 0]
    np.testing.assert_allclose(found[0], expected.numpy(), rtol=1e-4)


def test_a_part_with_a_hook_of_its_own_is_left_alone() -> None:
    model = random_model(CONFIGS["llama"], 6)
    part = model.model.layers[-1].mlp
    hooked = part.forward
    part.forward = hooked
    assert part not in pointwise_parts(model.base_model)


def test_threads_have_places_of_their_own() -> None:
    model: PreTrainedModel = random_model(CONFIGS["llama"], 6)
    last_layer = LastLayer(model.base_model)
    ids = torch.arange(80).reshape(2, 40)
    seen: list[torch.Tensor] = []

    def other() -> None:
        with torch.inference_mode():
            seen.append(model.base_model(input_ids=ids)[0])

    with torch.inference_mode():
        expected = model.base_model(input_ids=ids)[0]
        with last_layer.at(torch.tensor([3, 70]), 80):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            few = model.base_model(input_ids=ids)[0]
    assert torch.allclose(seen[0], expected, atol=1e-5)
    assert torch.allclose(few.flatten(0, 1)[[3, 70]], expected.flatten(0, 1)[[3, 70]], atol=1e-5)
    assert not torch.allclose(few, expected, atol=1e-3)
