"""Continue several prompts together, token by token, with a Hugging Face model.

Prompts of different lengths form one batch, padded on the left. A mask hides the padding, and
each row counts its positions from its own first token. Keys and values stay in the model's own
cache; rows of finished texts are removed. ``GrowingLayer`` reserves space in the cache. Otherwise
transformers copies the whole cache for each token, which takes half of a small model's time.

Some models do not support such batches: they compute positions differently, have a recurrent state,
or cannot continue from a cache. So a test with a few tokens compares a batch with single rows. If
the results differ, rows are run one at a time; without a cache if a cache changes the results, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer

from models.scoring.lengths import attention_windows, find_switch
from models.scoring.row_check import is_rounding, rms
from models.scoring.scorer import Tokens
from models.weights.files import MODEL_FAILURES
from models.weights.loading import carried_state, embedding_rows
from models.weights.products import quick_products

_PROBE_PROMPTS = (9, 23, 16)  # lengths of the rows of the test, in tokens
_PROBE_STEPS = 4  # tokens after each

Floats = npt.NDArray[np.float64]


_LEAST_ROOM = 64  # tokens
_BEYOND_WINDOW = 7  # tokens by which the test's second row exceeds the attention window
_ROOM_SHARE = 4  # the space reserved for further tokens is 1 / 4 of the tokens so far


class RowModel:
    """A causal model that continues several texts, each in one row of a batch.

    Attributes:
        is_batched: True if rows of different lengths may share one batch.
        keeps_state: True if a cache gives the same results as a pass over the whole row.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        parameters = inspect.signature(model.forward).parameters
        self.takes_positions = "position_ids" in parameters
        self.keeps_last = "logits_to_keep" in parameters
        self.vocabulary = embedding_rows(model)
        self._window = min(attention_windows(model.config), default=None)
        self.switch = find_switch(model.config)
        self.keeps_state = True
        # Such a model chooses the frequencies of all rows by the longest row of the batch.
        self.is_batched = self.switch is None and self._is_exact(_PROBE_PROMPTS)
        if not self.is_batched:
            self.keeps_state = self._is_exact(_PROBE_PROMPTS[:1])

    def may_batch(self, longest: int) -> bool:
        """Return True if rows that grow to at most ``longest`` tokens may share a batch."""
        # If ``longest`` exceeds the model's attention window for the first time, run a test.
        if self.is_batched and self._window is not None and longest > self._window:
            window = self._window
            self._window = None
            self.is_batched = self._is_exact((_PROBE_PROMPTS[0], window + _BEYOND_WINDOW))
        return self.is_batched

    def start(self, prompts: Sequence[Tokens], room: int) -> Rows:
        """Run the model on non-empty prompts; ``room`` is the maximum number of further tokens."""
        return Rows(self, prompts, room)

    @torch.inference_mode()
    def _is_exact(self, lengths: Sequence[int]) -> bool:
        """Return True if rows of these lengths have the same logits in a batch as separately."""
        generator = np.random.default_rng(0)
        token_rows = [
            generator.integers(0, self.vocabulary, length + _PROBE_STEPS) for length in lengths
        ]
        expected = [
            self._alone(row, length) for row, length in zip(token_rows, lengths, strict=True)
        ]
        try:
            found = self._in_batch(token_rows, lengths)
        except MODEL_FAILURES:
            return False  # the model does not accept the arguments for a batch
        error = max(rms(a - b[: len(a)]) for a, b in zip(found, expected, strict=True))
        leak = self._leak(token_rows, lengths, expected) if len(lengths) > 1 else np.inf
        return is_rounding(error, max(map(rms, expected)), leak, self.model.dtype)

    def _alone(self, row: Tokens, length: int) -> Floats:
        """Return the logits for a row's tokens from index ``length`` on, (steps, vocabulary)."""
        output = self.model(input_ids=self.send(row[None]), use_cache=False)
        return _on_host(output[0][0, length - 1 : -1])

    def _in_batch(self, token_rows: Sequence[Tokens], lengths: Sequence[int]) -> list[Floats]:
        """Return each row's logits from a stepwise pass; a step removes the batch's first row."""
        rows = self.start(
            [row[:length] for row, length in zip(token_rows, lengths, strict=True)], _PROBE_STEPS
        )
        left = list(range(len(token_rows)))
        found: list[list[Floats]] = [[_on_host(each)] for each in rows.logits]
        for step in range(_PROBE_STEPS - 1):
            if step == 1 and len(left) > 1:
                left = left[1:]
                rows.keep(range(1, len(token_rows)))
            rows.read(self.send(np.array([token_rows[row][lengths[row] + step] for row in left])))
            for row, logits in zip(left, rows.logits, strict=True):
                found[row].append(_on_host(logits))
        return [np.stack(each) for each in found]

    def _leak(
        self, token_rows: Sequence[Tokens], lengths: Sequence[int], expected: Sequence[Floats]
    ) -> float:
        """Return the error (RMS of the logits) of a padded row whose padding is not masked."""
        short = int(np.argmin(lengths))
        longest = max(map(len, token_rows))
        row = token_rows[short]
        padded = np.concatenate([np.full(longest - len(row), row[0]), row])
        return rms(self._alone(padded, longest - _PROBE_STEPS) - expected[short])

    def send(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Copy an array to the model's device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.model.device)


class Rows:
    """The rows of one batch and their cache; see ``RowModel.start``.

    Attributes:
        logits: logits of each row's next token, (rows, vocabulary).
    """

    def __init__(self, owner: RowModel, prompts: Sequence[Tokens], room: int) -> None:
        self._owner = owner
        self._carried: dict[str, Any] = {}
        width = max(map(len, prompts))
        ids = np.empty((len(prompts), width), dtype=np.int64)
        mask = np.ones((len(prompts), width + room), dtype=np.int64)
        for row, tokens in enumerate(prompts):
            # Pad with a real token: attention multiplies masked values by 0, and 0 * NaN is NaN.
            ids[row] = tokens[0]
            ids[row, width - len(tokens) :] = tokens
            mask[row, : width - len(tokens)] = 0
        self._is_padded = bool((mask == 0).any())
        self._mask = owner.send(mask)
        self._width = width
        self._lengths = owner.send(np.array([len(tokens) for tokens in prompts]))
        self._ids = owner.send(ids)
        self._forget_length()
        self.logits = self._run(self._ids)
        for state in self._carried.values():
            give_room(state)

    @torch.inference_mode()
    def _forget_length(self) -> None:
        """Run one token: a dynamic model keeps the frequencies of its longest row until then."""
        if self._owner.switch is not None and self._owner.switch.is_dynamic:
            self._owner.model(input_ids=self._ids[:, :1], use_cache=False)

    def read(self, tokens: torch.Tensor) -> None:
        """Run the model on the next token of each row, int64 (rows,)."""
        self._width += 1
        self._lengths = self._lengths + 1
        if not self._owner.keeps_state or self._owner.switch is not None:
            self._ids = torch.cat([self._ids, tokens[:, None]], dim=1)
        if self._must_read_all():
            self._carried = {}
            self.logits = self._run(self._ids)
        else:
            self.logits = self._run(tokens[:, None])

    def _must_read_all(self) -> bool:
        """Return True if the state of the tokens so far does not suit the next token."""
        if not self._owner.keeps_state:
            return True
        switch = self._owner.switch
        if switch is None or self._width <= switch.length:
            return False
        return switch.is_dynamic or self._width == switch.length + 1

    @torch.inference_mode()
    def keep(self, places: Sequence[int]) -> None:
        """Keep only the rows at the given places, in this order."""
        chosen = torch.tensor(list(places), device=self._ids.device)
        self._ids = self._ids[chosen]
        self._mask = self._mask[chosen]
        self._lengths = self._lengths[chosen]
        self.logits = self.logits[chosen]
        for state in self._carried.values():
            if isinstance(state, list):  # tensors whose first dimension is the row
                state[:] = [part[chosen] for part in state]
            else:
                state.reorder_cache(chosen)

    @torch.inference_mode()
    def _run(self, ids: torch.Tensor) -> torch.Tensor:
        """Run the model on new tokens, (rows, tokens); return the logits after the last one."""
        owner = self._owner
        options: dict[str, Any] = {"use_cache": owner.keeps_state, **self._carried}
        if self._is_padded:
            options["attention_mask"] = self._mask[:, : self._width]
            if owner.takes_positions:
                # Padding gets position 0, which every model supports.
                begin = self._lengths - ids.shape[1]
                steps = torch.arange(ids.shape[1], device=ids.device)
                options["position_ids"] = (begin[:, None] + steps).clamp(min=0)
        if owner.keeps_last:
            options["logits_to_keep"] = 1
        with quick_products(owner.model):
            output = owner.model(input_ids=ids, **options)
        if owner.keeps_state:
            self._carried = carried_state(owner.model, output)
        logits: torch.Tensor = output.logits[:, -1]
        return logits.to(ids.device)  # a model on several devices has logits on the last device


def _on_host(logits: torch.Tensor) -> Floats:
    found: Floats = logits.double().cpu().numpy()
    return found


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A cache layer with reserved space for further tokens."""

    def __init__(self, layer: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lazy_initialization(layer.keys, layer.values)
        self.keys = layer.keys
        self.values = layer.values
        # Keys and values with reserved space, (rows, heads, tokens and reserve, size of a head).
        self._stored: list[torch.Tensor] = [layer.keys, layer.values]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append keys and values and return all of them, as ``DynamicLayer.update`` does."""
        length = self.get_seq_length()
        end = length + key_states.shape[-2]
        for place, states in enumerate((key_states, value_states)):
            if end > self._stored[place].shape[-2]:
                self._stored[place] = _enlarged(self._stored[place][:, :, :length], end)
            self._stored[place][:, :, length:end] = states
        keys, values = (each[:, :, :end] for each in self._stored)
        self.keys = keys
        self.values = values
        return keys, values

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Keep the chosen rows, as ``DynamicLayer.reorder_cache`` does."""
        chosen = beam_idx.to(self._stored[0].device)
        length = self.get_seq_length()
        keys, values = (each[:, :, :length].index_select(0, chosen) for each in self._stored)
        self.keys = keys
        self.values = values
        self._stored = [keys, values]


def _enlarged(states: torch.Tensor, length: int) -> torch.Tensor:
    """Copy keys or values into a tensor with room for ``length`` tokens and further ones."""
    rows, heads, old, size = states.shape
    room = length + max(_LEAST_ROOM, length // _ROOM_SHARE)
    larger = states.new_empty((rows, heads, room, size))
    larger[:, :, :old] = states
    return larger


def give_room(cache: object) -> None:
    """Replace each ``DynamicLayer`` of a cache by a ``GrowingLayer``."""
    if type(cache) is DynamicCache:
        cache.layers = [
            GrowingLayer(layer) if type(layer) is DynamicLayer and layer.is_initialized else layer
            for layer in cache.layers
        ]
