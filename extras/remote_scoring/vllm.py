"""vLLM's ``prompt_logprobs`` of ``POST /v1/completions`` (https://docs.vllm.ai, extra parameters).

For each token of the prompt, the answer has an object by token id (null for the first token), such
as ``{"464": {"logprob": -3.2, "rank": 7, "decoded_token": "The"}}``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


class VllmDialect:
    """A ``Dialect``: ``prompt_logprobs``."""

    name = "vllm"
    advice = (
        "vLLM: --no-enable-prefix-caching, --dtype float32, --logprobs-mode raw_logprobs, "
        "VLLM_BATCH_INVARIANT=1"
    )

    def describe(self, client: RemoteClient, served: Served) -> list[object]:
        """Implement ``Dialect.describe``: ``root`` is the path of the weights, as far as stated."""
        return [served.record.get("root"), served.record.get("parent")]

    def ask(self, client: RemoteClient, served: Served, prompt: Sequence[int]) -> object:
        """Implement ``Dialect.ask``."""
        body = {
            "model": served.name,
            "prompt": list(prompt),
            "add_special_tokens": False,
            "prompt_logprobs": 0,  # only the prompt's own tokens, no alternatives
            "max_tokens": 1,  # the server does not allow 0
            # Override the checkpoint's generation_config.json, which some vLLM versions apply to
            # the prompt, too. For the prompt, they read temperature 0 as 1.
            "temperature": 0.0,
            "top_p": 1.0,
            "repetition_penalty": 1.0,
        }
        return client.ask("/v1/completions", body, max_bytes(len(prompt)))

    def read(self, answer: object, prompt: Sequence[int], where: str) -> Losses:
        """Implement ``Dialect.read``."""
        entries = only_choice(answer).get("prompt_logprobs")
        if not isinstance(entries, list):
            raise NotMeasurable(
                f"{where}: the answer has no prompt_logprobs, so the likelihood of a text cannot "
                "be had; use a server that returns them, such as vLLM (not below --max-logprobs "
                "0), or set the entry's dialect to echo or sglang if the server speaks it"
            )
        if len(entries) != len(prompt):
            raise NotMeasurable(
                f"{where}: prompt_logprobs has {len(entries)} entries for a prompt of "
                f"{len(prompt)} tokens; the server cut the prompt, added tokens to it, or left out "
                "those that it had in its cache (vLLM: --no-enable-prefix-caching, a longer "
                "--max-model-len)"
            )
        require_length(num_used(answer), prompt, where)
        positions = range(1, len(prompt))
        return np.array([_loss(entries[i], prompt[i], f"{where}, token {i}") for i in positions])


def _loss(entry: object, token: int, where: str) -> float:
    """Return -ln p of the prompt's own token at one position."""
    if not isinstance(entry, dict) or str(token) not in entry:
        given = "nothing" if entry is None else f"other tokens ({str(entry)[:100]})"
        raise NotMeasurable(
            f"{where}: prompt_logprobs has {given} where the prompt has token {token}; expected "
            "the likelihood of every token after the first, as vLLM returns it"
        )
    own = entry[str(token)]
    return loss_of(own.get("logprob") if isinstance(own, dict) else None, token, where)
