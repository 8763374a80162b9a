"""What a run will take, step by step, before it is started.

A step's time is a fixed part and a part that grows with its cells or bytes. Crawling and scoring
are estimated from what they took before (manifests, records of cells), else from a probe, else from
an assumption; starting, landing, publishing and the report from what they took on a machine of two
cores, times how much slower this one is at this moment. Each step says which.
"""

from __future__ import annotations

import datetime as dt
import statistics
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from core.corpus import Partition, Seal, list_sealed
from core.errors import TidemarkError
from core.settings import Settings, prefect_server
from core.storage import Store
from crawlers.contract import SourceInfo, load_crawler
from models.remote_client import NUM_AT_ONCE
from tasks.rates import Rate, rate_of
from tasks.run_plan import PlannedModel, PlannedPartition, RunPlan
from tasks.scoring import cells_in_flight

# Seconds on the reference machine (2 cores of an AMD EPYC, otherwise idle), by the clock.
_START_S, _MIGRATE_S = 18.5, 1.5  # imports, Prefect's API in this process, its end; its database
_CANARY_S = 6.2  # most of it imports torch
_MODEL_S, _LAND_S, _LAND_CELL_S, _PUBLISH_S = 0.75, 0.2, 0.01, 0.65
_DOCUMENTS_S = 0.045  # of a partition, with the first model that lands on it
_KNOWN_CELL_S = 0.002  # to find out that it has landed
_CELL_S = 0.025  # around the scoring of a cell: task run, files
_REPORT_S, _REPORT_CELL_S = 1.8, 0.009
_FIRST_CRAWL_S, _PARTITION_S = 1.0, 0.01  # imports; to see that a month is sealed
_REFERENCE_LOOP_S = 0.0185  # what _loop takes there

_IN_FLIGHT = 4  # crawls at a time, as tasks/fan_out.py
_LOAD_BYTES_S = 500e6  # weights read a second, where loading was not measured
_SIMULATED_BYTES, _SIMULATED_REQUESTS, _SIMULATED_S = 20e3, 25, 0.65
_DEFAULT_BYTES, _REQUEST_BYTES = 5e6, 40e3  # of a source's month; of text a request
_ASSUMED_ANSWER_S = 0.5

_CELL_DISK, _BYTE_DISK = 16e3, 0.02  # losses and their record
_CORPUS_DISK, _RAW_DISK = 0.5, 1.0  # compressed text, and what was fetched, a byte of text


@dataclass(frozen=True)
class Step:
    """A part of a run.

    Attributes:
        name: what is done.
        seconds: of wall-clock time; None where nothing is known.
        basis: on what ground: measured, probe or assumed.
        gpu_seconds: of these, on a GPU.
        model: whose cells it is about; empty for what is done once.
    """

    name: str
    seconds: float | None
    basis: str
    gpu_seconds: float = 0.0
    model: str = ""


@dataclass(frozen=True)
class Estimate:
    """What a run takes; ``disk_bytes`` is what the data root and the scratch folder grow by."""

    steps: tuple[Step, ...]
    disk_bytes: float
    slowness: float

    @property
    def seconds(self) -> float:
        """All steps whose time is known."""
        return sum(step.seconds or 0 for step in self.steps)

    @property
    def gpu_seconds(self) -> float:
        """How long a GPU is busy."""
        return sum(step.gpu_seconds for step in self.steps)

    @property
    def unknown(self) -> list[Step]:
        """Steps that are not in ``seconds``."""
        return [step for step in self.steps if step.seconds is None]


def estimate_run(plan: RunPlan, settings: Settings) -> Estimate:
    """Estimate a run on this machine, as busy as it is now. May take some seconds a model.

    Raises:
        StorageError: a manifest or a record of a cell cannot be read.
    """
    store = Store(settings.home)
    before = measure_slowness()
    rates = {model.asked: _rate(model, settings) for model in plan.models}
    slow = (before + measure_slowness()) / 2  # over some seconds: it changes on a busy machine
    sealed = list_sealed(store, as_of=settings.corpus_as_of)
    sizes = Sizes(sealed, settings)
    steps = [_start(settings, slow), *_crawl(plan, sealed, settings, slow)]
    if any(model.entry.kind != "control" for model in plan.models):
        steps.append(Step("canary", _CANARY_S * slow, "assumed"))
    landed = {cell.partition for model in plan.models for cell in model.done}
    for model in plan.models:
        steps.append(_score(model, rates[model.asked], sizes, slow, _together(model, settings)))
        to_land = {*model.new, *(cell.partition for cell in model.pending)}
        steps.append(_land(model, len(to_land - landed), slow))
        landed |= to_land
    num_cells = sum(model.num_cells for model in plan.models)
    steps.append(Step("report", (_REPORT_S + _REPORT_CELL_S * num_cells) * slow, "assumed"))
    return Estimate(tuple(steps), _disk(plan, sizes), slow)


def _rate(model: PlannedModel, settings: Settings) -> Rate | str:
    """The rate of a model that has cells to score; else why there is none."""
    if model.problem:
        return model.problem
    if not model.num_to_score:
        return "all cells are done"
    try:
        return rate_of(model, settings)
    except TidemarkError as error:
        return f"unknown: {error}"


def measure_slowness() -> float:
    """Return how many times longer than on the reference machine work takes now.

    The median of a second and a half: on a busy machine a single pause says nothing of minutes.
    """
    times: list[float] = []
    while sum(times) < 1.5 or len(times) < 5:
        began = time.perf_counter()
        _loop()
        times.append(time.perf_counter() - began)
    return statistics.median(times) / _REFERENCE_LOOP_S


def _loop() -> None:
    text = {str(number): number * number for number in range(60_000)}
    zlib.compress(repr(sorted(text)[:8_000]).encode(), 6)


def _start(settings: Settings, slow: float) -> Step:
    if prefect_server():
        return Step("start", 0.4 * _START_S * slow, "assumed, with a server")
    is_fresh = not (settings.scratch / "prefect" / "prefect.db").exists()
    return Step("start", (_START_S + _MIGRATE_S * is_fresh) * slow, "assumed")


# Crawling


def _crawl(
    plan: RunPlan, sealed: Sequence[Seal], settings: Settings, slow: float
) -> Iterable[Step]:
    """One month after the other, its sources side by side."""
    total, grounds = 0.0, []
    for month in plan.request.months:
        here = [each for each in plan.partitions if each.partition.month == month]
        times = []
        for each in here:
            seconds, basis = _crawl_one(each, sealed, settings, slow)
            times.append(seconds)
            grounds += [basis] if basis else []
        total += max([*times, sum(times) / _IN_FLIGHT])
    basis = "; ".join(dict.fromkeys(grounds)) or "all is sealed"
    yield Step("crawl", total + _FIRST_CRAWL_S * slow * bool(grounds), basis)


def _crawl_one(
    planned: PlannedPartition, sealed: Sequence[Seal], settings: Settings, slow: float
) -> tuple[float, str]:
    """Seconds and basis; the basis is empty where nothing is to be crawled."""
    if planned.state in ("sealed", "lacking"):
        return _PARTITION_S * slow, ""
    source = planned.partition.source
    info = load_crawler(source).INFO
    times = [_crawled_in(seal, info, settings) for seal in sealed if _is_example(seal, source)]
    if times:
        whole, from_cache = (statistics.median(column) for column in zip(*times, strict=True))
        seconds = whole if planned.state == "to crawl" else from_cache
        return seconds, f"measured: {len(times)} months of {source}"
    if _is_simulated(info, settings):
        interval = settings.request_interval_s or 0.0
        return _SIMULATED_S * slow + _SIMULATED_REQUESTS * interval, "assumed: sites on loopback"
    requests = (info.monthly_bytes or _DEFAULT_BYTES) / _REQUEST_BYTES
    seconds = requests * max(_interval(info, settings), _ASSUMED_ANSWER_S)
    return (
        seconds,
        f"assumed: {requests:,.0f} requests a month of {source}, of which none is sealed",
    )


def _is_example(seal: Seal, source: str) -> bool:
    """Whether a crawl tells how long another would take: of a whole month, not from the cache."""
    found = seal.manifest
    requests = found.get("requests")
    return (
        seal.partition.source == source
        and found.get("kind") == "crawl"
        and found.get("limit") is None
        and isinstance(requests, dict)
        and requests.get("requests", 0) > requests.get("cached", 0)
        and seal.sealed_at is not None
    )


def _crawled_in(seal: Seal, info: SourceInfo, settings: Settings) -> tuple[float, float]:
    """Seconds that a crawl took, at today's pace; and without its requests."""
    found = seal.manifest
    started = dt.datetime.fromisoformat(str(found["started_at"]))
    # Manifests give the start to the second; it was half a second later on average.
    sealed_at = seal.sealed_at or started
    seconds = max(0.1, (sealed_at - started).total_seconds() - 0.5)
    requests = found["requests"]
    assert isinstance(requests, dict)  # noqa: S101 - _is_example has looked
    working = max(0.1, seconds - requests.get("wait_ms", 0) / 1e3)
    urls = {key: settings.sites.get(key, url).rstrip("/") for key, url in info.sites.items()}
    if found.get("base_urls") == urls:
        return seconds, working
    return max(working, requests["requests"] * _interval(info, settings)), working


def _interval(info: SourceInfo, settings: Settings) -> float:
    given = settings.request_interval_s
    return info.request_interval_s if given is None else given


def _is_simulated(info: SourceInfo, settings: Settings) -> bool:
    hosts = [urlsplit(settings.sites.get(key, url)).hostname for key, url in info.sites.items()]
    return all(host in ("localhost", "::1") or str(host).startswith("127.") for host in hosts)


class Sizes:
    """Bytes of text of partitions: of what is sealed as they are, of others as expected."""

    def __init__(self, sealed: Sequence[Seal], settings: Settings) -> None:
        self._sealed = {seal.partition: seal.num_bytes for seal in sealed}
        self._settings = settings
        self._expected: dict[str, float] = {}

    def of(self, partition: Partition) -> float:
        """Return the size of a partition."""
        if (size := self._sealed.get(partition)) is not None:
            return size
        source = partition.source
        if source not in self._expected:
            self._expected[source] = self._expect(source)
        return self._expected[source]

    def _expect(self, source: str) -> float:
        """The median sealed month, else what the source declares."""
        sizes = [size for partition, size in self._sealed.items() if partition.source == source]
        if sizes:
            return statistics.median(sizes)
        info = load_crawler(source).INFO
        if _is_simulated(info, self._settings):
            return _SIMULATED_BYTES
        declared = self._settings.monthly_bytes.get(source, info.monthly_bytes or 0)
        return float(declared or _DEFAULT_BYTES)


# Scoring


def _together(model: PlannedModel, settings: Settings) -> int:
    """How many cells pass in the time of one: a server answers several at once."""
    if model.entry.kind != "remote":
        return 1
    return min(NUM_AT_ONCE, cells_in_flight(model.entry, settings))


def _score(model: PlannedModel, rate: Rate | str, sizes: Sizes, slow: float, together: int) -> Step:
    if isinstance(rate, str):
        known = None if model.problem or model.num_to_score else 0.0
        return Step("score", known, rate, model=model.asked)
    texts = _texts(model, sizes)
    seconds = sum(map(rate.seconds, texts)) / max(1, min(together, len(texts)))
    seconds += _load(model, rate, slow)
    total = seconds + _CELL_S * slow * len(texts)
    gpu = seconds if rate.is_cuda else 0.0
    return Step("score", total, rate.basis, gpu, model.asked)


def _land(model: PlannedModel, num_partitions: int, slow: float) -> Step:
    """Land a model's cells; it is the first one that lands on some partitions."""
    seconds = _MODEL_S + _LAND_S + _PUBLISH_S + _DOCUMENTS_S * num_partitions
    seconds += _LAND_CELL_S * model.num_to_score + _KNOWN_CELL_S * len(model.done)
    return Step("land", seconds * slow, "assumed", model=model.asked)


def _texts(model: PlannedModel, sizes: Sizes) -> list[float]:
    """Bytes of what is to be scored, cell by cell."""
    return [sizes.of(cell.partition) for cell in model.pending] + [
        sizes.of(partition) for partition in model.new
    ]


def _load(model: PlannedModel, rate: Rate, slow: float) -> float:
    if rate.load_s is not None:
        return rate.load_s
    folder = Path(model.entry.location).expanduser()
    files = folder.glob("*") if folder.is_dir() else [folder]
    weights = sum(path.stat().st_size for path in files if path.is_file())
    parameters = model.entry.parameters or 0
    return 0.1 * slow + max(weights, 2 * parameters) / _LOAD_BYTES_S


def _disk(plan: RunPlan, sizes: Sizes) -> float:
    texts = sum(sizes.of(each.partition) for each in plan.partitions if each.is_new)
    scored = [size for model in plan.models for size in _texts(model, sizes)]
    cells = _CELL_DISK * len(scored) + _BYTE_DISK * sum(scored)
    return (_CORPUS_DISK + _RAW_DISK) * texts + cells
