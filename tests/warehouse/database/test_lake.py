"""One lake, several writers, real PostgreSQL and S3; own environment (`make test-ducklake`)."""

import importlib.util
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("duckdb_extension_ducklake") is None:
    pytest.skip("needs DuckDB's extensions: run `make test-ducklake`", allow_module_level=True)

import traceback
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import s3fs
from moto.server import ThreadedMotoServer

from core.cells.losses import Cell
from core.corpus.partition import Partition, Seal, list_sealed, read_documents, tables_of
from core.corpus.sealing import Ready, seal_partition
from core.errors import UsageError, WarehouseError
from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings, load_settings
from core.storage.store import Store
from tests.warehouse.cells import NOON, RECORD
from warehouse.database import writer
from warehouse.database.lake import connect_lake, load_extensions
from warehouse.database.schema import list_checks, list_tables, list_views, qualify, read_sql
from warehouse.database.statements import without_passwords
from warehouse.database.writer import commit, connected, turns_of
from warehouse.land.losses import open_warehouse
from warehouse.land.text_comparisons import compare_texts, plan_comparisons
from warehouse.read.publish import publish
from warehouse.read.query import query

MODELS = {
    "org/early": Month("2024-01"),
    "org/late": Month("2024-02"),
    "org/none": None,
    "org/shared": Month("2024-01"),
}
# Headline leaves out models with a lossy tokenizer.
WITHOUT_LOSS = RECORD.model_copy(update={"num_lossy_documents": 0})
PARTITIONS = {"books": ("2024-02", "2024-03"), "news": ("2024-01", "2024-02", "2024-03")}
Row = tuple[Any, ...]
SHARED = "org/shared"
DOCUMENTS_EACH = 12
CANARY_RUN = {
    "run_at": NOON, "device": "cpu", "dtype": "float32", "versions": {}, "nll_nats": 1.0,
    "expected_nats": 1.0, "drift": 0.0, "num_tokens": 10,
}  # fmt: skip
# Tables and views that this world fills: comparing empty ones would prove nothing.
FULL = (
    "canary_runs", "cell_costs", "cell_milestones", "cell_replicates", "chunk_losses", "documents",
    "estimated_cutoff", "headline", "monthly_loss", "replicate_monthly_loss", "run_costs",
    "text_comparisons", "text_difference", "tokenizers", "train_test_gap",
)  # fmt: skip


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    s3fs.S3FileSystem(key="test", secret="test", endpoint_url=url).mkdir("bucket")
    yield url
    server.stop()


@pytest.fixture
def bucket(object_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = object_store
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return f"s3://bucket/{tmp_path.name}"


def make_world(home: str, partitions: Mapping[str, Sequence[str]]) -> None:
    store = Store(home)
    for source, months in partitions.items():
        for month in months:
            partition = Partition(source, Month(month))
            rows = (
                {
                    "native_id": f"{source} {month} {number}",
                    "date_kind": "created",
                    "licence": "CC0-1.0",
                    "cluster_id": f"page {number // 2}" if source == "news" else None,
                    "text": f"Document {number} of {source} in {month}. " * (1 + number % 3),
                }
                for number in range(DOCUMENTS_EACH)
            )
            seal_partition(store, partition, Ready(tables_of(rows, partition)))
    for model in MODELS:
        for seal, cell in cells_of(store, model):
            with store.writing(cell.path) as staged:
                pq.write_table(losses_of(store, seal, cell), staged.path)
            store.write_bytes(cell.record_path, WITHOUT_LOSS.to_json())


def cells_of(store: Store, model: str) -> list[tuple[Seal, Cell]]:
    return [
        (seal, Cell(model, "r1", seal.partition, seal.digest, "default", "scoring-1"))
        for seal in list_sealed(store)
    ]


def losses_of(store: Store, seal: Seal, cell: Cell) -> pa.Table:
    month, cutoff = seal.partition.month, MODELS[cell.model]
    assert month is not None
    [documents] = [batch for batch in read_documents(store, seal, columns=["document_id"])]
    rows = [
        {
            "model": cell.model, "revision": cell.revision, "source": seal.partition.source,
            "month": month.first_day, "document_id": name, "chunk_index": chunk,
            "protocol": cell.protocol, "num_tokens": 20, "num_chars": 100, "num_bytes": 100,
            "nll_nats": 60 + sum(f"{cell.model} {name} {chunk}".encode()) % 97 / 10
            - 20 * (cutoff is not None and month <= cutoff),
        }
        for name in documents["document_id"].to_pylist()
        for chunk in range(2)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=LOSSES)


def land_models(settings: Settings, models: Sequence[str]) -> None:
    store = Store(settings.home)
    with open_warehouse(settings) as warehouse:
        warehouse.upsert_sources([{"name": source, "category": "text"} for source in PARTITIONS])
        warehouse.upsert_protocols([{"name": "default", "definition": "{}"}])
        warehouse.add_canary_run(CANARY_RUN)
        for model in models:
            facts = {"kind": "causal_lm", "released": Month("2024-02"), "parameters": 10**9}
            warehouse.upsert_models([{"name": model, "cutoff": MODELS[model], **facts}])
            for seal, cell in cells_of(store, model):
                warehouse.land_documents(seal)
                warehouse.land_cells([cell])
    compare_texts(plan_comparisons(store, None, None), settings)


def start(settings: Settings, *models: str) -> SpawnProcess:
    context = multiprocessing.get_context("spawn")
    worker = context.Process(target=land_models, args=(settings, models))
    worker.start()
    return worker


def is_same(one: object, other: object) -> bool:
    """Compare up to rounding: the order of adding doubles may change last digits."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


def tables_and_views(settings: Settings) -> dict[str, list[Row]]:
    def key(row: Row) -> str:
        return repr([item for item in row if not isinstance(item, float | list)])

    names = [*list_tables(), *(view for view in list_views() if not view.endswith("_at"))]
    with connected(settings) as connection:
        return {
            name: sorted(connection.execute(f"from {qualify(name)}").fetchall(), key=key)
            for name in names
        }


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Let a spawned process import this module."""
    monkeypatch.syspath_prepend(pytestconfig.rootpath)


class Reader:
    def __init__(self, settings: Settings) -> None:
        self.connection = connect_lake(settings, read_only=True)

    def find_halves(self) -> list[object]:
        return [
            row
            for check in list_checks()
            for row in self.connection.execute(read_sql("checks", check)).fetchall()
        ]

    def count_cells(self, model: str) -> int:
        sql = "select count(*) from internal.landed_cells where model = ?"
        [(num_cells,)] = self.connection.execute(sql, [model]).fetchall()
        return int(num_cells)


@pytest.mark.usefixtures("importable")
def test_four_writers_of_whom_one_is_killed(bucket: str, catalogue: str, tmp_path: Path) -> None:
    make_world(bucket, PARTITIONS)
    lake = Settings(home=bucket, work_dir=tmp_path / "lake", warehouse=catalogue)
    with open_warehouse(lake):
        pass  # so that the reader finds one
    reader, num_looks, is_killed = Reader(lake), 0, False
    own = [model for model in MODELS if model != SHARED]
    workers = {model: start(lake, model, SHARED) for model in own}
    workers[SHARED] = start(lake, SHARED)
    victim = workers[own[-1]]
    while any(worker.is_alive() for worker in workers.values()):
        assert reader.find_halves() == []
        num_looks += 1
        if not is_killed and reader.count_cells(own[-1]) > 0:
            os.kill(victim.pid or 0, signal.SIGKILL)
            is_killed = True
        time.sleep(0.3)
    for worker in workers.values():
        worker.join()
    assert num_looks > 5
    assert victim.exitcode == -signal.SIGKILL
    assert [worker.exitcode for worker in workers.values() if worker is not victim] == [0, 0, 0]
    assert 0 < reader.count_cells(own[-1]) < sum(map(len, PARTITIONS.values()))

    land_models(lake, [own[-1]])  # the same command again
    found = assert_as_embedded(lake, tmp_path)
    assert not [name for name in FULL if not found[name]]
    publish(lake)
    for sql in ("from headline", "from train_test_gap_at(date '2024-02-01')"):
        assert query(lake, sql).num_rows > 0


@pytest.mark.usefixtures("importable")
def test_two_writers_of_the_same_cells_in_a_shared_folder(lake: Settings, tmp_path: Path) -> None:
    make_world(lake.home, {"news": PARTITIONS["news"][:2]})
    workers = [start(lake, *MODELS), start(lake, *MODELS)]
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert_as_embedded(lake, tmp_path)


def assert_as_embedded(lake: Settings, tmp_path: Path) -> dict[str, list[Row]]:
    embedded = Settings(home=lake.home, work_dir=tmp_path / "embedded")
    land_models(embedded, list(MODELS))
    expected, found = tables_and_views(embedded), tables_and_views(lake)
    for name in expected:
        assert len(found[name]) == len(expected[name]), name
        pairs = zip(found[name], expected[name], strict=True)
        assert [pair for pair in pairs if not is_same(*pair)] == [], name
    return found


WRONG = {
    "password": ({"password": "hunter2"}, 'authentication failed for user "tidemark"'),
    "port": ({"port": 1}, "Connection refused"),
    "host": ({"host": "nowhere.invalid"}, "could not translate host name"),
    "database": ({"dbname": "absent"}, 'database "absent" does not exist'),
    "option": ({"bogus": 1}, 'invalid connection option "bogus"'),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_without_the_password(
    address_of: Any, tmp_path: Path, what: str
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
