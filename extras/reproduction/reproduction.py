"""`tidemark check cell`: score one cell again, and compare the new with the landed losses."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from core.cells.losses import Cell
from core.corpus.partition import Seal, find_version, list_versions, read_documents
from core.corpus.parts import find_damage
from core.errors import BatchTooLarge, ModelError, StorageError, UnknownName, UsageError
from core.settings import Settings
from core.storage.store import Store
from instruments.losses import scoring_ids
from models.backends import identify, load_scorer
from models.catalogue import find_model
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Scorer, Tally
from warehouse.database.statements import explain_database_errors
from warehouse.read.query import connect_to_read, local_snapshot
from warehouse.read.released import release_database
from warehouse.read.scored import run_file, scored_cells

TOLERANCE = 1e-6  # largest accepted difference of the sum or a chunk, as a share of the cell's nats
_DTYPES = ("float32", "bfloat16", "float16")  # values of the dtype setting
_NUM_SUGGESTIONS = 5


@dataclass(frozen=True)
class Reproduction:
    """Comparison of a cell's landed losses and its new losses."""

    num_chunks: int  # number of chunks in the landed or the new losses
    num_unmatched: int  # number of chunks missing or unmeasured on one side, or with other text
    landed_nats: float  # sum of the landed losses
    rescored_nats: float  # sum of the new losses
    largest_chunk_nats: float  # largest difference between the two losses of a chunk
    then: dict[str, str]  # device, dtype and versions of the landed losses; empty if unknown
    now: dict[str, str]  # device, dtype and versions of this run
    is_same_scoring: bool  # True if protocol, dtype and code are equal

    @property
    def relative_difference(self) -> float:
        """The relative difference of the summed losses; 0 if both sums are 0."""
        return abs(self.rescored_nats - self.landed_nats) / (self.landed_nats or 1.0)

    @property
    def is_reproduced(self) -> bool:
        """True if sum and chunks differ by at most TOLERANCE, and no chunk is unmatched."""
        limit = TOLERANCE * self.landed_nats
        return (
            self.num_unmatched == 0
            and abs(self.rescored_nats - self.landed_nats) <= limit
            and self.largest_chunk_nats <= limit
        )


def reproduce(
    settings: Settings, name: str, release: str | None = None, model: str | None = None
) -> Reproduction:
    """Score the cell with ``Cell.name`` equal to ``name`` again, and compare the losses.

    ``release`` is the month or folder of the release with the landed losses; None means the
    published snapshot. ``model`` is the present name or location of the model, if it has changed.

    Raises:
        UnknownName: tidemark has not scored such a cell, or there is no such model.
        StorageError: the text is missing, damaged, or was sealed again; the release is damaged.
        ModelLoadError: the model's files differ from the cell's revision, or cannot be loaded.
        NotMeasurable: the model can no longer be scored under the protocol.
    """
    store = Store(settings.home)
    with (
        local_snapshot(settings)
        if release is None
        else release_database(settings, release) as path,
        explain_database_errors(f"read {path}"),
        connect_to_read(path) as connection,
    ):
        cell, costs = _find(connection, name)
        seal = _sealed(store, cell)
        scorer = _load(cell, costs, settings, model)
        losses = _score(scorer, cell, seal, store)
        connection.register("rescored_losses", losses)
        [figures] = run_file(connection, "compare_losses", _key(cell))
    protocol = get_protocol(cell.protocol)
    ids = scoring_ids(scorer, [protocol], [seal], store)
    return Reproduction(
        **figures,
        then=_conditions(costs.device, costs.dtype, json.loads(costs.versions)) if costs else {},
        now=_conditions(scorer.facts.device, scorer.facts.dtype, scorer.facts.versions),
        is_same_scoring=ids[seal.digest, protocol.name] == cell.scoring,
    )


@dataclass(frozen=True)
class _Costs:
    """A row of ``find_costs.sql``: how a cell was scored."""

    device: str
    dtype: str
    batch_tokens: int | None
    versions: str  # JSON: number by name of library


def _key(cell: Cell) -> dict[str, object]:
    """Return the key of a cell in the views."""
    month = cell.partition.month
    return {
        "model": cell.model,
        "source": cell.partition.source,
        "month": month.first_day if month else None,
        "protocol": cell.protocol,
    }


def _find(connection: duckdb.DuckDBPyConnection, name: str) -> tuple[Cell, _Costs | None]:
    """Return the cell of a name, and what its scoring cost; suggest names if there is none."""
    cells = scored_cells(connection)
    found = [cell for cell in cells if cell.name == name]
    if not found:
        known = difflib.get_close_matches(name, [cell.name for cell in cells], _NUM_SUGGESTIONS)
        hint = "a cell is MODEL/SOURCE/YYYY-MM/PROTOCOL (or undated), scored by tidemark itself"
        raise UnknownName("cell", name, known, hint)
    if len(found) > 1:
        raise UsageError(f"{name!r} names {len(found)} cells: {', '.join(map(str, found))}")
    parameters = {**_key(found[0]), "revision": found[0].revision}
    records = run_file(connection, "find_costs", parameters)
    return found[0], _Costs(**records[0]) if records else None


def _sealed(store: Store, cell: Cell) -> Seal:
    """Return the seal of the version that was scored, after a check of its files."""
    seal = find_version(store, cell.partition, cell.partition_digest)
    if seal is None:
        digests = [each.digest[:12] for each in list_versions(store, cell.partition)]
        found = f"digest {', '.join(digests)}" if digests else "nothing"
        raise StorageError(
            f"the text of {cell} is no longer under {store.root}: expected digest "
            f"{cell.partition_digest[:12]} for {cell.partition}, found {found}; bring the "
            "partition back from a backup, or choose a cell whose text is there"
        )
    for path, problem in find_damage(store, seal):
        raise StorageError(
            f"{store.url(path)} {problem}; bring the partition back from a backup, or crawl or "
            "import it again with --replace"
        )
    return seal


def _load(cell: Cell, costs: _Costs | None, settings: Settings, model: str | None) -> Scorer:
    """Load the model of a cell with its dtype; raise an error if its revision is another."""
    entry = find_model(model or cell.model, settings)
    if entry.backend.on_device:
        entry = dataclasses.replace(entry, revision=cell.revision)
    update: dict[str, object] = {"batch_tokens": costs.batch_tokens if costs else None}
    if costs and costs.dtype in _DTYPES:
        update["dtype"] = costs.dtype
    settings = settings.model_copy(update=update)
    found = identify(entry, settings).revision
    if found != cell.revision:
        raise ModelError(
            f"{entry.name} has revision {found} here, and {cell} was scored with {cell.revision}; "
            "install the libraries of that time (see the release's versions.json), or give its "
            "files with --model"
        )
    return load_scorer(entry, settings)


def _score(scorer: Scorer, cell: Cell, seal: Seal, store: Store) -> pa.Table:
    """Score a cell again; start again with smaller batches if memory is full."""
    protocol = get_protocol(cell.protocol)
    content = ["text"] if seal.is_text else ["media", "width"]
    columns = ["document_id", "source", "month", *content]
    while True:
        documents = read_documents(store, seal, columns=columns)
        try:
            scored = scorer.score_together(documents, [protocol], [Tally()])
            return pa.concat_tables([table for (table,) in scored])
        except BatchTooLarge:
            continue  # restart; the scorer has reduced its batch size


def _conditions(device: str, dtype: str, versions: Mapping[str, str]) -> dict[str, str]:
    return {"device": device, "dtype": dtype, **versions}
