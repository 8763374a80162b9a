"""Models behind an OpenAI-compatible chat API, which answer questions and write texts for money.

Every response is stored. Only one run at a time sends requests to a model (``servers.rounds``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from core.cells.answers import Answer, NoAnswer
from core.corpus.questions import Question
from core.errors import NotMeasurable, UsageError
from core.json import JsonObject
from core.settings import Settings
from core.storage.store import Store
from models.catalogue import ModelEntry
from models.generation import Decoding, Generation, GenerationRequest
from models.options.extraction import VERSION as EXTRACTION_VERSION
from models.options.extraction import extract_choice
from models.options.protocols import AnswerProtocol, Prompt, prompts_of
from models.servers.budget import AnswerCache, Budget
from models.servers.chat import ApiClient, Unanswerable, first_choice, usage_of, user_message
from models.servers.rounds import ApiRounds, Asker, GivenUp, Outcome

_ANSWERS_VERSION = 1  # increase if a code change finds other answers in the same responses
_TEXTS_VERSION = 1  # increase if a code change finds other texts in the same responses
_OUTPUT_TOKENS = 256  # default limit; leaves space for an explanation before the option's letter
_SEEDS = 2**53  # seeds are below this limit, so that JSON numbers represent them exactly


def load_api_answerer(entry: ModelEntry, settings: Settings, budget: Budget) -> ApiAnswerer:
    """Return the answerer of an entry of kind ``api``, without sending a request.

    Raise UsageError if the API key is missing or invalid, or if the budget is in dollars but the
    entry has no prices.
    """
    return ApiAnswerer(entry, connect(entry, settings, budget, Store(settings.home)))


def load_api_generator(entry: ModelEntry, settings: Settings, budget: Budget) -> ApiGenerator:
    """Return the text generator of an entry; errors are those of ``load_api_answerer``."""
    return ApiGenerator(entry, connect(entry, settings, budget, Store(settings.home)))


def connect(entry: ModelEntry, settings: Settings, budget: Budget, store: Store) -> ApiRounds:
    """Return the sender of requests to a model; errors are those of ``load_api_answerer``."""
    if not entry.backend.is_paid:
        raise UsageError(f"{entry.name} is of kind {entry.kind}, not a model behind an API")
    budget.check(entry)
    key = None
    setting = "give the entry api_key: NAME, and set TIDEMARK_API_KEYS__<NAME>"
    if entry.api_key:
        setting = f"see TIDEMARK_API_KEYS__{entry.api_key.upper()}"
        key = settings.api_keys.get(entry.api_key)
        if key is None:
            raise UsageError(f"{entry.name} requires a key, which is not set: {setting}")
    client = ApiClient(entry.location, key, setting, settings.api_in_flight)
    cache = AnswerCache(store, entry)
    asker = Asker(entry, client, cache, budget)
    return ApiRounds(entry, asker, cache, settings.api_in_flight)


class _ApiModel:
    """Common part of answerers and generators behind an API."""

    def __init__(self, entry: ModelEntry, rounds: ApiRounds) -> None:
        self._entry = entry
        self._rounds = rounds
        self.name = entry.name

    @property
    def revision(self) -> str:
        """Digest of base URL and served name, because an API does not state a model's version."""
        return self._rounds.cache.digest

    def _message(self, prompt: str) -> JsonObject:
        return {"model": self._entry.served_name, "messages": user_message(prompt)}


class ApiAnswerer(_ApiModel):
    """An ``Answerer`` that asks the model for the letter of an option."""

    def answering_id(self, protocol: AnswerProtocol) -> str:
        """Implement ``Answerer.answering_id``."""
        self._require(protocol)
        definition = [protocol.digest, _ANSWERS_VERSION, EXTRACTION_VERSION, self._body("")]
        return hashlib.sha256(json.dumps(definition).encode()).hexdigest()[:8]

    def answer(
        self, questions: Sequence[Question], protocol: AnswerProtocol
    ) -> Iterator[Answer | NoAnswer]:
        """Yield an answer to each question, in input order.

        An answer without a choice has a reason: too_many_options, too_long, or a reason of
        ``answer_of``. If the server fails on a question, the result is ``NoAnswer``, and the next
        run retries the question.

        Raise NotMeasurable if the protocol is not ``generate``, or errors of ``ApiRounds.ask``.
        """
        self._require(protocol)
        prompts = [next(iter(prompts_of(question, protocol)), None) for question in questions]
        bodies = [None if prompt is None else self._body(prompt.text) for prompt in prompts]
        keys = [None if body is None else self._rounds.cache.key_of(body) for body in bodies]
        # Some questions are published twice. Their keys are equal: one request is sent for both.
        bodies_by_key = {key: body for key, body in zip(keys, bodies, strict=True) if key and body}
        outcomes = self._rounds.ask(bodies_by_key)
        arrived = dict[str, Outcome]()
        for question, prompt, key in zip(questions, prompts, keys, strict=True):
            # Responses arrive in any order; wait until the one to this question is there.
            while key is not None and key not in arrived:
                arrived.update([next(outcomes)])
            if prompt is None or key is None:
                yield Answer(question.question_id, None, None, "too_many_options")
            else:
                yield _answer(question, prompt, arrived[key])
        arrived |= dict(outcomes)  # if the run failed, the iterator raises the error at its end

    def _require(self, protocol: AnswerProtocol) -> None:
        if protocol.mode != "generate":
            raise NotMeasurable(
                f"{self.name} is behind an API, which gives no likelihoods of options; ask it "
                f"under the protocol generate, not {protocol.name}"
            )

    def _body(self, prompt: str) -> JsonObject:
        """Return the body of a request with the lowest temperature and a fixed seed."""
        return self._message(prompt) | {
            "temperature": 0,
            "max_tokens": self._entry.max_output_tokens or _OUTPUT_TOKENS,
            "seed": 0,
        }


def _answer(question: Question, prompt: Prompt, outcome: Outcome) -> Answer | NoAnswer:
    """Return the answer in an outcome of a request; NoAnswer if the server failed."""
    if isinstance(outcome, GivenUp):
        return NoAnswer(question.question_id, str(outcome))
    if isinstance(outcome, Unanswerable):
        return Answer(question.question_id, None, None, outcome.reason)
    return answer_of(question, prompt, outcome.answer)


def answer_of(question: Question, prompt: Prompt, answer: JsonObject) -> Answer:
    """Extract the chosen option from a response, or the reason why there is none.

    The API states the reasons ``refusal`` and ``content_filter``. Other reasons are ``length`` (the
    response was cut off before the choice), ``empty`` (no text) and ``no_choice``.
    """
    choice = first_choice(answer)
    text = choice.text
    if choice.refusal:
        return Answer(question.question_id, None, None, "refusal", text or choice.refusal)
    reason = "no_choice" if text.strip() else "empty"
    if choice.finish == "content_filter":
        reason = "content_filter"
    else:
        # A place is a position in the prompt; ``prompt.order`` has the option at each place.
        shown = [question.options[index] for index in prompt.order]
        chosen_place = extract_choice(text, shown)
        if chosen_place is not None:
            scores = tuple(float(place == chosen_place) for place in range(len(shown)))
            chosen = prompt.order[chosen_place]
            return Answer(question.question_id, None, chosen, None, text, scores)
        reason = "length" if choice.finish == "length" else reason
    return Answer(question.question_id, None, None, reason, text)


class ApiGenerator(_ApiModel):
    """A ``Generator`` behind a chat API.

    Requests have temperature, top_p, seed and max_new_tokens (at most the entry's
    max_output_tokens). The chat API has no parameters for the other fields of ``Decoding``.
    ``stop`` has no effect: the whole text of the response is returned.

    The ``reason`` of an error is ``too_long`` or ``content_filter`` if the server refuses only this
    prompt. Otherwise the reason describes the server's failure.
    """

    def generation_id(self, decoding: Decoding) -> str:
        """Implement ``Generator.generation_id``."""
        body = self._body(GenerationRequest("", "", 0), decoding)
        definition = json.dumps([decoding.digest, _TEXTS_VERSION, body])
        return hashlib.sha256(definition.encode()).hexdigest()[:8]

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """Yield generations; send equal requests once. Raise the errors of ``ApiRounds.ask``."""
        bodies: dict[str, JsonObject] = {}
        asking: dict[str, list[str]] = {}
        for request in requests:
            body = self._body(request, decoding)
            key = self._rounds.cache.key_of(body)
            bodies[key] = body
            asking.setdefault(key, []).append(request.key)
        for key, outcome in self._rounds.ask(bodies):
            for name in asking[key]:
                yield _generation(name, outcome)

    def _body(self, request: GenerationRequest, decoding: Decoding) -> JsonObject:
        """Return the body of a request for a text."""
        max_tokens = decoding.max_new_tokens
        body = self._message(request.prompt) | {
            "temperature": decoding.temperature,
            "max_tokens": min(max_tokens, self._entry.max_output_tokens or max_tokens),
            "seed": request.seed % _SEEDS,
        }
        return body if decoding.top_p == 1 else body | {"top_p": decoding.top_p}


def _generation(name: str, outcome: Outcome) -> Generation:
    """Return the text in an outcome of a request, or an error with its reason."""
    if isinstance(outcome, GivenUp):
        return Generation(name, "", "error", None, str(outcome))
    if isinstance(outcome, Unanswerable):
        return Generation(name, "", "error", None, outcome.reason)
    choice = first_choice(outcome.answer)
    text = choice.text or choice.refusal or ""
    if not text and choice.finish == "content_filter":
        return Generation(name, "", "error", None, "content_filter")
    usage = usage_of(outcome.answer)
    num_tokens = None if usage is None else usage[1]
    return Generation(name, text, "length" if choice.finish == "length" else "stop", num_tokens)
