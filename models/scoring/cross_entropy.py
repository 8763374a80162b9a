"""Cross entropy of a linear output layer, computed in tiles, so that the logits need little memory.

On a GPU, a tile is a block of whole rows. On a CPU, a tile is a part of the vocabulary. Its logits
stay in the cache, which is 1.4 to 1.7 times as fast.
"""

from __future__ import annotations

import torch
from torch.nn import functional

# Size of a tile of logits. From 512 to 2,048 rows and 1,024 to 8,192 columns, speeds hardly differ.
_CPU_ROWS = 512
_CPU_COLUMNS = 2048
_CPU_TILES = 16  # size of the logits at one time if not tiled
_FLOAT32_BYTES = 4
_GPU_BYTES = 2**29  # maximum size of float32 logits at one time; enough rows for full speed
_GPU_ROWS = 128  # the number of rows is a multiple of this, for fast matrix products


def cross_entropy(
    logits: torch.Tensor, targets: torch.Tensor, alphabet: torch.Tensor | None
) -> torch.Tensor:
    """Return -ln softmax(logits)[target] of each row.

    Args:
        logits: (n, vocabulary), any floating dtype.
        targets: int64 ids, (n,), or (n, m) for m targets per row.
        alphabet: int64 ids of the softmax (including the targets), or None for all token ids.

    Returns:
        Losses in nats, with the targets' shape; float64 for float64 logits, otherwise float32.
    """
    if alphabet is not None:
        targets = places_in(alphabet, logits.shape[-1])[targets]
        logits = logits[:, alphabet]
    # On some devices, one kernel computes the log-softmax and converts the dtype.
    logprobs = functional.log_softmax(logits, -1, dtype=at_least_float32(logits.dtype))
    return -logprobs.gather(-1, targets.view(len(targets), -1)).view(targets.shape)


def places_in(alphabet: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """Return the index of each vocabulary id in the alphabet, int64 (vocabulary,)."""
    # Ids outside the alphabet have the index -1, which ``gather`` rejects.
    places = torch.full((vocabulary,), -1, device=alphabet.device)
    places[alphabet] = torch.arange(len(alphabet), device=alphabet.device)
    return places


def linear_cross_entropy(
    states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, targets: torch.Tensor
) -> torch.Tensor:
    """Return -ln softmax(states @ weight.T + bias)[target] of each row, as ``cross_entropy``.

    Args:
        states: (n, hidden size).
        weight: (vocabulary, hidden size), of the same dtype.
        bias: (vocabulary,) or None.
        targets: int64 indices of rows of ``weight``, (n,), or (n, m) for m targets per row.
    """
    is_tiled = states.device.type == "cpu" and len(weight) > _CPU_COLUMNS
    rows = _CPU_ROWS if is_tiled else row_slice(states.device, len(weight))
    parts = zip(torch.split(states, rows), torch.split(targets, rows), strict=True)
    losses: list[torch.Tensor] = []
    for part, wanted in parts:
        if is_tiled:
            losses.append(_tiled(part, weight, bias, wanted))
        else:
            logits = functional.linear(part, weight, bias)
            losses.append(cross_entropy(logits, wanted, None))
    return torch.cat(losses)


def row_slice(device: torch.device, vocabulary: int) -> int:
    """Return the number of rows of logits to compute at one time."""
    if device.type == "cpu":
        return max(1, _CPU_ROWS * _CPU_TILES * _CPU_COLUMNS // vocabulary)
    rows = _GPU_BYTES // (_FLOAT32_BYTES * vocabulary)
    return max(1, rows - rows % _GPU_ROWS if rows > _GPU_ROWS else rows)


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype, or float32 if the dtype has fewer bits."""
    return torch.promote_types(dtype, torch.float32)


def _tiled(
    states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, targets: torch.Tensor
) -> torch.Tensor:
    """Return ``linear_cross_entropy`` of some rows, a tile of the vocabulary at a time."""
    dtype = at_least_float32(states.dtype)
    total = torch.full(states.shape[:1], -torch.inf, dtype=dtype, device=states.device)
    ids = targets.view(len(targets), -1)
    target_logits = torch.zeros(ids.shape, dtype=dtype, device=states.device)
    for first in range(0, len(weight), _CPU_COLUMNS):
        columns = slice(first, first + _CPU_COLUMNS)
        logits = functional.linear(
            states, weight[columns], None if bias is None else bias[columns]
        ).to(dtype)
        # The target's logit is taken from the tile, so that the sum contains exactly this float and
        # no loss is below zero.
        place = ids - first
        is_here = (place >= 0) & (place < logits.shape[1])
        found = logits.gather(-1, place.clamp(0, logits.shape[1] - 1))
        target_logits = torch.where(is_here, found, target_logits)
        total = torch.logaddexp(total, logits.logsumexp(-1))
    return (total[:, None] - target_logits).view(targets.shape)
