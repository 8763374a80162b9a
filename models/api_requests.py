"""One question to a paid API until it is answered: budget, notes, pauses and what a model takes."""

from __future__ import annotations

import datetime as dt
import threading
import time
from typing import Any

from core.errors import ModelError
from models.answer_budget import Budget, Cost, cost_of
from models.answer_cache import AnswerCache, Paid, Received
from models.api_client import ApiClient, Lost, Refused, TryAgain, Unsupported
from models.catalogue import ModelEntry
from models.chat_reply import usage_of

_MAX_REFUSED = 8  # times that a server may not serve a question
_MAX_LOST = 3  # answers to a question that may be lost; each may have been paid
_PAUSE_S = 1.0  # before the second try; doubled before each later one
_MAX_PAUSE_S = 60.0
_MAX_ASKED_PAUSE_S = 600.0  # where the server asks for a longer one, the run ends
_SAMPLE = 256  # kept answers that are looked at for what the server counts
_TEMPLATE_TOKENS = 64  # around a prompt, until the server has been seen to count more


class GivenUp(Exception):
    """The server failed on a question so often, or refuses it so, that another is tried."""


class Ended(Exception):
    """The run ended while a question waited for its turn."""


class Asker:
    """Sends questions to one model, with what was learned of it; for any number of threads.

    Args:
        entry: with the prices.
        client: of its API.
        cache: where answers are kept.
        budget: of the run.
    """

    def __init__(
        self, entry: ModelEntry, client: ApiClient, cache: AnswerCache, budget: Budget
    ) -> None:
        self._entry, self._client, self._cache, self._budget = entry, client, cache, budget
        self._left_out: frozenset[str] = frozenset()  # parameters that the model does not take
        self._template_tokens = _TEMPLATE_TOKENS
        self._most_output = 0
        self._num_served = 0
        self._resume_at = 0.0
        self._has_looked = False

    @property
    def is_unsure(self) -> bool:
        """Whether there is a limit, and the server has not shown yet what it bills for a request.

        Some bill more than ``max_tokens``; so many at once could pass the limit together.
        """
        if self._budget.is_limited and not self._has_looked:
            self._has_looked = True
            for kept in self._cache.read_some(_SAMPLE):
                self._learn(kept.asked, usage_of(kept.answer))
        return self._budget.is_limited and self._num_served == 0

    def ask(self, body: dict[str, Any], ended: threading.Event) -> Received:
        """Send a question until it is answered, and return the answer once it is kept.

        Args:
            body: of the request, with all parameters that are wanted.
            ended: nothing is sent once it is set.

        Raises:
            Ended: it was set.
            GivenUp: the server fails on this question, or refuses it.
            Unanswerable: it refuses this question alone.
            BudgetReached: the question may cost more than is left.
            ModelError: no other question can be asked either.
            StorageError: the answer could not be kept.
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
                raise GivenUp(str(failure)) from None
            except TryAgain as failure:
                if failure.is_busy and self._num_served != served_before:
                    num_refused, served_before = 0, self._num_served
                num_refused += 1
                if num_refused >= _MAX_REFUSED:
                    raise GivenUp(f"not served in {num_refused} tries ({failure})") from None
                self._pause(failure, num_refused, ended)
            except Lost as failure:
                num_lost += 1
                if num_lost >= _MAX_LOST:
                    raise GivenUp(f"{num_lost} answers were lost ({failure})") from None
                self._pause(TryAgain(str(failure), failure.pause_s), num_lost, ended)

    def _ask_once(
        self,
        body: dict[str, Any],
        left_out: frozenset[str],
        num_refused: int,
        ended: threading.Event,
    ) -> Received:
        most, paid = self._most(body), Cost()
        self._budget.reserve(most)
        try:
            if ended.is_set():
                raise Ended
            key = self._cache.key_of(body)
            note = self._cache.note_sent(key, _paid(most, True))
            try:
                answer = self._client.ask(_without(body, left_out), f"{key}-{num_refused}")
            except Lost as failure:
                paid, is_estimated = self._paid(body, failure.answer, most)
                self._cache.note_lost(note, key, _paid(paid, is_estimated), str(failure))
                raise
            except Exception:
                self._cache.forget_sent(note)
                raise
            paid, is_estimated = self._paid(body, answer, most)
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
            self._budget.settle(most, paid)
        self._num_served += 1
        self._cache.forget_sent(note)
        return received

    def _most(self, body: dict[str, Any]) -> Cost:
        """Return what a question may cost at most: a token has at least one byte."""
        output = max(body["max_tokens"], self._most_output)
        return cost_of(self._entry, _num_bytes(body) + self._template_tokens, output)

    def _paid(self, body: dict[str, Any], answer: dict[str, Any], most: Cost) -> tuple[Cost, bool]:
        """Return what an answer cost, and whether that is an estimate."""
        usage = usage_of(answer)
        if usage is None:
            return most, True
        self._learn(body, usage)
        return cost_of(self._entry, *usage), False

    def _learn(self, body: dict[str, Any], usage: tuple[int, int] | None) -> None:
        """A server that counts more than was thought is expected to do so again."""
        if usage is None:
            return
        self._template_tokens = max(self._template_tokens, usage[0] - _num_bytes(body))
        if usage[1] > body["max_tokens"]:
            self._most_output = max(self._most_output, usage[1])

    def _leave_out(self, param: str, left_out: frozenset[str]) -> None:
        if param in left_out:
            raise ModelError(
                f"{self._entry.name}: its API refuses {param}, which was not sent; its parameters "
                "are not those of OpenAI's chat API"
            )
        self._left_out |= {param}

    def _pause(self, failure: TryAgain, num_tries: int, ended: threading.Event) -> None:
        """Wait before the next try; where the server says how long, all threads do."""
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


def _without(body: dict[str, Any], left_out: frozenset[str]) -> dict[str, Any]:
    sent = {name: value for name, value in body.items() if name not in left_out}
    if "max_tokens" in left_out:  # newer models of OpenAI's
        sent["max_completion_tokens"] = body["max_tokens"]
    return sent


def _num_bytes(body: dict[str, Any]) -> int:
    return sum(len(message["content"].encode()) for message in body["messages"])


def _paid(cost: Cost, is_estimated: bool) -> Paid:
    return Paid(
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        dollars=cost.dollars,
        is_estimated=is_estimated,
    )
