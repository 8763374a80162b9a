"""Generation: the interface of models that continue texts, local or behind an API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Decoding:
    """The settings for choosing tokens and ending texts.

    Attributes:
        temperature: divisor of the logits; with 0, the most likely token is always chosen.
        top_p: choose from the fewest tokens whose total probability reaches this number.
        top_k: choose from this number of most likely tokens, or from all tokens if None.
        repetition_penalty: divides positive logits, and multiplies negative logits, of tokens that
            occur in the prompt or the text so far (Keskar et al. 2019).
        stop: a regular expression; a text ends at the end of its first match.
    """

    max_new_tokens: int
    min_new_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = None
    repetition_penalty: float = 1.0
    stop: str | None = None

    @property
    def digest(self) -> str:
        """Hash of all fields, eight hex digits."""
        definition = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(definition.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class GenerationRequest:
    """A request to continue one prompt.

    Attributes:
        key: unique among the requests of one call.
        prompt: text to continue; for a chat model, the message of the user.
        seed: 64-bit number that determines all random choices for this text. Apart from rounding,
            the text does not depend on other requests of the call.
    """

    key: str
    prompt: str
    seed: int


@dataclass(frozen=True)
class Generation:
    """The outcome of a request.

    Attributes:
        finish: ``stop`` if the model or ``Decoding.stop`` ended the text; ``length`` if the text
            was cut off; ``error`` if there is no text (``reason`` has the cause).
        num_tokens: number of generated tokens, or None if not reported.
    """

    key: str
    text: str
    finish: Literal["stop", "length", "error"]
    num_tokens: int | None = None
    reason: str | None = None


class Generator(Protocol):
    """A model that continues texts."""

    @property
    def name(self) -> str:
        """Name of the model, as in the ``model`` column."""

    @property
    def revision(self) -> str:
        """Version of weights and tokenizer; for an API model, a digest of URL and served name."""

    def generation_id(self, decoding: Decoding) -> str:
        """Return a short hash of the facts that determine the texts, without the weights."""

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """Yield one generation for each request as soon as it is ready, in any order.

        Raises:
            NotMeasurable: the model cannot generate, or a single prompt does not fit into memory.
            ModelError: a server cannot be reached, or refuses requests.
        """
