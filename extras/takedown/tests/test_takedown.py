import datetime as dt
import gzip
import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from core.corpus.partition import Partition, Seal, list_sealed, list_versions, read_seal, tables_of
from core.corpus.sealing import Description, read_held, seal_partition
from core.corpus.tombstones import Tombstone, item_key, list_tombstones, read_tombstones
from core.errors import PartitionHeld, StorageError, UsageError
from core.month import Month
from core.schemas.tables import DUPLICATES
from core.settings import Settings
from core.storage.store import Store
from crawlers.web.raw_cache import Fetched, RawCache
from extras.takedown.fetched import Origin, forget_fetched
from extras.takedown.forgetting import forget
from extras.takedown.rows import forget_in_warehouse, has_rows
from instruments.losses import score_and_land
from tests.forks import Forks, forking
from warehouse.database.writer import connected, writer_path
from warehouse.read.check import check_home
from warehouse.read.query import query

SOURCE = "pages"
MARCH, APRIL = (Partition(SOURCE, Month(month)) for month in ("2024-03", "2024-04"))
SECRET = "Klabautermann"
MODELS = ["control:gzip", "control:zstd"]
CHECK_SUMS = ["sha256sum", "-c", "--quiet", "SHA256SUMS"]


def _row(number: int, version: str) -> dict[str, Any]:
    name = SECRET if number == 3 else f"word{number}"
    text = " ".join(f"{name} of version {version} says {number * word}" for word in range(30))
    return {
        "native_id": f"page-{name}", "version_id": version, "date_kind": "revised",
        "licence": "MIT", "title": name, "url": f"http://127.0.0.1:8/{name}", "text": text,
        "cluster_id": "even" if number % 2 == 0 else None,
    }  # fmt: skip


def _tables(partition: Partition, version: str) -> Iterator[pa.Table]:
    return tables_of((_row(number, version) for number in range(8)), partition)


def _beside() -> dict[str, bytes]:
    lines = [
        {"native_id": f"page-{SECRET}", "outcome": "repeated", "reason": "repeated", "detail": "x"},
        {"native_id": "page-other", "outcome": "dropped", "reason": "too_short", "detail": "y"},
        {"native_id": "page-twin", "outcome": "dropped", "reason": "exact_dup",
         "detail": f"same text as page-{SECRET}"},
    ]  # fmt: skip
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    return {"dropped.jsonl.zst": zstandard.compress(text.encode())}


def _id(store: Store, partition: Partition = MARCH, version: int = 1) -> str:
    seal = list_versions(store, partition)[version - 1]
    table = pq.read_table(store.url(seal.parts[0]), partitioning=None)
    return next(r["document_id"] for r in table.to_pylist() if r["title"] == SECRET)


def make_no_release(settings: Settings, month: Month) -> None:
    """Do nothing: an extra makes releases, and its tests are these with one."""


@pytest.fixture(scope="module")
def make_release() -> Callable[[Settings, Month], object]:
    return make_no_release


@pytest.fixture
def releases(make_release: Callable[[Settings, Month], object]) -> tuple[str, ...]:
    """Return the folders of the releases in ``home``."""
    return () if make_release is make_no_release else ("releases/2024-04",)


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, make_release: Callable[[Settings, Month], object]
) -> Path:
    """A data root with versions, held text and a cache; each test has a copy."""
    settings = Settings(home=str(tmp_path_factory.mktemp("made") / "home"), device="cpu")
    _make(settings, make_release)
    return Path(settings.home)


@pytest.fixture
def home(settings: Settings, made: Path) -> Settings:
    shutil.copytree(made, settings.home)
    return settings


def _make(settings: Settings, make_release: Callable[[Settings, Month], object]) -> None:
    store = Store(settings.home)
    describe: dict[str, object] = {
        "base_urls": {"pages": "http://127.0.0.1:8"},
        "boilerplate": {"lines": 1, "most_frequent": [{"line": f"by {SECRET}", "texts": 5}]},
    }
    seal_partition(store, MARCH, [*_tables(MARCH, "1"), Description(describe, files=_beside())])
    seal_partition(store, APRIL, [*_tables(APRIL, "2"), Description(describe, files=_beside())])
    seal = read_seal(store, MARCH)
    assert seal is not None
    ids = [_id(store), "f" * 32]
    sketch = pa.table({"document_id": ids, "grams": [[1], [2]]}).replace_schema_metadata({"k": "v"})
    _write(store, f"{seal.folder}/sketch.parquet", sketch)
    twins = pa.Table.from_pylist([_twin(each) for each in ids], schema=DUPLICATES)
    _write(store, f"{APRIL.path}/duplicate_of.parquet", twins)
    past = settings.model_copy(update={"corpus_as_of": dt.datetime.now(dt.UTC)})
    newest = [*_tables(MARCH, "3"), Description(describe, files=_beside())]
    seal_partition(store, MARCH, newest, replace=True)
    assert score_and_land(settings, MODELS[:1], None, None, ["default", "solid"])[1] == []
    assert score_and_land(past, MODELS, None, None, ["default"])[1] == []
    make_release(settings, Month("2024-04"))
    odd = [*_tables(MARCH, "4"), Description(describe, _beside(), ["odd"])]
    with pytest.raises(PartitionHeld):
        seal_partition(store, MARCH, odd, replace=True)
    store.write_bytes(f"{MARCH.path}/version=3/part-00000-dead.parquet", SECRET.encode())
    now = dt.datetime.now(dt.UTC)
    cache = RawCache(settings.scratch / "http-cache")
    cache.save("a", Fetched("http://127.0.0.1:8/list?all", {}, SECRET.encode(), now))
    cache.save("b", Fetched("http://127.0.0.1:9/other", {}, b"kept", now))


def _twin(document_id: str) -> dict[str, Any]:
    return {
        "source": SOURCE, "month": dt.date(2024, 4, 1), "document_id": "a" * 32,
        "duplicate_of_month": dt.date(2024, 3, 1), "duplicate_of_document_id": document_id,
        "similarity": 0.9, "found_at": dt.datetime(2024, 5, 1, tzinfo=dt.UTC),
    }  # fmt: skip


def _write(store: Store, path: str, table: pa.Table) -> None:
    with store.writing(path) as staged:
        pq.write_table(table, staged.path)


def _contents(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix == ".parquet" and raw.startswith(b"PAR1"):
        return raw + str(pq.read_table(path, partitioning=None).to_pylist()).encode()
    if path.suffix == ".zst":
        return raw + zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    if path.suffix == ".gz":
        return raw + gzip.decompress(raw)
    return raw


def _mentions(settings: Settings, *words: str) -> set[str]:
    home = Path(settings.home)
    found = set()
    for path in home.rglob("*"):
        if path.is_file() and any(word.encode() in _contents(path) for word in words):
            found.add(str(path.relative_to(home)))
    return found


REASON = "the author asked"
RECORDS = "from internal.forgotten_documents"
DATABASES = ("warehouse.duckdb", "work/writer.duckdb")


def _stones(*keys: str) -> set[str]:
    return {f"corpus/forgotten/{key}.json" for key in keys}


def _in_databases(settings: Settings, *ids: str) -> bool:
    listed = ", ".join(f"'{each}'" for each in ids)
    tables = ("documents", "chunk_losses")
    return any(
        query(settings, f"from {t} where document_id in ({listed})").num_rows for t in tables
    )


def test_a_document_with_an_invalid_url_has_no_cached_responses(settings: Settings) -> None:
    seal = Seal(MARCH, "0" * 64, 1, 1, (), {}, 1, MARCH.path)
    assert forget_fetched(settings, [Origin("http://[0/page", "page-1", seal)]) == 0


def test_an_item_is_forgotten_everywhere_in_all_its_versions(
    home: Settings, releases: tuple[str, ...]
) -> None:
    store = Store(home.home)
    ids = {_id(store), _id(store, APRIL), _id(store, MARCH, 2)}
    digests = {seal.digest for seal in list_versions(store, MARCH)}
    assert len(_mentions(home, SECRET, *ids)) > 12
    done = forget(home, [item_key(SOURCE, f"page-{SECRET}")], REASON)
    assert ids < set(done.document_ids)  # and what was held back
    assert done.num_versions == 4
    assert done.num_fetched == 1
    assert done.releases == releases
    stones = _stones(*done.document_ids)
    databases = {*DATABASES, *(f"{folder}/warehouse.duckdb" for folder in releases)}
    assert _mentions(home, SECRET) == set()
    assert _mentions(home, *done.document_ids) <= stones | databases  # their records
    assert not _in_databases(home, *done.document_ids)
    assert store.list(f"{MARCH.path}/version=3/*") == []
    assert {seal.digest for seal in list_versions(store, MARCH)} == digests
    for seal in list_sealed(store):
        assert (seal.num_documents, seal.manifest["forgotten"]) == (7, 1)
    assert read_held(store, MARCH) is not None
    assert list(check_home(Path(home.home) / "warehouse.duckdb", store, is_deep=True)) == []
    for folder in releases:
        released = Path(home.home) / folder
        subprocess.run(CHECK_SUMS, cwd=released, check=True)
        assert list(check_home(released / "warehouse.duckdb", store, is_deep=True)) == []
    keys = {row["document_id"] for row in query(home, RECORDS).to_pylist()}
    assert keys == set(done.document_ids)
    # The reason may name people, so it is in no file that others get.
    assert _mentions(home, REASON) == stones | _stones(item_key(SOURCE, f"page-{SECRET}"))
    _expect_the_neighbours(home)


def _expect_the_neighbours(home: Settings) -> None:
    """Expect that the rows of other documents in tables beside the text have stayed."""
    store = Store(home.home)
    sketch = pq.read_table(store.url(f"{MARCH.path}/sketch.parquet"), partitioning=None)
    assert sketch.to_pylist() == [{"document_id": "f" * 32, "grams": [2]}]
    assert sketch.schema.metadata == {b"k": b"v"}
    twins = pq.read_table(store.url(f"{APRIL.path}/duplicate_of.parquet"), partitioning=None)
    assert twins["duplicate_of_document_id"].to_pylist() == ["f" * 32]
    raw = store.read_bytes(f"{MARCH.path}/dropped.jsonl.zst")
    lines = [json.loads(line) for line in zstandard.decompress(raw).splitlines()]
    assert [line["native_id"] for line in lines] == [
        item_key(SOURCE, f"page-{SECRET}"), "page-other", "page-twin"
    ]  # fmt: skip
    assert [line["detail"] for line in lines] == ["", "y", ""]
    assert RawCache(home.scratch / "http-cache").load("b") is not None


def test_releases_that_nothing_can_change_refuse_a_takedown(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extras.takedown.forgetting.import_parts", lambda part: ())
    Store(settings.home).write_bytes("releases/2024-04/SHA256SUMS", b"")
    with pytest.raises(UsageError, match="needs the extra releases"):
        forget(settings, ["0" * 32], "asked")
    assert list_tombstones(Store(settings.home)) == frozenset()


@pytest.mark.slow
def test_texts_without_their_manifest_stop_a_takedown_before_it_begins(home: Settings) -> None:
    store = Store(home.home)
    store.delete(f"{APRIL.path}/manifest.json")
    before = sorted(path for path in Path(home.home).rglob("*") if path.is_file())
    with pytest.raises(StorageError, match="month=2024-04 has sealed texts"):
        forget(home, [_id(store)], "asked")
    assert sorted(path for path in Path(home.home).rglob("*") if path.is_file()) == before


def test_reasons_of_former_versions_leave_a_database(settings: Settings) -> None:
    """Tables of former versions had a column for them."""
    stone = Tombstone(key="a" * 32, forgotten_at=dt.datetime.now(dt.UTC), why=REASON)
    forget_in_warehouse(settings, [stone])
    path = writer_path(settings)
    assert REASON.encode() not in path.read_bytes()
    assert not has_rows(path, [stone])
    with duckdb.connect(str(path)) as connection:
        connection.execute("alter table internal.forgotten_documents add column why varchar")
        connection.execute("update internal.forgotten_documents set why = ?", [REASON])
        connection.execute("update internal.schema_version set definitions = 'former'")
    assert REASON.encode() in path.read_bytes()
    assert has_rows(path, [stone])  # so a release with it is rewritten
    forget_in_warehouse(settings, [stone])
    assert REASON.encode() not in path.read_bytes()
    assert not has_rows(path, [stone])


def test_duplicates_of_former_versions_leave_a_database(settings: Settings) -> None:
    """Former versions had a table with the pairs of ids."""
    stone = Tombstone(key="a" * 32, forgotten_at=dt.datetime.now(dt.UTC), why="")
    path = writer_path(settings)
    with connected(settings):
        pass
    assert not has_rows(path, [stone])
    columns = "document_id varchar, duplicate_of_document_id varchar"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"create table internal.duplicate_of ({columns})")
        connection.execute("insert into internal.duplicate_of values (?, ?)", ["b", stone.key])
        connection.execute("update internal.schema_version set definitions = 'former'")
    assert has_rows(path, [stone])  # so a release with it is rewritten
    forget_in_warehouse(settings, [stone])
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = [
            name
            for (name,) in connection.execute("select table_name from duckdb_tables()").fetchall()
        ]
    assert "duplicate_of" not in tables


@pytest.mark.slow
@pytest.mark.long
def test_sums_are_those_of_the_other_documents(home: Settings, tmp_path: Path) -> None:
    store = Store(home.home)
    gone = _id(store)
    columns = "* exclude (num_clusters, standard_error, degrees_of_freedom, fingerprint)"
    march = "month = '2024-03-01' and protocol = 'default'"
    sums = f"select {columns} from internal.landed_cells where {march}"
    before = query(
        home,
        f"""select model, count(*) as num_chunks, sum(nll_nats) as nll_nats from chunk_losses
            where month = '2024-03-01' and protocol = 'default' and document_id <> '{gone}'
            group by model order by model""",
    ).to_pylist()
    of_april = "from internal.landed_cells where month = '2024-04-01' order by all"
    april = query(home, of_april)
    forget(home, [gone], "asked")
    after = query(home, f"{sums} order by model").to_pylist()
    assert [row["model"] for row in after] == MODELS
    for old, new in zip(before, after, strict=True):
        assert (new["num_documents"], new["num_chunks"]) == (7, old["num_chunks"])
        assert new["nll_nats"] == pytest.approx(old["nll_nats"], rel=1e-12)
    assert query(home, of_april).equals(april)
    assert query(home, "select model from internal.cell_replicates").num_rows % 200 == 0
    [row] = query(home, "from internal.landed_partitions where month = '2024-03-01'").to_pylist()
    assert row["num_documents"] == 7
    landed, failures = score_and_land(home, MODELS[:1], None, [MARCH.month], ["default"])  # type: ignore[list-item]
    assert failures == []
    assert landed <= 1  # of the newer version that was scored before


@pytest.mark.slow
def test_again_removes_what_a_backup_brought_back(home: Settings) -> None:
    store = Store(home.home)
    gone = _id(store)
    seal = list_versions(store, MARCH)[0]
    part = seal.parts[0]
    manifest = f"{seal.folder}/manifest.json"
    backup = {path: store.read_bytes(path) for path in (part, manifest)}
    forget(home, [gone], "asked")
    for path, data in backup.items():
        store.write_bytes(path, data)
    assert gone in str(pq.read_table(store.url(part), partitioning=None).to_pylist())
    findings = check_home(Path(home.home) / "warehouse.duckdb", store, is_deep=True)
    [finding] = [each for each in findings if each.check == "forgotten_documents_are_gone"]
    assert "corpus forget --again" in finding.remedy
    done = forget(home, [], "")
    assert done.document_ids == (gone,)
    [stone] = read_tombstones(store)
    assert (stone.key, stone.why, stone.partitions) == (gone, "asked", (MARCH.path,))
    assert list(check_home(Path(home.home) / "warehouse.duckdb", store, is_deep=True)) == []


@pytest.mark.long
def test_an_unknown_document_is_kept_out_and_a_false_id_refused(settings: Settings) -> None:
    store = Store(settings.home)
    with pytest.raises(UsageError, match="no document id"):
        forget(settings, ["12345"], "asked")
    done = forget(settings, ["0" * 32], "asked")
    assert (done.num_versions, done.document_ids) == (0, ("0" * 32,))
    assert list_tombstones(store) == {"0" * 32}


_FORGETTER = """
import os, sys
from pathlib import Path
import core.storage.store, extras.takedown.texts
from core.settings import Settings
from core.storage.store import Store
from core.corpus.tombstones import item_key
from tests.databases import made_once
from tests.forks import serve

changes_left = 0

def counted(work):
    def counting(*arguments):
        global changes_left
        if not changes_left:
            os.kill(os.getpid(), 9)
        changes_left -= 1
        return work(*arguments)
    return counting

replace = counted(core.storage.store.replace_durably)
core.storage.store.replace_durably = replace
Store.delete = counted(Store.delete)
import extras.takedown.rows
extras.takedown.rows.replace_durably = replace
from extras.takedown.forgetting import forget

def work(job):
    global changes_left
    changes_left = job["changes"]
    forget(Settings(home=job["home"]), [item_key("pages", "page-Klabautermann")], "asked")
    Path(job["home"], "changes-left").write_text(str(changes_left))

with made_once(Path(sys.argv[1])):
    serve(work)
"""


@pytest.mark.slow
def test_killed_anywhere_and_run_again_it_is_done(
    home: Settings, tmp_path: Path, releases: tuple[str, ...]
) -> None:
    arguments = [str(tmp_path / "fresh.duckdb")]
    environment = {"PATH": "/usr/bin:/bin"}
    with forking(_FORGETTER, environment, arguments=arguments) as forks:
        _kill_everywhere(forks, home, tmp_path, releases)


def _kill_everywhere(
    forks: Forks, home: Settings, tmp_path: Path, releases: tuple[str, ...]
) -> None:
    def run(root: Path, changes: int) -> int:
        return forks.run({"home": str(root), "changes": changes})

    whole = tmp_path / "whole"
    shutil.copytree(home.home, whole)
    assert run(whole, 10_000) == 0
    num_changes = 10_000 - int((whole / "changes-left").read_text())
    assert num_changes > 20
    for changes in range(1, num_changes, max(1, num_changes // 3)):
        root = tmp_path / f"killed-{changes}"
        shutil.copytree(home.home, root)
        assert run(root, changes) == -signal.SIGKILL
        settings = Settings(home=str(root))
        done = forget(settings, [item_key(SOURCE, f"page-{SECRET}")], "asked")
        assert len(done.document_ids) == 4
        assert _mentions(settings, SECRET) == set()
        assert not _in_databases(settings, *done.document_ids)
        database = root / "warehouse.duckdb"
        assert list(check_home(database, Store(str(root)), is_deep=True)) == []
        for folder in releases:
            subprocess.run(CHECK_SUMS, cwd=root / folder, check=True)
            assert not (root / folder / "FORGETTING").exists()
        shutil.rmtree(root)
