"""Whether `tidemark backfill --dry-run` says how long a back-fill of 50 cells takes, within 30 %.

Two sources of a simulated web, five months, three compressors and two small models; each command is
a process of its own, timed from outside. *Cold*: an empty data root, all to crawl, nothing ever
measured. *Warm*: the months are crawled, and each model was measured on three months before them.
Other work on the machine between estimate and run is an error of neither.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Report, say
from benchmarks.shapes import Shape, save_model
from core.month import Month
from simulator.server import Web, serve
from simulator.world import World

LIMIT = 0.30
FORMER, FIRST, LAST = Month("2024-01"), Month("2024-04"), Month("2024-08")
SOURCES = ("arxiv", "wikipedia_new")
CONTROLS = ("control:gzip", "control:zstd", "control:xz")
_HIDDEN = {"small": 32, "smaller": 16}
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_TOTAL = re.compile(r"; about ([^,]+), GPU")


def run(rounds: int, stories: int) -> Sequence[Report]:
    """Print the table; exit with 1 where an estimate is off by more than the limit."""
    offs: list[float] = []
    print(
        f"\n### estimate\n\n{stories} stories a source and month.\n\n"
        "| data root | estimated s | measured s | off by | load average |\n|---|--:|--:|--:|--:|"
    )
    world = World(0, FORMER, LAST, stories_per_month=stories)
    with TemporaryDirectory(prefix="tidemark-bench-") as folder, serve(world) as web:
        models = [*CONTROLS, *_make_models(Path(folder))]
        for number in range(rounds):
            for kind in ("cold", "warm"):
                home = Path(folder) / f"{kind}-{number}"
                offs.append(_measure(_Commands(home, web, models), kind))
    worst = max(map(abs, offs))
    print(f"\nMedian {statistics.median(map(abs, offs)):.0%} off, the worst {worst:.0%}.")
    if worst > LIMIT:
        sys.exit(1)
    return []


def _make_models(folder: Path) -> list[str]:
    for name, hidden in _HIDDEN.items():
        sizes = {"hidden_size": hidden, "intermediate_size": 2 * hidden, "num_hidden_layers": 2}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 2048}
        save_model(folder / name, Shape("llama", {**sizes, **heads}))
    return [str(folder / name) for name in _HIDDEN]


def _measure(tidemark: _Commands, kind: str) -> float:
    """Estimate, run, print; return how far the estimate is off, as a part of what was measured."""
    if kind == "warm":
        say("back-fill before …")
        tidemark.backfill(FORMER, FIRST - 1)
        tidemark.run("crawl", "--month", str(FIRST), "--to", str(LAST), *tidemark.sources)
    say(f"{kind} …")
    load = os.getloadavg()[0]
    estimated = _seconds(tidemark.backfill(FIRST, LAST, "--dry-run"))
    began = time.perf_counter()
    told = tidemark.backfill(FIRST, LAST)
    measured = time.perf_counter() - began
    if "10 partitions, 50 cells" not in told:
        raise RuntimeError(f"not the back-fill that was to be measured: {told}")
    off = estimated / measured - 1
    row = f"| {kind} | {estimated:.0f} | {measured:.0f} | {off:+.0%} | {load:.1f} to "
    print(f"{row}{os.getloadavg()[0]:.1f} |", flush=True)
    return off


class _Commands:
    """The command line, on a data root and a simulated web."""

    def __init__(self, home: Path, web: Web, models: Sequence[str]) -> None:
        self.sources = [word for source in SOURCES for word in ("--source", source)]
        self._models = [word for model in models for word in ("--model", model)]
        sites = {f"TIDEMARK_SITES__{key.upper()}": url for key, url in web.urls.items()}
        inherited = {"PATH", "PYTHONPATH", "OMP_WAIT_POLICY"}
        self._environment = {
            **{name: value for name, value in os.environ.items() if name in inherited},  # noqa: TID251
            **sites,
            "HOME": str(home),
            "TIDEMARK_HOME": str(home),
            "TIDEMARK_REQUEST_INTERVAL_S": "0",
            "TIDEMARK_DEVICE": "cpu",
        }

    def backfill(self, first: Month, last: Month, *options: str) -> str:
        span = ("--from", str(first), "--to", str(last))
        return self.run("backfill", *span, *self.sources, *self._models, *options)

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [Path(sys.executable).with_name("tidemark"), *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"tidemark {arguments[0]} failed: {done.stderr}")
        return done.stdout


def _seconds(told: str) -> float:
    """Read the total of a dry run."""
    if (total := _TOTAL.search(told)) is None:
        raise RuntimeError(f"a dry run without a total: {told}")
    words = total[1].split()
    return sum(
        float(number) * _UNITS[unit] for number, unit in zip(words[::2], words[1::2], strict=True)
    )
