"""Matrix products in float32 on a CPU: by oneDNN or by MKL, whichever is quicker on the processor.

MKL uses AVX-512 only on Intel's processors. On AMD's with AVX-512, oneDNN is twice as fast (one
core of an EPYC: 95 and 210 GFLOP/s); on AMD's without it, MKL takes 0.8 of oneDNN's time. So both
are measured with the shapes of a model, once on a machine (docs/adr/0054-products.md). oneDNN is
taken if MKL is not clearly quicker.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import filelock
import torch
from torch import nn
from torch.nn import Parameter, functional
from torch.overrides import TorchFunctionMode

from core.storage.store import explain_disk_errors, writing_file

ONEDNN = "onednn"
MKL = "mkl"

_LEAST_ROWS = 16  # below 16 rows, calling oneDNN takes what its product saves
_CLEARLY = 0.9  # MKL is taken if it needs at most this share of oneDNN's time
_LEAST_WEIGHTS = 2**20  # of the largest matrix; smaller ones are not worth a measurement
_ROWS = 128  # of a measured product
_COLUMNS = 1024  # of a measured product, at most: the ratio hardly depends on more
_REPEATS = 5
_CPU_FACTS = Path("/proc/cpuinfo")
_chosen: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


def suits_onednn(device: torch.device, dtype: torch.dtype) -> bool:
    """Return True if oneDNN has products of this kind, and torch has it."""
    is_suited = (device.type, dtype) == ("cpu", torch.float32)
    return is_suited and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def choose_library(model: nn.Module, folder: Path) -> str | None:
    """Choose the library of a model's products; return its name, or None if nothing is measured.

    The first choice for a processor, a version of torch and a set of shapes is measured, and kept
    in ``folder``. Later ones are read from it, so that all processes of a machine compute the same
    bits. A measurement takes less than a second, in processor time so that other work matters
    little. Raise StorageError if the folder cannot be written.
    """
    weight = next(model.parameters(), None)
    if weight is None or not suits_onednn(weight.device, weight.dtype):
        return None
    shapes = _shapes_of(model)
    has_mkl = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    if not has_mkl or not shapes:
        return None
    library = _kept_choice(folder, sorted(shapes))
    _chosen[model] = library
    return library


def quick_products(given: Any) -> AbstractContextManager[object]:
    """Return a context in which inference by a model, or with a tensor, uses the chosen library.

    Without a choice, and for a tensor, this is oneDNN.
    """
    is_quick = torch.is_inference_mode_enabled() and suits_onednn(given.device, given.dtype)
    if isinstance(given, nn.Module) and _chosen.get(given) == MKL:
        is_quick = False
    return _Products() if is_quick else nullcontext()


def describe_processor() -> str:
    """Return the processor's name, and those of its flags that matrix products depend on."""
    try:
        text = _CPU_FACTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    pairs = (line.partition(":")[::2] for line in text.splitlines())
    facts = {name.strip(): value.strip() for name, value in pairs}
    flags = [
        flag
        for flag in facts.get("flags", "").split()
        if flag.startswith(("avx", "amx")) or flag == "fma"
    ]
    return " ".join([facts.get("model name", "unknown"), *sorted(flags)])


def _shapes_of(model: nn.Module) -> set[tuple[int, int, bool]]:
    """Return inputs, outputs (at most _COLUMNS) and order of the linear layers' weights.

    The order is True if the outputs lie one after another, as in GPT-2. Return nothing for a model
    whose weights are all small.
    """
    found = set()
    largest = 0
    for layer in model.modules():
        weight = getattr(layer, "weight", None)
        is_linear = isinstance(layer, nn.Linear)
        is_layer = is_linear or type(layer).__name__ == "Conv1D"
        if not is_layer or weight is None or weight.dim() != 2:
            continue
        inputs, outputs = reversed(weight.shape) if is_linear else weight.shape
        largest = max(largest, weight.numel())
        found.add((inputs, min(outputs, _COLUMNS), not is_linear))
    return found if largest >= _LEAST_WEIGHTS else set()


def _kept_choice(folder: Path, shapes: list[tuple[int, int, bool]]) -> str:
    """Return the library that is kept for shapes; measure and keep it if none is."""
    machine = {"processor": describe_processor(), "torch": torch.__version__}
    digest = hashlib.sha256(json.dumps([machine, shapes]).encode()).hexdigest()[:16]
    path = folder / f"{digest}.json"
    with explain_disk_errors(str(path)):
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.with_suffix(".lock")):
            kept = _read(path)
            if kept is not None:
                return kept
            seconds = _measure(shapes)
            is_clear = seconds[MKL] <= _CLEARLY * seconds[ONEDNN]
            library = MKL if is_clear else ONEDNN
            facts = {**machine, "shapes": shapes, "seconds": seconds, "library": library}
            with writing_file(path) as new:
                new.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    return library


def _read(path: Path) -> str | None:
    """Return the library of a kept choice; None if there is none, or its file is damaged."""
    if not path.is_file():
        return None
    try:
        library = json.loads(path.read_bytes())["library"]
    except (ValueError, KeyError, TypeError):
        return None
    return library if library in (ONEDNN, MKL) else None


@torch.inference_mode()
def _measure(shapes: list[tuple[int, int, bool]]) -> dict[str, float]:
    """Return the processor time of one product of each shape, in seconds, by library."""
    seconds = dict.fromkeys((ONEDNN, MKL), 0.0)
    for inputs, outputs, is_turned in shapes:
        best = dict.fromkeys(seconds, float("inf"))
        for library, product in _products_of(inputs, outputs, is_turned):
            best[library] = min(best[library], _seconds(product))
        for library, took in best.items():
            seconds[library] += took
    return seconds


def _products_of(
    inputs: int, outputs: int, is_turned: bool
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the products to measure, in turn, after one of each that warms up."""
    dice = torch.Generator().manual_seed(0)  # the global one belongs to the caller
    states = torch.randn(_ROWS, inputs, generator=dice)
    weight = torch.randn(outputs, inputs, generator=dice)
    bias = torch.zeros(outputs)
    turned = weight.t().contiguous()

    def by_onednn() -> object:
        given = turned.t() if is_turned else weight
        return torch.ops.mkldnn._linear_pointwise(states, given, bias, "none", [], "")

    def by_mkl() -> object:
        if is_turned:
            return torch.addmm(bias, states, turned)
        return functional.linear(states, weight, bias)

    by_onednn()
    by_mkl()
    for _ in range(_REPEATS):
        yield ONEDNN, by_onednn
        yield MKL, by_mkl


def _seconds(product: Callable[[], object]) -> float:
    began = time.process_time()
    product()
    return time.process_time() - began


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
