"""What a cell was computed on and with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # torch takes seconds to import, and compressors do without
    import torch

_CPU_FACTS = Path("/proc/cpuinfo")


def describe_device(device: torch.device) -> str:
    """Return kind and name of a device, such as ``cuda: NVIDIA H200``."""
    if device.type == "cuda":
        import torch

        return f"cuda: {torch.cuda.get_device_name(device)}"
    return describe_cpu() if device.type == "cpu" else str(device)


def name_of_dtype(dtype: torch.dtype) -> str:
    """Return ``float32`` and the like."""
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
    """Return the versions of tidemark and of the libraries named."""
    return {name: version(name) for name in ("tidemark", *names)}
