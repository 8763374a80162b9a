"""Run benchmarks and print their figures as a Markdown section, for ``benchmarks/RESULTS.md``.

    python -m benchmarks                       all of them
    python -m benchmarks warehouse --rows 2500000 --rounds 3
    python -m benchmarks >> benchmarks/RESULTS.md
    python -m benchmarks real --help           a real model on real text, which are fetched

Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Report, Verdict, as_markdown, say
from core.environment import set_library_defaults
from core.settings import load_settings

# By benchmark: name of its size parameter, default size, and description of the unit.
SIZES = {
    "byte_classes": ("classified", 4, "texts to score whose losses are summed by class of byte"),
    "crawling": ("stories", 100, "stories a source and month of the simulated web"),
    "hygiene": ("megabytes", 1000, "MB of the largest month of prose to clean"),
    "imports": ("imported", 1000, "MB of the largest set of texts to import"),
    "makespan": ("months", 100, "simulated months of 20 models on 8 GPUs"),
    "operations": ("documents", 3, "documents a source of a month that is run twice on a server"),
    "orchestration": ("cells", 6972, "cells to score on a Prefect server, of 14 models"),
    "scoring": ("texts", 2, "texts to score"),
    "options": ("questions", 200, "forecasting questions whose options are scored"),
    "generation": ("prompts", 64, "prompts that are continued"),
    "site": ("models", 100, "models whose site is built"),
    "warehouse": ("rows", 25_000_000, "rows of losses to land and to read views of"),
}
# Modules of the benchmarks that lie in a subfolder, by benchmark.
MODULES = {
    "byte_classes": "scoring.byte_classes",
    "generation": "scoring.generation",
    "makespan": "orchestration.makespan",
    "operations": "orchestration.idle",
    "options": "scoring.options",
    "orchestration": "orchestration.load",
    "scoring": "scoring.losses",
    "warehouse": "warehouse.landing",
}
_VERSIONS = ("duckdb", "pyarrow", "tokenizers", "torch", "transformers")
_ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks and print their reports; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["real"]:  # fetches weights and text, so it is not one of all benchmarks
        from benchmarks import real

        return real.main(given[1:])
    parsed = _parser().parse_args(given)
    print(headline(["python", "-m", "benchmarks", *given]), flush=True)
    holds = True
    for name in parsed.benchmarks or SIZES:
        say(f"{name} …")
        module = importlib.import_module(f"benchmarks.{MODULES.get(name, name)}")
        size = getattr(parsed, SIZES[name][0])
        reports: Sequence[Report | Verdict] = module.run(parsed.rounds, size)
        for report in reports:
            text = as_markdown(report) if isinstance(report, Report) else str(report)
            holds = holds and (isinstance(report, Report) or report.holds)
            print(f"\n{text}", flush=True)
    print(f"\nLoad average at the end: {_load()}.", flush=True)
    return 0 if holds else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("benchmarks", nargs="*", metavar="|".join(SIZES), type=_benchmark)
    parser.add_argument("--rounds", type=_positive, default=5, help="counted rounds (default: 5)")
    for name, (option, default, counts) in SIZES.items():
        told = f"{name}: {counts} (default: {default:,})"
        parser.add_argument(f"--{option}", type=_positive, default=default, help=told)
    return parser


def _benchmark(text: str) -> str:
    if text not in SIZES:
        raise argparse.ArgumentTypeError(f"no benchmark {text!r}; there are {', '.join(SIZES)}")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def headline(command: Sequence[str]) -> str:
    """Return a Markdown header: date, command, commit, machine and library versions."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _VERSIONS)
    return "\n".join(
        [
            f"\n## {dt.datetime.now(dt.UTC):%Y-%m-%d}, {_processor()}",
            "",
            f"- Command: `{shlex.join(command)}`",
            f"- Commit: {_commit()}",
            f"- Machine: {_processor()}, {os.cpu_count()} cores; {platform.platform()}",
            f"- Versions: Python {platform.python_version()}, {versions}",
            f"- Load average at the start: {_load()}",
        ]
    )


def _load() -> str:
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    """Return the git commit, with "-dirty" if files are modified; return "unknown" without git."""
    described = subprocess.run(
        ["git", "-C", _ROOT, "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"


if __name__ == "__main__":
    with TemporaryDirectory(prefix="tidemark-bench-") as scratch:
        # torch reads these defaults (environment variables) when it is imported.
        set_library_defaults(load_settings(home=scratch))
        sys.exit(main())
