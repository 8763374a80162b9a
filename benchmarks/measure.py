"""Interleaved rounds: contenders alternate in one process, so that ratios are of one machine.

Each round runs every contender once and begins with another one. A ratio is the median over rounds
of the ratio within a round, so a slow minute of the machine affects both sides. The rates are not
corrected for the machine's speed: they are for orientation.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

_SAMPLE_S = 0.01
_MIB = 2**20


@dataclass(frozen=True)
class Contender:
    """One way to do a job.

    ``run`` does the whole job once, given an empty folder. ``amounts``: the output of one run by
    unit, such as ``{"rows": 2e6}``. ``baseline``: the contender to compare with, by name.
    """

    name: str
    run: Callable[[Path], object]
    amounts: Mapping[str, float]
    baseline: str | None = None


@dataclass(frozen=True)
class Timing:
    """The measurements of one contender: ``seconds`` are wall-clock times by round.

    ``cpu_seconds``: processor time by round, over all threads of this process, also those of the
    simulated web and the memory watch. ``peak_rss_bytes``: the process's largest resident size
    during any run, including memory in use before.
    """

    contender: Contender
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    peak_rss_bytes: int

    @property
    def median_s(self) -> float:
        """Return the median seconds of a round."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Report:
    """The figures of one benchmark.

    ``conditions``: sizes, shapes and dtypes, in a sentence. ``memory``: title of the last column.
    ``separate_memory``: bytes by contender, if measured in separate processes; shown instead of
    the common process's memory.
    """

    title: str
    conditions: str
    timings: tuple[Timing, ...]
    memory: str = "peak RSS"
    separate_memory: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Verdict:
    """Figures that are compared with bounds, not with each other.

    ``rows``: figures by label. ``conditions``: each with its figure, and True if it holds.
    """

    title: str
    rows: Mapping[str, str]
    conditions: Mapping[str, bool]

    @property
    def holds(self) -> bool:
        """Return True if all conditions hold."""
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
    """Run the contenders in turn, in the report's order, for ``rounds`` counted rounds (1 or more).

    With ``warm_up``, an uncounted round comes first.
    """
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
    """Yield a list whose only item is this process's largest resident size so far, in bytes."""
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
    """Return, by round, the baseline's time over the contender's (2 = half the time); same job."""
    return [theirs / own for own, theirs in zip(timing.seconds, baseline.seconds, strict=True)]


def as_markdown(report: Report) -> str:
    """Lay a report out as a Markdown section with one table."""
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
    """Format with three digits; a shared machine is no more exact."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
