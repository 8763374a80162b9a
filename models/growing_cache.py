"""A model's cache of keys and values with room to grow.

transformers' own lays out the whole cache anew for each token, which is half of the time of a
small model on a processor. Here a layer has room for some more tokens, and is laid out anew only
when that is used up.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

_LEAST_ROOM = 64  # tokens
_ROOM_SHARE = 4  # of the tokens so far: one in so many


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer with room.

    Args:
        layer: that has read something; its keys and values are taken over.
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lazy_initialization(layer.keys, layer.values)
        self.keys, self.values = layer.keys, layer.values
        # With room at the end, (rows, heads, room, size).
        self._stored: list[torch.Tensor] = [layer.keys, layer.values]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As of ``DynamicLayer``: keep what was read, and return all of it."""
        length = self.get_seq_length()
        end = length + key_states.shape[-2]
        for place, states in enumerate((key_states, value_states)):
            if end > self._stored[place].shape[-2]:
                self._stored[place] = _enlarged(self._stored[place][:, :, :length], end)
            self._stored[place][:, :, length:end] = states
        keys, values = (each[:, :, :end] for each in self._stored)
        self.keys, self.values = keys, values
        return keys, values

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """As of ``DynamicLayer``: choose rows."""
        chosen = beam_idx.to(self._stored[0].device)
        length = self.get_seq_length()
        keys, values = (each[:, :, :length].index_select(0, chosen) for each in self._stored)
        self.keys, self.values = keys, values
        self._stored = [keys, values]


def _enlarged(states: torch.Tensor, length: int) -> torch.Tensor:
    rows, heads, old, size = states.shape
    room = length + max(_LEAST_ROOM, length // _ROOM_SHARE)
    larger = states.new_empty((rows, heads, room, size))
    larger[:, :, :old] = states
    return larger


def give_room(cache: object) -> None:
    """Give the layers of a cache room to grow, where they are of the kind that has none."""
    if type(cache) is DynamicCache:
        cache.layers = [
            GrowingLayer(layer) if type(layer) is DynamicLayer and layer.is_initialized else layer
            for layer in cache.layers
        ]
