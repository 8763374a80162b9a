"""`tidemark reproduce`: one cell scored again, and compared with what landed of it.

Nothing of the data root changes: the new losses are compared and forgotten.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from core.cells import Cell
from core.corpus import Seal, find_version, list_versions, read_documents
from core.errors import BatchTooLarge, ModelError, StorageError, UnknownName, UsageError
from core.partition_check import find_damage
from core.settings import Settings
from core.storage import Store
from models.catalogue import find_model
from models.load import identify, load_scorer
from models.protocols import get_protocol
from models.scorer import Scorer
from models.tally import Tally
from warehouse.database_errors import explain_database_errors
from warehouse.landed import own_cells, read_rows
from warehouse.query import local_snapshot
from warehouse.reader import connect_to_read
from warehouse.release import release_database

TOLERANCE = 1e-6  # of the cell's nats, for their sum and for any one chunk
_DTYPES = ("float32", "bfloat16", "float16")  # what the setting takes
_NUM_SUGGESTIONS = 5


@dataclass(frozen=True)
class Reproduction:
    """Losses of a cell, then and now.

    Attributes:
        num_chunks: of both together.
        num_unmatched: chunks that one of the two lacks, has not measured, or has other text in.
        landed_nats: sum over the landed chunks.
        rescored_nats: sum over the chunks as they are scored now.
        largest_chunk_nats: largest difference of a chunk.
        then: device, dtype and versions of the landed losses; empty where no record was kept.
        now: the same, of this run.
        is_same_scoring: whether protocol, dtype and code are those of the landed losses.
    """

    num_chunks: int
    num_unmatched: int
    landed_nats: float
    rescored_nats: float
    largest_chunk_nats: float
    then: dict[str, str]
    now: dict[str, str]
    is_same_scoring: bool

    @property
    def relative_difference(self) -> float:
        """Of the sums; 0 where both are."""
        return abs(self.rescored_nats - self.landed_nats) / (self.landed_nats or 1.0)

    @property
    def is_reproduced(self) -> bool:
        """Whether sum and chunks are within the tolerance, and every chunk has its pair."""
        limit = TOLERANCE * self.landed_nats
        return (
            self.num_unmatched == 0
            and abs(self.rescored_nats - self.landed_nats) <= limit
            and self.largest_chunk_nats <= limit
        )


@dataclass(frozen=True)
class _Landed:
    """A cell, and the record of what scored it."""

    cell: Cell
    record: dict[str, Any]


def reproduce(
    settings: Settings, name: str, release: str | None = None, model: str | None = None
) -> Reproduction:
    """Score one cell again and compare.

    Args:
        settings: the data root, which has to have the cell's text.
        name: of the cell: model, source, month and protocol with slashes, as ``Cell.name``.
        release: month or folder of a release; None: what is published.
        model: where the model is now, if its name does not say.

    Raises:
        UnknownName: no cell of that name was scored by tidemark, or no such model.
        StorageError: the text is gone, was sealed anew, or is damaged; the release is damaged.
        ModelLoadError: the model's files are not those of the cell, or cannot be loaded.
        NotMeasurable: this model cannot be scored under the protocol any more.
    """
    store = Store(settings.home)
    with (
        _database(settings, release) as path,
        explain_database_errors(f"read {path}"),
        connect_to_read(path) as connection,
    ):
        landed = _find(connection, name)
        seal = _sealed(store, landed.cell)
        scorer = _load(landed, settings, model)
        losses = _score(scorer, landed.cell, seal, store)
        figures = _compare(connection, landed.cell, losses)
    protocol = get_protocol(landed.cell.protocol)
    return Reproduction(
        **figures,
        then=_conditions(landed.record),
        now=_conditions(scorer.facts._asdict()),
        is_same_scoring=scorer.scoring_id(protocol) == landed.cell.scoring,
    )


@contextlib.contextmanager
def _database(settings: Settings, release: str | None) -> Iterator[Path]:
    if release is None:
        with local_snapshot(settings) as path:
            yield path
    else:
        with release_database(settings, release) as path:
            yield path


def _key(cell: Cell) -> dict[str, object]:
    month = cell.partition.month
    return {
        "model": cell.model,
        "source": cell.partition.source,
        "month": month.first_day if month else None,
        "protocol": cell.protocol,
    }


def _find(connection: duckdb.DuckDBPyConnection, name: str) -> _Landed:
    cells = own_cells(connection)
    found = [cell for cell in cells if cell.name == name]
    if not found:
        known = difflib.get_close_matches(name, [cell.name for cell in cells], _NUM_SUGGESTIONS)
        hint = "a cell is MODEL/SOURCE/YYYY-MM/PROTOCOL (or undated), scored by tidemark itself"
        raise UnknownName("cell", name, known, hint)
    if len(found) > 1:
        raise UsageError(f"{name!r} names {len(found)} cells: {', '.join(map(str, found))}")
    parameters = {**_key(found[0]), "revision": found[0].revision}
    records = read_rows(connection, "find_costs", parameters)
    record = {**records[0], "versions": json.loads(records[0]["versions"])} if records else {}
    return _Landed(found[0], record)


def _sealed(store: Store, cell: Cell) -> Seal:
    """Return the seal of the very text that was scored, having read all of it."""
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


def _load(landed: _Landed, settings: Settings, model: str | None) -> Scorer:
    """Load the revision that was scored, with the dtype and the batches that it was scored with."""
    cell, record = landed.cell, landed.record
    entry = find_model(model or cell.model, settings)
    if entry.kind not in ("control", "remote"):
        entry = dataclasses.replace(entry, revision=cell.revision)
    update: dict[str, object] = {"batch_tokens": record.get("batch_tokens")}
    if record.get("dtype") in _DTYPES:
        update["dtype"] = record["dtype"]
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
    protocol = get_protocol(cell.protocol)
    content = ["text"] if seal.is_text else ["media", "width"]
    columns = ["document_id", "source", "month", *content]
    while True:
        documents = read_documents(store, seal, columns=columns)
        try:
            scored = scorer.score_together(documents, [protocol], [Tally()])
            return pa.concat_tables([table for (table,) in scored])
        except BatchTooLarge:
            continue  # from the beginning, with the smaller batches that the scorer has chosen


def _compare(connection: duckdb.DuckDBPyConnection, cell: Cell, losses: pa.Table) -> dict[str, Any]:
    connection.register("rescored_losses", losses)
    try:
        [figures] = read_rows(connection, "compare_losses", _key(cell))
    finally:
        connection.unregister("rescored_losses")
    return figures


def _conditions(record: dict[str, Any]) -> dict[str, str]:
    """Device, dtype and versions as one flat mapping."""
    if not record:
        return {}
    versions = {str(name): str(number) for name, number in record["versions"].items()}
    return {"device": record["device"], "dtype": record["dtype"], **versions}
