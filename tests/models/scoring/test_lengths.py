"""A document's loss does not depend on the documents beside it, at any length."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from transformers import (
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from core.errors import NotMeasurable
from models.scoring.forward import Forward
from models.scoring.lengths import Switch, find_switch, sides, stated_lengths
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Losses, ScorerFacts, Tokens
from models.scoring.text_model import TextModel, text_model_of
from models.scoring.token_scorer import CausalLM, TokenIdentity, TokenScorer
from tests.models.conftest import (
    Plain,
    byte_level_bpe,
    llama_config,
    nats,
    random_model,
    save_model,
)

_SHORT = 32  # maximum length of rows with the short factors
_LETTERS = "QXZJKVUHQZXKJVQUXHZ" * 5  # in no merge, so each is a token
_TEXTS = [_LETTERS[:size] for size in (12, 30, 36, 60, 31)]


def longrope() -> Phi3Config:
    return Phi3Config(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=128,
        original_max_position_embeddings=_SHORT, bos_token_id=0, eos_token_id=1, pad_token_id=0,
        rope_parameters={
            "rope_type": "longrope", "rope_theta": 10000.0, "factor": 4.0,
            "short_factor": [1.0] * 8, "long_factor": [2.0 + n for n in range(8)],
        },
    )  # fmt: skip


def dynamic() -> LlamaConfig:
    return llama_config(
        max_position_embeddings=32,
        rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0},
    )


@pytest.fixture(scope="module")
def phi_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "tiny-phi"
    return save_model(folder, longrope(), byte_level_bpe(), bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize("protocol", ["own-context", "whole-document", "lm-eval-no-bos"])
def test_documents_on_both_sides_of_a_length_are_scored_as_alone(
    phi_folder, protocol, settings, batch_of
):
    model = CausalLM.load(phi_folder, None, settings)
    plain = Plain(phi_folder)
    rows = [plain.ids(text, special=False) for text in _TEXTS]
    sizes = [len(row) for row in rows]
    assert min(sizes) < _SHORT < max(sizes)
    assert any(0.8 * _SHORT < size <= _SHORT for size in sizes)  # would share a longer row's batch
    expected = [sum(plain.nats([0, *row])) for row in rows]
    assert nats(model, batch_of(*_TEXTS), protocol) == pytest.approx(expected, rel=1e-5)
    alone = [nats(model, batch_of(text), protocol)[0] for text in _TEXTS]
    assert alone == pytest.approx(expected, rel=1e-5)


def test_only_cells_with_longer_rows_have_another_identity(phi_folder, settings):
    identity = CausalLM.identify(phi_folder, None, settings)
    former = TokenIdentity("m", identity.revision, identity.context, identity.numerics)
    for name, is_same in (("disjoint-32", True), ("own-context", False), ("disjoint-64", False)):
        protocol = get_protocol(name)
        assert (identity.scoring_id(protocol) == former.scoring_id(protocol)) is is_same


def test_dynamic_frequencies_are_those_of_the_row_alone():
    """Rows are longer here than the context, as another program may give them."""
    tokens = np.random.default_rng(3).integers(0, 400, 90)
    rows = [tokens[:size] for size in (60, 24, 90, 33, 60, 31, 40)]
    expected = []
    for row in rows:
        model = random_model(dynamic()).double()  # a new model, which has read no other row
        with torch.no_grad():
            log = model(input_ids=torch.tensor(row[None, :-1])).logits[0].log_softmax(-1)
        expected.append(-log[range(len(row) - 1), row[1:]].sum().item())
    forward = Forward(random_model(dynamic()).double())
    for _ in range(2):  # the second call comes after a long row
        found = forward.losses([row[:-1] for row in rows], [row[1:] for row in rows])
        assert [losses.sum() for losses in found] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("config", "key", "factor"),
    [(LlamaConfig, "rope_parameters", 2.0), (Qwen2Config, "rope_scaling", 8.0)],
)
def test_dynamic_frequencies_below_the_context_are_those_of_the_document_alone(
    config, key, factor, tmp_path, settings, batch_of
):
    kind = "rope_type" if key == "rope_parameters" else "type"
    rope = {kind: "dynamic", "factor": factor, "original_max_position_embeddings": _SHORT}
    stated = config(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=128,
        bos_token_id=0, eos_token_id=1, pad_token_id=0, **{key: rope},
    )  # fmt: skip
    folder = save_model(
        tmp_path / "dynamic", stated, byte_level_bpe(), bos_token="<s>", eos_token="</s>"
    )
    expected = []
    for text in _TEXTS:
        plain = Plain(folder)  # a new model, which has read no other row
        expected.append(sum(plain.nats([0, *plain.ids(text, special=False)])))
    model = CausalLM.load(folder, None, settings)
    assert nats(model, batch_of(*_TEXTS), "own-context") == pytest.approx(expected, rel=1e-5)


def test_moments_are_those_of_the_row_alone():
    tokens = np.random.default_rng(5).integers(0, 400, 60)
    rows = [tokens[:size] for size in (60, 30)]
    forward = Forward(random_model(longrope()).double())
    together = forward.with_moments([row[:-1] for row in rows], [row[1:] for row in rows])
    for row, found in zip(rows, together, strict=True):
        alone = forward.with_moments([row[:-1]], [row[1:]])[0]
        assert found.nats == pytest.approx(alone.nats, rel=1e-9)
        assert found.moments == pytest.approx(alone.moments, rel=1e-9)


CONFIGS: list[tuple[PreTrainedConfig, Switch | None, list[int]]] = [
    (LlamaConfig(), None, []),
    (longrope(), Switch(32), [32]),
    (dynamic(), Switch(32, is_dynamic=True), [32]),
    (MistralConfig(sliding_window=24), None, [24]),
    (PreTrainedConfig(rope_parameters={"type": "su"}, original_max_position_embeddings=16),
     Switch(16), [16]),
    (PreTrainedConfig(use_dynamic_ntk=True, seq_length=40), Switch(40, is_dynamic=True), [40]),
    (PreTrainedConfig(chunk_size=8, sliding_window=None, block_size=True), None, [8]),
]  # fmt: skip


@pytest.mark.parametrize(("config", "switch", "lengths"), CONFIGS)
def test_lengths_are_read_from_the_configuration(config, switch, lengths):
    assert find_switch(config) == switch
    assert stated_lengths(config) == lengths


def test_sides():
    lengths = [31, 32, 33, 50, 33]
    assert sides(lengths, None) == [[0, 1, 2, 3, 4]]
    assert sides(lengths, Switch(32)) == [[0, 1], [2, 3, 4]]
    assert sides(lengths, Switch(32, is_dynamic=True)) == [[0], [1], [2, 4], [3]]


class Switching:
    """Gives a loss of 3 nats for each token, and more for a batch with a row above ``length``."""

    max_batch_tokens = None

    def __init__(self, length: int) -> None:
        self.length = length

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        rate = 3.0 if max(map(len, inputs)) <= self.length else 3.25
        return [np.full(len(row), rate) for row in targets]


@pytest.fixture(scope="module")
def text_model(llama_folder: str) -> TextModel:
    return text_model_of(PreTrainedTokenizerFast.from_pretrained(llama_folder))


def load(text_model: TextModel, budget: int, *lengths: int) -> TokenScorer:
    facts = ScorerFacts("fake", "float32", budget, {}, None)
    identity = TokenIdentity("fake", "1", None, "none", lengths=lengths)
    return TokenScorer(identity, text_model, Switching(200), facts)


def test_a_backend_that_changes_at_a_stated_length_is_refused(text_model):
    says = r"fake: rows of 200 and 201 tokens .* alone \(difference 0\.083 of the loss"
    with pytest.raises(NotMeasurable, match=says):
        load(text_model, 1024, 100, 200)


def test_rows_that_share_no_batch_are_not_compared(text_model):
    load(text_model, 439, 200)  # two rows of 220 tokens do not fit
    with pytest.raises(NotMeasurable):
        load(text_model, 440, 200)
    load(text_model, 1024, 100, 300)
