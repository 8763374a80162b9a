import contextlib
import importlib.util
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from core.errors import UsageError, WarehouseError
from core.settings import Settings
from extras.lake import client
from extras.lake.client import key_statement, load_statements, quoted, run_script, without_passwords
from extras.lake.copying import Snapshot
from extras.lake.ducklake import PUBLICATION, Lake, _copy_statements, parse_lake
from extras.lake.tests.copies import copy_snapshot
from extras.lake.tests.servers import PASSWORD, connection_string, postgresql
from tests.tiers import needs_extra

Publish = Callable[..., None]
needs_extensions = pytest.mark.skipif(
    importlib.util.find_spec("duckdb_extension_ducklake") is None,
    reason="needs DuckDB's extensions: run `make lake`",
)


@pytest.fixture
def target(tmp_path: Path) -> str:
    return f"ducklake:{tmp_path}/lake/catalogue data_path={tmp_path}/lake/rows"


def ask(target: str, *statements: str) -> list[dict[str, Any]]:
    """Read a lake as its readers do."""
    address = target.partition(" data_path=")[0]
    opening = [
        *load_statements("ducklake", "postgres_scanner", "httpfs"),
        key_statement(),
        f"attach {quoted(address)} as lake (read_only)",
    ]
    return run_script([*opening, *statements], "read the lake")


def first_model(target: str) -> object:
    [row] = ask(target, "select model from lake.main.models order by day limit 1")
    return row["model"]


@needs_extensions
def test_tables_and_public_views_are_copied(
    settings: Settings, publish_numbers: Publish, target: str
) -> None:
    publish_numbers(0)
    assert copy_snapshot(settings, target)
    listed = ask(
        target,
        "select table_schema || '.' || table_name as name from information_schema.tables "
        "where table_catalog = 'lake' order by all",
    )
    assert [row["name"] for row in listed] == [
        "main.mean_loss", "main.models", f"main.{PUBLICATION}", "papers.table_1",
    ]  # fmt: skip
    snapshot = f"attach {quoted(settings.home + '/warehouse.duckdb')} as snapshot (read_only)"
    for name in ("main.models", "main.mean_loss", "papers.table_1"):
        sql = "select count(*) as differing from (from lake.{0} except all from snapshot.{0})"
        assert ask(target, snapshot, "use snapshot", sql.format(name)) == [{"differing": 0}]
        sql = "select count(*) as differing from (from snapshot.{0} except all from lake.{0})"
        assert ask(target, snapshot, "use snapshot", sql.format(name)) == [{"differing": 0}]


@needs_extensions
def test_a_second_copy_changes_nothing_and_a_later_one_replaces_all(
    settings: Settings, publish_numbers: Publish, target: str
) -> None:
    publish_numbers(0, with_extra=True)
    copy_snapshot(settings, target)
    versions = "select max(snapshot_id) as latest from ducklake_snapshots('lake')"
    before = ask(target, versions)
    assert not copy_snapshot(settings, target)
    assert ask(target, versions) == before
    publish_numbers(1)
    assert copy_snapshot(settings, target)
    assert first_model(target) == "m1"
    with pytest.raises(WarehouseError, match="extra does not exist"):
        ask(target, "from lake.main.extra")
    former = f"from lake.main.models at (version => {before[0]['latest']}) order by day limit 1"
    assert ask(target, former)[0]["model"] == "m0"


@needs_extensions
def test_a_failing_view_leaves_the_former_copy(
    settings: Settings, publish_numbers: Publish, target: str
) -> None:
    publish_numbers(0)
    copy_snapshot(settings, target)
    publish_numbers(1)
    with duckdb.connect(f"{settings.home}/warehouse.duckdb") as snapshot:
        snapshot.execute("create view wrong as select error('no') from models")
    with pytest.raises(WarehouseError, match="cannot write the lake of .*catalogue: .*no"):
        copy_snapshot(settings, target)
    assert first_model(target) == "m0"
    publish_numbers(2)
    copy_snapshot(settings, target)
    assert first_model(target) == "m2"


@needs_extensions
def test_a_killed_copy_leaves_the_former_and_the_next_one_is_whole(
    settings: Settings, publish_numbers: Publish, target: str
) -> None:
    publish_numbers(0)
    copy_snapshot(settings, target)
    publish_numbers(1)
    address, _, rows = target.partition(" data_path=")
    frozen = Snapshot(Path(settings.home) / "warehouse.duckdb", "d" * 64, settings.home, Path())
    relations = [("main", "models"), ("main", "mean_loss")]
    *but_the_commit, _ = _copy_statements(frozen, relations, [])
    lines = [
        *load_statements("ducklake"),
        f"attach {quoted(address)} as lake (data_path {quoted(rows + '/')})",
        *but_the_commit,
        "select 'written' as it",
    ]
    command = [str(client._find_client()), "-batch", "-json", "-init", "/dev/null"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{line};\n" for line in lines).encode())
        process.stdin.flush()
        while b"written" not in process.stdout.readline():
            assert process.poll() is None
        process.kill()
    assert first_model(target) == "m0"
    assert copy_snapshot(settings, target)
    assert first_model(target) == "m1"


@pytest.mark.slow
@needs_extra("object_store")
@needs_extensions
@pytest.mark.parametrize("kind", ["postgresql", "file"])
def test_rows_on_s3_and_a_catalogue_on_a_server(
    settings: Settings, publish_numbers: Publish, bucket: str, tmp_path: Path, kind: str
) -> None:
    with contextlib.ExitStack() as stack:
        address = f"ducklake:{tmp_path}/catalogue"
        if kind == "postgresql":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tidemark-lake-"))
            Path(folder).chmod(0o755)
            port = stack.enter_context(postgresql(Path(folder)))
            address = f"ducklake:{connection_string(port)}"
        target = f"{address} data_path={bucket}/lake"
        publish_numbers(0)
        if kind == "postgresql":
            with pytest.raises(UsageError, match="a new lake in PostgreSQL needs a folder"):
                copy_snapshot(settings, address)
        assert copy_snapshot(settings, target)
        assert not copy_snapshot(settings, address)  # the catalogue names the folder
        publish_numbers(1)
        assert copy_snapshot(settings, address)
        assert first_model(target) == "m1"
        assert copy_snapshot(settings, f"parquet:{bucket}/parquet")
        assert not copy_snapshot(settings, f"parquet:{bucket}/parquet")
        with pytest.raises(WarehouseError, match="does not match existing data path"):
            publish_numbers(2)
            copy_snapshot(settings, f"{address} data_path={bucket}/other")
        wrong = address.replace(PASSWORD[:6], "hunter")
        if kind == "postgresql":
            with pytest.raises(WarehouseError, match="authentication failed") as caught:
                copy_snapshot(settings, wrong)
            assert "hunter" not in str(caught.value)


@needs_extensions
def test_a_database_that_is_no_lake_is_not_changed(
    settings: Settings, publish_numbers: Publish
) -> None:
    publish_numbers(0)
    snapshot = Path(settings.home) / "warehouse.duckdb"
    before = snapshot.read_bytes()
    with pytest.raises(UsageError, match="and is no lake"):
        copy_snapshot(settings, f"ducklake:{snapshot}")
    assert snapshot.read_bytes() == before


@needs_extensions
def test_a_lake_of_somebody_else_is_not_changed(
    settings: Settings, publish_numbers: Publish, target: str, tmp_path: Path
) -> None:
    publish_numbers(0)
    (tmp_path / "lake").mkdir()
    address, _, rows = target.partition(" data_path=")
    made = [
        *load_statements("ducklake"),
        f"attach {quoted(address)} as lake (data_path {quoted(rows + '/')})",
        "create table lake.main.theirs as select 1 as n",
    ]
    run_script(made, "make a lake")
    with pytest.raises(UsageError, match=r"no publication wrote, such as main\.theirs"):
        copy_snapshot(settings, target)
    assert ask(target, "from lake.main.theirs") == [{"n": 1}]


@needs_extensions
def test_the_copy_of_another_data_root_is_refused(
    settings: Settings, publish_numbers: Publish, target: str
) -> None:
    publish_numbers(0)
    copy_snapshot(settings, target)
    other = Path(settings.home).with_name("other")
    Path(settings.home).rename(other)
    with pytest.raises(UsageError, match="is a copy of the data root .*home, not of .*other"):
        copy_snapshot(Settings(home=str(other)), target)


@needs_extensions
def test_an_extension_that_is_missing_is_named_with_the_remedy() -> None:
    with pytest.raises(WarehouseError, match="absent_one"):
        run_script(list(load_statements("absent_one")), "open the lake")


def test_without_a_client_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.shutil, "which", lambda *_, **__: None)
    with pytest.raises(UsageError, match=r"extras/lake/requirements\.txt"):
        run_script([], "open the lake")


def test_addresses() -> None:
    assert parse_lake("/a/b c.lake data_path=/rows of it") == Lake("/a/b c.lake", "/rows of it/")
    found = parse_lake("postgres:host=h dbname=d data_path=s3://bucket/lake")
    assert found == Lake("postgres:host=h dbname=d", "s3://bucket/lake")
    with pytest.raises(UsageError, match="got ducklake:mysql:…"):
        parse_lake("mysql:host=h")


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


def test_a_script_is_not_shown_to_other_users(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def run(command: list[str], **_: Any) -> Any:
        seen.append(command)
        return subprocess.CompletedProcess(command, 0, stdout="", stderr="")

    monkeypatch.setattr(client.subprocess, "run", run)
    run_script(["select 's3cret'"], "test")
    assert not [word for command in seen for word in command if "s3cret" in word]
