"""The configuration of a model: its config.json, read for one of transformers' own classes.

Code that a repository brings is ignored if transformers has taken over the architecture since.
An extra may read formats that transformers does not know (module ``formats``).
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
from core.plugins import import_parts
from models.weights.files import MODEL_FAILURES, advise_trust, first_line, refuse_pointers


def load_config(folder: Path, location: str, is_trusted: bool) -> PreTrainedConfig:
    """Read a folder's config.json.

    Return a config of the base class if the model's class is code in the folder. Such code is not
    run here; it is accepted only for a trusted model.

    Raises:
        ModelLoadError: the file is missing or broken, or the model brings code and is not trusted.
        NotMeasurable: this is no causal language model, or one that transformers cannot run.
    """
    if not (folder / "config.json").is_file():
        within = [path.parent.name for path in folder.glob("*/config.json")]
        within.sort(key=lambda name: (len(name), name))  # step-9, step-10
        advice = f"; give its folder {within[-1]}, which has one" if within else ""
        raise ModelLoadError(
            f"{location}: has no config.json; expected a folder as save_pretrained writes it"
            f"{advice}"
        )
    refuse_pointers(folder, location)
    try:
        record: Any = json.loads((folder / "config.json").read_bytes())
        kind = record.get("model_type")
        config = _config_of_extras(record, location)
        if config is None and "auto_map" in record and kind not in CONFIG_MAPPING:
            _require_trust(record, folder, location, is_trusted)
            return PreTrainedConfig.from_dict(record)
        if config is None:
            config = AutoConfig.from_pretrained(
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


def _config_of_extras(record: JsonObject, location: str) -> PreTrainedConfig | None:
    """Return the config that an extra makes of a format that transformers does not know, or None.

    Raise NotMeasurable for a model of such a format that transformers cannot run.
    """
    for part in import_parts("formats"):
        config: PreTrainedConfig | None = part.config_of(record, location)
        if config is not None:
            return config
    return None


def renamed_tensors(config: PreTrainedConfig) -> dict[str, str]:
    """Return patterns of the names of tensors in a checkpoint, with those of transformers."""
    # Most models have none; an extra states those of the formats that it reads.
    names: dict[str, str] = {}
    for part in import_parts("formats"):
        names |= part.tensor_names_of(config)
    return names


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
