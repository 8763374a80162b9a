"""An option's likelihood depends on no other prompt, nor a text, at lengths of a model's change."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
import torch
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from models.generation.cached_rows import RowModel
from models.options.branches import SharedCache, SharedRow, Tree
from models.scoring.forward import Forward
from models.scoring.scorer import Tokens
from tests.models.conftest import random_model
from tests.models.scoring.test_lengths import dynamic, longrope

_LENGTH = 32  # both models change after it
CONFIGS = {"longrope": longrope, "dynamic": dynamic}


def draw(length: int, seed: int) -> Tokens:
    return np.random.default_rng(seed).integers(0, 400, length)


def alone(config: PreTrainedConfig, prefix: Tokens, branch: Tokens) -> npt.NDArray[np.float64]:
    """Return the losses of a branch with a new model, which has read no other row."""
    model = random_model(config).double()
    row = np.concatenate([prefix, branch])
    with torch.no_grad():
        log = model(input_ids=torch.tensor(row[None, :-1])).logits[0].log_softmax(-1)
    places = range(len(prefix) - 1, len(row) - 1)
    nats: npt.NDArray[np.float64] = -log[places, branch].numpy()
    return nats


@pytest.mark.parametrize("kind", CONFIGS)
def test_letters_after_prompts_on_both_sides(kind: str) -> None:
    letters = tuple(np.array([token]) for token in (11, 12, 13))
    trees = [Tree(draw(size, size), letters) for size in (25, 45, 31, 60, 33, 45)]
    row = SharedRow(Forward(random_model(CONFIGS[kind]()).double()), None)
    for tree, found in zip(trees, row.losses(trees), strict=True):
        for letter, own in zip(letters, found, strict=True):
            assert own == pytest.approx(alone(CONFIGS[kind](), tree.prefix, letter), rel=1e-9)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize(("prefix", "is_taken"), [(20, True), (30, False), (50, None)])
def test_options_after_a_prompt_that_was_read_once(
    kind: str, prefix: int, is_taken: bool | None
) -> None:
    branches = (draw(6, 1), draw(1, 2), draw(4, 3))
    forward = Forward(random_model(CONFIGS[kind]()).double())
    cache = SharedCache(forward)
    tree = Tree(draw(prefix, 4), branches)
    assert cache.takes(tree) is (kind == "longrope" if is_taken is None else is_taken)
    if not cache.takes(tree):
        return
    forward.losses([draw(60, 5)], [draw(60, 6)])  # a long row before
    for branch, own in zip(branches, cache.losses([tree])[0], strict=True):
        assert own == pytest.approx(alone(CONFIGS[kind](), tree.prefix, branch), rel=1e-9)


def test_a_line_longer_than_a_window_beside_options_with_a_mask() -> None:
    config = AutoConfig.for_model(
        "mistral", vocab_size=400, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, intermediate_size=48, sliding_window=48,
    )  # fmt: skip
    letters = tuple(np.array([token]) for token in (11, 12))
    trees = [Tree(draw(70, 1), letters), Tree(draw(30, 2), (draw(4, 3), draw(3, 4)))]
    row = SharedRow(Forward(random_model(config).double()), None)
    assert row.is_exact and all(map(row.takes, trees))
    for tree, found in zip(trees, row.losses(trees), strict=True):
        for branch, own in zip(tree.branches, found, strict=True):
            assert own == pytest.approx(alone(config, tree.prefix, branch), rel=1e-9)


def greedy(model: PreTrainedModel, prompt: Sequence[int], count: int) -> list[int]:
    """Continue a row token by token; each token is of a pass over the whole row."""
    row = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            model(input_ids=torch.tensor([row[:1]]), use_cache=False)  # a dynamic model forgets
            logits = model(input_ids=torch.tensor([row]), use_cache=False).logits[0, -1]
            row.append(int(logits.argmax()))
    return row[len(prompt) :]


@pytest.mark.parametrize("kind", CONFIGS)
def test_texts_that_grow_beyond_the_length(kind: str) -> None:
    model = random_model(CONFIGS[kind]()).double()
    owner = RowModel(model)
    assert not owner.may_batch(40)
    for size in (27, 50, 40):  # the last comes after a longer row
        prompt = draw(size, size)
        expected = greedy(random_model(CONFIGS[kind]()).double(), prompt.tolist(), 12)
        rows = owner.start([prompt], 12)
        found = []
        for _ in range(12):
            found.append(int(rows.logits[0].argmax()))
            rows.read(torch.tensor(found[-1:]))
        assert found == expected, f"a prompt of {size} tokens"
