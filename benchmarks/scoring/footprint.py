"""Measurement of the memory of one scoring job, in a separate process.

    python -m benchmarks.scoring.footprint ours FOLDER TEXTS.json disjoint-1024
    python -m benchmarks.scoring.footprint plain FOLDER TEXTS.json sliding-1024-256
    python -m benchmarks.scoring.footprint lm-eval FOLDER TEXTS.json 1024:4     (context:batch size)

The command prints the largest resident memory in bytes, including libraries and the loading of
weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import largest_resident_size, run_alone
from core.environment import set_library_defaults
from core.settings import load_settings


def footprint(kind: str, folder: Path, texts: Path, job: str) -> int:
    """Run a job in a new process, as above, and return its largest resident memory in bytes."""
    return int(run_alone(__spec__.name, kind, folder, texts, job))


def _run(kind: str, folder: Path, texts: list[str], job: str) -> None:
    """Score texts with one scorer, in a process whose memory is measured."""
    from benchmarks.scoring.scorers import LmEval, Ours, PlainLoop  # imports torch

    if kind == "lm-eval":
        context, batch = map(int, job.split(":"))
        LmEval.load(folder, context, batch).score(texts)
    elif kind == "plain":
        PlainLoop.load(folder, job).score(texts)
    else:
        Ours.load(folder, job).score(texts)


if __name__ == "__main__":
    _kind, _folder, _texts, _job = sys.argv[1:]
    with TemporaryDirectory(prefix="tidemark-bench-") as scratch:
        set_library_defaults(load_settings(home=scratch))
        _run(_kind, Path(_folder), json.loads(Path(_texts).read_bytes()), _job)
    print(largest_resident_size())
