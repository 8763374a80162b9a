"""Benchmark of scoring on a GPU: tidemark against lm-eval and Uncheatable Eval's loop.

``benchmarks/gpu.sh`` runs this on a machine that has torch and transformers, but no network. All
contenders use one bf16 Llama with random weights. lm-eval and tidemark use their best batch size.

    python -m benchmarks.scoring.gpu
    python -m benchmarks.scoring.gpu --device cpu --shapes llama-toy --texts 4 --rounds 1

The command prints a section for ``benchmarks/RESULTS.md``. Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
import transformers

from benchmarks.measure import Contender, Report, Timing, as_markdown, measure, say
from benchmarks.scoring.losses import Score, check_same, fastest
from benchmarks.scoring.scorers import LmEval, Ours, PlainLoop, windows_of
from benchmarks.scoring.shapes import SHAPES, make_model, make_texts, make_tokenizer
from core.environment import set_library_defaults
from core.settings import load_settings
from models.scoring.forward import Forward
from models.scoring.machine import describe_device
from models.scoring.protocols import get_protocol
from models.scoring.scorer import ScorerFacts
from models.scoring.text_model import text_model_of
from models.scoring.token_scorer import TokenIdentity, TokenScorer

_SHAPES = ("llama-1b", "llama-7b")
_CONTEXT = 2048
_DISJOINT, _LM_EVAL = f"disjoint-{_CONTEXT}", f"lm-eval-{_CONTEXT}"
_UNCHEATABLE = f"uncheatable-{_CONTEXT}"
_BUDGETS = (8192, 16_384, 32_768, 65_536)  # candidate batch sizes of tidemark, in tokens
_BATCHES = (1, 2, 4, 8, 16, 32)  # candidate batch sizes of lm-eval, in windows
_MATRIX = {"cuda": 8192, "cpu": 1024}  # number of rows of the square matrices, by device type
# Relative tolerance: bf16 has about 3 significant digits, and rounding depends on the batch size.
_TOLERANCE = 2e-2


class Setup(NamedTuple):
    """The inputs that all contenders share."""

    model: Any  # PreTrainedModel
    tokenizer: Any  # PreTrainedTokenizerFast
    device: torch.device
    texts: Sequence[str]


class Work(NamedTuple):
    """The number of tokens, and of floating-point operations, to score each token once."""

    num_tokens: int
    operations: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark for all shapes and print the results; return the exit code."""
    given = _parser().parse_args(arguments)
    device = torch.device(given.device)
    torch.backends.cuda.matmul.allow_tf32 = False
    print(_headline(device), flush=True)
    texts = make_texts(given.texts)
    for shape in given.shapes:
        say(f"{shape} …")
        print(f"\n{run_shape(shape, device, texts, given.rounds)}", flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoring.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=_SHAPES)
    parser.add_argument("--texts", type=int, default=64, help="to score (default: 64)")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds (default: 5)")
    return parser


def _headline(device: torch.device) -> str:
    return (
        f"## {dt.datetime.now(dt.UTC):%Y-%m-%d}, {describe_device(device)}\n\n"
        f"- Command: `benchmarks/gpu.sh`\n- Versions: Python {platform.python_version()}, torch "
        f"{torch.__version__}, transformers {transformers.__version__}"
    )


def run_shape(shape: str, device: torch.device, texts: Sequence[str], rounds: int) -> str:
    """Time the contenders with one model shape; return a Markdown section."""
    setup = Setup(
        make_model(SHAPES[shape], str(device), torch.bfloat16),
        make_tokenizer(),
        device,
        texts,
    )
    matrix_rate = measure_matrix_rate(device)
    work = count_work(setup)
    peaks: dict[str, int] = {}
    timings = measure(_contenders(setup, work, peaks), rounds)
    conditions = (
        f"{SHAPES[shape]}; {setup.model.num_parameters() / 1e9:.2f} G parameters, random, "
        f"bfloat16, SDPA, context {_CONTEXT}. {len(texts)} texts with {work.num_tokens:,} tokens. "
        "One model for all; memory is the allocator's high water during the job, the weights' "
        f"{_weight_bytes(setup.model) / 2**20:,.0f} MiB included."
    )
    report = Report(shape, conditions, timings, "peak device memory", peaks)
    return f"{as_markdown(report)}\n\n{_shares(timings, work, matrix_rate)}"


def measure_matrix_rate(device: torch.device) -> float:
    """Return the median rate of a large bf16 matrix product, in operations per second."""
    size = _MATRIX[device.type]
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    took = []
    for _ in range(25):
        _wait(device)
        began = time.perf_counter()
        torch.mm(a, b)
        _wait(device)
        took.append(time.perf_counter() - began)
    return 2.0 * size**3 / statistics.median(took[5:])


def count_work(setup: Setup) -> Work:
    """Count the tokens and the floating-point operations of one pass over the texts.

    Each weight, except the input embedding, costs 2 operations per token. Attention costs 4
    operations per pair of positions, hidden dimension and layer.
    """
    config = setup.model.config
    weights = setup.model.num_parameters() - setup.model.get_input_embeddings().weight.numel()
    num_tokens, operations = 0, 0.0
    for text in setup.texts:
        num_ids = len(setup.tokenizer(text, add_special_tokens=False)["input_ids"])
        for window in windows_of(num_ids, get_protocol(_DISJOINT)):
            length = window.num_inputs
            pairs = length * (length + 1) / 2
            num_tokens += window.num_scored
            operations += 2.0 * weights * length
            operations += 4.0 * config.hidden_size * config.num_hidden_layers * pairs
    return Work(num_tokens, operations)


def _contenders(setup: Setup, work: Work, peaks: dict[str, int]) -> list[Contender]:
    model, tokenizer, device, texts = setup
    forward = Forward(model)
    budget, ours = fastest(
        {size: _ours(setup, forward, size, _DISJOINT).score for size in _BUDGETS}, texts
    )
    batch, peer = fastest(
        {size: LmEval.of(model, tokenizer, _CONTEXT, size).score for size in _BATCHES}, texts
    )
    loop = PlainLoop(model, tokenizer, _UNCHEATABLE).score
    as_lm_eval, as_loop = (
        _ours(setup, forward, budget, protocol).score for protocol in (_LM_EVAL, _UNCHEATABLE)
    )
    same = texts[:8]
    check_same(_LM_EVAL, as_lm_eval(same), peer(same), _TOLERANCE)
    check_same(_UNCHEATABLE, as_loop(same), loop(same), _TOLERANCE)

    def contender(name: str, score: Score, baseline: str | None = None) -> Contender:
        watched = functools.partial(_watched, score, texts, device, peaks, name)
        amounts = {"tokens": float(work.num_tokens)}
        return Contender(name, lambda _: watched(), amounts, baseline)

    lm_eval = contender(f"lm-eval, batch {batch}", peer)
    chunks = contender("chunk by chunk, as Uncheatable Eval", loop)
    return [
        lm_eval,
        contender(f"ours, {_DISJOINT}, {budget:,} tokens a batch", ours, lm_eval.name),
        contender(f"ours, {_LM_EVAL}", as_lm_eval, lm_eval.name),
        chunks,
        contender(f"ours, {_UNCHEATABLE}", as_loop, chunks.name),
    ]


def _ours(setup: Setup, forward: Forward, budget: int, protocol: str) -> Ours:
    text_model = text_model_of(setup.tokenizer)
    facts = ScorerFacts(describe_device(setup.device), "bfloat16", budget, {}, text_model.facts)
    identity = TokenIdentity("random", "0", _CONTEXT, "bfloat16 sdpa")
    return Ours(TokenScorer(identity, text_model, forward, facts), protocol)


def _watched(
    score: Callable[[Sequence[str]], list[float]],
    texts: Sequence[str],
    device: torch.device,
    peaks: dict[str, int],
    name: str,
) -> None:
    """Score the texts; record the peak device memory in bytes as ``peaks[name]``."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    score(texts)
    _wait(device)
    used = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    peaks[name] = max(peaks.get(name, 1), used)


def _shares(timings: Sequence[Timing], work: Work, matrix_rate: float) -> str:
    """Return text: each contender's operations per second as a share of ``matrix_rate``."""
    lines = [
        f"A pass over these tokens needs {work.operations / 1e12:.1f} T operations (2 a weight and "
        "token, without the input embedding, and 4 a pair that causal attention sees, in each of "
        f"the hidden size's numbers). A bf16 matrix product ran at {matrix_rate / 1e12:.1f} "
        "TFLOP/s just before. Shares of that, at each one's median:",
        "",
    ]
    for timing in timings:
        rate = work.operations / timing.median_s
        lines.append(
            f"- {timing.contender.name}: {rate / 1e12:.1f} TFLOP/s, {rate / matrix_rate:.0%}"
        )
    return "\n".join(lines)


def _weight_bytes(model: Any) -> int:
    return sum(weight.numel() * weight.element_size() for weight in model.parameters())


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    with TemporaryDirectory(prefix="tidemark-bench-") as scratch:
        set_library_defaults(load_settings(home=scratch))
        sys.exit(main())
