"""The decoding loop: generate texts in a batch and remove the row of each finished text.

``StopText`` detects from its content that a text has ended. ``TokenChoice`` chooses the next token
of each row. The settings of ``Decoding`` are applied in the order of the transformers library:
repetition penalty, minimum length, temperature, ``top_k``, ``top_p``.

Each row has its own uniform random numbers. The candidate tokens divide the unit interval, in the
order of their ids, by their probabilities. A random number chooses the token in whose part it lies.
So a small rounding error in the logits rarely changes a choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch

from core.responses import ends_in_thought
from models.generation import Decoding, Generation, GenerationRequest
from models.scoring.scorer import Tokens

_LONGEST_MATCH = 4096  # maximum length of a match in characters; earlier text is not searched again
_HELD_BACK = 8  # maximum number of tokens that together form one character
_BROKEN = "\ufffd"

Decode = Callable[[Sequence[int]], str]


_NONE = -torch.inf


class Texts(Protocol):
    """Texts in progress, one a row; ``logits`` are those of each row's next token."""

    logits: torch.Tensor

    def read(self, tokens: torch.Tensor) -> None:
        """Run the model on the next token of each row, int64 (rows,)."""

    def keep(self, places: Sequence[int]) -> None:
        """Keep only the rows at the given places, in this order."""


@runtime_checkable
class Rows(Protocol):
    """A model that continues several texts; see ``cached_rows.RowModel``."""

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""

    def may_batch(self, longest: int) -> bool:
        """Return True if rows that grow to at most ``longest`` tokens may share a batch."""

    def start(self, prompts: Sequence[Tokens], room: int) -> Texts:
        """Run the model on non-empty prompts; ``room`` is the maximum number of further tokens."""


class StopText:
    """Searches a growing text for a pattern, decoding only the new tokens at each step.

    The pattern's first match, of at most 4096 characters, ends the text. Matches in a reasoning
    section are ignored; the end of the prompt may open one.
    """

    def __init__(self, pattern: re.Pattern[str], decode: Decode, prompt: str = "") -> None:
        self._pattern = pattern
        self._decode = decode
        self._prompt = prompt
        self._text = ""  # text of the tokens before ``_end``
        # Tokens are decoded from ``_begin`` on, because a token's text may depend on earlier ones.
        self._begin = 0
        self._end = 0

    def ended(self, tokens: Sequence[int]) -> str | None:
        """Return the text up to the end of the first match, or None if there is no match."""
        before = self._decode(tokens[self._begin : self._end])
        new = self._decode(tokens[self._begin :])[len(before) :]
        text = self._text + new
        match = self._pattern.search(text, max(0, len(text) - len(new) - _LONGEST_MATCH))
        # A text that ends in a broken character is decoded again with the next token.
        if not new.endswith(_BROKEN) or len(tokens) - self._end >= _HELD_BACK:
            self._text = text
            self._begin = self._end
            self._end = len(tokens)
        if match is None:
            return None
        full_text = self._decode(tokens)
        end = end_of_match(self._pattern, full_text, self._prompt)
        return None if end is None else full_text[:end]


def end_of_match(pattern: re.Pattern[str], text: str, prompt: str) -> int | None:
    """Return the end of the first match outside reasoning, which ``prompt`` may open, or None."""
    # Reasoning may mention possible answers.
    begins_in_thought = ends_in_thought(prompt)
    for match in pattern.finditer(text):
        if not ends_in_thought(text[: match.start()], begins_in_thought):
            return match.end()
    return None


class TokenChoice:
    """Chooses the next token of each row of a batch."""

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
        self._seen: torch.Tensor | None = None  # tokens of each row so far, (rows, vocabulary)
        self._generators = [np.random.Generator(np.random.Philox(key=seed)) for seed in seeds]
        self._num_chosen = 0

    def choose(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose a token for each row of logits, (rows, vocabulary); -inf marks an impossible one.

        Return ids, int64 (rows,), and a mask, bool (rows,). The mask is True for rows without a
        valid choice (a logit is NaN or +inf, or all are -inf).
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
        """Keep only the rows at the given places, in this order."""
        self._generators = [self._generators[place] for place in places]
        if self._seen is not None:
            self._seen = self._seen[torch.tensor(places, device=self._seen.device)]

    def _penalised(self, logits: torch.Tensor) -> torch.Tensor:
        """Return logits with the repetition penalty on the tokens seen in each row."""
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
        """Draw a token for each row, by its own random number and the tokens' probabilities."""
        weights, ids = _candidates(logits / self._decoding.temperature, self._decoding)
        cumulative = weights.double().cumsum(-1)
        drawn = torch.tensor([[each.random()] for each in self._generators], dtype=torch.float64)
        thresholds = drawn.to(logits.device) * cumulative[:, -1:]
        places = torch.searchsorted(cumulative, thresholds, right=True)
        # A threshold may round up to the total. Then choose the last token of positive weight.
        places = torch.minimum(places, (cumulative < cumulative[:, -1:]).sum(-1, keepdim=True))
        return (places if ids is None else ids.gather(1, places))[:, 0]


def _candidates(
    logits: torch.Tensor, decoding: Decoding
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the weights of candidate tokens, (rows, candidates), and their ids in rising order.

    An excluded token has weight 0. The ids are None if all tokens are candidates.
    """
    vocabulary = logits.shape[-1]
    top_k = min(decoding.top_k or vocabulary, vocabulary)
    if top_k == vocabulary and decoding.top_p >= 1:
        return logits.softmax(-1), None
    highest, ids = logits.topk(top_k, -1)  # the most likely tokens come first
    weights = highest.softmax(-1)
    if decoding.top_p < 1:
        before = weights.cumsum(-1) - weights
        weights = weights * (before < decoding.top_p)
    if top_k == vocabulary:
        return torch.zeros_like(logits).scatter_(1, ids, weights), None
    ids, order = ids.sort(-1)
    return weights.gather(1, order), ids


@dataclass
class Row:
    """A request in progress.

    Attributes:
        limit: maximum number of new tokens.
        opening: mark at the prompt's end that opens reasoning. The row's text begins with it, so
            that reasoning which is cut off is not read as an answer.
    """

    request: GenerationRequest
    prompt: Tokens
    limit: int
    opening: str = ""
    is_done: bool = False
    tokens: list[int] = field(default_factory=list)
    stop: StopText | None = None


class Batch:
    """Texts that are generated together, one per row.

    Raises:
        RuntimeError: raised by torch if the device's memory is full; also in ``step``.
    """

    def __init__(
        self,
        model: Rows,
        decode: Decode,
        ends: Sequence[int],
        rows: Sequence[Row],
        decoding: Decoding,
    ) -> None:
        self._decode = decode
        self._ends = frozenset(ends)
        self._rows = list(rows)
        for row in self._rows:
            row.tokens = []
            row.stop = None
            if decoding.stop:
                row.stop = StopText(re.compile(decoding.stop), decode, row.opening)
        prompts = [row.prompt for row in rows]
        self._read = model.start(prompts, max(row.limit for row in rows))
        seeds = [row.request.seed for row in rows]
        self._choice = TokenChoice(decoding, prompts, seeds, ends)
        self._chosen: torch.Tensor | None = None  # chosen tokens that the model has not read yet

    def step(self) -> list[Generation]:
        """Generate one token per row; return the texts that end with this token."""
        # All memory is allocated before a row is marked as done. So a failed step loses no text.
        if self._chosen is not None:
            self._run_model(self._chosen)
        chosen, broken = self._choice.choose(self._read.logits)
        ended = []
        for row, token, is_broken in zip(self._rows, chosen.tolist(), broken.tolist(), strict=True):
            generation = self._failure(row) if is_broken else self._add_token(row, token)
            if generation is not None:
                row.is_done = True
                ended.append(generation)
        self._chosen = chosen
        return ended

    @property
    def is_done(self) -> bool:
        """True if all texts have ended."""
        return all(row.is_done for row in self._rows)

    def _run_model(self, chosen: torch.Tensor) -> None:
        """Remove the finished rows; run the model on the new tokens of the other rows."""
        left = [place for place, row in enumerate(self._rows) if not row.is_done]
        if len(left) < len(self._rows):
            self._read.keep(left)
            self._choice.keep(left)
            chosen = chosen[left]
            self._rows = [self._rows[place] for place in left]
        self._read.read(chosen)

    def _add_token(self, row: Row, token: int) -> Generation | None:
        """Add a token to a row; return the row's text if the token ends it, else None."""
        if token in self._ends:
            return self._whole_text(row, "stop")
        row.tokens.append(token)
        text = None if row.stop is None else row.stop.ended(row.tokens)
        if text is not None:
            return Generation(row.request.key, row.opening + text, "stop", len(row.tokens))
        return self._whole_text(row, "length") if len(row.tokens) >= row.limit else None

    def _whole_text(self, row: Row, finish: Literal["stop", "length"]) -> Generation:
        text = row.opening + self._decode(row.tokens)
        return Generation(row.request.key, text, finish, len(row.tokens))

    def _failure(self, row: Row) -> Generation:
        return Generation(row.request.key, "", "error", len(row.tokens), "non_finite")
