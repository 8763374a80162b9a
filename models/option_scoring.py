"""Log-probabilities of a prompt's continuations, many prompts in batches.

Prompts stream through in blocks. Those of a block are cut into tokens, and run in batches of like
length, each by the first way that takes it (``models.branches``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from core.errors import NotMeasurable
from models.backend import Backend, DeviceFull, Losses, Tokens
from models.branch_cache import SharedCache
from models.branches import OneByOne, SharedRow, Tree, Way
from models.forward import Forward
from models.option_tokens import OptionTokens, tokenize_options
from models.text_model import TextModel
from models.windows import plan_batches

_BLOCK_PROMPTS = 128  # cut into tokens at one time; enough to find many of like length


class TextPrompt(NamedTuple):
    """A text, and the texts that may follow it, as they stand."""

    text: str
    continuations: tuple[str, ...]


class OptionScore(NamedTuple):
    """What a model thinks of a continuation.

    Attributes:
        log_probability: of all its tokens after the prompt, in nats; NaN if the model gives none.
        num_tokens: of the continuation; 0 where the tokenizer leaves nothing of it.
        num_bytes: UTF-8 bytes of the continuation without white space in front.
        is_truncated: whether the prompt lost its beginning, to fit into the context.
        is_too_long: whether the continuation alone does not fit; it is not run then.
    """

    log_probability: float
    num_tokens: int
    num_bytes: int
    is_truncated: bool = False
    is_too_long: bool = False


class OptionScorer:
    """Scores continuations with one model.

    Args:
        name: of the model, for messages.
        text_model: its tokenizer.
        backend: runs it.
        context: most tokens that it takes at once; None: any number.
        budget: inputs in one batch, padding included; halved where the device's memory is full.
    """

    def __init__(
        self, name: str, text_model: TextModel, backend: Backend, context: int | None, budget: int
    ) -> None:
        self._name = name
        self._text_model = text_model
        self._context = context
        self.budget = budget
        self._last = OneByOne(backend)
        self.ways: list[Way] = []
        if isinstance(backend, Forward):
            row = SharedRow(backend, context)
            self.ways = [row]
            # With a mask that works, only rows that are too long are left for the cache.
            cache = SharedCache(backend)
            if cache.is_exact:
                self.ways.append(cache)

    def score(self, prompts: Sequence[TextPrompt]) -> Iterator[list[OptionScore]]:
        """Yield a score for each continuation of each prompt, in their order.

        A score does not depend on which other prompts there are.

        Raises:
            NotMeasurable: a prompt does not fit into the device's memory by itself; or one is
                empty, and the tokenizer has no start token.
        """
        rest = iter(prompts)
        while block := list(islice(rest, _BLOCK_PROMPTS)):
            yield from self._block(block)

    def _block(self, prompts: Sequence[TextPrompt]) -> Iterator[list[OptionScore]]:
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
        """Losses of each tree's branches; each way has batches of its own."""
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
        """A tree of very many branches in several, so that memory does not grow with them."""
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
        found: list[list[Losses]] = [[] for _ in trees]
        for batch in plan_batches([tree.width for tree in trees], self.budget):
            losses = self._run_batch(way, [trees[place] for place in batch])
            for place, each in zip(batch, losses, strict=True):
                found[place] = each
        return found

    def _run_batch(self, way: Way, trees: Sequence[Tree]) -> list[list[Losses]]:
        """Run a batch, in halves where the device has no room for it."""
        try:
            return way.losses(trees)
        except DeviceFull as error:
            full = error.with_traceback(None)  # lets go of the failed pass's arrays
        longest = max(tree.width for tree in trees)
        self.budget = max(1, min(self.budget, len(trees) * longest // 2))
        middle = len(trees) // 2
        if middle:
            return self._run_batch(way, trees[:middle]) + self._run_batch(way, trees[middle:])
        (tree,) = trees
        if len(tree.branches) == 1:
            raise NotMeasurable(
                f"{self._name}: a prompt of {longest} tokens does not fit into the device's "
                "memory; use another TIDEMARK_DTYPE, or a machine with more of it"
            ) from full
        return [[each for part in tree.split() for each in self._run_batch(way, [part])[0]]]


def _trees(
    options: Sequence[OptionTokens], context: int | None
) -> list[tuple[Tree, tuple[int, ...]]]:
    """Trees of the options that can be run, and which options each has.

    One tree, unless options of different lengths leave different parts of a prompt that is too
    long.
    """
    places: dict[int, list[int]] = {}
    for place, option in enumerate(options):
        if len(option.continuation) and not _is_too_long(option, context):
            places.setdefault(len(option.prefix), []).append(place)
    return [
        (
            Tree(options[own[0]].prefix, tuple(options[place].continuation for place in own)),
            tuple(own),
        )
        for own in places.values()
    ]


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
