"""The state of the data root: done, running, failed and missing work, read from its files.

For speed, each folder is listed once, manifests are read only for the requested months, and loss
files are known by name only. Prefect and torch are not imported.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from core.cells.failures import read_failures
from core.cells.record import median_seconds
from core.corpus.partition import Partition, partition_of, read_manifest
from core.errors import StorageError, TidemarkError
from core.month import Month, Period, month_range
from core.periods import kind_of
from core.settings import Settings
from core.storage.claims import list_claimed
from core.storage.store import Store, name_of_part
from crawlers.contract import SourceInfo
from crawlers.registry import is_source, list_sources, load_crawler
from instruments.backlog import Text, list_files, name_of, read_name, sealed_text
from instruments.planning import Request
from models.choice import chosen_models
from warehouse.database.faults import QUICK_ROWS, read_all
from warehouse.database.repair import SKIPPED, advise_on_writer, find_writer_fault
from warehouse.database.schema import SNAPSHOT, WRITER
from warehouse.database.statements import explain_database_errors
from warehouse.read.query import connect_to_read, local_snapshot
from warehouse.read.scored import scored_cells

_Published = dict[tuple[str, str], set[Text]]  # by model and protocol


@dataclass
class ModelState:
    """The numbers of cells of a model in the requested months, with a time estimate."""

    model: str
    num_sealed: int  # number of cells of sealed partitions
    num_done: int  # cells with losses
    num_published: int  # cells in the published snapshot
    running: list[str]  # partitions that processes are scoring
    failed: list[str]  # failed cells, with reasons; the model itself, if it could not be used
    cell_s: float | None = None  # median time of a cell; None if unknown
    pending_s: float | None = None  # time to score the pending cells one by one; None if unknown

    @property
    def num_pending(self) -> int:
        """The number of cells without a losses file."""
        return self.num_sealed - self.num_done


@dataclass(frozen=True)
class Status:
    """The state of all partitions and models of a data root."""

    home: str
    months: tuple[Period, ...]  # the shown months
    partitions: dict[str, tuple[str, ...]]  # by source, a state (such as held) per month
    models: tuple[ModelState, ...]  # configured models, and all models with losses
    published_at: dt.datetime | None  # time of the snapshot; None if there is none
    crawl_s: float | None  # seconds to crawl the missing partitions; None if unknown
    faults: tuple[str, ...]  # databases and manifests that cannot be read, and what to do

    @property
    def counts(self) -> Counter[str]:
        """The number of partitions by state."""
        return Counter(chain.from_iterable(self.partitions.values()))


def find_status(
    settings: Settings, months: Sequence[Period] | None, request: Request | None = None
) -> Status:
    """Return the state of some months; None means all months that have a partition.

    With a ``request``, only its sources and models are looked at.

    Raises:
        StorageError: the data root cannot be listed.
    """
    store = Store(settings.home)
    corpus = _Corpus(store, settings)
    window = tuple(months or corpus.months())
    partitions = corpus.states(window, request.sources if request else ())
    stamp = store.list_stamped(SNAPSHOT).get(SNAPSHOT)
    published, faults = _published(settings)
    return Status(
        home=store.root,
        months=window,
        partitions=partitions,
        models=tuple(_models(store, settings, corpus, published, request)),
        published_at=dt.datetime.fromtimestamp(stamp.modified_at, dt.UTC) if stamp else None,
        crawl_s=corpus.seconds_to_crawl(partitions),
        faults=(*faults, *_writer_faults(settings), *corpus.faults),
    )


class _Corpus:
    """The sealed partitions; the folder is listed once, and manifests are read on demand."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._manifests, self._held = _list_corpus(store)
        self._claimed = set(list_claimed(store))  # names, such as paths of partitions
        self.texts: set[Text] = set()  # sealed texts of the shown months
        self.faults: list[str] = []  # manifests of the shown months that cannot be read
        self._seconds: dict[str, list[float]] = defaultdict(list)  # times of crawls, by source
        self._crawled = list_sources()
        self._infos: dict[str, SourceInfo | None] = {}

    def months(self) -> list[Period]:
        """Return all months from the first to the last partition; else the last complete one."""
        partitions = {*self._manifests, *self._held}
        found = [each.month for each in partitions if isinstance(each.month, Month)]
        found = found or [Month.last_complete()]
        return list(month_range(min(found), max(found)))

    def states(self, window: Sequence[Period], asked: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the states of sources, one per month of the window.

        If ``asked`` is empty, the sources are those with partitions in the window. Without such
        sources, they are all crawled sources. Sources of other kinds of period are left out.
        """
        inside = set(window)
        present = {each.source for each in {*self._manifests, *self._held} if each.month in inside}
        names = asked or sorted(present) or self._crawled
        kinds = set(map(type, window))
        found = {}
        for source in names:
            if kind_of(source) in kinds:
                states = [self._state(Partition(source, month)) for month in window]
                found[source] = tuple(states)
        return found

    def _state(self, partition: Partition) -> str:
        """Return the state of a partition, one of those that ``cli.status`` marks."""
        path = self._manifests.get(partition)
        if path is not None:
            return self._read(partition, path)
        if partition.path in self._claimed:
            return "crawling"
        if partition in self._held:
            return "held"
        return "lacking" if self._lacks(partition) else "missing"

    def _read(self, partition: Partition, path: str) -> str:
        """Return the state of a sealed month; note its texts and how long its crawl took."""
        try:
            seal = read_manifest(self._store, partition, path)
        except StorageError as error:
            self.faults.append(str(error))
            return "damaged"
        if seal.num_documents:  # a takedown may have removed all documents
            self.texts.add(sealed_text(seal))
        started = seal.manifest.get("started_at")
        if seal.sealed_at and started and seal.manifest.get("kind") == "crawl":
            taken = seal.sealed_at - dt.datetime.fromisoformat(str(started))
            self._seconds[partition.source].append(taken.total_seconds())
        return "partial" if seal.is_partial else "sealed"

    def _lacks(self, partition: Partition) -> bool:
        """Return True if a partition cannot be crawled, since the source does not have it."""
        if partition.source not in self._infos:
            is_known = is_source(partition.source)
            info = load_crawler(partition.source).INFO if is_known else None
            self._infos[partition.source] = info
        info = self._infos[partition.source]
        if info is None or partition.month is None:  # imported sources cannot be crawled
            return True
        return info.lacks(partition.month) is not None

    def seconds_to_crawl(self, partitions: dict[str, tuple[str, ...]]) -> float | None:
        """Estimate the time from earlier crawls of each source; None if a source has none."""
        total = 0.0
        for source, states in partitions.items():
            missing = sum(state in ("missing", "held", "crawling") for state in states)
            times = self._seconds.get(source)
            if missing and not times:
                return None
            total += missing * sum(times or ()) / max(1, len(times or ()))
        return total


def _list_corpus(store: Store) -> tuple[dict[Partition, str], set[Partition]]:
    """Return each partition's newest manifest path, and the partitions with a held crawl."""
    versions: dict[Partition, tuple[int, str]] = {}
    held = set()
    for path in store.list("corpus/source=*/month=*/**/manifest.json"):
        partition = partition_of(path)
        folder = path.split("/")[3]
        if folder == "held":
            held.add(partition)
        elif folder == "manifest.json" or re.fullmatch(r"version=\d+", folder):
            number = 1 if folder == "manifest.json" else int(folder.removeprefix("version="))
            versions[partition] = max((number, path), versions.get(partition, (0, "")))
    return {partition: path for partition, (_, path) in versions.items()}, held


def _models(
    store: Store,
    settings: Settings,
    corpus: _Corpus,
    published: _Published,
    request: Request | None,
) -> list[ModelState]:
    """Return the state of each requested model, or of all that have files or failures."""
    protocol = settings.protocol
    files = list_files(store, protocol)
    failed = _failed(store)
    asked = request.models if request else chosen_models(settings)
    others = () if request else sorted({*files, *failed})
    names = dict.fromkeys([*(name_of(each, settings) for each in asked), *others])
    claimed = _claimed_partitions(store)
    states = []
    for name in names:
        paths = files[name].done
        done = sorted(corpus.texts & paths.keys())
        num_published = len(published.get((name, protocol), set()) & corpus.texts)
        state = ModelState(
            model=name,
            num_sealed=len(corpus.texts),
            num_done=len(done),
            num_published=num_published,
            running=claimed.get(name, []),
            failed=failed.get(name, []),
        )
        records = [f"{paths[text].removesuffix('.parquet')}.json" for text in done]
        state.cell_s = median_seconds(store, records)
        if not state.num_pending:
            state.pending_s = 0.0
        elif state.cell_s is not None:
            state.pending_s = state.num_pending * state.cell_s
        states.append(state)
    return states


def _claimed_partitions(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in list_claimed(store):
        name = read_name(path)
        if name is not None:
            found[name.model].append(str(partition_of(f"corpus/{name.text[0]}/")))
    return {model: sorted(cells) for model, cells in found.items()}


def _failed(store: Store) -> dict[str, list[str]]:
    """Return the failed cells of each model, with reasons; see ``core.cells.failures``."""
    found: dict[str, list[str]] = defaultdict(list)
    for stem, failure in read_failures(store, "losses").items():
        model = name_of_part(stem.split("/")[1].removeprefix("model="))
        found[model].append(str(failure))
    return found


def _published(settings: Settings) -> tuple[_Published, list[str]]:
    """Return the text of each cell in the published snapshot, by model and protocol.

    The second value is the fault if the snapshot cannot be read, else empty. The snapshot may have
    an earlier schema version.
    """
    found: _Published = defaultdict(set)
    if not Store(settings.home).exists(SNAPSHOT):
        return found, []
    try:
        with (
            local_snapshot(settings) as path,
            explain_database_errors(f"read {path}"),
            connect_to_read(path) as connection,
        ):
            read_all(connection, QUICK_ROWS)
            cells = scored_cells(connection)
    except TidemarkError as error:
        return found, [str(error)]
    for cell in cells:
        found[cell.model, cell.protocol].add((cell.folder, cell.partition_digest[:12]))
    return found, []


def _writer_faults(settings: Settings) -> list[str]:
    """Return the fault of the writer's database with advice, or an empty list."""
    path = settings.scratch / WRITER
    fault = find_writer_fault(settings, QUICK_ROWS)
    if fault is None or fault.kind in SKIPPED:
        return []
    return [f"{path} {fault.reason}. {advise_on_writer(settings, fault)}"]
