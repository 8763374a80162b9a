"""A scoring protocol: all that decides which tokens of a text are charged, and given what."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from core.errors import NotMeasurable

# What lm-eval takes for the maximum of a model that does not state one.
UNSTATED_CONTEXT = 2048
# A model without a maximum reads so much of a whole document: some 100 kB of English.
_LONGEST_DOCUMENT = 2**15

Layout = Literal[
    "disjoint", "sliding", "rolling", "single", "swce", "pieces", "sliding-pieces", "solid"
]
Prefix = Literal["none", "start", "bos", "encoded-bos", "chat"]


@dataclass(frozen=True)
class ScoringProtocol:
    """One way to charge a text; ``docs/metrics.md`` has the formulas.

    Attributes:
        name: the ``protocol`` column of losses.
        description: what it does and where it is odd, for people.
        layout: disjoint windows, sliding ones, lm-eval's rolling ones, a single one at the
            beginning of each document, OpenCompass' or llm-compressive's (disjoint, sliding) over
            a stream, or none: a solid archive of the partition.
        context: tokens of a window, prefix included (rolling, swce: tokens of the input); None is
            the model's maximum.
        stride: by how many tokens windows move on; None where they do not overlap.
        prefix: what precedes a window's text as context: nothing; the start token (BOS, else EOS);
            BOS alone; what the tokenizer makes of the text of BOS, as a rule twice BOS where it
            adds BOS by itself; or the chat template up to where the model would answer.
        special_tokens: whether the text's tokens include what the tokenizer adds by itself.
        scores_first: whether a window's first token is scored where nothing precedes it (it is
            then charged ln of the vocabulary's size); if not, its bytes count all the same.
        shortens: whether a model with a shorter context is scored with that; if not, such a model
            is not measurable.
        max_chars: so many characters (bytes of media) of each document are scored and counted.
        joined_by: what documents are joined with into one stream; None: each by itself.
        max_stream_bytes: the stream ends before the document that would make it longer.
        full_windows: how many sliding pieces, at the beginning, are scored from their second token.
    """

    name: str
    description: str
    layout: Layout
    context: int | None
    stride: int | None = None
    prefix: Prefix = "start"
    special_tokens: bool = False
    scores_first: bool = True
    shortens: bool = False
    max_chars: int | None = None
    joined_by: str | None = None
    max_stream_bytes: int | None = None
    full_windows: int = 1

    @property
    def digest(self) -> str:
        """Eight hex digits over the definition; name and description do not count.

        Fields at their default are left out, so that a field added later (with the default that
        means "as before") changes no hash.
        """
        fields = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("name", "description")
            and getattr(self, field.name) != field.default
        }
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def is_stream(self) -> bool:
        """Whether windows run across documents."""
        return self.joined_by is not None

    @property
    def charges_every_token(self) -> bool:
        """Whether the tokens of a text, and no others, are charged once each, in their order."""
        return self.scores_first and not self.special_tokens and not self.is_stream

    def effective_context(self, model_context: int | None) -> int:
        """Return the context in tokens for a model whose maximum is given (None: it has none).

        Raises:
            NotMeasurable: the model cannot take windows as long as this protocol's, or the
                protocol is for compressors.
        """
        if self.layout == "solid":
            raise NotMeasurable(
                f"protocol {self.name} compresses a partition as one piece, which no model's "
                "window holds; score controls with it"
            )
        if self.context is None:
            unstated = _LONGEST_DOCUMENT if self.layout == "single" else UNSTATED_CONTEXT
            return model_context or unstated
        if model_context is None or self.context <= model_context:
            return self.context
        if self.shortens:
            return model_context
        raise NotMeasurable(
            f"protocol {self.name} has windows of {self.context} tokens and the model takes at "
            f"most {model_context}; ask for --context {model_context}, or use the default protocol"
        )
