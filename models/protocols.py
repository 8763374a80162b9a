"""Protocols: how a text becomes windows, and which of its tokens are charged.

A figure means something only together with its protocol, so each has a name (a column of every
loss) and a hash of its definition (part of every cell's file name). What windows exactly follow
from a protocol is said, and done, in ``windows.py``. The variants of an entry have names that
:func:`get_protocol` reads back: ``disjoint-512``, ``sliding-1024-256``, ``uncheatable-512``,
``lm-eval-1024``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from core.errors import NotMeasurable, UnknownName, UsageError

# What lm-eval takes for the maximum of a model that does not state one.
UNSTATED_CONTEXT = 2048

Layout = Literal["disjoint", "sliding", "rolling"]


@dataclass(frozen=True)
class ScoringProtocol:
    """One way to charge a text; ``docs/metrics.md`` has the formulas.

    Attributes:
        name: the ``protocol`` column of losses.
        description: what it does and where it is odd, for people.
        layout: disjoint windows, sliding windows, or lm-eval's rolling ones.
        context: tokens of a window, start token included (rolling: tokens of the input); None is
            the model's maximum.
        stride: tokens scored by each later sliding window; None for the other layouts.
        start_token: whether BOS (else EOS) precedes the text as context.
        special_tokens: whether the text's tokens include what the tokenizer adds by itself.
        scores_first: whether a window's first token is scored where nothing precedes it (it is
            then charged ln of the vocabulary's size); if not, its bytes count all the same.
        shortens: whether a model with a shorter context is scored with that; if not, such a model
            is not measurable.
    """

    name: str
    description: str
    layout: Layout
    context: int | None
    stride: int | None = None
    start_token: bool = True
    special_tokens: bool = False
    scores_first: bool = True
    shortens: bool = False

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

    def effective_context(self, model_context: int | None) -> int:
        """Return the context in tokens for a model whose maximum is given (None: it has none).

        Raises:
            NotMeasurable: the model cannot take windows as long as this protocol's.
        """
        if self.context is None:
            return model_context or UNSTATED_CONTEXT
        if model_context is None or self.context <= model_context:
            return self.context
        if self.shortens:
            return model_context
        raise NotMeasurable(
            f"protocol {self.name} has windows of {self.context} tokens and the model takes at "
            f"most {model_context}; ask for --context {model_context}, or use the default protocol"
        )


def _disjoint(context: int) -> ScoringProtocol:
    return ScoringProtocol(
        name=f"disjoint-{context}",
        description=f"Disjoint windows of {context} tokens including a start token (BOS, else "
        "EOS); every token is scored once, given only its own window. For models that take "
        "windows as long.",
        layout="disjoint",
        context=context,
    )


def _sliding(context: int, stride: int) -> ScoringProtocol:
    return ScoringProtocol(
        name="sliding" if (context, stride) == (2048, 512) else f"sliding-{context}-{stride}",
        description=f"Windows of {context} tokens moving on by {stride}; every token is scored "
        f"once, given at least {context - stride} tokens where the text has them, the start token "
        "counted. Controls have no context to slide: they code disjoint pieces as ever.",
        layout="sliding",
        context=context,
        stride=stride,
    )


def _uncheatable(context: int | None) -> ScoringProtocol:
    context = context or 1024
    return ScoringProtocol(
        name="uncheatable" if context == 1024 else f"uncheatable-{context}",
        description=f"Uncheatable Eval's: disjoint chunks of {context} tokens, the tokenizer's own "
        "special tokens among them. Odd: the first token of each chunk is not scored while its "
        "bytes count, so figures come out low, and lower for shorter chunks.",
        layout="disjoint",
        context=context,
        start_token=False,
        special_tokens=True,
        scores_first=False,
    )


def _lm_eval(context: int | None, special_tokens: bool = True) -> ScoringProtocol:
    name = "lm-eval" if special_tokens else "lm-eval-no-bos"
    quirk = (
        "Odd: where the tokenizer adds BOS by itself, BOS is also scored, given BOS."
        if special_tokens
        else "As with its add_bos_token=False: the tokenizer adds nothing, BOS is not scored."
    )
    return ScoringProtocol(
        name=name if context is None else f"{name}-{context}",
        description="lm-evaluation-harness's loglikelihood_rolling: BOS (else EOS), then disjoint "
        f"windows of {context or 'as many tokens as the model takes'}, each after one token of "
        f"context; the last is filled up with text before it. {quirk}",
        layout="rolling",
        context=context,
        special_tokens=special_tokens,
    )


_DEFAULT = dataclasses.replace(
    _disjoint(2048),
    name="default",
    description="Disjoint windows of 2,048 tokens including a start token (BOS, else EOS), or of "
    "the model's context where that is shorter; every token is scored once, given only its own "
    "window. A tokenizer without a start token is charged ln(vocabulary) for a window's first.",
    shortens=True,
)

_TABLE = {
    protocol.name: protocol
    for protocol in (
        _DEFAULT,
        _disjoint(4096),
        _disjoint(8192),
        _sliding(2048, 512),
        _uncheatable(1024),
        _lm_eval(None),
        _lm_eval(None, special_tokens=False),
    )
}

_VARIANT = re.compile(
    r"(disjoint|sliding|uncheatable|lm-eval|lm-eval-no-bos)-([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?"
)

_STRIDELESS: dict[str, Callable[[int | None], ScoringProtocol]] = {
    "uncheatable": _uncheatable,
    "lm-eval": _lm_eval,
    "lm-eval-no-bos": lambda context: _lm_eval(context, special_tokens=False),
}


def list_protocols() -> list[ScoringProtocol]:
    """Return the named protocols, the default first (variants are not listed)."""
    return list(_TABLE.values())


def get_protocol(
    name: str, context: int | None = None, stride: int | None = None
) -> ScoringProtocol:
    """Look up a protocol, or a variant of it.

    Args:
        name: of the table, or of a variant (``sliding-1024-256``).
        context: tokens of a window, in place of the named protocol's own.
        stride: makes a disjoint or sliding protocol slide by so many tokens. Where only the
            context of a sliding protocol is given, the stride is a quarter of it.

    Raises:
        UnknownName: no protocol has that name.
        UsageError: the protocol has no such variant.
    """
    if name == "disjoint" and context is not None:
        return _variant("disjoint", context, stride)
    known = _TABLE.get(name) or _parse(name)
    if known is None:
        variants = ["disjoint-<context>", "sliding-<context>-<stride>"]
        raise UnknownName("protocol", name, [*_TABLE, *variants])
    if context in (None, known.context) and stride in (None, known.stride):
        return known
    return _variant(_family(known), context or known.context, stride)


def _parse(name: str) -> ScoringProtocol | None:
    match = _VARIANT.fullmatch(name)
    if match is None:
        return None
    family, context, stride = match.groups()
    return _variant(family, int(context), int(stride) if stride else None)


def _family(protocol: ScoringProtocol) -> str:
    if protocol.layout == "rolling":
        return "lm-eval" if protocol.special_tokens else "lm-eval-no-bos"
    return protocol.layout if protocol.scores_first else "uncheatable"


def _variant(family: str, context: int | None, stride: int | None) -> ScoringProtocol:
    if context is not None and context < 2:
        raise UsageError(f"a context of {context} tokens leaves nothing to predict; give 2 or more")
    if family in _STRIDELESS:
        if stride is not None:
            raise UsageError(f"protocol {family} has no stride; leave --stride out")
        return _STRIDELESS[family](context)
    if context is None:
        raise UsageError(f"protocol {family} needs a context")
    if family == "disjoint" and stride is None:
        return _disjoint(context)
    stride = max(1, context // 4) if stride is None else stride
    if not 1 <= stride < context:
        raise UsageError(
            f"a stride of {stride} with a context of {context} tokens would leave tokens out or "
            f"score them without context; give 1 to {context - 1}"
        )
    return _sliding(context, stride)
