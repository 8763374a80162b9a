"""The contract of an instrument: plans of cells, and the results of computing them.

An instrument is a module that makes plans. A plan lists the pending cells of one model. The plan
also defines how to compute and write a group of cells, and how to land cells. An executor runs the
groups: in this process, as Prefect tasks, or on a Ray cluster. ``driver`` decides what runs when.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from core.cells import BaseCell
from core.errors import NotMeasurable, TidemarkError
from core.settings import Settings
from core.storage.store import Store
from instruments.running.retries import retrying
from models.catalogue import ModelEntry

_log = logging.getLogger(__name__)
_Cell = TypeVar("_Cell")


@dataclass(frozen=True)
class Failure:
    """A failed cell or step; the run continues with other work."""

    what: str  # name of the cell or step
    why: str
    is_fatal: bool = False  # True if the model's other cells were skipped
    error: str = field(default="", compare=False)  # name of the error's class
    may_pass: bool = field(default=True, compare=False)  # False if every attempt would fail so

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class Done:
    """The result of computing one group of cells."""

    num_items: int = 0  # number of answered questions or puzzle items
    lack: str = ""  # message about missing answers; else empty
    remark: str = ""  # reason why a complete cell has no items; else empty
    claimed: tuple[Any, ...] = ()  # the cells that other processes claim


@dataclass(frozen=True)
class Plan(ABC, Generic[_Cell]):
    """The work of one model; instances can be pickled and sent to another process."""

    verb: ClassVar[str]  # first word of the work's name in progress reports
    # Error classes after which all other cells of the model would fail, too.
    fatal: ClassVar[tuple[type[Exception], ...]] = ()
    # True if an executor tries a group again after transient errors (``running/retries.py``).
    is_retried: ClassVar[bool] = False

    entry: ModelEntry
    cells: tuple[_Cell, ...]  # all requested cells, pending or complete
    pending: tuple[_Cell, ...]
    # Why protocols of the request cannot be used with this model, by protocol.
    refusals: Mapping[str, str] = field(default_factory=dict)

    @property
    def groups(self) -> list[tuple[_Cell, ...]]:
        """The pending cells in groups; the cells of a group are computed together."""
        return [(cell,) for cell in self.pending]

    @property
    def num_done(self) -> int:
        """The number of cells that were complete before the run."""
        return len(self.cells) - len(self.pending)

    def files_of(self, cell: _Cell) -> BaseCell:
        """Return the key of a cell, which determines the paths of its files."""
        if not isinstance(cell, BaseCell):
            raise TypeError(f"{type(self).__name__} must say which files {cell!r} has")
        return cell

    def prepare(self, settings: Settings) -> list[Failure]:
        """Load the model, so that a broken one fails once; return warnings about this machine."""
        return []

    @abstractmethod
    def in_flight(self, settings: Settings) -> int:
        """Return the number of groups that an executor should run concurrently."""

    @abstractmethod
    def is_done(self, cell: _Cell, store: Store) -> bool:
        """Return True if a cell's file is written and complete."""

    @abstractmethod
    def attempt(self, cells: tuple[_Cell, ...], settings: Settings) -> Done:
        """Claim, compute and write a group of cells; raise an error if the group fails.

        Cells that other processes claim are not computed, but returned.
        """

    @abstractmethod
    def land(self, settings: Settings) -> int:
        """Land the written cells; return the number of landed cells."""


Ended = tuple[tuple[Any, ...], Done | Failure]  # a group of cells, and its result
# A function that runs groups of a plan, and yields each group with its result. It takes a group
# only when the group can begin at once. It takes no group after a fatal failure.
Execute = Callable[[Plan[Any], Iterable[tuple[Any, ...]], Settings], Iterator[Ended]]


def in_process(
    plan: Plan[Any], groups: Iterable[tuple[Any, ...]], settings: Settings
) -> Iterator[Ended]:
    """Run groups one after the other in this process; the default ``Execute`` function."""
    for cells in groups:
        attempt = partial(plan.attempt, cells, settings)
        try:
            if plan.is_retried:
                result: Done | Failure = retrying(str(cells[0]), attempt)
            else:
                result = attempt()
        except Exception as error:  # noqa: BLE001, continue with other groups after any error
            result = failure_of(str(cells[0]), error, isinstance(error, plan.fatal))
        yield cells, result
        if isinstance(result, Failure) and result.is_fatal:
            return


def failure_of(what: str, error: BaseException, is_fatal: bool = False) -> Failure:
    """Convert an error to a Failure; log the traceback if the error is unexpected (a bug).

    If the error's text begins with ``what``, with or without its verb, this part is left out.

    Raises:
        BaseException: the error itself, if it ends the process, such as KeyboardInterrupt.
    """
    if not isinstance(error, Exception):
        raise error
    kind = type(error).__name__
    if isinstance(error, TidemarkError):
        why = str(error).removeprefix(f"{what}: ").removeprefix(f"{what.partition(' ')[2]}: ")
    else:
        _log.error("%s failed", what, exc_info=error)
        why = f"{kind}: {error}; this is a bug, see the log"
    may_pass = not isinstance(error, NotMeasurable)
    return Failure(what, why, is_fatal, error=kind, may_pass=may_pass)
