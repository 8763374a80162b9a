"""Answers of models that give likelihoods: the probability of each option of a question.

The probabilities are a softmax over the options' log-probabilities after the prompt, normalised as
the protocol states. If the options are rotated, the result is the mean over the rotations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from core.cells.answers import Answer
from core.corpus.questions import Question
from core.errors import NotMeasurable
from core.settings import Settings
from models.backends import load_scorer
from models.catalogue import ModelEntry
from models.options.protocols import Answerer, AnswerProtocol, Prompt, prompts_of
from models.options.scoring import OptionScore, OptionScorer, TextPrompt
from models.scoring.scorer import Identity
from models.scoring.token_scorer import TokenIdentity, TokenScorer, apart

_VERSION = "1"  # increase if a change here, or in a module used here, changes answers
_BLOCK_PROMPTS = 512  # questions are added to a block until it has this number of prompts
_BLANK_CONTINUATIONS = 16  # maximum number of options scored after one blank prompt

Floats = npt.NDArray[np.float64]


def load_answerer(entry: ModelEntry, settings: Settings) -> Answerer:
    """Load an entry's scorer to answer questions; errors are those of ``load_scorer``."""
    scorer = load_scorer(entry, settings)
    assert isinstance(scorer, TokenScorer)  # noqa: S101
    return LocalAnswerer(scorer)


def answering_id(identity: Identity, protocol: AnswerProtocol, has_control: bool = False) -> str:
    """Return a short hash over protocol, prompt, context, dtype, attention and code version.

    ``has_control``: True if one of the questions spells a control token of the model.

    ``models.backends.identify`` returns the identity without loading weights. Raise NotMeasurable
    if the model cannot answer under this protocol.
    """
    if not isinstance(identity, TokenIdentity):
        raise NotMeasurable(f"{identity.name}: a compressor has no answers; name a language model")
    if protocol.mode == "generate":
        raise NotMeasurable(
            f"{identity.name}: protocol {protocol.name} is for models that only write; ask this "
            "one under letter or text, which read probabilities"
        )
    definition = f"{_VERSION} {protocol.digest} {identity.context} {identity.numerics}"
    definition += apart(identity)
    if has_control:
        definition += " as text"  # once, such texts were read as control tokens
    return hashlib.sha256(definition.encode()).hexdigest()[:8]


class LocalAnswerer:
    """An ``Answerer`` that uses the likelihoods of tokens.

    Without a choice, the ``reason`` is ``too_many_options`` (more options than letters) or
    ``no_tokens`` (an option has no tokens). The reason is ``too_long`` if an option alone exceeds
    the model's context, and ``non_finite`` if a likelihood is not finite. With a choice, the reason
    is ``truncated`` if the beginning of a prompt was cut off.
    """

    def __init__(self, scorer: TokenScorer) -> None:
        self.name = scorer.name
        self.revision = scorer.revision
        self._identity = scorer.identity
        self._chat_text = scorer.text_model.chat_text
        self._scorer = OptionScorer(
            name=scorer.name,
            text_model=scorer.text_model,
            engine=scorer.engine,
            context=scorer.context,
            budget=scorer.facts.batch_tokens or 1,
        )
        self._blanks: dict[tuple[str, str], OptionScore] = {}  # by prompt and continuation

    def answering_id(self, protocol: AnswerProtocol) -> str:
        """Implement ``Answerer.answering_id``."""
        if protocol.is_chat and self._chat_text is None:
            raise NotMeasurable(
                f"{self.name}: protocol {protocol.name} needs a chat template and the tokenizer "
                "has none; ask under a protocol without chat"
            )
        return answering_id(self._identity, protocol)

    def answer(self, questions: Sequence[Question], protocol: AnswerProtocol) -> Iterator[Answer]:
        """Implement ``Answerer.answer``."""
        self.answering_id(protocol)  # raises if the protocol is not supported
        for block in _blocks(questions, protocol):
            asked = [prompt for _, prompts in block for prompt in prompts]
            scores = self._scores(asked, protocol)
            for question, prompts in block:
                own = [next(scores) for _ in prompts]
                yield _answer(question, prompts, own, protocol)

    def _scores(
        self, prompts: Sequence[Prompt], protocol: AnswerProtocol
    ) -> Iterator[tuple[list[OptionScore], Floats]]:
        """Yield each prompt's option scores and unconditional log-probabilities (0 if unused)."""
        asked = [self._shown(prompt.text, prompt.continuations, protocol) for prompt in prompts]
        if protocol.normalisation != "unconditional":
            for scores in self._scorer.score(asked):
                yield scores, np.zeros(len(scores))
            return
        blanks = [self._shown(prompt.blank, prompt.continuations, protocol) for prompt in prompts]
        self._score_blanks(blanks)
        for scores, blank in zip(self._scorer.score(asked), blanks, strict=True):
            prior = [self._blanks[blank.text, each] for each in blank.continuations]
            yield scores, np.array([each.log_probability for each in prior])

    def _shown(
        self, text: str, continuations: Sequence[str], protocol: AnswerProtocol
    ) -> TextPrompt:
        """Return a prompt as the model reads it: in its chat template if the protocol says so."""
        if not protocol.is_chat or self._chat_text is None:
            return TextPrompt(text, tuple(continuations), quoted=text)
        own = tuple(each.removeprefix(" ") for each in continuations)
        return TextPrompt(self._chat_text(text), own, quoted=text)

    def _score_blanks(self, blanks: Iterable[TextPrompt]) -> None:
        """Score continuations after a prompt without a question, if they are not yet scored."""
        missing: dict[tuple[str, str], dict[str, None]] = {}  # a dict keeps order, each once
        for blank in blanks:
            for each in blank.continuations:
                if (blank.text, each) not in self._blanks:
                    missing.setdefault((blank.text, blank.quoted), {})[each] = None
        prompts = []
        for (text, quoted), own in missing.items():
            continuations = tuple(own)
            for first in range(0, len(continuations), _BLANK_CONTINUATIONS):
                part = continuations[first : first + _BLANK_CONTINUATIONS]
                prompts.append(TextPrompt(text, part, quoted))
        for prompt, scores in zip(prompts, self._scorer.score(prompts), strict=True):
            for each, score in zip(prompt.continuations, scores, strict=True):
                self._blanks[prompt.text, each] = score


def _blocks(
    questions: Iterable[Question], protocol: AnswerProtocol
) -> Iterator[list[tuple[Question, list[Prompt]]]]:
    """Yield questions with their prompts, in blocks of about ``_BLOCK_PROMPTS`` prompts."""
    block: list[tuple[Question, list[Prompt]]] = []
    held = 0
    for question in questions:
        prompts = prompts_of(question, protocol)
        block.append((question, prompts))
        held += len(prompts) + 1  # + 1: a question without prompts takes memory, too
        if held >= _BLOCK_PROMPTS:
            yield block
            block = []
            held = 0
    if block:
        yield block


def _answer(
    question: Question,
    prompts: Sequence[Prompt],
    scored: Sequence[tuple[list[OptionScore], Floats]],
    protocol: AnswerProtocol,
) -> Answer:
    """Return the mean of the options' probabilities over all prompts, or why there is none."""
    all_scores = [score for scores, _ in scored for score in scores]
    reason = "too_many_options" if not prompts else _reason(all_scores)
    if reason is None:
        mean = np.zeros(len(question.options))  # by option
        places = np.zeros(len(question.options))  # by position in the prompt
        for prompt, (scores, prior) in zip(prompts, scored, strict=True):
            values = normalised(scores, prior, protocol)
            if not np.isfinite(values).all():
                reason = "non_finite"
                break
            weights = np.exp(values - values.max())
            probabilities = weights / weights.sum() / len(prompts)
            mean[list(prompt.order)] += probabilities
            places += probabilities
    if reason is not None:
        return Answer(question.question_id, None, None, reason)
    return Answer(
        question_id=question.question_id,
        probabilities=tuple(mean.tolist()),
        chosen_index=int(np.argmax(mean)),
        reason="truncated" if any(score.is_truncated for score in all_scores) else None,
        place_probabilities=tuple(places.tolist()),
    )


def _reason(scores: Sequence[OptionScore]) -> str | None:
    """Return the reason why options have no probabilities, or None."""
    if any(score.num_tokens == 0 or score.num_bytes == 0 for score in scores):
        return "no_tokens"
    return "too_long" if any(score.is_too_long for score in scores) else None


def normalised(scores: Sequence[OptionScore], prior: Floats, protocol: AnswerProtocol) -> Floats:
    """Return the normalised log-probabilities of options in nats, (num_options,).

    ``scores`` belong to the options of one prompt. ``prior`` are the options' log-probabilities
    after a prompt without a question, in nats, (num_options,).
    """
    nats = np.array([score.log_probability for score in scores])
    if protocol.normalisation == "token":
        nats /= np.array([score.num_tokens for score in scores])
    if protocol.normalisation == "byte":
        nats /= np.array([score.num_bytes for score in scores])
    return nats - prior if protocol.normalisation == "unconditional" else nats
