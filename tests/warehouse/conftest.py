"""What the warehouse's tests share: rows of losses in a few words, and a landed home."""

from __future__ import annotations

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

from core.schemas import LOSSES
from core.settings import Settings
from warehouse import writer
from warehouse.extensions import load_extensions
from warehouse.land import open_warehouse
from warehouse.publish import publish
from warehouse.query import query
from warehouse.schema import list_tables
from warehouse.writer import connected

Rows = list[dict[str, Any]]


USUAL: dict[str, Any] = {
    "model": "org/model",
    "revision": "r1",
    "source": "news",
    "month": dt.date(2024, 1, 1),
    "document_id": "d0",
    "chunk_index": 0,
    "protocol": "default",
    "nll_nats": 10.0,
    "num_tokens": 5,
    "num_chars": 20,
    "num_bytes": 20,
    "reason": None,
}


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the fresh database is that tests copy."""
    return tmp_path_factory.mktemp("template") / "writer.duckdb"


@pytest.fixture(scope="module", autouse=True)
def made_once(template: Path) -> Iterator[None]:
    """Copy one fresh database for every test of this room: making its objects takes a second."""
    create = writer._create

    def copy(path: Path, settings: Settings) -> None:
        if not template.exists():
            create(template, settings)
        shutil.copyfile(template, path)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "_create", copy)
        yield


@pytest.fixture(scope="session")
def losses() -> Callable[..., pa.Table]:
    """Make a table of LOSSES; what a row does not say is the same in all of them."""

    def losses(*rows: dict[str, Any]) -> pa.Table:
        return pa.Table.from_pylist([{**USUAL, **row} for row in rows], schema=LOSSES)

    return losses


@pytest.fixture
def ask(settings: Settings) -> Callable[..., Rows]:
    """Publish what has landed, and query it."""

    def ask(sql: str, *parameters: object) -> Rows:
        publish(settings)
        return query(settings, sql, parameters).to_pylist()

    return ask


@pytest.fixture
def land(settings: Settings, losses: Callable[..., pa.Table]) -> Callable[..., Any]:
    """Land rows as foreign losses."""

    def land(*rows: dict[str, Any], replace: bool = False) -> Any:
        with open_warehouse(settings) as warehouse:
            return warehouse.land_losses(losses(*rows), "rows", replace)

    return land


@pytest.fixture(scope="session")
def dump() -> Callable[[Settings], dict[str, list[tuple[Any, ...]]]]:
    """Return every table of a writer's database, rows sorted."""

    def dump(settings: Settings) -> dict[str, list[tuple[Any, ...]]]:
        with connected(settings) as connection:
            return {
                table: sorted(connection.table(table).fetchall(), key=repr)
                for table in list_tables()
            }

    return dump


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plain DuckDB command line client that analysts have, in an environment of its own."""
    folder = tmp_path_factory.mktemp("client")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "pip", "install", "--quiet", "duckdb-cli==1.5.6"]
    if subprocess.run(install, capture_output=True).returncode != 0:
        pytest.skip("duckdb-cli 1.5.6 cannot be installed here (no package index)")
    return folder / "bin" / "duckdb"


PASSWORD = "s3cret'pass word"


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[int]:
    """Run a server of our own on loopback; yield its port."""
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
    """Make the address of a lake on the server; what is not said is right."""
    return functools.partial(address, server)


@pytest.fixture
def catalogue(server: int, request: pytest.FixtureRequest) -> str:
    """The address of a catalogue of this test's own."""
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
