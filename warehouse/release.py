"""Releases: snapshots that are frozen, so that a paper can cite them and a reader check them.

    releases/<YYYY-MM>/warehouse.duckdb    what is published, without later months
    releases/<YYYY-MM>/cells.jsonl         our own cells: losses and their checksums, records
    releases/<YYYY-MM>/partitions.jsonl    the seals of the text that they were scored on: of each
                                           partition the versions, mostly one, that cells name
    releases/<YYYY-MM>/catalogue.json      models, sources and protocols
    releases/<YYYY-MM>/versions.json       of tidemark, of libraries, of protocols
    releases/<YYYY-MM>/README.md, CITATION.cff
    releases/<YYYY-MM>/SHA256SUMS          written last: a release without it does not exist

No text is in it, and no losses but those in the database.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from core.cell_record import read_cell_record
from core.cells import Cell
from core.corpus import MANIFEST, Partition, find_version
from core.errors import CheckFailed, StorageError, UsageError
from core.month import Month, require_complete
from core.settings import Settings
from core.storage import Store, explain_disk_errors, sha256_of_file
from warehouse.check_root import check_home
from warehouse.database_errors import explain_database_errors
from warehouse.landed import own_cells, read_rows
from warehouse.publish import SNAPSHOT
from warehouse.query import local_snapshot
from warehouse.reader import connect_to_read
from warehouse.release_texts import citation, readme
from warehouse.schema import SCHEMA_VERSION, list_checks, read_sql
from warehouse.writer import STORAGE_VERSION, locked, transaction

FOLDER = "releases"
SUMS = "SHA256SUMS"
_LIBRARIES = ("duckdb", "numpy", "pyarrow", "tokenizers", "torch", "transformers")


def make_release(settings: Settings, month: Month, output: Path | None = None) -> str:
    """Freeze what is published, up to a month, and return the release's address.

    Undated corpora are in it, whenever they were scored.

    Args:
        settings: the data root; its snapshot and all that it is made of are checked first.
        month: the last one of the release.
        output: a folder that does not exist yet; None: ``releases/<month>`` of the data root.

    Raises:
        FutureMonth: the month is not over.
        UsageError: the release exists already, nothing is published, or nothing of this month is.
        CheckFailed: ``tidemark check --deep`` finds something.
        DiskFull: no space; nothing is left behind.
    """
    require_complete(month)
    root = str(output.absolute().parent) if output else settings.home
    store = Store(root, settings.scratch)
    folder = output.name if output else f"{FOLDER}/{month}"
    is_local = settings.is_local or output is not None
    with locked(settings):
        _refuse_existing(store, folder, is_local)
        parent = Path(store.url(folder)).parent if is_local else settings.scratch
        with explain_disk_errors(str(parent)):
            parent.mkdir(parents=True, exist_ok=True)
            for leftover in parent.glob(".tmp-release-*"):  # of a release that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=".tmp-release-", dir=parent) as name:
                staged = Path(name) / str(month)
                staged.mkdir()
                _write(staged, settings, month)
                _move(staged, store, folder, is_local)
    return store.url(folder)


def _refuse_existing(store: Store, folder: str, is_local: bool) -> None:
    if store.exists(f"{folder}/{SUMS}") or (is_local and store.exists(folder)):
        raise UsageError(
            f"{store.url(folder)} exists already, and a release never changes; cite it as it is, "
            "or give another folder with --output"
        )


def _move(staged: Path, store: Store, folder: str, is_local: bool) -> None:
    """Put a release in its place: at once, or in an object store with the checksums last."""
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
    """Write all files of a release into an empty folder."""
    store = Store(settings.home)
    database = folder / SNAPSHOT
    with local_snapshot(settings) as snapshot:
        shutil.copyfile(snapshot, database)
    _refuse_unsound(database, store)
    _refuse_absent(database, month)
    _trim(database, month)
    with explain_database_errors(f"read {database}"), connect_to_read(database) as connection:
        cells = own_cells(connection)
        tables = {name: _rows(connection, name) for name in ("models", "sources", "protocols")}
        scored_with = sorted({row["versions"] for row in _rows(connection, "cell_costs")})
    _write_lines(folder / "cells.jsonl", (_cell_line(store, cell) for cell in cells))
    versions = sorted({(str(c.partition), c.partition_digest, c.partition) for c in cells})
    lines = (_partition_line(store, partition, digest) for _, digest, partition in versions)
    _write_lines(folder / "partitions.jsonl", lines)
    _write_json(folder / "catalogue.json", tables)
    _write_json(folder / "versions.json", _versions(tables["protocols"], scored_with))
    digest = sha256_of_file(database)
    (folder / "README.md").write_text(readme(month, digest, len(cells)), encoding="utf-8")
    today = dt.datetime.now(dt.UTC).date()
    text = citation(month, digest, today, settings.contact)
    (folder / "CITATION.cff").write_text(text, encoding="utf-8")
    sums = [f"{sha256_of_file(file)}  {file.name}\n" for file in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(sums), encoding="utf-8")


def _refuse_unsound(database: Path, store: Store) -> None:
    findings = list(check_home(database, store, is_deep=True))
    if findings:
        names = ", ".join(finding.check for finding in findings)
        raise CheckFailed(
            f"not released: {names} found something, first {findings[0].first}; "
            "`tidemark check --deep` explains it"
        )


def _refuse_absent(database: Path, month: Month) -> None:
    with connect_to_read(database) as connection:
        [found] = read_rows(connection, "count_month", {"month": month.first_day})
    if not found["num_cells"]:
        first, last = found["first_month"], found["last_month"]
        known = f"from {Month.of(first)} to {Month.of(last)}" if first else "undated or nothing"
        raise UsageError(f"no cell of {month} is published (what is, is {known}); score it first")


def _trim(database: Path, month: Month) -> None:
    """Delete what is of later months, and the dimensions' rows that nothing needs any more."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE_VERSION,
        "enable_external_access": False,
    }
    with explain_database_errors(f"trim {database}"):
        connection = duckdb.connect(str(database), config=config)
        try:
            with transaction(connection, f"trim {database}"):
                for table in list_checks("trimming"):
                    connection.execute(read_sql("trimming", table), {"last": month.first_day})
            connection.execute("checkpoint")
        finally:
            connection.close()


def _rows(connection: duckdb.DuckDBPyConnection, table: str) -> list[dict[str, Any]]:
    return sorted(connection.table(table).to_arrow_table().to_pylist(), key=repr)


def _cell_line(store: Store, cell: Cell) -> dict[str, object]:
    record = read_cell_record(store, cell)
    return {
        "cell": cell.name,
        "model": cell.model,
        "revision": cell.revision,
        "source": cell.partition.source,
        "month": str(cell.partition.month) if cell.partition.month else None,
        "protocol": cell.protocol,
        "partition_digest": cell.partition_digest,
        "partition_version": cell.partition_version,
        "scoring": cell.scoring,
        "losses": cell.path,
        "sha256": store.sha256(cell.path),
        "record": record.model_dump(mode="json") if record else None,
    }


def _partition_line(store: Store, partition: Partition, digest: str) -> dict[str, object]:
    seal = find_version(store, partition, digest)
    if seal is None:
        raise StorageError(f"{partition}: its manifest vanished meanwhile; run the same again")
    return {"path": f"{seal.folder}/{MANIFEST}", "manifest": seal.manifest}


def _versions(protocols: list[dict[str, Any]], scored_with: list[str]) -> dict[str, object]:
    return {
        "tidemark": version("tidemark"),
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


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, sort_keys=True, default=str)
    path.write_text(text + "\n", encoding="utf-8")


@contextlib.contextmanager
def release_database(settings: Settings, release: str) -> Iterator[Path]:
    """Yield the database of a release, its checksum verified.

    Args:
        settings: the data root.
        release: a month of the data root, or a release's folder elsewhere.

    Raises:
        UsageError: there is no such release.
        StorageError: the database is not what was released.
    """
    is_folder = Path(release).is_dir()
    store = Store(release if is_folder else settings.home)
    prefix = "" if is_folder else f"{FOLDER}/{Month(release)}/"
    if not store.exists(prefix + SUMS):
        known = [path.split("/")[1] for path in Store(settings.home).list(f"{FOLDER}/*/{SUMS}")]
        raise UsageError(
            f"there is no release at {store.url(prefix + SUMS)} "
            f"(released here: {', '.join(known) or 'nothing'})"
        )
    lines = store.read_bytes(prefix + SUMS).decode(errors="replace").splitlines()
    expected = [line.split()[0] for line in lines if line.endswith(f"  {SNAPSHOT}")]
    with tempfile.TemporaryDirectory(prefix="tidemark-release-") as name:
        path = Path(name) / SNAPSHOT
        with store.open(prefix + SNAPSHOT) as remote, path.open("wb") as local:
            shutil.copyfileobj(remote, local)
        if [sha256_of_file(path)] != expected:
            raise StorageError(
                f"{store.url(prefix + SNAPSHOT)} is not what {SUMS} beside it says; "
                "get the release again"
            )
        yield path
