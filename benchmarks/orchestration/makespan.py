"""Simulation of a month on 8 GPUs: 20 models × 12 sources, with the rules of real runs.

The pool of a model is computed by ``instruments.pools``, and the model that a process takes by
``instruments.driver``, as in a run. First one process that owns all GPUs drains its models, then
one a GPU drains the others. The clock is simulated: a poll of a worker and the start of a process
take as long as on a server. Models are drawn from the catalogue, up to two of them for all GPUs. A
cell takes 2 operations per active parameter and token, at 4e14 operations a second (40 % of an
H100's peak in bfloat16; assumed, not measured), times a factor per model, which the rules do not
know in the first month. A source has as much text as it declares for a month, give or take a fifth.

The lower bound is the work of all GPUs, with loading of weights once a model, divided by 8; or the
longest cell with loading, if that is more. A model on all GPUs counts eight times.
"""

from __future__ import annotations

import heapq
import itertools
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from benchmarks.measure import Verdict
from core.gpus import Fleet, Gpu, Host
from core.settings import Settings
from crawlers.registry import list_sources, load_crawler
from instruments.driver import Backlog, rank
from instruments.pools import Pool, pool_of
from models.catalogue import ModelEntry, list_shipped

NUM_GPUS, NUM_MODELS, NUM_SOURCES = 8, 20, 12
MAX_RATIO = 1.10  # largest accepted makespan, in lower bounds
PLAN_S = 5.0  # from one model to the next: choice and plan, without loading
POLL_S = 10.0  # Prefect's PREFECT_WORKER_QUERY_SECONDS
START_S = 20.0  # start of a process, planning
LAND_S = 10.0
BYTES_PER_S = 1e9  # loading of weights
SECONDS_PER_BYTE = 2 / 4 / 4e14  # of text, per active parameter; a token has 4 bytes
OTHER_BYTES = 4_000_000  # of text of sources that declare no amount


@dataclass(frozen=True)
class Model:
    """A model of the simulated month; ``cells`` are seconds per source, ``load_s`` of loading."""

    name: str
    pool: Pool
    load_s: float
    cells: tuple[float, ...]
    belief: float  # what the rules expect at first, in true seconds


def draw_month(seed: int, num_whole: int, is_first: bool) -> list[Model]:
    """Draw the models of a month, ``num_whole`` of them for all GPUs, and the sizes of its texts.

    In the first month, no cell of any model was timed before.
    """
    chance = random.Random(seed)
    gpus = tuple(
        Gpu(number=number, uuid=str(number), name="", memory_bytes=80 * 2**30)
        for number in range(NUM_GPUS)
    )
    fleet = Fleet((Host(host="", gpus=gpus, dtype="auto"),))
    entries = [entry for entry in list_shipped() if entry.parameters and entry.backend.on_device]
    with TemporaryDirectory() as home:
        settings = Settings(home=home)
        pools = {entry.name: pool_of(entry.name, fleet, settings) for entry in entries}
    whole = [each for each in entries if pools[each.name] == "gpu-all" and _size(each) < 80]
    single = [each for each in entries if pools[each.name] == "gpu"]
    drawn = chance.sample(whole, num_whole) + chance.sample(single, NUM_MODELS - num_whole)
    declared = [load_crawler(source).INFO.monthly_bytes for source in list_sources()]
    texts = [(each or OTHER_BYTES) * chance.lognormvariate(0, 0.2) for each in declared]
    models = []
    for entry in drawn:
        rate = SECONDS_PER_BYTE * _size(entry) * 1e9
        factor = chance.lognormvariate(0, 0.4)
        cells = tuple(sorted((rate * factor * text for text in texts), reverse=True))
        load_s = (entry.parameters or 0) * 2 / BYTES_PER_S
        belief = 1 / factor if is_first else chance.lognormvariate(0, 0.1)
        models.append(Model(entry.name, pools[entry.name], load_s, cells, belief))
    return models


def _size(entry: ModelEntry) -> float:
    return (entry.active_parameters or entry.parameters or 0) / 1e9


def bound(models: Sequence[Model]) -> float:
    """Return the lower bound of the makespan in seconds."""
    shares = Counter({model.name: NUM_GPUS if model.pool == "gpu-all" else 1 for model in models})
    work = sum(shares[each.name] * (each.load_s + sum(each.cells)) for each in models)
    return max(work / NUM_GPUS, *(each.load_s + max(each.cells) for each in models))


def drain(models: Sequence[Model]) -> float:
    """Return the makespan in seconds."""
    single = {model.name: model for model in models if model.pool == "gpu"}
    left = {name: list(model.cells) for name, model in single.items()}  # not begun
    timed: set[str] = set()  # models of which a cell was done
    processes: Counter[str] = Counter()
    count = itertools.count()
    begin_s = START_S + sum(
        PLAN_S + each.load_s + sum(each.cells) for each in models if each.pool == "gpu-all"
    )
    # Moments at which a process is ready, with the model that it has loaded.
    ready: list[tuple[float, int, str]] = [
        (begin_s + POLL_S * (number + 1) / NUM_GPUS, next(count), "") for number in range(NUM_GPUS)
    ]
    end_s = begin_s
    while ready:
        now, _, name = heapq.heappop(ready)
        end_s = max(end_s, now)
        if name and left[name]:
            heapq.heappush(ready, (now + left[name].pop(0), next(count), name))
            continue
        if name:
            processes[name] -= 1
            timed.add(name)
        works = {each: _backlog(single[each], cells, each in timed) for each, cells in left.items()}
        names = rank({each: work for each, work in works.items() if work.keys}, processes)
        if names:
            processes[names[0]] += 1
            loaded_s = now + PLAN_S + single[names[0]].load_s
            heapq.heappush(ready, (loaded_s, next(count), names[0]))
    return end_s + LAND_S


def _backlog(model: Model, cells: Sequence[float], is_timed: bool) -> Backlog:
    belief = 1.0 if is_timed else model.belief
    return Backlog(frozenset(map(str, range(len(cells)))), belief * sum(cells))


def run(rounds: int, months: int) -> Sequence[Verdict]:
    """Simulate ``months`` months; ignore ``rounds``."""
    kinds = itertools.product((0, 2), (True, False))
    return [_simulate(months, num_whole, is_first) for num_whole, is_first in kinds]


def _simulate(months: int, num_whole: int, is_first: bool) -> Verdict:
    """Simulate months with other random costs; return the makespans over their lower bounds."""
    worlds = [draw_month(seed, num_whole, is_first) for seed in range(months)]
    ratios = sorted(drain(each) / bound(each) for each in worlds)
    hours = statistics.median(map(bound, worlds)) / 3600
    rows = {
        "lower bound, median": f"{hours:.2f} h",
        "makespan in lower bounds": f"{statistics.median(ratios):.3f}, largest {ratios[-1]:.3f}",
    }
    kind = f"{num_whole} on all GPUs, {'no' if is_first else 'some'} cells timed before"
    title = f"{NUM_GPUS} GPUs × {NUM_MODELS} models × {NUM_SOURCES} sources: {kind}"
    condition = f"makespan of each of {months} months ≤ {MAX_RATIO}"
    return Verdict(title, rows, {condition: ratios[-1] <= MAX_RATIO})
