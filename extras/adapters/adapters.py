"""Adapters: files that change the weights of another model, as the library peft writes them."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from core.errors import ModelLoadError, NotMeasurable
from core.settings import Settings
from core.version import how_to_install
from models.weights.checkpoint import CheckpointFiles, open_folder, open_model
from models.weights.files import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    MODEL_FAILURES,
    PICKLED_ADAPTER,
    first_line,
    pickles_error,
    read_base,
)

# Initialisation methods of adapters that change the base model's weights.
_CHANGES_BASE = ("pissa", "olora", "corda", "loftq")


def open_adapter(
    folder: Path,
    identity: tuple[str, str],
    revision: str | None,
    settings: Settings,
    is_trusted: bool,
) -> CheckpointFiles:
    """Open the files of an adapter and of its base model.

    ``identity`` has the location that the user gave and the revision of the adapter's files;
    ``revision`` is that of the base model, or None for the one that the adapter states.

    Raises:
        ModelLoadError: the adapter has no weights or names no model, or its base model cannot be
            opened, is an adapter itself, or has quantised weights.
        NotMeasurable: the base model is no causal language model.
    """
    location, own = identity
    _require_safe(folder, location, is_trusted)
    base, base_revision = read_base(folder, location)
    made_for = f"{location}: is an adapter of {base}"
    try:
        base_folder, found = open_folder(base, revision or base_revision, settings, is_trusted)
    except ModelLoadError as error:
        raise ModelLoadError(f"{made_for}, which cannot be opened: {error}") from error
    if (base_folder / ADAPTER_CONFIG).is_file():
        raise ModelLoadError(
            f"{made_for}, which is an adapter itself; merge that one into its model and save it"
        )
    both = f"{own}+{found}"
    digest = hashlib.sha256(both.encode()).hexdigest()[:12]
    has_tokenizer = any(any(folder.glob(name)) for name in ("tokenizer.json", "vocab*", "*.model"))
    files = open_model(
        base_folder,
        (location, f"{digest}+{both}"),
        folder if has_tokenizer else base_folder,
        settings,
        is_trusted,
    )
    if files.quantisation is not None:
        raise ModelLoadError(
            f"{made_for}, whose weights are quantised ({files.quantisation}); merging would change "
            "them, so name the model before quantisation in base_model_name_or_path"
        )
    return replace(files, adapter=folder)


def _require_safe(folder: Path, location: str, is_trusted: bool) -> None:
    """Raise ModelLoadError for an adapter without weights, or with pickles that are not trusted."""
    if (folder / ADAPTER_WEIGHTS).is_file():
        return
    if not (folder / PICKLED_ADAPTER).is_file():
        raise ModelLoadError(
            f"{location}: holds an adapter without weights; {ADAPTER_WEIGHTS} is missing"
        )
    if not is_trusted:
        raise pickles_error(location, PICKLED_ADAPTER, folder)


def merge_adapter(model: PreTrainedModel, folder: Path, location: str) -> PreTrainedModel:
    """Merge an adapter into its base model's weights; return a model of the base's class.

    Raises:
        ModelLoadError: peft is not installed, or the adapter is broken or made for another model.
        NotMeasurable: the adapter cannot be merged, or is not of a causal language model.
    """
    try:
        from peft import PeftConfig, PeftModel
    except ImportError as error:
        raise ModelLoadError(
            f"{location}: holds an adapter, which needs the extra peft: {how_to_install('peft')}"
        ) from error
    try:
        config = PeftConfig.from_pretrained(str(folder))
        _require_mergeable(config, location)
        config.inference_mode = True
        # With low_cpu_mem_usage, the sizes that the config states take no memory before loading.
        with warnings.catch_warnings(category=FutureWarning, action="ignore"):  # caused by peft
            wrapped = PeftModel(model, config, low_cpu_mem_usage=True)
        report: Any = wrapped.load_adapter(
            str(folder), "default", torch_device=str(model.device), low_cpu_mem_usage=True
        )
    except MODEL_FAILURES as error:
        raise ModelLoadError(
            f"{location}: the adapter cannot be put on {model.config.name_or_path} "
            f"({first_line(error)}); check that it was made for that model"
        ) from error
    wrong = sorted({*report.unexpected_keys, *report.missing_keys})
    if wrong:
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
    """Raise an error unless an adapter changes only weights of a causal language model."""
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
