import datetime as dt
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from core.corpus.partition import list_sealed
from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from simulator.server import Fault, Web
from tests.losses import loss_row, publish_rows
from tests.test_docs import commands
from warehouse.read.query import opened, run_statement

Tidemark = Callable[..., Any]
TIDEMARK = Path(sys.executable).parent / "tidemark"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("crawl -s nope --month 2024-01", "unknown source 'nope'; known: "),
        ("crawl --month 2024-13", "'2024-13' is not a month; expected YYYY-MM"),
        ("crawl --month 01/2024", "expected YYYY-MM"),
        ("crawl --month 2999-01", "2999-01 is not over yet; the latest complete month"),
        ("crawl --from 2024-01 --to 2999-01", "2999-01 is not over yet"),
        ("crawl --from 2024-02 --to 2024-01", "ends (2024-01) before it begins (2024-02)"),
        ("crawl --to 2024-01", "--to needs --from"),
        ("crawl --from 2024-01", "--from needs --to"),
        ("crawl --month 2024-01 --from 2024-01", "--month is one month"),
        ("score -m nope", "unknown model 'nope'; `tidemark models list` shows"),
        ("score -m control:nope", "unknown model 'control:nope'; did you mean control:"),
        ("score -m control:zstd -m nope", "unknown model 'nope'"),
        ("score -m ./no/folder", "unknown model './no/folder'"),
        ("score -m control:zstd --protocol nope", "unknown protocol 'nope'; known: default, "),
        ("score -m control:zstd --stride 4096", "a stride of 4096 with a context of 2048"),
        ("score -m control:zstd", "nothing is sealed of any source"),
        ("score -m control:zstd -s nope", "nothing is sealed of nope"),
        ("score -m control:zstd --month 2024-01", "for 2024-01 under"),
        ("score --from 2024-02 --to 2024-01", "before it begins"),
        ("score --from 2024-01 --to 2999-01", "2999-01 is not over yet"),
        ("run --month 2999-01", "2999-01 is not over yet"),
        ("run --month 2024-01 -s nope", "unknown source 'nope'"),
        ("run --month 2024-01 -m nope", "unknown model 'nope'"),
        ("backfill --from 2024-02 --to 2024-01", "before it begins"),
        ("backfill --from 2024-01 --to 2999-01", "2999-01 is not over yet"),
        ("import texts nothing.json --source x --month 2024-01", "there is no file or folder"),
        ("import texts . --source x", "say either --month YYYY-MM or --undated"),
        ("crawl --from 2024-01 --to=", "expected YYYY-MM"),
        ("import texts . --source x --month 2024-01 --undated", "say either --month"),
        ("import texts . --source x --month 2999-01", "2999-01 is not over yet"),
        ("sql values(1)", "nothing is published at"),
        ("sql", "give one statement"),
        ("sql x --file y", "give one statement"),
        ("sql --file nothing.sql", "cannot read nothing.sql: No such file"),
        ("export figures", "nothing is published at"),
        ("report", "nothing is published at"),
        ("deploy", "set PREFECT_API_URL to its address"),
        ("models show nope", "unknown model 'nope'"),
        ("models add mine org/model --cutoff 2024", "'2024' is not a month"),
        ("models add mine org/model --released yesterday", "released: "),
        ("models add control:zstd zstd", "control:zstd"),
    ],
)
def test_a_wrong_request_exits_with_2_and_does_nothing(
    tidemark: Tidemark, home: Path, command: str, says: str
) -> None:
    ran = tidemark(*command.split()).expect(2, out="")
    [line] = [line for line in ran.err.splitlines() if line.strip()]
    assert line.startswith("error: ")
    assert says in line
    files = [path for path in home.rglob("*") if path.is_file()] if home.exists() else []
    assert files == []


@pytest.mark.parametrize(
    "command",
    [
        "nope", "crawl --limit 0", "crawl --limit many", "score --context 1", "score --stride 0",
        "sql x --format xml", "export", "export figures --format json",
        "land", "land losses", "backfill --from 2024-01",
        "import", "import texts x --month 2024-01",
        "import texts x --source s --undated --format xml",
        "models",
        "--nope",
    ],
)  # fmt: skip
def test_what_cannot_be_parsed_exits_with_2(tidemark: Tidemark, command: str) -> None:
    assert tidemark(*command.split()).code == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("home", " "), ("batch_tokens", "0"), ("models", "a,b"), ("request_interval_s", "-1")],
)
def test_a_bad_setting_exits_with_2_and_is_named(tidemark: Tidemark, name: str, value: str) -> None:
    ran = tidemark("sources", "list", **{name: value}).expect(2)
    assert name in ran.err.lower()


def test_help_groups_the_commands_by_what_a_person_wants(tidemark: Tidemark) -> None:
    titles = re.findall(r"^╭─ (.+?) ─+╮$", tidemark("--help").out, re.MULTILINE)
    panels = ["Start", "Collect text", "Score models", "Other instruments", "Ask", "Operate"]
    assert titles == ["Options", *panels, "Trust"]


def test_help_of_all_fits_two_screens(process: Tidemark, environment: dict[str, str]) -> None:
    environment["COLUMNS"] = "80"
    lines = process("--help").expect(0, out=None).out.splitlines()
    assert len(lines) <= 2 * 40
    assert max(map(len, lines)) <= 80
    folded = [line for line in lines if re.match(r"│ {9,}\S", line)]
    assert all(line in _options_of(lines) for line in folded), "a command needs a second line"


def _options_of(lines: list[str]) -> list[str]:
    end = next(index for index, line in enumerate(lines) if line.startswith("╰"))
    return lines[:end]


@pytest.mark.parametrize("command", ["", *commands()])
def test_help_tells_more_than_the_name(tidemark: Tidemark, command: str) -> None:
    ran = tidemark(*command.split(), "--help").expect(0)
    assert "Usage: " in ran.out
    assert len(ran.out.split()) > 20


def test_listings(tidemark: Tidemark, home: Path) -> None:
    assert tidemark("--version").out.strip()[0].isdigit()
    table = tidemark("sources", "list", COLUMNS="100").out.splitlines()
    assert max(map(len, table)) <= 100
    assert len(table) == len(json.loads(tidemark("sources", "list", "--json").out)) + 5  # no folds
    assert "Hacker News" in tidemark("sources", "show", "hackernews").out
    tidemark("sources", "show", "bcc").expect(2, "unknown source")
    facts = json.loads(tidemark("sources", "list", "--json").out)
    sources = {each["source"]: each for each in facts}
    assert sources["wikipedia_new"]["sites"]["wikipedia"] == "https://en.wikipedia.org"
    assert sources["hackernews"]["stands_in_for"] == "reddit"
    assert sources["manifold"]["kind"] == "questions"
    assert "default" in tidemark("protocols", "list").out
    assert "control:zstd" in tidemark("models", "list").out
    assert not home.exists()  # a listing creates nothing


def test_a_model_is_added_shown_and_replaced(tidemark: Tidemark) -> None:
    add = ("models", "add", "mine", "org/model", "--cutoff", "2023-04")
    assert tidemark(*add, "--released", "2023-06-01").out == "added mine\n"
    shown = tidemark("models", "show", "mine").out
    for part in ("org/model", "2023-04", "2023-06-01", "stated"):
        assert part in shown
    tidemark(*add).expect(2, "--replace")
    assert tidemark("models", "add", "mine", "org/other", "--replace").code == 0
    assert "org/other" in tidemark("models", "show", "mine").out


def test_a_model_behind_an_api_is_added(tidemark: Tidemark) -> None:
    add = ("models", "add", "asked", "https://api.example/v1", "--api")
    tidemark(*add).expect(2, "served_name")
    more = ("--served-name", "big-2", "--api-key", "mine", "--prices", "2.5", "10")
    assert tidemark(*add, *more, "--cutoff", "2023-04").code == 0
    shown = tidemark("models", "show", "asked").out
    for part in ("api", "https://api.example/v1", "big-2", "mine", "2.5", "10"):
        assert part in shown
    tidemark("models", "add", "other", "org/model", "--prices", "1", "2").expect(2, "kind api")


def test_names_of_strangers_are_no_markup(tidemark: Tidemark) -> None:
    assert tidemark("models", "add", "[red]x[/red]", "org/model").code == 0
    assert "[red]x[/red]" in tidemark("models", "list").out
    tidemark("models", "show", "[bold]").expect(2, "'[bold]'")


@pytest.mark.long
def test_crawl_score_sql_and_a_page_of_the_report(
    tidemark: Tidemark, home: Path, sites: Web
) -> None:
    sources = ("-s", "wikipedia_new", "-s", "hackernews")
    crawl = ("crawl", *sources, "--from", "2024-01", "--to", "2024-02")
    ran = tidemark(*crawl).expect(0)
    assert ran.out.splitlines() == [
        f"{source} {month}: 4 documents"
        for source in ("wikipedia_new", "hackernews")
        for month in ("2024-01", "2024-02")
    ]
    asked = len(sites.requests)
    assert tidemark(*crawl).code == 0
    assert len(sites.requests) == asked, "what is sealed was asked for again"
    [hackernews] = [
        each
        for each in json.loads(tidemark("sources", "list", "--json").out)
        if each["source"] == "hackernews"
    ]
    assert hackernews["sealed_months"] == ["2024-01", "2024-02"]
    assert (hackernews["last_sealed"], hackernews["last_outcome"]) == ("2024-02", "complete")

    tidemark("score", "-m", "control:zstd", "-m", "control:gzip").expect(0, out="8 cells landed\n")
    published = (home / "warehouse.duckdb").stat().st_mtime_ns
    assert tidemark("score", "-m", "control:zstd").out == "0 cells landed\n"
    assert (home / "warehouse.duckdb").stat().st_mtime_ns == published, "nothing is new"

    sql = "select source, month, num_documents from monthly_loss where model = 'control:zstd'"
    rows = json.loads(tidemark("sql", sql, "--format", "json").out)
    assert len(rows) == 4
    assert {"source": "hackernews", "month": "2024-02-01", "num_documents": 4} in rows

    # All pages are written by `tidemark run`, in tests/instruments/test_runs.py.
    ran = tidemark("report", "--page", "compare").expect(0)
    assert (home / "report" / "compare.html").stat().st_size > 1000
    assert str(home / "warehouse.duckdb") in ran.out


def test_one_source_that_fails_does_not_stop_the_others(
    tidemark: Tidemark, home: Path, sites: Web
) -> None:
    sites.faults.append(Fault("status", "wikipedia", times=1000, status=404))
    ran = tidemark("crawl", "-s", "wikipedia_new", "-s", "hackernews", "--month", "2024-03")
    assert ran.code == 1
    assert ran.out == "hackernews 2024-03: 4 documents\n"
    assert "failed: wikipedia_new 2024-03: " in ran.err
    sealed = [str(seal.partition) for seal in list_sealed(Store(str(home)))]
    assert sealed == ["hackernews 2024-03"]


def test_import_of_texts_of_ones_own(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "texts.json"
    file.write_text(json.dumps(["a text of some length, " * 5, "", "short", "another one. " * 9]))
    command = ("import", "texts", file, "--source", "notes", "--month", "2024-05")
    ran = tidemark(*command)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == ["notes 2024-05: 2 documents", "dropped: 1 empty, 1 too_short"]
    [seal] = list_sealed(Store(str(home)))
    assert (seal.partition.source, seal.partition.month) == ("notes", Month("2024-05"))
    file.write_text(json.dumps(["quite another text, " * 5]))
    tidemark(*command).expect(1, "use --replace")
    assert tidemark(*command, "--replace").out == "notes 2024-05: 1 document\n"


@pytest.mark.long
def test_undated_texts_are_scored_too(tidemark: Tidemark, tmp_path: Path) -> None:
    file = tmp_path / "texts.json"
    file.write_text(json.dumps(["a text of some length, " * 5]))
    assert tidemark("import", "texts", file, "--source", "book", "--undated").code == 0
    assert tidemark("score", "-m", "control:zstd").out == "1 cell landed\n"
    ran = tidemark("sql", "select source, month from internal.landed_cells", "--format", "json")
    assert json.loads(ran.out) == [{"source": "book", "month": None}]


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Land and publish two documents a month, once for all tests here; only copy the data root."""
    home = tmp_path_factory.mktemp("landed")
    months = [dt.date(2024, 1 + index % 6, 1) for index in range(12)]
    rows = [loss_row("foreign", "news", month, f"d{n}") for n, month in enumerate(months)]
    publish_rows(Settings(home=str(home)), rows)
    return home


@pytest.fixture
def published(landed: Path, home: Path) -> Path:
    shutil.copytree(landed, home)
    return home / "warehouse.duckdb"


QUERY = "select month, num_bytes, nll_nats from monthly_loss order by month limit 2"


@pytest.mark.long
def test_a_file_has_what_a_pipe_gets(tidemark: Tidemark, published: Path, tmp_path: Path) -> None:
    piped = pq.read_table(io.BytesIO(tidemark("sql", QUERY, "--format", "parquet").raw))
    assert piped["num_bytes"].to_pylist() == [40, 40]
    assert "2024-02-01" in tidemark("sql", QUERY).out
    for format in ("csv", "json", "parquet"):
        file = tmp_path / f"out.{format}"
        ran = tidemark("sql", QUERY, "--format", format, "--output", file)
        assert (ran.code, ran.raw) == (0, b"")
        assert file.read_bytes() == tidemark("sql", QUERY, "--format", format).raw


REFUSED = [
    "insert into models (model) values ('x')", "update chunk_losses set nll_nats = 0",
    "delete from chunk_losses", "truncate chunk_losses", "create table mine as select 1",
    "create view monthly_loss as select 1",
    "create or replace macro train_test_gap_at(d) as table select 1",
    "alter table models add column x integer", "drop table models",
    "copy models to 'FOLDER/leak.csv'", "copy (select 1) to '/dev/stdout'",
    "copy models from '/etc/passwd'", "export database 'FOLDER/leak'",
    "import database 'FOLDER/leak'", "attach 'FOLDER/other.duckdb'",
    "attach 'HOME/work/writer.duckdb' as writer", "install httpfs", "load httpfs",
    "set enable_external_access = true", "set lock_configuration = false", "reset threads",
    "pragma threads = 1", "pragma enable_profiling",
    "create secret (type s3, key_id 'x', secret 'y')", "from read_csv('/etc/passwd')",
    "from read_text('/etc/passwd')", "from read_blob('HOME/work/writer.duckdb')",
    "from '/etc/passwd'", "from glob('/etc/*')", "from query('drop table models')",
    "with gone as (delete from models returning *) from gone", "explain analyze delete from models",
    "select 1; delete from models", "select getenv('HOME')", "select error('late')",
]  # fmt: skip


@pytest.mark.long
def test_queries_read_and_do_nothing_else(
    tidemark: Tidemark, published: Path, home: Path, tmp_path: Path
) -> None:
    def state() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    before = state()
    refused = [
        query.replace("FOLDER", str(tmp_path)).replace("HOME", str(home)) for query in REFUSED
    ]
    with opened(published) as connection:
        for query in refused:
            with pytest.raises(UsageError, match="^(the warehouse refused|expected one)") as error:
                run_statement(connection, query).read_all()
            assert "root:" not in str(error.value), query
    assert state() == before
    for query in refused[:3]:
        ran = tidemark("sql", query, "--format", "csv").expect(2, out="")
        assert ran.err.startswith("error: the warehouse refused the query: "), query
    assert state() == before


LOOKS = [
    "show tables", "describe monthly_loss", "summarize models", "explain select 1",
    "from train_test_gap_at(date '2024-03-01')", "values (1);", "select 1 -- why",
]  # fmt: skip


@pytest.mark.long
def test_looking_around_is_reading(tidemark: Tidemark, published: Path) -> None:
    for query in LOOKS:
        ran = tidemark("sql", query, "--format", "json").expect(0)
        assert len(json.loads(ran.out)) >= 1, query


@pytest.mark.slow
def test_queries_need_no_right_to_write(
    tidemark: Tidemark, published: Path, home: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "copy"
    elsewhere.mkdir()
    (elsewhere / "warehouse.duckdb").write_bytes(published.read_bytes())
    assert tidemark("sql", QUERY, at=elsewhere).code == 0
    assert [path.name for path in elsewhere.iterdir()] == ["warehouse.duckdb"]


def test_streams_and_exit_codes_of_a_process(
    process: Callable[..., Any], tidemark: Tidemark, published: Path, tmp_path: Path
) -> None:
    good = process("sql", QUERY, "--format", "csv")
    assert (good.code, good.err) == (0, "")
    assert good.out.count("\n") == 3
    wrong = process("sql", "from nowhere")
    assert (wrong.code, wrong.raw) == (2, b"")
    assert wrong.err.startswith("error: the warehouse refused the query: ")
    failed = tidemark("land", "losses", tmp_path / "missing.parquet").expect(
        1, out="0 of 1 file landed\n"
    )
    assert failed.err.startswith("failed: ")


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error_worth_a_word(
    environment: dict[str, str], published: Path
) -> None:
    command = [TIDEMARK, "sql", "select i from range(1000000) t(i)", "--format", "csv"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == b"i\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize("option", ["--figures=charts", "--with-sql"])
def test_files_beside_the_site_need_an_extra(
    option: str, tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.query.import_parts", lambda part: ())
    tidemark("report", option).expect(2, "needs extras/report_files, and that folder is missing")
