"""Tokens of prompts and of what may follow, cut as lm-evaluation-harness cuts multiple choice.

A continuation's tokens are those that prompt and continuation together have beyond the number that
the prompt has by itself. They follow the prompt's own tokens, also where the two would be merged in
one text: as ``TemplateLM._encode_pair`` and ``HFLM.tok_encode`` of lm-eval 0.4 do, so that figures
can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from core.errors import NotMeasurable
from models.backend import Tokens
from models.text_model import TextModel


class OptionTokens(NamedTuple):
    """What a model reads of a prompt, and one of its continuations.

    Attributes:
        prefix: of the prompt, not empty; its end, where both are more than the context.
        continuation: empty where the tokenizer leaves nothing of it; not cut.
        is_truncated: whether the prompt lost tokens at its beginning.
    """

    prefix: Tokens
    continuation: Tokens
    is_truncated: bool


def tokenize_options(
    text_model: TextModel, prompts: Sequence[tuple[str, Sequence[str]]], context: int | None
) -> list[list[OptionTokens]]:
    """Cut prompts and their continuations.

    Args:
        text_model: the tokenizer, which adds its own special tokens as it does by default, but none
            to a prompt that begins with the start token's text.
        prompts: text and continuations of each. White space at a prompt's end is moved to its
            continuations; to an empty prompt belongs the start token.
        context: most tokens that the model reads; None: any number.

    Raises:
        NotMeasurable: a prompt is empty, and the tokenizer has no start token.
    """
    texts: list[str] = []
    for text, continuations in prompts:
        texts += [text.rstrip(), *(text + continuation for continuation in continuations)]
    ids = iter(_encode(text_model, texts, [bool(t.rstrip()) for t, c in prompts for _ in (t, *c)]))
    found = []
    for _, continuations in prompts:
        before = next(ids)
        together = [next(ids) for _ in continuations]
        pairs = [_pair(text_model, before, whole) for whole in together]
        found.append([_fit(*pair, context) for pair in pairs])
    return found


def _encode(text_model: TextModel, texts: Sequence[str], follows: Sequence[bool]) -> list[Tokens]:
    """Ids of texts; ``follows``: whether a text has a prompt in it, so gets special tokens."""
    start = text_model.start_text
    adds = [
        has_prompt and not (start is not None and text.startswith(start))
        for text, has_prompt in zip(texts, follows, strict=True)
    ]
    ids: dict[int, Tokens] = {}
    for added in set(adds):
        places = [place for place, each in enumerate(adds) if each == added]
        tokens = text_model.tokenizer.tokenize([texts[place] for place in places], added)
        ids |= {place: each.ids for place, each in zip(places, tokens, strict=True)}
    return [ids[place] for place in range(len(texts))]


def _pair(text_model: TextModel, before: Tokens, whole: Tokens) -> tuple[Tokens, Tokens]:
    if len(before):
        return before, whole[len(before) :]
    start = text_model.start_token
    if start is None:
        raise NotMeasurable("an empty prompt needs a start token, and the tokenizer has none")
    # A continuation that brings a start token along has it taken for the prompt.
    return np.array([start]), whole[1:] if len(whole) and whole[0] == start else whole


def _fit(prefix: Tokens, continuation: Tokens, context: int | None) -> OptionTokens:
    """Leave out what is too much on the left: the last token is not read, only predicted."""
    excess = 0 if context is None else len(prefix) + len(continuation) - (context + 1)
    # A continuation that is too long by itself stays so, and the caller sees it.
    cut = min(max(0, excess), len(prefix) - 1)
    return OptionTokens(prefix[cut:], continuation, cut > 0)
