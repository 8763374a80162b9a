"""The assignment of models to pools and GPUs: pool, order, and further runs of slow models.

1. A model whose weights do not fit on the smallest GPU of all workers belongs to the pool
   ``gpu-all``. The worker of this pool owns all GPUs of a machine. The weights take the model's
   parameters times the bytes of one in the workers' dtype. They fit if ``ROOM_FACTOR`` times as
   much fits. The rest is for activations. Other models belong to the pool ``gpu``, one to a GPU.
   Models behind servers answer questions in the pool ``api``, whose workers have the keys.
2. Models of ``gpu-all`` start first, as they stop everything else of their machine. In each pool
   the model with the longest work starts first.
3. A model starts with further runs if one run had more to do than ``SPLIT_SHARE`` of a GPU's share
   of all work. Later, if a GPU is free and no model waits, the model with the longest work per run
   gets one more. Runs of one model share its cells by claims.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from core.cells.losses import list_losses
from core.cells.record import median_seconds
from core.errors import TidemarkError, UnknownName
from core.gpus import Fleet
from core.month import Period
from core.settings import Settings
from core.storage.store import Store
from instruments.planning import select_sealed
from models.catalogue import ModelEntry, find_model
from models.choice import settings_for
from models.scoring.protocols import get_protocol
from models.weights.files import ROOM_FACTOR, examine_weights
from models.weights.hub import find_cached

Pool = Literal["gpu", "gpu-all", "api"]
SPLIT_SHARE = 0.5  # of one GPU's share of all work: what one run of a model does at most
_TOKEN_BYTES = 4  # of text; the same for all models, as only ratios count
_ITEM_BYTES = {"float64": 8, "float32": 4}  # by dtype; else 2, also for ``auto`` on a GPU


def pool_to_ask(model: str, settings: Settings) -> Pool | None:
    """Return the pool whose workers can ask a model, or None if every worker can.

    ``gpu`` also stands for ``gpu-all``.
    """
    backend = find_model(model, settings).backend
    return "gpu" if backend.on_device else "api" if backend.is_server else None


def weight_bytes(entry: ModelEntry, dtype: str) -> int | None:
    """Return the size of a model's weights in a dtype, or None if it is not known here.

    The number of parameters is that of the catalogue, else of the files on this machine.
    """
    item_bytes = _ITEM_BYTES.get(dtype, 2)
    if entry.parameters is not None:
        return entry.parameters * item_bytes
    path = Path(entry.location).expanduser()
    if path.is_file():
        return path.stat().st_size
    trusted = entry.is_trusted
    try:
        folder = path if path.is_dir() else find_cached(entry.location, entry.revision, trusted)
        if folder is None:
            return None
        weights = examine_weights(folder, entry.location, trusted)
    except TidemarkError:
        return None  # the run of the model reports the fault
    return weights.num_elements * item_bytes if weights.num_elements else weights.num_bytes


def pool_of(model: str, fleet: Fleet, settings: Settings) -> Pool:
    """Return the pool of a model by rule 1; ``gpu`` if sizes are unknown, or no GPU is needed."""
    entry, memory_bytes = find_model(model, settings), fleet.memory_bytes
    if not entry.backend.on_device or memory_bytes is None or not fleet.has_several:
        return "gpu"
    own = settings_for(entry, settings).dtype  # of models.yaml
    dtypes = {own} if own != settings.dtype else {host.dtype for host in fleet.hosts}
    sizes = [weight_bytes(entry, dtype) or 0 for dtype in dtypes]
    return "gpu-all" if max(sizes) * ROOM_FACTOR > memory_bytes else "gpu"


@dataclass(frozen=True)
class Work:
    """The work that is left of one model."""

    model: str
    pool: Pool
    num_left: int  # number of cells without losses
    seconds: float  # estimated for one run; of any unit if no cell of any model was timed
    num_runs: int = 0  # active flow runs


@dataclass(frozen=True)
class Start:
    """A flow run to start: the first one of a model (number 1), or a further one."""

    model: str
    number: int = 1


def plan_starts(works: Sequence[Work], num_gpus: int) -> list[Start]:
    """Return the runs to start at the beginning, in their order, by rules 2 and 3.

    ``num_gpus`` is the number of GPUs of all workers, 0 if unknown.
    """
    share_s = sum(work.seconds for work in works if work.pool == "gpu") / max(1, num_gpus)
    starts = []
    for work in works:
        num_runs = 1
        if work.pool == "gpu" and num_gpus > 1 and share_s:
            num_runs = max(1, min(work.num_left, int(work.seconds / (SPLIT_SHARE * share_s))))
        is_single = work.pool == "gpu"
        starts += [
            ((is_single, -work.seconds / number, work.model, number), Start(work.model, number))
            for number in range(1, num_runs + 1)
        ]
    return [start for _, start in sorted(starts, key=lambda each: each[0])]


def may_start(works: Sequence[Work], missing: Iterable[str], running: Collection[str]) -> list[str]:
    """Return the ``missing`` models that may start: all, once a model of ``gpu-all`` is running.

    Else runs on single GPUs would begin first. A run that needs all GPUs would wait for the longest
    of them, while other GPUs are idle.
    """
    missing = set(missing)
    left = [work for work in works if work.model in missing]
    whole = {work.model for work in left if work.pool == "gpu-all"}
    has_begun = not whole or bool(whole & set(running))
    return [work.model for work in left if has_begun or work.pool != "gpu"]


def choose_helped(works: Sequence[Work], num_free: int) -> list[str]:
    """Return a model for each free GPU that shortens a run, by rule 3; a model may occur twice.

    A run is shortened only if there is a cell that no run has begun.
    """
    runs = {work.model: work.num_runs for work in works}
    heap = [
        (-work.seconds / work.num_runs, work.model, work)
        for work in works
        if work.pool == "gpu" and work.num_runs and work.num_left > work.num_runs
    ]
    heapq.heapify(heap)
    chosen: list[str] = []
    while heap and len(chosen) < num_free:
        _, model, work = heapq.heappop(heap)
        chosen.append(model)
        runs[model] += 1
        if work.num_left > runs[model]:
            heapq.heappush(heap, (-work.seconds / runs[model], model, work))
    return chosen


def estimate_work(
    models: Sequence[str],
    sources: Sequence[str],
    months: Sequence[Period],
    fleet: Fleet,
    settings: Settings,
) -> list[Work]:
    """Return the work that is left of each model on the sealed partitions, without its files.

    A token is expected to take the median of the model's cells so far. A model without such cells
    is expected to take as long per parameter as the others.
    """
    store, entries = Store(settings.home), {}
    for model in models:
        with contextlib.suppress(UnknownName):  # its run reports that the model is gone
            entries[model] = find_model(model, settings)
    seals = select_sealed(store, list(sources), list(months), settings.corpus_as_of)
    protocol = get_protocol(settings.protocol).name
    left, token_s = dict[str, list[int]](), dict[str, float | None]()
    for model, entry in entries.items():
        losses = {path: _key_of(path) for path in list_losses(store, entry.name)}
        losses = {path: key for path, key in losses.items() if key[1] == protocol}
        done = set(losses.values())
        left[model] = [
            seal.num_bytes
            for seal in seals
            if (seal.partition.path.removeprefix("corpus/"), protocol, seal.digest[:12]) not in done
        ]
        records = [f"{path.removesuffix('.parquet')}.json" for path in sorted(losses)]
        token_s[model] = median_seconds(store, records, per_token=True)
    rates = [seconds / _size(entries[model]) for model, seconds in token_s.items() if seconds]
    rate = median(rates) if rates else 1.0
    works = {model: Work(model, "gpu", 0, 0.0) for model in models}
    for model, entry in entries.items():
        seconds = (token_s[model] or rate * _size(entry)) * sum(left[model]) / _TOKEN_BYTES
        works[model] = Work(model, pool_of(model, fleet, settings), len(left[model]), seconds)
    return list(works.values())


def _key_of(path: str) -> tuple[str, str, str]:
    """Return partition folder, protocol and partition digest of a file of losses; see ``Cell``."""
    folder, _, name = path.split("/", 2)[2].rpartition("/")
    protocol, _, digest, _ = (name.rsplit("-", 3) + ["", "", ""])[:4]
    return folder, protocol, digest


def _size(entry: ModelEntry) -> float:
    return float(entry.active_parameters or entry.parameters or 1)
