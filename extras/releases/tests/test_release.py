import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import s3fs
import yaml

from core.corpus.partition import Partition
from core.errors import CheckFailed, StorageError, UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts
from extras.releases.release import TRIMMING, list_dated_tables, make_release
from instruments.losses import score_and_land
from tests.forks import run_process
from tests.object_store import KEYS, object_store
from tests.tiers import needs_extra
from warehouse.database.schema import MATERIALISED, list_tables, qualify
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.released import release_database

Tidemark = Callable[..., Any]
FILES = [
    ".zenodo.json", "CITATION.cff", "README.md", "SHA256SUMS", "cells.jsonl", "catalogue.json",
    "partitions.jsonl", "versions.json", "warehouse.duckdb",
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months and undated texts, scored and published; each test has a copy."""
    folder = tmp_path_factory.mktemp("made")
    settings = Settings(home=str(folder / "home"), device="cpu")
    for month in (Month("2024-01"), Month("2024-02"), None):
        texts = [f"{month} {number}: sand and tide, " * 20 for number in range(3)]
        (folder / "texts.json").write_text(json.dumps(texts))
        partition = Partition("news", month)
        import_texts(folder / "texts.json", partition, Store(settings.home), ImportOptions())
    assert score_and_land(settings, ["control:zstd"], None, None, ["default"]) == (3, [])
    months = [Month("2024-02")]
    assert score_and_land(settings, ["control:gzip"], None, months, ["default"]) == (1, [])
    return Path(settings.home)


@pytest.fixture
def scored(made: Path, home: Path) -> None:
    shutil.copytree(made, home)


def rows(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.long
@pytest.mark.usefixtures("scored")
def test_a_release_has_one_month_s_knowledge(tidemark: Tidemark, home: Path) -> None:
    ran = tidemark("release", "2024-01").expect(0)
    folder = home / "releases" / "2024-01"
    assert str(folder) in ran.out
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert [path.name for path in folder.parent.iterdir()] == ["2024-01"]
    database = folder / "warehouse.duckdb"
    for table in ("landed_cells", "chunk_losses", "documents", "cell_replicates", "cell_costs"):
        months = rows(
            database, f"select distinct month::varchar from {qualify(table)} order by all"
        )
        assert months == [("2024-01-01",), (None,)], table
    assert rows(database, "select model from models") == [("control:zstd",)]  # gzip came later
    assert rows(database, "select count(*) from monthly_loss") == [(1,)]
    kept = rows(database, "select distinct month::varchar from internal.slope_cells")
    assert kept == [("2024-01-01",)]
    cells = lines(folder / "cells.jsonl")
    assert [cell["cell"] for cell in cells] == [
        "control:zstd/news/2024-01/default", "control:zstd/news/undated/default",
    ]  # fmt: skip
    assert cells[0]["sha256"] == Store(str(home)).sha256(cells[0]["losses"])
    assert cells[0]["record"]["seconds"] >= 0
    manifests = lines(folder / "partitions.jsonl")
    assert [row["manifest"]["month"] for row in manifests] == ["2024-01", None]
    assert {row["manifest"]["digest"] for row in manifests} == {
        cell["partition_digest"] for cell in cells
    }
    [model] = json.loads((folder / "catalogue.json").read_text())["models"]
    assert model["model"] == "control:zstd"
    versions = json.loads((folder / "versions.json").read_text())
    assert re.fullmatch(r"[0-9a-f]{8}", versions["protocols"]["default"])
    assert versions["libraries"]["duckdb"]
    assert versions["scored_with"][0]["tidemark"] == versions["tidemark"]


@pytest.mark.smoke
@pytest.mark.usefixtures("scored")
def test_a_release_can_be_cited_and_verified(tidemark: Tidemark, home: Path) -> None:
    assert tidemark("release", "2024-02").code == 0
    folder = home / "releases" / "2024-02"
    verify = ["sha256sum", "--strict", "-c", "SHA256SUMS"]
    done = run_process(*verify, cwd=folder, check=True)
    assert sorted(line.split(":")[0] for line in done.stdout.splitlines()) == sorted(
        set(FILES) - {"SHA256SUMS"}
    )
    digest = Store(str(folder)).sha256("warehouse.duckdb")
    cited = yaml.safe_load((folder / "CITATION.cff").read_text())
    assert (cited["cff-version"], cited["version"]) == ("1.2.0", "2024-02")
    assert cited["identifiers"][0]["value"] == f"sha256:{digest}"
    assert digest in (folder / "README.md").read_text()
    deposit = json.loads((folder / ".zenodo.json").read_bytes())
    assert (deposit["upload_type"], deposit["version"]) == ("dataset", "2024-02")
    assert digest in deposit["description"]
    with release_database(Settings(home=str(home)), "2024-02") as path:
        assert rows(path, "select count(*) from internal.landed_cells") == [(4,)]
    (folder / "README.md").write_text("forged")
    assert subprocess.run(verify, cwd=folder, capture_output=True, check=False).returncode == 1


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("scored")
def test_two_releases_of_a_snapshot_differ_in_padding_alone(
    tidemark: Tidemark, home: Path, tmp_path: Path
) -> None:
    contents = []
    for name in ("a", "b"):
        folder = tmp_path / name
        assert tidemark("release", "2024-02", "--output", folder).code == 0
        contents.append(content_of(folder))
    one, other = contents
    for name, content in one.items():
        assert content == other[name], name


def content_of(folder: Path) -> dict[str, str]:
    """Return files without the digest of the database, and its rows in the order of the file.

    DuckDB does not set the bytes between two segments, so the digest differs.
    """
    digest = Store(str(folder)).sha256("warehouse.duckdb")
    dated = {"CITATION.cff", "SHA256SUMS"}  # the date may change between two releases
    texts = set(FILES) - {"warehouse.duckdb", *dated}
    content = {name: (folder / name).read_text().replace(digest, "DIGEST") for name in texts}
    tables = "select schema_name, table_name from duckdb_tables()"
    for schema, table in rows(folder / "warehouse.duckdb", tables):
        found = rows(folder / "warehouse.duckdb", f"from {schema}.{table}")
        content[f"{schema}.{table}"] = repr(found)
    return content


@pytest.mark.slow
@pytest.mark.usefixtures("scored")
def test_what_cannot_be_released_is_refused(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    for month, says in [
        ("2999-01", "2999-01 is not over yet"),
        ("2024-3", "is not a month"),
        ("2023-12", "no cell of 2023-12 is published (what is, is from 2024-01 to 2024-02)"),
    ]:
        tidemark("release", month).expect(2, says)
    assert tidemark("release", "2024-01").code == 0
    before = (home / "releases/2024-01/SHA256SUMS").read_bytes()
    tidemark("release", "2024-01").expect(2, "exists already, and a release never changes")
    assert (home / "releases/2024-01/SHA256SUMS").read_bytes() == before
    (tmp_path / "mine").mkdir()
    assert tidemark("release", "2024-01", "--output", tmp_path / "mine").code == 2
    assert list((tmp_path / "mine").iterdir()) == []


def test_nothing_published_cannot_be_released(tidemark: Tidemark) -> None:
    tidemark("release", "2024-01").expect(2, "nothing is published")


@pytest.mark.slow
@pytest.mark.usefixtures("scored")
def test_what_is_not_sound_is_not_released(tidemark: Tidemark, home: Path) -> None:
    tidemark("check", "--deep").expect(0, out="sound\n")
    [part] = home.glob("corpus/source=news/month=2024-01/part*")
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(CheckFailed, match=r"partitions_are_sound.*check --deep"):
        make_release(Settings(home=str(home)), Month("2024-01"))
    assert list((home / "releases").iterdir()) == []
    ran = tidemark("check", "--deep").expect(1)
    assert "partitions_are_sound: " in ran.out
    assert part.name in ran.out
    assert "What to do: Crawl or import" in ran.out
    assert tidemark("check").code == 0  # quick checks read no text


@pytest.mark.slow
@pytest.mark.usefixtures("scored")
def test_a_damaged_or_absent_release_is_refused(home: Path) -> None:
    settings = Settings(home=str(home))
    folder = Path(make_release(settings, Month("2024-01")))
    says = r"no release at .*2024-02.*released here: 2024-01"
    with pytest.raises(UsageError, match=says), release_database(settings, "2024-02"):
        pass
    with duckdb.connect(str(folder / "warehouse.duckdb")) as connection:
        connection.execute("update chunk_losses set nll_nats = 0")
    for release in ("2024-01", str(folder)):
        with pytest.raises(StorageError, match="not what SHA256SUMS"):
            release_database(settings, release).__enter__()


@pytest.mark.long
def test_every_table_with_months_or_names_is_trimmed(settings: Settings) -> None:
    with open_warehouse(settings):
        pass
    publish(settings)
    dated = rows(
        Path(settings.home) / "warehouse.duckdb",
        "select distinct schema_name || '.' || table_name "
        "from duckdb_columns() join duckdb_tables() using (schema_name, table_name) "
        "where column_name = 'month' and not duckdb_columns.internal "
        f"and duckdb_tables.schema_name <> '{MATERIALISED}'",
    )
    assert {table for (table,) in dated} == set(list_dated_tables())
    names = {file.stem for file in TRIMMING.glob("*.sql")}
    assert names <= set(list_tables())
    for name in names:
        statement = (TRIMMING / f"{name}.sql").read_text()
        assert f"delete from {qualify(name)}\n".replace(" main.", " ") in statement


@needs_extra("object_store")
@needs_extra("reproduction")
@pytest.mark.slow
def test_a_release_goes_to_an_object_store(
    tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    with object_store() as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        s3fs.S3FileSystem().mkdir("releases-bucket")
        texts = tmp_path / "texts.json"
        texts.write_text(json.dumps(["sand and tide, " * 20, "tide and sand, " * 20]))
        at: dict[str, Any] = {"home": "s3://releases-bucket/root", "work_dir": tmp_path / "work"}
        imported = ("import", "texts", texts, "--source", "news", "--month", "2024-01")
        assert tidemark(*imported, **at).code == 0
        tidemark("score", "-m", "control:zstd", "-s", "news", **at).expect(0)
        tidemark("check", "--deep", **at).expect(0, out="sound\n")
        tidemark("release", "2024-01", **at).expect(0)
        store = Store("s3://releases-bucket/root")
        found = [Path(path).name for path in store.list("releases/2024-01/*")]
        assert sorted(found) == sorted(FILES)
        sums = dict(
            reversed(line.split("  "))
            for line in store.read_bytes("releases/2024-01/SHA256SUMS").decode().splitlines()
        )
        assert {name: store.sha256(f"releases/2024-01/{name}") for name in sums} == sums
        assert tidemark("release", "2024-01", **at).code == 2
        cell = "control:zstd/news/2024-01/default"
        tidemark("check", "cell", cell, "--release", "2024-01", **at).expect(0)
