"""``echo`` with ``logprobs`` of ``POST /v1/completions``, of OpenAI, vLLM, Together and others.

The answer repeats the prompt, with lists ``tokens`` and ``token_logprobs``. Servers differ:

- The lists include the generated token, or not (OpenAI and vLLM with ``max_tokens: 0``).
- The first log-probability is null, or the first token is left out.
- Together has the prompt's lists apart: ``{"prompt": [{"logprobs": {...}}]}``.
- Tokens are texts, or ``token_id:17`` (vLLM's ``--return-tokens-as-token-ids``). ``text_offset``
  counts characters or bytes, so it is not read.
- ``echo`` may be ignored, and a start token added. Both are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from core.errors import NotMeasurable
from extras.remote_scoring.client import RemoteClient
from extras.remote_scoring.dialect import (
    Served,
    loss_of,
    max_bytes,
    num_used,
    only_choice,
    require_length,
)
from models.scoring.scorer import Losses

_UNCLEAR = "\N{REPLACEMENT CHARACTER}"  # stands for a part of a character, which has no text
# Share of tokens whose text may differ: tokenizers show blanks and control tokens differently.
_MOST_OTHERS = 0.1


class EchoDialect:
    """A ``Dialect``: ``echo`` with ``logprobs``. The tokenizer is the served model's."""

    name = "echo"
    advice = "serve without a cache of prefixes, without top_k, in float32"

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer
        self._spellings = lru_cache(None)(self._spell)

    def describe(self, client: RemoteClient, served: Served) -> list[object]:
        """Implement ``Dialect.describe``."""
        return [served.record.get("root"), served.record.get("parent")]

    def ask(self, client: RemoteClient, served: Served, prompt: Sequence[int]) -> object:
        """Implement ``Dialect.ask``, with parameters that all these servers know."""
        body = {
            "model": served.name,
            "prompt": list(prompt),
            "echo": True,
            "logprobs": 1,  # 0 counts as none in SGLang
            "max_tokens": 1,  # some servers refuse 0
            "temperature": 0.0,
        }
        return client.ask("/v1/completions", body, max_bytes(len(prompt)))

    def read(self, answer: object, prompt: Sequence[int], where: str) -> Losses:
        """Implement ``Dialect.read``."""
        tokens, values = _lists(answer, where)
        first = self._first(tokens, prompt, where)
        require_length(num_used(answer), prompt, where)
        return np.array(
            [
                loss_of(values[i - first], prompt[i], f"{where}, token {i}")
                for i in range(1, len(prompt))
            ]
        )

    def _first(self, tokens: Sequence[Any], prompt: Sequence[int], where: str) -> int:
        """Return the position in the prompt of the first of the answer's tokens: 0 or 1."""
        for first in (0, 1):
            own = prompt[first:]
            if len(tokens) - len(own) in (0, 1) and self._agree(tokens, own):
                return first
        if len(tokens) <= 1 < len(prompt) - 1:
            why = "it does not repeat the prompt: echo is ignored"
        elif len(tokens) > len(prompt) and self._agree(tokens[1:], prompt):
            why = f"it put {tokens[0]!r} before the prompt, such as a start token"
        else:
            why = "it cut the prompt, added tokens to it, or has another tokenizer"
        raise NotMeasurable(
            f"{where}: logprobs has {len(tokens)} tokens for a prompt of {len(prompt)}; {why}, so "
            "the likelihood of each token cannot be had; use a server that repeats the prompt's "
            "ids as they are sent"
        )

    def _agree(self, tokens: Sequence[Any], ids: Sequence[int]) -> bool:
        """Return True if the texts of tokens are those of the ids, as far as they are clear."""
        pairs = [
            (str(token), self._spellings(token_id))
            for token, token_id in zip(tokens, ids, strict=False)
        ]
        clear = [(text, known) for text, known in pairs if _UNCLEAR not in text and known]
        others = sum(text.strip() not in known for text, known in clear)
        return others <= _MOST_OTHERS * len(clear)

    def _spell(self, token_id: int) -> frozenset[str]:
        """Return the texts by which servers show a token, without blanks at its ends.

        Empty if the token is a part of a character.
        """
        text = str(self._tokenizer.decode([token_id]))
        if _UNCLEAR in text:
            return frozenset()
        piece = str(self._tokenizer.convert_ids_to_tokens(token_id))
        plain = piece.replace("\N{LOWER ONE EIGHTH BLOCK}", " ").replace("\u0120", " ")
        return frozenset({text.strip(), piece.strip(), plain.strip(), f"token_id:{token_id}"})


def _lists(answer: object, where: str) -> tuple[list[Any], list[Any]]:
    """Return the parallel lists of tokens and log-probabilities of an answer."""
    parts = answer.get("prompt") if isinstance(answer, dict) else None
    part = parts[0] if isinstance(parts, list) and len(parts) == 1 else only_choice(answer)
    found = part.get("logprobs") if isinstance(part, dict) else None
    about: dict[str, Any] = found if isinstance(found, dict) else {}
    lists: list[Any] = [about.get(key) for key in ("tokens", "token_logprobs")]
    if not all(isinstance(each, list) for each in lists) or len(set(map(len, lists))) != 1:
        raise NotMeasurable(
            f"{where}: the answer has no logprobs with tokens and token_logprobs of one length, so "
            "the likelihood of a text cannot be had; expected /v1/completions with echo and "
            "logprobs"
        )
    tokens, values = lists
    return tokens, values
