"""Windows: the tokens that a model reads together, and the tokens among them that are scored.

A text's tokens are t[0:n]. A window consists of a prefix (usually the start token) and
t[begin:end]; the tokens t[first:end] are scored. Each token is predicted from the tokens before it
in the window, so the window's last token is never an input.

The windows of a text are ordered by their ends. A window *covers* the tokens from the end of the
previous window to its own end. A window's chunk has the characters and bytes of covered tokens.
Covered and scored tokens are the same, unless a protocol leaves tokens unscored or scores some
twice.

Windows are computed from token counts alone. ``Batches`` runs the model on windows.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

import numpy as np

from core.errors import BatchTooLarge, NotMeasurable
from models.scoring.protocol import ScoringProtocol
from models.scoring.scorer import DeviceFull, Engine, MomentEngine, Scored, Tally, Tokens

_LEAST_FILL = 0.8  # minimum length of a row in a batch, as a share of the longest row


class Window(NamedTuple):
    """One window; ``begin``, ``first`` and ``end`` are token indices in the text or stream."""

    begin: int  # index of the first token read
    first: int  # index of the first token scored
    end: int  # index after the last token scored
    num_prefix: int  # number of tokens read before the token at ``begin``

    @property
    def num_scored(self) -> int:
        """Number of scored tokens."""
        return self.end - self.first

    @property
    def num_inputs(self) -> int:
        """Number of tokens that the model reads, prefix included; 0 if no pass is needed."""
        if self.num_scored == 0:
            return 0
        return self.num_prefix + self.end - 1 - self.begin

    @property
    def is_charged(self) -> bool:
        """True if no token precedes the first scored token: its loss is ln(vocabulary size)."""
        return self.num_scored > 0 and self.first == self.begin and self.num_prefix == 0


def check_prefix(protocol: ScoringProtocol, context: int, num_prefix: int) -> None:
    """Raise NotMeasurable if a prefix leaves no room for scored text."""
    num_unscored = 0
    if protocol.layout == "disjoint" and not protocol.scores_first:
        num_unscored = 1  # the first text token of a window
    if num_prefix + num_unscored >= context:
        raise NotMeasurable(
            f"protocol {protocol.name} puts {num_prefix} tokens before each window's text, and a "
            f"window has {context}; ask for a longer context"
        )


def plan_windows(
    num_tokens: int, protocol: ScoringProtocol, context: int, num_prefix: int
) -> list[Window]:
    """Divide a text into windows, for protocols that score each document separately.

    ``context`` is the protocol's effective context in tokens, at least 2. The windows are in order,
    and the last one ends with the text. Of layout ``single``, there is only the first one.
    """
    if protocol.layout == "sliding":
        return _sliding(num_tokens, context, protocol.stride or 1, num_prefix)
    if protocol.layout == "rolling":
        return _rolling(num_tokens, context, num_prefix)
    if protocol.replaces_first:
        return [
            Window(begin + 1, begin + 1, min(begin + context, num_tokens), num_prefix)
            for begin in range(0, num_tokens, context)
        ]
    windows = _disjoint(num_tokens, context, num_prefix, protocol.scores_first)
    if protocol.layout == "single":
        return windows[:1]
    return windows


def _disjoint(n: int, context: int, num_prefix: int, scores_first: bool) -> list[Window]:
    """Return windows without overlap; ``context`` includes the prefix."""
    step = context - num_prefix
    windows = []
    for begin in range(0, n, step):
        first = begin if scores_first else begin + 1
        windows.append(Window(begin, first, min(begin + step, n), num_prefix))
    return windows


def _sliding(n: int, context: int, stride: int, num_prefix: int) -> list[Window]:
    """Return a first window as in ``_disjoint``, then windows that score ``stride`` tokens each."""
    # Based on Li et al. 2024 (arXiv 2402.00861), section 4.2. Here, no token is scored twice.
    if n == 0:
        return []
    head = min(context - num_prefix, n)
    windows = [Window(0, 0, head, num_prefix)]
    for first in range(head, n, stride):
        end = min(first + stride, n)
        windows.append(Window(end - context, first, end, 0))
    return windows


def _rolling(n: int, context: int, num_prefix: int) -> list[Window]:
    """Return windows as lm-evaluation-harness does; each has at most ``context`` inputs."""
    # Only the first window has a start token. A short last window begins earlier to be full.
    if n == 0:
        return []
    head = min(context, n)
    windows = [Window(0, 0, head, num_prefix)]
    for first in range(head, n, context):
        end = min(first + context, n)
        windows.append(Window(end - context - 1, first, end, 0))
    return windows


class StreamWindow(NamedTuple):
    """A window of a stream, and the minimum number of tokens of a stream with this window."""

    window: Window
    needed: int


def stream_windows(
    protocol: ScoringProtocol, context: int, num_prefix: int
) -> Iterator[StreamWindow]:
    """Yield the full windows of a stream without end; ``finish_stream`` adds the last windows."""
    stride = protocol.stride or context
    if protocol.layout == "sliding":
        head = context - num_prefix
        yield StreamWindow(Window(0, 0, head, num_prefix), head)
        for first in count(head, stride):
            end = first + stride
            yield StreamWindow(Window(end - context, first, end, 0), end)
    for number, begin in enumerate(count(0, stride)):
        end = begin + context
        first = end + 1 - stride
        if protocol.layout == "swce":  # reads ``context`` tokens to predict one more
            if number == 0:
                first = 1
            yield StreamWindow(Window(begin, first, end + 1, 0), end + 1)
        elif protocol.layout == "sliding-pieces":
            if number < protocol.full_windows:
                first = begin + 1
            yield StreamWindow(Window(begin, first, end, 0), end)
        elif num_prefix:  # BOS replaces a piece's last token; a stream's last piece is dropped
            yield StreamWindow(Window(begin, begin, end - num_prefix, num_prefix), end + 1)
        else:
            yield StreamWindow(Window(begin, begin + 1, end, 0), end + 1)


def finish_stream(
    protocol: ScoringProtocol, context: int, last: Window | None, num_tokens: int, num_prefix: int
) -> list[Window]:
    """Return the windows at the end of a stream, after its last full window ``last``.

    ``last`` is the last window of ``stream_windows`` for which the stream had enough tokens.
    Tokens that no window covers are neither scored nor counted.
    """
    if protocol.layout == "sliding":
        if last is None:
            return [Window(0, 0, num_tokens, num_prefix)] if num_tokens else []
        if last.end == num_tokens:
            return []
        return [Window(num_tokens - context, last.end, num_tokens, 0)]
    if last is None:
        return []
    covered = last.end
    if protocol.layout == "swce":  # the stream's unscored end counts as covered
        covered = num_tokens
    elif protocol.layout == "pieces":  # the token replaced by BOS counts as covered
        covered += last.num_prefix
    if covered == last.end:
        return []
    return [Window(covered, covered, covered, 0)]


def plan_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group rows of similar length, the longest first; return indices into ``lengths``."""
    # ``budget`` is the maximum number of inputs of a group, padding included; a longer row is a
    # group by itself. A row shorter than 80 % of the group's longest row begins a new group. On a
    # CPU, padding of more than a fifth takes more time than another pass.
    batches: list[list[int]] = []
    room = longest = 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if room == 0 or lengths[row] < _LEAST_FILL * longest:
            batches.append([])
            longest = lengths[row]
            room = max(1, budget // longest)
        batches[-1].append(row)
        room -= 1
    return batches


class Job(NamedTuple):
    """A window to run; ``ids`` are tokens of the text or stream from index ``offset`` on.

    A batch runs if one of its windows is wanted.
    """

    ids: Tokens
    window: Window
    prefix: tuple[int, ...]
    offset: int = 0
    is_wanted: bool = True

    @property
    def inputs(self) -> Tokens:
        """The tokens that the model reads, (num_inputs,)."""
        read = self.ids[self.window.begin - self.offset : self.window.end - 1 - self.offset]
        if not self.window.num_prefix:
            return read
        return np.concatenate([np.array(self.prefix, dtype=np.int64), read])

    @property
    def targets(self) -> Tokens:
        """The tokens that the model must predict; a token with no token before it is excluded."""
        first = self.window.first + self.window.is_charged
        return self.ids[first - self.offset : self.window.end - self.offset]


class _Outcome(NamedTuple):
    """The figures of a batch's windows, and the seconds of its pass."""

    scored: list[Scored]
    seconds: float


@dataclass
class Batches:
    """Runs windows in batches of similar length.

    The batches of a call depend only on its windows and the budget. So a second run gives the same
    bits. ``budget`` is the maximum number of inputs of a batch, padding included. A token without a
    token before it costs ln(``vocabulary_size``).
    """

    name: str
    engine: Engine
    vocabulary_size: int
    budget: int
    _done: dict[bytes, _Outcome] = field(default_factory=dict)

    def fresh(self) -> Batches:
        """Return a copy without stored batches, for another thread or call."""
        return replace(self, _done={})

    def forget(self) -> None:
        """Delete the stored results of batches to free memory."""
        self._done.clear()

    def measure(self, jobs: Sequence[Job], alphabet: Tokens | None, tally: Tally) -> list[Scored]:
        """Return the figures of each window's scored tokens, (num_scored,) float64.

        If an equal batch was run for another protocol, its stored result is used. The figures of
        windows in batches that no window wants are empty.

        Raises:
            BatchTooLarge: a batch did not fit into the device's memory; the budget was halved.
            NotMeasurable: a single window does not fit into the memory.
        """
        # A window needs no pass if its only scored token has no token before it.
        rows = [row for row, job in enumerate(jobs) if job.window.num_inputs > 0]
        lengths = [jobs[row].window.num_inputs for row in rows]
        tally.num_tokens_read += sum(lengths)
        measured = [Scored(np.zeros(0))] * len(jobs)
        for group in plan_batches(lengths, self.budget):
            batch = [rows[position] for position in group]
            if not any(jobs[row].is_wanted for row in batch):
                continue
            outcome = self._run_batch([jobs[row] for row in batch], alphabet, tally.with_moments)
            tally.seconds += outcome.seconds
            for row, scored in zip(batch, outcome.scored, strict=True):
                measured[row] = scored
        num_choices = self.vocabulary_size if alphabet is None else len(alphabet)
        for row, job in enumerate(jobs):
            if job.window.is_charged:
                measured[row] = _charged(measured[row], math.log(num_choices))
        return measured

    def _run_batch(
        self, batch: Sequence[Job], alphabet: Tokens | None, with_moments: bool
    ) -> _Outcome:
        """Return the outcome of a batch; an equal batch is run only once."""
        inputs = [job.inputs for job in batch]
        targets = [job.targets for job in batch]
        arrays = [*inputs, *targets]
        if alphabet is not None:
            arrays.append(alphabet)
        key = _digest(arrays)
        if key not in self._done:
            began = time.perf_counter()
            scored = self._scored(inputs, targets, alphabet, with_moments)
            self._done[key] = _Outcome(scored, time.perf_counter() - began)
        return self._done[key]

    def _scored(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None,
        with_moments: bool,
    ) -> list[Scored]:  # fmt: skip
        """Run a batch; if it does not fit into memory, halve the budget and raise BatchTooLarge."""
        try:
            if not with_moments:
                return list(map(Scored, self.engine.losses(inputs, targets, alphabet)))
            if isinstance(self.engine, MomentEngine):
                return self.engine.with_moments(inputs, targets)
            raise NotMeasurable(
                f"{self.name}: Min-K%++ needs the probabilities of all tokens, which this kind of "
                "model does not give; leave out --min-k"
            )
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


def _charged(scored: Scored, unread: float) -> Scored:
    """Put the loss of a token without a token before it in front; it has no moments."""
    nats = np.concatenate([[unread], scored.nats])
    if scored.moments is None:
        return Scored(nats)
    return Scored(nats, np.vstack([[np.nan, np.nan], scored.moments]))


def _digest(arrays: Sequence[Tokens]) -> bytes:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(array.tobytes())
    return digest.digest()
