"""Names of device, dtype and library versions; the time, memory and energy of a computation."""

from __future__ import annotations

import contextlib
import platform
import re
import resource
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.version import own_version

if TYPE_CHECKING:  # torch takes seconds to import, and compressors do not need it
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

_MATRIX = {"cuda": 8192, "cpu": 512}  # rows of the square matrices of ``matmul_rate``
_PRODUCTS = 7
_WARM_UP = 2  # first products, which are not timed
_CPU_FACTS = Path("/proc/cpuinfo")
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RAPL = Path("/sys/class/powercap")


def describe_device(device: torch.device) -> str:
    """Return kind and name of a device, such as ``cuda: NVIDIA H200``."""
    if device.type == "cuda":
        import torch

        return f"cuda: {torch.cuda.get_device_name(device)}"
    return describe_cpu() if device.type == "cpu" else str(device)


def name_of_dtype(dtype: torch.dtype) -> str:
    """Return the dtype's short name, such as ``float32``."""
    return str(dtype).removeprefix("torch.")


@cache
def describe_cpu() -> str:
    """Return ``cpu:`` and the processor's name."""
    if _CPU_FACTS.exists():
        for line in _CPU_FACTS.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return f"cpu: {line.partition(':')[2].strip()}"
    return f"cpu: {platform.processor() or platform.machine()}"


def library_versions(*names: str) -> dict[str, str]:
    """Return the versions of tidemark and of the named libraries."""
    return {"tidemark": own_version(), **{name: version(name) for name in names}}


@cache
def matmul_rate(device: torch.device, dtype: torch.dtype) -> float | None:
    """Return the rate of a large matrix product in operations per second; None if impossible."""
    import torch

    from models.weights.products import quick_products

    size = _MATRIX.get(device.type, 512)
    wait: Any = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    seconds = []
    try:
        rng = torch.Generator(device).manual_seed(0)  # the global one belongs to the caller
        a, b = (torch.randn(size, size, device=device, generator=rng).to(dtype) for _ in range(2))
        for _ in range(_PRODUCTS):
            wait()
            began = time.perf_counter()
            with torch.inference_mode(), quick_products(a):
                torch.nn.functional.linear(a, b)
            wait()
            seconds.append(time.perf_counter() - began)
    except RuntimeError:
        return None
    # Each element of the product takes ``size`` multiplications and additions.
    return 2.0 * size**3 / statistics.median(seconds[_WARM_UP:])


def active_parameters(model: PreTrainedModel) -> int:
    """Count the parameters that a token is multiplied by."""
    # A separate input embedding is looked up, so it does not count. Of the experts of a mixture,
    # the share that the configuration states counts.
    head: Any = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    embedding: Any = model.get_input_embeddings()
    is_tied = head is not None and head.weight is embedding.weight
    share = _share_of_experts(model.config.get_text_config())
    total = 0.0
    for name, weight in model.named_parameters():
        if weight is embedding.weight and not is_tied:
            continue
        if ".experts." in name:
            total += share * weight.numel()
        else:
            total += weight.numel()
    return round(total)


def _share_of_experts(config: PreTrainedConfig) -> float:
    """Return the share of a mixture's experts that a token uses; 1 if the numbers are unknown."""
    used = getattr(config, "num_experts_per_tok", None)
    for name in ("num_local_experts", "num_experts", "n_routed_experts"):
        number = getattr(config, name, None)
        if used and number:
            return float(used / number)
    return 1.0


@dataclass
class Cost:
    """The cost of a computation, set at the end of ``metered``.

    Attributes:
        seconds: wall-clock time.
        peak_memory_bytes: peak of the GPUs' allocations, or of this process's resident memory.
        energy_joules: energy of the GPUs or processors, including other processes, or None if it
            cannot be read.
    """

    seconds: float = 0.0
    peak_memory_bytes: int = 0
    energy_joules: float | None = None


@contextlib.contextmanager
def metered(on_cuda: bool) -> Iterator[Cost]:
    """Measure the cost of the code in the context."""
    cost = Cost()
    if on_cuda:
        read_energy = _cuda_joules
        _reset_cuda_peak()
    else:
        read_energy = _processor_joules
        _reset_resident_peak()
    joules = read_energy()
    began = time.perf_counter()
    yield cost
    cost.seconds = time.perf_counter() - began
    used = read_energy()
    if joules is not None and used is not None and used >= joules:  # counters may overflow
        cost.energy_joules = used - joules
    cost.peak_memory_bytes = _cuda_peak() if on_cuda else _resident_peak()


def _reset_resident_peak() -> None:
    with contextlib.suppress(OSError):  # on failure, use the peak since process start
        _CLEAR.write_text("5")  # resets VmHWM, the peak; see proc(5)


def _resident_peak() -> int:
    with contextlib.suppress(OSError):
        found = re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
        if found:
            return 1024 * int(found[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _processor_joules() -> float | None:
    """Return the energy counters' sum over all processor packages, or None without permission."""
    try:
        counters = [int(path.read_text()) for path in _RAPL.glob("*-rapl:?/energy_uj")]
    except (OSError, ValueError):
        return None
    return sum(counters) / 1e6 if counters else None


def _reset_cuda_peak() -> None:
    import torch

    for device in range(torch.cuda.device_count()):
        torch.cuda.reset_peak_memory_stats(device)


def _cuda_peak() -> int:
    import torch

    return sum(map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count())))


def _cuda_joules() -> float | None:
    """Return the energy counters' sum over the GPUs that torch sees, or None if not supported."""
    import pynvml
    import torch

    torch.cuda.synchronize()
    try:
        pynvml.nvmlInit()
        uuids = [
            f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            for device in range(torch.cuda.device_count())
        ]
        handles = [pynvml.nvmlDeviceGetHandleByUUID(uuid.encode()) for uuid in uuids]
        millijoules = sum(map(pynvml.nvmlDeviceGetTotalEnergyConsumption, handles))
        return float(millijoules) / 1e3
    except pynvml.NVMLError:
        return None
