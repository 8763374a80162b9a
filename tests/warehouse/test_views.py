"""Every view against hand-computed figures: ``views/<view>/<case>/{<table>.csv, expect.csv}``.

``chunk_losses.csv`` may give ``bits`` for ``nll_nats``; ``query.sql`` stands for ``from <view>``.
``expect.csv`` lists the columns that can be computed by hand.
"""

import csv
import datetime as dt
import json
import math
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from core.plugins import list_folders
from core.schemas.tables import LOSSES
from core.settings import Settings
from core.storage.store import Store
from tests.warehouse.reasons import is_never_null, lower_ends, reason_of, silent_rows, upper_end
from tests.warehouse.relations import all_read_by, relations_of
from warehouse.database.materialised import list_materialised, materialise
from warehouse.database.schema import (
    ESTIMATES,
    MATERIALISED,
    ViewDescription,
    describe_view,
    is_macro,
    list_tables,
    list_views,
    public_name,
    qualify,
    read_view,
)
from warehouse.database.writer import connected, transaction
from warehouse.estimates.estimate import estimate
from warehouse.land.cells import DIMENSIONS
from warehouse.land.losses import Warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query, run_statement

ROOT = Path(__file__).resolve().parents[2]
VIEWS = Path(__file__).parent / "views"
# Arguments of table macros that take no date.
ARGUMENTS = dict.fromkeys(
    ["comparable_cells_at", "consecutive_ranks_at", "mean_rank_pairs_at", "monthly_rank_at"], "[]"
)
ARGUMENTS |= {
    "detectable_gap_at": "0", "forecast_benchmark_correlation_at": "3",
    "forecast_bins_at": "'null'", "forecast_peak_at": "3",
    "forecast_tbi_at": "'null'",
    "headline_at": "null, null", "headline_figures_at": "null, null, 'new'",
    "headline_intervals_at": "null, null, 'new'", "compared_cells_at": "null, null, 'new'",
    "month_difference_at": "[]", "monthly_loss_by_kind_at": "'papers'", "smoothed_curves_at": "3",
}  # fmt: skip
PROVENANCE = """
    update internal.landed_cells as cells
    set partition_digest = rows.partition_digest, partition_version = rows.partition_version
    from rows
    where cells.model = rows.model and cells.source = rows.source and cells.month = rows.month
"""
DEAR = {"decay_figures"}
DETAILS = "_details"  # ends the name of a view with every column of the public one
_HOMES: dict[tuple[str, ...], tuple[Settings, Path]] = {}
FOLDERS = [VIEWS, *list_folders("tests/views")]
CASES = sorted(case for folder in FOLDERS for case in folder.glob("*/*") if case.is_dir())


def build(case: Path, settings: Settings) -> Path:
    """Land and publish a case; return the path of the snapshot."""
    with connected(settings) as connection:
        land(case, Warehouse(connection, Store(settings.home)), connection)
    return Path(publish(settings))


def land(case: Path, warehouse: Warehouse, connection: duckdb.DuckDBPyConnection) -> None:
    """Land the losses of a case, and insert its other rows."""
    losses = case / "chunk_losses.csv"
    if losses.exists():
        warehouse.land_losses(read_losses(losses), case.name)
    for file in sorted(case.glob("*.csv")):
        if file.stem in set(list_tables()) - {"chunk_losses"}:
            connection.register("rows", read_table(file))
            if file.stem == "landed_cells":  # landing has made them; a case says of which text
                connection.execute(PROVENANCE)
                continue
            table = qualify(file.stem)
            if key := DIMENSIONS.get(file.stem):  # landing has named them; a case says more
                named = f"{key} in (select {key} from rows)"
                connection.execute(f"delete from {table} where {named}")
            connection.execute(f"insert into {table} by name select * from rows")
            connection.unregister("rows")


class Database:
    """One warehouse for all cases of this process, kept open, with the rows of one case at a time.

    To make, open or publish a database costs more than most cases: DuckDB reads all views. As in a
    snapshot, materialised views have tables of rows. Those that a case reads are computed for it.
    """

    def __init__(self, settings: Settings, connection: duckdb.DuckDBPyConnection) -> None:
        self._warehouse = Warehouse(connection, Store(settings.home))
        self._connection = connection
        self._rows: tuple[str, ...] | None = None
        self._at_first = {name: self._read(name) for name in list_tables()}
        self._digests = self._digest_all()
        self._has_estimates = False
        self._kept: set[str] = set()
        self._keep_rows_of_views()

    def _keep_rows_of_views(self) -> None:
        """Let views read tables; the statements that compute the rows become other views."""
        with transaction(self._connection, "keep rows of views"):
            materialise(self._connection)
            self._connection.execute("create schema computing")
            for view in list_materialised():
                text = read_view(view)
                named = f"create or replace view {public_name(view)} as"
                assert named in text
                computing = text.replace(named, f"create view computing.{view} as")
                self._connection.execute(computing)

    def _read(self, table: str) -> pa.Table:
        return self._connection.table(qualify(table)).to_arrow_table()

    def fill(self, case: Path) -> None:
        """Hold the rows of a case and what its query reads of estimates and materialised views."""
        if self._rows != rows_of(case):
            self._rows = None
            self._empty()
            land(case, self._warehouse, self._connection)
            self._rows = rows_of(case)
        name = case.parent.name
        needed = relations_of(f"{statement(case)} {name} {name.removesuffix(DETAILS)}")
        if needed & set(ESTIMATES) and not self._has_estimates:
            self._keep(all_read_by("monthly_loss_details"))
            with transaction(self._connection, "estimate"):
                estimate(self._connection)
            self._has_estimates = True
        self._keep(needed)

    def _keep(self, needed: frozenset[str]) -> None:
        for view in list_materialised():
            if view in needed - self._kept:
                computed = f"insert into {MATERIALISED}.{view} from computing.{view}"
                self._connection.execute(computed)
                self._kept.add(view)

    def _empty(self) -> None:
        for view in self._kept:
            self._connection.execute(f"delete from {MATERIALISED}.{view}")
        self._kept = set()
        self._has_estimates = False
        for name, digest in self._digest_all().items():
            if digest == self._digests[name]:
                continue
            self._connection.execute(f"delete from {qualify(name)}")
            if self._at_first[name].num_rows:
                self._connection.register("rows", self._at_first[name])
                self._connection.execute(f"insert into {qualify(name)} by name from rows")
                self._connection.unregister("rows")

    def _digest_all(self) -> dict[str, tuple[int, int]]:
        """Return number and digest of the rows of each table."""
        parts = (
            f"select '{name}', count(*), bit_xor(hash(rows)) from {qualify(name)} as rows"
            for name in list_tables()
        )
        found = self._connection.execute(" union all ".join(parts)).fetchall()
        return {name: (num_rows, digest) for name, num_rows, digest in found}

    def query(self, sql: str) -> pa.Table:
        return run_statement(self._connection, sql).read_all()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    with connected(settings) as connection:
        yield Database(settings, connection)


def rows_of(case: Path) -> tuple[str, ...]:
    """Return what a case lands, by which cases of the same rows are known."""
    files = sorted(file for file in case.glob("*.csv") if file.stem != "expect")
    return tuple(f"{file.name}:{file.read_text()}" for file in files)


def read_table(file: Path) -> pa.Table:
    options = pa_csv.ConvertOptions(strings_can_be_null=True, null_values=[""])
    return pa_csv.read_csv(file, convert_options=options)


def read_losses(file: Path) -> pa.Table:
    with file.open(encoding="utf-8") as stream:
        rows = [losses_row(row) for row in csv.DictReader(stream)]
    return pa.Table.from_pylist(rows, schema=LOSSES)


def losses_row(row: dict[str, str]) -> dict[str, Any]:
    num_bytes = int(row["num_bytes"])
    return {
        "model": row["model"],
        "revision": "r1",
        "source": row["source"],
        "month": dt.date.fromisoformat(row["month"]) if row["month"] else None,
        "document_id": row["document_id"],
        "chunk_index": int(row["chunk_index"]),
        "protocol": row.get("protocol", "default"),
        "nll_nats": float(row["bits"]) * math.log(2) if row["bits"] else None,
        "num_tokens": int(row.get("num_tokens", num_bytes)),
        "num_chars": int(row.get("num_chars", num_bytes)),
        "num_bytes": num_bytes,
        "reason": row.get("reason") or None,
    }


def statement(case: Path) -> str:
    file = case / "query.sql"
    is_given = file.exists()
    return file.read_text("utf-8") if is_given else f"from {qualify(case.parent.name)}"


def matches(got: object, expected: str) -> bool:
    if got is None or expected == "":
        return got is None and expected == ""
    if isinstance(got, float):
        return math.isclose(got, float(expected), rel_tol=1e-9, abs_tol=1e-9)
    return str(got) == expected


def read_expected(case: Path) -> list[dict[str, str]]:
    with (case / "expect.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def assert_rows(rows: list[dict[str, Any]], expected: list[dict[str, str]]) -> None:
    left = list(rows)
    for wanted in expected:
        found = [r for r in left if all(matches(r[name], wanted[name]) for name in wanted)]
        assert found, f"no row {wanted} among {left}"
        left.remove(found[0])
    assert not left, f"rows that were not expected: {left}"


def assert_as_described(description: ViewDescription, table: pa.Table) -> None:
    assert table.column_names == list(description.columns)
    rows = table.to_pylist()
    keys = [tuple(row[name] for name in description.grain) for row in rows]
    assert len(set(keys)) == len(keys), "the grain is not unique"
    for name, column in description.columns.items():
        assert column["description"]
        for test in column.get("tests", []):
            for value in (row[name] for row in rows):
                assert_column_test(test, value, name)
    if not description.is_internal:
        assert silent_rows(description.columns, rows) == []


def assert_column_test(test: str | dict[str, float], value: Any, name: str) -> None:
    if test == "not_null":
        assert value is not None, f"{name} is NULL"
    elif value is not None:
        assert isinstance(test, dict)
        assert test.keys() <= {"min", "max"}, f"{name}: unknown test {test}"
        assert test.get("min", -math.inf) <= value <= test.get("max", math.inf), f"{name}={value}"


def home_of(case: Path, factory: pytest.TempPathFactory) -> tuple[Settings, Path]:
    """Land and publish a case, once for all cases of the same rows."""
    rows = rows_of(case)
    if rows not in _HOMES:
        settings = Settings(home=str(factory.mktemp("home")))
        _HOMES[rows] = settings, build(case, settings)
    return _HOMES[rows]


def name_of(case: Path) -> str:
    return f"{case.parent.name}-{case.name}"


def list_cases() -> Iterator[Any]:
    """Yield all cases; ``make test`` has two of each view of the kernel, one of the dear ones.

    Cases of the same rows follow each other: their rows are landed once.
    """
    left = Counter({case.parent.name: 1 if case.parent.name in DEAR else 2 for case in CASES})
    for case in sorted(CASES, key=rows_of):
        marks = [] if left[case.parent.name] > 0 else [pytest.mark.slow]
        if VIEWS not in case.parents:
            marks.append(pytest.mark.extra)
        yield pytest.param(case, marks=marks, id=name_of(case))
        left[case.parent.name] -= 1


@pytest.mark.long
@pytest.mark.parametrize("case", list(list_cases()))
def test_view(case: Path, database: Database) -> None:
    database.fill(case)
    asked = statement(case)
    table = database.query(asked)
    assert_rows(table.to_pylist(), read_expected(case))
    name = case.parent.name
    argument = ARGUMENTS.get(name, "date '2024-02-01'")
    call = f"{qualify(name)}({argument})" if name.endswith("_at") else qualify(name)
    description = describe_view(list_views()[name])
    has_all = table.column_names == list(description.columns)
    whole = table if has_all else database.query(f"from {call}")
    assert_as_described(description, whole)
    if name.endswith(DETAILS):
        assert_public_columns(case, database, name.removesuffix(DETAILS))


def assert_public_columns(case: Path, database: Database, name: str) -> None:
    description = describe_view(list_views()[name])
    table = database.query(f"from {qualify(name)}")
    assert_as_described(description, table)
    if not (case / "query.sql").exists():
        expected = [
            {column: row[column] for column in row if column in description.columns}
            for row in read_expected(case)
        ]
        assert_rows(table.to_pylist(), expected)


def test_every_view_has_a_case_and_a_description() -> None:
    tested = {case.parent.name for case in CASES}
    public = {name.removesuffix(DETAILS) for name in tested}
    assert tested <= set(list_views()) <= tested | public
    for file in list_views().values():
        description = describe_view(file)
        assert description.description.endswith(".")
        assert file.read_text(encoding="utf-8").startswith("-- ")
        assert set(description.grain) <= set(description.columns)


def test_a_public_view_has_at_most_16_columns_and_the_reason() -> None:
    files = {name: file for name, file in list_views().items() if not is_macro(file)}
    for name, each in zip(files, map(describe_view, files.values()), strict=True):
        assert each.is_internal or len(each.columns.keys() - {"reason"}) <= 16, name


def test_each_interval_has_a_reason_or_is_never_null() -> None:
    for name, file in list_views().items():
        description = describe_view(file)
        columns = description.columns
        is_public = not description.is_internal and not is_macro(file)
        for low in lower_ends(columns) if is_public else []:
            ends = (columns[low], columns[upper_end(low)])
            has_reason = reason_of(low, columns) is not None
            assert has_reason or all(is_never_null(end) for end in ends), f"{name}: {low}"


def test_headers_cite_headings_of_the_metrics() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^#+ (.+)$", page, re.MULTILINE))
    for file in (ROOT / "warehouse").rglob("*.sql"):
        for cited in re.findall(r"docs/metrics\.md \(([^)]+)\)", file.read_text(encoding="utf-8")):
            assert set(cited.split(", ")) <= headings, f"{file.name}: {cited}"


def test_two_views_in_the_plain_client(
    tmp_path_factory: pytest.TempPathFactory, client: Path
) -> None:
    case = next(case for case in CASES if case.parent.name.removesuffix(DETAILS) == "headline")
    settings, snapshot = home_of(case, tmp_path_factory)
    for view in ("headline", "control_adjusted_gap"):
        assert_same_in_the_client(f"from {qualify(view)}", settings, snapshot, client)
    shown = {row["name"] for row in ask_client(client, snapshot, "show tables")}
    views = {view for view, file in list_views().items() if not is_macro(file)}
    public = {name for name in {*views, *list_tables()} if qualify(name).startswith("main.")}
    assert shown == public


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_view_in_the_plain_client(
    case: Path, tmp_path_factory: pytest.TempPathFactory, client: Path
) -> None:
    settings, snapshot = home_of(case, tmp_path_factory)
    assert_same_in_the_client(statement(case), settings, snapshot, client)


def assert_same_in_the_client(sql: str, settings: Settings, snapshot: Path, client: Path) -> None:
    rows = ask_client(client, snapshot, sql)
    ours = query(settings, sql).to_pylist()
    assert len(rows) == len(ours)
    for row in ours:
        assert any(all(same(other[name], row[name]) for name in row) for other in rows), row


def ask_client(client: Path, snapshot: Path, sql: str) -> list[dict[str, Any]]:
    command = [client, "-readonly", "-json", "-init", "/dev/null", snapshot, "-c", sql]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


def same(theirs: object, ours: object) -> bool:
    if isinstance(ours, list):
        assert isinstance(theirs, list)
        return all(same(other, own) for other, own in zip(theirs, ours, strict=True))
    if isinstance(ours, dict):
        assert isinstance(theirs, dict)
        return all(same(theirs[name], value) for name, value in ours.items())
    if isinstance(ours, float):
        return isinstance(theirs, int | float) and math.isclose(
            theirs, ours, rel_tol=1e-12, abs_tol=1e-12
        )
    return theirs == (str(ours) if isinstance(ours, dt.date) else ours)
