"""Models of unusual kinds score texts, answer questions and write, or are refused by name."""

import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from transformers import (
    FalconH1Config,
    PreTrainedConfig,
    Qwen3_5TextConfig,
)

from core.settings import Settings
from models.backends import load_generator, load_scorer
from models.catalogue import ModelEntry, entry_of_folder
from models.generation import Decoding, GenerationRequest
from models.generation.local import generator_of
from models.options.answering import LocalAnswerer
from models.options.protocols import get_answer_protocol
from models.scoring.token_scorer import CausalLM, TokenScorer
from models.servers.budget import Budget
from tests.models.conftest import (
    byte_level_bpe,
    nats,
    question,
    record_batch,
    save_model,
)

TEXT = "The tide leaves a mark on the sand, and the next tide washes it away. "
SIZES = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2}


def saved(folder: Path, config: PreTrainedConfig) -> Path:
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    return Path(save_model(folder, config, byte_level_bpe(), scale=2, **special))


def falcon_h1(folder: Path) -> ModelEntry:
    config = FalconH1Config(
        **SIZES, intermediate_size=48, num_attention_heads=2, num_key_value_heads=1,
        mamba_d_ssm=32, mamba_n_heads=4, mamba_d_state=8, mamba_chunk_size=16,
    )  # fmt: skip
    return entry_of_folder(saved(folder, config))


def qwen3_5(folder: Path) -> ModelEntry:
    config = Qwen3_5TextConfig(
        **SIZES, intermediate_size=48, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
        linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2,
        linear_num_value_heads=4, layer_types=["linear_attention", "full_attention"],
    )  # fmt: skip
    return entry_of_folder(saved(folder, config))


@pytest.mark.parametrize("make", [falcon_h1, qwen3_5])
def test_a_model_goes_through_all_instruments(
    make: Callable[[Path], ModelEntry], tmp_path: Path, settings: Settings
) -> None:
    entry = make(tmp_path / "model")
    go_through_all_instruments(entry, settings)


def go_through_all_instruments(entry: ModelEntry, settings: Settings) -> None:
    scorer = load_scorer(entry, settings)
    assert isinstance(scorer, TokenScorer)
    found = nats(scorer, record_batch(1, text=pa.array([TEXT * 3], pa.large_string())))
    assert found and all(math.isfinite(each) for each in found)

    asked = [question(), question(question_id="q1", title=TEXT, options=("Sand", "A tide", "No"))]
    for answer in LocalAnswerer(scorer).answer(asked, get_answer_protocol("letter")):
        assert answer.probabilities and sum(answer.probabilities) == pytest.approx(1)

    # A confined process needs seconds to start, so the loaded model writes, too.
    writer = (
        generator_of(scorer, settings)
        if isinstance(scorer, CausalLM)
        else load_generator(entry, settings, Budget.of(settings))
    )
    requests = [GenerationRequest("a", "The tide", 1), GenerationRequest("b", TEXT, 2)]
    written = {
        each.key: each for each in writer.generate(requests, Decoding(8, 4, temperature=0.8))
    }
    assert set(written) == {"a", "b"}
    assert all(each.finish != "error" and each.num_tokens >= 4 for each in written.values())
