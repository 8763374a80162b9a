"""Several prompts continued together, token by token, with a Hugging Face model.

Prompts of different lengths stand in one batch, padded on the left; a mask hides the padding and
each row counts its positions from its own first token. What was read stays in the model's own
cache, from which rows are dropped once their text has ended.

Not every model takes this: some derive positions otherwise, keep a running state, or cannot go on
from one. Whether a model does is found out on a few tokens, against passes over single whole rows;
if it does not, rows are read one at a time, and without a cache where even that is not exact.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from models.backend import Tokens
from models.branches import attention_windows
from models.checkpoint import embedding_rows
from models.failures import MODEL_FAILURES
from models.growing_cache import give_room

# How outputs name what a model carries from one token to the next, and how inputs take it.
_STATES = ("past_key_values", "cache_params", "state")
_PROBE_PROMPTS, _PROBE_STEPS = (9, 23, 16), 4
# Of the error that padding makes to a model that does not know of it: what is left must be
# rounding, which in bfloat16 may be a tenth of it.
_LEFT, _LEFT_OF_HALVES = 0.05, 0.25
# Of these, a row's positions are scaled by the longest row of the batch.
_SCALED_BY_LONGEST = {"dynamic", "longrope"}

Floats = npt.NDArray[np.float64]


class RowModel:
    """A causal model that continues rows.

    Args:
        model: in evaluation mode, on its device.

    Attributes:
        is_batched: whether rows of different lengths may stand in one batch.
        keeps_state: whether a cache gives what a pass over the whole row does.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        parameters = inspect.signature(model.forward).parameters
        self.takes_positions = "position_ids" in parameters
        self.keeps_last = "logits_to_keep" in parameters
        self.vocabulary = embedding_rows(model)
        self._window = min(attention_windows(model.config), default=None)
        self.keeps_state = True
        self.is_batched = not _scales_by_longest(model) and self._is_exact(_PROBE_PROMPTS)
        if not self.is_batched:
            self.keeps_state = self._is_exact(_PROBE_PROMPTS[:1])

    def may_batch(self, longest: int) -> bool:
        """Whether rows may stand in one batch, of which the longest has so many tokens at last.

        A window of attention is probed once a row may be longer than it.
        """
        if self.is_batched and self._window is not None and longest > self._window:
            window, self._window = self._window, None
            self.is_batched = self._is_exact((9, window + 7))
        return self.is_batched

    def start(self, prompts: Sequence[Tokens], room: int) -> Rows:
        """Begin to continue prompts, none of which is empty.

        Args:
            prompts: ids of each; one, unless ``may_batch``.
            room: most tokens that will be read after them.
        """
        return Rows(self, prompts, room)

    @torch.inference_mode()
    def _is_exact(self, lengths: Sequence[int]) -> bool:
        """Whether rows of these lengths have the logits that each has by itself."""
        generator = np.random.default_rng(0)
        whole = [
            generator.integers(0, self.vocabulary, length + _PROBE_STEPS) for length in lengths
        ]
        expected = [self._alone(row, length) for row, length in zip(whole, lengths, strict=True)]
        try:
            found = self._together(whole, lengths)
        except MODEL_FAILURES:
            return False  # the model does not take these arguments
        error = max(_rms(a - b[: len(a)]) for a, b in zip(found, expected, strict=True))
        size = max(map(_rms, expected))
        is_whole = self.model.dtype.itemsize >= 4
        tolerance, left = (1e-4, _LEFT) if is_whole else (5e-2, _LEFT_OF_HALVES)
        limits = [tolerance * size]
        if len(lengths) > 1:
            limits.append(left * self._leak(whole, lengths, expected))
        return bool(np.isfinite(error)) and error <= min(limits)

    def _alone(self, row: Tokens, length: int) -> Floats:
        """Logits of a row's last steps in one pass, (steps, vocabulary)."""
        output = self.model(input_ids=self.send(row[None]), use_cache=False)
        return _on_host(output[0][0, length - 1 : -1])

    def _together(self, whole: Sequence[Tokens], lengths: Sequence[int]) -> list[Floats]:
        """The same, step by step in one batch; halfway the first row is dropped."""
        rows = self.start(
            [row[:length] for row, length in zip(whole, lengths, strict=True)], _PROBE_STEPS
        )
        left = list(range(len(whole)))
        found: list[list[Floats]] = [[_on_host(each)] for each in rows.logits]
        for step in range(_PROBE_STEPS - 1):
            if step == 1 and len(left) > 1:
                left = left[1:]
                rows.keep(range(1, len(whole)))
            rows.read(self.send(np.array([whole[row][lengths[row] + step] for row in left])))
            for row, logits in zip(left, rows.logits, strict=True):
                found[row].append(_on_host(logits))
        return [np.stack(each) for each in found]

    def _leak(
        self, whole: Sequence[Tokens], lengths: Sequence[int], expected: Sequence[Floats]
    ) -> float:
        """The error of a padded row whose padding is read as if it were text."""
        short, longest = int(np.argmin(lengths)), max(map(len, whole))
        row = whole[short]
        padded = np.concatenate([np.full(longest - len(row), row[0]), row])
        return _rms(self._alone(padded, longest - _PROBE_STEPS) - expected[short])

    def send(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Copy to the model's device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.model.device)


class Rows:
    """Rows in one batch; see ``RowModel.start``.

    Attributes:
        logits: after each row's last token, (rows, vocabulary).
    """

    def __init__(self, owner: RowModel, prompts: Sequence[Tokens], room: int) -> None:
        self._owner = owner
        self._carried: dict[str, Any] = {}
        width = max(map(len, prompts))
        ids = np.empty((len(prompts), width), dtype=np.int64)
        mask = np.ones((len(prompts), width + room), dtype=np.int64)
        for row, tokens in enumerate(prompts):
            # Not another token: what attention leaves out it multiplies by 0, and 0 * NaN is NaN.
            ids[row] = tokens[0]
            ids[row, width - len(tokens) :] = tokens
            mask[row, : width - len(tokens)] = 0
        self._is_padded = bool((mask == 0).any())
        self._mask, self._width = owner.send(mask), width
        self._lengths = owner.send(np.array([len(tokens) for tokens in prompts]))
        self._ids = owner.send(ids)
        self.logits = self._run(self._ids)
        for state in self._carried.values():
            give_room(state)

    def read(self, tokens: torch.Tensor) -> None:
        """Read one more token of each row, int64 (rows,)."""
        self._width += 1
        self._lengths = self._lengths + 1
        if self._owner.keeps_state:
            self.logits = self._run(tokens[:, None])
        else:
            self._ids = torch.cat([self._ids, tokens[:, None]], dim=1)
            self.logits = self._run(self._ids)

    @torch.inference_mode()
    def keep(self, places: Sequence[int]) -> None:
        """Go on with some of the rows, in this order."""
        chosen = torch.tensor(list(places), device=self._ids.device)
        self._ids, self._mask = self._ids[chosen], self._mask[chosen]
        self._lengths = self._lengths[chosen]
        self.logits = self.logits[chosen]
        for state in self._carried.values():
            if isinstance(state, list):  # tensors, rows first
                state[:] = [part[chosen] for part in state]
            else:
                state.reorder_cache(chosen)

    @torch.inference_mode()
    def _run(self, ids: torch.Tensor) -> torch.Tensor:
        owner = self._owner
        options: dict[str, Any] = {"use_cache": owner.keeps_state, **self._carried}
        if self._is_padded:
            options["attention_mask"] = self._mask[:, : self._width]
            if owner.takes_positions:
                # Of padding they are none, and 0 is one that every model has.
                begin = self._lengths - ids.shape[1]
                steps = torch.arange(ids.shape[1], device=ids.device)
                options["position_ids"] = (begin[:, None] + steps).clamp(min=0)
        if owner.keeps_last:
            options["logits_to_keep"] = 1
        output = owner.model(input_ids=ids, **options)
        if owner.keeps_state:
            self._carried = _carried(output)
        logits: torch.Tensor = output.logits[:, -1]
        return logits.to(ids.device)  # a model that is spread over devices ends on the last


def _carried(output: Any) -> dict[str, Any]:
    for name in _STATES:
        if getattr(output, name, None) is not None:
            return {name: getattr(output, name)}
    raise LookupError("the model returns no state")


def _scales_by_longest(model: PreTrainedModel) -> bool:
    rope = getattr(model.config.get_text_config(), "rope_parameters", None) or {}
    kinds = [rope, *(each for each in rope.values() if isinstance(each, dict))]
    return any(each.get("rope_type") in _SCALED_BY_LONGEST for each in kinds)


def _on_host(logits: torch.Tensor) -> Floats:
    found: Floats = logits.double().cpu().numpy()
    return found


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))
