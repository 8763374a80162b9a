"""The loop shared by all instruments: claim cells, compute and write them, land, publish.

An instrument is a module that makes plans. A plan lists the pending cells of one model. The plan
also defines how to compute and write a group of cells, and how to land cells. An executor runs the
groups: in this process, as Prefect tasks, or on a Ray cluster.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from core import progress
from core.errors import TidemarkError, UsageError
from core.settings import Settings
from core.storage.claims import sweep
from core.storage.store import Store
from instruments.landing import Slot, publish_alone
from instruments.retries import retrying
from models.catalogue import ModelEntry

_log = logging.getLogger(__name__)
_Cell = TypeVar("_Cell")


@dataclass(frozen=True)
class Failure:
    """A failed cell or step; the run continues with other work."""

    what: str  # name of the cell or step
    why: str
    is_fatal: bool = False  # True if the model's other cells were skipped

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

    entry: ModelEntry
    cells: tuple[_Cell, ...]  # all requested cells, pending or complete
    pending: tuple[_Cell, ...]

    @property
    def step(self) -> str:
        """The name of this work in progress reports."""
        return f"{self.verb} {self.entry.name}"

    @property
    def groups(self) -> list[tuple[_Cell, ...]]:
        """The pending cells in groups; the cells of a group are computed together."""
        return [(cell,) for cell in self.pending]

    @property
    def num_done(self) -> int:
        """The number of cells that were complete before the run."""
        return len(self.cells) - len(self.pending)

    @abstractmethod
    def in_flight(self, settings: Settings) -> int:
        """Return the number of groups that an executor should run concurrently."""

    @abstractmethod
    def is_done(self, cell: _Cell, store: Store) -> bool:
        """Return True if a cell's file is written and complete."""

    @abstractmethod
    def attempt(self, cells: tuple[_Cell, ...], settings: Settings, wait: bool) -> Done:
        """Claim, compute and write a group of cells; raise an error if the group fails.

        If ``wait``, wait for cells that other processes claim; else skip them.
        """

    @abstractmethod
    def land(self, settings: Settings, slot: Slot = nullcontext) -> int:
        """Land the written cells while holding lock ``slot``; return the number of landed cells."""


class Execute(Protocol):
    """A function that runs groups of a plan and yields the result of each group, in order.

    The function may stop after a fatal failure.
    """

    def __call__(
        self, plan: Plan[Any], groups: Sequence[tuple[Any, ...]], settings: Settings, wait: bool
    ) -> Iterable[Done | Failure]:
        """Run the groups and yield their results."""


@dataclass
class Summary:
    """The numbers of items and cells of a run, and its failures."""

    num_items: int = 0  # number of answered questions or puzzle items
    num_landed: int = 0  # number of landed cells
    num_cells: int = 0  # number of complete cells
    remarks: list[Failure] = field(default_factory=list)  # cells without items, with reasons
    failures: list[Failure] = field(default_factory=list)  # failed work, which the next run repeats

    def add(self, other: Summary) -> None:
        """Add the numbers and failures of another run."""
        self.num_items += other.num_items
        self.num_landed += other.num_landed
        self.num_cells += other.num_cells
        self.remarks += other.remarks
        self.failures += other.failures


def failure_of(what: str, error: BaseException, is_fatal: bool = False) -> Failure:
    """Convert an error to a Failure; log the traceback if the error is unexpected (a bug).

    ``what`` is left out of the error's text, also without its verb ("crawl arxiv 2024-01").

    Raises:
        BaseException: the error itself, if it ends the process, such as KeyboardInterrupt.
    """
    if not isinstance(error, Exception):
        raise error
    if isinstance(error, TidemarkError):
        why = str(error).removeprefix(f"{what}: ").removeprefix(f"{what.partition(' ')[2]}: ")
        return Failure(what, why, is_fatal)
    _log.error("%s failed", what, exc_info=error)
    return Failure(what, f"{type(error).__name__}: {error}; this is a bug, see the log", is_fatal)


def in_process(
    plan: Plan[Any], groups: Sequence[tuple[Any, ...]], settings: Settings, wait: bool
) -> Iterator[Done | Failure]:
    """Run groups one after the other in this process; the default ``Execute`` function."""
    num_failed = 0
    for number, cells in enumerate(groups, start=1):
        try:
            result: Done | Failure = plan.attempt(cells, settings, wait)
        except Exception as error:  # noqa: BLE001, continue with other groups after any error
            result = failure_of(str(cells[0]), error, isinstance(error, plan.fatal))
        num_failed += isinstance(result, Failure)
        progress.report(plan.step, number - num_failed, len(groups), num_failed)
        yield result
        if isinstance(result, Failure) and result.is_fatal:
            return


def run(
    plan: Plan[Any], settings: Settings, execute: Execute = in_process, helps: bool = False
) -> Summary:
    """Compute the pending cells of a plan; collect failures and continue with other cells.

    Cells that other processes claim (are computing) come last, since most are done by then. If
    ``helps``, leave these cells: the process that is helped waits for all cells.
    """
    summary, groups, store = Summary(num_cells=plan.num_done), plan.groups, Store(settings.home)
    if groups:
        sweep(store)
    for wait in (False,) if helps else (False, True):
        claimed = []
        for cells, result in zip(groups, execute(plan, groups, settings, wait), strict=False):
            if isinstance(result, Failure):
                summary.failures.append(result)
                if result.is_fatal:
                    return summary
            else:
                _count(summary, cells, result)
                claimed.append(result.claimed)
        groups = []
        for cells in claimed:
            unfinished = tuple(cell for cell in cells if not plan.is_done(cell, store))
            summary.num_cells += len(cells) - len(unfinished)
            groups += [unfinished] if unfinished else []
    return summary


def _count(summary: Summary, cells: tuple[Any, ...], done: Done) -> None:
    summary.num_cells += len(cells) - len(done.claimed)
    summary.num_items += done.num_items
    if done.lack:
        summary.failures.append(Failure(str(cells[0]), done.lack))
    if done.remark:
        summary.remarks.append(Failure(str(cells[0]), done.remark))


_Plan = TypeVar("_Plan", bound=Plan[Any])


def plan_or_failure(model: str, make: Callable[[], _Plan]) -> _Plan | Failure:
    """Return a model's plan, or a Failure if the model cannot be planned.

    Raises:
        UsageError: the request is wrong.
    """
    try:
        return make()
    except UsageError:
        raise
    except TidemarkError as error:
        return failure_of(model, error)


def run_and_land(plans: Iterable[Plan[Any] | Failure], settings: Settings) -> Summary:
    """Run plans in this process, land the cells of each, and publish once.

    If a model fails, the cells finished before the failure still land.

    Raises:
        TidemarkError: the snapshot cannot be published.
    """
    summary = Summary()
    for plan in plans:
        if isinstance(plan, Failure):
            summary.failures.append(plan)
            continue
        summary.add(run(plan, settings))
        try:
            land = partial(plan.land, settings)
            summary.num_landed += retrying(f"land {plan.entry.name}", land)
        except TidemarkError as error:
            summary.failures.append(Failure(f"land {plan.entry.name}", str(error)))
    publish_alone(settings)
    return summary
