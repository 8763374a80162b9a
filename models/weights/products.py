"""Matrix products in float32 on a CPU by oneDNN, in place of MKL.

MKL uses AVX-512 only on Intel's processors. On AMD's, oneDNN is twice as fast, and equally exact
(one core of an EPYC: 95 and 210 GFLOP/s).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn import Parameter, functional
from torch.overrides import TorchFunctionMode

_LEAST_ROWS = 16  # below 16 rows, calling oneDNN takes what its product saves


def suits_onednn(device: torch.device, dtype: torch.dtype) -> bool:
    """Return True if products of this kind are quicker in oneDNN, and torch has it."""
    is_suited = (device.type, dtype) == ("cpu", torch.float32)
    return is_suited and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def quick_products(given: Any) -> AbstractContextManager[object]:
    """Return a context in which inference by a model, or with a tensor, uses oneDNN."""
    is_quick = torch.is_inference_mode_enabled() and suits_onednn(given.device, given.dtype)
    return _Products() if is_quick else nullcontext()


class _Products(TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call oneDNN for ``linear``, and for ``addmm`` (GPT-2), if the arguments suit it."""
        given: tuple[Any, ...] = (None, None, None)
        if function is functional.linear:
            given = (*args, None)[:3]
        elif function is torch.addmm and len(args) == 3:
            given = args[1], args[2].t(), args[0]
        if not kwargs and _are_suited(*given):
            return torch.ops.mkldnn._linear_pointwise(*given, "none", [], "")
        return function(*args, **(kwargs or {}))


def _are_suited(states: Any, weight: Any, bias: Any) -> bool:
    tensors = (states, weight) if bias is None else (states, weight, bias)
    return (
        all(type(each) in (torch.Tensor, Parameter) for each in tensors)
        and all(suits_onednn(each.device, each.dtype) for each in tensors)
        and weight.dim() == 2
        and (bias is None or bias.shape == weight.shape[:1])
        and states.numel() >= _LEAST_ROWS * weight.shape[1] > 0
    )
