import contextlib
import datetime as dt
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from core.schemas.tables import LOSSES
from core.settings import Settings
from tests.losses import loss_row
from tests.warehouse.land.lander import lander
from warehouse.database.lake import load_extensions
from warehouse.database.schema import list_tables, qualify
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

Rows = list[dict[str, Any]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that publish: that takes more than a second."""
    for item in items:
        if "tests/warehouse" in item.path.as_posix() and "ask" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


USUAL = loss_row("org/model", "news", dt.date(2024, 1, 1), "d0", reason=None)


@pytest.fixture(scope="session")
def losses() -> Callable[..., pa.Table]:
    """Make a table of LOSSES; ``USUAL`` fills the missing columns of a row."""
    return lambda *rows: pa.Table.from_pylist([{**USUAL, **row} for row in rows], schema=LOSSES)


@pytest.fixture
def ask(settings: Settings) -> Callable[..., Rows]:
    def ask(sql: str, *parameters: object) -> Rows:
        publish(settings)
        return query(settings, sql, parameters).to_pylist()

    return ask


@pytest.fixture
def peek(settings: Settings) -> Callable[[str], Rows]:
    def peek(text: str) -> Rows:
        with connected(settings) as connection:
            return connection.sql(text).to_arrow_table().to_pylist()

    return peek


@pytest.fixture
def land(settings: Settings, losses: Any) -> Callable[..., Any]:
    def land(*rows: dict[str, Any], replace: bool = False) -> Any:
        with open_warehouse(settings) as warehouse:
            return warehouse.land_losses(losses(*rows), "rows", replace)

    return land


@pytest.fixture
def give(settings: Settings, tmp_path: Path) -> Callable[..., int]:
    return lander(settings, tmp_path)


@pytest.fixture(scope="session")
def dump() -> Callable[[Settings], dict[str, list[tuple[Any, ...]]]]:
    def dump(settings: Settings) -> dict[str, list[tuple[Any, ...]]]:
        with connected(settings) as connection:
            return {
                table: sorted(connection.table(qualify(table)).fetchall(), key=repr)
                for table in list_tables()
            }

    return dump


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "pip", "install", "--quiet", "duckdb-cli==1.5.6"]
    if subprocess.run(install, capture_output=True).returncode != 0:
        pytest.skip("duckdb-cli 1.5.6 cannot be installed here (no package index)")
    return folder / "bin" / "duckdb"


PASSWORD = "s3cret'pass word"


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[int]:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        pytest.skip("needs PostgreSQL: run `make test-ducklake`")
    as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if as_user:
        shutil.chown(folder, "postgres")  # it refuses to run as root
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, f"{programs[-1]}/{program}", "-D", f"{folder}/data", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)

    access = ("-A", "scram-sha-256", "-U", "tidemark", "--pwfile", str(secret))
    run("initdb", "-E", "UTF8", "--no-sync", *access)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    run("pg_ctl", "-w", "-l", f"{folder}/log", "-o", options, "start")
    try:
        yield port
    finally:
        run("pg_ctl", "-w", "-m", "immediate", "stop")


@pytest.fixture(scope="session")
def server() -> Iterator[int]:
    with tempfile.TemporaryDirectory(prefix="tidemark-postgresql-") as folder:
        Path(folder).chmod(0o755)
        with postgresql(Path(folder)) as port:
            yield port


def address(port: int, /, **changes: object) -> str:
    parts = {"host": "127.0.0.1", "port": port, "user": "tidemark", "dbname": "tidemark"}
    parts |= {"password": "'" + PASSWORD.replace("'", r"\'") + "'", **changes}
    return "ducklake:postgres:" + " ".join(f"{name}={value}" for name, value in parts.items())


@pytest.fixture
def address_of(server: int) -> Callable[..., str]:
    return functools.partial(address, server)


@pytest.fixture
def catalogue(server: int, request: pytest.FixtureRequest) -> str:
    name = f"test_{abs(hash(request.node.name))}"
    connection = duckdb.connect()
    load_extensions(connection, "postgres_scanner")
    target = address(server, dbname="postgres").removeprefix("ducklake:postgres:")
    connection.execute("attach '{}' as server (type postgres)".format(target.replace("'", "''")))
    connection.execute(
        f"call postgres_execute('server', 'create database {name}', use_transaction=false)"
    )
    connection.close()
    return address(server, dbname=name)


@pytest.fixture
def lake(catalogue: str, tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"), warehouse=catalogue)
