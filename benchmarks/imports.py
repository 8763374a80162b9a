"""Benchmark of the import of a set of 12 months, and of a month of a web archive, at three sizes.

Each import runs in a separate process. Its memory must not grow with the size of the file.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.measure import Report, largest_resident_size, report_alone, run_alone, say
from core.storage.store import Store
from crawlers.imports.documents import ImportOptions
from crawlers.imports.sets import import_set

_ROOT = Path(__file__).resolve().parents[1]
_SHARES = (0.1, 0.3, 1.0)
_LINE_WORDS = 14


def run(rounds: int, megabytes: int) -> Sequence[Report]:
    """Import files of 10 %, 30 % and 100 % of ``megabytes`` MB, each once per round."""
    return [_report(kind, rounds, megabytes) for kind in ("jsonl", "wet.gz")]


def _report(kind: str, rounds: int, megabytes: int) -> Report:
    runs: dict[str, tuple[dict[str, float], list[Any]]] = {}
    for size in (max(1, round(share * megabytes)) for share in _SHARES):
        with TemporaryDirectory(prefix="tidemark-bench-") as folder:
            path = Path(folder) / f"set.{kind}"
            count = _write(path, size)
            results = []
            for _ in range(rounds):
                results.append(run_alone("benchmarks.imports", path))
                say(f"{kind}, {size} MB: {results[-1]}")
        runs[f"{kind}, {size:,} MB"] = {"MB": float(size), "documents": float(count)}, results
    conditions = "Documents of 6 kB on average; WET: a notice in each, sifted."
    return report_alone(f"imports: {kind}", conditions, runs)


def _texts(num_bytes: int) -> Iterator[str]:
    rng = np.random.default_rng(0)
    docs = " ".join(path.read_text("utf-8") for path in sorted((_ROOT / "docs").glob("*.md")))
    words = np.array(sorted({word for word in docs.split() if word.isalpha()}), dtype=object)
    while num_bytes > 0:
        size = int(rng.lognormal(6.3, 0.8)) + 30
        drawn = words[(rng.random(size) ** 3 * len(words)).astype(int)]
        lines = (" ".join(drawn[at : at + _LINE_WORDS]) for at in range(0, size, _LINE_WORDS))
        yield (text := ".\n".join(lines))
        num_bytes -= len(text)


def _write(path: Path, megabytes: int) -> int:
    number = 0
    with path.open("wb") as file:
        for number, text in enumerate(_texts(megabytes * 1_000_000), start=1):
            month = f"2024-{number % 12 + 1:02d}-05"
            if path.suffix == ".jsonl":
                file.write(json.dumps({"text": text, "date": month}).encode() + b"\n")
            else:
                body = f"Home | News | Log in\n{text}".encode()
                head = f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Date: {month}T00:00:00Z\r\n"
                length = f"Content-Length: {len(body)}\r\n\r\n"
                file.write(gzip.compress((head + length).encode() + body + b"\r\n\r\n", 1))
    return number


def _import(path: Path) -> tuple[float, float, int]:
    began, cpu_began = time.perf_counter(), time.process_time()
    with TemporaryDirectory(prefix="tidemark-bench-") as home:
        options = ImportOptions(scratch=Path(home) / "work")
        found = import_set([path], "bench", Store(home), options)
        assert found.seals and not found.failures
        seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return *seconds, largest_resident_size()


if __name__ == "__main__":
    print(json.dumps(_import(Path(sys.argv[1]))))
