"""Likelihoods of a prompt and of its possible answers, token by token, from a model with logits.

The model reads prompt and answer as one text, without a chat template, as in the code of Qi et al.
2024 (``calculate_probability_and_perplexity``). Theirs tokenizes both apart; here, tokens are
divided as in ``models.options.scoring``, since a text's last blank belongs to the answer's token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from core.errors import NotMeasurable
from core.settings import Settings
from models.backends import identify
from models.catalogue import ModelEntry
from models.choice import settings_for
from models.generation import Decoding, Generation, GenerationRequest
from models.generation.local import generator_of
from models.options.scoring import OptionTokens, TextPrompt, tokenize_options
from models.scoring.scorer import DeviceFull, Losses, Tokens
from models.scoring.token_scorer import CausalLM, CausalLMIdentity, apart, load_causal_lm
from models.scoring.windows import plan_batches

_VERSION = "1"  # increase if a change here, or in a module used here, changes likelihoods


class AnswerLosses(NamedTuple):
    """The -ln p of tokens, in nats.

    Attributes:
        prompt: of each token of the prompt but the first, which nothing precedes.
        answer: of each token of the answer; empty if the tokenizer drops its text.
    """

    prompt: Losses
    answer: Losses

    @property
    def probability(self) -> float:
        """The probability per token: the geometric mean, (p1 · … · pn)^(1/n)."""
        return float(np.exp(-self.answer.mean())) if len(self.answer) else 0.0


class LikelihoodModel:
    """A ``Generator`` that gives likelihoods, too, with its weights loaded once."""

    def __init__(self, scorer: CausalLM, settings: Settings) -> None:
        self.name = scorer.name
        self.revision = scorer.revision
        self._generator = generator_of(scorer, settings)
        self._scorer = scorer
        self._budget = scorer.facts.batch_tokens or 1

    def generation_id(self, decoding: Decoding) -> str:
        """Implement ``Generator.generation_id``."""
        return self._generator.generation_id(decoding)

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """Implement ``Generator.generate``."""
        return self._generator.generate(requests, decoding)

    def measure(
        self, prompts: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[list[AnswerLosses] | None]:
        """Yield the losses of each prompt's answers, or None for a prompt that is too long.

        ``prompts`` are pairs of a prompt and its possible answers.

        Raises:
            NotMeasurable: a single prompt does not fit into the device's memory.
        """
        asked = [TextPrompt(text, tuple(answers), quoted=text) for text, answers in prompts]
        options = tokenize_options(self._scorer.text_model, asked, self._scorer.context)
        texts = []
        for own in options:
            if _fits(own):
                texts += [np.concatenate(row[:2]) for row in own]
        losses = iter(self._losses(texts))
        for own in options:
            if _fits(own):
                yield [_split(row, next(losses)) for row in own]
            else:
                yield None

    def _losses(self, texts: Sequence[Tokens]) -> list[Losses]:
        """Return the losses of each text's tokens, computed in batches."""
        found: list[Losses] = [np.zeros(0)] * len(texts)
        for batch in plan_batches([max(1, len(text) - 1) for text in texts], self._budget):
            for place, losses in zip(batch, self._run([texts[i] for i in batch]), strict=True):
                found[place] = losses
        return found

    def _run(self, texts: Sequence[Tokens]) -> list[Losses]:
        """Return the losses of texts; halve the batch while memory is full."""
        try:
            inputs = [text[:-1] for text in texts]
            targets = [text[1:] for text in texts]
            return self._scorer.engine.losses(inputs, targets)
        except DeviceFull as error:
            full = error.with_traceback(None)  # without the traceback, memory is freed
        if len(texts) == 1:
            raise NotMeasurable(
                f"{self.name}: a prompt of {len(texts[0])} tokens does not fit into the device's "
                "memory; use a smaller TIDEMARK_DTYPE, or a device with more memory"
            ) from full
        middle = len(texts) // 2
        return self._run(texts[:middle]) + self._run(texts[middle:])


def load_likelihoods(entry: ModelEntry, settings: Settings, _budget: object) -> LikelihoodModel:
    """Load a model that writes and gives likelihoods; errors are those of ``load_scorer``."""
    require_logits(entry)
    own = settings_for(entry, settings)
    return LikelihoodModel(load_causal_lm(entry, own), own)


def likelihood_id(entry: ModelEntry, settings: Settings) -> str:
    """Return a hash of the facts that determine likelihoods, without loading weights."""
    require_logits(entry)
    identity = identify(entry, settings)
    assert isinstance(identity, CausalLMIdentity)  # noqa: S101
    definition = f"{_VERSION} {identity.context} {identity.numerics}{apart(identity)}"
    return hashlib.sha256(definition.encode()).hexdigest()[:8]


def require_logits(entry: ModelEntry) -> None:
    """Raise NotMeasurable unless a model both writes texts here and gives likelihoods."""
    if entry.kind != "causal_lm":
        raise NotMeasurable(
            f"{entry.name}: a model of kind {entry.kind} does not both write inputs and give the "
            "likelihood of each token; name a causal language model, or ask without -likelihood"
        )


def _fits(options: Sequence[OptionTokens]) -> bool:
    """Return True if no answer is cut, so that a prompt's answers can be compared."""
    return not any(each.is_truncated for each in options)


def _split(row: OptionTokens, losses: Losses) -> AnswerLosses:
    num_prompt = len(row.prefix) - 1
    return AnswerLosses(losses[:num_prompt], losses[num_prompt:])
