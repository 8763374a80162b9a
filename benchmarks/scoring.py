"""Scoring by our causal language model, against the plain loop over the same windows.

The plain loop is what most scripts do: tokenize a text, run one window at a time, take logits at
every position in float32, log-softmax them, gather the targets and sum. Both sides get texts and
give one figure a window, and their sums are compared before anything is timed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from benchmarks.measure import Contender, Report, measure
from core.errors import ModelError
from core.month import Month
from core.settings import Settings
from models.causal_lm import CausalLM
from models.protocols import ScoringProtocol, get_protocol
from models.windows import plan_windows
from simulator.world import World

PROTOCOLS = ("disjoint-1024", "sliding-1024-256")
# Model type and configuration. The head's share of the work, about a fifth, is GPT-2 small's.
SHAPES: dict[str, tuple[str, Mapping[str, int]]] = {
    "gpt2-tiny": (
        "gpt2",
        {"n_layer": 4, "n_embd": 256, "n_head": 4, "n_positions": 1024, "vocab_size": 8192},
    ),
}
_END = "<|endoftext|>"
_TOKENIZER_TOKENS = 2048  # the embedding may be larger, never smaller
_MAX_STORIES = 12  # of a text; a story has about 160 tokens
_MONTH = Month("2024-02")


def run(rounds: int, texts: int, shape: str = "gpt2-tiny") -> Report:
    """Score ``texts`` texts of about 160 to 2,000 tokens under each protocol."""
    documents = make_texts(texts)
    with TemporaryDirectory(prefix="tidemark-bench-") as folder:
        save_model(Path(folder) / shape, shape, documents)
        settings = Settings(home=folder, device="cpu", dtype="float32")
        ours = CausalLM.load(str(Path(folder) / shape), None, settings)
        plain = PlainLoop.load(Path(folder) / shape)
    contenders = [
        each
        for name in PROTOCOLS
        for each in _contenders(ours, plain, get_protocol(name), documents)
    ]
    timings = measure(contenders, rounds)
    model_type, sizes = SHAPES[shape]
    conditions = (
        f"{shape}: {model_type} with {', '.join(f'{k} {v:,}' for k, v in sizes.items())}, random "
        f"weights, float32 on cpu, {torch.get_num_threads()} threads, default "
        f"batches; {texts} texts of {sum(map(len, documents)) / 1e3:.0f} kB together. "
        "Tokens are those scored; a sliding window reads 1,024 to score 256."
    )
    return Report("scoring", conditions, timings)


def make_texts(num_texts: int) -> list[str]:
    """Return texts of 1 to _MAX_STORIES stories each, lengths mixed."""
    lengths = [1 + number * 7 % _MAX_STORIES for number in range(num_texts)]
    world = World(0, _MONTH, _MONTH, stories_per_month=sum(lengths))
    stories = ["\n\n".join(story.paragraphs) for story in world.stories(_MONTH, "texts")]
    ends = [sum(lengths[: number + 1]) for number in range(num_texts)]
    return [
        "\n\n".join(stories[end - length : end]) for end, length in zip(ends, lengths, strict=True)
    ]


def save_model(folder: Path, shape: str, texts: Sequence[str]) -> None:
    """Write a model of random weights, with a byte-level BPE tokenizer made of the texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_TOKENIZER_TOKENS,
        special_tokens=[_END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    model_type, sizes = SHAPES[shape]
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, bos_token_id=0, eos_token_id=0, **sizes)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    model.save_pretrained(folder)
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, eos_token=_END
    )
    fast.save_pretrained(folder)


@dataclass(frozen=True)
class PlainLoop:
    """One window at a time, full logits."""

    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, folder: Path) -> PlainLoop:
        """Load the same files as ours."""
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        return cls(model, PreTrainedTokenizerFast.from_pretrained(folder))

    @torch.inference_mode()
    def score(self, texts: Sequence[str], protocol: ScoringProtocol) -> list[float]:
        """Return nats of every window, (num_windows,), texts in order."""
        start = self.tokenizer.eos_token_id
        context = protocol.effective_context(self.model.config.max_position_embeddings)
        nats = []
        for text in texts:
            ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
            for window in plan_windows(len(ids), protocol, context, has_start=True):
                read = [start] * window.has_start + ids[window.begin : window.end]
                tokens = torch.tensor([read])  # (1, T + 1)
                logits = self.model(input_ids=tokens[:, :-1]).logits.float()  # (1, T, V)
                logprobs = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])  # (1, T, 1)
                nats.append(-float(logprobs[0, -window.num_scored :].double().sum()))
        return nats


def _contenders(
    ours: CausalLM, plain: PlainLoop, protocol: ScoringProtocol, texts: Sequence[str]
) -> list[Contender]:
    """Ours and the plain loop under one protocol, once their results agree."""
    batch = pa.record_batch(
        {
            "document_id": [f"d{number}" for number in range(len(texts))],
            "source": ["simulated"] * len(texts),
            "month": pa.array([_MONTH.first_day] * len(texts)),
            "text": pa.array(texts, pa.large_string()),
        }
    )
    table = pa.concat_tables(ours.score([batch], protocol))
    _check_same(table["nll_nats"].to_pylist(), plain.score(texts, protocol), protocol)
    amounts = {"tokens": sum(table["num_tokens"].to_pylist())}
    baseline = Contender(
        f"plain loop, {protocol.name}", lambda _: plain.score(texts, protocol), amounts
    )
    return [
        Contender(
            f"ours, {protocol.name}",
            lambda _: list(ours.score([batch], protocol)),
            amounts,
            baseline.name,
        ),
        baseline,
    ]


def _check_same(
    found: Sequence[float], expected: Sequence[float], protocol: ScoringProtocol
) -> None:
    """Refuse to time two sides that do not do the same work."""
    if len(found) != len(expected) or not all(map(_close, found, expected)):
        raise ModelError(
            f"{protocol.name}: our losses of {len(found)} windows are not those of the plain "
            f"loop's {len(expected)}, so their speeds cannot be compared"
        )


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-5)
