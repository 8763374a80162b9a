"""Timing of contenders in interleaved rounds: the contenders alternate in one process.

Each round runs every contender once; the first contender differs between rounds. A ratio is the
median over rounds of the ratio within a round, so a slow minute of the machine affects both
contenders. Rates per second depend on the machine, so compare only ratios.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil

_ROOT = Path(__file__).resolve().parents[1]
_SAMPLE_S = 0.01
_MIB = 2**20


@dataclass(frozen=True)
class Contender:
    """One implementation of a job; implementations of the same job are compared.

    ``run`` does the whole job once, given an empty folder. ``amounts`` is the amount of work in one
    run by unit, such as ``{"rows": 2e6}``. ``baseline`` names the contender to compare with.
    """

    name: str
    run: Callable[[Path], object]
    amounts: Mapping[str, float]
    baseline: str | None = None


@dataclass(frozen=True)
class Timing:
    """The measurements of one contender; ``seconds`` are the wall-clock times, one per round.

    ``cpu_seconds`` is the processor time per round over all threads of this process, including the
    threads of the simulated web. ``peak_rss_bytes`` is the largest resident memory of the process
    during any run, including memory that was in use before the run.
    """

    contender: Contender
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    peak_rss_bytes: int

    @property
    def median_s(self) -> float:
        """Return the median run time per round, in seconds."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Report:
    """The figures of one benchmark.

    ``conditions`` describes sizes, shapes and dtypes. ``memory`` is the title of the memory column.
    ``separate_memory`` holds each contender's memory in bytes, if it was measured in a separate
    process; the report then shows this memory instead of ``peak_rss_bytes``.
    """

    title: str
    conditions: str
    timings: tuple[Timing, ...]
    memory: str = "peak RSS"
    separate_memory: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Verdict:
    """The figures of a benchmark, and whether they meet fixed requirements."""

    title: str
    rows: Mapping[str, str]  # figures by label
    conditions: Mapping[str, bool]  # by requirement: True if it is met

    @property
    def holds(self) -> bool:
        """Return True if all requirements are met."""
        return all(self.conditions.values())

    def __str__(self) -> str:
        lines = [f"### {self.title}", "", "| figure | |", "|---|---|"]
        lines += [f"| {name} | {figure} |" for name, figure in self.rows.items()]
        marks = {True: "holds", False: "**does not hold**"}
        held = [f"- {marks[holds]}: {what}" for what, holds in self.conditions.items()]
        return "\n".join([*lines, "", *held])


def measure(
    contenders: Sequence[Contender], rounds: int, warm_up: bool = True
) -> tuple[Timing, ...]:
    """Time the contenders in ``rounds`` interleaved rounds; ``warm_up`` adds an uncounted one."""
    runs: dict[str, list[_Run]] = {contender.name: [] for contender in contenders}
    for number in range(0 if warm_up else 1, rounds + 1):
        first = number % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            once = _run_once(contender)
            step = f"round {number}" if number else "warm-up"
            say(f"{step}: {contender.name}: {once.took_s:.2f} s")
            if number:
                runs[contender.name].append(once)
    return tuple(_timing(contender, runs[contender.name]) for contender in contenders)


def run_alone(module: str, *arguments: object) -> Any:
    """Run ``python -m MODULE ARGUMENTS`` in a new process; return its last line, which is JSON."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def largest_resident_size() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    # The maximum of ``getrusage`` includes the memory of the parent process.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return 1024 * int(found[1])


def report_alone(
    title: str, conditions: str, runs: Mapping[str, tuple[Mapping[str, float], Sequence[Any]]]
) -> Report:
    """Return the report of jobs that ran in their own processes; ``runs`` has ``_Run`` by name."""
    timings = tuple(
        _timing(Contender(name, lambda _: None, amounts), [_Run(*each) for each in given])
        for name, (amounts, given) in runs.items()
    )
    own = {each.contender.name: each.peak_rss_bytes for each in timings}
    return Report(title, conditions, timings, "peak RSS of its own", own)


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


class _Run(NamedTuple):
    took_s: float
    cpu_s: float
    peak_rss_bytes: int


def _run_once(contender: Contender) -> _Run:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder, peak_rss() as peak:
        began, cpu_began = time.perf_counter(), time.process_time()
        contender.run(Path(folder))
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    return _Run(took_s, cpu_s, peak[0])


def _timing(contender: Contender, runs: Sequence[_Run]) -> Timing:
    return Timing(
        contender,
        tuple(each.took_s for each in runs),
        tuple(each.cpu_s for each in runs),
        max(each.peak_rss_bytes for each in runs),
    )


@contextlib.contextmanager
def peak_rss() -> Iterator[list[int]]:
    """Yield a one-item list, updated within the ``with`` block: this process's peak RSS (bytes)."""
    process, done = psutil.Process(), threading.Event()
    peak = [process.memory_info().rss]

    def watch() -> None:
        while not done.wait(_SAMPLE_S):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def ratios(timing: Timing, baseline: Timing) -> list[float]:
    """Return, per round, the baseline's time divided by the contender's (2: twice as fast)."""
    return [theirs / own for own, theirs in zip(timing.seconds, baseline.seconds, strict=True)]


def as_markdown(report: Report) -> str:
    """Return a report as a Markdown section with one table."""
    by_name = {timing.contender.name: timing for timing in report.timings}
    lines = [
        f"### {report.title}",
        "",
        report.conditions,
        "",
        f"| job | median s | CPU s | rate | times the baseline's speed (range) | {report.memory} |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [_row(timing, by_name, _memory(timing, report)) for timing in report.timings]
    return "\n".join(lines)


def _memory(timing: Timing, report: Report) -> str:
    if report.separate_memory is None:
        return _mebibytes(timing.peak_rss_bytes)
    own = report.separate_memory[timing.contender.name]
    if timing.contender.baseline is None:
        return _mebibytes(own)
    return f"{_mebibytes(own)} ({own / report.separate_memory[timing.contender.baseline]:.2f} ×)"


def _mebibytes(size: int) -> str:
    return f"{size / _MIB:,.0f} MiB"


def _row(timing: Timing, by_name: Mapping[str, Timing], memory: str) -> str:
    """Return a row of a table in Markdown: times, rates, and ratios to the baseline."""
    contender = timing.contender
    rate = ", ".join(
        f"{_digits(amount / timing.median_s)} {unit}/s"
        for unit, amount in contender.amounts.items()
    )
    compared = "–"
    if contender.baseline:
        each = ratios(timing, by_name[contender.baseline])
        compared = (
            f"{statistics.median(each):.2f} ({min(each):.2f}–{max(each):.2f}) "
            f"× {contender.baseline}"
        )
    cells = (
        contender.name,
        f"{timing.median_s:.3f}",
        f"{statistics.median(timing.cpu_seconds):.3f}",
        rate,
        compared,
        memory,
    )
    return f"| {' | '.join(cells)} |"


def _digits(value: float) -> str:
    """Format a number with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
