"""Models behind an OpenAI-compatible chat API that write: at a price, never twice.

What was written is kept, and asked by one run at a time (``models.api_rounds``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from core.settings import Settings
from core.storage import Store
from models.answer_budget import Budget
from models.api_client import Unanswerable
from models.api_rounds import ApiRounds, Body, Round, connect
from models.catalogue import ModelEntry
from models.chat_reply import first_choice, text_of, usage_of, user_message
from models.generator import Decoding, Generation, GenerationRequest

_VERSION = 1  # raised when a change here makes other texts of the same responses
_CHUNK = 1024  # requests claimed and asked together
_SEEDS = 2**53  # what JSON numbers, and signed integers of 64 bits, can all be


def load_api_generator(
    entry: ModelEntry, settings: Settings, budget: Budget, store: Store
) -> ApiGenerator:
    """Return what asks an entry of kind api to write; nothing is sent yet.

    Args:
        entry: says where, under which name, with which key and at which prices.
        settings: api_keys, api_in_flight.
        budget: of the run; one for all its models.
        store: the data root, where texts are kept.

    Raises:
        UsageError: the key is not set or is none, or there is a limit of money without prices.
    """
    return ApiGenerator(entry, connect(entry, settings, budget, store))


class ApiGenerator:
    """Has one model write; a ``Generator``.

    Of a ``Decoding``, temperature, top_p and max_new_tokens are sent (the entry's max_output_tokens
    where they are fewer), and a seed. The chat API has no parameter for the rest; ``stop`` is not
    applied either: what the model wrote is handed on whole.

    The ``reason`` of an error is ``too_long`` or ``content_filter``, where the server refuses a
    prompt alone, or says how it failed on it again and again.

    Args:
        entry: of kind api.
        rounds: asks it.
    """

    def __init__(self, entry: ModelEntry, rounds: ApiRounds) -> None:
        self._entry, self._rounds = entry, rounds

    @property
    def name(self) -> str:
        """The ``model`` column."""
        return self._entry.name

    @property
    def revision(self) -> str:
        """Digest of base URL and served name: no more is known of a model behind an API."""
        return self._rounds.cache.digest

    def generation_id(self, decoding: Decoding) -> str:
        """As ``Generator.generation_id``."""
        body = self._body(GenerationRequest("", "", 0), decoding)
        definition = json.dumps([decoding.digest, _VERSION, body])
        return hashlib.sha256(definition.encode()).hexdigest()[:8]

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """As ``Generator.generate``; the same prompt with the same seed is paid once.

        Raises:
            BudgetReached: the next request may cost more than is left.
            ModelLoadError: the key is refused, the account has no money, or there is no such model.
            ModelError: the server failed on several requests, and is taken to be away; the others
                are answered and kept.
            StorageError: answers cannot be kept; nothing more is asked.
        """
        keys = [self._rounds.cache.key_of(self._body(each, decoding)) for each in requests]
        for start in range(0, len(requests), _CHUNK):
            chunk = requests[start : start + _CHUNK]
            bodies: dict[str, Body] = {}
            asking: dict[str, list[GenerationRequest]] = {}
            for key, request in zip(keys[start : start + _CHUNK], chunk, strict=True):
                bodies[key] = self._body(request, decoding)
                asking.setdefault(key, []).append(request)
            round_ = Round()
            for key in self._rounds.ask(bodies, round_):
                for request in asking[key]:
                    yield _generation(request.key, key, round_)
            if round_.is_over:
                given_up = list(round_.given_up.values())
                raise self._rounds.explained(round_.failure, given_up, keys)

    def _body(self, request: GenerationRequest, decoding: Decoding) -> Body:
        """Return the request as wanted; what the model does not take is left out on sending."""
        most = decoding.max_new_tokens
        body: Body = {
            "model": self._entry.served_name,
            "messages": user_message(request.prompt),
            "temperature": decoding.temperature,
            "max_tokens": min(most, self._entry.max_output_tokens or most),
            "seed": request.seed % _SEEDS,
        }
        if decoding.top_p != 1:
            body["top_p"] = decoding.top_p
        return body


def _generation(name: str, key: str, round_: Round) -> Generation:
    if key in round_.given_up:
        return Generation(name, "", "error", None, round_.given_up[key])
    found = round_.found[key]
    if isinstance(found, Unanswerable):
        return Generation(name, "", "error", None, found.reason)
    message, finish = first_choice(found.answer)
    text, refusal = text_of(message.get("content")), message.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal
    if not text and finish == "content_filter":
        return Generation(name, "", "error", None, "content_filter")
    usage = usage_of(found.answer)
    num_tokens = None if usage is None else usage[1]
    return Generation(name, text, "length" if finish == "length" else "stop", num_tokens)
