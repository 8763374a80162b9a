import re
from pathlib import Path

import duckdb
import pytest

from core.errors import WarehouseError
from warehouse.database.lake import load_extensions


def test_a_missing_extension_is_not_fetched_from_its_repository(tmp_path: Path) -> None:
    home, repository = tmp_path / "home", tmp_path / "repository"
    home.mkdir()
    config = {"autoinstall_extension_repository": str(repository), "home_directory": str(home)}
    with (
        duckdb.connect(config=config) as connection,
        pytest.raises(WarehouseError, match=r"(?s)not installed.*docs/operate\.md") as refusal,
    ):
        load_extensions(connection, "postgres_scanner")
    assert str(repository) not in str(refusal.value)
    assert not list(home.iterdir())


def test_every_connection_is_offline() -> None:
    root = Path(__file__).parents[3]
    calls = [
        f"{file.name}: {call}"
        for room in ("warehouse", "reports", "instruments")
        for file in (root / room).rglob("*.py")
        for call in re.findall(r"(?<!`)duckdb\.connect\((.*)", file.read_text())
        if "OFFLINE" not in file.read_text() or "config=" not in call
    ]
    assert calls == []
