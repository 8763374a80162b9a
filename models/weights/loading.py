"""Loading weights: checks of the configuration, and placement on devices.

A config.json is untrusted: a vocabulary of a billion tokens or a million layers would fill the
memory. So the config is compared with the weights before the model is created.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.distributed.configuration_utils import DistributedConfig
from transformers.utils import logging as transformers_logging
from transformers.utils.quantization_config import QuantizationMethod

from core.errors import ModelLoadError
from models.weights.checkpoint import CheckpointFiles
from models.weights.configuration import renamed_tensors
from models.weights.files import (
    MODEL_FAILURES,
    ROOM_FACTOR,
    Weights,
    adapter_part,
    examine_weights,
    first_line,
)

# Maximum number of elements in computed tables (positions, masks), which are not in the weights.
_NUM_COMPUTED = 2**28
_MOST_EXPERTS = 2**16
_MOST_TIMES = 2  # a configuration may describe so many times the elements of the weights
_FORMER_NAMES = ("past_key_values", "cache_params")  # of ``cache`` before transformers 5.24
_MOST_PER_BYTE = 8  # maximum number of elements per byte of quantised weights: one bit each
_HOST_FULL = "DefaultCPUAllocator: can't allocate memory"  # torch's message if host memory is full


def load_weights(files: CheckpointFiles) -> PreTrainedModel:
    """Load a model in this process, as ``read_model``, and compare it with its tokenizer.

    Raise ModelLoadError for a model that runs in a confined process, and if the tokenizer is not
    the model's.
    """
    if files.is_trusted:
        raise ModelLoadError(
            f"{files.location}: its entry has trust: code, so it runs in a process of its own, and "
            "this command has none; use a checkpoint in safetensors without own code"
        )
    model = read_model(files)
    require_rows(files, embedding_rows(model))
    return model


def read_model(files: CheckpointFiles) -> PreTrainedModel:
    """Load the weights, and merge an adapter into the weights if there is one.

    Return a model in evaluation mode, on its device or devices, in the dtype of ``files``. Own code
    is run, so call this for a trusted model in a confined process only.

    Raises:
        ModelLoadError: weights are missing, unsafe, broken or do not fit the config.
        NotMeasurable: the adapter is of a kind that cannot be merged.
    """
    is_quantised = files.quantisation is not None
    if is_quantised and files.quantisation not in {method.value for method in QuantizationMethod}:
        raise ModelLoadError(
            f"{files.location}: the weights are quantised by {files.quantisation!r}, which "
            "transformers does not know; use the model before quantisation"
        )
    weights = examine_weights(files.folder, files.location, files.is_trusted)
    if not files.has_own_code:
        require_plausible(files.config, weights, files.location, is_quantised)
    placement = plan_placement(files.device, files.dtype, weights, is_quantised)
    # Merge an adapter in the host's memory, then move the model.
    model = _read_weights(files, None if files.adapter else placement)
    if files.adapter is not None:
        part = adapter_part(files.location)
        model = part.merge_adapter(model, files.adapter, files.location)
    model = place(model, files.device, placement)
    model.eval()  # type: ignore[no-untyped-call]
    return model


def read_share(files: CheckpointFiles) -> PreTrainedModel:
    """Load this process's share of a model, as its architecture's plan divides the layers.

    A process group of torch.distributed must exist; each of its processes calls this function.
    Raise ModelLoadError as ``load_weights``.
    """
    weights = examine_weights(files.folder, files.location, files.is_trusted)
    require_plausible(files.config, weights, files.location, is_quantised=False)
    model = _read_weights(files, None, distributed_config=DistributedConfig(tp_plan="auto"))
    model.eval()  # type: ignore[no-untyped-call]
    require_rows(files, embedding_rows(model))
    return model


def _read_weights(files: CheckpointFiles, placement: str | None, **options: Any) -> PreTrainedModel:
    """Load the weights without an adapter, to the given placement (None: the host's memory).

    ``options`` are further ones of ``from_pretrained``. Raise ModelLoadError if weights are broken,
    do not fit the config, or need a missing library.
    """
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if placement is not None:
        options["device_map"] = placement
    names = renamed_tensors(files.config)
    if names:
        options["key_mapping"] = names
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            files.folder,
            config=files.config,
            dtype=files.dtype,
            attn_implementation=None if files.has_own_code else files.attention,
            use_safetensors=None if files.is_trusted else True,
            trust_remote_code=files.has_own_code,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # ``require_complete`` raises an error for them
            **options,
        )
    except MODEL_FAILURES as error:
        stored = f" ({files.quantisation} weights)" if files.quantisation else ""
        raise ModelLoadError(
            f"{files.location}: the weights cannot be loaded{stored}: {first_line(error)}"
        ) from error
    model: PreTrainedModel = loaded[0]
    require_complete(loaded[1], files.location)
    return model


def require_rows(files: CheckpointFiles, rows: int) -> None:
    """Raise ModelLoadError if the tokenizer has ids that an embedding of ``rows`` rows lacks."""
    largest = max(files.tokenizer.get_vocab().values(), default=-1)
    if largest >= rows:
        raise ModelLoadError(
            f"{files.location}: the tokenizer has token ids up to {largest} and the embedding "
            f"{rows} rows; tokenizer and weights are not of the same model"
        )


def embedding_rows(model: PreTrainedModel) -> int:
    """Return the number of token ids that have an embedding."""
    weight = model.get_input_embeddings().weight
    assert isinstance(weight, torch.Tensor)  # noqa: S101
    return weight.shape[0]


def carried_state(model: torch.nn.Module, output: Any) -> dict[str, Any]:
    """Return the state (KV cache) in an output, by the name of the argument that takes it back."""
    # ``model`` is the module that made the output. Raise LookupError if there is no state.
    kind: Any = type(model)
    for name in ("cache", "state"):
        state = getattr(output, name, None)
        if state is not None:
            return {_argument_of(kind, name): state}
    raise LookupError("the model returns no state")


@functools.cache
def _argument_of(kind: type[Any], name: str) -> str:
    """Return the name of an argument of a model's class."""
    # Code in a checkpoint's folder may have the argument under a former name.
    taken = inspect.signature(kind.forward).parameters
    if name in taken:
        return name
    return next((former for former in _FORMER_NAMES if former in taken), name)


def require_plausible(
    config: PreTrainedConfig, weights: Weights, location: str, is_quantised: bool
) -> None:
    """Raise ModelLoadError if a config describes no model, or one far larger than the weights."""
    # Up to twice the size is accepted here; loading the weights then names the missing tensors.
    if weights.num_tensors is None or weights.num_elements is None:
        return  # the makers of pickles are trusted
    _require_counts(config, weights.num_tensors, location)
    num_elements = weights.num_elements
    most = weights.num_bytes * _MOST_PER_BYTE if is_quantised else _MOST_TIMES * num_elements
    stated = _count_elements(config, location)
    if stated > most + _NUM_COMPUTED:
        raise ModelLoadError(
            f"{location}: config.json describes a model of {stated:,} numbers and the weights have "
            f"{weights.num_elements:,}; they are not of the same model"
        )


def require_complete(loading: Mapping[str, Any], location: str) -> None:
    """Raise ModelLoadError, naming the first tensor, if tensors are missing or of another shape."""
    mismatched = sorted(loading["mismatched_keys"])
    if mismatched:
        name, found, expected = mismatched[0]
        raise ModelLoadError(
            f"{location}: the weights do not fit config.json in {len(mismatched)} tensors, the "
            f"first is {name}: it has shape {tuple(found)}, expected {tuple(expected)}"
        )
    missing = sorted(loading["missing_keys"])
    if missing:
        raise ModelLoadError(
            f"{location}: {len(missing)} tensors are missing from the weights, the first is "
            f"{missing[0]}; the model would be scored with random numbers in their place"
        )


def _require_counts(config: PreTrainedConfig, num_tensors: int, location: str) -> None:
    """Raise ModelLoadError if a config states more layers than tensors, or too many experts."""
    for key, value in config.get_text_config().to_dict().items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        limit: float = _MOST_EXPERTS if "expert" in key else math.inf
        if re.search("layer|block", key):
            limit = num_tensors
        if value > limit and key.startswith(("n", "num", "encoder", "decoder")):
            raise ModelLoadError(
                f"{location}: config.json states {key} = {value:,}, and there are {num_tensors:,} "
                "tensors in the weights; they are not of the same model"
            )


def _count_elements(config: PreTrainedConfig, location: str) -> int:
    """Count the elements of a configuration's model without allocating them."""
    try:
        with torch.device("meta"):
            # The config may name an attention implementation whose library is not installed.
            model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
                copy.deepcopy(config), attn_implementation="eager"
            )
    except MODEL_FAILURES as error:
        raise ModelLoadError(
            f"{location}: the model in config.json cannot be created ({first_line(error)})"
        ) from error
    return sum(tensor.numel() for tensor in itertools.chain(model.parameters(), model.buffers()))


def is_memory_full(error: RuntimeError) -> bool:
    """Return True if the error reports a full memory of a device or of the host."""
    return isinstance(error, torch.OutOfMemoryError) or _HOST_FULL in str(error)


def plan_placement(
    device: torch.device, dtype: torch.dtype, weights: Weights, is_quantised: bool
) -> str | None:
    """Return the placement for loading the weights."""
    # ``auto`` spreads weights that do not fit on one CUDA device over all devices. Quantised
    # weights are loaded on the device directly, because many methods do not allow moving them. With
    # placement None, weights are first loaded into the host's memory.
    if device.type != "cuda":
        return None
    needed = weights.num_bytes
    if weights.num_elements is not None and not is_quantised:
        needed = weights.num_elements * dtype.itemsize
    # A named device (cuda:1) is never replaced.
    if device.index is None and does_not_fit(needed, free_bytes()):
        return "auto"
    return str(device) if is_quantised else None


def does_not_fit(needed: int, free: list[int]) -> bool:
    """Return True if there are several devices, and weights exceed the first one's free memory."""
    return len(free) > 1 and needed * ROOM_FACTOR > free[0]


def free_bytes() -> list[int]:
    """Return the free memory of each CUDA device in bytes."""
    return [torch.cuda.mem_get_info(index)[0] for index in range(torch.cuda.device_count())]


def place(model: PreTrainedModel, device: torch.device, placement: str | None) -> PreTrainedModel:
    """Move a model to its placement, if necessary; raise ModelLoadError if memory is too small."""
    if getattr(model, "hf_device_map", None) is not None:
        return model
    try:
        if placement == "auto":
            return _spread(model)
        moved: PreTrainedModel = model.to(device)  # type: ignore[arg-type]
    except (torch.OutOfMemoryError, ValueError) as error:
        raise ModelLoadError(
            f"the weights do not fit into the memory of {device} ({error}); use a smaller "
            "TIDEMARK_DTYPE, or a machine with more devices, and state the model's parameters in "
            "the catalogue, so that it runs on all of them"
        ) from error
    return moved


def _spread(model: PreTrainedModel) -> PreTrainedModel:
    """Spread a model from the host's memory over all devices, in proportion to free memory."""
    from accelerate import dispatch_model, infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    unsplit = list(model._no_split_modules or [])
    memory = get_balanced_memory(model, no_split_module_classes=unsplit)
    spread: PreTrainedModel = dispatch_model(
        model,
        device_map=infer_auto_device_map(model, max_memory=memory, no_split_module_classes=unsplit),
    )
    return spread
