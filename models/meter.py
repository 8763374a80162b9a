"""What a piece of work costs: time, memory and, where the driver tells, energy."""

from __future__ import annotations

import contextlib
import re
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RAPL = Path("/sys/class/powercap")


@dataclass
class Cost:
    """Filled in when the work is done.

    Attributes:
        seconds: wall-clock time.
        peak_memory_bytes: most memory at any one time: of the GPUs' allocations, or of what this
            process has resident.
        energy_joules: of the GPUs, or of the processors, whoever else used them; None where the
            driver does not tell.
    """

    seconds: float = 0.0
    peak_memory_bytes: int = 0
    energy_joules: float | None = None


@contextlib.contextmanager
def metered(on_cuda: bool) -> Iterator[Cost]:
    """Measure what is done inside."""
    cost = Cost()
    read_energy = _cuda_joules if on_cuda else _processor_joules
    (_reset_cuda_peak if on_cuda else _reset_resident_peak)()
    joules, began = read_energy(), time.perf_counter()
    yield cost
    cost.seconds = time.perf_counter() - began
    used = read_energy()
    if joules is not None and used is not None and used >= joules:  # the counters wrap
        cost.energy_joules = used - joules
    cost.peak_memory_bytes = _cuda_peak() if on_cuda else _resident_peak()


def _reset_resident_peak() -> None:
    with contextlib.suppress(OSError):  # then the peak is that of the process so far
        _CLEAR.write_text("5")  # proc(5): resets VmHWM


def _resident_peak() -> int:
    with contextlib.suppress(OSError):
        if found := re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE):
            return 1024 * int(found[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _processor_joules() -> float | None:
    """Sum the energy counters of all processor packages; readable by few users."""
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
    """Sum the energy counters of the GPUs that torch sees."""
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
