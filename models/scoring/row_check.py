"""A test at loading: a row's losses must not depend on the rows that share its batch.

Recurrent and hybrid models have leaked the state of one row into others (2025 and 2026). Such a
model gives figures that depend on the batch size, so it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch

from core.errors import ModelLoadError, NotMeasurable
from models.scoring.scorer import DeviceFull, Engine, Losses, Tokens
from models.scoring.text_model import Tokenizer

# Windows of different lengths, so that batches are padded.
_TEXTS = (
    "The tide leaves a mark on the sand.",
    "def add(a, b):\n    return a + b  # 17",
    "Models read what was written before them; text goes on being written, and is read.",
)
# Maximum difference of a window's mean loss, as a share of the loss (of 1 nat for smaller losses).
# Kernels round otherwise for batches of other shapes; a leak changes a loss by some percent.
_TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
_LOW_PRECISION = 2e-2  # for dtypes of 16 bits or fewer, and for servers, whose dtype is unknown


# Maximum error of rows that are run together, as a share of their size, and of the error without a
# mask. The second pair is for 16-bit dtypes, whose rounding alone may reach a tenth of that error.
_SHARES = (1e-4, 0.05)
_SHARES_OF_HALVES = (5e-2, 0.25)


def is_rounding(error: float, size: float, leak: float, dtype: torch.dtype) -> bool:
    """Return True if an error (RMS) is small against the figures, and against that of a leak."""
    share_of_size, share_of_leak = _SHARES if dtype.itemsize >= 4 else _SHARES_OF_HALVES
    return error <= min(share_of_size * size, share_of_leak * leak)  # False for NaN


def rms(values: Losses) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))


def tolerance_of(dtype: str) -> float:
    """Return the tolerated relative difference of a window's loss for weights of a dtype."""
    return _TOLERANCES.get(dtype, _LOW_PRECISION)


def check_rows(name: str, engine: Engine, tokenizer: Tokenizer, dtype: str) -> None:
    """Compare losses of short windows alone, in a batch, and in a batch of the reverse order.

    Raises:
        NotMeasurable: the losses of a window differ; the message states the largest difference.
        ModelLoadError: the device has no memory for a few tokens.
    """
    windows = [tokens.ids for tokens in tokenizer.tokenize(_TEXTS) if len(tokens.ids) > 1]
    try:
        alone = [_losses(engine, [window])[0] for window in windows]
        together = _losses(engine, windows)
        reverse = _losses(engine, windows[::-1])[::-1]
    except DeviceFull as error:
        raise ModelLoadError(
            f"{name}: the weights leave no memory for a pass of {sum(map(len, windows))} tokens; "
            "choose a smaller TIDEMARK_DTYPE or another device"
        ) from error
    kinds = product(("in a batch", "in another order"), range(len(windows)))
    differences = [_difference(*pair) for pair in zip(alone * 2, together + reverse, strict=True)]
    worst, (kind, row) = max(zip(differences, kinds, strict=True), default=(0.0, ("", 0)))
    if worst > tolerance_of(dtype):
        raise NotMeasurable(
            f"{name}: a window of {len(windows[row])} tokens has another loss {kind} than alone "
            f"(difference {worst:.2g} of the loss, tolerated for {dtype or 'a server'} "
            f"{tolerance_of(dtype):.0e}), so its rows are mixed; update the model's code or "
            "library, or use a model without this fault"
        )


def check_lengths(
    name: str, engine: Engine, tokenizer: Tokenizer, dtype: str, lengths: Sequence[int], most: int
) -> None:
    """Compare losses of rows around each of ``lengths`` alone with those beside a longer row.

    ``most`` is the maximum number of inputs of a batch; rows that never share a batch are not
    compared.

    Raises:
        NotMeasurable: the losses of a row differ; the message states length and difference.
    """
    words = [tokens.ids for tokens in tokenizer.tokenize(_TEXTS)]
    text = np.concatenate(words)
    if not len(text):
        return
    for length in lengths:
        longer = length + max(2, length // 10)  # by a tenth
        if 2 * longer > most:
            continue
        ids = np.resize(text, longer + 1)
        for pair in ((length, length + 1), (length + 1, longer)):
            _compare_pair(name, engine, ids, pair, dtype)


def _compare_pair(
    name: str, engine: Engine, ids: Tokens, pair: tuple[int, int], dtype: str
) -> None:
    """Compare the losses of two rows alone and together; ``pair`` are their numbers of inputs."""
    rows = [ids[: size + 1] for size in pair]
    try:
        alone = [_losses(engine, [row])[0] for row in rows]
        together = _losses(engine, rows)
    except DeviceFull:
        return  # such rows do not share a batch either
    worst = max(_difference(*each) for each in zip(alone, together, strict=True))
    if worst > tolerance_of(dtype):
        raise NotMeasurable(
            f"{name}: rows of {pair[0]} and {pair[1]} tokens have other losses together than alone "
            f"(difference {worst:.2g} of the loss, tolerated for {dtype or 'a server'} "
            f"{tolerance_of(dtype):.0e}), so a document's loss would depend on its neighbours; use "
            f"a protocol whose windows are shorter, or TIDEMARK_BATCH_TOKENS={pair[0]}, which "
            "scores each row alone"
        )


def _losses(engine: Engine, windows: list[Tokens]) -> list[Losses]:
    if not windows:
        return []
    return engine.losses([ids[:-1] for ids in windows], [ids[1:] for ids in windows])


def _difference(expected: Losses, found: Losses) -> float:
    """Return the difference of mean losses; not-finite losses are equal if all are not finite."""
    a = float(np.mean(expected))
    b = float(np.mean(found))
    if not (np.isfinite(a) and np.isfinite(b)):
        return 0.0 if np.isfinite(a) == np.isfinite(b) else np.inf
    return abs(a - b) / max(1.0, abs(a))
