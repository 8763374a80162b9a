"""The next token of each row: from logits to a choice, as a ``Decoding`` says.

The order is that of transformers: the penalty on what was there before, the ban of end tokens, the
temperature, the likeliest ``top_k``, and of these the fewest that have ``top_p`` together.

A row's choices come from uniform numbers of its own. The tokens that are left are laid side by side
in the order of their ids, so that a rounding error in the logits moves borders by as little, and
changes a choice only where the number falls on one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from models.backend import Tokens
from models.generator import Decoding

_NONE = -torch.inf


class TokenChoice:
    """Chooses the tokens of rows that are written together.

    Args:
        decoding: how.
        prompts: ids of each row, not empty.
        seeds: of each row's choices.
        ends: ids of the tokens that end a text.
    """

    def __init__(
        self,
        decoding: Decoding,
        prompts: Sequence[Tokens],
        seeds: Sequence[int],
        ends: Sequence[int],
    ) -> None:
        self._decoding = decoding
        self._prompts: Sequence[Tokens] | None = prompts
        self._ends = list(ends)
        self._seen: torch.Tensor | None = None
        self._generators = [np.random.Generator(np.random.Philox(key=seed)) for seed in seeds]
        self._num_chosen = 0

    def choose(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose a token for each row.

        Args:
            logits: (rows, vocabulary), of any float dtype; -inf is a token that cannot be.

        Returns:
            Ids, int64 (rows,), and whether a row's logits give no choice: NaN, +inf, or all -inf.
        """
        decoding = self._decoding
        logits = logits.float()
        if decoding.repetition_penalty != 1:
            logits = self._penalised(logits)
        if self._num_chosen < decoding.min_new_tokens:
            logits = logits.clone()
            logits[:, self._ends] = _NONE
        is_broken = ~logits.amax(-1).isfinite()
        if decoding.temperature == 0:
            chosen = logits.argmax(-1)
        else:
            chosen = self._drawn(logits.where(~is_broken[:, None], 0.0))
        self._num_chosen += 1
        if self._seen is not None:
            self._seen.scatter_(1, chosen[:, None], True)
        return chosen, is_broken

    def keep(self, places: Sequence[int]) -> None:
        """Go on with some of the rows, in this order."""
        self._generators = [self._generators[place] for place in places]
        if self._seen is not None:
            self._seen = self._seen[torch.tensor(places, device=self._seen.device)]

    def _penalised(self, logits: torch.Tensor) -> torch.Tensor:
        if self._seen is None:
            assert self._prompts is not None  # noqa: S101
            self._seen = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
            for row, prompt in zip(self._seen, self._prompts, strict=True):
                row[torch.from_numpy(prompt).to(logits.device)] = True
            self._prompts = None
        penalty = self._decoding.repetition_penalty
        lowered = torch.where(logits < 0, logits * penalty, logits / penalty)
        return torch.where(self._seen, lowered, logits)

    def _drawn(self, logits: torch.Tensor) -> torch.Tensor:
        weights, ids = _candidates(logits / self._decoding.temperature, self._decoding)
        borders = weights.double().cumsum(-1)
        drawn = torch.tensor([[each.random()] for each in self._generators], dtype=torch.float64)
        wanted = drawn.to(logits.device) * borders[:, -1:]
        places = torch.searchsorted(borders, wanted, right=True)
        # A product may round up to the sum itself; the last token with a weight is meant.
        places = torch.minimum(places, (borders < borders[:, -1:]).sum(-1, keepdim=True))
        return (places if ids is None else ids.gather(1, places))[:, 0]


def _candidates(
    logits: torch.Tensor, decoding: Decoding
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weights to draw by, (rows, candidates), 0 for what is left out, and their growing ids.

    Without ids, candidates are all tokens.
    """
    vocabulary = logits.shape[-1]
    top_k = min(decoding.top_k or vocabulary, vocabulary)
    if top_k == vocabulary and decoding.top_p >= 1:
        return logits.softmax(-1), None
    highest, ids = logits.topk(top_k, -1)  # the likeliest first
    weights = highest.softmax(-1)
    if decoding.top_p < 1:
        before = weights.cumsum(-1) - weights
        weights = weights * (before < decoding.top_p)
    if top_k == vocabulary:
        return torch.zeros_like(logits).scatter_(1, ids, weights), None
    ids, order = ids.sort(-1)
    return weights.gather(1, order), ids
