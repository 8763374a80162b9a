"""Configurations of formats from before transformers took over the code of their models.

Checkpoints of the ``mamba_ssm`` library state their sizes in other fields
(https://github.com/state-spaces/mamba, ``models/config_mamba.py``). The mapping is that of
transformers' scripts ``convert_mamba(2)_ssm_checkpoint_to_pytorch.py``.
"""

from __future__ import annotations

from transformers import CONFIG_MAPPING, PreTrainedConfig

from core.errors import NotMeasurable
from core.json import JsonObject

_MAMBAS = ("mamba", "mamba2")
# Names of architectures before transformers took over their code, and the fields renamed since.
_FALCON = {
    "n_head": "num_attention_heads",
    "n_layer": "num_hidden_layers",
    "n_head_kv": "num_kv_heads",
}
_FORMER = {
    "RefinedWebModel": ("falcon", _FALCON, {}),  # Falcon 7B, 2023
    "RefinedWeb": ("falcon", _FALCON, {"new_decoder_architecture": True}),  # Falcon 40B, 2023
    "Yi": ("llama", {}, {}),
}
# Names of tensors in checkpoints of mamba_ssm, as patterns, and those of transformers.
_MAMBA_TENSORS = {r"^backbone\.embedding\.": "backbone.embeddings."}
_MAMBA_FIELDS = {"d_state": "state_size", "d_conv": "conv_kernel", "expand": "expand",
                 "bias": "use_bias", "conv_bias": "use_conv_bias"}  # fmt: skip
_MAMBA2_FIELDS = _MAMBA_FIELDS | {"headdim": "head_dim", "chunk_size": "chunk_size"}


def config_of(record: JsonObject, location: str) -> PreTrainedConfig | None:
    """Return the config of an architecture that has another name in transformers, else None.

    ``record`` is the content of config.json. Raise NotMeasurable for a Mamba with parts that
    transformers does not run.
    """
    if "d_model" in record and "n_layer" in record and "model_type" not in record:
        return _config_of_mamba(record, location)
    if record.get("model_type") not in _FORMER:
        return None
    kind, renamed, added = _FORMER[record["model_type"]]
    fields = {renamed.get(name, name): value for name, value in record.items()}
    for name in ("model_type", "auto_map", "architectures"):
        fields.pop(name, None)
    return CONFIG_MAPPING[kind].from_dict(fields | added)


def tensor_names_of(config: PreTrainedConfig) -> dict[str, str]:
    """Return patterns of names of tensors in mamba_ssm, with those of transformers."""
    return _MAMBA_TENSORS if config.model_type in _MAMBAS else {}


def _config_of_mamba(record: JsonObject, location: str) -> PreTrainedConfig:
    """Return transformers' configuration for a file of the package mamba-ssm."""
    layer = dict(record.get("ssm_cfg") or {})
    is_second = layer.pop("layer", "Mamba1") == "Mamba2"
    _refuse_other_mambas(record, layer, location)
    unit = record.get("pad_vocab_size_multiple", 8)
    hidden = record["d_model"]
    expand = layer.get("expand", 2)
    rank = layer.get("dt_rank", "auto")
    fields = {
        "hidden_size": hidden,
        "num_hidden_layers": record["n_layer"],
        "vocab_size": -(-record["vocab_size"] // unit) * unit,
        "residual_in_fp32": record.get("residual_in_fp32", True),
        "tie_word_embeddings": record.get("tie_embeddings", True),
        "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
    }  # fmt: skip
    own = _MAMBA2_FIELDS if is_second else _MAMBA_FIELDS
    fields |= {own[name]: value for name, value in layer.items() if name in own}
    if not is_second:
        return CONFIG_MAPPING["mamba"].from_dict(fields | {"time_step_rank": rank})
    heads = hidden * expand // layer.get("headdim", 64)
    return CONFIG_MAPPING["mamba2"].from_dict(fields | {"num_heads": heads, "n_groups": 1})


def _refuse_other_mambas(record: JsonObject, layer: JsonObject, location: str) -> None:
    """Raise NotMeasurable for a Mamba with parts that transformers' classes do not have."""
    usual = {"rms_norm": True, "attn_layer_idx": [], "d_intermediate": 0, "ngroups": 1}
    for name, value in usual.items():
        found = (record | layer).get(name)
        if found not in (None, value):
            raise NotMeasurable(
                f"{location}: is a Mamba in the format of mamba_ssm with {name} = {found}, which "
                f"transformers does not run (only {value}); use another checkpoint of the model"
            )
