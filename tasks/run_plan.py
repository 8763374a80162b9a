"""What a run would do, found out from the files under the data root; nothing is written or asked.

The same functions decide here as in the run (``plan_crawl``, ``plan_scoring``), so that the plan is
what the run does, as long as nobody else works in between and nothing fails.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

from core.cells import Cell
from core.corpus import Partition, Seal, read_seal
from core.errors import TidemarkError
from core.month import Month
from core.sealing import HELD_BECAUSE, read_held
from core.settings import Settings
from core.storage import Store
from crawlers.manifest import lack_of
from models.catalogue import ModelEntry, find_model
from tasks.planning import Request, plan_crawl
from tasks.scoring import plan_scoring, select_sealed

State = Literal["sealed", "partial", "held", "to crawl", "lacking"]
STATES: tuple[State, ...] = ("sealed", "partial", "held", "to crawl", "lacking")


@dataclass(frozen=True)
class PlannedPartition:
    """A month of a source, as a run would find it.

    Attributes:
        partition: which.
        state: sealed (left alone), partial (asked again for what it lacks), held (crawled again,
            and held again if nothing has changed), to crawl, or lacking at the source.
        seal: what is sealed by now.
        why: it is partial, held or lacking.
    """

    partition: Partition
    state: State
    seal: Seal | None = None
    why: str = ""

    @property
    def is_new(self) -> bool:
        """Whether the run makes its first version."""
        return self.state in ("held", "to crawl")


@dataclass(frozen=True)
class PlannedModel:
    """The cells of a model: one a partition.

    Attributes:
        asked: what the request calls it.
        entry: what the catalogue knows of it.
        done: cells of sealed partitions that have losses, which only land.
        pending: those that have none.
        new: partitions to be crawled before they can be scored.
        problem: why its cells are not known, or cannot be scored; empty where all is well.
    """

    asked: str
    entry: ModelEntry
    done: tuple[Cell, ...] = ()
    pending: tuple[Cell, ...] = ()
    new: tuple[Partition, ...] = ()
    problem: str = ""

    @property
    def num_to_score(self) -> int:
        """How many cells the run scores."""
        return len(self.pending) + len(self.new)

    @property
    def num_cells(self) -> int:
        """How many cells it has in all."""
        return len(self.done) + self.num_to_score


@dataclass(frozen=True)
class RunPlan:
    """What a request comes to."""

    request: Request
    partitions: tuple[PlannedPartition, ...]
    models: tuple[PlannedModel, ...]

    def of_source(self, source: str) -> list[PlannedPartition]:
        """Return the months of a source, in order."""
        return [each for each in self.partitions if each.partition.source == source]


def plan_run(request: Request, settings: Settings) -> RunPlan:
    """Find out what a run has to crawl and to score.

    Models of the hub that are not in the local cache are not fetched: all their cells count as to
    be scored, and ``problem`` says so.

    Raises:
        StorageError: a manifest is damaged.
        UnknownName, FutureMonth, UsageError: as ``check_request``.
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
    # What is sealed from now on is newer than what such a run scores.
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
    if problem := _is_elsewhere(entry, settings):
        unknown = _all_partitions(request, settings, new)
        return PlannedModel(name, entry, new=unknown, problem=problem)
    sources, months = list(request.sources), list(request.months)
    try:
        plan = plan_scoring(name, [settings.protocol], sources, months, settings)
    except TidemarkError as error:
        return PlannedModel(name, entry, problem=str(error))
    if plan.refused:
        return PlannedModel(name, entry, problem="; ".join(plan.refused))
    return PlannedModel(name, entry, plan.done, plan.pending, new)


def _is_elsewhere(entry: ModelEntry, settings: Settings) -> str:
    """Say of a model that is not on this machine that it is not; planning would fetch its files."""
    if entry.kind == "control":
        return ""
    from models.hub import find_cached, is_on_hub

    if not is_on_hub(entry):
        return ""
    if find_cached(entry.location, entry.revision, settings.allow_pickle_weights) is not None:
        return ""
    return (
        "not in the local cache: what is done, and how long it takes to fetch and score, is not "
        f"known; `tidemark models fetch {entry.name}`, then ask again"
    )


def _all_partitions(
    request: Request, settings: Settings, new: tuple[Partition, ...]
) -> tuple[Partition, ...]:
    sources, months = list(request.sources), list(request.months)
    seals = select_sealed(Store(settings.home), sources, months, settings.corpus_as_of)
    return (*(seal.partition for seal in seals), *new)


def months_of(partitions: list[PlannedPartition], state: State) -> list[Month]:
    """Return the months that are in a state, in order."""
    return [
        each.partition.month
        for each in partitions
        if each.state == state and each.partition.month is not None
    ]
