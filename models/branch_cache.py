"""Trees of tokens with models that take no mask: the prefix is read into the model's own cache.

Then the branches go on from there, as rows of a batch. Keys and values, windows of attention and
running states are all the model's own affair, so that this works wherever text can be generated.
Prompts are read one at a time: a cache of several would have to be padded.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from models.backend import Losses, Tokens
from models.branches import Tree, is_exact
from models.forward import Forward, or_device_full

_KEYS = 4096  # in the caches of all rows of a batch: each has a copy of its prefix's
_CACHES = ("past_key_values", "cache_params", "state")  # what models call it


class SharedCache:
    """A ``models.branches.Way``.

    Args:
        forward: the model.
    """

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self.is_stepwise = False
        self.is_exact = is_exact(forward, self._losses)
        if not self.is_exact:  # some go on from a state by one token only
            self.is_stepwise = True
            self.is_exact = is_exact(forward, self._losses)

    def takes(self, tree: Tree) -> bool:
        """As ``Way.takes``."""
        return self.is_exact

    def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """As ``Way.losses``."""
        return or_device_full(lambda: self._losses(trees))

    @torch.inference_mode()
    def _losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        return [self._tree(tree) for tree in trees]

    def _tree(self, tree: Tree) -> list[Losses]:
        forward = self._forward
        read = forward.run(forward.send(tree.prefix[None]), use_cache=True)
        last = read[0][:, -1]
        firsts = self._nats(last, np.array([[branch[0] for branch in tree.branches]]))[0]
        found = [firsts[number : number + 1] for number in range(len(tree.branches))]
        longer = [number for number, branch in enumerate(tree.branches) if len(branch) > 1]
        if longer:
            name = next(each for each in _CACHES if getattr(read, each, None) is not None)
            caches = _copies(getattr(read, name), tree, longer)
            for places, cache in caches:
                branches = [tree.branches[place] for place in places]
                rests = self._go_on({name: cache}, branches)
                for place, rest in zip(places, rests, strict=True):
                    found[place] = np.concatenate([found[place], rest])
        return found

    def _go_on(self, cache: dict[str, Any], branches: Sequence[Tokens]) -> list[Losses]:
        """Losses of the branches' tokens but the first; what pads a row comes after them."""
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
        """Hidden states of tokens that go on from a cache, (rows, width, hidden size)."""
        steps = torch.split(ids, 1, dim=1) if self.is_stepwise else [ids]
        return torch.cat([self._forward.run(step, **options)[0] for step in steps], dim=1)

    def _nats(self, states: torch.Tensor, targets: Tokens) -> Losses:
        wanted = self._forward.send(targets)
        nats: Losses = self._forward.nats(states.to(wanted.device), wanted).double().cpu().numpy()
        return nats


def _copies(cache: Any, tree: Tree, places: Sequence[int]) -> Iterator[tuple[Sequence[int], Any]]:
    """Some branches at a time, and the prefix's cache with a row for each of them."""
    longest = len(tree.prefix) + max(len(tree.branches[place]) for place in places)
    rows = max(1, _KEYS // longest)
    for first in range(0, len(places), rows):
        some = places[first : first + rows]
        is_last = first + rows >= len(places)
        yield some, _repeated(cache if is_last else copy.deepcopy(cache), len(some))


def _repeated(cache: Any, rows: int) -> Any:
    """The cache of one row as that of several."""
    if isinstance(cache, list):  # tensors, rows first
        return [part.repeat_interleave(rows, 0) for part in cache]
    cache.reorder_cache(torch.zeros(rows, dtype=torch.int64))
    return cache
