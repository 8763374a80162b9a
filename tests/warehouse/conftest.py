"""What the warehouse's tests share: rows of losses in a few words, and a landed home."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.schemas import LOSSES
from core.settings import Settings
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
