"""The last layer at chosen positions: what no later layer reads is not computed.

Attention of the last layer needs keys and values of all positions. Its queries, its output
projection and its feed-forward part are needed at the scored positions only. With windows that
overlap by three quarters, this is 4 % of the multiplications of gpt2-small.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

# Names of the parts of a layer, in transformers, that compute each position by itself.
_PARTS = ("mlp", "q_proj", "o_proj", "c_proj", "out_proj", "dense")
_ATTENTION = ("attn", "self_attn", "attention", "self_attention")
_FEW = 0.75  # maximum share of positions for which copying them is worth it


class LastLayer:
    """The parts of a model's last layer that can run at chosen positions; safe to share by threads.

    The forward of each part is replaced. Outside ``at``, it computes all positions. Whether a part
    computes each position by itself is not known from its name: the caller compares (``Forward``).
    """

    def __init__(self, body: nn.Module) -> None:
        self._now = threading.local()
        self._parts = pointwise_parts(body)
        for part in self._parts:
            part.forward = partial(self._run, part.forward)

    def remove(self) -> None:
        """Give the parts their own forward again."""
        for part in self._parts:
            del part.forward
        self._parts = []

    @contextmanager
    def at(self, places: torch.Tensor, num_positions: int) -> Iterator[None]:
        """Return a context in which the parts compute ``places`` only, and 0 elsewhere.

        Args:
            places: int64 indices into the positions of all rows, (chosen,).
            num_positions: rows times width of the batch. Inputs of other shapes are computed whole.
        """
        is_worth_it = bool(self._parts) and len(places) <= _FEW * num_positions
        self._now.chosen = (places, num_positions) if is_worth_it else None
        try:
            yield
        finally:
            self._now.chosen = None

    def _run(self, forward: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a part at the chosen positions, if its input has the states of all positions."""
        chosen = getattr(self._now, "chosen", None)
        if chosen is None or len(arguments) != 1 or options:
            return forward(*arguments, **options)
        places, num_positions = chosen
        states = arguments[0]
        shape = states.shape[:-1]
        if states.dim() != 3 or shape.numel() != num_positions:
            return forward(states)
        chosen_outputs = forward(states.flatten(0, 1)[places][None]).squeeze(0)
        outputs = chosen_outputs.new_zeros(num_positions, chosen_outputs.shape[-1])
        outputs[places] = chosen_outputs
        return outputs.unflatten(0, shape)


def pointwise_parts(body: nn.Module) -> list[nn.Module]:
    """Return the parts of the last layer that are known by name; none for an unknown structure."""
    stacks = [each for each in body.children() if isinstance(each, nn.ModuleList)]
    if len(stacks) != 1 or not len(stacks[0]):
        return []
    layer = stacks[0][-1]
    attention = [getattr(layer, name) for name in _ATTENTION if hasattr(layer, name)]
    found = [getattr(owner, name, None) for owner in (layer, *attention) for name in _PARTS]
    # A part that has a forward of its own is run by a hook, for instance one that moves weights.
    return [
        part for part in found if isinstance(part, nn.Module) and "forward" not in part.__dict__
    ]
