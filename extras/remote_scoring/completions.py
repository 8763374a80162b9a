"""Texts of a model on a server with vLLM's completions API (``POST /v1/completions``).

Prompts are tokenized here and sent as ids, as for likelihoods. The server chooses the tokens; vLLM
takes all settings of ``Decoding`` except ``stop``. Texts are cut at ``stop`` here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from core.errors import NotMeasurable
from core.json import JsonObject
from extras.remote_scoring.client import RemoteClient
from models.generation import Decoding, Generation, GenerationRequest
from models.generation.batch import end_of_match
from models.generation.local import GenerationIdentity, prepare
from models.scoring.text_model import TextModel

_SEEDS = 2**53  # seeds are below this limit, so that JSON numbers represent them exactly
_BYTES_PER_TOKEN = 1024  # maximum response size per token
_PROMPT_END = 64  # last characters of a prompt, searched for a tag that opens a reasoning section
_FINISHES = ("stop", "length")


class CompletionGenerator:
    """A ``Generator`` that uses a model on a server; several requests are sent at a time.

    Reasons of an error are those of ``LocalGenerator``, or the server's message. Construction sends
    one short request. Raise NotMeasurable if the server does not write texts.
    """

    def __init__(
        self,
        client: RemoteClient,
        served_name: str,
        identity: GenerationIdentity,
        text_model: TextModel,
        at_once: int,
    ) -> None:
        self._client = client
        self._served_name = served_name
        self._identity = identity
        self._text_model = text_model
        self._at_once = at_once
        self.name = identity.name
        self.revision = identity.revision
        probe = self._write(GenerationRequest("", "The tide", 0), Decoding(1))
        if probe.finish == "error":
            raise NotMeasurable(
                f"{self.name}: the server at {client.address} writes no text ({probe.reason}); "
                "expected the completions of vLLM's OpenAI-compatible server"
            )

    def generation_id(self, decoding: Decoding) -> str:
        """Implement ``Generator.generation_id``."""
        return self._identity.generation_id(decoding)

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """Yield generations as ``Generator.generate``; raise ModelError if the server fails."""
        with ThreadPoolExecutor(self._at_once) as pool:
            futures = [pool.submit(self._write, request, decoding) for request in requests]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:  # after an error, or if the caller stops, no further requests are sent
                pool.shutdown(wait=False, cancel_futures=True)

    def _write(self, request: GenerationRequest, decoding: Decoding) -> Generation:
        """Have the server continue one prompt; a refusal is part of the result."""
        ready = prepare(self._identity, self._text_model, request, decoding)
        if isinstance(ready, Generation):
            return ready
        body = {
            "model": self._served_name,
            "prompt": ready.tokens.tolist(),
            "add_special_tokens": False,
            "seed": request.seed % _SEEDS,
            "max_tokens": ready.limit,
            "min_tokens": decoding.min_new_tokens,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "top_k": -1 if decoding.top_k is None else decoding.top_k,
            "repetition_penalty": decoding.repetition_penalty,
        }
        try:
            answer = self._client.ask(
                "/v1/completions", body, 2**20 + _BYTES_PER_TOKEN * ready.limit
            )
        except NotMeasurable as error:  # the server refuses this prompt, and may take others
            return Generation(request.key, "", "error", None, str(error))
        return read_completion(answer, request.key, ready.text[-_PROMPT_END:], decoding.stop)


def read_completion(answer: object, key: str, prompt: str, stop: str | None) -> Generation:
    """Return the text of a server's response, cut at the end of the first match of ``stop``."""
    fields: JsonObject = answer if isinstance(answer, dict) else {}
    choices = fields.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    text = choice.get("text") if isinstance(choice, dict) else None
    finish: Any = choice.get("finish_reason") if isinstance(choice, dict) else None
    if not isinstance(text, str) or finish not in _FINISHES:
        why = f"the answer has no finished text: {str(answer)[:200]!r}"
        return Generation(key, "", "error", None, why)
    usage = fields.get("usage")
    made = usage.get("completion_tokens") if isinstance(usage, dict) else None
    num_tokens = made if type(made) is int else None
    end = end_of_match(re.compile(stop), text, prompt) if stop else None
    if end is not None:
        text = text[:end]
        finish = "stop"
    return Generation(key, text, finish, num_tokens)
