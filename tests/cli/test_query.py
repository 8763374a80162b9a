import csv
import datetime as dt
import hashlib
import io
import json
import os
import pty
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from cli.query import find_client
from core.settings import Settings
from core.storage.store import Store
from reports.exports.figures import exported_views
from tests.commands import in_one_process
from tests.forks import run_process
from tests.losses import loss_row, publish_rows
from tests.tiers import few, needs_extra
from warehouse.database.schema import describe_view, is_macro, list_views

TIDEMARK = Path(sys.executable).parent / "tidemark"
Tidemark = Callable[..., Any]
HOSTILE = [
    "x'; drop table models; --", "../../x", 'a"b', "a,b", "=cmd()", "<script>alert(1)</script>",
    "red", "-rf",
]  # fmt: skip
# The error comes after the first batch of rows.
LATE = "select i, case when i = 140000 then error('late') end as e from range(150000) t(i)"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    settings = Settings(home=str(tmp_path_factory.mktemp("published")))
    rows = [
        loss_row(model, source, dt.date(2024, month, 1), document, nll_nats=10.0 + month)
        for model, source in zip(HOSTILE, reversed(HOSTILE), strict=True)
        for month in range(1, 7)
        for document in ("d0", "d1")
    ]
    return Path(publish_rows(settings, rows)).read_bytes()


@pytest.fixture
def published(snapshot: bytes, home: Path) -> Path:
    home.mkdir()
    (home / "warehouse.duckdb").write_bytes(snapshot)
    return home / "warehouse.duckdb"


def test_a_statement_from_a_file_or_a_pipe(
    tidemark: Tidemark, published: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    file = tmp_path / "it's; a query.sql"
    file.write_text("\ufeff-- why\nselect 'ü' as u;\n", encoding="utf-8")
    assert tidemark("sql", "--file", file, "--format", "csv").out == "u\nü\n"
    command = [TIDEMARK, "sql", "-", "--format", "csv"]
    done = subprocess.run(command, env=environment, input=file.read_bytes(), capture_output=True)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, "u\nü\n", b"")
    file.write_bytes(b"select '\xff'")
    tidemark("sql", "--file", file).expect(2, "is not UTF-8")
    tidemark("sql", "select '\udcff'").expect(2, "the statement is not UTF-8")


@pytest.mark.long
def test_an_empty_result_has_a_hint_on_stderr(tidemark: Tidemark, published: Path) -> None:
    sql = "select model from train_test_gap where model = 'a,b'"
    ran = tidemark("sql", sql, "--format", "csv")
    ran.expect(0, "hint: train_test_gap leaves out a,b: cutoff unknown; state it: ", out="model\n")
    assert "hint: all reasons: `from unmeasured where left_out_of = 'train_test_gap'`" in ran.err
    assert tidemark("sql", "from models", "--format", "csv").err == ""


@pytest.mark.long
def test_an_error_on_a_late_row(tidemark: Tidemark, published: Path, tmp_path: Path) -> None:
    ran = tidemark("sql", LATE, "--format", "csv").expect(2, "late")
    assert ran.out.endswith("\n")  # the complete rows come first
    for format in ("csv", "json", "parquet"):
        file = tmp_path / f"out.{format}"
        file.write_text("from before")
        assert tidemark("sql", LATE, "--format", format, "--output", file).code == 2
        assert file.read_text() == "from before"
    assert not list(tmp_path.glob(".tmp*"))


def test_a_large_result_needs_little_memory(
    environment: dict[str, str], published: Path, tmp_path: Path
) -> None:
    query = "select i, i / 3.0 as x, 'a name' as m, i::hugeint as h from range({}) t(i)"

    def peak(num_rows: int) -> int:
        asked = ("sql", query.format(num_rows), "--output", str(tmp_path / "out"))
        commands = [[*asked, "--format", format] for format in ("csv", "parquet")]
        python, option, code, given = in_one_process(commands)
        # The largest size of a child that Linux reports counts its parent before the start.
        code += "print([line for line in open('/proc/self/status') if 'VmHWM' in line][0])"
        done = run_process(python, option, code, given, env=environment, check=True)
        return int(done.stdout.split()[-2]) // 1024  # MiB

    assert peak(3_000_000) < peak(150_000) + 130  # in memory: 240 MiB


def test_a_file_is_written_through_links_and_pipes(
    tidemark: Tidemark, published: Path, tmp_path: Path
) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    query = ("sql", "select 1 as a", "--format", "csv", "--output")
    assert tidemark(*query, link).code == 0
    assert link.is_symlink()
    assert target.read_text() == "a\n1\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert tidemark(*query, "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


def test_a_full_standard_output_is_explained(environment: dict[str, str], published: Path) -> None:
    command = [TIDEMARK, "sql", "from range(100000)", "--format", "csv"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: cannot write to standard output: ")
    assert done.stderr.count(b"\n") == 1


def test_a_terminal_gets_no_control_characters(
    environment: dict[str, str], published: Path
) -> None:
    main, terminal = pty.openpty()
    signs = "chr(155) || '31m' || chr(27) || '[31m' || chr(8238)"
    query = f"select distinct model, {signs} as c from models"
    commands = [["sql", query, "--format", format] for format in ("table", "csv", "json")]
    command = in_one_process(commands)
    with subprocess.Popen(command, env=environment, stdout=terminal) as process:
        os.close(terminal)
        shown = b""
        try:
            while part := os.read(main, 65536):
                shown += part
        except OSError:  # Linux's error for a closed other end
            pass
    os.close(main)
    assert process.returncode == 0
    text = shown.decode()
    assert text.count("script>alert") == 3
    assert "\x1b[31m" not in text
    assert not {"\x9b", "\u202e"} & set(text)


def test_hostile_names_change_nothing(tidemark: Tidemark, published: Path) -> None:
    sql = "select model from models order by model"
    rows = json.loads(tidemark("sql", sql, "--format", "json").out)
    assert [row["model"] for row in rows] == sorted(HOSTILE)
    [_, *lines] = csv.reader(io.StringIO(tidemark("sql", sql, "--format", "csv").out, newline=""))
    assert [line[0] for line in lines] == sorted(HOSTILE)


CLIENT = """#!/bin/sh
for argument in "$@"; do echo "[$argument]"; done > '{folder}/called'
[ -s "$4" ] || exit 9
exit 3
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "duckdb"
    script.write_text(CLIENT.format(folder=folder))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return lambda: (folder / "called").read_text().splitlines()


def test_the_client_is_opened_read_only(
    tidemark: Tidemark, published: Path, client: Callable[[], list[str]]
) -> None:
    ran = tidemark("shell", "--", "-json", "-c", "from models; $(id)")
    assert ran.code == 3  # the client's own
    assert client() == [
        "[-readonly]", "[-cmd]", "[set autoinstall_known_extensions = false]",
        f"[{published}]", "[-json]", "[-c]", "[from models; $(id)]",
    ]  # fmt: skip


@needs_extra("object_store")
def test_a_snapshot_in_an_object_store_is_fetched(
    tidemark: Tidemark, published: Path, client: Callable[[], list[str]], tmp_path: Path
) -> None:
    Store("memory://shell").write_bytes("warehouse.duckdb", published.read_bytes())
    work = tmp_path / "scratch"
    ran = tidemark("--home", "memory://shell", "shell", work_dir=work)
    assert ran.code == 3  # the client could read the file
    path = client()[-1]
    assert path.startswith(f"[{work}/")
    assert [file for file in work.rglob("*") if file.is_file()] == []  # and the file is removed


def test_without_a_client_it_says_how_to_get_one(
    tidemark: Tidemark, published: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    beside = tmp_path / "venv" / "bin"
    beside.mkdir(parents=True)
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    tidemark("shell").expect(2, "pip install 'duckdb-cli>=1.5'")
    (beside / "duckdb").write_text("#!/bin/sh\n")
    (beside / "duckdb").chmod(0o755)
    assert find_client() == beside / "duckdb"
    assert tidemark("shell").code == 0


def test_nothing_published_opens_nothing(
    tidemark: Tidemark, client: Callable[[], list[str]], home: Path
) -> None:
    tidemark("shell").expect(2, "nothing is published at", out="")
    assert not home.exists()


@pytest.mark.parametrize("home", few(["it's; a home", "home"], 1))
def test_the_real_client_reads_and_cannot_write(home: str, snapshot: bytes, tmp_path: Path) -> None:
    found = shutil.which("duckdb") or shutil.which("duckdb", path=str(TIDEMARK.parent))
    if found is None:
        pytest.skip("no DuckDB client here: pip install duckdb-cli")
    root = tmp_path / home
    root.mkdir()
    (root / "warehouse.duckdb").write_bytes(snapshot)
    environment = {"PATH": str(Path(found).parent), "HOME": str(tmp_path)}
    asked = ["-c", "select model from models where model = 'red'", "-c", "delete from models"]
    command = [TIDEMARK, "--home", str(root), "shell", "--", "-csv", *asked]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.stdout.split() == [b"model", b"red"]
    assert done.returncode != 0
    assert b"read-only" in done.stderr
    assert (root / "warehouse.duckdb").read_bytes() == snapshot


def exported(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


@pytest.mark.slow
def test_every_view_is_a_file(tidemark: Tidemark, published: Path, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    ran = tidemark("export", "figures", "--output", folder)
    assert (ran.code, ran.err) == (0, "")
    files = exported(folder)
    views = {
        n for n, f in list_views().items() if not is_macro(f) and not describe_view(f).is_internal
    }
    assert set(files) == {f"{name}.csv" for name in views} | {"README.md", "manifest.json"}
    manifest = json.loads(files["manifest.json"])
    assert manifest["snapshot_sha256"] == digest(published.read_bytes())
    for view in manifest["views"]:
        [names, *rows] = csv.reader(io.StringIO(files[view["file"]].decode(), newline=""))
        assert names == [column["name"] for column in view["columns"]]
        assert names[: len(view["grain"])] == view["grain"]
        assert len(rows) == view["num_rows"]
        assert manifest["files"][view["file"]]["sha256"] == digest(files[view["file"]])
    [monthly] = [view for view in manifest["views"] if view["name"] == "monthly_loss"]
    assert monthly["num_rows"] == 6 * len(HOSTILE)
    units = {column["name"]: column["unit"] for column in monthly["columns"]}
    assert units["bits_per_byte"] == "bits per byte"
    assert "| `monthly_loss.csv` | 48 | " in files["README.md"].decode()


@pytest.mark.slow
def test_the_same_snapshot_gives_the_same_bytes(
    tidemark: Tidemark, published: Path, tmp_path: Path
) -> None:
    before = published.read_bytes()
    first: dict[str, bytes] = {}
    for name in ["=cmd()\n'; drop table models; --"] * 2:  # the second replaces the first
        assert tidemark("export", "figures", f"--output={tmp_path / name}").code == 0
        first = first or exported(tmp_path / name)
        assert exported(tmp_path / name) == first
    assert published.read_bytes() == before
    assert not list(tmp_path.glob(".tmp*"))


@pytest.mark.long
def test_parquet_has_the_same_figures_and_a_failed_export_leaves_them(
    tidemark: Tidemark, published: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "figures"
    assert tidemark("export", "figures", "--format", "parquet", "--output", folder).code == 0
    table = pq.read_table(folder / "monthly_loss.parquet")
    sql = "from monthly_loss order by model, source, protocol, month"
    rows = json.loads(tidemark("sql", sql, "--format", "json").out)
    assert table["nll_nats"].to_pylist() == [row["nll_nats"] for row in rows]
    assert set(table["model"].to_pylist()) == set(HOSTILE)
    assert len(list(folder.glob("*.parquet"))) == len(exported_views())

    before = exported(folder)
    with duckdb.connect(str(published)) as connection:
        connection.execute("drop view coverage")
    again = ("export", "figures", "--format", "parquet", "--output", folder)
    tidemark(*again).expect(1, "has not the view coverage")
    assert exported(folder) == before
    assert not list(tmp_path.glob(".tmp*"))


@pytest.mark.slow
def test_what_somebody_else_wrote_is_not_replaced(
    tidemark: Tidemark, published: Path, tmp_path: Path
) -> None:
    folder, file = tmp_path / "figures", tmp_path / "file"
    assert tidemark("export", "figures", "--output", folder).code == 0
    (folder / "my notes.txt").write_text("mine")
    before = exported(folder)
    file.write_text("mine")
    for there in (folder, file, tmp_path, "/dev/null"):
        ran = tidemark("export", "figures", "--output", there)
        assert ran.code == 2
        assert "more than an earlier export" in ran.err
    assert exported(folder) == before
    assert file.read_text() == "mine"


def test_figures_on_a_full_disk(tidemark: Tidemark, published: Path, small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096 - 8192))
    tidemark("export", "figures", "--output", small_disk / "figures").expect(1, "no space left")
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
