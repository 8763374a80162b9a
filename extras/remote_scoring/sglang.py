"""SGLang's ``POST /generate`` with ``return_logprob`` (https://docs.sglang.io).

``meta_info.input_token_logprobs`` of the answer has a triple of log-probability, id and text for
each token of the prompt, from ``logprob_start_len`` on. The first log-probability is null. The text
is null, because it is not asked for. The last id of the vocabulary is shown as 0 (version 0.5.23,
``logprob_result_processor.py``); its log-probability is its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerFast

from core.errors import ModelLoadError, NotMeasurable
from extras.remote_scoring.client import RemoteClient
from extras.remote_scoring.dialect import Served, loss_of, max_bytes, require_length
from models.scoring.scorer import Losses

_INFO_PATHS = ("/model_info", "/get_model_info")  # the second is the name of earlier versions
_INFO_KEYS = ("model_path", "weight_version")


class SglangDialect:
    """A ``Dialect``: ``/generate`` with ``return_logprob``. The tokenizer is the served model's."""

    name = "sglang"
    advice = "SGLang: --disable-radix-cache, --dtype float32, --enable-deterministic-inference"

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._last = len(tokenizer) - 1

    def describe(self, client: RemoteClient, served: Served) -> list[object]:
        """Implement ``Dialect.describe``: the list of models does not state the weights' path."""
        stated = [served.record.get("root"), served.record.get("parent")]
        for path in _INFO_PATHS:
            with contextlib.suppress(ModelLoadError):  # this version has no such path
                info = client.ask(path)
                known = info if isinstance(info, dict) else {}
                return [*stated, *(known.get(key) for key in _INFO_KEYS)]
        return stated

    def ask(self, client: RemoteClient, served: Served, prompt: Sequence[int]) -> object:
        """Implement ``Dialect.ask``."""
        body = {
            "input_ids": list(prompt),
            "sampling_params": {"temperature": 0.0, "max_new_tokens": 1},
            "return_logprob": True,
            "logprob_start_len": 0,  # the default returns those of generated tokens only
        }
        return client.ask("/generate", body, max_bytes(len(prompt)))

    def read(self, answer: object, prompt: Sequence[int], where: str) -> Losses:
        """Implement ``Dialect.read``."""
        found = answer.get("meta_info") if isinstance(answer, dict) else None
        about = found if isinstance(found, dict) else {}
        entries = about.get("input_token_logprobs")
        if not isinstance(entries, list):
            raise NotMeasurable(
                f"{where}: the answer has no input_token_logprobs, so the likelihood of a text "
                "cannot be had; expected meta_info of SGLang's /generate"
            )
        if len(entries) != len(prompt):
            raise NotMeasurable(
                f"{where}: input_token_logprobs has {len(entries)} entries for a prompt of "
                f"{len(prompt)} tokens; the server cut the prompt, added tokens to it, or left out "
                "those that it had in its cache (SGLang: --disable-radix-cache, a longer "
                "--context-length)"
            )
        require_length(about.get("prompt_tokens"), prompt, where)
        positions = range(1, len(prompt))
        return np.array(
            [self._loss(entries[i], prompt[i], f"{where}, token {i}") for i in positions]
        )

    def _loss(self, entry: object, token: int, where: str) -> float:
        """Return -ln p of the prompt's own token at one position."""
        shown = (token, 0) if token == self._last else (token,)
        if isinstance(entry, list) and len(entry) >= 2 and entry[1] in shown:
            return loss_of(entry[0], token, where)
        raise NotMeasurable(
            f"{where}: input_token_logprobs has {str(entry)[:100]} where the prompt has token "
            f"{token}; expected its log-probability and its id"
        )
