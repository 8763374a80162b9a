"""The first instrument (measurement): losses of models on sealed partitions."""

from __future__ import annotations

import datetime as dt
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow.parquet as pq

from core.cells.copies import copy_losses
from core.cells.losses import Cell, list_losses
from core.cells.record import CellRecord
from core.cells.tokens import choose_documents, path_of_tokens, to_parquet
from core.corpus.partition import Seal, find_version, read_documents
from core.corpus.selection import require_sealed, select_sealed
from core.corpus.spelled import find_spelled
from core.errors import BatchTooLarge, ModelError, NotMeasurable, StorageError
from core.month import Period
from core.schemas.tables import LOSSES
from core.settings import Settings
from core.storage.claims import Claims
from core.storage.store import Store
from instruments.canary import check_canary, is_canary_due
from instruments.driver import WorkRequest, work_and_land
from instruments.landing import land_losses
from instruments.models import expect_model, held, scorer_of
from instruments.runner import Done, Failure, Plan
from instruments.running.stopping import go_on
from models.backends import identify
from models.catalogue import ModelEntry, find_model
from models.scoring.machine import Cost, metered
from models.scoring.protocol import ScoringProtocol
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Identity, Scorer, Tally, tokens_table

_log = logging.getLogger(__name__)
_NUM_AHEAD = 2  # number of groups beyond those that are computed at the same time
KEYS = ["document_id", "source", "month"]  # columns of documents that losses repeat


class ScoringPlan(Plan[Cell]):
    """The cells to score with one model."""

    verb = "score"
    is_retried = True

    @property
    def groups(self) -> list[tuple[Cell, ...]]:
        """The pending cells, grouped by partition, since one pass serves several protocols."""
        by_partition = groupby(self.pending, key=lambda cell: cell.partition)
        return [tuple(cells) for _, cells in by_partition]

    def in_flight(self, settings: Settings) -> int:
        """Return the number of groups that an executor should run concurrently.

        A model server processes several prompts concurrently; a local device computes one cell at a
        time. Two more groups keep the server or device busy while Prefect records finished cells.
        """
        return settings.in_flight or self.entry.backend.answers_together + _NUM_AHEAD

    def is_done(self, cell: Cell, store: Store) -> bool:
        """Return True if the file with the cell's losses exists."""
        return store.exists(cell.path)

    def attempt(self, cells: tuple[Cell, ...], settings: Settings) -> Done:
        """Score cells of one partition; see ``write_losses``."""
        return Done(claimed=write_losses(cells, self.entry, settings))

    def prepare(self, settings: Settings) -> list[Failure]:
        """Load the model; check the canary if it has not run on this device."""
        load_model(self, settings)
        return _find_drift(self, settings)

    def land(self, settings: Settings) -> int:
        """Land the cells that have losses; return the number of newly landed cells."""
        return len(land_losses(self.entry, self.cells, settings))


def plan_scoring(
    model: str,
    protocols: Sequence[str],
    sources: list[str] | None,
    months: list[Period] | None,
    settings: Settings,
) -> ScoringPlan:
    """List a model's cells over the sealed partitions, without loading the model's weights.

    ``months`` None means all months, and undated partitions. Pending cells of large partitions come
    first, so that several runs of a model end at about the same time.

    Raises:
        UnknownName: there is no such model or protocol.
        ModelLoadError: the model's files are missing or broken.
        NotMeasurable: the model is not a causal language model.
    """
    store = Store(settings.home)
    entry = find_model(model, settings)
    identity = identify(entry, settings)
    usable = []
    refused = {}  # reasons by protocol
    for protocol in dict.fromkeys(map(get_protocol, protocols)):  # two names may mean one protocol
        try:
            identity.scoring_id(protocol)
        except NotMeasurable as error:
            refused[protocol.name] = str(error)
        else:
            usable.append(protocol)
    losses = list_losses(store, identity.name)
    seals = select_sealed(store, sources, months, settings.corpus_as_of)
    ids = scoring_ids(identity, usable, seals, store)
    cells = []
    for seal in seals:
        for protocol in usable:
            cell = Cell(
                model=identity.name,
                revision=identity.revision,
                partition=seal.partition,
                partition_digest=seal.digest,
                partition_version=seal.version,
                protocol=protocol.name,
                scoring=ids[seal.digest, protocol.name],
            )
            cells.append(cell)
    sizes = {seal.partition: seal.num_bytes for seal in seals}
    pending = [cell for cell in cells if cell.path not in losses]
    pending.sort(key=lambda cell: (-sizes[cell.partition], str(cell.partition)))
    return ScoringPlan(entry, tuple(cells), tuple(pending), refused)


def scoring_ids(
    identity: Identity, protocols: Sequence[ScoringProtocol], seals: Sequence[Seal], store: Store
) -> dict[tuple[str, str], str]:
    """Return the scoring id of each cell, by digest of the partition and name of the protocol.

    Some protocols read control tokens in a text as plain text. Under these, partitions that contain
    the spelling of one of the model's control tokens get another id.
    """
    words: frozenset[str] = getattr(identity, "control_texts", frozenset())
    sealed = {seal.digest: partial(_texts, store, seal) for seal in seals if seal.is_text}
    if all(protocol.parses_control for protocol in protocols):
        sealed = {}
    spelling = find_spelled(store, sealed, words)
    ids = {}
    for protocol in protocols:
        usual = identity.scoring_id(protocol)
        other = identity.scoring_id(protocol, has_control=True) if spelling else usual
        for seal in seals:
            ids[seal.digest, protocol.name] = other if seal.digest in spelling else usual
    return ids


def _texts(store: Store, seal: Seal) -> Iterator[str]:
    for batch in read_documents(store, seal, columns=["text"]):
        yield from batch["text"].to_pylist()


def load_model(plan: ScoringPlan, settings: Settings) -> None:
    """Load the model of a plan, so that a broken model fails once, not once per cell."""
    if plan.pending:
        with held.hold(scorer_of, plan.entry, plan.pending[0].revision, settings):
            pass


def write_losses(cells: Sequence[Cell], entry: ModelEntry, settings: Settings) -> tuple[Cell, ...]:
    """Score cells of one partition (one per protocol); write each cell's file atomically.

    Cells with losses are skipped, and so are cells that another process claims. Losses of the same
    weights under another name are copied.

    Returns:
        The cells that other processes claim.

    Raises:
        StorageError: the partition was removed after planning.
        ModelLoadError: the model cannot be loaded.
        NotMeasurable: a protocol does not suit the model; cells of other protocols are written.
        ModelError: chunks have a non-finite loss; the cells are written without these chunks.
    """
    store = Store(settings.home, settings.scratch)
    by_path = {cell.path: cell for cell in cells}
    # A compressor has no losses of tokens.
    num_kept = 0 if entry.backend.is_control else settings.kept_documents
    # The model is loaded before the cells are claimed, so that claimed work begins at once.
    with (
        held.hold(scorer_of, entry, cells[0].revision, settings) as scorer,
        Claims(store).hold(list(by_path)) as claimed,
    ):
        go_on()
        # Another process may have written some since the caller's check.
        missing = [by_path[path] for path in claimed if not store.exists(path)]
        if entry.backend.from_hub:  # the revision is a commit or the digest of the weights
            missing = [each for each in missing if not copy_losses(each, store)]
        if missing:
            _log.info("scoring %s", "; ".join(map(str, missing)))
            _write_missing(missing, scorer, store, num_kept)
    return tuple(cell for path, cell in by_path.items() if path not in claimed)


def _write_missing(cells: Sequence[Cell], scorer: Scorer, store: Store, num_kept: int) -> None:
    """Score the cells of one partition in one pass, or one after the other if that fails."""
    seal = find_version(store, cells[0].partition, cells[0].partition_digest)
    if seal is None:
        raise StorageError(f"{cells[0].partition} was removed meanwhile; score again")
    write = partial(_write_together, kept=choose_documents(store, seal, num_kept))
    try:
        num_lost = write(cells, seal, scorer, store)
    except NotMeasurable:
        if len(cells) == 1:
            raise
        num_lost = _write_one_by_one(cells, lambda cell: write([cell], seal, scorer, store))
    if num_lost:
        raise ModelError(
            f"{num_lost} chunks have no finite loss, so their cells have no figure (see view "
            "unmeasured); another TIDEMARK_DTYPE may help"
        )


def _write_one_by_one(cells: Sequence[Cell], write: Callable[[Cell], int]) -> int:
    """Score each cell alone; raise one error for all that cannot be measured."""
    num_lost = 0
    failures = []
    for cell in cells:
        try:
            num_lost += write(cell)
        except NotMeasurable as error:
            failures.append(str(error))
    if failures:
        raise NotMeasurable("; ".join(dict.fromkeys(failures)))
    return num_lost


def _write_together(
    cells: Sequence[Cell], seal: Seal, scorer: Scorer, store: Store, kept: frozenset[str]
) -> int:
    """Score and write the cells; return the number of chunks without a finite loss.

    ``kept``: ids of the documents whose token losses are written, too.
    """
    while True:
        try:
            return _write(cells, seal, scorer, store, kept)
        except BatchTooLarge:
            # Restart the cell with the halved batch size, so that all its batches have the same
            # size. If even one window is too large, the scorer raises another error.
            continue


def _write(
    cells: Sequence[Cell], seal: Seal, scorer: Scorer, store: Store, kept: frozenset[str]
) -> int:
    """Score cells in one pass; return the number of chunks without a finite loss."""
    num_lost = 0
    protocols = [get_protocol(cell.protocol) for cell in cells]
    tallies = [Tally(chosen=kept) for _ in cells]
    columns = [*KEYS, "text"] if seal.is_text else [*KEYS, "media", "width"]
    documents = read_documents(store, seal, columns=columns)
    with ExitStack() as stack:
        writers = []
        for cell in cells:
            staged = stack.enter_context(store.writing(cell.path))
            writer = pq.ParquetWriter(
                staged.path,
                LOSSES,
                compression="zstd",
                write_page_checksum=True,  # readers then detect flipped bits
            )
            writers.append(stack.enter_context(writer))
        with metered(on_cuda=scorer.facts.device.startswith("cuda")) as cost:
            for tables in scorer.score_together(documents, protocols, tallies):
                go_on()
                for writer, table in zip(writers, tables, strict=True):
                    if table.num_rows:
                        writer.write_table(table)
                    num_lost += table["reason"].to_pylist().count("non_finite")
        for cell, tally in zip(cells, tallies, strict=True):
            if tally.token_losses:
                tokens = to_parquet(tokens_table(cell, tally.token_losses))
                store.write_bytes(path_of_tokens(cell), tokens)
            record = _record(scorer, tally, cost, tallies)
            store.write_bytes(cell.record_path, record.to_json())
    return num_lost


def _record(scorer: Scorer, tally: Tally, cost: Cost, together: Sequence[Tally]) -> CellRecord:
    """Return the record of one cell; ``together`` are the tallies of all cells of the pass."""
    facts = scorer.facts
    pass_s = sum(each.seconds for each in together)
    share = tally.seconds / pass_s if pass_s else 1 / len(together)
    # A cell alone has the whole time of the pass, with reading and writing.
    seconds = cost.seconds if len(together) == 1 else tally.seconds
    energy_joules = None
    if cost.energy_joules is not None:
        energy_joules = share * cost.energy_joules
    return CellRecord(
        scored_at=dt.datetime.now(dt.UTC),
        device=facts.device,
        dtype=facts.dtype,
        batch_tokens=facts.batch_tokens,
        context=tally.context,
        versions=dict(facts.versions),
        seconds=seconds,
        num_tokens_read=tally.num_tokens_read,
        peak_memory_bytes=cost.peak_memory_bytes,
        energy_joules=energy_joules,
        active_parameters=facts.active_parameters,
        matmul_flops=facts.matmul_flops,
        num_lossy_documents=tally.num_lossy_documents,
        tokenizer=facts.tokenizer,
        milestones=tally.milestones(),
        byte_classes=tally.byte_classes(),
    )


def score_and_land(
    settings: Settings,
    models: list[str],
    sources: list[str] | None,
    months: list[Period] | None,
    protocols: list[str],
    retry_failed: bool = False,
) -> tuple[int, list[str]]:
    """Score the cells that lack losses, land the cells and publish.

    Return the number of landed cells, and the failures. Cells land even if others fail.

    Raises:
        UsageError: a name is unknown, or none of the requested partitions is sealed.
    """
    for model in models:
        find_model(model, settings)  # raises an error for an unknown name before hours of scoring
    require_sealed(Store(settings.home), sources, months, settings.corpus_as_of)
    request = scoring_request(
        models, sources, months, protocols, settings, retry_failed=retry_failed
    )
    summary = work_and_land(request, settings)
    return summary.num_landed, list(map(str, summary.failures))


def scoring_request(
    models: Sequence[str],
    sources: list[str] | None,
    months: list[Period] | None,
    protocols: Sequence[str],
    settings: Settings,
    **choices: Any,
) -> WorkRequest:
    """Return the request to score sealed partitions; ``choices`` are its further fields."""
    return WorkRequest(
        models=tuple(models),
        plan=lambda model: plan_scoring(model, protocols, sources, months, settings),
        root=Cell.ROOT,
        expect=lambda model: expect_model(model, settings),
        **choices,
    )


def _find_drift(plan: ScoringPlan, settings: Settings) -> list[Failure]:
    """Check the canary once per device and set of libraries; return a drift as a failure."""
    backend = plan.entry.backend
    # The canary is a model of torch, so its drift means nothing for models without torch.
    if backend.is_control or backend.is_server or "torch" not in sys.modules:
        return []
    if not is_canary_due(settings):
        return []
    run = check_canary(settings)
    return [] if run.is_well else [Failure("canary", str(run))]
