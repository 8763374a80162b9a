"""Benchmark of the import of a set of 12 months, as tables and as web archives, at three sizes.

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
import polars as pl

from benchmarks.measure import Report, largest_resident_size, report_alone, run_alone, say
from core.storage.store import Store
from crawlers.imports.documents import ImportOptions
from crawlers.imports.sets import import_set

_ROOT = Path(__file__).resolve().parents[1]
_SHARES = (0.1, 0.3, 1.0)
_LINE_WORDS = 14


def run(rounds: int, megabytes: int) -> Sequence[Report]:
    """Import files of 10 %, 30 % and 100 % of ``megabytes`` MB, each once per round."""
    return [_report(kind, rounds, megabytes) for kind in ("jsonl", "parquet", "warc.gz")]


def _report(kind: str, rounds: int, megabytes: int) -> Report:
    """Time imports of sets of growing size, each run in a process of its own."""
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
    conditions = "Documents of 6 kB on average; WARC: sifted."
    return report_alone(f"imports: {kind}", conditions, runs)


def _texts(num_bytes: int) -> Iterator[str]:
    """Yield texts of random words from the documentation, of so many bytes in all."""
    rng = np.random.default_rng(0)
    docs = " ".join(path.read_text("utf-8") for path in sorted((_ROOT / "docs").glob("*.md")))
    words = np.array(sorted({word for word in docs.split() if word.isalpha()}), dtype=object)
    while num_bytes > 0:
        size = int(rng.lognormal(6.3, 0.8)) + 30
        drawn = words[(rng.random(size) ** 3 * len(words)).astype(int)]
        lines = (" ".join(drawn[at : at + _LINE_WORDS]) for at in range(0, size, _LINE_WORDS))
        yield (text := ".\n".join(lines))
        num_bytes -= len(text)


def _rows(path: Path, megabytes: int) -> Iterator[tuple[str, str]]:
    """Yield texts and days; beyond 300 MB, texts repeat with a number, except where lines count."""
    left, number = megabytes * 1_000_000, 0
    varied = list(_texts(min(left, left if path.suffix == ".gz" else 300_000_000)))
    while left > 0:
        text = f"{number} {varied[number % len(varied)]}"
        number, left = number + 1, left - len(text)
        yield text, f"2024-{number % 12 + 1:02d}-05"


def _write(path: Path, megabytes: int) -> int:
    """Write a set of texts as Parquet, JSON lines or WARC; return the number of texts."""
    number, is_archive = 0, path.suffix == ".gz"
    plain = path if is_archive else path.with_suffix(".jsonl")
    with plain.open("wb") as file:
        for number, (text, day) in enumerate(_rows(path, megabytes), start=1):
            line = json.dumps({"text": text, "date": day}).encode() + b"\n"
            file.write(gzip.compress(_record(number, text, day), 1) if is_archive else line)
    if path.suffix == ".parquet":
        pl.scan_ndjson(plain).sink_parquet(path)
    return number


def _record(number: int, text: str, day: str) -> bytes:
    page = "".join(f"<p>{line}</p>" for line in text.split("\n"))
    body = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<article>{page}</article>"
    head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: {day}T00:00:00Z\r\n"
    head += f"WARC-Target-URI: https://example.org/{number}\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n{body}\r\n\r\n".encode()


def _import(path: Path) -> tuple[float, float, int]:
    """Import a set; return seconds by the clock, processor seconds and peak memory."""
    began, cpu_began = time.perf_counter(), time.process_time()
    with TemporaryDirectory(prefix="tidemark-bench-") as home:
        options = ImportOptions(scratch=Path(home) / "work")
        found = import_set([path], "bench", Store(home), options)
        assert found.seals and not found.failures
        seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return *seconds, largest_resident_size()


if __name__ == "__main__":
    print(json.dumps(_import(Path(sys.argv[1]))))
