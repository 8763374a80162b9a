"""Planning and scoring of cells."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import pyarrow.parquet as pq
from prefect import task
from prefect.cache_policies import NO_CACHE

from core.cell_record import CellRecord
from core.cells import Cell, list_losses
from core.claims import Claims, sweep
from core.corpus import Seal, find_version, list_sealed, read_documents
from core.errors import (
    BatchTooLarge,
    ModelError,
    NotMeasurable,
    StorageError,
    UsageError,
)
from core.month import Month
from core.schemas import LOSSES
from core.settings import Settings
from core.storage import Store
from models.catalogue import ModelEntry, find_model
from models.load import identify
from models.meter import Cost, metered
from models.protocols import get_protocol
from models.remote_client import NUM_AT_ONCE
from models.scorer import Scorer
from models.tally import Tally
from tasks.fan_out import Hole, fan_out
from tasks.loaded_model import LoadedModel
from tasks.observe import showing_cells
from tasks.retries import retrying
from tasks.server import run_log
from tasks.stopping import go_on

_KEYS = ["document_id", "source", "month"]


@dataclass(frozen=True)
class ScoringPlan:
    """What one model has to do: its cells, those that have losses already apart.

    ``refused`` says why the model cannot be scored under some of the protocols.
    """

    entry: ModelEntry
    pending: tuple[Cell, ...]
    done: tuple[Cell, ...]
    refused: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All of them."""
        return self.done + self.pending

    @property
    def groups(self) -> list[tuple[Cell, ...]]:
        """The pending cells, those of a partition together: one pass may serve several."""
        by_partition = groupby(self.pending, key=lambda cell: cell.partition)
        return [tuple(cells) for _, cells in by_partition]


def plan_scoring(
    model: str,
    protocols: Sequence[str],
    sources: list[str] | None,
    months: list[Month] | None,
    settings: Settings,
) -> ScoringPlan:
    """List a model's cells over the sealed partitions, without loading its weights.

    Args:
        model: catalogue name, folder, or control.
        protocols: their names.
        sources: None takes every source.
        months: None takes every month, and undated corpora.
        settings: the data root and the device.

    Raises:
        UnknownName: no such model or protocol.
        ModelLoadError: the model's files are missing or broken.
        NotMeasurable: no causal language model.
    """
    store = Store(settings.home)
    entry = find_model(model, settings)
    identity = identify(entry, settings)
    scoring, refused = {}, []
    for protocol in dict.fromkeys(map(get_protocol, protocols)):  # one may have several names
        try:
            scoring[protocol.name] = identity.scoring_id(protocol)
        except NotMeasurable as error:
            refused.append(str(error))
    losses = list_losses(store, identity.name)
    pending: list[Cell] = []
    done: list[Cell] = []
    for seal in select_sealed(store, sources, months, settings.corpus_as_of):
        for name, scoring_id in scoring.items():
            cell = Cell(
                model=identity.name,
                revision=identity.revision,
                partition=seal.partition,
                partition_digest=seal.digest,
                partition_version=seal.version,
                protocol=name,
                scoring=scoring_id,
            )
            (done if cell.path in losses else pending).append(cell)
    return ScoringPlan(entry, tuple(pending), tuple(done), tuple(refused))


def select_sealed(
    store: Store,
    sources: list[str] | None,
    months: list[Month] | None,
    as_of: dt.datetime | None = None,
) -> list[Seal]:
    """Return the seals of some sources and months (None: all), ordered, by ``as_of``."""
    return [
        seal
        for seal in list_sealed(store, as_of=as_of)
        if seal.num_documents  # all may have been forgotten
        and (sources is None or seal.partition.source in sources)
        and (months is None or seal.partition.month in months)
    ]


def require_sealed(
    store: Store,
    sources: list[str] | None,
    months: list[Month] | None,
    as_of: dt.datetime | None = None,
) -> None:
    """Refuse a request for partitions of which there is none.

    Raises:
        UsageError: nothing at all, or nothing of one of the sources, is sealed for these months.
    """
    known = sorted({seal.partition.source for seal in select_sealed(store, None, months, as_of)})
    when = "" if months is None else f" for {months[0]}"
    when += "" if months is None or months[0] == months[-1] else f" to {months[-1]}"
    when += "" if as_of is None else f" by {as_of.isoformat(timespec='seconds')}"
    for source in sources or known or ["any source"]:
        if source not in known:
            raise UsageError(
                f"nothing is sealed of {source}{when} under {store.root} "
                f"(sealed{when}: {', '.join(known) or 'nothing'}); crawl or import it first"
            )


def cells_in_flight(entry: ModelEntry, settings: Settings) -> int:
    """Return how many cells of a model are to be under way at once.

    A server answers several prompts together, a device does one cell at a time. More are under way,
    so that neither stands still while Prefect records a cell and the next is made ready.
    """
    return settings.in_flight or (NUM_AT_ONCE + 2 if entry.kind == "remote" else 2)


_model = LoadedModel()


def load_model(plan: ScoringPlan, settings: Settings) -> None:
    """Load the model of a plan now, so that a broken one fails once and not in every cell.

    Nothing is loaded where nothing is pending. Claims that killed processes left go, too.

    Raises:
        ModelLoadError: the weights are missing, unsafe or broken.
    """
    if plan.pending:
        sweep(Store(settings.home))
        with _model.hold(plan.entry, plan.pending[0].revision, settings):
            pass


def write_losses(
    cells: Sequence[Cell], entry: ModelEntry, settings: Settings, wait: bool = False
) -> tuple[Cell, ...]:
    """Score some cells of one partition and write their losses, each whole or not at all.

    One process at a time scores a cell, and one that has losses by now is not scored again.

    Args:
        cells: of one model and one partition, each of another protocol.
        entry: the model.
        settings: the data root and the device.
        wait: whether to wait for cells that others are scoring, and to do those of them whose
            process dies.

    Returns:
        The cells that others are scoring; none if ``wait``.

    Raises:
        StorageError: the partition is gone since the plan was made.
        ModelLoadError: the model cannot be loaded.
        NotMeasurable: the model cannot be scored under one of the protocols; the cells of the
            others are written.
        ModelError: chunks have no finite loss; the cells are written all the same, without these.
    """
    store = Store(settings.home, settings.scratch)
    claims = Claims(store)
    while claimed := _write_unclaimed(cells, entry, settings, claims):
        run_log().info("another process scores %s", "; ".join(map(str, claimed)))
        if not wait:
            break
        cells = claimed
        path = cells[0].path
        claims.wait(path, is_done=partial(_is_scored, store, path))
    return claimed


def _is_scored(store: Store, path: str) -> bool:
    go_on()  # the flow run may be ended meanwhile
    return store.exists(path)


def _write_unclaimed(
    cells: Sequence[Cell], entry: ModelEntry, settings: Settings, claims: Claims
) -> tuple[Cell, ...]:
    """Score the cells that nobody else is scoring; return those that somebody is."""
    store = Store(settings.home, settings.scratch)
    # Only what the device is free for is claimed, so that others may do the rest.
    with (
        _model.hold(entry, cells[0].revision, settings) as scorer,
        claims.hold([cell.path for cell in cells]) as ours,
    ):
        others = tuple(cell for cell in cells if cell.path not in ours)
        # With the claim: who had it before may have finished since the plan was made.
        missing = [cell for cell in cells if cell.path in ours and not store.exists(cell.path)]
        if missing:
            run_log().info("scoring %s", "; ".join(map(str, missing)))
            _write_missing(missing, scorer, store)
    return others


def _write_missing(cells: Sequence[Cell], scorer: Scorer, store: Store) -> None:
    seal = find_version(store, cells[0].partition, cells[0].partition_digest)
    if seal is None:
        raise StorageError(f"{cells[0].partition} was removed meanwhile; score again")
    try:
        num_lost = _write_together(cells, seal, scorer, store)
    except NotMeasurable:
        if len(cells) == 1:
            raise
        num_lost = _write_one_by_one(cells, seal, scorer, store)
    if num_lost:
        raise ModelError(
            f"{num_lost} chunks have no finite loss, so their cells have no figure (see view "
            "unmeasured); another TIDEMARK_DTYPE may help"
        )


def _write_one_by_one(cells: Sequence[Cell], seal: Seal, scorer: Scorer, store: Store) -> int:
    num_lost, failures = 0, []
    for cell in cells:
        try:
            num_lost += _write_together([cell], seal, scorer, store)
        except NotMeasurable as error:
            failures.append(str(error))
    if failures:
        raise NotMeasurable("; ".join(dict.fromkeys(failures)))
    return num_lost


def _write_together(cells: Sequence[Cell], seal: Seal, scorer: Scorer, store: Store) -> int:
    """Write the cells' losses; return how many chunks have none because they are not finite."""
    while True:
        try:
            return _write(cells, seal, scorer, store)
        except BatchTooLarge:
            # From the beginning, so that all of a cell's batches are of one budget: the next one
            # is half of it, and where one window is too large the scorer says so.
            continue


def _write(cells: Sequence[Cell], seal: Seal, scorer: Scorer, store: Store) -> int:
    num_lost = 0
    protocols = [get_protocol(cell.protocol) for cell in cells]
    tallies = [Tally() for _ in cells]
    columns = [*_KEYS, "text"] if seal.is_text else [*_KEYS, "media", "width"]
    documents = read_documents(store, seal, columns=columns)
    with ExitStack() as stack:
        writers = []
        for cell in cells:
            staged = stack.enter_context(store.writing(cell.path))
            writer = pq.ParquetWriter(staged.path, LOSSES, compression="zstd")
            writers.append(stack.enter_context(writer))
        with metered(on_cuda=scorer.facts.device.startswith("cuda")) as cost:
            for tables in scorer.score_together(documents, protocols, tallies):
                go_on()
                for writer, table in zip(writers, tables, strict=True):
                    if table.num_rows:
                        writer.write_table(table)
                    num_lost += table["reason"].to_pylist().count("non_finite")
        for cell, tally in zip(cells, tallies, strict=True):
            record = _record(scorer, tally, cost, tallies)
            store.write_bytes(cell.record_path, record.to_json())
    return num_lost


def _record(scorer: Scorer, tally: Tally, cost: Cost, together: Sequence[Tally]) -> CellRecord:
    """What a cell cost; of several that were scored together, what it would have by itself."""
    facts = scorer.facts
    total = sum(each.seconds for each in together)
    share = tally.seconds / total if total else 1 / len(together)
    return CellRecord(
        scored_at=dt.datetime.now(dt.UTC),
        device=facts.device,
        dtype=facts.dtype,
        batch_tokens=facts.batch_tokens,
        context=tally.context,
        versions=dict(facts.versions),
        seconds=cost.seconds if len(together) == 1 else tally.seconds,
        num_tokens_read=tally.num_tokens_read,
        peak_memory_bytes=cost.peak_memory_bytes,
        energy_joules=None if cost.energy_joules is None else share * cost.energy_joules,
        num_lossy_documents=tally.num_lossy_documents,
        tokenizer=facts.tokenizer,
        milestones=tally.milestones(),
    )


def score_group(
    cells: tuple[Cell, ...], entry: ModelEntry, settings: Settings, wait: bool = False
) -> tuple[Cell, ...]:
    """Do ``write_losses``, and again where what went wrong may pass."""
    return retrying(str(cells[0]), lambda: write_losses(cells, entry, settings, wait))


@task(
    task_run_name="score {cells[0]}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
def score_cells(
    cells: tuple[Cell, ...], entry: ModelEntry, settings: Settings, wait: bool = False
) -> tuple[Cell, ...]:
    """Score cells of a partition; see ``write_losses``. The same weights fail the same way."""
    with showing_cells(cells, settings):
        return score_group(cells, entry, settings, wait)


def score_all(plan: ScoringPlan, settings: Settings) -> list[Hole]:
    """Score a plan's pending cells, each group in a task run; return what failed.

    Those that other processes are scoring come last: most of them will be done by then.
    """
    step, in_flight = f"score {plan.entry.name}", cells_in_flight(plan.entry, settings)
    holes: list[Hole] = []
    groups: list[tuple[Cell, ...]] = plan.groups
    for wait in (False, True):
        calls = [
            (
                f"score {cells[0]}",
                {"cells": cells, "entry": plan.entry, "settings": settings, "wait": wait},
            )
            for cells in groups
        ]
        results = list(fan_out(score_cells, calls, step=step, in_flight=in_flight))
        holes += [result for result in results if isinstance(result, Hole)]
        groups = unscored([cells for cells in results if not isinstance(cells, Hole)], settings)
    return holes


def unscored(groups: Sequence[tuple[Cell, ...]], settings: Settings) -> list[tuple[Cell, ...]]:
    """Return what others were scoring and have not finished."""
    store = Store(settings.home)
    left = [tuple(cell for cell in cells if not store.exists(cell.path)) for cells in groups]
    return [cells for cells in left if cells]
