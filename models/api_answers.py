"""Models behind an OpenAI-compatible chat API: asked in words, at a price, never twice.

What was answered is kept, and asked by one run at a time (``models.api_rounds``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from core.answers import Answer, NoAnswer
from core.errors import NotMeasurable, TidemarkError
from core.questions import Question
from core.settings import Settings
from core.storage import Store
from models.answer_budget import Budget
from models.answer_protocols import AnswerProtocol
from models.api_client import Unanswerable
from models.api_rounds import ApiRounds, Body, Round, connect
from models.catalogue import ModelEntry
from models.chat_reply import answer_of, user_message
from models.extraction import VERSION as EXTRACTION_VERSION
from models.question_prompt import Prompt, prompts_of

_VERSION = 1  # raised when a change here makes other answers of the same responses
_CHUNK = 256  # questions claimed and asked together
_OUTPUT_TOKENS = 256  # room for a model that says why before it says which


def load_api_answerer(
    entry: ModelEntry, settings: Settings, budget: Budget, store: Store
) -> ApiAnswerer:
    """Return what asks an entry of kind api; nothing is sent yet.

    Args:
        entry: says where, under which name, with which key and at which prices.
        settings: api_keys, api_in_flight.
        budget: of the run; one for all its models.
        store: the data root, where answers are kept.

    Raises:
        UsageError: the key is not set or is none, or there is a limit of money without prices.
    """
    return ApiAnswerer(entry, connect(entry, settings, budget, store))


class ApiAnswerer:
    """Asks one model; an ``Answerer``.

    Args:
        entry: of kind api.
        rounds: asks it.
    """

    def __init__(self, entry: ModelEntry, rounds: ApiRounds) -> None:
        self._entry, self._rounds, self._cache = entry, rounds, rounds.cache

    @property
    def name(self) -> str:
        """The ``model`` column."""
        return self._entry.name

    @property
    def revision(self) -> str:
        """Digest of base URL and served name: no more is known of a model behind an API."""
        return self._cache.digest

    def answering_id(self, protocol: AnswerProtocol) -> str:
        """As ``Answerer.answering_id``."""
        self._require(protocol)
        definition = [protocol.digest, _VERSION, EXTRACTION_VERSION, self._body("")]
        return hashlib.sha256(json.dumps(definition).encode()).hexdigest()[:8]

    def answer(
        self, questions: Sequence[Question], protocol: AnswerProtocol
    ) -> Iterator[Answer | NoAnswer]:
        """Yield an answer to each question, in their order.

        An answer without a choice has a reason: too_many_options, too_long, or one of
        ``chat_reply.answer_of``. A question on which the server fails, though it answers others,
        has none: the next run asks for it.

        Raises:
            NotMeasurable: the protocol is not ``generate``.
            BudgetReached: the next question may cost more than is left.
            ModelLoadError: the key is refused, the account has no money, or there is no such model.
            ModelError: the server failed on several questions in a row, or has never answered one;
                the others are answered and kept.
            StorageError: answers cannot be kept; nothing more is asked.
        """
        self._require(protocol)
        prompts = [next(iter(prompts_of(question, protocol)), None) for question in questions]
        given_up: list[str] = []
        for start in range(0, len(questions), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            done = self._ask_all([prompt for prompt in prompts[chunk] if prompt is not None])
            given_up += done.given_up.values()
            if done.is_over:
                raise self._explained(done.failure, given_up, prompts)
            for question, prompt in zip(questions[chunk], prompts[chunk], strict=True):
                yield self._answer(question, prompt, done)

    def _require(self, protocol: AnswerProtocol) -> None:
        if protocol.mode != "generate":
            raise NotMeasurable(
                f"{self.name} is behind an API, which gives no likelihoods of options; ask it "
                f"under the protocol generate, not {protocol.name}"
            )

    def _body(self, prompt: str) -> Body:
        """Return the request as wanted; what the model does not take is left out on sending."""
        return {
            "model": self._entry.served_name,
            "messages": user_message(prompt),
            "temperature": 0,
            "max_tokens": self._entry.max_output_tokens or _OUTPUT_TOKENS,
            "seed": 0,
        }

    def _key(self, prompt: Prompt) -> str:
        return self._cache.key_of(self._body(prompt.text))

    def _ask_all(self, prompts: Sequence[Prompt]) -> Round:
        """Find the answers to prompts, and ask for those that nobody has asked for yet."""
        # Sites publish questions twice; by their keys they are asked once.
        bodies = {self._key(prompt): self._body(prompt.text) for prompt in prompts}
        round_ = Round()
        for _ in self._rounds.ask(bodies, round_):
            pass
        return round_

    def _answer(self, question: Question, prompt: Prompt | None, done: Round) -> Answer | NoAnswer:
        if prompt is None:
            return Answer(question.question_id, None, None, "too_many_options")
        key = self._key(prompt)
        if key in done.given_up:
            return NoAnswer(question.question_id, done.given_up[key])
        each = done.found[key]
        if isinstance(each, Unanswerable):
            return Answer(question.question_id, None, None, each.reason)
        return answer_of(question, prompt, each.answer)

    def _explained(
        self,
        failure: TidemarkError | None,
        given_up: Sequence[str],
        prompts: Sequence[Prompt | None],
    ) -> TidemarkError:
        keys = [self._key(prompt) for prompt in prompts if prompt is not None]
        return self._rounds.explained(failure, given_up, keys)
