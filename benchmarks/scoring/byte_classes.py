"""Benchmark of the sums by class of byte: their share of a scoring pass on a CPU.

Both jobs take turns. The pass scores texts under the default windows, and has the sums in it. The
other job classifies the same texts and adds losses of as many tokens.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measure import Contender, Verdict, measure, ratios
from benchmarks.scoring.scorers import Ours
from benchmarks.scoring.shapes import SHAPES, make_texts, save_model
from models.scoring.accounting import TokenizedText
from models.scoring.byte_classes import ClassSums, classify_all

# A usual model, and the smallest that a demo trains, whose pass takes little time.
_SHAPES = ("gpt2-small", "llama-tiny")
_PROTOCOL = "disjoint-1024"
_MOST = 0.03  # of the pass of the first shape


def run(rounds: int, texts: int, shapes: Sequence[str] = _SHAPES) -> Sequence[Verdict]:
    """Score ``texts`` texts with a model of each shape, and sum their losses by class of byte."""
    rows: dict[str, str] = {}
    shares = [_share(shape, rounds, make_texts(texts), rows) for shape in shapes]
    condition = f"with {shapes[0]}, at most {_MOST:.0%} of the processor time of a pass"
    return [Verdict("sums by class of byte", rows, {condition: shares[0] <= _MOST})]


def _share(shape: str, rounds: int, texts: Sequence[str], rows: dict[str, str]) -> float:
    """Return the median share of a pass, and add rows of figures."""
    with TemporaryDirectory(prefix="tidemark-bench-") as folder:
        save_model(Path(folder), SHAPES[shape])
        ours = Ours.load(Path(folder), _PROTOCOL)
        tokens = ours.scorer.text_model.tokenizer.tokenize(texts)
        amounts = {"tokens": float(sum(len(each.ids) for each in tokens))}
        whole = Contender(f"{shape}: pass", lambda _: ours.score(texts), amounts)
        part = Contender(
            f"{shape}: sums by class", lambda _: _sum(texts, tokens), amounts, whole.name
        )
        whole_time, part_time = measure([whole, part], rounds)
    shares = [
        own / all_ for own, all_ in zip(part_time.cpu_seconds, whole_time.cpu_seconds, strict=True)
    ]
    times = ratios(part_time, whole_time)
    low, middle, high = min(shares), statistics.median(shares), max(shares)
    rows[f"{shape}: share of a pass, by processor time"] = f"{middle:.2%} ({low:.2%} to {high:.2%})"
    rows[f"{shape}: the pass takes so many times as long"] = f"{statistics.median(times):.0f}"
    return middle


def _sum(texts: Sequence[str], tokens: Sequence[TokenizedText]) -> None:
    sums = ClassSums()
    for classes, each in zip(classify_all(texts), tokens, strict=True):
        sums.add(classes, each.bytes, 0, np.ones(len(each.ids)), (0, len(each.ids)))
