"""Benchmark of greedy generation on a CPU: tidemark against transformers' ``generate``.

All contenders get one checkpoint, the same prompts of mixed lengths and the same stop text. Before
the timing, the benchmark checks that all contenders generate equal texts. transformers gets prompts
one by one, and in batches of similar length; a batch runs until its last text ends.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.measure import Contender, Report, Verdict, measure, ratios
from benchmarks.scoring.scorers import load_plain
from benchmarks.scoring.shapes import SHAPES, make_texts, save_model
from core.settings import Settings
from models.catalogue import ModelEntry
from models.generation import Decoding, Generation, GenerationRequest
from models.generation.local import LocalGenerator, load_generator

# Share of the prompts used per model shape: larger models get fewer prompts.
_SHARES = {"llama-tiny": 1.0, "llama-50m": 0.5}
_NEW_TOKENS = 128
_ROWS = 32  # prompts per batch of transformers; tidemark's CPU batches have the same size
_STOP_AT = 0.4  # mean position of the stop text, as a share of the text
_MIN_WORDS, _MAX_WORDS = 20, 220


@dataclass(frozen=True)
class Theirs:
    """A contender: ``generate`` of transformers, in batches of a given size."""

    model: Any
    tokenizer: Any

    def write(self, prompts: Sequence[str], stop: str | None, rows: int) -> list[str]:
        """Generate texts, in the order of the prompts, with batches of ``rows`` prompts."""
        order = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
        texts = [""] * len(prompts)
        for first in range(0, len(order), rows):
            places = order[first : first + rows]
            batch = self.tokenizer(
                [prompts[place] for place in places], return_tensors="pt", padding=True
            )
            ended = {} if stop is None else {"stop_strings": stop, "tokenizer": self.tokenizer}
            found = self.model.generate(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                do_sample=False,
                max_new_tokens=_NEW_TOKENS,
                pad_token_id=self.tokenizer.pad_token_id,
                **ended,
            )
            new = self.tokenizer.batch_decode(
                found[:, batch["input_ids"].shape[1] :], skip_special_tokens=True
            )
            for place, text in zip(places, new, strict=True):
                texts[place] = text if stop is None else _cut(text, stop)
        return texts


@dataclass(frozen=True)
class Ours:
    """A contender: tidemark's generator."""

    generator: LocalGenerator

    def write(self, prompts: Sequence[str], stop: str | None) -> list[str]:
        """Generate texts, in the order of the prompts."""
        found = {int(each.key): each.text for each in self._generate(prompts, stop)}
        return [found[number] for number in range(len(prompts))]

    def count(self, prompts: Sequence[str], stop: str) -> list[int]:
        """Return the number of generated tokens per prompt; some tokens decode to no characters."""
        return [each.num_tokens or 0 for each in self._generate(prompts, stop)]

    def _generate(self, prompts: Sequence[str], stop: str | None) -> Iterator[Generation]:
        requests = [GenerationRequest(str(n), prompt, n) for n, prompt in enumerate(prompts)]
        decoding = Decoding(_NEW_TOKENS, stop=None if stop is None else re.escape(stop))
        return self.generator.generate(requests, decoding)


def run(
    rounds: int, prompts: int, shapes: Sequence[str] = tuple(_SHARES)
) -> Sequence[Report | Verdict]:
    """Time the continuation of ``prompts`` prompts with a model of each shape."""
    found: list[Report | Verdict] = []
    for shape in shapes:
        asked = make_prompts(max(2, round(prompts * _SHARES.get(shape, 1.0))))
        with TemporaryDirectory(prefix="tidemark-bench-") as folder:
            found += _run_shape(shape, Path(folder), asked, rounds)
    return found


def make_prompts(count: int) -> list[str]:
    """Return prompts of 20 to 220 words."""
    words = " ".join(make_texts(max(8, count // 4))).split()
    more = _MAX_WORDS - _MIN_WORDS
    return [
        " ".join(words[50 * n : 50 * n + _MIN_WORDS + more * (n * 7 % count) // count])
        for n in range(count)
    ]


def _run_shape(
    shape: str, folder: Path, prompts: Sequence[str], rounds: int
) -> tuple[Report, Verdict]:
    """Compare our generator with transformers' on a model of random weights."""
    save_model(folder, SHAPES[shape])
    settings = Settings(home=str(folder), device="cpu", dtype="float32")
    ours = Ours(load_generator(ModelEntry(name=shape, location=str(folder)), settings))
    model, tokenizer = load_plain(folder)
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, "left"
    theirs = Theirs(model, tokenizer)
    stop = choose_stop(ours.write(prompts, None))
    expected = theirs.write(prompts, stop, 1)
    for found in (ours.write(prompts, stop), theirs.write(prompts, stop, _ROWS)):
        if found != expected:
            raise RuntimeError(f"{shape}: the texts differ, so that nothing can be compared")
    timings = measure(_contenders(shape, ours, theirs, prompts, stop), rounds, warm_up=False)
    lengths = [len(tokenizer(prompt)["input_ids"]) for prompt in prompts]
    written = ours.count(prompts, stop)
    conditions = (
        f"{shape}: {SHAPES[shape]}. Random weights, float32 on cpu, {torch.get_num_threads()} "
        f"threads. {len(prompts)} prompts of {min(lengths)} to {max(lengths)} tokens, mean "
        f"{statistics.mean(lengths):.0f}; at most {_NEW_TOKENS} tokens are written, and end at "
        f"{stop!r}: {min(written)} to {max(written)}, mean {statistics.mean(written):.0f}. Greedy; "
        f"all wrote the same texts. Batches of at most {_ROWS}."
    )
    batched, single = (statistics.median(ratios(timings[2], timings[place])) for place in (1, 0))
    verdict = Verdict(
        f"generation, {shape}",
        {
            "time of transformers' batches over ours": f"{batched:.2f}",
            "time of one prompt at a time over ours": f"{single:.2f}",
        },
        {"not slower than transformers' batches": batched >= 1},
    )
    return Report(f"generation, {shape}", conditions, timings), verdict


def _contenders(
    shape: str, ours: Ours, theirs: Theirs, prompts: Sequence[str], stop: str
) -> list[Contender]:
    """Return the jobs: transformers one by one and in batches, and ours."""

    def of(write: Callable[[], list[str]]) -> Callable[[Path], object]:
        return lambda _: write()

    amounts = {"texts": float(len(prompts))}
    single = f"{shape}: transformers, one prompt at a time"
    batched = f"{shape}: transformers, batches"
    return [
        Contender(single, of(lambda: theirs.write(prompts, stop, 1)), amounts),
        Contender(batched, of(lambda: theirs.write(prompts, stop, _ROWS)), amounts, single),
        Contender(f"{shape}: ours", of(lambda: ours.write(prompts, stop)), amounts, batched),
    ]


def choose_stop(texts: Sequence[str]) -> str:
    """Return a stop text of three characters that cuts texts to 40 % of their length on average."""
    candidates = {
        text[place : place + 3]
        for text in texts
        for place in range(len(text) - 2)
        if text[place : place + 3].isascii() and text[place : place + 3].isprintable()
    }

    def distance(stop: str) -> tuple[float, str]:
        shares = [len(_cut(text, stop)) / max(1, len(text)) for text in texts]
        return abs(statistics.mean(shares) - _STOP_AT), stop

    return min(candidates, key=distance)


def _cut(text: str, stop: str) -> str:
    place = text.find(stop)
    return text if place < 0 else text[: place + len(stop)]
