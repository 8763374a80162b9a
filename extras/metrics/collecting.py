"""Metrics for Prometheus, computed from the data root's files and the published snapshot."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from core.cells.failures import SUFFIX
from core.corpus.partition import MANIFEST, Partition, partition_of
from core.errors import TidemarkError
from core.json import JsonObject
from core.month import Period
from core.periods import kind_of
from core.settings import Settings
from core.storage.store import Stamp, Store, name_of_part
from warehouse.database.schema import SNAPSHOT, find_schema
from warehouse.database.statements import explain_database_errors
from warehouse.read.query import connect_to_read, local_snapshot

_log = logging.getLogger(__name__)

DUE_DAYS = 14  # the monthly run is on the 9th
CACHE_S = 60.0  # lifetime of collected metrics in seconds
_READS_AT_ONCE = 16  # number of threads that read files, since object stores respond slowly
_T = TypeVar("_T")
_Values = Mapping[tuple[str, ...], float]


class DataRoot(Collector):
    """A thread-safe collector of a data root's metrics for ``prometheus_client``."""

    def __init__(self, settings: Settings, cache_s: float = CACHE_S) -> None:
        self._settings = settings
        self._cache_s = cache_s
        self._store = Store(settings.home)
        self._known: dict[str, tuple[Stamp, Any]] = {}  # stamp and content of files, by path
        self._lock = threading.Lock()
        self._figures: list[Metric] = []
        self._good_until = 0.0

    def describe(self) -> Iterable[Metric]:
        """Return an empty list, so that the registration of the collector reads no files."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; if the data root is unreadable, return only ``tidemark_up`` 0."""
        with self._lock:
            if time.monotonic() >= self._good_until:
                self._figures = list(self._collect())
                self._good_until = time.monotonic() + self._cache_s
            return self._figures

    def _collect(self) -> Iterator[Metric]:
        """Yield all gauges; only ``up`` (0) if the data root cannot be read."""
        try:
            figures = [*self._corpus(), *self._losses(), *self._published(), *self._failures()]
        except TidemarkError as error:
            _log.warning("no metrics: %s", error)
            figures = []
        yield _gauge("up", "Whether the data root can be read.", {(): bool(figures)})
        yield from figures

    def _corpus(self) -> Iterator[Metric]:
        """Yield the gauges of the corpus: partitions by status, newest and missing months."""
        listed = self._store.list_stamped(f"corpus/source=*/**/{MANIFEST}")  # one listing
        held = [path for path in listed if path.endswith(f"/held/{MANIFEST}")]
        newest: dict[Partition, str] = {}
        for path in sorted(listed.keys() - set(held), key=_version_of):
            newest[partition_of(path)] = path
        statuses = self._read({path: listed[path] for path in newest.values()}, self._status_of)
        counts = Counter((each.source, statuses[path]) for each, path in newest.items())
        counts.update((partition_of(path).source, "held") for path in held)
        what = "Partitions: complete and partial ones are sealed, held ones wait for somebody."
        yield _gauge("partitions", what, counts, "source", "status")
        months: dict[tuple[str, ...], float] = {}
        for each in newest:
            if each.month is not None:
                begin = dt.datetime.combine(each.month.first_day, dt.time(), dt.UTC).timestamp()
                months[each.source,] = max(begin, months.get((each.source,), begin))
        what = "When the newest sealed month of a source begins."
        yield _gauge("newest_month_timestamp_seconds", what, months, "source")
        missing = _num_missing([each for each in newest if each.month is not None])
        what = "Months since a source's first sealed month that are due and not sealed."
        yield _gauge("months_missing", what, missing, "source")

    def _losses(self) -> Iterator[Metric]:
        """Yield the gauges of scored cells and of claims."""
        paths = self._store.list("losses/model=*/source=*/month=*/*.parquet")
        models = (path.split("/")[1].removeprefix("model=") for path in paths)
        counts = Counter((name_of_part(model),) for model in models)
        yield _gauge("cells_scored", "Cells that have losses.", counts, "model")
        num_claims = len(self._store.list("claims/*.json"))
        what = "Cells and partitions that processes have claimed."
        yield _gauge("claims", what, {(): num_claims})

    def _published(self) -> Iterator[Metric]:
        """Yield the gauges of the published snapshot."""
        found = self._store.list_stamped(SNAPSHOT)
        landed: dict[str, _Values] = self._read(found, lambda _: self._landed())
        what = "Cells in the published snapshot."
        yield _gauge("cells_published", what, landed.get(SNAPSHOT, {}), "model")
        times = {(): found[SNAPSHOT].modified_at} if found else {}
        yield _gauge("snapshot_timestamp_seconds", "When the snapshot was published.", times)

    def _landed(self) -> _Values:
        """Return the landed cells by model; the snapshot may have an older schema version."""
        with (
            local_snapshot(self._settings) as path,
            explain_database_errors(f"read {path}"),
            connect_to_read(path) as connection,
        ):
            cells = connection.table(f"{find_schema(connection, 'landed_cells')}.landed_cells")
            rows = cells.aggregate("model, count(*)").fetchall()
        return {(model,): number for model, number in rows}

    def _failures(self) -> Iterator[Metric]:
        """Yield the gauge of failed cells."""
        paths = self._store.list(f"*/model=*/**/*{SUFFIX}")
        models = (path.split("/")[1].removeprefix("model=") for path in paths)
        counts = Counter((name_of_part(model),) for model in models)
        what = "Cells that failed, and models that could not be used."
        yield _gauge("cells_failed", what, counts, "model")

    def _status_of(self, path: str) -> str:
        return "partial" if self._json(path).get("status") == "partial" else "complete"

    def _json(self, path: str) -> JsonObject:
        """Return the object in a file; an empty one if it is no JSON object."""
        try:
            facts = json.loads(self._store.read_bytes(path))
        except ValueError:
            return {}
        return facts if isinstance(facts, dict) else {}

    def _read(self, stamps: Mapping[str, Stamp], read: Callable[[str], _T]) -> dict[str, _T]:
        """Return the contents of files by path; read only files whose stamps have changed."""
        known = {path: self._known.get(path, (None, None)) for path in stamps}
        changed = [path for path, stamp in stamps.items() if known[path][0] != stamp]
        with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
            for path, said in zip(changed, pool.map(read, changed), strict=True):
                self._known[path] = stamps[path], said
        return {path: self._known[path][1] for path in stamps}


def _gauge(name: str, what: str, values: Mapping[Any, float], *labels: str) -> Metric:
    family = GaugeMetricFamily(f"tidemark_{name}", what, labels=labels)
    for names, value in sorted(values.items()):
        family.add_metric(names, value)
    return family


def _num_missing(
    sealed: Iterable[Partition], now: dt.datetime | None = None
) -> dict[tuple[str, ...], float]:
    """Return, by source, how many months are not sealed from its first sealed one to the last due.

    A month is due ``DUE_DAYS`` after its end.
    """
    day = (now or dt.datetime.now(dt.UTC)) - dt.timedelta(days=DUE_DAYS)
    months: dict[str, set[Period]] = {}
    for each in sealed:
        if each.month is not None:
            months.setdefault(each.source, set()).add(each.month)
    missing: dict[tuple[str, ...], float] = {}
    for source, there in months.items():
        due = kind_of(source).last_complete(day)
        num_due = due.index - min(there).index + 1
        missing[source,] = max(0, num_due - sum(it <= due for it in there))
    return missing


def _version_of(path: str) -> int:
    version = re.search(r"/version=(\d+)/[^/]*$", path)
    return int(version[1]) if version else 1
