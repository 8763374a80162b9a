"""A lake that cannot be reached, and writers that meet: what is said, and what is done.

Runs in an environment of its own (`make test-ducklake`), on a real PostgreSQL.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

if importlib.util.find_spec("duckdb_extension_ducklake") is None:
    pytest.skip("needs DuckDB's extensions: run `make test-ducklake`", allow_module_level=True)

from core.errors import UsageError, WarehouseError
from core.settings import Settings, load_settings
from warehouse import writer
from warehouse.database_errors import without_passwords
from warehouse.extensions import load_extensions
from warehouse.land import open_warehouse
from warehouse.publish import publish
from warehouse.writer import commit, connected, turns_of

WRONG = {
    "password": ({"password": "hunter2"}, 'authentication failed for user "tidemark"'),
    "port": ({"port": 1}, "Connection refused"),
    "host": ({"host": "nowhere.invalid"}, "could not translate host name"),
    "database": ({"dbname": "absent"}, 'database "absent" does not exist'),
    "option": ({"bogus": 1}, 'invalid connection option "bogus"'),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_without_the_password(
    address_of: Callable[..., str], tmp_path: Path, what: str
) -> None:
    changes, message = WRONG[what]
    settings = Settings(home=str(tmp_path), warehouse=address_of(**changes))
    with pytest.raises(WarehouseError, match=message) as caught, open_warehouse(settings):
        pass
    with pytest.raises(WarehouseError, match=message):
        publish(settings)
    shown = "".join(traceback.format_exception(caught.value)) + repr(settings)
    assert not [word for word in ("hunter2", "s3cret", "pass word") if word in shown]


def test_an_address_with_a_password_is_not_shown(server: int, tmp_path: Path) -> None:
    url = f"ducklake:postgres:postgresql://tidemark:p@ss/w:rd@127.0.0.1:{server}/tidemark"
    settings = Settings(home=str(tmp_path), warehouse=url)
    with pytest.raises(WarehouseError) as caught, open_warehouse(settings):
        pass
    assert "ss/w" not in "".join(traceback.format_exception(caught.value))
    secret = "-".join(["hunter", "2"])  # a traceback shows this file's own lines
    with pytest.raises(UsageError, match="TIDEMARK_WAREHOUSE: .*ducklake:postgres:") as refused:
        load_settings(warehouse=f"mysql://me:{secret}@host/db")
    assert secret not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("host=h password=abc dbname=d", "host=h password=*** dbname=d"),
        (r"password = 'a b\'c' user=u", "password = *** user=u"),
        ("at postgresql://me:a@b/c@host:5/db: no", "at postgresql://me:***@host:5/db: no"),
        ("sslpassword=abc&user=u", "sslpassword=***&user=u"),
        ("postgresql://host/db: refused @ noon", "postgresql://host/db: refused @ noon"),
        ('password authentication failed for user "u"',) * 2,
    ],
)
def test_passwords_are_taken_out(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


def test_a_catalogue_whose_files_are_elsewhere(lake: Settings, tmp_path: Path) -> None:
    with open_warehouse(lake):
        pass
    moved = lake.model_copy(update={"home": str(tmp_path / "moved")})
    with pytest.raises(WarehouseError, match="does not match existing data path"):
        open_warehouse(moved).__enter__()


def test_a_root_that_is_no_folder_and_not_on_s3(lake: Settings) -> None:
    elsewhere = lake.model_copy(update={"home": "memory://root"})
    with pytest.raises(UsageError, match="a folder or s3://"):
        open_warehouse(elsewhere).__enter__()


def test_an_extension_that_is_missing() -> None:
    with pytest.raises(WarehouseError, match=r"(?s)extension absent_one.*docs/operate\.md"):
        load_extensions(duckdb.connect(), "absent_one")


def test_who_meets_another_writer_tries_again(
    lake: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []
    with connected(lake) as one, connected(lake) as other:
        one.execute("insert into sources (source) select 'old ' || n from range(9) as r (n)")

        def work(num_met: int) -> None:
            one.execute("insert into sources (source) values ('new')")
            if len(attempts) < num_met:
                other.execute("delete from sources where source = ?", [f"old {len(attempts)}"])
            attempts.append(1)

        commit(one, "land", lambda: work(num_met=2))
        assert len(attempts) == 3
        monkeypatch.setattr(writer, "MAX_ATTEMPTS", 2)
        with pytest.raises(WarehouseError, match="(?s)cannot land: .*conflict"):
            commit(one, "land", lambda: work(num_met=9))
        assert len(attempts) == 5
        sql = "select count(*) from sources where source = 'new'"
        assert other.execute(sql).fetchall() == [(1,)]


@pytest.mark.parametrize("clash", [(["a"], []), (["everything"], []), (["b"], ["a"])])
def test_turns(lake: Settings, clash: tuple[list[str], list[str]]) -> None:
    with turns_of(lake) as one, turns_of(lake) as other, ThreadPoolExecutor(1) as pool:

        def wait(alone: list[str], shared: list[str]) -> None:
            with other.take(alone, shared):
                pass

        with one.take(["a"], ["everything"]):
            pool.submit(wait, ["b"], ["everything"]).result(timeout=20)
            waiting = pool.submit(wait, *clash)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.5)
        waiting.result(timeout=20)
