import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from filelock import FileLock

from core.errors import DamagedDatabase, NewerVersion, WarehouseError
from core.settings import Settings
from warehouse.database.faults import explained_faults, find_fault
from warehouse.database.repair import find_writer_fault

HEADER_BYTES = 4096
MULTIPLIER = 0xBF58476D1CE4E5B9
BITS = 2**64 - 1


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Make a database with a journal of two transactions, as a killed process leaves it."""
    path = tmp_path / "writer.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table numbers as from range(1000)")
        connection.execute("checkpoint")
        connection.execute("pragma disable_checkpoint_on_shutdown")
        connection.execute("insert into numbers from range(2000)")
        connection.execute("insert into numbers from range(2000)")
    assert journal_of(path).stat().st_size > 1000
    return path


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def overwrite(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff\x13" * 20)


def become_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def of_a_later_duckdb(path: Path) -> None:
    """Write another number of the format, and the checksum of the header (DuckDB's own)."""
    raw = bytearray(path.read_bytes())
    raw[12:20] = struct.pack("<Q", 100_000)
    total = 5381
    for (word,) in struct.iter_unpack("<Q", raw[8:HEADER_BYTES]):
        total ^= word * MULTIPLIER & BITS
    raw[:8] = struct.pack("<Q", total)
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("harm", "kind", "says"),
    [
        (lambda path: overwrite(journal_of(path), 500), "damaged", "Corrupt WAL file"),
        (lambda path: overwrite(path, HEADER_BYTES * 3 + 99), "damaged", "Corrupt database file"),
        (lambda path: path.write_bytes(b"PAR1"), "damaged", "is no database of DuckDB"),
        (lambda path: path.write_bytes(b""), "damaged", "is empty"),
        (become_a_pipe, "damaged", "is no regular file"),
        (lambda path: path.unlink(), "missing", "is missing"),
        (of_a_later_duckdb, "newer", "was made by a newer DuckDB than"),
    ],
)
def test_the_kind_of_a_fault_is_found(
    database: Path, harm: Callable[[Path], object], kind: str, says: str
) -> None:
    assert find_fault(database) is None
    harm(database)
    fault = find_fault(database)
    assert fault is not None
    assert fault.kind == kind
    assert says in fault.reason


def test_a_file_of_another_user_is_not_called_damaged(database: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file that it may not read as another user")
    open_folder = Path("/tmp") / f"tidemark-test-{os.getpid()}"
    open_folder.mkdir()
    try:
        path = Path(shutil.copy(database, open_folder / "writer.duckdb"))
        path.chmod(0o600)
        os.seteuid(65534)
        try:
            fault = find_fault(path)
        finally:
            os.seteuid(0)
    finally:
        shutil.rmtree(open_folder)
    assert fault is not None
    assert fault.kind == "forbidden"
    assert "may not be opened by this user" in fault.reason


def test_a_database_that_is_being_written_is_not_read(settings: Settings) -> None:
    settings.scratch.mkdir(parents=True)
    path = settings.scratch / "writer.duckdb"
    path.write_bytes(b"half a da")
    with FileLock(f"{path}.lock"):
        busy = find_writer_fault(settings)
    assert busy is not None
    assert busy.kind == "busy"
    fault = find_writer_fault(settings)
    assert fault is not None
    assert fault.kind == "damaged"


def test_only_errors_of_the_file_are_explained(database: Path) -> None:
    with (
        pytest.raises(WarehouseError, match="^a rule of ours$"),
        explained_faults(database, lambda _: "do this"),
    ):
        raise WarehouseError("a rule of ours")
    journal_of(database).unlink()
    of_a_later_duckdb(database)
    with (
        pytest.raises(NewerVersion, match=r"writer.duckdb was made by a newer DuckDB .*do this"),
        explained_faults(database, lambda _: "do this"),
    ):
        duckdb.connect(str(database))
    database.write_bytes(b"")
    with (
        pytest.raises(DamagedDatabase, match=r"^the snapshot is empty\. do this$"),
        explained_faults(database, lambda _: "do this", "the snapshot"),
    ):
        duckdb.connect(str(database))
