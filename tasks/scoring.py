"""Planning and scoring of cells."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow.parquet as pq
from prefect import task
from prefect.cache_policies import NO_CACHE

from core.cells import Cell
from core.corpus import Seal, list_sealed, read_documents, read_seal
from core.errors import StorageError, UsageError
from core.month import Month
from core.schemas import LOSSES
from core.settings import Settings
from core.storage import Store
from models.catalogue import ModelEntry, find_model
from models.load import identify, load_scorer
from models.protocols import get_protocol
from models.scorer import Scorer

_TEXT_COLUMNS = ["document_id", "source", "month", "text"]


@dataclass(frozen=True)
class ScoringPlan:
    """What one model has to do: its cells, those that have losses already apart."""

    entry: ModelEntry
    protocol: str
    pending: tuple[Cell, ...]
    done: tuple[Cell, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All of them."""
        return self.done + self.pending


def plan_scoring(
    model: str,
    protocol: str,
    sources: list[str] | None,
    months: list[Month] | None,
    settings: Settings,
) -> ScoringPlan:
    """List a model's cells over the sealed partitions, without loading its weights.

    Args:
        model: catalogue name, folder, or control.
        protocol: name of the protocol.
        sources: None takes every source.
        months: None takes every month, and undated corpora.
        settings: the data root and the device.

    Raises:
        UnknownName: no such model or protocol.
        ModelLoadError: the model's files are missing or broken.
        NotMeasurable: the model cannot be scored under this protocol.
    """
    store = Store(settings.home)
    entry = find_model(model, settings)
    identity = identify(entry, settings)
    scoring = identity.scoring_id(get_protocol(protocol))
    pending: list[Cell] = []
    done: list[Cell] = []
    for seal in select_sealed(store, sources, months):
        cell = Cell(
            model=identity.name,
            revision=identity.revision,
            partition=seal.partition,
            partition_digest=seal.digest,
            protocol=protocol,
            scoring=scoring,
        )
        (done if store.exists(cell.path) else pending).append(cell)
    return ScoringPlan(entry, protocol, tuple(pending), tuple(done))


def select_sealed(
    store: Store, sources: list[str] | None, months: list[Month] | None
) -> list[Seal]:
    """Return the seals of some sources and months (None: all), ordered."""
    return [
        seal
        for seal in list_sealed(store)
        if (sources is None or seal.partition.source in sources)
        and (months is None or seal.partition.month in months)
    ]


def require_sealed(store: Store, sources: list[str] | None, months: list[Month] | None) -> None:
    """Refuse a request for partitions of which there is none.

    Raises:
        UsageError: nothing at all, or nothing of one of the sources, is sealed for these months.
    """
    known = sorted({seal.partition.source for seal in select_sealed(store, None, months)})
    when = "" if months is None else f" for {months[0]}"
    when += "" if months is None or months[0] == months[-1] else f" to {months[-1]}"
    for source in sources or known or ["any source"]:
        if source not in known:
            raise UsageError(
                f"nothing is sealed of {source}{when} under {store.root} "
                f"(sealed{when}: {', '.join(known) or 'nothing'}); crawl or import it first"
            )


class _LoadedModel:
    """The one model that this process holds: weights are the expensive thing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[ModelEntry, str, str] | None = None
        self._scorer: Scorer | None = None

    @contextmanager
    def hold(self, entry: ModelEntry, settings: Settings) -> Iterator[Scorer]:
        """Lend the scorer of ``entry``; one cell at a time uses the device."""
        with self._lock:
            key = (entry, settings.device, settings.dtype)
            if self._scorer is None or self._key != key:
                self._scorer = None  # let go of the old weights before the new ones come
                self._scorer, self._key = load_scorer(entry, settings), key
            yield self._scorer


_model = _LoadedModel()


def load_model(plan: ScoringPlan, settings: Settings) -> None:
    """Load the model of a plan now, so that a broken one fails once and not in every cell.

    Nothing is loaded where nothing is pending.

    Raises:
        ModelLoadError: the weights are missing, unsafe or broken.
    """
    if plan.pending:
        with _model.hold(plan.entry, settings):
            pass


def write_losses(cell: Cell, entry: ModelEntry, settings: Settings) -> Cell:
    """Score one cell and write its losses, whole or not at all.

    Raises:
        StorageError: the partition is gone or was sealed anew since the plan was made.
        ModelLoadError: the model cannot be loaded.
        NotMeasurable: the model cannot be scored under this protocol.
    """
    store = Store(settings.home)
    seal = read_seal(store, cell.partition)
    if seal is None or seal.digest != cell.partition_digest:
        raise StorageError(f"{cell.partition} was sealed anew meanwhile; score it again")
    documents = read_documents(store, seal, columns=_TEXT_COLUMNS)
    with (
        _model.hold(entry, settings) as scorer,
        store.writing(cell.path) as staged,
        pq.ParquetWriter(staged.path, LOSSES, compression="zstd") as writer,
    ):
        for losses in scorer.score(documents, get_protocol(cell.protocol)):
            writer.write_table(losses)
    return cell


@task(
    task_run_name="score {cell}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
def score_cell(cell: Cell, entry: ModelEntry, settings: Settings) -> Cell:
    """Score one cell; see ``write_losses``. Not retried: the same weights fail the same way."""
    return write_losses(cell, entry, settings)
