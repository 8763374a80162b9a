"""Matrix products in float32 on a CPU by oneDNN, in place of MKL.

MKL uses AVX-512 only on Intel's processors. On AMD's, oneDNN is twice as fast, and equally exact
(one core of an EPYC: 95 and 210 GFLOP/s).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_LEAST_ROWS = 16  # below 16 rows, calling oneDNN takes what its product saves


def quick_products(inputs: torch.Tensor | torch.nn.Module) -> AbstractContextManager[object]:
    """Return a context in which products run in oneDNN, if inputs of this kind suit it."""
    is_plain = (inputs.device.type, inputs.dtype) != ("cpu", torch.float32)
    if is_plain or not torch.is_inference_mode_enabled() or not has_onednn():
        return nullcontext()
    return _Products()


class _Products(TorchFunctionMode):
    """While active, ``linear`` and ``addmm`` (of GPT-2) run in oneDNN where it is suitable."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call a function of torch, or oneDNN in its place."""
        given = None
        if function is functional.linear and not kwargs:
            given = (*args, None)[:3]
        elif function is torch.addmm and len(args) == 3 and not kwargs:
            given = args[1], args[2].t(), args[0]
        if given is not None and _suits(*given):
            return _product(*given)
        return function(*args, **(kwargs or {}))


@cache
def has_onednn() -> bool:
    """Return True if torch has oneDNN's linear layer, and its result is that of torch's own."""
    states, weight = torch.eye(_LEAST_ROWS), torch.arange(64.0).reshape(4, _LEAST_ROWS)
    given = states, weight, torch.ones(4)
    try:
        with torch.inference_mode():
            return torch.equal(_product(*given), functional.linear(*given))
    except (AttributeError, RuntimeError):
        return False


def _product(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
    return product


def _suits(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Return True for enough rows of plain float32 tensors on a CPU."""
    tensors = [each for each in (states, weight, bias) if each is not None]
    return (
        all(type(each) in (torch.Tensor, torch.nn.Parameter) for each in tensors)
        and all(each.dtype == torch.float32 and each.device.type == "cpu" for each in tensors)
        and weight.dim() == 2
        and (bias is None or bias.shape == weight.shape[:1])
        and states.numel() >= _LEAST_ROWS * weight.shape[1] > 0
    )
