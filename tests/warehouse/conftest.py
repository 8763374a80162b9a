import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.schemas.tables import LOSSES
from core.settings import Settings
from tests.losses import loss_row
from tests.warehouse.relations import relations_of
from warehouse.database.schema import ESTIMATES, list_tables, qualify
from warehouse.database.writer import connected
from warehouse.estimates.estimate import estimate
from warehouse.land.losses import open_warehouse
from warehouse.read.check import QUICK, run_checks
from warehouse.read.query import run_statement

Rows = list[dict[str, Any]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that publish: that takes more than a second."""
    for item in items:
        if "tests/warehouse" in item.path.as_posix() and "ask" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


USUAL = ("org/model", "news", dt.date(2024, 1, 1), "d0")


@pytest.fixture(scope="session")
def losses() -> Callable[..., pa.Table]:
    """Make a table of LOSSES; ``loss_row`` fills the missing columns of a row."""

    def losses(*rows: dict[str, Any]) -> pa.Table:
        filled = [loss_row(*USUAL, **{"reason": None, **row}) for row in rows]
        return pa.Table.from_pylist(filled, schema=LOSSES)

    return losses


@pytest.fixture
def kept_open(settings: Settings) -> Iterator[None]:
    """Keep the database open: to open it again takes no time. Not for tests with processes."""
    with connected(settings) as connection:
        # Nobody opens the file again.
        connection.execute("pragma disable_checkpoint_on_shutdown")
        yield


@pytest.fixture
def ask(settings: Settings) -> Callable[..., Rows]:
    def ask(sql: str, *parameters: object) -> Rows:
        """Query the views as of a snapshot; to publish one takes five times as long."""
        with connected(settings) as connection:
            connection.begin()
            if relations_of(sql) & set(ESTIMATES):
                estimate(connection)
            findings = list(run_checks(connection, QUICK))
            assert not findings, f"the rows could not be published: {findings}"
            rows = run_statement(connection, sql, parameters).read_all().to_pylist()
            connection.rollback()  # the writer's database has no estimates
        return rows

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
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
    if subprocess.run([*install, "duckdb-cli==1.5.6"], capture_output=True).returncode != 0:
        pytest.skip("duckdb-cli 1.5.6 cannot be installed here (no package index)")
    return folder / "bin" / "duckdb"
