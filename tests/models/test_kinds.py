"""Models of unusual kinds score texts, answer questions and write, or are refused by name."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from safetensors.torch import load_file, save_file
from transformers import (
    FalconConfig,
    FalconH1Config,
    Mamba2Config,
    MambaConfig,
    PreTrainedConfig,
    Qwen3_5TextConfig,
)

from core.errors import NotMeasurable
from core.settings import Settings
from models.backends import load_generator, load_scorer
from models.catalogue import ModelEntry, entry_of_folder
from models.generation import Decoding, GenerationRequest
from models.generation.local import generator_of
from models.options.answering import LocalAnswerer
from models.options.protocols import get_answer_protocol
from models.scoring.token_scorer import CausalLM, TokenScorer
from models.servers.budget import Budget
from models.weights.checkpoint import open_checkpoint
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


def mamba_ssm(folder: Path) -> ModelEntry:
    saved(folder, MambaConfig(**SIZES, state_size=4))
    rename_mamba(folder, {"d_state": 4})
    return entry_of_folder(folder)


@pytest.mark.parametrize("make", [falcon_h1, qwen3_5, mamba_ssm])
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


def rename_mamba(folder: Path, layer: dict[str, object], **changes: object) -> None:
    """Write a folder's Mamba as mamba_ssm does: its own config, other names of tensors."""
    tensors = load_file(folder / "model.safetensors")
    embedding = tensors.pop("backbone.embeddings.weight")
    tensors |= {"backbone.embedding.weight": embedding, "lm_head.weight": embedding.clone()}
    save_file(tensors, folder / "model.safetensors")
    config = {
        "d_model": 32, "n_layer": 2, "vocab_size": 395, "ssm_cfg": layer, "rms_norm": True,
        "residual_in_fp32": True, "fused_add_norm": True, "pad_vocab_size_multiple": 8,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config | changes))


@pytest.mark.parametrize(
    ("config", "layer"),
    [
        (MambaConfig(**SIZES), {}),
        (MambaConfig(**SIZES, state_size=4, expand=3, time_step_rank=5),
         {"d_state": 4, "expand": 3, "dt_rank": 5}),
        (Mamba2Config(**SIZES, num_heads=4, head_dim=16, n_groups=1, tie_word_embeddings=True),
         {"layer": "Mamba2", "headdim": 16}),
    ],
    ids=["plain", "changed", "second"],
)  # fmt: skip
def test_a_mamba_of_mamba_ssm_has_the_losses_of_its_conversion(
    config: PreTrainedConfig, layer: dict[str, object], tmp_path: Path, settings: Settings
) -> None:
    folder = saved(tmp_path / "m", config)
    batch = record_batch(1, text=pa.array([TEXT * 3], pa.large_string()))
    expected = nats(CausalLM.load(str(folder), None, settings), batch)
    rename_mamba(folder, layer)
    found = nats(CausalLM.load(str(folder), None, settings), batch)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rms_norm": False}, "rms_norm = False"),
        ({"attn_layer_idx": [1]}, "attn_layer_idx"),
        ({"d_intermediate": 64}, "d_intermediate = 64"),
        ({"ssm_cfg": {"layer": "Mamba2", "ngroups": 2}}, "ngroups = 2"),
    ],
)
def test_other_parts_of_mamba_ssm_are_refused_by_name(
    changes: dict[str, object], says: str, tmp_path: Path, settings: Settings
) -> None:
    folder = saved(tmp_path / "m", MambaConfig(**SIZES))
    rename_mamba(folder, {}, **changes)
    with pytest.raises(NotMeasurable, match=says):
        open_checkpoint(str(folder), None, settings)


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("RefinedWebModel", {"multi_query": True, "parallel_attn": True}),
        ("RefinedWeb", {"new_decoder_architecture": True, "num_kv_heads": 1}),
    ],
)
def test_a_falcon_of_2023_runs_as_transformers_falcon(
    former: str, now: dict[str, object], tmp_path: Path, settings: Settings
) -> None:
    """Its config as tiiuae/falcon-7b and -40b had it before transformers took the code over."""
    folder = saved(tmp_path / "f", FalconConfig(**SIZES, num_attention_heads=2, **now))
    batch = record_batch(1, text=pa.array([TEXT], pa.large_string()))
    expected = nats(CausalLM.load(str(folder), None, settings), batch)
    heads = {"n_head_kv": 1} if former == "RefinedWeb" else {"multi_query": True}
    code = {"AutoModelForCausalLM": "modelling_RW.RWForCausalLM"}
    record = {
        "model_type": former, "auto_map": code, "architectures": ["RWForCausalLM"],
        "hidden_size": 32, "n_head": 2, "n_layer": 2, "vocab_size": 400, "bias": False,
        "alibi": False, "parallel_attn": True, "layer_norm_epsilon": 1e-05, **heads,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(record))
    found = nats(CausalLM.load(str(folder), None, settings), batch)
    assert found == pytest.approx(expected, rel=1e-6)
