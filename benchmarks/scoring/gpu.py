"""Benchmark of scoring on a GPU: tidemark against lm-eval and Uncheatable Eval's loop.

``benchmarks/gpu.sh`` runs this on a machine that has torch and transformers, but no network. All
contenders use one bf16 Llama with random weights, of 0.1B, 1B and 7B parameters. lm-eval runs with
batch 1 and its best batch size, tidemark with its best one, also with ``TIDEMARK_KERNELS=fast``.

    python -m benchmarks.scoring.gpu
    python -m benchmarks.scoring.gpu --device cpu --shapes llama-toy --texts 4 --rounds 1

The command prints a section for ``benchmarks/RESULTS.md``. Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import math
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
import transformers

from benchmarks.measure import Contender, Report, Timing, as_markdown, measure, say
from benchmarks.scoring.losses import Score, check_same, fastest
from benchmarks.scoring.scorers import LmEval, Ours, PlainLoop, windows_of
from benchmarks.scoring.shapes import SHAPES, make_model, make_texts, make_tokenizer
from core.environment import set_library_defaults
from core.errors import ModelError
from core.plugins import import_parts
from core.settings import load_settings
from models.scoring.cross_entropy import linear_cross_entropy
from models.scoring.forward import Forward
from models.scoring.machine import describe_device, matmul_rate, metered
from models.scoring.protocols import get_protocol
from models.scoring.scorer import ScorerFacts
from models.scoring.text_model import text_model_of
from models.scoring.token_scorer import TokenIdentity, TokenScorer

_SHAPES = ("llama-100m", "llama-1b", "llama-7b")
_CONTEXT = 2048
_DISJOINT, _LM_EVAL = f"disjoint-{_CONTEXT}", f"lm-eval-{_CONTEXT}"
_UNCHEATABLE = f"uncheatable-{_CONTEXT}"
_BUDGETS = (8192, 16_384, 32_768, 65_536)  # candidate batch sizes of tidemark, in tokens
_BATCHES = (1, 2, 4, 8, 16, 32)  # candidate batch sizes of lm-eval, in windows
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
        try:
            section = run_shape(shape, device, texts, given.rounds)
        except (torch.OutOfMemoryError, ModelError) as error:  # the other shapes keep their figures
            section = f"### {shape}\n\nNo figures: {error}"
        print(f"\n{section}", flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoring.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=_SHAPES)
    parser.add_argument("--texts", type=int, default=64, help="to score (default: 64)")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (default: 3)")
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
        make_model(SHAPES[shape], str(device), torch.bfloat16), make_tokenizer(), device, texts
    )
    matrix_rate = matmul_rate(device, torch.bfloat16)
    work = count_work(setup)
    peaks: dict[str, int] = {}
    joules: dict[str, float] = {}
    contenders, means = _contenders(setup, work, peaks, joules)
    timings = measure(contenders, rounds)
    conditions = (
        f"{SHAPES[shape]}; {setup.model.num_parameters() / 1e9:.2f} G parameters, random, "
        f"bfloat16, SDPA, context {_CONTEXT}. {len(texts)} texts with {work.num_tokens:,} tokens. "
        "One model for all; memory is the allocator's high water during the job, the weights' "
        f"{setup.model.get_memory_footprint() / 2**20:,.0f} MiB included."
    )
    report = Report(shape, conditions, timings, "peak device memory", peaks)
    shares = _shares(timings, work, matrix_rate or math.nan, joules)
    heads = compare_heads(setup.model)
    return f"{as_markdown(report)}\n\n{shares}\n- Fast kernels: {means}\n\n{heads}"


def compare_heads(model: Any, num_states: int = 4096, rounds: int = 5) -> str:
    """Return a table: time and memory of the plain and our chunked head and loss."""
    device, weight = model.device, model.get_output_embeddings().weight.detach()
    states = torch.randn(num_states, weight.shape[1], device=device).to(weight.dtype)
    targets = torch.arange(num_states, device=device) % len(weight)
    forms: dict[str, Callable[..., torch.Tensor]] = {
        "plain": _plain_head,
        "chunked": linear_cross_entropy,
    }
    exact = _exact_losses(states, weight, targets)
    took: dict[str, list[float]] = {name: [] for name in forms}
    lines = ["| head and loss | s, median | peak MiB | largest error |", "|---|--:|--:|--:|"]
    peaks = dict.fromkeys(forms, 0)
    for _ in range(rounds):
        for name, form in forms.items():
            with torch.inference_mode(), metered(device.type == "cuda") as cost:
                form(states, weight, None, targets).sum().item()
            took[name].append(cost.seconds)
            peaks[name] = max(peaks[name], cost.peak_memory_bytes)
    for name, form in forms.items():
        with torch.inference_mode():
            error = float((form(states, weight, None, targets) - exact).abs().max())
        seconds = statistics.median(took[name])
        lines.append(f"| {name} | {seconds:.4f} | {peaks[name] / 2**20:,.0f} | {error:.1e} nats |")
    shape = f"{num_states:,} states of {weight.shape[1]:,}, {len(weight):,} tokens, {weight.dtype}"
    return "\n".join([f"{shape}; peak of the device, or of the process on a CPU:", "", *lines])


def _plain_head(states: Any, weight: Any, bias: Any, targets: Any) -> torch.Tensor:
    logits = torch.nn.functional.linear(states, weight, bias)
    return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")


@torch.inference_mode()
def _exact_losses(states: Any, weight: Any, targets: Any) -> torch.Tensor:
    """Return losses in float64, by torch alone, of a few rows at a time."""
    wide = weight.double()
    losses = [
        torch.nn.functional.cross_entropy(rows.double() @ wide.T, wanted, reduction="none")
        for rows, wanted in zip(torch.split(states, 256), torch.split(targets, 256), strict=True)
    ]
    return torch.cat(losses)


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


def _contenders(
    setup: Setup, work: Work, peaks: dict[str, int], joules: dict[str, float]
) -> tuple[list[Contender], str]:
    """Return the contenders, and the fast kernels that passed their test at loading."""
    model, tokenizer, device, texts = setup
    forward = Forward(model)
    fast = Forward(model)
    kernels: Any = import_parts("kernels")[0]
    means = kernels.quicken(fast, _CONTEXT)
    budget, ours = fastest(
        {size: _ours(setup, forward, size, _DISJOINT).score for size in _BUDGETS}, texts
    )
    peers = {size: LmEval.of(model, tokenizer, _CONTEXT, size).score for size in _BATCHES}
    batch, peer = fastest(peers, texts)
    loop = PlainLoop(model, tokenizer, _UNCHEATABLE).score
    as_lm_eval, as_loop = (
        _ours(setup, forward, budget, protocol).score for protocol in (_LM_EVAL, _UNCHEATABLE)
    )
    quick = _ours(setup, fast, budget, _DISJOINT).score
    same = texts[:8]
    check_same(_LM_EVAL, as_lm_eval(same), peer(same), _TOLERANCE)
    check_same(_UNCHEATABLE, as_loop(same), loop(same), _TOLERANCE)
    check_same(f"{_DISJOINT}, fast", quick(same), ours(same), _TOLERANCE)

    def contender(name: str, score: Score, baseline: str | None = None) -> Contender:
        watched = functools.partial(_watched, score, texts, device, peaks, joules, name)
        amounts = {"tokens": float(work.num_tokens)}
        return Contender(name, lambda _: watched(), amounts, baseline)

    lm_eval = contender(f"lm-eval, batch {batch}", peer)
    chunks = contender("chunk by chunk, as Uncheatable Eval", loop)
    alone = [contender("lm-eval, batch 1", peers[1], lm_eval.name)] if batch != 1 else []
    found = [
        lm_eval,
        *alone,
        contender(f"ours, {_DISJOINT}, {budget:,} tokens a batch", ours, lm_eval.name),
        contender(f"ours, {_DISJOINT}, fast kernels", quick, lm_eval.name),
        contender(f"ours, {_LM_EVAL}", as_lm_eval, lm_eval.name),
        chunks,
        contender(f"ours, {_UNCHEATABLE}", as_loop, chunks.name),
    ]
    return found, ", ".join(f"{name} {each}" for name, each in means.items())


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
    joules: dict[str, float],
    name: str,
) -> None:
    """Score the texts; record peak device memory in bytes, and the energy of the last run."""
    is_cuda = device.type == "cuda"
    if is_cuda:
        torch.cuda.empty_cache()
    with metered(is_cuda) as cost:
        score(texts)
        if is_cuda:
            torch.cuda.synchronize(device)
    peaks[name] = max(peaks.get(name, 1), cost.peak_memory_bytes if is_cuda else 0)
    joules[name] = math.nan if cost.energy_joules is None else cost.energy_joules


def _shares(
    timings: Sequence[Timing], work: Work, matrix_rate: float, joules: Mapping[str, float]
) -> str:
    """Return text: each contender's operations per second as a share, and joules."""
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
            f"- {timing.contender.name}: {rate / 1e12:.1f} TFLOP/s, {rate / matrix_rate:.0%}; "
            f"{1e6 * joules[timing.contender.name] / work.num_tokens:,.0f} J per million tokens"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    with TemporaryDirectory(prefix="tidemark-bench-") as scratch:
        set_library_defaults(load_settings(home=scratch))
        sys.exit(main())
