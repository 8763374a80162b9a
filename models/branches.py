"""Continuations of prompts: what a model thinks of each, reading the prompt once.

A prompt and its continuations are a tree. Its tokens stand in one row: those of the prompt, then
those of each continuation. A mask keeps continuations from seeing each other, and each counts its
positions from the prompt's end, so that to every token all is as if its continuation stood there
alone. The head is run on each position once, however many continuations begin there.

Not every model takes a mask and positions as they are given: some keep a running state, derive
positions from the mask, or have a window of attention. Whether a model does is found out on a few
tokens when it is loaded. A row in which nothing can be confused needs neither, with any model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from transformers import PreTrainedConfig

from models.backend import Backend, Losses, Tokens
from models.failures import MODEL_FAILURES
from models.forward import Forward, or_device_full

# Attention of layers that see no further. A mask that is given takes the place of theirs, so rows
# must be short enough for it not to matter.
_WINDOWS = (
    "sliding_window",
    "sliding_window_size",
    "attention_window_size",
    "attention_chunk_size",
    "window_size",
    "local_window_size",
    "local_attention",
)
_PROBE_PREFIXES, _PROBE_BRANCHES = (23, 9), (6, 1, 4)
# Of the error that a row without a mask makes: what is left must be rounding, which in bfloat16 may
# be a tenth of it.
_LEFT, _LEFT_OF_HALVES = 0.05, 0.25


class Tree(NamedTuple):
    """A prompt's tokens, and those of each continuation; none is empty."""

    prefix: Tokens
    branches: tuple[Tokens, ...]

    @property
    def width(self) -> int:
        """Inputs of a row that has it all: a branch's last token is only predicted."""
        return len(self.prefix) + sum(len(branch) - 1 for branch in self.branches)

    @property
    def is_line(self) -> bool:
        """Whether at most one branch has tokens to be read."""
        return sum(len(branch) > 1 for branch in self.branches) <= 1

    def split(self) -> list[Tree]:
        """Return each branch with the prefix to itself."""
        return [Tree(self.prefix, (branch,)) for branch in self.branches]


class Way(Protocol):
    """A way to run trees."""

    def takes(self, tree: Tree) -> bool:
        """Whether it gives this tree's branches what they have one by one."""

    def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Return -ln p of each branch's tokens, given the prefix and the branch's tokens before.

        Trees do not see each other.

        Raises:
            DeviceFull: the batch is too large for the device.
        """


class OneByOne:
    """Runs each branch with the whole prefix before it, as every backend can."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def takes(self, tree: Tree) -> bool:
        """Any."""
        return True

    def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """As ``Way.losses``."""
        inputs = [
            np.concatenate([tree.prefix, branch[:-1]]) for tree in trees for branch in tree.branches
        ]
        targets = [branch for tree in trees for branch in tree.branches]
        found = iter(self._backend.losses(inputs, targets))
        return [[next(found) for _ in tree.branches] for tree in trees]


class SharedRow:
    """Runs each tree as a row with a mask, with a Hugging Face model.

    Args:
        forward: the model.
        context: most positions that it has; None: any number.
    """

    def __init__(self, forward: Forward, context: int | None) -> None:
        self._forward = forward
        limits = [*attention_windows(forward.model.config), *([context] if context else [])]
        self._widest = min(limits, default=None)
        # A running state goes through a row from end to end, whatever the mask says.
        is_stateful = getattr(forward.model, "_is_stateful", False)
        self.is_exact = not is_stateful and is_exact(forward, lambda trees: _masked(forward, trees))

    def takes(self, tree: Tree) -> bool:
        """As ``Way.takes``."""
        fits = self._widest is None or tree.width <= self._widest
        return tree.is_line or (self.is_exact and fits)

    def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """As ``Way.losses``."""
        run = _unmasked if all(tree.is_line for tree in trees) else _masked
        return or_device_full(lambda: run(self._forward, trees))


def is_exact(forward: Forward, way: Callable[[Sequence[Tree]], list[list[Losses]]]) -> bool:
    """Find out on a few tokens whether a way gives what the branches have one by one.

    In a row without a mask, branches see what they must not: the difference that it makes to this
    model is the measure of what may be left.
    """
    generator = np.random.default_rng(0)
    trees = [
        Tree(
            generator.integers(0, forward.vocabulary, length),
            tuple(generator.integers(0, forward.vocabulary, each) for each in _PROBE_BRANCHES),
        )
        for length in _PROBE_PREFIXES
    ]
    expected = _flat(OneByOne(forward).losses(trees))
    leak = _rms(_flat(_unmasked(forward, trees)) - expected)
    try:
        error = _rms(_flat(way(trees)) - expected)
    except MODEL_FAILURES:
        return False  # the model does not take these arguments
    is_whole = forward.model.dtype.itemsize >= 4
    tolerance, left = (1e-4, _LEFT) if is_whole else (5e-2, _LEFT_OF_HALVES)
    return error <= min(tolerance * _rms(expected), left * leak)


def _rms(values: Losses) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _unmasked(forward: Forward, trees: Sequence[Tree]) -> list[list[Losses]]:
    return _run(forward, trees, is_masked=False)


def _masked(forward: Forward, trees: Sequence[Tree]) -> list[list[Losses]]:
    return _run(forward, trees, is_masked=True)


@torch.inference_mode()
def _run(forward: Forward, trees: Sequence[Tree], is_masked: bool) -> list[list[Losses]]:
    rows = _lay_out(trees)
    options = _options(forward, rows) if is_masked else {}
    hidden = forward.hidden(forward.send(rows.ids), **options).flatten(0, 1)
    states = hidden[forward.send(rows.scored)]
    del hidden
    nats = forward.nats(states, forward.send(rows.targets)).double().cpu().numpy()
    return _split(nats, trees)


def _options(forward: Forward, rows: _Rows) -> dict[str, torch.Tensor]:
    """The arguments of rows that are trees: who sees whom, and where each token stands."""
    branch = forward.send(rows.branch)  # (rows, width)
    width = branch.shape[1]
    sees = (branch[:, None, :] == 0) | (branch[:, None, :] == branch[:, :, None])
    sees &= torch.ones(width, width, dtype=torch.bool, device=sees.device).tril()
    dtype = forward.model.dtype
    mask = torch.zeros(sees.shape, dtype=dtype, device=sees.device)
    mask.masked_fill_(~sees, torch.finfo(dtype).min)
    return {
        "attention_mask": mask[:, None],  # (rows, 1, width, width)
        "position_ids": forward.send(rows.positions),
    }


class _Rows(NamedTuple):
    """Trees as rows of one width, (rows, width), and what is scored in them.

    ``branch`` is 0 for a prefix. ``scored`` counts through all rows; ``targets`` (scored, m) are
    what may follow there, of which a state that one token follows has the first column only.
    """

    ids: Tokens
    positions: Tokens
    branch: Tokens
    scored: Tokens
    targets: Tokens


def _lay_out(trees: Sequence[Tree]) -> _Rows:
    shape = (len(trees), max(tree.width for tree in trees))
    ids, positions, branch = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    scored: list[Tokens] = []
    targets: list[Tokens] = []
    most = max(len(tree.branches) for tree in trees)
    for row, tree in enumerate(trees):
        length = len(tree.prefix)
        ids[row, :length], positions[row, :length] = tree.prefix, np.arange(length)
        # The rest of a row may see the prefix, and is seen by nobody.
        ids[row, length:], positions[row, length:] = tree.prefix[-1], length - 1
        branch[row, length:] = len(tree.branches) + 1
        begin = row * shape[1]
        scored.append(np.array([begin + length - 1]))
        targets.append(_padded(np.array([[each[0] for each in tree.branches]]), most))
        for number, tokens in enumerate(tree.branches, start=1):
            end = length + len(tokens) - 1
            ids[row, length:end], branch[row, length:end] = tokens[:-1], number
            positions[row, length:end] = len(tree.prefix) + np.arange(end - length)
            scored.append(begin + np.arange(length, end))
            targets.append(_padded(tokens[1:, None], most))
            length = end
    return _Rows(ids, positions, branch, np.concatenate(scored), np.concatenate(targets))


def _padded(targets: Tokens, columns: int) -> Tokens:
    return np.pad(targets, ((0, 0), (0, columns - targets.shape[1])))


def _split(nats: Losses, trees: Sequence[Tree]) -> list[list[Losses]]:
    """Give each branch its own, in the order in which ``_lay_out`` has them."""
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


def attention_windows(config: PreTrainedConfig) -> list[int]:
    """Return how many positions some layer sees, where a configuration states it."""
    text_config = config.get_text_config()
    values = [getattr(text_config, name, None) for name in _WINDOWS]
    return [value for value in values if isinstance(value, int) and value > 0]
