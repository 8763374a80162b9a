"""Losses at chosen positions: the model's body on a batch, its head where it pays.

The head (hidden size x vocabulary) and the loss are worth a quarter of a pass, and their logits are
by far the largest arrays. So the body runs on the whole batch, and the head only on the scored
positions, slice by slice, with the log-sum-exp in float32 whatever the weights are in.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from core.errors import ModelLoadError, NotMeasurable
from models.checkpoint import embedding_rows

Tokens = npt.NDArray[np.int64]
Losses = npt.NDArray[np.float64]

# Bytes of float32 logits at one time; enough rows for the matrix product to run at full speed.
_SLICE_BYTES = {"cpu": 2**26, "cuda": 2**29}
_FAILURES = (AttributeError, TypeError, ValueError, LookupError, RuntimeError)

_UNSPLIT_BYTES = 2**30  # of all logits of a batch, for models whose head cannot be run by itself


class Forward:
    """Runs a causal model; safe to share between threads.

    Args:
        model: in evaluation mode, on its device.

    Raises:
        ModelLoadError: the model cannot run.
        NotMeasurable: what the model says at a position depends on later tokens.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._vocabulary = embedding_rows(model)
        self._head: nn.Module | None = _head_alone(model)
        self._probe()

    @property
    def max_batch_tokens(self) -> int | None:
        """Inputs that a batch may have lest its logits fill the memory; None: any number."""
        return None if self._head else max(1, _UNSPLIT_BYTES // (4 * self._vocabulary))

    @torch.inference_mode()
    def losses(self, inputs: Sequence[Tokens], targets: Sequence[Tokens]) -> list[Losses]:
        """Return -ln p of each row's targets.

        Rows are padded on the right without a mask: a causal model does not see what follows (it
        was probed for that), and unmasked attention has the faster kernels.

        Args:
            inputs: token ids of each row, (length,).
            targets: what follows the row's last positions, (scored,), scored <= length.

        Returns:
            Nats of each row, (scored,) float64, computed in float32 (float64 for such a model).

        Raises:
            torch.OutOfMemoryError: the batch is too large for the device.
        """
        width = max(map(len, inputs))
        ids = np.zeros((len(inputs), width), dtype=np.int64)
        scored = np.zeros(ids.shape, dtype=bool)
        for row, (tokens, wanted) in enumerate(zip(inputs, targets, strict=True)):
            ids[row, : len(tokens)] = tokens
            scored[row, len(tokens) - len(wanted) : len(tokens)] = True
        device = self._model.device
        hidden = self._hidden(torch.from_numpy(ids).to(device))
        chosen = hidden[torch.from_numpy(scored).to(device)]
        del hidden
        wanted_ids = torch.from_numpy(np.concatenate(targets)).to(device)
        nats = self._nats(chosen, wanted_ids).double().cpu().numpy()
        return np.split(nats, np.cumsum([len(wanted) for wanted in targets])[:-1])

    def _hidden(self, ids: torch.Tensor) -> torch.Tensor:
        """The last hidden states, (rows, width, hidden size); logits where there is no head."""
        run = self._model.base_model if self._head else self._model
        hidden: torch.Tensor = run(input_ids=ids, use_cache=False)[0]
        return hidden

    def _nats(self, chosen: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy of (scored, hidden size) states, slice by slice; (scored,)."""
        size = _SLICE_BYTES.get(chosen.device.type, 2**26)
        rows = max(1, size // (4 * self._vocabulary))
        return torch.cat(
            [
                _cross_entropy(self._logits(states), wanted)
                for states, wanted in zip(
                    torch.split(chosen, rows), torch.split(targets, rows), strict=True
                )
            ]
        )

    def _logits(self, states: torch.Tensor) -> torch.Tensor:
        if self._head is None:
            return states
        logits: torch.Tensor = self._head(inputs_embeds=states[None], use_cache=False)[0]
        return logits[0]

    @torch.inference_mode()
    def _probe(self) -> None:
        """Check on a few tokens that the split changes nothing and that the model is causal."""
        ids = torch.arange(16, device=self._model.device).reshape(2, 8) % self._vocabulary
        ids[1, :7] = ids[0, :7]
        try:
            expected = self._model(input_ids=ids, use_cache=False)[0]
        except _FAILURES as error:
            raise ModelLoadError(f"the model does not run ({error!r})") from error
        tolerance = 1e-3 if expected.dtype.itemsize >= 4 else 5e-2
        if self._head is not None and not self._splits(ids, expected, tolerance):
            self._head = None
        if not _close(expected[0, :7], expected[1, :7], tolerance):
            raise NotMeasurable(
                "what the model predicts depends on later tokens, so it gives a text no "
                "likelihood; only causal language models can be scored"
            )

    def _splits(self, ids: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
        try:
            found = self._logits(self._hidden(ids)[0])
        except _FAILURES:
            return False  # the model's forward asks more of its body than its output
        return found.shape == expected[0].shape and _close(found, expected[0], tolerance)


def _close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    scale = float(b.abs().nan_to_num(0.0, 0.0, 0.0).max())
    return torch.allclose(a, b, rtol=0, atol=tolerance * scale, equal_nan=True)


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """-ln softmax(logits)[target] of each row, in float32 or better."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(logits, targets, reduction="none")


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
    return head
