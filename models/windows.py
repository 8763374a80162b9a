"""Windows: which tokens a model reads together, and which of them it is charged for.

Pure arithmetic on token counts. A text's tokens are t[0:n]; a window reads its prefix (the start
token, as a rule) and t[begin:end], and is charged for t[first:end]. Each token is predicted from
those before it in its window, so the last one is never an input.

The windows of a text end in growing order, and a window *covers* the tokens from the end of the
window before it to its own end: those are the tokens whose characters and bytes are its chunk's.
They are the scored tokens too, but for protocols that leave tokens unscored (a window may score
nothing and only cover) or score some twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from core.errors import NotMeasurable
from models.protocols import ScoringProtocol

_LEAST_FILL = 0.8  # shortest row of a batch, as a share of its longest


class Window(NamedTuple):
    """One pass of the model; positions count the tokens of the text, or of the stream."""

    begin: int  # first token read
    first: int  # first token scored
    end: int  # one past the last token scored
    num_prefix: int  # tokens read before t[begin]

    @property
    def num_scored(self) -> int:
        """Tokens whose loss is counted."""
        return self.end - self.first

    @property
    def num_inputs(self) -> int:
        """Tokens that the model reads, the prefix included; 0 where it has nothing to do."""
        return self.num_prefix + self.end - 1 - self.begin if self.num_scored else 0

    @property
    def is_charged(self) -> bool:
        """Whether the first scored token has nothing before it: it costs ln(vocabulary size)."""
        return self.num_scored > 0 and self.first == self.begin and self.num_prefix == 0


def check_prefix(protocol: ScoringProtocol, context: int, num_prefix: int) -> None:
    """Refuse a prefix that leaves no room for text that is scored.

    Raises:
        NotMeasurable: for that.
    """
    # A disjoint window's first token of text may be left unscored.
    num_unscored = 0 if protocol.scores_first or protocol.layout != "disjoint" else 1
    if num_prefix + num_unscored >= context:
        raise NotMeasurable(
            f"protocol {protocol.name} puts {num_prefix} tokens before each window's text, and a "
            f"window has {context}; ask for a longer context"
        )


def plan_windows(
    num_tokens: int, protocol: ScoringProtocol, context: int, num_prefix: int
) -> list[Window]:
    """Cut a text into windows; for protocols that take each document by itself.

    Args:
        num_tokens: n, the tokens of the text.
        protocol: layout and stride.
        context: the protocol's effective context in tokens, at least 2.
        num_prefix: tokens of the prefix: 0 where the tokenizer has none.

    Returns:
        Windows with growing ends, the last of which is n (of a single window, n or less); none
        where n is 0.
    """
    if protocol.layout == "sliding":
        return _sliding(num_tokens, context, protocol.stride or 1, num_prefix)
    if protocol.layout == "rolling":
        return _rolling(num_tokens, context, num_prefix)
    windows = _disjoint(num_tokens, context, num_prefix, protocol.scores_first)
    return windows[:1] if protocol.layout == "single" else windows


def _disjoint(n: int, context: int, num_prefix: int, scores_first: bool) -> list[Window]:
    """Every window by itself; the prefix takes some of its places."""
    step = context - num_prefix
    skipped = 0 if scores_first else 1
    return [
        Window(begin, begin + skipped, min(begin + step, n), num_prefix)
        for begin in range(0, n, step)
    ]


def _sliding(n: int, context: int, stride: int, num_prefix: int) -> list[Window]:
    """The first window is a disjoint one; later ones score ``stride`` tokens, reading ``context``.

    Li et al. 2024 (arXiv 2402.00861), section 4.2, made exact: no token is scored twice.
    """
    if n == 0:
        return []
    head = min(context - num_prefix, n)
    windows = [Window(0, 0, head, num_prefix)]
    for first in range(head, n, stride):
        end = min(first + stride, n)
        windows.append(Window(end - context, first, end, 0))
    return windows


def _rolling(n: int, context: int, num_prefix: int) -> list[Window]:
    """The windows of lm-evaluation-harness: ``context`` inputs, one more than it can score.

    The start token is read by the first window only; the last window reaches back to be full.
    """
    windows = []
    for first in range(0, n, context):
        end = min(first + context, n)
        begin = 0 if first == 0 else end - context - 1
        windows.append(Window(begin, first, end, num_prefix if first == 0 else 0))
    return windows


class StreamWindow(NamedTuple):
    """A window of a stream, and how many of the stream's tokens must be there for it to count."""

    window: Window
    needed: int


def stream_windows(
    protocol: ScoringProtocol, context: int, num_prefix: int
) -> Iterator[StreamWindow]:
    """Yield the windows of a stream that never ends; see ``finish_stream`` for one that does.

    Args:
        protocol: one with ``is_stream``.
        context: its effective context in tokens.
        num_prefix: tokens of its prefix.
    """
    stride = protocol.stride or context
    if protocol.layout == "sliding":
        head = context - num_prefix
        yield StreamWindow(Window(0, 0, head, num_prefix), head)
        for first in count(head, stride):
            end = first + stride
            yield StreamWindow(Window(end - context, first, end, 0), end)
    for number, begin in enumerate(count(0, stride)):
        end = begin + context
        if protocol.layout == "swce":  # reads ``context`` tokens to predict one more
            first = 1 if number == 0 else end + 1 - stride
            yield StreamWindow(Window(begin, first, end + 1, 0), end + 1)
        elif protocol.layout == "sliding-pieces":
            first = begin + 1 if number < protocol.full_windows else end + 1 - stride
            yield StreamWindow(Window(begin, first, end, 0), end)
        elif num_prefix:  # BOS takes the place of a piece's last token; the last piece is dropped
            yield StreamWindow(Window(begin, begin, end - num_prefix, num_prefix), end + 1)
        else:
            yield StreamWindow(Window(begin, begin + 1, end, 0), end + 1)


def finish_stream(
    protocol: ScoringProtocol, context: int, last: Window | None, num_tokens: int, num_prefix: int
) -> list[Window]:
    """Return the windows at the end of a stream, after the last one that was full.

    What they do not cover is dropped: neither scored nor counted.

    Args:
        protocol: one with ``is_stream``.
        context: its effective context in tokens.
        last: of ``stream_windows``, the last that the stream had tokens for.
        num_tokens: of the whole stream.
        num_prefix: tokens of the prefix.
    """
    covered = last.end if last else 0
    if protocol.layout == "sliding":
        if covered == num_tokens:
            return []
        if last is None:
            return [Window(0, 0, num_tokens, num_prefix)]
        return [Window(num_tokens - context, covered, num_tokens, 0)]
    if last is None:
        return []
    if protocol.layout == "swce":  # counts the tail that it does not score
        covered = num_tokens
    elif protocol.layout == "pieces":  # counts the piece's last token, which BOS pushed out
        covered += last.num_prefix
    return [Window(covered, covered, covered, 0)] if covered > last.end else []


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
