"""Losses at chosen positions: the model's body on a batch, its head where it pays.

The head (hidden size x vocabulary) and the loss are worth a quarter of a pass, and their logits are
by far the largest arrays. So the body runs on the whole batch, and the head only on the scored
positions, piece by piece, with the log-sum-exp in float32 whatever the weights are in.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.activations import NewGELUActivation

from core.errors import ModelLoadError, NotMeasurable
from models.backend import DeviceFull, Losses, Tokens
from models.checkpoint import embedding_rows
from models.cross_entropy import cross_entropy, linear_cross_entropy, places_in, row_slice
from models.placement import is_memory_full

_FAILURES = (AttributeError, TypeError, ValueError, LookupError, RuntimeError)
_UNSPLIT_BYTES = 2**30  # of all logits of a batch, for models whose head cannot be run by itself
_LARGE = 1e3  # factor that brings out caps on logits, which are near linear while these are small


T = TypeVar("T")


class Forward:
    """Runs a causal model; safe to share between threads.

    Args:
        model: in evaluation mode, on its device; activations that have a fused equal are replaced.

    Raises:
        ModelLoadError: the model cannot run.
        NotMeasurable: what the model says at a position depends on later tokens.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self.vocabulary = embedding_rows(model)
        self._head: nn.Module | None = _head_alone(model)
        self._linear: _Linear | None = _linear_head(model)
        _fuse_activations(model)
        self._probe()

    @property
    def max_batch_tokens(self) -> int | None:
        """Inputs that a batch may have lest its logits fill the memory; None: any number."""
        return None if self._head else max(1, _UNSPLIT_BYTES // (4 * self.vocabulary))

    def losses(
        self,
        inputs: Sequence[Tokens],
        targets: Sequence[Tokens],
        alphabet: Tokens | None = None,
    ) -> list[Losses]:
        """As ``Backend.losses``, computed in float32 (float64 for such a model).

        Rows are padded on the right without a mask: a causal model does not see what follows (it
        was probed for that), and unmasked attention has the faster kernels.
        """
        return or_device_full(lambda: self._losses(inputs, targets, alphabet))

    @property
    def model(self) -> PreTrainedModel:
        """The model that is run."""
        return self._model

    @torch.inference_mode()
    def _losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None
    ) -> list[Losses]:
        width = max(map(len, inputs))
        ids = np.empty((len(inputs), width), dtype=np.int64)
        for row, tokens in enumerate(inputs):
            ids[row, : len(tokens)] = tokens
            # Not another token: what attention leaves out it multiplies by 0, and 0 * NaN is NaN.
            ids[row, len(tokens) :] = tokens[-1]
        lengths = [len(wanted) for wanted in targets]
        ends = [row * width + len(tokens) for row, tokens in enumerate(inputs)]
        scored = np.concatenate(
            [np.arange(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        )
        places = self.send(scored)
        wanted_ids = self.send(np.concatenate(targets))
        among = None if alphabet is None else self.send(alphabet)
        hidden = self.hidden(self.send(ids)).flatten(0, 1)  # (rows * width, hidden size)
        chosen = hidden if len(scored) == len(hidden) else hidden[places]
        del hidden
        nats = self.nats(chosen, wanted_ids, among).double().cpu().numpy()
        return np.split(nats, np.cumsum(lengths)[:-1])

    def send(self, array: Tokens) -> torch.Tensor:
        """Copy to the device; a GPU gets it while the processor prepares what comes next."""
        tensor = torch.from_numpy(array)
        if self._model.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self._model.device, non_blocking=True)

    def hidden(self, ids: torch.Tensor, **options: torch.Tensor) -> torch.Tensor:
        """Run the body, without gradients if the caller wants none.

        Args:
            ids: (rows, width).
            options: more of the model's own arguments.

        Returns:
            The last hidden states, (rows, width, hidden size); logits where there is no head.
        """
        hidden: torch.Tensor = self.run(ids, use_cache=False, **options)[0]
        return hidden.to(ids.device)  # a model that is spread over devices ends on the last

    def run(self, ids: torch.Tensor, **options: object) -> Any:
        """Run the body, or the model where there is no head; ``options`` are its arguments."""
        body = self._model.base_model if self._head else self._model
        return body(input_ids=ids, **options)

    def nats(
        self, chosen: torch.Tensor, targets: torch.Tensor, alphabet: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Cross entropy of states, piece by piece.

        Args:
            chosen: of ``hidden``, (scored, hidden size).
            targets: ids, (scored,), or several of each state, (scored, m).
            alphabet: as of ``losses``.

        Returns:
            Nats, of the targets' shape.
        """
        if self._linear is not None:
            weight, bias = self._linear
            if alphabet is not None:
                targets = places_in(alphabet, len(weight))[targets]
                weight, bias = weight[alphabet], None if bias is None else bias[alphabet]
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
        if self._head is None:
            return states
        logits: torch.Tensor = self._head(inputs_embeds=states[None], use_cache=False)[0]
        return logits[0].to(states.device)

    @torch.inference_mode()
    def _probe(self) -> None:
        """Check on a few tokens that the split changes nothing and that the model is causal."""
        ids = torch.arange(16, device=self._model.device).reshape(2, 8) % self.vocabulary
        ids[1, :7] = ids[0, :7]
        try:
            expected = self._model(input_ids=ids, use_cache=False)[0]
        except _FAILURES as error:
            raise ModelLoadError(f"the model does not run ({error!r})") from error
        tolerance = 1e-3 if expected.dtype.itemsize >= 4 else 5e-2
        if self._head is not None and not self._splits(ids, expected, tolerance):
            self._head = None
        if self._head is None or not self._is_linear(ids):
            self._linear = None
        if not _close(expected[0, :7], expected[1, :7], tolerance):
            raise NotMeasurable(
                "what the model predicts depends on later tokens, so it gives a text no "
                "likelihood; only causal language models can be scored"
            )

    def _splits(self, ids: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
        try:
            found = self._logits(self.hidden(ids)[0])
        except _FAILURES:
            return False  # the model's forward asks more of its body than its output
        return found.shape == expected[0].shape and _close(found, expected[0], tolerance)

    def _is_linear(self, ids: torch.Tensor) -> bool:
        """Whether the head is one matrix product: no cap, no scale, nothing around its weights."""
        if self._linear is None:
            return False
        states = self.hidden(ids)[0]
        tolerance = 1e-5 if states.dtype.itemsize >= 4 else 1e-2
        try:
            return all(
                _close(nn.functional.linear(each, *self._linear), self._logits(each), tolerance)
                for each in (states, states * _LARGE)
            )
        except _FAILURES:
            return False  # weights that are packed, elsewhere, or in parts


def or_device_full(run: Callable[[], T]) -> T:
    """Return what ``run`` does, or raise DeviceFull where torch finds no memory for it."""
    try:
        return run()
    except RuntimeError as error:
        if not is_memory_full(error):
            raise
        full = DeviceFull(str(error))
    # Only here are the failed pass's arrays released.
    torch.cuda.empty_cache()
    raise full


class _Linear(NamedTuple):
    weight: torch.Tensor  # (vocabulary, hidden size)
    bias: torch.Tensor | None  # (vocabulary,)


def _linear_head(model: PreTrainedModel) -> _Linear | None:
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if type(head) is not nn.Linear:
        return None
    return _Linear(head.weight, head.bias)


def _fuse_activations(model: nn.Module) -> None:
    """Put one kernel in place of GPT-2's way of writing the same GELU: 6 % of a pass on a CPU."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is NewGELUActivation:
                setattr(module, name, nn.GELU(approximate="tanh"))


def _close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    scale = float(b.abs().nan_to_num(0.0, 0.0, 0.0).max())
    return torch.allclose(a, b, rtol=0, atol=tolerance * scale, equal_nan=True)


class _Given:
    """What a body returns, when all it has is hidden states."""

    def __init__(self, hidden: torch.Tensor) -> None:
        self.last_hidden_state = hidden

    def __getitem__(self, index: int) -> torch.Tensor | None:
        return self.last_hidden_state if index == 0 else None

    def __getattr__(self, name: str) -> None:
        return None


class _NoBody(nn.Module):
    """Stands where the body was, and hands on the hidden states that it is given."""

    def forward(self, *args: object, inputs_embeds: torch.Tensor, **options: object) -> _Given:
        return _Given(inputs_embeds)


def _head_alone(model: PreTrainedModel) -> PreTrainedModel | None:
    """The model without its body: its own forward turns hidden states into logits.

    A bare ``lm_head`` would leave out what some models do around it (soft caps, scales). The
    weights are shared with ``model``, which is left as it is.
    """
    name = model.base_model_prefix
    if name not in model._modules:
        return None
    head = copy.copy(model)
    head.__dict__["_modules"] = {**model._modules, name: _NoBody()}
    # Where a model is spread over devices, this is a hook's, and runs the body after all.
    head.__dict__.pop("forward", None)
    return head
