"""Definition of a protocol of scoring: windows, prefixes, and the tokens that count."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from core.errors import NotMeasurable

UNSTATED_CONTEXT = 2048  # context in tokens for a model that states none, as in lm-eval
_LONGEST_DOCUMENT = 2**15  # maximum tokens of a window that is a whole document; 100 kB of English

Layout = Literal[
    "disjoint", "sliding", "rolling", "single", "swce", "pieces", "sliding-pieces", "solid"
]
Prefix = Literal["none", "start", "bos", "eos", "newline", "encoded-bos", "chat"]


@dataclass(frozen=True)
class ScoringProtocol:
    """One way to score a text; ``docs/metrics.md`` has the formulas.

    Attributes:
        layout: kind of windows: over each document (disjoint, sliding, rolling, only a single first
            one), or over a stream of documents. ``solid`` compresses a partition as a whole.
        context: number of tokens of a window, prefix included, or None for the model's maximum. In
            the layouts rolling and swce, number of input tokens.
        stride: tokens from one window's start to the next, or None if windows do not overlap.
        prefix: tokens before a window's text: none; the start token (BOS, else EOS); BOS only; EOS
            only; the first token of a line break as text; the tokens of BOS as text (usually BOS
            twice if the tokenizer adds BOS by itself); or the chat template up to the model's
            answer.
        special_tokens: True if the text's tokens include special tokens added by the tokenizer.
        scores_first: True if a window's first token is scored (with no token before it, it costs
            ln(vocabulary size)); False if it is not scored, although its bytes count.
        replaces_first: True if the prefix takes the place of a window's first token, whose bytes
            count.
        shortens: True if windows are shortened for a model with a shorter context.
        max_chars: maximum number of scored characters (bytes of media) per document.
        joined_by: text between the documents of one stream, or None if there is no stream.
        max_stream_bytes: maximum size of the stream; it ends after the last document that fits.
        full_windows: number of first windows whose second to last tokens are all scored.
        sums: dtype of a window's token losses and of their sum. ``bfloat16`` is for comparison with
            peers only.
        parses_control: True if a control token that a text spells (``</s>``) is read as this token,
            as the peers do; False if it is read as text.
    """

    name: str
    description: str
    layout: Layout
    context: int | None
    stride: int | None = None
    prefix: Prefix = "start"
    special_tokens: bool = False
    scores_first: bool = True
    replaces_first: bool = False
    shortens: bool = False
    max_chars: int | None = None
    joined_by: str | None = None
    max_stream_bytes: int | None = None
    full_windows: int = 1
    sums: Literal["float64", "bfloat16"] = "float64"
    parses_control: bool = False

    @property
    def digest(self) -> str:
        """Hash (eight hex digits) of the fields, without name, description and defaults."""
        # So a new field changes no digest if its default keeps the old behaviour.
        # ``parses_control`` is left out: it decides only losses of texts that spell a control
        # token, whose cells have a scoring id of their own.
        fields: dict[str, object] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_named = field.name in ("name", "description", "parses_control")
            if not is_named and value != field.default:
                fields[field.name] = value
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def is_stream(self) -> bool:
        """True if all documents of a partition form one stream."""
        return self.joined_by is not None

    @property
    def charges_every_token(self) -> bool:
        """True if exactly the tokens of a text are scored, once each, in order."""
        is_whole = self.scores_first and not self.replaces_first
        return is_whole and not self.special_tokens and not self.is_stream

    @property
    def needs_prefix(self) -> bool:
        """True if a model whose tokenizer lacks the prefix cannot be scored."""
        if self.layout == "rolling" or self.prefix in ("encoded-bos", "eos", "newline"):
            return True
        return self.layout == "disjoint" and self.prefix == "bos"

    def effective_context(self, model_context: int | None) -> int:
        """Return the context in tokens for a model with the given maximum (None: no maximum).

        Raise NotMeasurable if the windows exceed the maximum, or the protocol is for compressors.
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
