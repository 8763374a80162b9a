"""One lake, several writers: a real PostgreSQL and a real S3-protocol server on loopback.

Runs in an environment of its own (`make test-ducklake`): the extensions are of another DuckDB.
"""

from __future__ import annotations

import datetime as dt
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

import pyarrow as pa
import pyarrow.parquet as pq
import s3fs
from moto.server import ThreadedMotoServer

from core.cell_record import CellRecord, Milestone, TokenizerFacts
from core.cells import Cell
from core.corpus import Partition, Seal, list_sealed, read_documents, tables_of
from core.month import Month
from core.schemas import LOSSES
from core.sealing import seal_partition
from core.settings import Settings
from core.storage import Store
from warehouse.lake import connect_lake
from warehouse.land import open_warehouse
from warehouse.publish import publish
from warehouse.query import query
from warehouse.schema import list_checks, list_tables, list_views, read_sql
from warehouse.text_comparisons import compare_texts, plan_comparisons
from warehouse.writer import connected

MODELS = {
    "org/early": Month("2024-01"),
    "org/late": Month("2024-02"),
    "org/none": None,
    "org/shared": Month("2024-01"),
}
PARTITIONS = {"books": ("2024-02", "2024-03"), "news": ("2024-01", "2024-02", "2024-03")}
Row = tuple[Any, ...]
SHARED = "org/shared"
DOCUMENTS_EACH = 12
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
RECORD = CellRecord(
    scored_at=NOON,
    device="cpu",
    dtype="float32",
    batch_tokens=1024,
    context=512,
    versions={"torch": "2.13.0"},
    seconds=2.5,
    num_tokens_read=123,
    peak_memory_bytes=2**30,
    energy_joules=None,
    num_lossy_documents=0,
    tokenizer=TokenizerFacts(vocabulary_size=256, start_token=None, has_byte_tokens=True),
    milestones=(Milestone(milestone=10, num_documents=2, nll_nats=3.5, num_chars=6, num_bytes=7),),
)
CANARY_RUN = {
    "run_at": NOON, "device": "cpu", "dtype": "float32", "versions": {}, "nll_nats": 1.0,
    "expected_nats": 1.0, "drift": 0.0, "num_tokens": 10,
}  # fmt: skip
# Tables and views that this world fills: else equal would mean nothing.
FULL = (
    "canary_runs", "cell_costs", "cell_milestones", "cell_replicates", "chunk_losses", "documents",
    "estimated_cutoff", "headline", "monthly_loss", "replicate_monthly_loss", "run_costs",
    "text_comparisons", "text_difference", "tokenizers", "train_test_gap",
)  # fmt: skip


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """The address of a server on loopback that speaks the S3 protocol, with one bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    s3fs.S3FileSystem(key="test", secret="test", endpoint_url=url).mkdir("bucket")
    yield url
    server.stop()


@pytest.fixture
def bucket(object_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A data root in the object store, and the keys to it where every process finds them."""
    url = object_store
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return f"s3://bucket/{tmp_path.name}"


def make_world(home: str, partitions: Mapping[str, Sequence[str]]) -> None:
    """Leave what crawling and scoring would: sealed documents, losses, and records of cells."""
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
            seal_partition(store, partition, tables_of(rows, partition))
    for model in MODELS:
        for seal, cell in cells_of(store, model):
            with store.writing(cell.path) as staged:
                pq.write_table(losses_of(store, seal, cell), staged.path)
            store.write_bytes(cell.record_path, RECORD.to_json())


def cells_of(store: Store, model: str) -> list[tuple[Seal, Cell]]:
    return [
        (seal, Cell(model, "r1", seal.partition, seal.digest, "default", "scoring-1"))
        for seal in list_sealed(store)
    ]


def losses_of(store: Store, seal: Seal, cell: Cell) -> pa.Table:
    """Two chunks a document, cheaper in the months that the model has seen."""
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
    """What a worker does; run by several processes at once."""
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
                warehouse.land_cell(cell)
    compare_texts(plan_comparisons(store, None, None), settings)


def start(settings: Settings, *models: str) -> SpawnProcess:
    context = multiprocessing.get_context("spawn")
    worker = context.Process(target=land_models, args=(settings, models))
    worker.start()
    return worker


def is_same(one: object, other: object) -> bool:
    """The order in which doubles are added may show in last digits, and in a sum that is 0."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


def tables_and_views(settings: Settings) -> dict[str, list[Row]]:
    """Every row of every table and view, sorted by what is no double."""

    def key(row: Row) -> str:
        return repr([item for item in row if not isinstance(item, float | list)])

    names = [*list_tables(), *(view for view in list_views() if not view.endswith("_at"))]
    with connected(settings) as connection:
        return {name: sorted(connection.table(name).fetchall(), key=key) for name in names}


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Where a process that is spawned finds this module."""
    monkeypatch.syspath_prepend(pytestconfig.rootpath)


class Reader:
    """An analyst with DuckDB alone, who reads the lake itself, read-only."""

    def __init__(self, settings: Settings) -> None:
        self.connection = connect_lake(settings, read_only=True)

    def find_halves(self) -> list[object]:
        """Return what no reader may ever see: cells without all their rows, and the like."""
        return [
            row
            for check in list_checks()
            for row in self.connection.execute(read_sql("checks", check)).fetchall()
        ]

    def count_cells(self, model: str) -> int:
        sql = "select count(*) from landed_cells where model = ?"
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
    # What is published is a plain file, as ever.
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
    """Every table and view has the rows that it has where one process lands all of it."""
    embedded = Settings(home=lake.home, work_dir=tmp_path / "embedded")
    land_models(embedded, list(MODELS))
    expected, found = tables_and_views(embedded), tables_and_views(lake)
    for name in expected:
        assert len(found[name]) == len(expected[name]), name
        pairs = zip(found[name], expected[name], strict=True)
        assert [pair for pair in pairs if not is_same(*pair)] == [], name
    return found
