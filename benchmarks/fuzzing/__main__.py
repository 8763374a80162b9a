"""Fuzz sources with mutated responses; the exit code is 1 if a run had a fault.

    python -m benchmarks.fuzzing                                 all sources
    python -m benchmarks.fuzzing hackernews questions.manifold --answers 1000
    python -m benchmarks.fuzzing hackernews --run 1234           one run, with its traceback

A run crawls a month of a simulated web within the process, and some responses are mutated. If the
folder of recordings is there, some mutations insert parts of recorded responses.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.fuzzing.runs import Fuzz, list_names

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"
MAX_FAULTS = 20  # of a source, before its fuzzing stops


def main() -> int:
    """Fuzz the chosen sources; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzzing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="default: all")
    parser.add_argument("--answers", type=int, default=50_000, help="mutated responses a source")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=int, help="number of the only run")
    chosen = parser.parse_args()
    is_sound = True
    for name in chosen.sources or list_names():
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.closing(Fuzz(name, RECORDINGS, Path(folder), chosen.seed)) as fuzz,
        ):
            if chosen.run is not None:
                outcome = fuzz.run(chosen.run)
                print(dict(outcome.found), outcome.fault or "no fault", sep="\n")
            else:
                is_sound = _fuzz(fuzz, chosen.answers) and is_sound
    return 0 if is_sound else 1


def _fuzz(fuzz: Fuzz, num_answers: int) -> bool:
    """Run a source until so many responses were mutated; print faults, return True if none."""
    if not fuzz.has_requests:
        print(f"{fuzz.name}: sends no request by the fetcher", flush=True)
        return True
    began_s, number, num_mutated = time.process_time(), 0, 0
    found: Counter[str] = Counter()
    faults = {
        _place_of(each.fault): "a run without mutations" for each in fuzz.undisturbed if each.fault
    }
    while num_mutated < num_answers and len(faults) < MAX_FAULTS:
        outcome = fuzz.run(number)
        if outcome.fault:
            faults.setdefault(_place_of(outcome.fault), f"run {number}")
        found += outcome.found
        num_mutated, number = num_mutated + outcome.num_mutated, number + 1
    used_s = time.process_time() - began_s
    print(f"{fuzz.name}: {num_mutated} mutated responses in {number} runs, {used_s:.0f} s")
    print(f"    {dict(found.most_common())}", flush=True)
    for place, run in faults.items():
        print(f"    FAULT in {run}: {place}", flush=True)
    return not faults


def _place_of(fault: str) -> str:
    """Return the last line of a crawler in a traceback, and the error."""
    lines = fault.splitlines()
    own = [line.strip() for line in lines if "/crawlers/" in line]
    error = next(line for line in reversed(lines) if line and not line.startswith(" "))
    return f"{own[-1] if own else ''}: {error:.200}"


if __name__ == "__main__":
    sys.exit(main())
