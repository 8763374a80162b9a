"""Where a model's weights go: one device, or several where one has no room for them."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from core.errors import ModelLoadError
from models.model_files import Weights

# What activations and the allocator take beside the weights, at least.
_ROOM_FACTOR = 1.1
_HOST_FULL = "DefaultCPUAllocator: can't allocate memory"  # a plain RuntimeError


def is_memory_full(error: RuntimeError) -> bool:
    """Whether torch says that a device has no room left, the host's memory included."""
    return isinstance(error, torch.OutOfMemoryError) or _HOST_FULL in str(error)


def plan_placement(
    device: torch.device, dtype: torch.dtype, weights: Weights, is_quantised: bool
) -> str | None:
    """Decide how the weights are loaded.

    Args:
        device: that the settings ask for.
        dtype: of the weights in memory, unless they are quantised.
        weights: as their files have them.
        is_quantised: whether they stay in memory as they are in the files.

    Returns:
        ``auto`` to spread them over all CUDA devices, because they do not fit on one; the device's
        name for quantised weights, which many methods do not let be moved later; None to load them
        in the host's memory first.
    """
    if device.type != "cuda":
        return None
    needed = weights.num_bytes
    if weights.num_elements is not None and not is_quantised:
        needed = weights.num_elements * dtype.itemsize
    # A device that was named (cuda:1) is taken at its word.
    if device.index is None and does_not_fit(needed, free_bytes()):
        return "auto"
    return str(device) if is_quantised else None


def does_not_fit(needed: int, free: list[int]) -> bool:
    """Whether weights of so many bytes need more than the first of several devices."""
    return len(free) > 1 and needed * _ROOM_FACTOR > free[0]


def free_bytes() -> list[int]:
    """Return the free memory of each CUDA device."""
    return [torch.cuda.mem_get_info(index)[0] for index in range(torch.cuda.device_count())]


def place(model: PreTrainedModel, device: torch.device, placement: str | None) -> PreTrainedModel:
    """Move a model to where ``plan_placement`` wants it, if it is not there yet.

    Raises:
        ModelLoadError: it fits on no device, nor on all of them.
    """
    if getattr(model, "hf_device_map", None) is not None:
        return model
    try:
        if placement == "auto":
            return _spread(model)
        moved: PreTrainedModel = model.to(device)  # type: ignore[arg-type]
    except (torch.OutOfMemoryError, ValueError) as error:
        raise ModelLoadError(
            f"the weights do not fit into the memory of {device} ({error}); use a smaller "
            "TIDEMARK_DTYPE, or a machine with more devices"
        ) from error
    return moved


def _spread(model: PreTrainedModel) -> PreTrainedModel:
    """Spread a model that is in the host's memory over all devices, as evenly as they have room."""
    from accelerate import dispatch_model, infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    whole = list(model._no_split_modules or [])
    memory = get_balanced_memory(model, no_split_module_classes=whole)
    spread: PreTrainedModel = dispatch_model(
        model,
        device_map=infer_auto_device_map(model, max_memory=memory, no_split_module_classes=whole),
    )
    return spread
