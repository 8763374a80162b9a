"""The configuration of a model: its config.json, read for one of transformers' own classes.

Code that a repository brings is ignored if transformers has taken over the architecture since,
under this name or another. Checkpoints of the ``mamba_ssm`` library state their sizes in other
fields (https://github.com/state-spaces/mamba, ``models/config_mamba.py``). The mapping is that of
transformers' scripts ``convert_mamba(2)_ssm_checkpoint_to_pytorch.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    PreTrainedConfig,
)

from core.errors import ModelLoadError, NotMeasurable
from core.json import JsonObject
from models.weights.files import MODEL_FAILURES, advise_trust, first_line

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
MAMBA_TENSORS = {r"^backbone\.embedding\.": "backbone.embeddings."}
_MAMBA_FIELDS = {"d_state": "state_size", "d_conv": "conv_kernel", "expand": "expand",
                 "bias": "use_bias", "conv_bias": "use_conv_bias"}  # fmt: skip
_MAMBA2_FIELDS = _MAMBA_FIELDS | {"headdim": "head_dim", "chunk_size": "chunk_size"}


def load_config(folder: Path, location: str, is_trusted: bool) -> PreTrainedConfig:
    """Read a folder's config.json.

    Return a config of the base class if the model's class is code in the folder. Such code is not
    run here; it is accepted only for a trusted model.

    Raises:
        ModelLoadError: the file is missing or broken, or the model brings code and is not trusted.
        NotMeasurable: this is no causal language model, or a Mamba that transformers cannot run.
    """
    if not (folder / "config.json").is_file():
        within = [path.parent.name for path in folder.glob("*/config.json")]
        within.sort(key=lambda name: (len(name), name))  # step-9, step-10
        advice = f"; give its folder {within[-1]}, which has one" if within else ""
        raise ModelLoadError(
            f"{location}: has no config.json; expected a folder as save_pretrained writes it"
            f"{advice}"
        )
    try:
        record: Any = json.loads((folder / "config.json").read_bytes())
        kind = record.get("model_type")
        if "auto_map" in record and kind not in CONFIG_MAPPING and kind not in _FORMER:
            _require_trust(record, folder, location, is_trusted)
            return PreTrainedConfig.from_dict(record)
        config = _config_of_former(record, location) or AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        text_config = config.get_text_config()
        if hasattr(text_config, "output_router_logits"):
            text_config.output_router_logits = False  # router logits would be the first output
        text_config.to_dict()  # raises an error if a nested config is invalid
    except (*MODEL_FAILURES, RecursionError) as error:
        raise ModelLoadError(
            f"{location}: config.json is not one that transformers knows ({first_line(error)})"
        ) from error
    refuse_non_causal(config, location)
    return config


def _require_trust(record: JsonObject, folder: Path, location: str, is_trusted: bool) -> None:
    """Raise an error unless the model is trusted, and its own folder has its code."""
    code = record["auto_map"]
    name = code.get("AutoModelForCausalLM") if isinstance(code, dict) else None
    if not is_trusted:
        raise ModelLoadError(
            f"{location}: is of type {record.get('model_type')!r}, which transformers does not "
            f"know, and brings its own code ({name}), which is not run in this process; "
            f"{advise_trust(location, folder)}"
        )
    if name is None:
        raise NotMeasurable(
            f"{location}: its own code has no AutoModelForCausalLM; only causal language models "
            "can be scored"
        )
    if any("--" in str(each) for each in code.values()):
        raise ModelLoadError(
            f"{location}: takes its code from another repository ({name}), which the revision does "
            "not pin; copy the code into the model's folder and name it without the repository"
        )


def _config_of_former(record: JsonObject, location: str) -> PreTrainedConfig | None:
    """Return the config of an architecture that has another name in transformers, else None."""
    if "d_model" in record and "n_layer" in record and "model_type" not in record:
        return _config_of_mamba(record, location)
    if record.get("model_type") not in _FORMER:
        return None
    kind, renamed, added = _FORMER[record["model_type"]]
    fields = {renamed.get(name, name): value for name, value in record.items()}
    for name in ("model_type", "auto_map", "architectures"):
        fields.pop(name, None)
    return CONFIG_MAPPING[kind].from_dict(fields | added)


def _config_of_mamba(record: JsonObject, location: str) -> PreTrainedConfig:
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


def refuse_non_causal(config: PreTrainedConfig, location: str) -> None:
    """Raise NotMeasurable if this is no config of a causal language model."""
    kind = config.model_type
    if config.is_encoder_decoder:
        raise NotMeasurable(
            f"{location}: {kind} is an encoder-decoder model, which gives no likelihood to plain "
            "text; only causal language models can be scored"
        )
    is_decoder = getattr(config, "is_decoder", False)
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not is_decoder:
        raise NotMeasurable(
            f"{location}: {kind} is a masked language model, which sees the tokens that it is to "
            "predict; only causal language models can be scored"
        )
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise NotMeasurable(f"{location}: {kind} is not a causal language model")
