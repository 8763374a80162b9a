"""Sampling of the memory and the processor time of processes."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

_MIB = 2**20
_SAMPLE_S = 0.5


@dataclass(frozen=True)
class Memory:
    """Memory samples (pairs of seconds and bytes) and CPU time of a process with its children."""

    samples: tuple[tuple[float, int], ...]
    cpu_s: float

    @property
    def growth(self) -> float:
        """Return the memory growth over the last half of the samples, as a fraction of the mean."""
        half = self.samples[len(self.samples) // 2 :]
        if len(half) < 2:
            return 0.0
        seconds, sizes = zip(*half, strict=True)
        slope = statistics.linear_regression(seconds, sizes).slope
        return float(slope * (seconds[-1] - seconds[0]) / statistics.fmean(sizes))

    def __str__(self) -> str:
        at = [self.samples[round(part * (len(self.samples) - 1) / 4)] for part in range(1, 5)]
        sizes = ", ".join(f"{size / _MIB:,.0f}" for _, size in at)
        peak = max(size for _, size in self.samples)
        most = f"{peak / _MIB:,.0f} MiB at most"
        return f"{sizes} MiB at each quarter, {most}; {self.cpu_s:.0f} s of CPU"


class Watch:
    """Context manager that samples memory and CPU time of processes, given as ids by name."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self._samples: dict[str, list[tuple[float, int]]] = {name: [] for name in processes}
        self._cpu: dict[str, list[float]] = {name: [] for name in processes}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def of(self, name: str) -> Memory:
        """Return the samples of one process, by its name."""
        cpu = self._cpu[name]
        return Memory(tuple(self._samples[name]), cpu[-1] - cpu[0])

    def _run(self) -> None:
        """Sample memory and processor time of processes and their children until told to end."""
        while not self._ended.wait(_SAMPLE_S):
            for name, process in self._processes.items():
                with contextlib.suppress(psutil.Error):  # a process that has ended is ignored
                    family = [process, *process.children(recursive=True)]
                    size = sum(each.memory_info().rss for each in family)
                    cpu_s = sum(sum(each.cpu_times()[:2]) for each in family)
                    if size:  # the size of a zombie process is 0
                        self._samples[name].append((time.monotonic(), size))
                        self._cpu[name].append(cpu_s)
