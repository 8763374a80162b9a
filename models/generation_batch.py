"""The decoding loop: rows that are written together, and leave when their text has ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from models.backend import Tokens
from models.cached_rows import RowModel
from models.generator import Decoding, Generation, GenerationRequest
from models.stop_text import StopText
from models.token_choice import TokenChoice

_PROMPT_END = 16  # tokens, in which a chat template may open a thought
Decode = Callable[[Sequence[int]], str]


@dataclass
class Row:
    """A request on its way.

    Attributes:
        request: as it came.
        prompt: its ids, at least one.
        limit: most tokens that may be written, at least one.
        is_done: whether its generation was given away.
    """

    request: GenerationRequest
    prompt: Tokens
    limit: int
    is_done: bool = False
    tokens: list[int] = field(default_factory=list)
    stop: StopText | None = None


class Batch:
    """Rows that are written together.

    Args:
        model: writes.
        decode: makes a text of token ids.
        ends: ids of the tokens that end a text.
        rows: one, unless the model may batch them.
        decoding: how they are written.

    Raises:
        RuntimeError: torch's own, where the device has no room; also of ``step``.
    """

    def __init__(
        self,
        model: RowModel,
        decode: Decode,
        ends: Sequence[int],
        rows: Sequence[Row],
        decoding: Decoding,
    ) -> None:
        self._decode, self._ends = decode, frozenset(ends)
        self._rows = list(rows)
        for row in self._rows:
            row.tokens = []
            row.stop = None
            if decoding.stop:
                end = decode(row.prompt[-_PROMPT_END:].tolist())
                row.stop = StopText(re.compile(decoding.stop), decode, end)
        prompts = [row.prompt for row in rows]
        self._read = model.start(prompts, max(row.limit for row in rows))
        seeds = [row.request.seed for row in rows]
        self._choice = TokenChoice(decoding, prompts, seeds, ends)
        self._chosen: torch.Tensor | None = None  # written, and not read yet

    def step(self) -> list[Generation]:
        """Write a token of each row; return the generations of those that end with it.

        What needs room comes first: a step that fails has ended no row.
        """
        if self._chosen is not None:
            self._read_on(self._chosen)
        chosen, broken = self._choice.choose(self._read.logits)
        ended = []
        for row, token, is_broken in zip(self._rows, chosen.tolist(), broken.tolist(), strict=True):
            generation = self._broken(row) if is_broken else self._taken(row, token)
            if generation is not None:
                row.is_done = True
                ended.append(generation)
        self._chosen = chosen
        return ended

    @property
    def is_done(self) -> bool:
        """Whether no row is left."""
        return all(row.is_done for row in self._rows)

    def _read_on(self, chosen: torch.Tensor) -> None:
        """Let go of the rows that have ended, and read what the others were given."""
        left = [place for place, row in enumerate(self._rows) if not row.is_done]
        if len(left) < len(self._rows):
            self._read.keep(left)
            self._choice.keep(left)
            chosen = chosen[left]
            self._rows = [self._rows[place] for place in left]
        self._read.read(chosen)

    def _taken(self, row: Row, token: int) -> Generation | None:
        """Add a token to a row; return its generation if that ends it."""
        if token in self._ends:
            return self._finished(row, "stop")
        row.tokens.append(token)
        if row.stop is not None and (text := row.stop.ended(row.tokens)) is not None:
            return Generation(row.request.key, text, "stop", len(row.tokens))
        return self._finished(row, "length") if len(row.tokens) >= row.limit else None

    def _finished(self, row: Row, finish: Literal["stop", "length"]) -> Generation:
        return Generation(row.request.key, self._decode(row.tokens), finish, len(row.tokens))

    def _broken(self, row: Row) -> Generation:
        return Generation(row.request.key, "", "error", len(row.tokens), "non_finite")
