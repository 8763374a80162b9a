"""Simulation of a month on 8 GPUs: 20 models × 12 sources, with the rules of real runs.

The pool of a model, the order of starts and the help for slow models are computed by
``instruments.assignment``, as in a run. The clock is simulated. A look of the coordinator, a poll
of a worker, and the start of a process take as long as on a server. Models are drawn from the
catalogue, up to two of them for all GPUs. A cell takes 2 operations per active parameter and token,
at 4e14 operations a second (40 % of an H100's peak in bfloat16; assumed, not measured), times a
factor per model, which the rules do not know in the first month. A source has as much text as it
declares for a month, give or take a fifth.

The same month is also simulated with processes that drain (``instruments.driver``): one a GPU, and
before them one that owns all GPUs.

The lower bound is the work of all GPUs, with loading of weights once a model, divided by 8; or the
longest cell with loading, if that is more. A model on all GPUs counts eight times.
"""

from __future__ import annotations

import heapq
import itertools
import random
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from tempfile import TemporaryDirectory

from benchmarks.measure import Verdict
from core.gpus import Fleet, Gpu, Host
from core.settings import Settings
from crawlers.registry import list_sources, load_crawler
from instruments.assignment import (
    Pool,
    Start,
    Work,
    choose_helped,
    may_start,
    plan_starts,
    pool_of,
)
from instruments.driver import Backlog, rank
from models.catalogue import ModelEntry, list_shipped

NUM_GPUS, NUM_MODELS, NUM_SOURCES = 8, 20, 12
MAX_RATIO = 1.15  # largest accepted makespan, in lower bounds
MAX_DRAIN_RATIO = 1.10  # of processes that drain
PLAN_S = 5.0  # from one model to the next: choice and plan, without loading
LOOK_S = 10.0  # the setting ``watch_interval_s``
POLL_S = 10.0  # Prefect's PREFECT_WORKER_QUERY_SECONDS
START_S = 20.0  # start of a process, planning
LAND_S = 10.0
BYTES_PER_S = 1e9  # loading of weights
SECONDS_PER_BYTE = 2 / 4 / 4e14  # of text, per active parameter; a token has 4 bytes
OTHER_BYTES = 4_000_000  # of text of sources that declare no amount
OURS = "the rules of a run"
RULES = {  # by title: arguments of ``Simulation``
    OURS: (True, True),
    "without further runs of slow models": (True, False),
    "neither order nor further runs": (False, False),
}
AT_ONCE = 4  # runs of the worker of all GPUs that may stand in the queue


@dataclass(frozen=True)
class Model:
    """A model of the simulated month; ``cells`` are seconds per source, ``load_s`` of loading."""

    name: str
    pool: Pool
    load_s: float
    cells: tuple[float, ...]
    belief: float  # what the coordinator expects at first, in true seconds


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


@dataclass
class _Run:
    model: Model
    helps: bool = False
    is_running: bool = False
    gpus: set[int] = field(default_factory=set)
    gpu: int = -1  # of its worker


class Simulation:
    """The coordinator, the workers and their GPUs, driven by events in simulated time."""

    def __init__(self, models: Sequence[Model], is_ordered: bool = True, splits: bool = True):
        self.models = {model.name: model for model in models}
        self.left = {model.name: list(model.cells) for model in models}  # not done
        self.works = [self._work(model) for model in models]
        self.starts = [Start(model.name) for model in models]
        if is_ordered:
            self.starts = plan_starts(self.works, NUM_GPUS if splits else 0)
        self.splits, self.now, self.is_ordered = splits, 0.0, is_ordered
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = itertools.count()
        self.cells = {model.name: list(model.cells) for model in models}  # not begun
        self.begun: set[Start] = set()
        self.landed: dict[str, float] = {}
        self.waiting: dict[Pool, list[_Run]] = {"gpu": [], "gpu-all": []}  # for a worker
        self.active: list[_Run] = []
        self.queue: list[_Run] = []  # for all GPUs
        self.singles: list[_Run] = []  # for the GPU of their worker
        self.holder: dict[int, _Run] = {}

    def makespan(self) -> float:
        """Run the month; return the time at which the last model has landed."""
        self._later(0.0, self._look)
        for worker in range(NUM_GPUS + AT_ONCE):
            offset = POLL_S * worker / (NUM_GPUS + AT_ONCE)
            self._later(offset, partial(self._poll, worker))
        while len(self.landed) < len(self.models):
            self.now, _, act = heapq.heappop(self.events)
            act()
        return max(self.landed.values())

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + seconds, next(self.count), act))

    def _look(self) -> None:
        missing = [work.model for work in self.works if work.model not in self.landed]
        running = {run.model.name for run in self.active if run.is_running}
        allowed = may_start(self.works, missing, running) if self.is_ordered else missing
        for start in self.starts:
            if start.model in allowed and start not in self.begun:
                self.begun.add(start)
                self._start(_Run(self.models[start.model], helps=start.number > 1))
        if self.splits:
            runs = Counter(run.model.name for run in self.active)
            works = [self._work(self.models[name], runs[name]) for name in missing]
            busy = sum(run.model.pool == "gpu" for run in self.active)
            for name in choose_helped(works, NUM_GPUS - busy):
                self._start(_Run(self.models[name], helps=True))
        self._later(LOOK_S, self._look)

    def _work(self, model: Model, num_runs: int = 0) -> Work:
        left = self.left[model.name]
        belief = model.belief if len(left) == NUM_SOURCES else 1.0  # one cell shows the rate
        return Work(model.name, model.pool, len(left), belief * sum(left), num_runs)

    def _start(self, run: _Run) -> None:
        self.active.append(run)
        self.waiting[run.model.pool].append(run)

    def _poll(self, worker: int) -> None:
        waiting = self.waiting["gpu" if worker < NUM_GPUS else "gpu-all"]
        if not waiting:
            self._later(POLL_S, partial(self._poll, worker))
            return
        run = waiting.pop(0)
        run.gpu = worker
        self._later(START_S, partial(self._begin, run))

    def _begin(self, run: _Run) -> None:
        run.is_running = True
        (self.queue if run.model.pool == "gpu-all" else self.singles).append(run)
        self._lend()

    def _lend(self) -> None:
        """Let runs take GPUs, by the rule of ``core.gpus``."""
        free = set(range(NUM_GPUS)) - set(self.holder)
        for run in self.queue[:1]:
            run.gpus |= free
            self.holder |= dict.fromkeys(free, run)
            if len(run.gpus) == NUM_GPUS and run.model.name not in self.landed:
                self._later(run.model.load_s, partial(self._next, run))
                run.gpus.add(-1)  # begun
        if not self.queue:
            for run in [run for run in self.singles if run.gpu in free]:
                self.singles.remove(run)
                self.holder[run.gpu] = run
                self._later(run.model.load_s, partial(self._next, run))

    def _next(self, run: _Run) -> None:
        """Begin the next cell of a run's model, or end the run."""
        name = run.model.name
        if self.cells[name]:
            cell_s = self.cells[name].pop(0)
            self._later(cell_s, partial(self._done, run, cell_s))
        elif run.helps:
            self._end(run)
        elif not self.left[name]:
            self._later(LAND_S, partial(self._end, run))
        else:
            self._later(1.0, partial(self._next, run))  # a helper still works on a cell

    def _done(self, run: _Run, cell_s: float) -> None:
        self.left[run.model.name].remove(cell_s)
        self._next(run)

    def _end(self, run: _Run) -> None:
        if not run.helps:
            self.landed[run.model.name] = self.now
        self.active.remove(run)
        for gpu in [gpu for gpu, holder in self.holder.items() if holder is run]:
            del self.holder[gpu]
        if run in self.queue:
            self.queue.remove(run)
        self._lend()
        self._later(0.0, partial(self._poll, run.gpu))


def drain(models: Sequence[Model]) -> float:
    """Return the makespan of processes that take models by ``instruments.driver.rank``."""
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
    """Simulate ``months`` months by each set of rules; ignore ``rounds``."""
    kinds = itertools.product((0, 2), (True, False))
    return [_simulate(months, num_whole, is_first) for num_whole, is_first in kinds]


def _simulate(months: int, num_whole: int, is_first: bool) -> Verdict:
    worlds = [draw_month(seed, num_whole, is_first) for seed in range(months)]
    hours = statistics.median(map(bound, worlds)) / 3600
    rows = {"lower bound, median": f"{hours:.2f} h"}
    for title, switches in RULES.items():
        middle, high, most = _spread([Simulation(each, *switches) for each in worlds])
        rows[title] = f"{middle:.3f}, 95 % of months ≤ {high:.3f}, largest {most:.3f}"
        if title == OURS:
            # In a first month, the longest model may be taken for a short one.
            is_met = (high if is_first else most) <= MAX_RATIO
    kind = f"{num_whole} on all GPUs, {'no' if is_first else 'some'} cells timed before"
    drained = sorted(drain(each) / bound(each) for each in worlds)
    rows["processes that drain"] = f"{statistics.median(drained):.3f}, largest {drained[-1]:.3f}"
    title = f"{NUM_GPUS} GPUs × {NUM_MODELS} models × {NUM_SOURCES} sources: {kind}"
    share = "95 % of" if is_first else "each of"
    conditions = {
        f"makespan of {share} {months} months ≤ {MAX_RATIO}": is_met,
        f"each drained in ≤ {MAX_DRAIN_RATIO}": drained[-1] <= MAX_DRAIN_RATIO,
    }
    return Verdict(title, rows, conditions)


def _spread(simulations: Sequence[Simulation]) -> tuple[float, float, float]:
    """Return median, 95 % quantile and maximum of the makespans in lower bounds."""
    ratios = sorted(each.makespan() / bound(list(each.models.values())) for each in simulations)
    return statistics.median(ratios), ratios[int(0.95 * (len(ratios) - 1))], ratios[-1]
