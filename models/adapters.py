"""PEFT adapters: small changes to another model's weights, merged into them before scoring.

An adapter is a folder with ``adapter_config.json``, which names the model that it was made for, and
``adapter_model.safetensors``. Merged weights cost nothing at run time and leave nothing of the
``peft`` library (an optional extra) in the forward pass.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ModelLoadError, NotMeasurable
from models.failures import MODEL_FAILURES, first_line
from models.model_files import ADAPTER_CONFIG

if TYPE_CHECKING:  # whoever only asks what an adapter was made for needs no torch
    from transformers import PreTrainedModel

_WEIGHTS = "adapter_model.safetensors"
# Ways to begin training that take something out of the base's own weights.
_CHANGES_BASE = ("pissa", "olora", "corda", "loftq")


def read_base(folder: Path, location: str) -> tuple[str, str | None]:
    """Return location and revision of the model that an adapter was made for.

    A path that leads to a folder counts from the adapter's own; anything else is a hub id.

    Raises:
        ModelLoadError: adapter_config.json is broken, or names no model.
    """
    path = folder / ADAPTER_CONFIG
    try:
        config = json.loads(path.read_bytes())
        base, revision = config["base_model_name_or_path"], config.get("revision")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelLoadError(
            f"{location}: holds an adapter, but {ADAPTER_CONFIG} does not say for which model "
            f"({error!r}); expected base_model_name_or_path, as peft writes it"
        ) from error
    if not isinstance(base, str) or not base.strip() or not isinstance(revision, str | None):
        raise ModelLoadError(
            f"{location}: holds an adapter, but {ADAPTER_CONFIG} names {base!r} at revision "
            f"{revision!r} as its model; expected a folder or a hub id"
        )
    own = folder / Path(base).expanduser()  # an absolute path stays what it is
    return (str(own.resolve()) if own.is_dir() else base), revision or None


def require_safe_adapter(folder: Path, location: str, allow_pickle: bool) -> None:
    """Refuse an adapter without weights, or with pickled ones that are not allowed.

    Raises:
        ModelLoadError: says which.
    """
    if (folder / _WEIGHTS).is_file():
        return
    if not (folder / "adapter_model.bin").is_file():
        raise ModelLoadError(f"{location}: holds an adapter without weights; {_WEIGHTS} is missing")
    if not allow_pickle:
        raise ModelLoadError(
            f"{location}: the adapter's weights are a pickle (adapter_model.bin) and "
            "allow_pickle_weights is off; pickles may run code when they are loaded"
        )


def merge_adapter(model: PreTrainedModel, folder: Path, location: str) -> PreTrainedModel:
    """Merge an adapter into the weights of the model that it was made for.

    Args:
        model: the base, in memory; it is changed.
        folder: of the adapter.
        location: for messages.

    Returns:
        The merged model, of the base's own class.

    Raises:
        ModelLoadError: the library is missing, or the adapter is broken or made for another model.
        NotMeasurable: it is an adapter that cannot be merged, or not of a causal language model.
    """
    try:
        from peft import PeftConfig, PeftModel
    except ImportError as error:
        raise ModelLoadError(
            f"{location}: holds an adapter, which needs the extra: pip install 'tidemark[peft]'"
        ) from error
    try:
        config = PeftConfig.from_pretrained(str(folder))
        _require_mergeable(config, location)
        config.inference_mode = True
        # Sizes stated in the config take no memory until the file's tensors are put in place.
        with warnings.catch_warnings(category=FutureWarning, action="ignore"):  # peft's own affair
            wrapped = PeftModel(model, config, low_cpu_mem_usage=True)
        report: Any = wrapped.load_adapter(
            str(folder), "default", torch_device=str(model.device), low_cpu_mem_usage=True
        )
    except MODEL_FAILURES as error:
        raise ModelLoadError(
            f"{location}: the adapter cannot be put on {model.config.name_or_path} "
            f"({first_line(error)}); check that it was made for that model"
        ) from error
    if wrong := sorted({*report.unexpected_keys, *report.missing_keys}):
        raise ModelLoadError(
            f"{location}: {len(wrong)} of the adapter's tensors have no place in "
            f"{model.config.name_or_path} or are missing from the file, the first is {wrong[0]}; "
            "check that it was made for that model"
        )
    try:
        merged: PreTrainedModel = wrapped.merge_and_unload(safe_merge=True)
    except MODEL_FAILURES as error:
        raise ModelLoadError(
            f"{location}: the adapter cannot be merged ({first_line(error)})"
        ) from error
    return merged


def _require_mergeable(config: Any, location: str) -> None:
    if getattr(config, "megatron_config", None):
        raise ModelLoadError(
            f"{location}: {ADAPTER_CONFIG} names a module of Python to import (megatron_config); "
            "models that bring their own code are not run"
        )
    if config.is_prompt_learning or config.is_adaption_prompt:
        raise NotMeasurable(
            f"{location}: is a {config.peft_type.value} adapter, which adds tokens or layers and "
            "cannot be merged into the weights; only those that change weights (LoRA …) can be "
            "scored"
        )
    if config.task_type not in {None, "CAUSAL_LM"}:
        raise NotMeasurable(
            f"{location}: the adapter was trained for {config.task_type}, not for CAUSAL_LM; only "
            "causal language models can be scored"
        )
    start = getattr(config, "init_lora_weights", None)
    if isinstance(start, str) and start.startswith(_CHANGES_BASE):
        raise ModelLoadError(
            f"{location}: the adapter (init_lora_weights={start!r}) needs a changed base, which "
            "cannot be told from the files; merge it with peft and save the model"
        )
