"""Batches: windows in, the loss of every scored token out."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from core.errors import BatchTooLarge, NotMeasurable
from models.backend import Backend, DeviceFull, Losses, Tokens
from models.tally import Tally
from models.windows import Window, plan_batches


class Job(NamedTuple):
    """One window's work for the model.

    ``ids`` are the tokens from number ``offset`` of the text (or stream) on.
    """

    ids: Tokens
    window: Window
    prefix: tuple[int, ...]
    offset: int = 0

    @property
    def inputs(self) -> Tokens:
        """What the model reads, (num_inputs,)."""
        read = self.ids[self.window.begin - self.offset : self.window.end - 1 - self.offset]
        if not self.window.num_prefix:
            return read
        return np.concatenate([np.array(self.prefix, dtype=np.int64), read])

    @property
    def targets(self) -> Tokens:
        """What it is to predict, (num_scored,), without a token that has nothing before it."""
        first = self.window.first + self.window.is_charged
        return self.ids[first - self.offset : self.window.end - self.offset]


class _Outcome(NamedTuple):
    losses: list[Losses]
    seconds: float


@dataclass
class Batches:
    """Runs windows in batches of like length.

    The batches of a call follow from its windows and the budget alone, so that scoring twice gives
    the same bits.

    Attributes:
        name: of the model, for messages.
        backend: runs it.
        vocabulary_size: a token with nothing before it costs ln of that.
        budget: inputs in one batch, padding included.
    """

    name: str
    backend: Backend
    vocabulary_size: int
    budget: int
    _done: dict[bytes, _Outcome] = field(default_factory=dict)

    def anew(self) -> Batches:
        """Return the same without batches that were run, for another thread or call."""
        return replace(self, _done={})

    def forget(self) -> None:
        """Forget the batches that were run; what they gave takes memory."""
        self._done.clear()

    def run(self, jobs: Sequence[Job], alphabet: Tokens | None, tally: Tally) -> list[Losses]:
        """Return the losses of each window's scored tokens, (num_scored,) float64.

        A batch that was run before, for another protocol, is not run again.

        Raises:
            BatchTooLarge: a batch did not fit into the device's memory; the budget was halved.
            NotMeasurable: one window by itself does not fit.
        """
        # A window whose only scored token has nothing before it is no work for the model.
        rows = [row for row, job in enumerate(jobs) if job.window.num_inputs > 0]
        lengths = [jobs[row].window.num_inputs for row in rows]
        tally.num_tokens_read += sum(lengths)
        losses = [np.zeros(0)] * len(jobs)
        for group in plan_batches(lengths, self.budget):
            batch = [rows[position] for position in group]
            outcome = self._run_batch([jobs[row] for row in batch], alphabet)
            tally.seconds += outcome.seconds
            for row, values in zip(batch, outcome.losses, strict=True):
                losses[row] = values
        unread = math.log(self.vocabulary_size if alphabet is None else len(alphabet))
        return [
            np.concatenate([[unread], values]) if job.window.is_charged else values
            for job, values in zip(jobs, losses, strict=True)
        ]

    def _run_batch(self, batch: Sequence[Job], alphabet: Tokens | None) -> _Outcome:
        inputs, targets = [job.inputs for job in batch], [job.targets for job in batch]
        key = _digest([*inputs, *targets, *([] if alphabet is None else [alphabet])])
        if key not in self._done:
            began = time.perf_counter()
            losses = self._losses(inputs, targets, alphabet)
            self._done[key] = _Outcome(losses, time.perf_counter() - began)
        return self._done[key]

    def _losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None
    ) -> list[Losses]:
        try:
            return self.backend.losses(inputs, targets, alphabet)
        except DeviceFull as error:
            longest = len(inputs[0])
            if len(inputs) == 1:
                raise NotMeasurable(
                    f"{self.name}: a window of {longest} tokens does not fit into the "
                    "device's memory; ask for a shorter --context or another TIDEMARK_DTYPE"
                ) from error
            self.budget = len(inputs) * longest // 2
            raise BatchTooLarge(
                f"{self.name}: {len(inputs)} windows of {longest} tokens do not fit into the "
                f"device's memory; batches now have {self.budget} tokens, score again"
            ) from error


def _digest(arrays: Sequence[Tokens]) -> bytes:
    """Equal where a model is asked the same, whichever protocol asks."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(array.tobytes())
    return digest.digest()
