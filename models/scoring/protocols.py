"""Protocols: how a text is divided into windows, and which of its tokens are scored.

Losses can be compared only if their protocol is the same. So the protocol's name is a column of all
losses, and a hash of its definition is part of each cell's file name. ``windows.py`` computes the
windows. :func:`get_protocol` parses names of variants: ``disjoint-512``, ``sliding-1024-256``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from core.errors import UnknownName, UsageError
from models.scoring.protocol import Prefix, ScoringProtocol


def _named(family: str, usual: tuple[int, ...], *sizes: int) -> str:
    """Return a protocol's name, with the sizes of windows in tokens unless they are usual."""
    return family if sizes == usual else "-".join([family, *map(str, sizes)])


def _disjoint(context: int) -> ScoringProtocol:
    """Return the protocol with disjoint windows of ``context`` tokens."""
    return ScoringProtocol(
        name=f"disjoint-{context}",
        description=f"Disjoint windows of {context} tokens including a start token (BOS, else "
        "EOS); every token is scored once, given only its own window. For models that take "
        "windows as long.",
        layout="disjoint",
        context=context,
    )


def _sliding(context: int, stride: int) -> ScoringProtocol:
    """Return the protocol with windows of ``context`` tokens that move on by ``stride``."""
    return ScoringProtocol(
        name=_named("sliding", (2048, 512), context, stride),
        description=f"Windows of {context} tokens moving on by {stride}; every token is scored "
        f"once, given at least {context - stride} tokens where the text has them, the start token "
        "counted. Controls have no context to slide: they code disjoint pieces, as under default.",
        layout="sliding",
        context=context,
        stride=stride,
    )


def _stream(context: int, stride: int) -> ScoringProtocol:
    """Return the protocol that joins the documents of a partition, with sliding windows."""
    return replace(
        _sliding(context, stride),
        name=_named("stream", (1900, 512), context, stride),
        description=f"All documents of the partition one after another as one stream; windows of "
        f"{context} tokens moving on by {stride}, one start token at the very beginning; every "
        "token is scored once and belongs to its document. Documents are context to the next.",
        joined_by="",
    )


def _uncheatable(context: int) -> ScoringProtocol:
    """Return Uncheatable Eval's first protocol."""
    return ScoringProtocol(
        name=_named("uncheatable", (1024,), context),
        description=f"Uncheatable Eval's: disjoint chunks of {context} tokens, the tokenizer's own "
        "special tokens among them. Odd: the first token of each chunk is not scored while its "
        "bytes count, so figures come out low, and lower for shorter chunks.",
        layout="disjoint",
        context=context,
        prefix="none",
        special_tokens=True,
        scores_first=False,
        parses_control=True,
    )


def _uncheatable_bos(context: int) -> ScoringProtocol:
    """Return Uncheatable Eval's protocol with ``add_bos``."""
    return replace(
        _uncheatable(context),
        name=_named("uncheatable-bos", (1024,), context),
        description="Uncheatable Eval's with add_bos: as uncheatable, with BOS before each chunk, "
        "which is shorter by as much. Odd: BOS is what the tokenizer makes of its text, so two "
        "tokens where it adds BOS by itself; and the first token after it is still not scored.",
        prefix="encoded-bos",
    )


_LLM_COMPRESSIVE_BYTES = 2**23  # of its stream
_STARTS: dict[Prefix, str] = {"bos": "BOS", "eos": "EOS", "newline": "the token of a line break"}


def _uncheatable_start(start: Prefix, replaces: bool, chunk: int = 4000) -> ScoringProtocol:
    """Return Uncheatable Eval's protocol with a start token before a chunk, or in it."""
    if replaces:
        way = "replace"
        context = chunk
        place = "in the place of its first token"
        odd = (
            " Odd: a chunk's first token is not scored while its bytes count, unless the tokenizer "
            "added it by itself."
        )
    else:
        way = "add"
        context = chunk + 1
        place = "before it; every token is scored"
        odd = ""
    return ScoringProtocol(
        name=_named(f"uncheatable-{way}-{start}", (4000,), chunk),
        description=f"Uncheatable Eval's since late 2025: disjoint chunks of {chunk} tokens, each "
        f"with {_STARTS[start]} {place}. Its board takes for each model the start that is best on "
        f"a development set: tidemark protocols choose (extra uncheatable).{odd}",
        layout="disjoint",
        context=context,
        prefix=start,
        replaces_first=replaces,
        parses_control=True,
    )


# The six start-token modes of Uncheatable Eval, by family name.
_UNCHEATABLE_STARTS: dict[str, Callable[..., ScoringProtocol]] = {
    f"uncheatable-{way}-{start}": partial(_uncheatable_start, start, way == "replace")
    for way in ("add", "replace")
    for start in _STARTS
}
UNCHEATABLE_STARTS = tuple(_UNCHEATABLE_STARTS)


def _lm_eval(context: int | None, special_tokens: bool = True) -> ScoringProtocol:
    """Return lm-evaluation-harness's protocol, with or without the tokenizer's special tokens."""
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
        parses_control=True,
    )


def _swce(context: int, stride: int) -> ScoringProtocol:
    """Return OpenCompass' protocol, sliding window cross entropy."""
    return ScoringProtocol(
        name=_named("opencompass-swce", (1900, 512), context, stride),
        description="OpenCompass' sliding window cross entropy (and llm-compression's): documents "
        "with the special tokens that the tokenizer adds, in one stream; windows read "
        f"{context} tokens and move on by {stride}, the last {stride} are scored. Odd: those "
        "special tokens are scored, the very first token is not, the tail that fills no window is "
        "not scored while its characters count, a stream shorter than a window gives nothing.",
        layout="swce",
        context=context,
        stride=stride,
        prefix="none",
        special_tokens=True,
        scores_first=False,
        joined_by="",
        parses_control=True,
    )


def _pieces(context: int) -> ScoringProtocol:
    """Return llm-compressive's protocol without a stride."""
    return ScoringProtocol(
        name=_named("llm-compressive", (2048,), context),
        description="llm-compressive's: documents joined by spaces (which count as text) into a "
        f"stream of at most 8 MiB, cut into pieces of {context} tokens. Odd: BOS takes the place "
        "of each piece's last token, which is not scored while its bytes count (without BOS, the "
        "first is not scored); the last piece is dropped, and its bytes with it, those of the text "
        "of its BOS included.",
        layout="pieces",
        context=context,
        prefix="bos",
        scores_first=False,
        joined_by=" ",
        max_stream_bytes=_LLM_COMPRESSIVE_BYTES,
        parses_control=True,
    )


def _sliding_pieces(context: int, stride: int, full_windows: int = 1) -> ScoringProtocol:
    """Return llm-compressive's protocol with a stride; UsageError for a stride of 1."""
    name = "llm-compressive-sw"
    if stride == 1:
        raise UsageError(f"protocol {name} scores a stride less one; give a stride of 2 or more")
    return ScoringProtocol(
        name=_named(name, (2048, 512, 1), context, stride, full_windows).removesuffix("-1"),
        description="llm-compressive's with a stride: the same stream, windows of "
        f"{context} tokens moving on by {stride}, no BOS. Odd: {stride - 1} tokens of each are "
        "scored, so one in every stride never is; all windows of the first batch (of "
        f"{full_windows}, the last number of the name) are scored in full, which counts tokens "
        "several times; what fills no window is dropped.",
        layout="sliding-pieces",
        context=context,
        stride=stride,
        prefix="none",
        scores_first=False,
        joined_by=" ",
        max_stream_bytes=_LLM_COMPRESSIVE_BYTES,
        full_windows=full_windows,
        parses_control=True,
    )


_DEFAULT = replace(
    _disjoint(2048),
    name="default",
    description="Disjoint windows of 2,048 tokens including a start token (BOS, else EOS), or of "
    "the model's context where that is shorter; every token is scored once, given only its own "
    "window. A tokenizer without a start token is charged ln(vocabulary) for a window's first.",
    shortens=True,
)

_OWN_CONTEXT = replace(
    _DEFAULT,
    name="own-context",
    description="As default, with windows as long as the model takes (2,048 tokens where it has "
    "no maximum).",
    context=None,
    shortens=False,
)
_FIRST_CHARS = replace(
    _DEFAULT,
    name="first-5000-chars",
    description="FreshBench's: the first 5,000 characters of each document under the default's "
    "windows; only what is scored is divided by.",
    max_chars=5000,
)
_WHOLE_DOCUMENT = ScoringProtocol(
    name="whole-document",
    description="One window a document, as long as the model takes (32,768 tokens where it has no "
    "maximum); what does not fit is neither scored nor counted.",
    layout="single",
    context=None,
)
_CHAT = replace(
    _DEFAULT,
    name="chat",
    description="As default, each window after the model's chat template with an empty question, "
    "as if the text were the model's answer. For chat models, which all other protocols score as "
    "plain text.",
    prefix="chat",
)
_SOLID = ScoringProtocol(
    name="solid",
    description="For controls: the whole partition as one stream through one compressor, a single "
    "row. What a compressor can learn across documents; models have no window as long.",
    layout="solid",
    context=None,
)

_TABLE = {
    protocol.name: protocol
    for protocol in (
        _DEFAULT,
        _OWN_CONTEXT,
        *map(_disjoint, (2048, 4096, 8192)),
        _sliding(2048, 512),
        _stream(1900, 512),
        _FIRST_CHARS,
        _WHOLE_DOCUMENT,
        _CHAT,
        _SOLID,
        _uncheatable(1024),
        _uncheatable_bos(1024),
        *(make() for make in _UNCHEATABLE_STARTS.values()),
        _lm_eval(None),
        _lm_eval(None, special_tokens=False),
        _swce(1900, 512),
        _pieces(2048),
        _sliding_pieces(2048, 512),
    )
}

# Functions that create a protocol's variant with other sizes, by the protocol's name.
_FAMILIES: dict[str, Callable[..., ScoringProtocol]] = {
    "disjoint": _disjoint,
    "uncheatable": _uncheatable,
    "uncheatable-bos": _uncheatable_bos,
    **_UNCHEATABLE_STARTS,
    "lm-eval": _lm_eval,
    "lm-eval-no-bos": lambda context: _lm_eval(context, special_tokens=False),
    "llm-compressive": _pieces,
    "sliding": _sliding,
    "stream": _stream,
    "opencompass-swce": _swce,
    "llm-compressive-sw": _sliding_pieces,
}
_STRIDED = ("sliding", "stream", "opencompass-swce", "llm-compressive-sw")
_FAMILY_OF = {
    name: "disjoint" for name in _TABLE if name in ("default", "own-context") or "disjoint" in name
}
_STRIDES = 4  # in a context, if no stride is given
_BF16 = "-bf16"  # end of the names of variants with sums in bfloat16
_VARIANT = re.compile(r"(?P<family>[a-z][a-z-]*[a-z])(?P<sizes>(?:-[1-9][0-9]{0,8}){0,3})")


def list_protocols() -> list[ScoringProtocol]:
    """Return all protocols without their variants, the default protocol first."""
    return list(_TABLE.values())


def get_protocol(
    name: str, context: int | None = None, stride: int | None = None
) -> ScoringProtocol:
    """Return the protocol of a name, or its variant with another context or stride in tokens.

    ``name`` may also be a variant's name (``sliding-1024-256``). A disjoint protocol with a stride
    becomes a sliding protocol. The suffix ``-bf16`` means sums in bfloat16. If only a context is
    given, the stride is a quarter of the context.
    Raise UnknownName if no protocol has the name, and UsageError if it has no such variant.
    """
    if name.endswith(_BF16):
        return _with_bf16_sums(get_protocol(name.removesuffix(_BF16), context, stride))
    if name in _TABLE:
        known = _TABLE[name]
        if context in (None, known.context) and stride in (None, known.stride):
            return known
        context = known.context if context is None else context
        return _variant(_FAMILY_OF.get(name, name), context, stride)
    match = _VARIANT.fullmatch(name)
    if match is None or match["family"] not in _FAMILIES:
        variants = [f"{each}-<context>{'-<stride>' * (each in _STRIDED)}" for each in _FAMILIES]
        raise UnknownName("protocol", name, [*_TABLE, *variants])
    sizes = [int(size) for size in match["sizes"].split("-")[1:]]
    named: list[int | None] = [*sizes, *[None] * (3 - len(sizes))]
    named_context, named_stride, full_windows = named
    context = named_context if context is None else context
    stride = named_stride if stride is None else stride
    return _variant(match["family"], context, stride, full_windows)


def _with_bf16_sums(protocol: ScoringProtocol) -> ScoringProtocol:
    """Return a protocol of Uncheatable Eval with its sums in bfloat16, for comparison only."""
    if not protocol.name.startswith("uncheatable"):
        raise UsageError(
            f"protocol {protocol.name} has no variant with sums in bfloat16; only those of "
            "Uncheatable Eval have one"
        )
    return replace(
        protocol,
        name=f"{protocol.name}{_BF16}",
        description=f"{protocol.description} Each token's loss and each chunk's sum are rounded to "
        "bfloat16 (8 bits), by up to 0.4 %, as Uncheatable Eval does for weights in bfloat16. For "
        "comparison with its figures only.",
        sums="bfloat16",
    )


def _variant(
    family: str, context: int | None, stride: int | None, full_windows: int | None = None
) -> ScoringProtocol:
    """Return a protocol of a family with these sizes in tokens; raise UsageError if it has none."""
    if family == "disjoint" and stride is not None:
        family = "sliding"
    if family not in _FAMILIES:
        raise UsageError(f"protocol {family} has no variants; leave --context and --stride out")
    if family not in _STRIDED and stride is not None:
        raise UsageError(f"protocol {family} has no stride; leave --stride out")
    if context is None:
        raise UsageError(f"protocol {family} needs a context")
    if context < 2:
        raise UsageError(f"a context of {context} tokens leaves nothing to predict; give 2 or more")
    if family not in _STRIDED:
        return _FAMILIES[family](context)
    stride = max(1, context // _STRIDES) if stride is None else stride
    if not 1 <= stride < context:
        raise UsageError(
            f"a stride of {stride} with a context of {context} tokens would leave tokens out or "
            f"score them without context; give 1 to {context - 1}"
        )
    if full_windows is None:
        return _FAMILIES[family](context, stride)
    if family != "llm-compressive-sw":
        raise UsageError(f"protocol {family} has two sizes, context and stride")
    return _sliding_pieces(context, stride, full_windows)
