"""Log-probabilities of continuations, for many prompts in batches.

Prompts are read in blocks. The prompts of a block are tokenized and run in batches of similar
length. Each prompt uses the first method of ``models.options.branches`` that supports it.

Tokens are divided as in multiple-choice tasks of lm-evaluation-harness. Prompt and continuation are
tokenized together. If the prompt alone has n tokens, the continuation gets the tokens from index n
on. The model reads them after the prompt's n tokens, even if a token contains text of both. So the
results equal those of lm-eval 0.4 (``TemplateLM._encode_pair`` and ``HFLM.tok_encode``). If one
token has the prompt's end and the whole continuation (``: A``), no token would be left, and lm-eval
fails. Then the continuation is tokenized by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from core.errors import NotMeasurable
from models.options.branches import OneByOne, SharedCache, SharedRow, Tree, Way
from models.scoring.forward import Forward
from models.scoring.scorer import DeviceFull, Engine, Losses, Tokens
from models.scoring.text_model import TextModel
from models.scoring.windows import plan_batches

_BLOCK_PROMPTS = 128  # prompts of a block; enough to find many prompts of similar length


class TextPrompt(NamedTuple):
    """The text of a prompt and of its possible continuations.

    ``quoted`` is the part of the prompt that others wrote. Control tokens that this part or a
    continuation spells are read as text. If it is empty, all are control tokens, as in lm-eval.
    """

    text: str
    continuations: tuple[str, ...]
    quoted: str = ""


class OptionTokens(NamedTuple):
    """The tokens of a prompt and of one of its continuations, as read by the model.

    Attributes:
        prefix: tokens of the prompt, at least one; only the last ones if the context is too short.
        continuation: all tokens of the continuation; empty if the tokenizer drops its text.
        is_truncated: True if the first tokens of the prompt were cut off.
    """

    prefix: Tokens
    continuation: Tokens
    is_truncated: bool


def tokenize_options(
    text_model: TextModel, prompts: Sequence[TextPrompt], context: int | None
) -> list[list[OptionTokens]]:
    """Tokenize prompts and their continuations.

    Args:
        text_model: a tokenizer; it adds its default special tokens, except to a prompt that begins
            with the start token's text.
        prompts: White space at a prompt's end is moved to its continuations; an empty prompt
            becomes the start token.
        context: maximum number of tokens that the model reads, or None for no maximum.

    Raise NotMeasurable if a prompt is empty and the tokenizer has no start token.
    """
    texts: list[_Text] = []
    for prompt in prompts:
        start = prompt.text.rstrip()
        texts.append(_Text(start, "", prompt.quoted, bool(start)))
        for continuation in prompt.continuations:
            texts.append(_Text(prompt.text, continuation, prompt.quoted, bool(start)))
    ids = iter(_encode(text_model, texts))
    tokenized = []
    for prompt in prompts:
        before = next(ids)
        together = [next(ids) for _ in prompt.continuations]
        pairs = [_pair(text_model, before, whole) for whole in together]
        for place, continuation in enumerate(prompt.continuations):
            prefix, own = pairs[place]
            if len(own) == 0 and continuation:
                pairs[place] = (prefix, _alone(text_model, prompt, continuation))
        tokenized.append([_fit(*pair, context) for pair in pairs])
    return tokenized


def _alone(text_model: TextModel, prompt: TextPrompt, continuation: str) -> Tokens:
    """Return the tokens of a continuation whose text is within a token of the prompt's end."""
    blanks = prompt.text[len(prompt.text.rstrip()) :]
    [tokens] = text_model.tokenizer.tokenize(
        [blanks + continuation], False, as_text=bool(prompt.quoted)
    )
    return tokens.ids


class _Text(NamedTuple):
    """A prompt and a continuation to tokenize together."""

    prompt: str
    continuation: str
    quoted: str
    has_prompt: bool


def _encode(text_model: TextModel, texts: Sequence[_Text]) -> list[Tokens]:
    """Tokenize prompts with continuations; add special tokens to texts with a prompt."""
    adds = [each.has_prompt and not _brings_start(text_model, each) for each in texts]
    ids: dict[int, Tokens] = {}
    for added in set(adds):
        places = [place for place, each in enumerate(adds) if each == added]
        wholes = [texts[place].prompt + texts[place].continuation for place in places]
        tokens = text_model.tokenizer.tokenize(wholes, added)
        ids |= {place: each.ids for place, each in zip(places, tokens, strict=True)}
    for place, (prompt, continuation, quoted, _) in enumerate(texts):
        other = text_model.quoted_ids(prompt, quoted, continuation, adds[place])
        if other is not None:
            ids[place] = other
    return [ids[place] for place in range(len(texts))]


def _brings_start(text_model: TextModel, text: _Text) -> bool:
    """Return True if a prompt begins with the start token, and not with a quotation of it."""
    start = text_model.start_text
    if start is None or not (text.prompt + text.continuation).startswith(start):
        return False
    quoted = text.quoted.strip()
    return not quoted or not text.prompt.startswith(quoted)


def _pair(text_model: TextModel, before: Tokens, whole: Tokens) -> tuple[Tokens, Tokens]:
    """Return the tokens of the prompt and of the continuation; ``whole`` has both together."""
    if len(before):
        return before, whole[len(before) :]
    start = text_model.start_token
    if start is None:
        raise NotMeasurable("an empty prompt needs a start token, and the tokenizer has none")
    # If the continuation itself starts with a start token, that token serves as the prompt.
    return np.array([start]), whole[1:] if len(whole) and whole[0] == start else whole


def _fit(prefix: Tokens, continuation: Tokens, context: int | None) -> OptionTokens:
    """Cut off a prefix's first tokens so that all tokens but the last fit into the context."""
    excess = 0 if context is None else len(prefix) + len(continuation) - (context + 1)
    # A continuation longer than the context is not cut; the caller detects it.
    cut = min(max(0, excess), len(prefix) - 1)
    return OptionTokens(prefix[cut:], continuation, cut > 0)


class OptionScore(NamedTuple):
    """The score of a continuation.

    Attributes:
        log_probability: log-probability after the prompt, in nats, or NaN if not computed.
        num_tokens: number of tokens of the continuation; 0 if the tokenizer drops its text.
        num_bytes: number of UTF-8 bytes of the continuation without leading white space.
        is_truncated: True if the first tokens of the prompt were cut off to fit into the context.
        is_too_long: True if the continuation alone exceeds the context, and so was not scored.
    """

    log_probability: float
    num_tokens: int
    num_bytes: int
    is_truncated: bool = False
    is_too_long: bool = False


class OptionScorer:
    """Scores continuations with one model."""

    def __init__(
        self, name: str, text_model: TextModel, engine: Engine, context: int | None, budget: int
    ) -> None:
        self._name = name
        self._text_model = text_model
        self._context = context
        self.budget = budget
        self._last = OneByOne(engine)
        self.ways: list[Way] = []
        if isinstance(engine, Forward):
            row = SharedRow(engine, context)
            self.ways = [row]
            # If ``SharedRow`` is exact, use the cache only for trees that are too long for one row.
            cache = SharedCache(engine)
            if cache.is_exact:
                self.ways.append(cache)

    def score(self, prompts: Sequence[TextPrompt]) -> Iterator[list[OptionScore]]:
        """Yield the scores of each prompt's continuations, in input order.

        A score does not depend on the other prompts. Raise NotMeasurable if a single prompt does
        not fit into memory, or if a prompt is empty and the tokenizer has no start token.
        """
        rest = iter(prompts)
        while block := list(islice(rest, _BLOCK_PROMPTS)):
            yield from self._block(block)

    def _block(self, prompts: Sequence[TextPrompt]) -> Iterator[list[OptionScore]]:
        """Yield the scores of each prompt's continuations; all prompts are run together."""
        options = tokenize_options(self._text_model, prompts, self._context)
        groups = [_trees(own, self._context) for own in options]
        losses = iter(self._run([tree for own in groups for tree, _ in own]))
        for prompt, own, trees in zip(prompts, options, groups, strict=True):
            nats = [math.nan] * len(own)
            for _, places in trees:
                for place, each in zip(places, next(losses), strict=True):
                    nats[place] = float(each.sum())
            yield [
                _score(text, tokens, -each, self._context)
                for text, tokens, each in zip(prompt.continuations, own, nats, strict=True)
            ]

    def _run(self, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Return the losses of each tree's branches, by the first method that takes the tree."""
        pieces: dict[Way, list[tuple[int, Tree]]] = {}
        for number, tree in enumerate(trees):
            way = next((each for each in self.ways if each.takes(tree)), self._last)
            parts = tree.split() if way is self._last else self._parts(tree)
            pieces.setdefault(way, []).extend((number, part) for part in parts)
        found: list[list[Losses]] = [[] for _ in trees]
        for way, own in pieces.items():
            losses = self._run_way(way, [tree for _, tree in own])
            for (number, _), each in zip(own, losses, strict=True):
                found[number] += each
        return found

    def _parts(self, tree: Tree) -> list[Tree]:
        """Split a tree with many branches into smaller trees, which need less memory."""
        room = max(self.budget, 2 * len(tree.prefix)) - len(tree.prefix)
        parts: list[list[Tokens]] = []
        left = 0
        for branch in tree.branches:
            if len(branch) > left or not parts:
                parts.append([])
                left = room
            parts[-1].append(branch)
            left -= len(branch)
        return [Tree(tree.prefix, tuple(part)) for part in parts]

    def _run_way(self, way: Way, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Run trees in batches of similar width by one method."""
        found: list[list[Losses]] = [[] for _ in trees]
        for batch in plan_batches([tree.width for tree in trees], self.budget):
            losses = self._run_batch(way, [trees[place] for place in batch])
            for place, each in zip(batch, losses, strict=True):
                found[place] = each
        return found

    def _run_batch(self, way: Way, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Run a batch; if it does not fit into memory, lower the budget and run its halves."""
        try:
            return way.losses(trees)
        except DeviceFull as error:
            full = error.with_traceback(None)  # without the traceback, memory is freed
        longest = max(tree.width for tree in trees)
        self.budget = max(1, min(self.budget, len(trees) * longest // 2))
        middle = len(trees) // 2
        if middle:
            return self._run_batch(way, trees[:middle]) + self._run_batch(way, trees[middle:])
        (tree,) = trees
        if len(tree.branches) == 1:
            raise NotMeasurable(
                f"{self._name}: a prompt of {longest} tokens does not fit into the device's "
                "memory; use a smaller TIDEMARK_DTYPE, or a device with more memory"
            ) from full
        losses = []
        for part in tree.split():
            losses += self._run_batch(way, [part])[0]
        return [losses]


def _trees(
    options: Sequence[OptionTokens], context: int | None
) -> list[tuple[Tree, tuple[int, ...]]]:
    """Return trees of the options that are not too long, each with the indices of its options."""
    # There is one tree, unless a long prompt is truncated differently for some options.
    places: dict[int, list[int]] = {}
    for place, option in enumerate(options):
        if len(option.continuation) and not _is_too_long(option, context):
            places.setdefault(len(option.prefix), []).append(place)
    trees = []
    for own in places.values():
        branches = tuple(options[place].continuation for place in own)
        trees.append((Tree(options[own[0]].prefix, branches), tuple(own)))
    return trees


def _is_too_long(option: OptionTokens, context: int | None) -> bool:
    return context is not None and len(option.continuation) > context


def _score(
    text: str, tokens: OptionTokens, log_probability: float, context: int | None
) -> OptionScore:
    return OptionScore(
        log_probability=log_probability,
        num_tokens=len(tokens.continuation),
        num_bytes=len(text.lstrip().encode()),
        is_truncated=tokens.is_truncated,
        is_too_long=_is_too_long(tokens, context),
    )
