"""Losses of several continuations of a prompt, computed with only one pass over the prompt.

A prompt (prefix) and its continuations (branches) form a tree. ``SharedRow`` puts the tree into one
row: the prompt's tokens, then the tokens of each branch. A mask hides branches from each other. The
positions of each branch count from the prompt's end. The output layer runs once per position, even
if several branches begin there.

``SharedCache`` is for models that accept no mask or positions. The prompt is read into the model's
own cache; the branches then continue as rows of a batch. This works with every model that can
generate text. Prompts are read one at a time, because several prompts would need padding.

``OneByOne`` runs each branch separately and works with every engine. When a model is loaded, a test
with a few tokens shows which of the three methods are exact.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from models.scoring.forward import Forward, or_device_full
from models.scoring.lengths import attention_windows, find_switch, row_limits
from models.scoring.row_check import is_rounding, rms
from models.scoring.scorer import Engine, Losses, Tokens
from models.weights.files import MODEL_FAILURES
from models.weights.loading import carried_state

# Lengths in tokens of the prefixes and branches of the test.
_PROBE_PREFIXES = (23, 9)
_PROBE_BRANCHES = (6, 1, 4)


_BEYOND_WINDOW = 7  # tokens by which the test's second prefix exceeds the attention window
_KEYS = 4096  # maximum number of positions in a batch's caches; each row has its own copy


class Tree(NamedTuple):
    """The tokens of a prompt and of each continuation; each has at least one token."""

    prefix: Tokens
    branches: tuple[Tokens, ...]

    @property
    def width(self) -> int:
        """Number of input tokens of the tree in one row; a branch's last token is no input."""
        return len(self.prefix) + sum(len(branch) - 1 for branch in self.branches)

    @property
    def is_line(self) -> bool:
        """True if at most one branch has input tokens, so that no mask is needed."""
        return sum(len(branch) > 1 for branch in self.branches) <= 1

    def split(self) -> list[Tree]:
        """Return one tree for each branch, each with the whole prefix."""
        return [Tree(self.prefix, (branch,)) for branch in self.branches]


class Way(Protocol):
    """A method to compute the losses of trees."""

    def takes(self, tree: Tree) -> bool:
        """Return True if this tree's losses are the same as those of ``OneByOne``."""

    def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Return -ln p of each token of each branch, given the prefix and the earlier tokens.

        The trees of a batch do not affect each other. Raise DeviceFull if the batch is too large.
        """


class OneByOne:
    """Runs each branch separately after the whole prefix; works with every engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def takes(self, tree: Tree) -> bool:
        """Return True for any tree."""
        return True

    def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Implement ``Way.losses``."""
        inputs = []
        targets = []
        for tree in trees:
            for branch in tree.branches:
                inputs.append(np.concatenate([tree.prefix, branch[:-1]]))
                targets.append(branch)
        found = iter(self._engine.losses(inputs, targets))
        return [[next(found) for _ in tree.branches] for tree in trees]


class SharedRow:
    """Runs each tree as one row with a mask; for Hugging Face models."""

    def __init__(self, forward: Forward, context: int | None) -> None:
        self._forward = forward
        limits = [*row_limits(forward.model.config), *([context] if context else [])]
        self._widest = min(limits, default=None)
        # A recurrent state passes through the whole row and ignores the mask.
        is_stateful = getattr(forward.model, "_is_stateful", False)
        self.is_exact = not is_stateful and is_exact(
            forward, partial(_run, forward, is_masked=True)
        )

    def takes(self, tree: Tree) -> bool:
        """Implement ``Way.takes``."""
        fits = self._widest is None or tree.width <= self._widest
        return tree.is_line or (self.is_exact and fits)

    def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Implement ``Way.losses``."""
        # A mask replaces the model's own, which may have a window. So trees that need one do not
        # share a batch with lines, which may be longer than the window. Nor do rows on two sides of
        # a length at which the model changes.
        found: list[list[Losses]] = [[] for _ in trees]
        for is_masked in (False, True):
            rows = [row for row, tree in enumerate(trees) if tree.is_line is not is_masked]
            alike = [trees[place] for place in rows]
            losses = or_device_full(partial(self._run_alike, alike, is_masked))
            for place, own in zip(rows, losses, strict=True):
                found[place] = own
        return found

    def _run_alike(self, trees: Sequence[Tree], is_masked: bool) -> list[list[Losses]]:
        def run(rows: Sequence[int]) -> list[list[Losses]]:
            return _run(self._forward, [trees[row] for row in rows], is_masked)

        return self._forward.by_sides([tree.width for tree in trees], run) if trees else []


def is_exact(
    forward: Forward,
    way: Callable[[Sequence[Tree]], list[list[Losses]]],
    prefixes: Sequence[int] = _PROBE_PREFIXES,
) -> bool:
    """Return True if a method gives the same losses as ``OneByOne`` in a test with a few tokens."""
    # The tolerance is relative to the error of a row without a mask, whose branches see each other.
    generator = np.random.default_rng(0)
    trees = [
        Tree(
            generator.integers(0, forward.vocabulary, length),
            tuple(generator.integers(0, forward.vocabulary, each) for each in _PROBE_BRANCHES),
        )
        for length in prefixes
    ]
    expected = _flat(OneByOne(forward).losses(trees))
    leak = rms(_flat(_run(forward, trees, is_masked=False)) - expected)
    try:
        error = rms(_flat(way(trees)) - expected)
    except MODEL_FAILURES:
        return False  # the model does not accept the method's arguments
    return is_rounding(error, rms(expected), leak, forward.model.dtype)


@torch.inference_mode()
def _run(forward: Forward, trees: Sequence[Tree], is_masked: bool) -> list[list[Losses]]:
    """Run each tree as one row; return the losses of each branch's tokens."""
    rows = _lay_out(trees)
    options = _options(forward, rows) if is_masked else {}
    hidden = forward.hidden(forward.send(rows.ids), **options).flatten(0, 1)
    states = hidden[forward.send(rows.scored)]
    del hidden
    nats = forward.nats(states, forward.send(rows.targets)).double().cpu().numpy()
    return _split(nats, trees)


def _options(forward: Forward, rows: _Rows) -> dict[str, torch.Tensor]:
    """Return the model's arguments by which a token sees the prefix and its own branch only."""
    branch = forward.send(rows.branch)  # (rows, width)
    width = branch.shape[1]
    is_visible = (branch[:, None, :] == 0) | (branch[:, None, :] == branch[:, :, None])
    is_visible &= torch.ones(width, width, dtype=torch.bool, device=is_visible.device).tril()
    dtype = forward.model.dtype
    mask = torch.zeros(is_visible.shape, dtype=dtype, device=is_visible.device)
    mask.masked_fill_(~is_visible, torch.finfo(dtype).min)
    return {
        "attention_mask": mask[:, None],  # (rows, 1 for all heads, width, width)
        "position_ids": forward.send(rows.positions),
    }


class _Rows(NamedTuple):
    """Trees as rows of equal width, (rows, width), and the positions with scored next tokens.

    ``branch`` is the number of a token's branch; 0 marks the prefix. ``scored`` are indices into
    the flattened rows. ``targets``: next tokens by branch, (scored, most branches), 0-padded.
    """

    ids: Tokens
    positions: Tokens
    branch: Tokens
    scored: Tokens
    targets: Tokens


def _lay_out(trees: Sequence[Tree]) -> _Rows:
    """Put each tree into a row: the prefix, then all tokens of each branch but the last."""
    shape = (len(trees), max(tree.width for tree in trees))
    ids, positions, branch = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    scored: list[Tokens] = []
    targets: list[Tokens] = []
    most_branches = max(len(tree.branches) for tree in trees)
    for row, tree in enumerate(trees):
        length = len(tree.prefix)
        ids[row, :length] = tree.prefix
        positions[row, :length] = np.arange(length)
        # Padding may see the prefix; no other token sees the padding.
        ids[row, length:] = tree.prefix[-1]
        positions[row, length:] = length - 1
        branch[row, length:] = len(tree.branches) + 1
        begin = row * shape[1]
        # The prefix's last token predicts the first token of every branch.
        scored.append(np.array([begin + length - 1]))
        targets.append(_padded(np.array([[each[0] for each in tree.branches]]), most_branches))
        for number, tokens in enumerate(tree.branches, start=1):
            end = length + len(tokens) - 1
            ids[row, length:end] = tokens[:-1]
            branch[row, length:end] = number
            positions[row, length:end] = len(tree.prefix) + np.arange(end - length)
            scored.append(begin + np.arange(length, end))
            targets.append(_padded(tokens[1:, None], most_branches))
            length = end
    return _Rows(ids, positions, branch, np.concatenate(scored), np.concatenate(targets))


def _padded(targets: Tokens, columns: int) -> Tokens:
    return np.pad(targets, ((0, 0), (0, columns - targets.shape[1])))


def _split(nats: Losses, trees: Sequence[Tree]) -> list[list[Losses]]:
    """Return the losses by tree and branch; ``nats`` are in the order of ``_Rows.scored``."""
    found: list[list[Losses]] = []
    place = 0
    for tree in trees:
        firsts = nats[place]
        place += 1
        own = []
        for number, tokens in enumerate(tree.branches):
            rest = nats[place : place + len(tokens) - 1, 0]
            own.append(np.concatenate([firsts[number : number + 1], rest]))
            place += len(tokens) - 1
        found.append(own)
    return found


def _flat(losses: Sequence[Sequence[Losses]]) -> Losses:
    return np.concatenate([each for own in losses for each in own])


class SharedCache:
    """Reads a prefix into a cache, and runs each branch from a copy of the cache."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._switch = find_switch(forward.model.config)
        self._window = min(attention_windows(forward.model.config), default=None)
        self.is_stepwise = False
        self.is_exact = is_exact(forward, self._losses)
        if not self.is_exact:  # some models read only one token per call with a cache
            self.is_stepwise = True
            self.is_exact = is_exact(forward, self._losses)

    def takes(self, tree: Tree) -> bool:
        """Implement ``Way.takes``."""
        # The first tree that is longer than the model's attention window causes another test.
        longest = len(tree.prefix) + max(map(len, tree.branches)) - 1
        if self.is_exact and self._window is not None and longest > self._window:
            prefixes = (max(1, self._window - 2), self._window + _BEYOND_WINDOW)
            self._window = None
            self.is_exact = is_exact(self._forward, self._losses, prefixes)
        return self.is_exact and self._is_on_one_side(len(tree.prefix), longest)

    def _is_on_one_side(self, prefix: int, longest: int) -> bool:
        """Return True if a model reads a prefix alone as it reads it before a branch."""
        if self._switch is None or longest <= self._switch.length:
            return True
        return prefix > self._switch.length and not self._switch.is_dynamic

    def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Implement ``Way.losses``."""
        return or_device_full(lambda: self._losses(trees))

    @torch.inference_mode()
    def _losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        def run(places: Sequence[int]) -> list[list[Losses]]:
            return [self._tree(trees[place]) for place in places]

        return self._forward.by_sides([len(tree.prefix) for tree in trees], run)

    def _tree(self, tree: Tree) -> list[Losses]:
        """Return the losses of a tree's branches, each read from a copy of the prefix's cache."""
        forward = self._forward
        read = forward.run(forward.send(tree.prefix[None]), use_cache=True)
        last = read[0][:, -1]
        firsts = self._nats(last, np.array([[branch[0] for branch in tree.branches]]))[0]
        found = [firsts[number : number + 1] for number in range(len(tree.branches))]
        longer = [number for number, branch in enumerate(tree.branches) if len(branch) > 1]
        if longer:
            [(name, state)] = carried_state(forward.body, read).items()
            for places, cache in _copies(state, tree, longer):
                branches = [tree.branches[place] for place in places]
                rests = self._continue_branches({name: cache}, branches)
                for place, rest in zip(places, rests, strict=True):
                    found[place] = np.concatenate([found[place], rest])
        return found

    def _continue_branches(self, cache: dict[str, Any], branches: Sequence[Tokens]) -> list[Losses]:
        """Return the losses of each branch's tokens except the first; padding is on the right."""
        forward = self._forward
        ids = np.zeros((len(branches), max(map(len, branches)) - 1), dtype=np.int64)
        for row, branch in zip(ids, branches, strict=True):
            row[: len(branch) - 1] = branch[:-1]
        hidden = self._read_on(forward.send(ids), cache | {"use_cache": True})
        states = torch.cat(
            [row[: len(branch) - 1] for row, branch in zip(hidden, branches, strict=True)]
        )
        nats = self._nats(states, np.concatenate([branch[1:] for branch in branches]))
        return np.split(nats, np.cumsum([len(branch) - 1 for branch in branches])[:-1])

    def _read_on(self, ids: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
        """Return hidden states of tokens that follow a cache, (rows, width, hidden size)."""
        steps = torch.split(ids, 1, dim=1) if self.is_stepwise else [ids]
        return torch.cat([self._forward.run(step, **options)[0] for step in steps], dim=1)

    def _nats(self, states: torch.Tensor, targets: Tokens) -> Losses:
        wanted = self._forward.send(targets)
        nats: Losses = self._forward.nats(states.to(wanted.device), wanted).double().cpu().numpy()
        return nats


def _copies(cache: Any, tree: Tree, places: Sequence[int]) -> Iterator[tuple[Sequence[int], Any]]:
    """Yield groups of branches; each group has the prefix's cache, copied to a row per branch."""
    longest = len(tree.prefix) + max(len(tree.branches[place]) for place in places)
    rows = max(1, _KEYS // longest)
    for first in range(0, len(places), rows):
        some = places[first : first + rows]
        is_last = first + rows >= len(places)
        yield some, _repeated(cache if is_last else copy.deepcopy(cache), len(some))


def _repeated(cache: Any, rows: int) -> Any:
    if isinstance(cache, list):  # tensors whose first dimension is the row
        return [part.repeat_interleave(rows, 0) for part in cache]
    cache.reorder_cache(torch.zeros(rows, dtype=torch.int64))
    return cache
