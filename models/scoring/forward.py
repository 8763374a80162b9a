"""Losses at chosen positions: run a model's body on a batch, and its head on scored positions only.

The head is the output layer, which computes logits (hidden size x vocabulary); the body is the rest
of the model. Head and loss take a quarter of a pass's time. With 50,000 to 250,000 token ids, the
logits are by far the largest arrays. So the body runs on the whole batch, and the head only on the
scored positions, a tile at a time (``cross_entropy``).
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.activations import NewGELUActivation

from core.errors import ModelLoadError, NotMeasurable
from models.scoring.cross_entropy import cross_entropy, linear_cross_entropy, places_in, row_slice
from models.scoring.lengths import find_switch, sides
from models.scoring.moments import log_moments
from models.scoring.scorer import DeviceFull, Losses, Scored, Tokens
from models.weights.files import MODEL_FAILURES
from models.weights.last_layer import LastLayer
from models.weights.loading import embedding_rows, is_memory_full
from models.weights.products import quick_products

_UNSPLIT_BYTES = 2**30  # maximum size of a batch's logits if the head cannot run separately
_MOMENT_ARRAYS = 4  # factor of the memory of ``log_moments``: several arrays of float64
_LARGE = 1e3  # factor to detect caps on logits, which are nearly linear for small logits
T = TypeVar("T")


class Forward:
    """Runs a causal model; safe to share between threads.

    In ``model``, activations are replaced by fused kernels with equal results. On a CPU, parts of
    the last layer run at the scored positions only.

    Attributes:
        linear: weight and bias of the head, or None if it is more than one matrix product.
        switch: length after which the model reads rows otherwise, or None without one.
        replayed: function in the place of ``run_body``, or None.

    Raises:
        ModelLoadError: the model cannot run.
        NotMeasurable: the output at a position depends on later tokens.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.replayed: Callable[[torch.Tensor], torch.Tensor] | None = None
        self.vocabulary = embedding_rows(model)
        self._head: nn.Module | None = _head_alone(model)
        self.linear: tuple[torch.Tensor, torch.Tensor | None] | None = None  # weight, bias
        self.switch = find_switch(model.config)
        self._lock = threading.RLock()
        head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        if type(head) is nn.Linear:
            self.linear = head.weight, head.bias
        _fuse_activations(model)
        self._last_layer: LastLayer | None = None
        self._probe()
        if model.device.type == "cpu" and self._head is not None:
            self._last_layer = self._checked_last_layer()

    @property
    def max_batch_tokens(self) -> int | None:
        """Maximum number of input tokens of a batch, padding included, or None for no maximum."""
        return None if self._head else max(1, _UNSPLIT_BYTES // (4 * self.vocabulary))

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        """Return losses as ``Engine.losses``, in float32 (in float64 for a float64 model)."""
        # Rows are padded on the right without a mask. ``_probe`` checked that the model ignores
        # later tokens, and attention without a mask has faster kernels.

        def run(rows: Sequence[int]) -> list[Losses]:
            return self._losses([inputs[i] for i in rows], [targets[i] for i in rows], alphabet)

        return or_device_full(lambda: self.by_sides([len(row) for row in inputs], run))

    def with_moments(self, inputs: Sequence[Tokens], targets: Sequence[Tokens]) -> list[Scored]:
        """Return losses as ``losses``, and moments in float64; see ``MomentEngine``."""

        def run(rows: Sequence[int]) -> list[Scored]:
            return self._with_moments([inputs[i] for i in rows], [targets[i] for i in rows])

        return or_device_full(lambda: self.by_sides([len(row) for row in inputs], run))

    def by_sides(self, lengths: Sequence[int], run: Callable[[Sequence[int]], list[T]]) -> list[T]:
        """Run the rows that a model reads alike together; ``run`` takes indices of rows."""
        # A dynamic model keeps the frequencies of its longest row until it reads a short one.
        if self.switch is None:
            return run(range(len(lengths)))
        found: dict[int, T] = {}
        with self._lock:  # the frequencies belong to the model, not to a pass
            for rows in sides(lengths, self.switch):
                if self.switch.is_dynamic:
                    self._forget_length()
                found.update(zip(rows, run(rows), strict=True))
        return [found[row] for row in range(len(lengths))]

    @torch.inference_mode()
    def _forget_length(self) -> None:
        """Run one token, which resets the frequencies of a dynamic model."""
        self.run(torch.zeros((1, 1), dtype=torch.int64, device=self.model.device), use_cache=False)

    @torch.inference_mode()
    def _losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None
    ) -> list[Losses]:
        """Return the losses of rows that the model reads alike."""
        among = None if alphabet is None else self.send(alphabet)
        states, wanted, ends = self._scored_states(inputs, targets)
        return np.split(self.nats(states, wanted, among).double().cpu().numpy(), ends)

    @torch.inference_mode()
    def _with_moments(self, inputs: Sequence[Tokens], targets: Sequence[Tokens]) -> list[Scored]:
        """Return losses and moments of rows that the model reads alike."""
        states, wanted, ends = self._scored_states(inputs, targets)
        nats = self.nats(states, wanted).double().cpu().numpy()
        rows = row_slice(states.device, _MOMENT_ARRAYS * self.vocabulary)
        parts = [log_moments(self._logits(part)) for part in torch.split(states, rows)]
        moments = torch.cat(parts).cpu().numpy()
        return list(map(Scored, np.split(nats, ends), np.split(moments, ends)))

    def _scored_states(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens]
    ) -> tuple[torch.Tensor, torch.Tensor, Tokens]:
        """Run the body; return states before all targets, their ids, and where rows are split."""
        width = max(map(len, inputs))
        ids = np.empty((len(inputs), width), dtype=np.int64)
        for row, tokens in enumerate(inputs):
            ids[row, : len(tokens)] = tokens
            # Pad with a real token: attention multiplies masked values by 0, and 0 * NaN is NaN.
            ids[row, len(tokens) :] = tokens[-1]
        lengths = [len(wanted) for wanted in targets]
        ends = [row * width + len(tokens) for row, tokens in enumerate(inputs)]
        scored = np.concatenate(
            [np.arange(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        )
        places = self.send(scored)
        wanted_ids = self.send(np.concatenate(targets))
        with self._at(places, ids.size):
            hidden = self.hidden(self.send(ids)).flatten(0, 1)  # (rows * width, hidden size)
        states = hidden if len(scored) == len(hidden) else hidden[places]
        return states, wanted_ids, np.cumsum(lengths)[:-1]

    def _at(self, places: torch.Tensor, num_positions: int) -> AbstractContextManager[None]:
        """Return a context in which only states at ``places`` are those of the model."""
        if self._last_layer is None:
            return nullcontext()
        return self._last_layer.at(places, num_positions)

    def send(self, array: Tokens) -> torch.Tensor:
        """Copy an array to the device; do not wait for the end of a copy to a GPU."""
        tensor = torch.from_numpy(array)
        if self.model.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.model.device, non_blocking=True)

    def hidden(self, ids: torch.Tensor, **options: torch.Tensor) -> torch.Tensor:
        """Run the body on token ids, (rows, width), with ``options`` as further arguments.

        Return the last hidden states, (rows, width, hidden size), or logits if the head cannot run
        separately. The caller decides whether gradients are computed.
        """
        if self.replayed is not None and not options:
            return self.replayed(ids)
        return self.run_body(ids, **options)

    def run_body(self, ids: torch.Tensor, **options: torch.Tensor) -> torch.Tensor:
        """Return what ``hidden`` returns, always by the plain kernels."""
        hidden: torch.Tensor = self.run(ids, use_cache=False, **options)[0]
        return hidden.to(ids.device)  # a model on several devices has its output on the last device

    @property
    def body(self) -> torch.nn.Module:
        """The model's body, or the whole model if the head cannot run separately."""
        return self.model.base_model if self._head else self.model

    def run(self, ids: torch.Tensor, **options: object) -> Any:
        """Run the body."""
        with quick_products(self.model):
            return self.body(input_ids=ids, **options)

    def nats(
        self, chosen: torch.Tensor, targets: torch.Tensor, alphabet: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return -ln p of the targets in nats, with the targets' shape, computed in pieces.

        Args:
            chosen: states from ``hidden``, (scored, hidden size).
            targets: ids, (scored,), or (scored, m) for m targets per state.
            alphabet: ids of the softmax, or None for the whole vocabulary.
        """
        if self.linear is not None:
            weight, bias = self.linear
            if alphabet is not None:
                targets = places_in(alphabet, len(weight))[targets]
                weight = weight[alphabet]
                bias = None if bias is None else bias[alphabet]
            with quick_products(self.model):
                return linear_cross_entropy(chosen, weight, bias, targets)
        rows = row_slice(chosen.device, self.vocabulary)
        return torch.cat(
            [
                cross_entropy(self._logits(states), wanted, alphabet)
                for states, wanted in zip(
                    torch.split(chosen, rows), torch.split(targets, rows), strict=True
                )
            ]
        )

    def _logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the logits of hidden states; states are logits if the head cannot run alone."""
        if self._head is None:
            return states
        with quick_products(self.model):
            logits: torch.Tensor = self._head(inputs_embeds=states[None], use_cache=False)[0]
        return logits[0].to(states.device)

    @torch.inference_mode()
    def _probe(self) -> None:
        """Test with a few tokens if the head can run separately and if the model is causal."""
        ids = torch.arange(16, device=self.model.device).reshape(2, 8) % self.vocabulary
        ids[1, :7] = ids[0, :7]  # the two rows differ in the last token only
        try:
            expected = self.model(input_ids=ids, use_cache=False)[0]
        except MODEL_FAILURES as error:
            raise ModelLoadError(f"the model does not run ({error!r})") from error
        tolerance = 1e-3 if expected.dtype.itemsize >= 4 else 5e-2  # float32, 16 bits
        if self._head is not None and not self._splits(ids, expected, tolerance):
            self._head = None
        if self._head is None or not self._is_linear(ids):
            self.linear = None
        if not is_close(expected[0, :7], expected[1, :7], tolerance):
            raise NotMeasurable(
                "what the model predicts depends on later tokens, so it gives a text no "
                "likelihood; only causal language models can be scored"
            )

    @torch.inference_mode()
    def _checked_last_layer(self) -> LastLayer | None:
        """Return the last layer at chosen positions, or None if the states there are others."""
        last_layer = LastLayer(self.body)
        ids = torch.arange(16, device=self.model.device).reshape(2, 8) % self.vocabulary
        places = torch.tensor([3, 7, 9, 12, 14], device=self.model.device)
        expected = self.hidden(ids).flatten(0, 1)[places]
        tolerance = 1e-5 if expected.dtype.itemsize >= 4 else 1e-2
        try:
            with last_layer.at(places, ids.numel()):
                found = self.hidden(ids).flatten(0, 1)[places]
        except MODEL_FAILURES:
            last_layer.remove()
            return None
        if not is_close(found, expected, tolerance):
            last_layer.remove()
            return None
        return last_layer

    def _splits(self, ids: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
        """Return True if the head, run on the body's output, gives the whole model's logits."""
        try:
            found = self._logits(self.hidden(ids)[0])
        except MODEL_FAILURES:
            return False  # the model's forward uses more than its body's output
        return found.shape == expected[0].shape and is_close(found, expected[0], tolerance)

    def _is_linear(self, ids: torch.Tensor) -> bool:
        """Return True if the head is one matrix product without caps or scales."""
        if self.linear is None:
            return False
        states = self.hidden(ids)[0]
        tolerance = 1e-5 if states.dtype.itemsize >= 4 else 1e-2
        try:
            return all(
                is_close(nn.functional.linear(each, *self.linear), self._logits(each), tolerance)
                for each in (states, states * _LARGE)
            )
        except MODEL_FAILURES:
            return False  # the weights are packed, offloaded or split


def or_device_full(run: Callable[[], T]) -> T:
    """Return the result of ``run``; raise DeviceFull if torch is out of memory."""
    try:
        return run()
    except RuntimeError as error:
        if not is_memory_full(error):
            raise
        full = DeviceFull(str(error))
    # Inside the except block, the traceback would keep the failed pass's arrays in memory.
    torch.cuda.empty_cache()
    raise full


def _fuse_activations(model: nn.Module) -> None:
    """Replace GPT-2's GELU by one kernel with equal results, which saves 6 % of time on a CPU."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is NewGELUActivation:
                setattr(module, name, nn.GELU(approximate="tanh"))


def is_close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    """Return True if tensors differ by at most a share of their largest finite element."""
    scale = float(b.abs().nan_to_num(0.0, 0.0, 0.0).max())
    return torch.allclose(a, b, rtol=0, atol=tolerance * scale, equal_nan=True)


class _Given:
    """The output of ``_NoBody``, which has only hidden states."""

    def __init__(self, hidden: torch.Tensor) -> None:
        self.last_hidden_state = hidden

    def __getitem__(self, index: int) -> torch.Tensor | None:
        return self.last_hidden_state if index == 0 else None

    def __getattr__(self, name: str) -> None:
        return None


class _NoBody(nn.Module):
    """Replaces the body and returns the given hidden states."""

    def forward(self, *args: object, inputs_embeds: torch.Tensor, **options: object) -> _Given:
        return _Given(inputs_embeds)


def _head_alone(model: PreTrainedModel) -> PreTrainedModel | None:
    """Return a copy of the model without its body, which converts hidden states to logits."""
    # The module ``lm_head`` alone would omit soft caps and scales of some models. The copy shares
    # its weights with ``model``, which stays unchanged.
    name = model.base_model_prefix
    if name not in model._modules:
        return None
    head = copy.copy(model)
    head.__dict__["_modules"] = {**model._modules, name: _NoBody()}
    # In a model on several devices, this attribute is a hook that would run the body.
    head.__dict__.pop("forward", None)
    return head
