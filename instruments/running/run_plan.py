"""The plan of a run, made from the files in the data root, without any requests.

The run calls the same functions (``plan_crawl``, ``plan_scoring``). So the run does what the plan
says, unless a step fails or another process works at the same time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from core.cells.losses import Cell
from core.cells.record import median_seconds
from core.corpus.partition import Partition, Seal, read_seal
from core.corpus.sealing import HELD_BECAUSE, read_held
from core.errors import TidemarkError
from core.month import Period
from core.progress import counted, duration
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.manifest import lack_of
from instruments.losses import plan_scoring
from instruments.planning import Request, plan_crawl, select_sealed
from models.catalogue import ModelEntry, find_model

State = Literal["sealed", "partial", "held", "to crawl", "lacking"]
_WHAT: dict[State, str] = {
    "sealed": "sealed",
    "partial": "partial, asked again",
    "held": "held back, crawled again",
    "to crawl": "to crawl",
    "lacking": "not available",
}


@dataclass(frozen=True)
class PlannedPartition:
    """A month of a source, with the partition's state before the run."""

    partition: Partition
    state: State
    seal: Seal | None = None  # newest sealed version; None if not sealed
    why: str = ""  # reason for the state partial, held or lacking

    @property
    def is_new(self) -> bool:
        """True if the run creates the partition's first version."""
        return self.state in ("held", "to crawl")


@dataclass(frozen=True)
class PlannedModel:
    """The cells of one model, one cell per partition."""

    asked: str  # the model's name in the request
    entry: ModelEntry
    done: tuple[Cell, ...] = ()  # scored cells of sealed partitions; the run only lands them
    pending: tuple[Cell, ...] = ()  # unscored cells of sealed partitions
    new: tuple[Partition, ...] = ()  # partitions to crawl before scoring
    problem: str = ""  # reason why the model's cells are unknown or cannot be scored; else empty
    cell_s: float | None = None  # median seconds per scored cell of the model

    @property
    def num_to_score(self) -> int:
        """The number of cells that the run scores."""
        return len(self.pending) + len(self.new)

    @property
    def num_cells(self) -> int:
        """The total number of cells."""
        return len(self.done) + self.num_to_score

    @property
    def seconds(self) -> float | None:
        """The estimated seconds to score the cells one after the other; None if unknown."""
        if self.problem:
            return None
        if not self.num_to_score:
            return 0.0
        return None if self.cell_s is None else self.num_to_score * self.cell_s


@dataclass(frozen=True)
class PlanTable:
    """A printable table of the plan."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class RunPlan:
    """The partitions to crawl and the cells to score."""

    request: Request
    partitions: tuple[PlannedPartition, ...]
    models: tuple[PlannedModel, ...]

    def tables(self) -> list[PlanTable]:
        """Return two tables: the months of each source, and the cells of each model."""
        cells = (
            (each.asked, len(each.done), each.num_to_score, duration(each.seconds), each.problem)
            for each in self.models
        )
        return [
            PlanTable("months", ("source", "state", "months", "number"), tuple(self._months())),
            PlanTable("cells", ("model", "done", "to score", "time", "problem"), tuple(cells)),
        ]

    def _months(self) -> Iterator[tuple[object, ...]]:
        for source in self.request.sources:
            for state, what in _WHAT.items():
                months = [
                    each.partition.month
                    for each in self.partitions
                    if (each.partition.source, each.state) == (source, state)
                    and each.partition.month is not None
                ]
                if months:
                    yield source, what, spans(months), len(months)

    def total(self) -> str:
        """Return one line of text with the totals."""
        num_due = sum(each.state in ("to crawl", "held", "partial") for each in self.partitions)
        crawled = counted(num_due, "partition")
        cells = counted(sum(model.num_to_score for model in self.models), "cell")
        done = sum(len(model.done) for model in self.models)
        seconds = sum(model.seconds or 0 for model in self.models)
        unknown = [model.asked for model in self.models if model.seconds is None]
        if len(unknown) == len(self.models):
            time = "time to score not known"
        else:
            time = f"about {duration(seconds)} to score, one cell at a time"
            time += f"; not known: {', '.join(unknown)}" if unknown else ""
        return f"total: {crawled} to crawl, {cells} to score ({done} done); {time}"


def plan_run(request: Request, settings: Settings) -> RunPlan:
    """List the partitions that a run crawls, and the cells that it scores.

    All cells of a hub model without local copy count as pending, since nothing is downloaded; the
    field ``problem`` of the model states this. The function raises the errors of ``check_request``.
    """
    store = Store(settings.home)
    _, lacks = plan_crawl(list(request.sources), list(request.months))
    reasons = {why.partition(":")[0]: why.partition(": ")[2] for why in lacks}
    partitions = tuple(
        _plan_partition(store, Partition(source, month), reasons.get(f"{source} {month}"))
        for source in request.sources
        for month in request.months
    )
    by = settings.corpus_as_of
    # With ``corpus_as_of`` in the past, the run does not score partitions that it has just sealed.
    is_frozen = by is not None and by < dt.datetime.now(dt.UTC)
    new = () if is_frozen else tuple(each.partition for each in partitions if each.is_new)
    models = tuple(
        _plan_model(name, request, new, settings) for name in dict.fromkeys(request.models)
    )
    return RunPlan(request, partitions, models)


def _plan_partition(store: Store, partition: Partition, lack: str | None) -> PlannedPartition:
    seal = read_seal(store, partition)
    if seal is not None and seal.is_partial and not lack:
        return PlannedPartition(partition, "partial", seal, lack_of(seal) or "")
    if seal is not None:
        return PlannedPartition(partition, "sealed", seal)
    if lack:
        return PlannedPartition(partition, "lacking", why=lack)
    if (held := read_held(store, partition)) is not None:
        reasons = held.manifest.get(HELD_BECAUSE)
        why = "; ".join(map(str, reasons)) if isinstance(reasons, list) else str(reasons)
        return PlannedPartition(partition, "held", why=why)
    return PlannedPartition(partition, "to crawl")


def _plan_model(
    name: str, request: Request, new: tuple[Partition, ...], settings: Settings
) -> PlannedModel:
    entry = find_model(name, settings)
    if problem := _absence(entry, settings):
        unknown = _all_partitions(request, settings, new)
        return PlannedModel(name, entry, new=unknown, problem=problem)
    try:
        plan = plan_scoring(name, [settings.protocol], None, None, settings)
    except TidemarkError as error:
        return PlannedModel(name, entry, problem=str(error))
    if plan.refused:
        return PlannedModel(name, entry, problem="; ".join(plan.refused))
    cell_s = median_seconds(Store(settings.home), [cell.record_path for cell in plan.done])
    done, pending = _asked_for(plan.done, request), _asked_for(plan.pending, request)
    return PlannedModel(name, entry, done, pending, new, cell_s=cell_s)


def _asked_for(cells: Sequence[Cell], request: Request) -> tuple[Cell, ...]:
    return tuple(
        cell
        for cell in cells
        if cell.partition.source in request.sources and cell.partition.month in request.months
    )


def _absence(entry: ModelEntry, settings: Settings) -> str:
    """Return a message if the model's files are not on this machine, else an empty text."""
    if not entry.backend.from_hub:
        return ""
    from models.weights.hub import find_cached, is_on_hub

    if not is_on_hub(entry):
        return ""
    if find_cached(entry.location, entry.revision, entry.is_trusted) is not None:
        return ""
    return (
        "not in the local cache: its cells and their time are not known; "
        f"`tidemark models fetch {entry.name}`, then plan again"
    )


def _all_partitions(
    request: Request, settings: Settings, new: tuple[Partition, ...]
) -> tuple[Partition, ...]:
    sources, months = list(request.sources), list(request.months)
    seals = select_sealed(Store(settings.home), sources, months, settings.corpus_as_of)
    return (*(seal.partition for seal in seals), *new)


def spans(months: Sequence[Period]) -> str:
    """Return sorted months as text: ``2024-01 … 2024-05, 2024-08``."""
    found: list[list[Period]] = []
    for month in months:
        if found and month == found[-1][-1] + 1:
            found[-1].append(month)
        else:
            found.append([month])
    return ", ".join(
        str(span[0]) if len(span) == 1 else f"{span[0]} … {span[-1]}" for span in found
    )
