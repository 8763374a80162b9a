"""Matrix products in float32 on a CPU: by oneDNN or by MKL, whichever is quicker on the processor.

MKL uses AVX-512 only on Intel's processors. On AMD's processors with AVX-512, oneDNN is twice as
fast (one core of an EPYC: 95 and 210 GFLOP/s). On AMD's without AVX-512, MKL takes 0.8 of oneDNN's
time. With AVX2, oneDNN needs 1.5 times MKL's time for GPT-2's weights of 768 x 3072, and at most
1.2 times for the others. So both are measured with each shape of a model, once on a machine
(docs/adr/0054-products.md). oneDNN is taken if MKL is not clearly quicker.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
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
_CLEARLY = 0.85  # MKL is taken if it needs at most this share of oneDNN's time
_LEAST_WEIGHTS = 2**20  # of the largest matrix; smaller ones are not worth a measurement
_ROWS = 512  # of a measured product; a batch has about a thousand, and fewer favour oneDNN
_COLUMNS = 1024  # of a measured product, at most: the ratio hardly depends on more
_TURNED = "Conv1D"  # the layer of GPT-2, whose weight is (inputs, outputs)
_ROUNDS = 5  # of measurement
_CPU_FACTS = Path("/proc/cpuinfo")


class ProductShape(NamedTuple):
    """The size of a product's weight, and its order in memory.

    Attributes:
        is_turned: True if the outputs of an input lie one after another, as GPT-2 stores them.
    """

    inputs: int
    outputs: int
    is_turned: bool

    @classmethod
    def of(cls, weight: torch.Tensor) -> ProductShape:
        """Return the shape of a weight, (outputs, inputs). Outputs are at most _COLUMNS."""
        # All outputs of a turned weight count: they decide how far its rows are apart.
        outputs, inputs = weight.shape
        to_next_output, to_next_input = weight.stride()
        is_turned = to_next_output == 1 and to_next_input != 1
        if not is_turned:
            outputs = min(outputs, _COLUMNS)
        return cls(inputs, outputs, is_turned)


# The shapes of a model whose products are MKL's.
_chosen: WeakKeyDictionary[nn.Module, frozenset[ProductShape]] = WeakKeyDictionary()


def suits_onednn(device: torch.device, dtype: torch.dtype) -> bool:
    """Return True if oneDNN has products of this kind, and torch has it."""
    is_suited = (device.type, dtype) == ("cpu", torch.float32)
    return is_suited and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def choose_libraries(model: nn.Module, folder: Path) -> str | None:
    """Choose the library of each product of a model; return them as ``onednn, mkl for 768x3072``.

    Return None if nothing is measured. The first choice for a processor, a version of torch and a
    set of shapes is measured, and kept in ``folder``. Later ones are read from it, so that all
    processes of a machine compute the same bits. A measurement takes one to three seconds, in
    processor time so that other work matters little.

    Raises:
        StorageError: the folder cannot be written.
    """
    weight = next(model.parameters(), None)
    if weight is None or not suits_onednn(weight.device, weight.dtype):
        return None
    shapes = _shapes_of(model)
    has_mkl = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    if not has_mkl or not shapes:
        return None
    quicker = _kept_choice(folder, sorted(shapes))
    _chosen[model] = quicker
    if quicker == shapes:
        return MKL
    if not quicker:
        return ONEDNN
    names = [f"{shape.inputs}x{shape.outputs}" for shape in sorted(quicker)]
    return f"{ONEDNN}, {MKL} for {', '.join(names)}"


def quick_products(given: Any) -> AbstractContextManager[object]:
    """Return a context in which inference by a model or with a tensor uses the chosen library."""
    # Without a choice, and for a tensor, this is oneDNN.
    if not torch.is_inference_mode_enabled() or not suits_onednn(given.device, given.dtype):
        return nullcontext()
    of_mkl: frozenset[ProductShape] = frozenset()
    if isinstance(given, nn.Module):
        of_mkl = _chosen.get(given, of_mkl)
    return _Products(of_mkl)


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


def _shapes_of(model: nn.Module) -> set[ProductShape]:
    """Return the shapes of the linear layers; none for a model whose weights are all small."""
    found = set()
    largest = 0
    for layer in model.modules():
        weight = getattr(layer, "weight", None)
        is_turned = type(layer).__name__ == _TURNED
        is_layer = isinstance(layer, nn.Linear) or is_turned
        if is_layer and weight is not None and weight.dim() == 2:
            largest = max(largest, weight.numel())
            found.add(ProductShape.of(weight.t() if is_turned else weight))
    return found if largest >= _LEAST_WEIGHTS else set()


def _kept_choice(folder: Path, shapes: list[ProductShape]) -> frozenset[ProductShape]:
    """Return the shapes for which MKL is kept; measure and keep them if no choice is."""
    machine = {"processor": describe_processor(), "torch": torch.__version__}
    digest = hashlib.sha256(json.dumps([machine, _ROWS, shapes]).encode()).hexdigest()[:16]
    path = folder / f"{digest}.json"
    with explain_disk_errors(str(path)):
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.with_suffix(".lock")):
            kept = _read(path)
            if kept is not None:
                return kept
            products = []
            for shape, seconds in _measure(shapes).items():
                is_clear = seconds[MKL] <= _CLEARLY * seconds[ONEDNN]
                library = MKL if is_clear else ONEDNN
                products.append({**shape._asdict(), "seconds": seconds, "library": library})
            facts = {**machine, "rows": _ROWS, "products": products}
            with writing_file(path) as new:
                new.write_text(json.dumps(facts, indent=1), encoding="utf-8")
            return _of_mkl(facts)


def _read(path: Path) -> frozenset[ProductShape] | None:
    """Return the shapes of a kept choice; None if there is none, or its file is damaged."""
    if not path.is_file():
        return None
    try:
        return _of_mkl(json.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError):
        return None


def _of_mkl(facts: dict[str, Any]) -> frozenset[ProductShape]:
    """Return the shapes for which MKL was quicker."""
    return frozenset(
        ProductShape(product["inputs"], product["outputs"], product["is_turned"])
        for product in facts["products"]
        if product["library"] == MKL
    )


@torch.inference_mode()
def _measure(shapes: Sequence[ProductShape]) -> dict[ProductShape, dict[str, float]]:
    """Return the median processor time of each product, in seconds, by library."""
    # All products have a turn in each round. So a busy moment of the machine slows few rounds of
    # each. A minimum would favour the library that met the one quiet moment of a busy machine.
    products = {shape: _products_of(shape) for shape in shapes}
    times: dict[tuple[ProductShape, str], list[float]] = defaultdict(list)
    for number in range(1 + _ROUNDS):
        for shape, by_library in products.items():
            for library, product in by_library.items():
                seconds = _seconds(product)
                if number > 0:  # the first round warms up
                    times[shape, library].append(seconds)
    medians = {}
    for shape in shapes:
        medians[shape] = {library: median(times[shape, library]) for library in (ONEDNN, MKL)}
    return medians


def _products_of(shape: ProductShape) -> dict[str, Callable[[], object]]:
    """Return functions that compute one product of a shape, by library."""
    generator = torch.Generator().manual_seed(0)  # the global one belongs to the caller
    states = torch.randn(_ROWS, shape.inputs, generator=generator)
    weight = torch.randn(shape.outputs, shape.inputs, generator=generator)
    bias = torch.zeros(shape.outputs)
    if shape.is_turned:
        weight = weight.t().contiguous().t()

    def by_onednn() -> object:
        return torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")

    def by_mkl() -> object:
        if shape.is_turned:
            return torch.addmm(bias, states, weight.t())
        return functional.linear(states, weight, bias)

    return {ONEDNN: by_onednn, MKL: by_mkl}


def _seconds(product: Callable[[], object]) -> float:
    began = time.process_time()
    product()
    return time.process_time() - began


class _Products(TorchFunctionMode):
    """Calls oneDNN for products that suit it, but those of shapes for which MKL is chosen."""

    def __init__(self, of_mkl: frozenset[ProductShape]) -> None:
        super().__init__()
        self._of_mkl = of_mkl

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call oneDNN for ``linear``, and for ``addmm`` (GPT-2), if the arguments suit it."""
        given: tuple[Any, ...] = (None, None, None)
        if function is functional.linear:
            given = (*args, None)[:3]
        elif function is torch.addmm and len(args) == 3:
            given = args[1], args[2].t(), args[0]
        if not kwargs and _are_suited(*given) and ProductShape.of(given[1]) not in self._of_mkl:
            return torch.ops.mkldnn._linear_pointwise(*given, "none", [], "")
        return function(*args, **(kwargs or {}))


def _are_suited(states: Any, weight: Any, bias: Any) -> bool:
    """Return True if oneDNN can multiply these; kinds, sizes and the number of rows decide."""
    tensors = (states, weight) if bias is None else (states, weight, bias)
    return (
        all(type(each) in (torch.Tensor, Parameter) for each in tensors)
        and all(suits_onednn(each.device, each.dtype) for each in tensors)
        and weight.dim() == 2
        and (bias is None or bias.shape == weight.shape[:1])
        and states.numel() >= _LEAST_ROWS * weight.shape[1] > 0
    )
