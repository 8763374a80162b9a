"""The driver: the order in which a process computes the pending cells of models.

Any number of processes on any machines may work at the same time. Claims divide the cells among
them, so that they need no coordinator. A process takes the model with the most work left per
process on it. It loads the model once, and computes the cells that nobody else has begun. Then it
takes the next model. At the end it waits for cells of others, and does those of dead processes.
"""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from core import progress
from core.cells.failures import (
    CellFailure,
    forget_failure,
    note_failure,
    read_failure,
    read_failures,
    stem_of_model,
)
from core.errors import TidemarkError, UsageError
from core.settings import Settings
from core.storage.claims import Claims, count_present, is_claimed, present, sweep
from core.storage.store import Store
from instruments.landing import publish_alone
from instruments.runner import Done, Execute, Failure, Plan, failure_of, in_process
from instruments.running.retries import retrying
from instruments.running.stopping import go_on
from models.catalogue import ModelEntry
from warehouse.database.repair import require_known_databases
from warehouse.read.publish import is_current

_log = logging.getLogger(__name__)
Group = tuple[Any, ...]  # cells that are computed together


@dataclass(frozen=True)
class Backlog:
    """The pending work of one model, as far as known from names of files."""

    keys: frozenset[str]  # of the cells that nobody has begun
    seconds: float  # estimated for one process; of any unit if no cell of any model was timed


def each_once(models: Sequence[str]) -> dict[str, Backlog]:
    """Return the same amount of work for each model, so that each is taken once, in this order."""
    return {model: Backlog(frozenset({model}), 1.0) for model in models}


@dataclass(frozen=True)
class WorkRequest:
    """The models whose pending cells are to be computed, and how.

    Attributes:
        plan: returns the plan of a model; raises TidemarkError if the model has none.
        root: the first folder of the cells' paths.
        backlog: returns the work left of each model; models without any are left out.
        run: id of the run; cells that have failed in this run are not tried again.
        retry_failed: True to try again also cells that failed for a lasting reason.
        prepare: called before a model is loaded, for example to wait for GPUs.
        expect: called with the name of the model that is probably the next but one.
        ends_on: errors of planning and loading that end the work on all models.
    """

    models: tuple[str, ...]
    plan: Callable[[str], Plan[Any]]
    root: str
    backlog: Callable[[Sequence[str]], dict[str, Backlog]] = each_once
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    retry_failed: bool = False
    prepare: Callable[[Plan[Any]], None] = lambda plan: None
    expect: Callable[[str], None] = lambda model: None
    ends_on: tuple[type[TidemarkError], ...] = (UsageError,)


@dataclass
class Summary:
    """The work that a process did: numbers of items and cells, plans, and failures."""

    num_items: int = 0  # number of answered questions or puzzle items
    num_landed: int = 0  # number of landed cells
    num_cells: int = 0  # number of complete cells
    remarks: list[Failure] = field(default_factory=list)  # cells without items, with reasons
    failures: list[Failure] = field(default_factory=list)
    plans: list[Plan[Any]] = field(default_factory=list)
    computed: list[ModelEntry] = field(default_factory=list)  # of which cells were computed


def work(request: WorkRequest, settings: Settings, execute: Execute = in_process) -> Summary:
    """Compute the pending cells of models until none is left; collect failures and continue.

    Raises:
        TidemarkError: an error of ``request.ends_on``.
        StorageError: the data root cannot be read.
        NewerVersion: a later version wrote the warehouse here; nothing was computed.
    """
    require_known_databases(settings)
    drain = _Drain(request, settings, execute)
    while (model := drain.choose()) is not None:
        with drain.present_on(model):
            drain.take(model)
    drain.wait_for_others()
    return drain.summary


def work_and_land(request: WorkRequest, settings: Settings) -> Summary:
    """Work in this process, land the cells of each model, and publish once if anything is new.

    If a model fails, the cells finished before the failure still land.

    Raises:
        TidemarkError: as ``work``, or the snapshot cannot be published.
    """
    summary = work(request, settings)
    land(summary, settings)
    if not is_current(settings):
        publish_alone(settings)
    return summary


def land(summary: Summary, settings: Settings) -> None:
    """Land the cells of all plans; add errors to the failures of the summary."""
    for plan in summary.plans:
        try:
            summary.num_landed += retrying(f"land {plan.entry.name}", partial(plan.land, settings))
        except TidemarkError as error:
            summary.failures.append(Failure(f"land {plan.entry.name}", str(error)))


def rank(backlogs: Mapping[str, Backlog], processes: Mapping[str, int]) -> list[str]:
    """Return the models, the one first that a further process should take.

    It is the model with the most work left for each process, if one more joins those on it. Models
    with the same amount stay in their order.
    """
    shares = {
        model: backlog.seconds / (1 + processes.get(model, 0))
        for model, backlog in backlogs.items()
    }
    return sorted(shares, key=lambda model: -shares[model])


class _Drain:
    """The state of one call of ``work``, and the steps that take, compute and await cells."""

    def __init__(self, request: WorkRequest, settings: Settings, execute: Execute) -> None:
        self.store = Store(settings.home)
        self.summary = Summary()
        self._request = request
        self._settings = settings
        self._execute = execute
        self._given_up: set[str] = set()  # models that this process cannot use
        self._seen: dict[str, frozenset[str]] = defaultdict(frozenset)  # keys left when last taken
        self._of_others: list[tuple[Plan[Any], list[Group]]] = []  # groups that others compute
        self._recorded: set[str] = set()  # stems of the records of failures
        self._num_ended = 0  # groups of the present plan
        self._num_failed = 0  # groups of the present plan

    def choose(self) -> str | None:
        """Return the model to take now: the one with the most work left per process on it."""
        models = [each for each in self._request.models if each not in self._given_up]
        backlogs = self._request.backlog(models)
        present_on = count_present(self.store)
        processes = {model: present_on[f"{self._request.root}/{model}"] for model in models}
        new = [each for each in rank(backlogs, processes) if backlogs[each].keys - self._seen[each]]
        if len(new) > 1:
            self._request.expect(new[1])
        if not new:
            return None
        self._seen[new[0]] |= backlogs[new[0]].keys
        return new[0]

    def present_on(self, model: str) -> AbstractContextManager[None]:
        """Let other processes count this one among those on a model."""
        return present(self.store, f"{self._request.root}/{model}")

    def take(self, model: str) -> None:
        """Plan and compute a model's cells that nobody has begun; record a failure of the model."""
        name = model
        known = read_failure(self.store, stem_of_model(self._request.root, model))
        if known is not None and known.run == self._request.run:  # another process tried the model
            self._given_up.add(model)
            self.summary.failures.append(_failure_from(known))
            return
        try:
            plan = self._request.plan(model)
            name = plan.entry.name
            self.summary.plans.append(plan)
            if plan.pending:
                self._request.prepare(plan)
                self.summary.failures += plan.prepare(self._settings)
        except self._request.ends_on:
            raise
        except TidemarkError as error:
            self._given_up.add(model)
            failure = failure_of(model, error)
            self.summary.failures.append(failure)
            self._note(stem_of_model(self._request.root, name), failure)
            return
        if not self.begin(plan):
            self._given_up.add(model)

    def begin(self, plan: Plan[Any]) -> bool:
        """Compute the cells of a plan that nobody has begun; return False if the model failed."""
        self.summary.num_cells += plan.num_done
        for protocol, why in plan.refusals.items():
            failure = Failure(plan.entry.name, why, error="NotMeasurable", may_pass=False)
            self.summary.failures.append(failure)
            if not plan.cells:  # without a record, the cells would seem pending for ever
                stem = stem_of_model(self._request.root, plan.entry.name)
                self._note(stem, failure, protocol)
        if not plan.pending:
            return True
        sweep(self.store)
        groups = list(self._to_try(plan, plan.groups))
        self._forget(stem_of_model(self._request.root, plan.entry.name))
        return self._compute(plan, groups)

    def _to_try(self, plan: Plan[Any], groups: Sequence[Group]) -> Iterator[Group]:
        """Yield the groups without the cells that have failed and are not to be tried again."""
        known = read_failures(self.store, self._request.root, plan.entry.name)
        self._recorded |= set(known)
        for cells in groups:
            left = []
            for cell in cells:
                failure = known.get(plan.files_of(cell).stem)
                if failure is None or not self._is_final(failure):
                    left.append(cell)
                else:
                    self.summary.failures.append(_failure_from(failure))
            if left:
                yield tuple(left)

    def _is_final(self, failure: CellFailure) -> bool:
        """Return True if a failed cell is not tried again in this run."""
        is_retried = self._request.retry_failed and failure.run != self._request.run
        return failure.is_final(self._request.run) and not is_retried

    def _compute(self, plan: Plan[Any], groups: Sequence[Group]) -> bool:
        """Compute groups; return False if the model failed. Keep claimed groups for later."""
        self._num_ended = 0
        self._num_failed = 0
        claimed: list[Group] = []
        free = self._free(plan, groups, claimed)
        is_usable = True
        for cells, result in self._execute(plan, free, self._settings):
            self._count(plan, cells, result, len(groups))
            if isinstance(result, Failure):
                is_usable = is_usable and not result.is_fatal
            elif result.claimed:
                claimed.append(result.claimed)
        if claimed and is_usable:
            self._of_others.append((plan, claimed))
        return is_usable

    def _free(
        self, plan: Plan[Any], groups: Sequence[Group], claimed: list[Group]
    ) -> Iterator[Group]:
        """Yield the groups that nobody computes, without done cells; add others to ``claimed``."""
        for cells in groups:
            missing = tuple(cell for cell in cells if not plan.is_done(cell, self.store))
            self.summary.num_cells += len(cells) - len(missing)
            if not missing:
                self._num_ended += 1
            elif any(is_claimed(self.store, plan.files_of(cell).done_path) for cell in missing):
                claimed.append(missing)
            else:
                yield missing

    def _count(
        self, plan: Plan[Any], cells: Group, result: Done | Failure, num_groups: int
    ) -> None:
        """Add a result to the summary, update the cells' failure records, report progress."""
        summary = self.summary
        self._num_ended += 1
        if isinstance(result, Failure):
            self._num_failed += 1
            summary.failures.append(result)
            for cell in cells:
                self._note(plan.files_of(cell).stem, result)
        else:
            done = [cell for cell in cells if cell not in result.claimed]
            summary.num_cells += len(done)
            summary.num_items += result.num_items
            if done and plan.entry not in summary.computed:
                summary.computed.append(plan.entry)
            if result.remark:
                summary.remarks.append(Failure(str(cells[0]), result.remark))
            lack = Failure(str(cells[0]), result.lack, error="NoAnswer")
            summary.failures += [lack] if result.lack else []
            for stem in (plan.files_of(cell).stem for cell in done):
                if result.lack:
                    self._note(stem, lack)
                else:
                    self._forget(stem)
        step = f"{plan.verb} {plan.entry.name}"
        progress.report(step, self._num_ended - self._num_failed, num_groups, self._num_failed)

    def _forget(self, stem: str) -> None:
        """Delete the record of a cell's earlier failure, if there is one."""
        if stem in self._recorded:
            forget_failure(self.store, stem)
            self._recorded.discard(stem)

    def _note(self, stem: str, failure: Failure, protocol: str | None = None) -> None:
        """Write the record of a failed cell or model; see ``core.cells.failures``."""
        record = CellFailure(
            run=self._request.run,
            cell=failure.what,
            reason=failure.why,
            error=failure.error,
            may_pass=failure.may_pass,
            attempts=1,
            failed_at=dt.datetime.now(dt.UTC),
            protocol=protocol,
        )
        note_failure(self.store, stem, record)

    def wait_for_others(self) -> None:
        """Wait until the cells of other processes are done; do those of processes that died."""
        while self._of_others:
            plan, groups = self._of_others.pop(0)
            left: list[Group] = []
            for cells in groups:
                missing = tuple(cell for cell in cells if not self._await(plan, cell))
                self.summary.num_cells += len(cells) - len(missing)
                if missing:
                    left.append(missing)
            self._compute(plan, list(self._to_try(plan, left)))

    def _await(self, plan: Plan[Any], cell: Any) -> bool:
        """Wait while a living process claims a cell; return True if the cell is done."""

        def is_done() -> bool:
            go_on()
            return plan.is_done(cell, self.store)

        name = plan.files_of(cell).done_path
        if not is_done() and is_claimed(self.store, name):
            _log.warning("waiting: another process holds %s", cell)
            Claims(self.store).wait(name, is_done)
        return is_done()


def _failure_from(record: CellFailure) -> Failure:
    return Failure(record.cell, record.reason, error=record.error, may_pass=record.may_pass)
