"""Answers of models that say how likely a text is: the probability of each option of a question.

The probability of an option is a softmax over the options' log-probabilities after the prompt,
normalised as the protocol says; over rotations of the options, the mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from core.answers import Answer
from core.errors import NotMeasurable
from core.questions import Question
from core.settings import Settings
from models.answer_protocols import AnswerProtocol
from models.answerer import Answerer
from models.catalogue import ModelEntry
from models.load import load_scorer
from models.option_scoring import OptionScore, OptionScorer, TextPrompt
from models.question_prompt import Prompt, prompts_of
from models.scorer import Identity
from models.token_scorer import TokenIdentity, TokenScorer

_VERSION = "1"  # raised when a change here, or in what it stands on, changes answers
_BLOCK_PROMPTS = 512  # held at one time: those of some questions, all rotations of each
_BLANK_CONTINUATIONS = 16  # asked for at one time

Floats = npt.NDArray[np.float64]


def load_answerer(entry: ModelEntry, settings: Settings) -> Answerer:
    """Load what an entry describes, to be asked questions.

    Raises: as ``models.load.load_scorer``, and
        NotMeasurable: a compressor.
    """
    scorer = load_scorer(entry, settings)
    if not isinstance(scorer, TokenScorer):
        raise NotMeasurable(f"{entry.name}: a compressor has no answers; name a language model")
    return LocalAnswerer(scorer)


def answering_id(identity: Identity, protocol: AnswerProtocol) -> str:
    """Return a short hash over protocol, prompt, context, numerics and this code's version.

    It needs no weights: ``models.load.identify`` gives the identity.

    Raises:
        NotMeasurable: the model cannot be asked under this protocol.
    """
    if not isinstance(identity, TokenIdentity):
        raise NotMeasurable(f"{identity.name}: a compressor has no answers; name a language model")
    if protocol.mode == "generate":
        raise NotMeasurable(
            f"{identity.name}: protocol {protocol.name} is for models that only write; ask this "
            "one under letter or text, which read probabilities"
        )
    definition = f"{_VERSION} {protocol.digest} {identity.context} {identity.numerics}"
    return hashlib.sha256(definition.encode()).hexdigest()[:8]


class LocalAnswerer:
    """Asks a model that tells the likelihood of tokens; an ``Answerer``.

    The ``reason`` of an answer without a choice is ``too_many_options`` (more than letters),
    ``no_tokens`` (the tokenizer leaves nothing of an option), ``too_long`` (an option alone is
    longer than the model's context) or ``non_finite`` (the model gives no finite likelihood).
    ``truncated`` stands beside a choice for which a prompt lost its beginning.

    Args:
        scorer: the model.
    """

    def __init__(self, scorer: TokenScorer) -> None:
        self.name = scorer.name
        self.revision = scorer.revision
        self._identity = scorer.identity
        self._chat_text = scorer.text_model.chat_text
        self._scorer = OptionScorer(
            name=scorer.name,
            text_model=scorer.text_model,
            backend=scorer.backend,
            context=scorer.context,
            budget=scorer.facts.batch_tokens or 1,
        )
        self._blanks: dict[tuple[str, str], OptionScore] = {}

    def answering_id(self, protocol: AnswerProtocol) -> str:
        """As ``Answerer.answering_id``."""
        if protocol.is_chat and self._chat_text is None:
            raise NotMeasurable(
                f"{self.name}: protocol {protocol.name} needs a chat template and the tokenizer "
                "has none; ask under a protocol without chat"
            )
        return answering_id(self._identity, protocol)

    def answer(self, questions: Sequence[Question], protocol: AnswerProtocol) -> Iterator[Answer]:
        """As ``Answerer.answer``."""
        self.answering_id(protocol)  # refuses what cannot be asked
        for block in _blocks(questions, protocol):
            asked = [prompt for _, prompts in block for prompt in prompts]
            scores = self._scores(asked, protocol)
            for question, prompts in block:
                own = [next(scores) for _ in prompts]
                yield _answer(question, prompts, own, protocol)

    def _scores(
        self, prompts: Sequence[Prompt], protocol: AnswerProtocol
    ) -> Iterator[tuple[list[OptionScore], Floats]]:
        """Yield scores and unconditional log-probabilities (else 0) of each prompt's options."""
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
        """The prompt as it is, or as a user's message, whose answer begins without a space."""
        if not protocol.is_chat or self._chat_text is None:
            return TextPrompt(text, tuple(continuations))
        own = tuple(each.removeprefix(" ") for each in continuations)
        return TextPrompt(self._chat_text(text), own)

    def _score_blanks(self, blanks: Iterable[TextPrompt]) -> None:
        """Score what continuations have after the blank prompt, once each."""
        pairs = {(blank.text, each): None for blank in blanks for each in blank.continuations}
        missing: dict[str, list[str]] = {}
        for text, each in pairs:
            if (text, each) not in self._blanks:
                missing.setdefault(text, []).append(each)
        prompts = [
            TextPrompt(text, tuple(own[first : first + _BLANK_CONTINUATIONS]))
            for text, own in missing.items()
            for first in range(0, len(own), _BLANK_CONTINUATIONS)
        ]
        for prompt, scores in zip(prompts, self._scorer.score(prompts), strict=True):
            for each, score in zip(prompt.continuations, scores, strict=True):
                self._blanks[prompt.text, each] = score


def _blocks(
    questions: Iterable[Question], protocol: AnswerProtocol
) -> Iterator[list[tuple[Question, list[Prompt]]]]:
    """Questions with their prompts, so many at a time that few enough prompts are held."""
    block: list[tuple[Question, list[Prompt]]] = []
    held = 0
    for question in questions:
        prompts = prompts_of(question, protocol)
        block.append((question, prompts))
        held += len(prompts) + 1  # a question without prompts is held, too
        if held >= _BLOCK_PROMPTS:
            yield block
            block, held = [], 0
    if block:
        yield block


def _answer(
    question: Question,
    prompts: Sequence[Prompt],
    scored: Sequence[tuple[list[OptionScore], Floats]],
    protocol: AnswerProtocol,
) -> Answer:
    everything = [score for scores, _ in scored for score in scores]
    reason = "too_many_options" if not prompts else _reason(everything)
    if reason is None:
        mean = np.zeros(len(question.options))
        for prompt, (scores, prior) in zip(prompts, scored, strict=True):
            values = normalised(scores, prior, protocol)
            if not np.isfinite(values).all():
                reason = "non_finite"
                break
            mean[list(prompt.order)] += probabilities_of(values) / len(prompts)
    if reason is not None:
        return Answer(question.question_id, None, None, reason)
    return Answer(
        question_id=question.question_id,
        probabilities=tuple(mean.tolist()),
        chosen_index=int(np.argmax(mean)),
        reason="truncated" if any(score.is_truncated for score in everything) else None,
    )


def _reason(scores: Sequence[OptionScore]) -> str | None:
    """Why there is no choice among these, if there is none."""
    if any(score.num_tokens == 0 or score.num_bytes == 0 for score in scores):
        return "no_tokens"
    return "too_long" if any(score.is_too_long for score in scores) else None


def normalised(scores: Sequence[OptionScore], prior: Floats, protocol: AnswerProtocol) -> Floats:
    """Return what the softmax is taken of, (num_options,).

    Args:
        scores: of the options of one prompt.
        prior: their log-probabilities after the blank prompt, in nats, (num_options,).
        protocol: with the normalisation.
    """
    nats = np.array([score.log_probability for score in scores])
    if protocol.normalisation == "token":
        nats /= np.array([score.num_tokens for score in scores])
    if protocol.normalisation == "byte":
        nats /= np.array([score.num_bytes for score in scores])
    return nats - prior if protocol.normalisation == "unconditional" else nats


def probabilities_of(values: Floats) -> Floats:
    """Return the softmax, of sum 1."""
    weights = np.exp(values - values.max())
    probabilities: Floats = weights / weights.sum()
    return probabilities
