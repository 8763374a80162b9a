"""Many requests to one API, several at a time; requests with a stored response are not sent.

A response is stored (``answer-cache``) under the digest of the whole request before it is used.
Later equal requests read the stored response at no cost. A claim (lock file) allows only one run at
a time to send requests to a model. A second run waits, and then finds the responses of the first.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from core.errors import ModelError, ModelLoadError, TidemarkError
from core.json import JsonObject
from core.storage.claims import hold_alone
from models.catalogue import ModelEntry
from models.servers.budget import AnswerCache, Budget, Cost, Paid, Received, cost_of
from models.servers.chat import (
    ApiClient,
    Lost,
    Refused,
    Streamed,
    Unanswerable,
    Unsupported,
    usage_of,
)
from models.servers.http import TryAgain

_ROUND = 256  # maximum number of requests in a round; a round holds the claim until its end
_MAX_GIVEN_UP = 5  # failed requests in a row, after which the server counts as unreachable
_log = logging.getLogger(__name__)
_MAX_REFUSED = 8  # maximum number of refusals per request
_MAX_LOST = 3  # maximum number of lost responses per request; each may have been paid for
_PAUSE_S = 1.0  # pause before the first retry; doubled before each further retry
_MAX_PAUSE_S = 60.0
_MAX_ASKED_PAUSE_S = 600.0  # if the server asks for a longer pause, the run ends
_SAMPLE = 256  # number of stored responses that are read to learn how the server counts tokens
_TEMPLATE_TOKENS = 64  # estimated tokens that a chat template adds; increased if too low


class GivenUp(Exception):
    """The server failed on a request too often, or refuses it; other requests may succeed."""


class Ended(Exception):
    """The run ended before a request was sent."""


Outcome = Received | Unanswerable | GivenUp


class Asker:
    """Sends requests to one model; learns which parameters it supports; safe for threads."""

    def __init__(
        self, entry: ModelEntry, client: ApiClient, cache: AnswerCache, budget: Budget
    ) -> None:
        self._entry = entry
        self._client = client
        self._cache = cache
        self._budget = budget
        self._left_out: frozenset[str] = frozenset()  # names of unsupported parameters
        self._template_tokens = _TEMPLATE_TOKENS
        self._most_output = 0  # largest number of tokens of a response longer than asked for
        self._num_served = 0
        self._resume_at = 0.0  # no request is sent before this time of ``time.monotonic``
        self._has_looked = False  # at stored responses
        self._has_failed = False  # without cost

    @property
    def is_unsure(self) -> bool:
        """True if requests must be sent one at a time: no response has been received yet."""
        # The first response shows whether the server can be used, before others are paid. A failure
        # without cost shows that waiting saves nothing, if the run has no spending limit. With one,
        # parallel requests could exceed it, because some servers bill more than ``max_tokens``.
        if self._budget.is_limited and not self._has_looked:
            self._has_looked = True
            for kept in self._cache.read_some(_SAMPLE):
                self._learn(kept.asked, usage_of(kept.answer))
        if self._num_served > 0:
            return False
        return self._budget.is_limited or not (self._has_failed or self._cache.has_any())

    def ask(self, body: JsonObject, ended: threading.Event) -> Received:
        """Send a request until it is answered; store and return the response.

        Raises:
            Ended: the event ``ended`` is set.
            GivenUp: the server fails on this request, or refuses it.
            Unanswerable: the server refuses this request for its content or length.
            BudgetReached: the request may cost more than the rest of the budget.
            ModelError: all other requests would fail, too.
            StorageError: the response could not be stored.
        """
        num_refused = num_lost = 0
        served_before = self._num_served
        while True:
            left_out = self._left_out
            try:
                return self._ask_once(body, left_out, num_refused, ended)
            except Unsupported as failure:
                self._leave_out(failure.param, left_out)
            except Refused as failure:
                self._has_failed = True
                raise GivenUp(str(failure)) from None
            except TryAgain as failure:
                if failure.is_busy and self._num_served != served_before:
                    num_refused = 0
                    served_before = self._num_served
                num_refused += 1
                if num_refused >= _MAX_REFUSED:
                    self._has_failed = True
                    raise GivenUp(f"not served in {num_refused} tries ({failure})") from None
                self._pause(failure, num_refused, ended)
            except Streamed as failure:
                raise ModelLoadError(str(failure)) from None
            except Lost as failure:
                num_lost += 1
                if num_lost >= _MAX_LOST:
                    raise GivenUp(f"{num_lost} answers were lost ({failure})") from None
                self._pause(TryAgain(str(failure), failure.pause_s), num_lost, ended)

    def _ask_once(
        self, body: JsonObject, left_out: frozenset[str], num_refused: int, ended: threading.Event
    ) -> Received:
        """Send a request once within the budget; store and return the response."""
        max_cost = self._max_cost(body)
        paid = Cost()
        self._budget.reserve(max_cost)
        try:
            if ended.is_set():
                raise Ended
            key = self._cache.key_of(body)
            note = self._cache.note_sent(key, _paid(max_cost, True))
            try:
                answer = self._client.ask(_without(body, left_out), f"{key}-{num_refused}")
            except Lost as failure:
                paid, is_estimated = self._paid(body, failure.answer, max_cost)
                self._cache.note_lost(note, key, _paid(paid, is_estimated), str(failure))
                raise
            except Exception:
                self._cache.forget_sent(note)
                raise
            paid, is_estimated = self._paid(body, answer, max_cost)
            received = Received(
                asked=body,
                left_out=sorted(left_out),
                answer=answer,
                paid=_paid(paid, is_estimated),
                num_refused=num_refused,
                note=note,
                at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            )
            self._cache.keep(key, received)
        finally:
            self._budget.settle(max_cost, paid)
        self._num_served += 1
        self._cache.forget_sent(note)
        return received

    def _max_cost(self, body: JsonObject) -> Cost:
        """Return a request's maximum cost; a token is assumed to have at least one byte."""
        output = max(body["max_tokens"], self._most_output)
        return cost_of(self._entry, _num_bytes(body) + self._template_tokens, output)

    def _paid(self, body: JsonObject, answer: JsonObject, max_cost: Cost) -> tuple[Cost, bool]:
        """Return the cost of a response, and True if it is estimated: the server states none."""
        usage = usage_of(answer)
        if usage is None:
            return max_cost, True
        self._learn(body, usage)
        return cost_of(self._entry, *usage), False

    def _learn(self, body: JsonObject, usage: tuple[int, int] | None) -> None:
        """Increase the estimated numbers of tokens if the server counts more."""
        if usage is None:
            return
        self._template_tokens = max(self._template_tokens, usage[0] - _num_bytes(body))
        if usage[1] > body["max_tokens"]:
            self._most_output = max(self._most_output, usage[1])

    def _leave_out(self, param: str, left_out: frozenset[str]) -> None:
        """Leave out a parameter from now on; raise ModelError if it was left out already."""
        if param in left_out:
            raise ModelError(
                f"{self._entry.name}: its API refuses {param}, which was not sent; its parameters "
                "are not those of OpenAI's chat API"
            )
        self._left_out |= {param}

    def _pause(self, failure: TryAgain, num_tries: int, ended: threading.Event) -> None:
        """Wait before the next try; if the server requests a pause, all threads wait."""
        asked = failure.pause_s
        if asked is not None and asked > _MAX_ASKED_PAUSE_S:
            raise ModelError(
                f"{self._entry.name}: its API asks for a pause of {asked:.0f} s ({failure}); run "
                "the same command again after that"
            )
        pause_s = min(_PAUSE_S * 2 ** (num_tries - 1), _MAX_PAUSE_S) if asked is None else asked
        until = time.monotonic() + pause_s
        if asked is not None:
            self._resume_at = max(self._resume_at, until)
        while (left := max(until, self._resume_at) - time.monotonic()) > 0:
            if ended.wait(left):
                raise Ended


def _without(body: JsonObject, left_out: frozenset[str]) -> JsonObject:
    sent = {name: value for name, value in body.items() if name not in left_out}
    if "max_tokens" in left_out:  # OpenAI renamed it for newer models
        sent["max_completion_tokens"] = body["max_tokens"]
    return sent


def _num_bytes(body: JsonObject) -> int:
    return sum(len(message["content"].encode()) for message in body["messages"])


def _paid(cost: Cost, is_estimated: bool) -> Paid:
    return Paid(**vars(cost), is_estimated=is_estimated)


@dataclass
class _Round:
    """The outcomes of a round, and whether it has ended early."""

    ended: threading.Event = field(default_factory=threading.Event)
    failure: TidemarkError | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    num_failed: int = 0  # in a row

    def take(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; end the round after several failed requests in a row."""
        self.outcomes[key] = outcome
        self.num_failed = self.num_failed + 1 if isinstance(outcome, GivenUp) else 0
        if self.num_failed >= _MAX_GIVEN_UP:
            self.ended.set()

    def fail(self, failure: TidemarkError) -> None:
        self.failure = self.failure or failure
        self.ended.set()


class ApiRounds:
    """Sends requests to one model, several at a time."""

    def __init__(
        self, entry: ModelEntry, asker: Asker, cache: AnswerCache, num_at_once: int
    ) -> None:
        self.name = entry.name
        self.cache = cache
        self._asker = asker
        self._num_at_once = num_at_once

    def ask(self, bodies: Mapping[str, JsonObject]) -> Iterator[tuple[str, Outcome]]:
        """Yield the outcome of each request by its key, in any order, as soon as it is known.

        Requests with a stored response are not sent. Other requests are sent in rounds.

        Raises:
            BudgetReached: the next request may cost more than the rest of the budget.
            ModelLoadError: the API key is refused, the account is empty, or the model is unknown.
            ModelError: the server failed on several requests in a row, or has never answered any;
                received responses are stored.
            StorageError: responses cannot be stored; no more requests are sent.
        """
        keys = list(bodies)
        given_up = list[str]()
        for start in range(0, len(keys), _ROUND):
            round_ = _Round()
            some = {key: bodies[key] for key in keys[start : start + _ROUND]}
            for key, outcome in self._ask_some(some, round_):
                if isinstance(outcome, GivenUp):
                    given_up.append(str(outcome))
                yield key, outcome
            if round_.ended.is_set():
                raise self._explained(round_.failure, given_up, keys)

    def _ask_some(
        self, bodies: Mapping[str, JsonObject], round_: _Round
    ) -> Iterator[tuple[str, Outcome]]:
        """Yield the outcomes of one round: stored responses first, then new ones."""
        with ThreadPoolExecutor(self._num_at_once) as pool:
            try:
                known = zip(bodies, pool.map(self.cache.find, bodies), strict=True)
                stored = {key: found for key, found in known if found is not None}
                missing = [key for key in bodies if key not in stored]
                yield from stored.items()
                if missing:
                    # Only one run at a time asks this model.
                    claim = f"answers of {self.cache.address} {self.cache.served_name}"
                    with hold_alone(self.cache.store, claim):
                        while missing and self._asker.is_unsure and not round_.ended.is_set():
                            yield from self._send(pool, [missing.pop(0)], bodies, round_)
                        yield from self._send(pool, missing, bodies, round_)
                # If a model has never answered a request, the server or its settings are wrong.
                outcomes = round_.outcomes.values()
                is_hopeless = bool(outcomes) and all(isinstance(each, GivenUp) for each in outcomes)
                if is_hopeless and not stored and not self.cache.has_any():
                    round_.ended.set()
            except BaseException:  # requests in progress are finished; no others are sent
                round_.ended.set()
                raise

    def _send(
        self,
        pool: ThreadPoolExecutor,
        keys: Sequence[str],
        bodies: Mapping[str, JsonObject],
        round_: _Round,
    ) -> Iterator[tuple[str, Outcome]]:
        """Send requests in threads; yield the outcomes as they come."""
        futures = {pool.submit(self._ask, key, bodies[key], round_): key for key in keys}
        for future in as_completed(futures):
            future.result()
            key = futures[future]
            if key in round_.outcomes:
                yield key, round_.outcomes[key]

    def _ask(self, key: str, body: JsonObject, round_: _Round) -> None:
        """Send one request and put the outcome into the round; unforeseen errors fail only it."""
        if round_.ended.is_set():
            return
        try:
            # Another run may have stored the response while this one waited for the claim.
            round_.take(key, self.cache.find(key) or self._asker.ask(body, round_.ended))
        except Unanswerable as failure:
            _log.warning("%s: %s", self.name, failure)
            round_.take(key, failure)
        except GivenUp as failure:
            _log.warning("%s: a question is given up: %s", self.name, failure)
            round_.take(key, failure)
        except Ended:
            return  # the request was not sent
        except TidemarkError as failure:
            round_.fail(failure)
        except Exception as failure:  # noqa: BLE001 - an odd answer is one question's failure
            _log.warning("%s: a question is given up", self.name, exc_info=failure)
            round_.take(key, GivenUp(f"{type(failure).__name__}: {str(failure)[:200]}"))

    def _explained(
        self, failure: TidemarkError | None, given_up: Sequence[str], keys: Iterable[str]
    ) -> TidemarkError:
        """Return the run's failure as an error that says how many responses are stored."""
        wanted = set(keys)
        num_kept = sum(map(self.cache.has, wanted))
        where = self.cache.store.url(self.cache.folder)
        advice = (
            f"{num_kept} of {len(wanted)} questions are answered, and kept in {where}: run the "
            "same command again, and only the others are asked and paid"
        )
        if failure is None:
            reasons = f"{len(given_up)} questions have no answer, the first: {given_up[0]}"
            return ModelError(f"{self.name}: its server failed: {reasons}; {advice}")
        explained = type(failure)(f"{self.name}: {failure}; {advice}")
        explained.__cause__ = failure
        return explained
