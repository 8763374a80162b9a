"""Benchmark of scoring the options of questions on a CPU: tidemark against lm-eval.

Both contenders get one checkpoint, the same prompts and options, and return the log-probability of
each option. Before the timing, the benchmark checks that the log-probabilities agree. lm-eval runs
the model on the whole prompt once per option; options of one token share one run.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.measure import Contender, Report, Verdict, measure, ratios
from benchmarks.scoring.losses import check_same, fastest
from benchmarks.scoring.scorers import LmEval, load_plain
from benchmarks.scoring.shapes import SHAPES, make_texts, save_model
from core.corpus.questions import Question
from core.settings import Settings
from models.options.protocols import get_answer_protocol, prompts_of
from models.options.scoring import OptionScorer, TextPrompt
from models.scoring.token_scorer import CausalLM

# Share of the questions used per model shape: larger models get fewer questions.
_SHARES = {"llama-tiny": 1.0, "llama-50m": 0.2}
_BATCHES = (1, 8, 16, 32, 64)  # candidate batch sizes of lm-eval; the fastest is timed
_NUM_OPTIONS = 5
_LEAST_RATIO = 2.0
_TOLERANCE = 1e-5  # relative tolerance of log-probabilities
_CONTEXT = 1024


@dataclass(frozen=True)
class Peer:
    """A contender: ``loglikelihood`` of lm-eval with one batch size."""

    lm: Any

    def score(self, prompts: Sequence[TextPrompt]) -> list[float]:
        """Return the log-probabilities of all options of all prompts, as one list in nats."""
        from lm_eval.api.instance import Instance

        pairs = [(prompt.text, each) for prompt in prompts for each in prompt.continuations]
        requests = [
            Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(pairs)
        ]
        with contextlib.redirect_stderr(io.StringIO()):  # hide progress bars
            return [float(found[0]) for found in self.lm.loglikelihood(requests, True)]


@dataclass(frozen=True)
class Ours:
    """A contender: tidemark's scorer of options."""

    scorer: OptionScorer

    @classmethod
    def load(cls, folder: Path) -> Ours:
        """Load a checkpoint on the CPU, in float32, with tidemark's default batch size."""
        settings = Settings(home=str(folder), device="cpu", dtype="float32")
        model = CausalLM.load(str(folder), None, settings)
        budget = model.facts.batch_tokens or 1
        return cls(OptionScorer(model.name, model.text_model, model.engine, model.context, budget))

    def score(self, prompts: Sequence[TextPrompt]) -> list[float]:
        """Return the log-probabilities of all options of all prompts, as one list in nats."""
        return [score.log_probability for own in self.scorer.score(prompts) for score in own]


def run(
    rounds: int, questions: int, shapes: Sequence[str] = tuple(_SHARES)
) -> Sequence[Report | Verdict]:
    """Score the options of ``questions`` questions with a model of each shape."""
    found: list[Report | Verdict] = []
    for shape in shapes:
        asked = make_questions(max(1, round(questions * _SHARES.get(shape, 1.0))))
        with TemporaryDirectory(prefix="tidemark-bench-") as folder:
            found += _run_shape(shape, Path(folder), asked, rounds)
    return found


def _run_shape(
    shape: str, folder: Path, questions: Sequence[Question], rounds: int
) -> tuple[Report, Verdict]:
    """Compare our scoring of options with lm-eval's on a model of random weights."""
    save_model(folder, SHAPES[shape])
    ours = Ours.load(folder)
    model, tokenizer = load_plain(folder)
    peers = {each: Peer(LmEval.of(model, tokenizer, _CONTEXT, each).peer) for each in _BATCHES}
    contenders, told = [], []
    for mode in ("text", "letter"):
        prompts = [_prompt(question, mode) for question in questions]
        told.append(f"{mode}: {_sizes(prompts, tokenizer)}")
        check_same(shape, ours.score(prompts[:8]), peers[8].score(prompts[:8]), _TOLERANCE)
        some = prompts[: max(8, len(prompts) // 5)]
        batch, _ = fastest({size: peer.score for size, peer in peers.items()}, some)
        contenders += _contenders(f"{shape}, {mode}", ours, peers[batch], batch, prompts)
    timings = measure(contenders, rounds, warm_up=False)
    conditions = (
        f"{shape}: {SHAPES[shape]}. Random weights, float32 on cpu, {torch.get_num_threads()} "
        f"threads, our default batches, lm-eval's fastest of {', '.join(map(str, _BATCHES))} "
        f"(found with a fifth of the questions). {len(questions)} questions; {'; '.join(told)}."
    )
    ratio = statistics.median(ratios(timings[1], timings[0]))
    verdict = Verdict(
        f"options, {shape}",
        {"lm-eval's time over ours, full text": f"{ratio:.2f}"},
        {f"at least {_LEAST_RATIO} with options of several tokens": ratio >= _LEAST_RATIO},
    )
    return Report(f"options, {shape}", conditions, timings), verdict


def _contenders(
    job: str, ours: Ours, peer: Peer, batch: int, prompts: Sequence[TextPrompt]
) -> list[Contender]:
    """Return the jobs: lm-eval's with its fastest batch, and ours."""

    def of(score: Callable[[Sequence[TextPrompt]], list[float]]) -> Callable[[Path], object]:
        return lambda _: score(prompts)

    amounts = {"questions": float(len(prompts))}
    theirs = f"{job}: lm-eval, batch {batch}"
    return [
        Contender(theirs, of(peer.score), amounts),
        Contender(f"{job}: ours", of(ours.score), amounts, theirs),
    ]


def make_questions(count: int) -> list[Question]:
    """Return questions with prompts of at least 200 tokens and options of several tokens."""
    sentences = [
        sentence
        for text in make_texts(max(8, count // 4))
        for sentence in text.replace("\n", " ").split(". ")
        if len(sentence.split()) >= 8
    ]
    generator = random.Random(0)
    opened = dt.datetime(2024, 2, 1, tzinfo=dt.UTC)
    return [
        Question(
            question_id=str(number),
            source="simulated",
            title=generator.choice(sentences),
            background=". ".join(generator.choices(sentences, k=generator.randint(8, 13))),
            options=tuple(
                " ".join(generator.choice(sentences).split()[: generator.randint(4, 8)])
                for _ in range(_NUM_OPTIONS)
            ),
            opened_at=opened,
            status="open",
            licence="simulated",
        )
        for number in range(count)
    ]


def _prompt(question: Question, mode: str) -> TextPrompt:
    (prompt,) = prompts_of(question, get_answer_protocol(mode))
    return TextPrompt(prompt.text, prompt.continuations)


def _sizes(prompts: Sequence[TextPrompt], tokenizer: Any) -> str:
    """Return text with the minimum, maximum and mean number of tokens of prompts and options."""
    lengths = [len(tokenizer(prompt.text)["input_ids"]) for prompt in prompts]
    options = [
        len(tokenizer(each)["input_ids"]) for prompt in prompts for each in prompt.continuations
    ]
    return (
        f"prompts of {min(lengths)} to {max(lengths)} tokens, mean "
        f"{statistics.mean(lengths):.0f}, with {_NUM_OPTIONS} options of {min(options)} to "
        f"{max(options)}, mean {statistics.mean(options):.1f}"
    )
