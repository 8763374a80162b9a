"""Benchmark of scoring on a CPU: tidemark against lm-eval and a plain loop over windows.

All contenders get the same texts and checkpoint, and return the loss of each text in nats. Before
the timing, the benchmark checks that all contenders compute equal losses under the same protocol.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import torch

from benchmarks.measure import Contender, Report, Timing, measure, say
from benchmarks.scoring.footprint import footprint
from benchmarks.scoring.scorers import LmEval, Ours, PlainLoop, load_plain
from benchmarks.scoring.shapes import SHAPES, make_texts, save_model
from core.errors import BatchTooLarge, ModelError, NotMeasurable

Score = Callable[[Sequence[str]], list[float]]
T = TypeVar("T")

_SHAPES = ("gpt2-small", "llama-128k")
_CONTEXT, _STRIDE = 1024, 256
_BATCHES = (1, 2, 4, 8)  # candidate batch sizes of lm-eval; the fastest is timed
_DISJOINT, _SLIDING = f"disjoint-{_CONTEXT}", f"sliding-{_CONTEXT}-{_STRIDE}"
_LM_EVAL, _UNCHEATABLE = f"lm-eval-{_CONTEXT}", f"uncheatable-{_CONTEXT}"
_FOOTPRINT_CHARS = 8000  # length of the text for ``footprint``; more than _CONTEXT tokens
_TOLERANCE = 1e-5  # relative tolerance; contenders add float32 values in different orders


@dataclass
class Jobs:
    """The contenders for one model shape (a key of ``SHAPES``), in the report's order."""

    shape: str
    folder: Path
    texts: Sequence[str]
    num_tokens: int
    contenders: list[Contender] = field(default_factory=list)
    alone: dict[str, tuple[str, str]] = field(default_factory=dict)  # kind and job of footprint

    def add(
        self, what: str, score: Score, alone: tuple[str, str], baseline: str | None = None
    ) -> str:
        """Add a contender and return its name, which other contenders can use as ``baseline``."""
        name = f"{self.shape}: {what}"
        amounts = {"tokens": float(self.num_tokens)}
        self.contenders.append(Contender(name, lambda _: score(self.texts), amounts, baseline))
        self.alone[name] = alone
        return name

    def memory(self) -> dict[str, int]:
        """Return the peak RSS (bytes) of each contender, which scores one text in a new process."""
        texts = self.folder / "texts.json"
        longest = max(self.texts, key=len)[:_FOOTPRINT_CHARS]
        texts.write_text(json.dumps([longest]), encoding="utf-8")
        found = {}
        for name, (kind, job) in self.alone.items():
            found[name] = footprint(kind, self.folder, texts, job)
            say(f"{name}: {found[name] / 2**20:.0f} MiB")
        return found


def run(rounds: int, texts: int, shapes: Sequence[str] = _SHAPES) -> Sequence[Report]:
    """Score ``texts`` texts of about 400 to 4,300 tokens with a model of each shape."""
    timings: tuple[Timing, ...] = ()
    memory: dict[str, int] = {}
    documents = make_texts(texts)
    for shape in shapes:
        with TemporaryDirectory(prefix="tidemark-bench-") as folder:
            jobs = _prepare(shape, Path(folder), documents, with_lm_eval_rules=shape == shapes[0])
            memory |= jobs.memory()
            # No warm-up: ``_prepare`` has already run the contenders.
            timings += measure(jobs.contenders, rounds, warm_up=False)
    told = "; ".join(f"{shape}: {SHAPES[shape]}" for shape in shapes)
    conditions = (
        f"{told}. Random weights, float32 on cpu, {torch.get_num_threads()} threads, our default "
        f"batches, lm-eval's fastest of {', '.join(map(str, _BATCHES))}; {texts} texts of "
        f"{sum(map(len, documents)) / 1e3:.0f} kB together. A token is counted once, however "
        "often it is read as context. Peak RSS is that of a process which loads the files and "
        "does the one job."
    )
    return [Report("scoring", conditions, timings, "peak RSS of its own", memory)]


def _prepare(shape: str, folder: Path, texts: Sequence[str], with_lm_eval_rules: bool) -> Jobs:
    """Save a checkpoint, load it for all contenders, and check that their losses agree."""
    save_model(folder, SHAPES[shape])
    scorer = Ours.load(folder, _DISJOINT).scorer
    model, tokenizer = load_plain(folder)
    batch, lm_eval = fastest(
        {batch: LmEval.of(model, tokenizer, _CONTEXT, batch).score for batch in _BATCHES}, texts
    )
    chunks, sliding = (PlainLoop(model, tokenizer, name).score for name in (_UNCHEATABLE, _SLIDING))
    peers = {_LM_EVAL: lm_eval, _UNCHEATABLE: chunks, _SLIDING: sliding}
    ours = {name: Ours(scorer, name).score for name in (_DISJOINT, *peers)}
    shortest = [min(texts, key=len)]
    for name, score in peers.items():
        check_same(name, ours[name](shortest), score(shortest), _TOLERANCE)

    num_tokens = Ours(scorer, _DISJOINT).score_and_count(texts)[1]
    jobs = Jobs(shape, folder, texts, num_tokens)
    theirs = jobs.add(f"lm-eval, batch {batch}", lm_eval, ("lm-eval", f"{_CONTEXT}:{batch}"))
    jobs.add(f"ours, {_DISJOINT}", ours[_DISJOINT], ("ours", _DISJOINT), theirs)
    if with_lm_eval_rules:
        jobs.add(f"ours, {_LM_EVAL}", ours[_LM_EVAL], ("ours", _LM_EVAL), theirs)
    plain = jobs.add(f"plain loop, {_SLIDING}", sliding, ("plain", _SLIDING))
    jobs.add(f"ours, {_SLIDING}", ours[_SLIDING], ("ours", _SLIDING), plain)
    return jobs


def fastest(
    choices: Mapping[int, Callable[[Sequence[T]], list[float]]], texts: Sequence[T]
) -> tuple[int, Callable[[Sequence[T]], list[float]]]:
    """Return the fastest batch size and its scorer; end at a size that is slower or too large."""
    best, least = 0, math.inf
    for size, score in choices.items():
        try:
            score(texts[:1])  # warms up
            began = time.perf_counter()
            score(texts)
        except (torch.OutOfMemoryError, BatchTooLarge, NotMeasurable):
            say(f"batch {size}: does not fit")
            break
        took = time.perf_counter() - began
        say(f"batch {size}: {took:.2f} s")
        if took > 1.2 * least:
            break
        if took < least:
            best, least = size, took
    if not best:
        raise ModelError(f"no batch of {', '.join(map(str, choices))} fits into the memory")
    return best, choices[best]


def check_same(
    job: str, found: Sequence[float], expected: Sequence[float], tolerance: float
) -> None:
    """Raise ModelError if a text's nats differ by more than the relative ``tolerance``."""
    pairs = list(zip(found, expected, strict=True))
    if not all(math.isclose(ours, theirs, rel_tol=tolerance) for ours, theirs in pairs):
        raise ModelError(
            f"{job}: our nats of a text are not the peer's ({pairs}), so the speeds cannot be "
            "compared"
        )
