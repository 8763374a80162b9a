"""Windows: which tokens a model reads together, and which of them it is charged for.

Pure arithmetic on token counts. A text's tokens are t[0:n]; a window reads t[begin:end], after the
start token where ``has_start``, and is charged for t[first:end]. Each token is predicted from those
before it in its window, so the last one is never an input.

The windows of a text end in growing order, and a window *covers* the tokens from the end of the
window before it to its own end: those are the tokens whose characters and bytes are its chunk's.
They are the scored tokens too, but for protocols that leave a first token unscored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.protocols import ScoringProtocol

_LEAST_FILL = 0.8  # shortest row of a batch, as a share of its longest


class Window(NamedTuple):
    """One pass of the model; positions count the text's tokens."""

    begin: int  # first token read
    first: int  # first token scored
    end: int  # one past the last token scored
    has_start: bool  # whether the start token is read before t[begin]

    @property
    def num_scored(self) -> int:
        """Tokens whose loss is counted."""
        return self.end - self.first

    @property
    def num_inputs(self) -> int:
        """Tokens that the model reads, the start token included; 0 where it has nothing to do."""
        return self.has_start + self.end - 1 - self.begin if self.num_scored else 0

    @property
    def is_charged(self) -> bool:
        """Whether the first scored token has nothing before it: it costs ln(vocabulary size)."""
        return self.num_scored > 0 and self.first == self.begin and not self.has_start


def plan_windows(
    num_tokens: int, protocol: ScoringProtocol, context: int, has_start: bool
) -> list[Window]:
    """Cut a text into windows.

    Args:
        num_tokens: n, the tokens of the text.
        protocol: layout, stride, and whether windows begin with a start token.
        context: the protocol's effective context in tokens, at least 2.
        has_start: whether the tokenizer has a start token at all.

    Returns:
        Windows with growing ends, the last of which is n; none where n is 0.
    """
    has_start = has_start and protocol.start_token
    if protocol.layout == "sliding":
        return _sliding(num_tokens, context, protocol.stride or 1, has_start)
    if protocol.layout == "rolling":
        return _rolling(num_tokens, context)
    return _disjoint(num_tokens, context, has_start, protocol.scores_first)


def _disjoint(n: int, context: int, has_start: bool, scores_first: bool) -> list[Window]:
    """Every window by itself; a start token takes one of its places."""
    step = context - has_start
    skipped = 0 if scores_first else 1
    return [
        Window(begin, begin + skipped, min(begin + step, n), has_start)
        for begin in range(0, n, step)
    ]


def _sliding(n: int, context: int, stride: int, has_start: bool) -> list[Window]:
    """The first window is a disjoint one; later ones score ``stride`` tokens, reading ``context``.

    Li et al. 2024 (arXiv 2402.00861), section 4.2, made exact: no token is scored twice.
    """
    if n == 0:
        return []
    head = min(context - has_start, n)
    windows = [Window(0, 0, head, has_start)]
    for first in range(head, n, stride):
        end = min(first + stride, n)
        windows.append(Window(end - context, first, end, False))
    return windows


def _rolling(n: int, context: int) -> list[Window]:
    """The windows of lm-evaluation-harness: ``context`` inputs, one more than it can score.

    The start token is read by the first window only; the last window reaches back to be full.
    """
    windows = []
    for first in range(0, n, context):
        end = min(first + context, n)
        begin = 0 if first == 0 else end - context - 1
        windows.append(Window(begin, first, end, first == 0))
    return windows


def plan_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group rows of like length, so that padding to the longest of a group costs little.

    A row shorter than most of its group begins a new one: measured on a CPU, padding beyond a fifth
    costs more than another pass.

    Args:
        lengths: inputs of each row, all > 0.
        budget: inputs in one group, padding included; a longer row makes a group of its own.

    Returns:
        Groups of positions in ``lengths``, the longest rows first. The same lengths and budget
        give the same groups.
    """
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
