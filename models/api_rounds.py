"""Many requests to one API together: those that nobody has asked for yet, so many in flight.

An answer that was received is kept (``answer_cache``) before anything is made of it, under the
whole request; whoever asks the same again gets it from there, for nothing. One run at a time asks a
model (a claim): a second one waits, and finds the answers of the first.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from core.claims import Claims
from core.errors import ModelError, TidemarkError, UsageError
from core.settings import Settings
from core.storage import Store
from models.answer_budget import Budget
from models.answer_cache import AnswerCache, Received
from models.api_client import ApiClient, Unanswerable
from models.api_requests import Asker, Ended, GivenUp
from models.catalogue import ModelEntry

Body = dict[str, Any]
Found = Received | Unanswerable

_MAX_GIVEN_UP = 5  # requests in a row, after which the server is taken to be away
_log = logging.getLogger(__name__)


@dataclass
class Round:
    """What the threads that ask together share.

    Attributes:
        ended: set once nothing more may be sent.
        failure: why.
        given_up: why single requests have no answer, by their keys.
        num_in_a_row: of these, since the server answered last.
        found: by the key of the request.
    """

    ended: threading.Event = field(default_factory=threading.Event)
    failure: TidemarkError | None = None
    given_up: dict[str, str] = field(default_factory=dict)
    num_in_a_row: int = 0
    found: dict[str, Found] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether nothing more may be sent."""
        return self.ended.is_set()

    def give_up(self, key: str, reason: str) -> None:
        """Note that a request has no answer."""
        self.given_up[key] = reason
        self.num_in_a_row += 1
        if self.num_in_a_row >= _MAX_GIVEN_UP:
            self.ended.set()

    def take(self, key: str, found: Found) -> None:
        """Note what the server made of a request."""
        self.found[key] = found
        self.num_in_a_row = 0

    def fail(self, failure: TidemarkError) -> None:
        """Note why nothing more may be sent."""
        self.failure = self.failure or failure
        self.ended.set()


class ApiRounds:
    """Asks one model, many requests at a time.

    Args:
        entry: of kind api.
        asker: sends the requests.
        cache: of its answers.
        num_at_once: requests in flight.
    """

    def __init__(
        self, entry: ModelEntry, asker: Asker, cache: AnswerCache, num_at_once: int
    ) -> None:
        self.name = entry.name
        self.cache = cache
        self._asker, self._num_at_once = asker, num_at_once

    def ask(self, bodies: Mapping[str, Body], round_: Round) -> Iterator[str]:
        """Find the answers to requests, and ask for those that nobody has asked for yet.

        Args:
            bodies: of the requests, by their keys.
            round_: gets what is found, and why it ended.

        Yields:
            The key of each request that is answered, given up or refused, once that is known.
        """
        with ThreadPoolExecutor(self._num_at_once) as pool:
            try:
                known = zip(bodies, pool.map(self.cache.find, bodies), strict=True)
                round_.found |= {key: found for key, found in known if found is not None}
                missing = [key for key in bodies if key not in round_.found]
                yield from list(round_.found)
                if missing:
                    with self._alone():
                        while missing and self._asker.is_unsure and not round_.is_over:
                            yield from self._send(pool, [missing.pop(0)], bodies, round_)
                        yield from self._send(pool, missing, bodies, round_)
                # Where a model has never answered, it is not the questions that are at fault.
                if round_.given_up and not round_.found and not self.cache.has_any():
                    round_.ended.set()
            except BaseException:  # what is in flight is waited for and kept, no more is sent
                round_.ended.set()
                raise

    def _send(
        self,
        pool: ThreadPoolExecutor,
        keys: Sequence[str],
        bodies: Mapping[str, Body],
        round_: Round,
    ) -> Iterator[str]:
        futures = {pool.submit(self._ask, key, bodies[key], round_): key for key in keys}
        for future in as_completed(futures):
            future.result()
            key = futures[future]
            if key in round_.found or key in round_.given_up:
                yield key

    def _ask(self, key: str, body: Body, round_: Round) -> None:
        if round_.ended.is_set():
            return
        try:
            # Another run may have asked it while we waited for our turn.
            round_.take(key, self.cache.find(key) or self._asker.ask(body, round_.ended))
        except Unanswerable as failure:
            _log.warning("%s: %s", self.name, failure)
            round_.take(key, failure)
        except GivenUp as failure:
            _log.warning("%s: a question is given up: %s", self.name, failure)
            round_.give_up(key, str(failure))
        except Ended:
            pass
        except TidemarkError as failure:
            round_.fail(failure)
        except Exception as failure:  # noqa: BLE001 - an odd answer is one question's failure
            _log.warning("%s: a question is given up", self.name, exc_info=failure)
            round_.give_up(key, f"{type(failure).__name__}: {str(failure)[:200]}")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other runs from asking this model meanwhile; wait for who does."""
        claims = Claims(self.cache.store)
        claim = f"answers of {self.cache.address} {self.cache.served_name}"
        while True:
            with claims.hold([claim]) as held:
                if held:
                    yield
                    return
            _log.info("%s: waiting for another run, which is asking it", self.name)
            claims.wait(claim, lambda: False)

    def explained(
        self, failure: TidemarkError | None, given_up: Sequence[str], keys: Iterable[str]
    ) -> TidemarkError:
        """Return a failure with what is done, what is left, and how to go on.

        Args:
            failure: that ended it; None: the server failed on too many requests.
            given_up: why each of those has no answer.
            keys: of all requests.
        """
        wanted = set(keys)
        num_kept = sum(map(self.cache.has, wanted))
        where = self.cache.store.url(self.cache.folder)
        kept = (
            f"{num_kept} of {len(wanted)} questions are answered, and kept in {where}: run the "
            "same command again, and only the others are asked and paid"
        )
        if failure is None:
            reasons = f"{len(given_up)} questions have no answer, the first: {given_up[0]}"
            return ModelError(f"{self.name}: its server failed: {reasons}; {kept}")
        explained = type(failure)(f"{self.name}: {failure}; {kept}")
        explained.__cause__ = failure
        return explained


def connect(entry: ModelEntry, settings: Settings, budget: Budget, store: Store) -> ApiRounds:
    """Return what asks an entry of kind api; nothing is sent yet.

    Args:
        entry: says where, under which name, with which key and at which prices.
        settings: api_keys, api_in_flight.
        budget: of the run; one for all its models.
        store: the data root, where answers are kept.

    Raises:
        UsageError: the key is not set or is none, or there is a limit of money without prices.
    """
    if entry.kind != "api":
        raise UsageError(f"{entry.name} is of kind {entry.kind}, not a model behind an API")
    budget.check(entry)
    key, setting = None, "give the entry api_key: NAME, and set TIDEMARK_API_KEYS__<NAME>"
    if entry.api_key:
        setting = f"see TIDEMARK_API_KEYS__{entry.api_key.upper()}"
        key = settings.api_keys.get(entry.api_key)
        if key is None:
            raise UsageError(f"{entry.name} wants a key, which is not set: {setting}")
    client = ApiClient(entry.location, key, setting, settings.api_in_flight)
    cache = AnswerCache(store, entry)
    asker = Asker(entry, client, cache, budget)
    return ApiRounds(entry, asker, cache, settings.api_in_flight)
