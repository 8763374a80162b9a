"""Answers that a local model writes: the letter is read from a text, as of models behind an API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

from core.cells.answers import Answer
from core.corpus.questions import Question
from core.settings import Settings
from models.backends import load_scorer
from models.catalogue import ModelEntry
from models.generation import Decoding, Generation, GenerationRequest
from models.generation.local import generator_of, identity_of_texts
from models.options.answering import LocalAnswerer, answering_id
from models.options.extraction import VERSION as EXTRACTION_VERSION
from models.options.extraction import extract_choice
from models.options.protocols import Answerer, AnswerProtocol, Prompt, prompts_of
from models.scoring.scorer import Identity
from models.scoring.token_scorer import CausalLM, CausalLMIdentity

_VERSION = "1"  # increase if a change here changes answers
_OUTPUT_TOKENS = 256  # as for chat APIs
_LINE = r"\S[^\n]*\n"  # a line with text ends the text of a model without chat template


def load_writing_answerer(entry: ModelEntry, settings: Settings) -> Answerer:
    """Load a causal language model to answer questions; errors are those of ``load_scorer``."""
    scorer = load_scorer(entry, settings)
    assert isinstance(scorer, CausalLM)  # noqa: S101
    return WritingAnswerer(scorer, settings)


def any_answering_id(
    identity: Identity, protocol: AnswerProtocol, has_control: bool = False
) -> str:
    """Return a short hash of all that decides answers; see ``models.options.answering``."""
    # Under ``generate``, the facts that determine the texts of a causal language model decide them.
    if protocol.mode != "generate" or not isinstance(identity, CausalLMIdentity):
        return answering_id(identity, protocol, has_control)
    texts = identity_of_texts(identity)
    written = texts.generation_id(_decoding(texts.is_chat))
    definition = f"{_VERSION} {protocol.digest} {EXTRACTION_VERSION} {written}"
    return hashlib.sha256(definition.encode()).hexdigest()[:8]


class WritingAnswerer(LocalAnswerer):
    """A ``LocalAnswerer`` that writes its answers under ``generate``.

    Reasons of written answers are ``too_many_options`` and those of ``answer_of_text``.
    """

    def __init__(self, scorer: CausalLM, settings: Settings) -> None:
        super().__init__(scorer)
        assert isinstance(scorer.identity, CausalLMIdentity)  # noqa: S101
        self._facts = scorer.identity
        self._generator = partial(generator_of, scorer, settings)

    def answering_id(self, protocol: AnswerProtocol) -> str:
        """Implement ``Answerer.answering_id``."""
        if protocol.mode != "generate":
            return super().answering_id(protocol)
        return any_answering_id(self._facts, protocol)

    def answer(self, questions: Sequence[Question], protocol: AnswerProtocol) -> Iterator[Answer]:
        """Implement ``Answerer.answer``."""
        if protocol.mode != "generate":
            yield from super().answer(questions, protocol)
            return
        prompts = [next(iter(prompts_of(question, protocol)), None) for question in questions]
        requests = [
            GenerationRequest(str(place), prompt.text, 0)
            for place, prompt in enumerate(prompts)
            if prompt is not None
        ]
        decoding = _decoding(identity_of_texts(self._facts).is_chat)
        texts = {each.key: each for each in self._generator().generate(requests, decoding)}
        for place, (question, prompt) in enumerate(zip(questions, prompts, strict=True)):
            if prompt is None:
                yield Answer(question.question_id, None, None, "too_many_options")
            else:
                yield answer_of_text(question, prompt, texts[str(place)])


def _decoding(is_chat: bool) -> Decoding:
    return Decoding(_OUTPUT_TOKENS, stop=None if is_chat else _LINE)


def answer_of_text(question: Question, prompt: Prompt, written: Generation) -> Answer:
    """Read the chosen option from a text that a model wrote, or the reason why there is none.

    The reason is that of an error, ``length`` (the text was cut off before a choice), ``empty``, or
    ``no_choice``.
    """
    if written.finish == "error":
        return Answer(question.question_id, None, None, written.reason or "error")
    chosen_place = extract_choice(written.text, [question.options[index] for index in prompt.order])
    if chosen_place is not None:
        scores = tuple(float(place == chosen_place) for place in range(len(prompt.order)))
        chosen = prompt.order[chosen_place]
        return Answer(question.question_id, None, chosen, None, written.text, scores)
    reason = "no_choice" if written.text.strip() else "empty"
    reason = "length" if written.finish == "length" else reason
    return Answer(question.question_id, None, None, reason, written.text)
