"""Paid APIs: the spending limit of a run, and the stored responses.

    answer-cache/<served name>-<digest>/answers/<xx>/<digest of the request>.json
    answer-cache/<served name>-<digest>/sent/<id>.json

The folder belongs to one base URL and served name. Each response is written to its own file before
it is used. A request in progress has a file in ``sent/`` with its maximum cost, which is deleted
when the outcome is known. If such a file remains, the request may have been paid for, but its
response was lost (dropped connection, incomplete response, killed process). Requests share no
files, so threads, processes and machines need no lock.
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from core.errors import BudgetReached, StorageError, UsageError
from core.json import JsonObject
from core.settings import Settings
from core.storage.records import read_record
from core.storage.store import Store, path_part
from models.catalogue import ModelEntry

_ROUNDING = 1e-9  # dollars
_PRICED_TOKENS = 1e6  # prices are for so many


FOLDER = "answer-cache"
_READERS = 8


@dataclass(frozen=True)
class Cost:
    """Numbers of tokens and their price; ``dollars`` is None if the entry states no prices."""

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Cost) -> Cost:
        is_priced = self.dollars is not None and other.dollars is not None
        return Cost(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.dollars or 0.0) + (other.dollars or 0.0) if is_priced else None,
        )

    def __str__(self) -> str:
        money = "" if self.dollars is None else f", {self.dollars:.6f} dollars"
        return f"{self.tokens} tokens ({self.input_tokens} in, {self.output_tokens} out){money}"


def cost_of(entry: ModelEntry, input_tokens: int, output_tokens: int) -> Cost:
    """Return the cost of tokens at the prices in a model's entry."""
    price_in = entry.dollars_per_million_input_tokens
    price_out = entry.dollars_per_million_output_tokens
    if price_in is None or price_out is None:
        return Cost(input_tokens, output_tokens, None)
    dollars = (input_tokens * price_in + output_tokens * price_out) / _PRICED_TOKENS
    return Cost(input_tokens, output_tokens, dollars)


class Budget:
    """The limits of a run's spending (None: no limit), shared by all its models and threads.

    ``spent`` is the cost so far; lost responses count with their estimated cost.
    """

    def __init__(self, max_tokens: int | None = None, max_dollars: float | None = None) -> None:
        self.max_tokens = max_tokens
        self.max_dollars = max_dollars
        self.spent = Cost()
        self._in_flight: list[Cost] = []
        self._changed = threading.Condition()

    @classmethod
    def of(cls, settings: Settings) -> Budget:
        """Return the budget of a run, from the settings."""
        return cls(settings.max_answer_tokens, settings.max_answer_dollars)

    @property
    def is_limited(self) -> bool:
        """True if the run has a limit of tokens or dollars."""
        return self.max_tokens is not None or self.max_dollars is not None

    def check(self, entry: ModelEntry) -> None:
        """Raise UsageError if there is a limit in dollars but the entry has no prices."""
        if self.max_dollars is not None and entry.dollars_per_million_input_tokens is None:
            raise UsageError(
                f"{entry.name}: the run may spend {self.max_dollars} dollars, but the entry has no "
                "prices; add dollars_per_million_input_tokens and …_output_tokens to it, or limit "
                "tokens instead (TIDEMARK_MAX_ANSWER_TOKENS)"
            )

    def reserve(self, max_cost: Cost) -> None:
        """Reserve a request's maximum cost; if too little is left, wait for requests in progress.

        Raise BudgetReached if too little is left and no request is in progress.
        """
        with self._changed:
            while not self._fits(max_cost):
                if not self._in_flight:
                    raise BudgetReached(f"a request may take {max_cost}; {self}")
                self._changed.wait()
            self._in_flight.append(max_cost)

    def settle(self, max_cost: Cost, paid: Cost) -> None:
        """Replace a reserved maximum cost by the actual cost."""
        with self._changed:
            self._in_flight.remove(max_cost)
            self.spent += paid
            self._changed.notify_all()

    def _fits(self, max_cost: Cost) -> bool:
        """Return True if a request's maximum cost and those in progress keep to the limits."""
        total = sum(self._in_flight, self.spent + max_cost)
        if self.max_tokens is not None and total.tokens > self.max_tokens:
            return False
        dollars = total.dollars or 0.0
        return self.max_dollars is None or dollars <= self.max_dollars + _ROUNDING

    def __str__(self) -> str:
        left = []
        if self.max_tokens is not None:
            tokens = max(0, self.max_tokens - self.spent.tokens)
            left.append(f"{tokens} of {self.max_tokens} tokens")
        if self.max_dollars is not None:
            dollars = max(0.0, self.max_dollars - (self.spent.dollars or 0.0))
            left.append(f"{dollars:.6f} of {self.max_dollars} dollars")
        rest = f"; left: {' and '.join(left)}" if left else ""
        return f"this run has spent {self.spent}{rest}"


class Paid(BaseModel):
    """The cost of a request, as stored in its file."""

    model_config = ConfigDict(frozen=True)

    input_tokens: int
    output_tokens: int
    dollars: float | None
    is_estimated: bool

    @property
    def cost(self) -> Cost:
        """The same numbers as a ``Cost``, which can be added to other costs."""
        return Cost(self.input_tokens, self.output_tokens, self.dollars)


class Received(BaseModel):
    """A stored response.

    Attributes:
        asked: the request; its digest is the name of the response's file.
        left_out: unsupported parameters of the request, which were not sent.
        paid: cost of this response; ``sent/`` has the costs of earlier lost responses.
        num_refused: number of refusals by the server before this response.
        note: path of the request's file in ``sent/``, which remains if the process is killed.
    """

    model_config = ConfigDict(frozen=True)

    asked: JsonObject
    left_out: list[str]
    answer: JsonObject
    paid: Paid
    num_refused: int
    note: str
    at: str


@dataclass(frozen=True)
class Spending:
    """The cost of a model's responses, over all runs.

    Attributes:
        num_lost: number of requests whose response is missing or unreadable; counted as paid.
        num_refused: number of refusals (status 429, 500, …) before a response; they are free.
        cost: cost of received and lost responses.
        num_estimated: number of responses without a stated cost; counted at their maximum cost.
    """

    num_answers: int = 0
    num_lost: int = 0
    num_refused: int = 0
    cost: Cost = Cost()
    num_estimated: int = 0

    def __str__(self) -> str:
        lost = f", {self.num_lost} lost on their way" if self.num_lost else ""
        return f"{self.num_answers:,} answers{lost}: {self.cost}"


class AnswerCache:
    """The stored responses of one model; safe for threads and processes.

    ``digest`` is a hash of base URL and served name. ``folder`` contains the responses.
    """

    def __init__(self, store: Store, entry: ModelEntry) -> None:
        self.store = store
        self.address = entry.location.rstrip("/")
        self.served_name = entry.served_name or ""
        digest = hashlib.sha256(json.dumps([self.address, self.served_name]).encode()).hexdigest()
        self.digest = digest[:16]
        self.folder = f"{FOLDER}/{path_part(self.served_name[:60])}-{self.digest}"

    def key_of(self, body: JsonObject) -> str:
        """Return the digest of a request, which is the key of its response."""
        asked = json.dumps([self.address, body], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()

    def find(self, key: str) -> Received | None:
        """Return the stored response to a request, or None if there is none.

        Raise StorageError if the response's file is damaged or cannot be read.
        """
        return self._read(self._path(key)) if self.has(key) else None

    def has(self, key: str) -> bool:
        """Return True if a response to the request is stored."""
        return self.store.exists(self._path(key))

    def has_any(self) -> bool:
        """Return True if a response to any request is stored."""
        return bool(self.store.list(f"{self.folder}/answers/*/*.json"))

    def read_some(self, count: int) -> list[Received]:
        """Return at most ``count`` of the stored responses, in any order."""
        paths = self.store.list(f"{self.folder}/answers/*/*.json")[:count]
        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(self._read, paths))

    def keep(self, key: str, received: Received) -> None:
        """Write a response durably."""
        self.store.write_bytes(self._path(key), received.model_dump_json(indent=1).encode())

    def note_sent(self, key: str, most: Paid) -> str:
        """Write a file for a request in progress, with its maximum cost; return the path."""
        path = f"{self.folder}/sent/{uuid.uuid4().hex}.json"
        self.note_lost(path, key, most, "no answer: the process ended before it came")
        return path

    def note_lost(self, path: str, key: str, paid: Paid, reason: str) -> None:
        """Write into a request's file that its response is lost, with reason and cost."""
        note = {"request": key, "reason": reason, "paid": paid.model_dump()}
        self.store.write_bytes(path, json.dumps(note, indent=1).encode())

    def forget_sent(self, note: str) -> None:
        """Delete the file of a request whose outcome is known."""
        self.store.delete(note)

    def spending(self) -> Spending:
        """Return the total cost of all runs; read every file.

        Raise StorageError if a file is damaged or the data root cannot be read.
        """
        with ThreadPoolExecutor(_READERS) as pool:
            # List ``sent/`` before the responses, so that requests that end meanwhile are counted.
            paths = self.store.list(f"{self.folder}/sent/*.json")
            notes = dict(zip(paths, pool.map(self._read_note, paths), strict=True))
            answers = self.store.list(f"{self.folder}/answers/*/*.json")
            received = list(pool.map(self._read, answers))
        for each in received:
            notes.pop(each.note, None)
        lost = [paid for paid in notes.values() if paid is not None]
        paid = [each.paid for each in received] + lost
        return Spending(
            num_answers=len(received),
            num_lost=len(lost),
            num_refused=sum(each.num_refused for each in received),
            cost=sum((each.cost for each in paid), Cost()),
            num_estimated=sum(each.is_estimated for each in paid),
        )

    def _path(self, key: str) -> str:
        return f"{self.folder}/answers/{key[:2]}/{key}.json"

    def _read(self, path: str) -> Received:
        remedy = (
            "bring it back from a backup, or move it out of the data root to have the question "
            "asked, and paid, again"
        )
        return read_record(Received, self.store, path, "what tidemark writes for an answer", remedy)

    def _read_note(self, path: str) -> Paid | None:
        """Return the cost in a request's file; None if the file was deleted meanwhile."""
        try:
            return Paid.model_validate(json.loads(self.store.read_bytes(path))["paid"])
        except StorageError:
            if self.store.exists(path):
                raise
            return None  # another thread or run deleted the file: the response arrived
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{self.store.url(path)} is damaged; bring it back from a backup, or move it out "
                "of the data root: what it notes as paid is then not counted"
            ) from error
