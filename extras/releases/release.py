"""Releases: frozen snapshots for citation and verification.

    releases/<YYYY-MM>/warehouse.duckdb    the published snapshot without later months
    releases/<YYYY-MM>/cells.jsonl         cells scored by tidemark: checksums, scoring records
    releases/<YYYY-MM>/partitions.jsonl    the seals of the scored text: every version of a
                                           partition (mostly one) that a cell was scored on
    releases/<YYYY-MM>/catalogue.json      models, sources and protocols
    releases/<YYYY-MM>/versions.json       versions of tidemark, libraries and protocols
    releases/<YYYY-MM>/README.md, CITATION.cff, .zenodo.json
    releases/<YYYY-MM>/SHA256SUMS          written last: a release without it does not exist

A release holds no text, and no losses except those in the database.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

import duckdb

from core.cells.losses import Cell
from core.cells.record import read_cell_record
from core.corpus.partition import MANIFEST, Partition, find_version
from core.errors import CheckFailed, StorageError, UsageError
from core.month import Month, require_complete
from core.settings import Settings
from core.storage.store import Store, explain_disk_errors, sha256_of_file
from core.version import own_version
from extras.releases.citation import CFF, ZENODO, citation_cff, cited, zenodo_json
from warehouse.database.materialised import compute_views, materialise
from warehouse.database.repair import require_known_databases
from warehouse.database.schema import (
    SCHEMA_VERSION,
    SNAPSHOT,
    describe_columns,
    qualify,
)
from warehouse.database.statements import OFFLINE, Config, Row, explain_database_errors, rows_of
from warehouse.database.writer import STORAGE_VERSION, locked, transaction
from warehouse.estimates.estimate import estimate
from warehouse.read.check import check_home
from warehouse.read.query import connect_to_read, local_snapshot
from warehouse.read.released import FOLDER, SUMS
from warehouse.read.scored import scored_cells

_README = """\
# tidemark release {month}

{simulated}Losses of language models on text of every month up to {month}, and on undated corpora:
{cells} cells (a model on a source's month under a protocol) that tidemark has scored, and what was
landed from elsewhere. Later months are left out, so figures are those of a reader at the end of
{month}.

- `warehouse.duckdb`: the losses, and every figure as an SQL view. Any DuckDB from 1.5 on opens it.
- `cells.jsonl`: the cells, with the model's revision, the text's digest, the checksum of the losses
  and what scoring took.
- `partitions.jsonl`: the manifests of the text that was scored: where and when it was fetched.
- `catalogue.json`: what is known of models (cutoffs, with their provenance), sources and protocols.
- `versions.json`: versions of tidemark and of its libraries, hashes of the protocols.

The text itself is not in the release: it is its authors'.

## Verify

```sh
sha256sum -c SHA256SUMS
```

`tidemark check cell CELL --release {month}` (extra `reproduction`), in a data root that has the
text, scores one cell again and compares; `cells.jsonl` names them all.

## Cite

Cite the month and the checksum of the database, so that a reader knows which figures were meant:

> tidemark release {month}, warehouse.duckdb SHA-256 {digest}.

`CITATION.cff` has the same for reference managers, and `.zenodo.json` for Zenodo.
"""


_SIMULATED = """**SIMULATED.** A program made up the texts of {sources}.
`simulated` is true in the lines of these sources. View `simulated_sources` of the database names
them.

"""


# Deletes of what a release leaves out: a statement a table.
TRIMMING = Path(__file__).parent / "trimming"
_COUNT_MONTH = Path(__file__).parent / "count_month.sql"
_LIBRARIES = ("duckdb", "numpy", "pyarrow", "tokenizers", "torch", "transformers")


def make_release(settings: Settings, month: Month, output: Path | None = None) -> str:
    """Create a release from the snapshot's rows up to a month; return its URL or path.

    The release also includes all undated sources. The files of the data root are checked first.
    ``output`` is the folder to create; None means ``releases/<month>`` in the data root.

    Raises:
        FutureMonth: the month is not over.
        UsageError: the release exists; there is no snapshot; no row belongs to the month.
        CheckFailed: ``tidemark check --deep`` has a finding.
        DiskFull: no space is left; no partial release remains.
        NewerVersion: a later version wrote the snapshot.
    """
    require_complete(month)
    require_known_databases(settings)
    root = str(output.absolute().parent) if output else settings.home
    store = Store(root, settings.scratch)
    folder = output.name if output else f"{FOLDER}/{month}"
    is_local = settings.is_local or output is not None
    with locked(settings):
        _refuse_existing(store, folder, is_local)
        parent = Path(store.url(folder)).parent if is_local else settings.scratch
        with explain_disk_errors(str(parent)):
            parent.mkdir(parents=True, exist_ok=True)
            for leftover in parent.glob(".tmp-release-*"):  # left by a killed run
                shutil.rmtree(leftover, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=".tmp-release-", dir=parent) as name:
                staged = Path(name) / str(month)
                staged.mkdir()
                _write(staged, settings, month)
                _move(staged, store, folder, is_local)
    return store.url(folder)


def _refuse_existing(store: Store, folder: str, is_local: bool) -> None:
    """Raise an error if the release exists."""
    if store.exists(f"{folder}/{SUMS}") or (is_local and store.exists(folder)):
        raise UsageError(
            f"{store.url(folder)} exists already, and a release never changes; cite it as it is, "
            "or give another folder with --output"
        )


def _move(staged: Path, store: Store, folder: str, is_local: bool) -> None:
    """Move a release to its folder; in an object store, write the checksums last."""
    if is_local:
        for file in staged.iterdir():
            with file.open("rb") as written:
                os.fsync(written.fileno())
        staged.rename(store.url(folder))
        return
    for file in sorted(staged.iterdir(), key=lambda file: (file.name == SUMS, file.name)):
        with store.writing(f"{folder}/{file.name}") as copy:
            shutil.copyfile(file, copy.path)


def _write(folder: Path, settings: Settings, month: Month) -> None:
    """Write all files of a release: snapshot, lists of cells and texts, README, checksums."""
    store = Store(settings.home)
    database = folder / SNAPSHOT
    with local_snapshot(settings) as snapshot:
        shutil.copyfile(snapshot, database)
    _refuse_unsound(database, store)
    _refuse_absent(database, month)
    _trim(database, month)
    with explain_database_errors(f"read {database}"), connect_to_read(database) as connection:
        cells = scored_cells(connection)
        tables = {name: _rows(connection, name) for name in ("models", "sources", "protocols")}
        simulated = [row["source"] for row in _rows(connection, "simulated_sources")]
        scored_with = sorted({row["versions"] for row in _rows(connection, "cell_costs")})
    _write_lines(
        folder / "cells.jsonl",
        (
            _cell_line(store, cell) | {"simulated": cell.partition.source in simulated}
            for cell in cells
        ),
    )
    versions = sorted({(str(c.partition), c.partition_digest, c.partition) for c in cells})
    lines = (
        _partition_line(store, partition, digest) | {"simulated": partition.source in simulated}
        for _, digest, partition in versions
    )
    _write_lines(folder / "partitions.jsonl", lines)
    _write_json(folder / "catalogue.json", tables)
    _write_json(folder / "versions.json", _versions(tables["protocols"], scored_with))
    digest = sha256_of_file(database)
    warning = _SIMULATED.format(sources=", ".join(simulated)) if simulated else ""
    text = _README.format(month=month, digest=digest, cells=len(cells), simulated=warning)
    (folder / "README.md").write_text(text, encoding="utf-8")
    today = dt.datetime.now(dt.UTC).date()
    release = cited(settings, month, digest, is_simulated=bool(simulated))
    (folder / CFF).write_text(citation_cff(release, today), encoding="utf-8")
    (folder / ZENODO).write_text(zenodo_json(release), encoding="utf-8")
    sums = [f"{sha256_of_file(file)}  {file.name}\n" for file in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(sums), encoding="utf-8")


def _refuse_unsound(database: Path, store: Store) -> None:
    """Raise an error if a check of the database finds something."""
    findings = list(check_home(database, store, is_deep=True))
    if findings:
        names = ", ".join(finding.check for finding in findings)
        raise CheckFailed(
            f"not released: {names} found something, first {findings[0].first}; "
            "`tidemark check --deep` explains it"
        )


def _refuse_absent(database: Path, month: Month) -> None:
    """Raise an error if no cell of the month is published."""
    with connect_to_read(database) as connection:
        counted = connection.execute(_COUNT_MONTH.read_text(), {"month": month.first_day})
        [found] = rows_of(counted)
    if not found["num_cells"]:
        first = found["first_month"]
        last = found["last_month"]
        known = f"from {Month.of(first)} to {Month.of(last)}" if first else "undated or nothing"
        raise UsageError(f"no cell of {month} is published (what is, is {known}); score it first")


def _trim(database: Path, month: Month) -> None:
    """Delete rows of later months and of names without other rows; fit the panels again."""
    config: Config = {
        **OFFLINE,
        "storage_compatibility_version": STORAGE_VERSION,
        "enable_external_access": False,
    }
    what = f"trim {database}"
    path = str(database)
    last = (month + 1).first_day - dt.timedelta(days=1)  # half-months and weeks may begin on it
    with explain_database_errors(what), duckdb.connect(path, config=config) as connection:
        with transaction(connection, what):
            compute_views(connection)
            for file in sorted(TRIMMING.glob("*.sql")):
                connection.execute(file.read_text(), {"last": last})
            for table in list_dated_tables():
                connection.execute(f"delete from {table} where month > ?", [last])  # noqa: S608
            estimate(connection)
            materialise(connection)
        connection.execute("checkpoint")


def list_dated_tables() -> list[str]:
    """Return the qualified names of the tables whose rows have a month."""
    return [qualify(table) for table, columns in describe_columns().items() if "month" in columns]


def _rows(connection: duckdb.DuckDBPyConnection, table: str) -> list[Row]:
    return sorted(connection.table(table).to_arrow_table().to_pylist(), key=repr)


def _cell_line(store: Store, cell: Cell) -> dict[str, object]:
    """Return what a release says of a cell, with the digest of its losses."""
    record = read_cell_record(store, cell)
    facts = {name: value for name, value in vars(cell).items() if name != "partition"}
    return {
        **facts,
        "cell": cell.name,
        "source": cell.partition.source,
        "month": str(cell.partition.month) if cell.partition.month else None,
        "losses": cell.path,
        "sha256": store.sha256(cell.path),
        "record": record.model_dump(mode="json") if record else None,
    }


def _partition_line(store: Store, partition: Partition, digest: str) -> dict[str, object]:
    seal = find_version(store, partition, digest)
    if seal is None:
        raise StorageError(f"{partition}: its manifest vanished meanwhile; run the same again")
    return {"path": f"{seal.folder}/{MANIFEST}", "manifest": seal.manifest}


def _versions(protocols: list[Row], scored_with: list[str]) -> dict[str, object]:
    """Return the versions of all that computes figures."""
    return {
        "tidemark": own_version(),
        "python": platform.python_version(),
        "schema": SCHEMA_VERSION,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "protocols": {row["protocol"]: row["hash"] for row in protocols},
        "scored_with": [json.loads(versions) for versions in scored_with],
    }


def _write_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, sort_keys=True, default=str) + "\n")


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    text = json.dumps(content, indent=2, sort_keys=True, default=str)
    path.write_text(text + "\n", encoding="utf-8")
