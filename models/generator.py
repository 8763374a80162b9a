"""What continues texts: the one interface of local models and of those behind an API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Decoding:
    """How a text is written.

    Attributes:
        max_new_tokens: at most.
        min_new_tokens: no end before.
        temperature: 0 takes the likeliest token each time.
        top_p: least sum of the probabilities of the tokens that are chosen from.
        top_k: most tokens that are chosen from; None: all.
        repetition_penalty: divides the positive logits of tokens that were there before, prompt
            included, and multiplies the negative ones (Keskar et al. 2019).
        stop: a regular expression; a text ends where it first matches, the match included.
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
        """Eight hex digits over all of it."""
        definition = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(definition.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class GenerationRequest:
    """One text to be continued.

    Attributes:
        key: names it among those that are asked for together.
        prompt: of a chat model the user's message, put into its template.
        seed: 64 bits that decide all choices; but for rounding, the text does not depend on what
            is asked beside it.
    """

    key: str
    prompt: str
    seed: int


@dataclass(frozen=True)
class Generation:
    """What became of a request.

    Attributes:
        key: of the request.
        text: what was written, without the prompt.
        finish: ``stop``: the model ended it, or ``Decoding.stop`` did; ``length``: it was cut;
            ``error``: there is none, and ``reason`` says why.
        num_tokens: written; None where nobody says.
        reason: of an error.
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
        """The ``model`` column."""

    @property
    def revision(self) -> str:
        """Of its weights and tokenizer; of an API model, what its server calls it."""

    def generation_id(self, decoding: Decoding) -> str:
        """Return a short hash over decoding, template, numerics and the code's version."""

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """Yield one generation for each request as soon as it is there, in any order.

        Raises:
            NotMeasurable: the model cannot be asked, or a single prompt does not fit into the
                device's memory.
            ModelError: a server cannot be reached, or refuses us.
        """
