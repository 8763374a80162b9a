"""What is done, running, failed and missing, from the files under the data root alone.

Everything is listed once; of the corpus only the manifests of the window are read, of the losses
only the names. Neither Prefect nor torch is imported: this is to answer at once.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath

from core.cell_record import CellRecord
from core.claims import list_claimed
from core.corpus import Partition, partition_of, read_manifest
from core.errors import TidemarkError
from core.month import Month, month_range
from core.run_record import Outcome, RunRecord, Stage, list_runs
from core.settings import Settings
from core.storage import Store, name_of_part, path_part
from crawlers.contract import SourceInfo, list_sources, load_crawler
from models.catalogue import find_model
from tasks.cell_times import fit
from warehouse.publish import SNAPSHOT
from warehouse.query import query

MARKS = {
    "sealed": "#",
    "partial": "p",
    "held": "h",
    "crawling": ">",
    "missing": ".",
    "lacking": "-",
}
_MAX_RUNS = 5
_MAX_RECORDS = 12  # read of a model, for its ETA
_DIGEST_CHARS = 12  # of a digest, in the name of a cell's file


@dataclass(frozen=True)
class RunState:
    """A run: ``state`` is complete, partial, or unfinished (under way, or killed)."""

    run: str
    started_at: dt.datetime
    state: str
    ended_at: dt.datetime | None
    missing: tuple[str, ...]
    holes: tuple[str, ...]


@dataclass
class ModelState:
    """Cells of a model over what is sealed in the window, and how long the others will take.

    Attributes:
        model: its name.
        num_sealed: cells that can be scored.
        num_done: of these, that have losses.
        num_published: of these, that the snapshot has.
        running: cells that a process has claimed.
        num_failed: holes of the newest run.
        pending_s: seconds to score what is pending, one cell at a time; None where no cell of the
            model tells.
    """

    model: str
    num_sealed: int = 0
    num_done: int = 0
    num_published: int = 0
    running: list[str] = field(default_factory=list)
    num_failed: int = 0
    pending_s: float | None = None

    @property
    def num_pending(self) -> int:
        """Cells that have no losses yet."""
        return self.num_sealed - self.num_done


@dataclass(frozen=True)
class Status:
    """All of it.

    Attributes:
        months: the window.
        partitions: state (a key of MARKS) by source, month by month.
        models: with cells in the window.
        runs: the newest first.
        published_at: when the snapshot was; None where there is none.
        crawl_s: seconds to crawl what is missing; None where no former crawl tells.
    """

    home: str
    months: tuple[Month, ...]
    partitions: dict[str, tuple[str, ...]]
    models: tuple[ModelState, ...]
    runs: tuple[RunState, ...]
    published_at: dt.datetime | None
    crawl_s: float | None

    @property
    def counts(self) -> Counter[str]:
        """How many partitions are in each state."""
        return Counter(state for states in self.partitions.values() for state in states)


def find_status(settings: Settings, months: Sequence[Month] | None) -> Status:
    """Look at the data root.

    Args:
        settings: where it is.
        months: the window; None: that of the newest run, else all that is sealed.

    Raises:
        StorageError: it cannot be listed, or a manifest is damaged.
        MalformedInput: a file is no record of a run.
    """
    store = Store(settings.home)
    records = list_runs(store)[:_MAX_RUNS]
    newest = records[0] if records else None
    corpus = _Corpus(store, settings)
    window = tuple(months or (newest.request().window() if newest else corpus.months()))
    sources = newest.request().sources if newest else ()
    partitions = corpus.states(window, sources)
    return Status(
        home=store.root,
        months=window,
        partitions=partitions,
        models=tuple(_models(store, settings, corpus, newest)),
        runs=tuple(map(_run_state, records)),
        published_at=_published_at(store),
        crawl_s=corpus.seconds_to_crawl(partitions),
    )


class _Corpus:
    """What is sealed: listed once, and read where the window needs it."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._manifests, self._held = _list_corpus(store)
        self._claimed = set(list_claimed(store))
        self.digests: dict[Partition, str] = {}
        self.sizes: dict[Partition, int] = {}
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._crawled = list_sources()
        self._infos: dict[str, SourceInfo | None] = {}

    def months(self) -> list[Month]:
        """Return the months from the first to the last that is sealed; else the last complete."""
        found = [each.month for each in self._manifests if each.month is not None]
        found = found or [Month.last_complete()]
        return list(month_range(min(found), max(found)))

    def states(self, window: Sequence[Month], asked: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the state of each month of each source that was asked for or has anything."""
        inside = set(window)
        here = {each.source for each in {*self._manifests, *self._held} if each.month in inside}
        sources = sorted({*asked, *here}) or self._crawled
        return {
            source: tuple(self._state(Partition(source, month)) for month in window)
            for source in sources
        }

    def _state(self, partition: Partition) -> str:
        if (path := self._manifests.get(partition)) is not None:
            return self._read(partition, path)
        if partition.path in self._claimed:
            return "crawling"
        if partition in self._held:
            return "held"
        return "lacking" if self._lacks(partition) else "missing"

    def _read(self, partition: Partition, path: str) -> str:
        seal = read_manifest(self._store, partition, path)
        if seal.num_documents:  # all may have been forgotten; then there is nothing to score
            self.digests[partition] = seal.digest[:_DIGEST_CHARS]
            self.sizes[partition] = seal.num_bytes
        started = seal.manifest.get("started_at")
        if seal.sealed_at and started and seal.manifest.get("kind") == "crawl":
            taken = seal.sealed_at - dt.datetime.fromisoformat(str(started))
            self._seconds[partition.source].append(taken.total_seconds())
        return "partial" if seal.is_partial else "sealed"

    def _lacks(self, partition: Partition) -> bool:
        if partition.source not in self._infos:
            is_known = partition.source in self._crawled
            info = load_crawler(partition.source).INFO if is_known else None
            self._infos[partition.source] = info
        info = self._infos[partition.source]
        if info is None or partition.month is None:  # imported: nobody crawls it
            return True
        return info.lacks(partition.month) is not None

    def seconds_to_crawl(self, partitions: dict[str, tuple[str, ...]]) -> float | None:
        """Return what the missing months take, one after the other; None where nobody knows."""
        total = 0.0
        for source, states in partitions.items():
            missing = sum(state in ("missing", "held", "crawling") for state in states)
            times = self._seconds.get(source)
            if missing and not times:
                return None
            total += missing * sum(times or ()) / max(1, len(times or ()))
        return total


def _published_at(store: Store) -> dt.datetime | None:
    stamp = store.list_stamped(SNAPSHOT).get(SNAPSHOT)
    return None if stamp is None else dt.datetime.fromtimestamp(stamp.modified_at, dt.UTC)


def _list_corpus(store: Store) -> tuple[dict[Partition, str], set[Partition]]:
    """Return the newest manifest of each partition, and the partitions that are held back."""
    versions: dict[Partition, tuple[int, str]] = {}
    held = set()
    for path in store.list("corpus/source=*/month=*/**/manifest.json"):
        partition, folder = partition_of(path), path.split("/")[3]
        if folder == "held":
            held.add(partition)
        elif folder == "manifest.json" or re.fullmatch(r"version=\d+", folder):
            number = 1 if folder == "manifest.json" else int(folder.removeprefix("version="))
            versions[partition] = max((number, path), versions.get(partition, (0, "")))
    return {partition: path for partition, (_, path) in versions.items()}, held


def _models(
    store: Store, settings: Settings, corpus: _Corpus, newest: RunRecord | None
) -> list[ModelState]:
    """Count cells by the names of their files."""
    protocol = newest.request().protocol if newest else settings.protocol
    scored = _list_cells(store, protocol)
    asked = newest.request().models if newest else ()
    names = dict.fromkeys([*(_name_of(each, settings) for each in asked), *sorted(scored)])
    published, claimed = _published(settings, protocol), _claimed(store)
    outcomes = _failures(newest, settings)
    states = []
    for name in names:
        cells = scored.get(name, {})
        done = {
            partition: paths[digest]
            for partition, digest in corpus.digests.items()
            if digest in (paths := cells.get(partition, {}))
        }
        state = ModelState(name, len(corpus.digests), len(done))
        state.num_published = len(published.get(name, set()) & set(corpus.digests.items()))
        state.running = claimed.get(name, [])
        state.num_failed = outcomes.get(name, 0)
        waiting = [size for each, size in corpus.sizes.items() if each not in done]
        state.pending_s = _seconds_of(store, corpus, done, waiting)
        states.append(state)
    return states


def _list_cells(store: Store, protocol: str) -> dict[str, dict[Partition, dict[str, str]]]:
    """Return the cells that have losses: model, partition, digest and path."""
    found: dict[str, dict[Partition, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for path in store.list("losses/model=*/source=*/month=*/*.parquet"):
        folder, _, file = path.rpartition("/")
        name, *rest = file.rsplit("-", 3)  # protocol, revision, digest, scoring
        if name == path_part(protocol) and len(rest) == 3:
            with contextlib.suppress(TidemarkError):  # a folder that nobody of ours has made
                model, partition = _folder_of(folder)
                found[model][partition][rest[1]] = path
    return found


@cache
def _folder_of(folder: str) -> tuple[str, Partition]:
    """Return whose cells are in ``losses/model=…/source=…/month=…``."""
    parts = folder.split("/")
    partition = partition_of("/".join(["corpus", *parts[2:4], ""]))
    return name_of_part(parts[1].removeprefix("model=")), partition


def _claimed(store: Store) -> dict[str, list[str]]:
    """Return the cells that processes work on now, by model."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in list_claimed(store):
        if name.startswith("losses/"):
            model, partition = _folder_of(name.rpartition("/")[0])
            found[model].append(str(partition))
    return {model: sorted(cells) for model, cells in found.items()}


def _failures(newest: RunRecord | None, settings: Settings) -> dict[str, int]:
    outcomes: dict[str, Outcome] = newest.outcomes("score") if newest else {}
    return {_name_of(model, settings): len(each.holes) for model, each in outcomes.items()}


def _name_of(asked: str, settings: Settings) -> str:
    try:
        return find_model(asked, settings).name
    except TidemarkError:  # a folder of another machine
        return PurePosixPath(asked).name


def _seconds_of(
    store: Store, corpus: _Corpus, done: dict[Partition, str], waiting: Sequence[int]
) -> float | None:
    """Return what the waiting cells take, going by the newest records of the model."""
    if not waiting:
        return 0.0
    points = []
    for partition, path in sorted(done.items())[-_MAX_RECORDS:]:
        with contextlib.suppress(TidemarkError, ValueError):
            raw = store.read_bytes(f"{path.removesuffix('.parquet')}.json")
            record = CellRecord.model_validate_json(raw)
            points.append((float(corpus.sizes[partition]), record.seconds))
    if not points:
        return None
    cell_s, byte_s = fit(points)
    return sum(cell_s + byte_s * size for size in waiting)


def _published(settings: Settings, protocol: str) -> dict[str, set[tuple[Partition, str]]]:
    """Return the partitions, with digest, that the snapshot has, by model."""
    found: dict[str, set[tuple[Partition, str]]] = defaultdict(set)
    sql = "select model, source, month, partition_digest from landed_cells where protocol = ?"
    with contextlib.suppress(TidemarkError):  # nothing is published
        table = query(settings, sql, [protocol])
        for model, source, month, digest in zip(*table.to_pydict().values(), strict=True):
            partition = Partition(source, Month.of(month) if month else None)
            found[model].add((partition, str(digest)[:_DIGEST_CHARS]))
    return found


def _run_state(record: RunRecord) -> RunState:
    request, result = record.request(), record.result()
    if result is not None:
        state = "partial" if result.holes else "complete"
        return RunState(record.run, request.started_at, state, result.ended_at, (), result.holes)
    stages: tuple[Stage, ...] = ("crawl", "score")
    missing = [f"{stage} {part}" for stage in stages for part in record.missing(stage)]
    outcomes = [each for stage in stages for each in record.outcomes(stage).values()]
    holes = tuple(hole for each in outcomes for hole in each.holes)
    return RunState(
        record.run, request.started_at, "unfinished", None, tuple(missing or ["report"]), holes
    )
