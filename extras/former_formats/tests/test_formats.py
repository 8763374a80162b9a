"""Checkpoints in former formats have the losses of their conversions, or are refused by name."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from safetensors.torch import load_file, save_file
from transformers import FalconConfig, Mamba2Config, MambaConfig, PreTrainedConfig

from core.errors import NotMeasurable
from core.settings import Settings
from models.catalogue import entry_of_folder
from models.scoring.token_scorer import CausalLM
from models.weights.checkpoint import open_checkpoint
from tests.models.conftest import nats, record_batch
from tests.models.test_kinds import SIZES, TEXT, go_through_all_instruments, saved


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


@pytest.mark.smoke
def test_a_model_of_mamba_ssm_goes_through_all_instruments(
    tmp_path: Path, settings: Settings
) -> None:
    folder = saved(tmp_path / "model", MambaConfig(**SIZES, state_size=4))
    rename_mamba(folder, {"d_state": 4})
    go_through_all_instruments(entry_of_folder(folder), settings)


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
