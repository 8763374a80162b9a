"""Answers that were paid for, each kept in a file of its own before anything is made of it.

    answer-cache/<served name>-<digest>/answers/<xx>/<digest of the request>.json
    answer-cache/<served name>-<digest>/sent/<id>.json

The folder is of a base URL and a served name, the first file of a whole request. A request that is
under way has a file in ``sent/`` with what it may cost at most; it is deleted when its outcome is
known. So what stays there was sent, may have been paid, and was never read: a dropped connection, a
cut answer, a process that was killed. Nothing is ever written twice, so that threads, processes and
machines need no turns.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import StorageError
from core.storage import Store, path_part
from models.answer_budget import Cost
from models.catalogue import ModelEntry

FOLDER = "answer-cache"
_READERS = 8


class Paid(BaseModel):
    """What a request took, as its file says.

    Attributes:
        input_tokens: as the server counts them, or at most.
        output_tokens: likewise.
        dollars: by the prices of that day; None where there were none.
        is_estimated: the server did not say.
    """

    model_config = ConfigDict(frozen=True)

    input_tokens: int
    output_tokens: int
    dollars: float | None
    is_estimated: bool

    @property
    def cost(self) -> Cost:
        """For sums."""
        return Cost(self.input_tokens, self.output_tokens, self.dollars)


class Received(BaseModel):
    """An answer as it came.

    Attributes:
        asked: the request that names the file.
        left_out: parameters of it that the model does not take, and which were not sent.
        answer: the server's JSON: id, model, choices and usage.
        paid: for it; for answers to the same request that were lost before, see ``sent/``.
        num_refused: how often the server did not serve the request before it did.
        note: file in ``sent/`` of this very request, should a kill have left it there.
        at: when it came, ISO 8601.
    """

    model_config = ConfigDict(frozen=True)

    asked: dict[str, Any]
    left_out: list[str]
    answer: dict[str, Any]
    paid: Paid
    num_refused: int
    note: str
    at: str


@dataclass(frozen=True)
class Spending:
    """What a model's answers have taken, over all runs.

    Attributes:
        num_answers: received and kept.
        num_lost: requests whose answer never came or could not be read; counted as paid.
        num_refused: requests that the server did not serve (429, 500, …), before it did; free.
        cost: of answers and lost ones.
        num_estimated: of both, those whose cost the server did not say; counted at their most.
    """

    num_answers: int = 0
    num_lost: int = 0
    num_refused: int = 0
    cost: Cost = Cost()
    num_estimated: int = 0

    def __str__(self) -> str:
        lost = f", {self.num_lost} lost on their way" if self.num_lost else ""
        return f"{self.num_answers:,} answers{lost}: {self.cost}"

    @property
    def num_requests(self) -> int:
        """All that were sent."""
        return self.num_answers + self.num_lost + self.num_refused


class AnswerCache:
    """The answers of one model; for any number of threads and processes.

    Args:
        store: the data root.
        entry: of kind api.

    Attributes:
        digest: of base URL and served name.
        folder: where the answers are, under the data root.
    """

    def __init__(self, store: Store, entry: ModelEntry) -> None:
        self.store = store
        self.address, self.served_name = entry.location.rstrip("/"), entry.served_name or ""
        digest = hashlib.sha256(json.dumps([self.address, self.served_name]).encode()).hexdigest()
        self.digest = digest[:16]
        self.folder = f"{FOLDER}/{path_part(self.served_name[:60])}-{self.digest}"

    def key_of(self, body: dict[str, Any]) -> str:
        """Return the digest that names a request's answer."""
        asked = json.dumps([self.address, body], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()

    def find(self, key: str) -> Received | None:
        """Return the answer to a request, or None where it was never received.

        Raises:
            StorageError: its file is damaged, or the data root cannot be read.
        """
        return self._read(self._path(key)) if self.has(key) else None

    def has(self, key: str) -> bool:
        """Whether a request was answered."""
        return self.store.exists(self._path(key))

    def has_any(self) -> bool:
        """Whether the model has ever answered."""
        return bool(self.store.list(f"{self.folder}/answers/*/*.json"))

    def read_some(self, count: int) -> list[Received]:
        """Return that many of the answers, or all, as they come."""
        paths = self.store.list(f"{self.folder}/answers/*/*.json")[:count]
        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(self._read, paths))

    def keep(self, key: str, received: Received) -> None:
        """Write an answer down, durably."""
        self.store.write_bytes(self._path(key), received.model_dump_json(indent=1).encode())

    def note_sent(self, key: str, most: Paid) -> str:
        """Write down that a request is sent and what it may cost; return the note's path."""
        path = f"{self.folder}/sent/{uuid.uuid4().hex}.json"
        self._write_note(path, key, most, "no answer: the process ended before it came")
        return path

    def note_lost(self, note: str, key: str, paid: Paid, reason: str) -> None:
        """Write down that a request's answer is lost, and what it cost."""
        self._write_note(note, key, paid, reason)

    def forget_sent(self, note: str) -> None:
        """Delete a note: the request's outcome is known."""
        self.store.delete(note)

    def spending(self) -> Spending:
        """Add up what all runs have taken so far; reads every file.

        Raises:
            StorageError: a file is damaged, or the data root cannot be read.
        """
        with ThreadPoolExecutor(_READERS) as pool:
            # Before the answers: a request that ends meanwhile is counted twice rather than never.
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
            cost=_sum(each.cost for each in paid),
            num_estimated=sum(each.is_estimated for each in paid),
        )

    def _path(self, key: str) -> str:
        return f"{self.folder}/answers/{key[:2]}/{key}.json"

    def _read(self, path: str) -> Received:
        try:
            return Received.model_validate_json(self.store.read_bytes(path))
        except ValidationError as error:
            raise StorageError(
                f"{self.store.url(path)} is not what tidemark writes for an answer; restore it, "
                "or delete it to have the question asked, and paid, again"
            ) from error

    def _write_note(self, path: str, key: str, paid: Paid, reason: str) -> None:
        note = {"request": key, "reason": reason, "paid": paid.model_dump()}
        self.store.write_bytes(path, json.dumps(note, indent=1).encode())

    def _read_note(self, path: str) -> Paid | None:
        try:
            return Paid.model_validate(json.loads(self.store.read_bytes(path))["paid"])
        except StorageError:
            if self.store.exists(path):
                raise
            return None  # its answer has come meanwhile
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self.store.url(path)} is damaged; delete it") from error


def read_spending(store: Store, entry: ModelEntry) -> Spending:
    """Return what a model behind an API has taken so far, over all runs; errors as ``spending``."""
    return AnswerCache(store, entry).spending()


def _sum(costs: Iterable[Cost]) -> Cost:
    return sum(costs, Cost())
