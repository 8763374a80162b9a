from pathlib import Path

import pytest

from core.errors import StorageError
from core.settings import Settings
from warehouse.database.writer import connected, locked, writer_path


def test_what_is_in_the_way_of_the_first_file_is_named(settings: Settings) -> None:
    new = Path(f"{writer_path(settings)}.new")
    new.mkdir(parents=True)
    with (
        locked(settings),
        pytest.raises(StorageError, match=r"cannot write .*writer\.duckdb\.new"),
        connected(settings),
    ):
        pytest.fail("there is no database")
    new.rmdir()
    with locked(settings), connected(settings) as connection:
        assert connection.execute("select count(*) from chunk_losses").fetchall() == [(0,)]
