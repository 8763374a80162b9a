"""Every view against hand-computed figures: ``views/<view>/<case>/{<table>.csv, expect.csv}``.

``chunk_losses.csv`` may give ``bits`` for ``nll_nats``; ``query.sql`` stands for ``from <view>``.
``expect.csv`` lists the columns that can be computed by hand.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from core.schemas import LOSSES
from core.settings import Settings
from warehouse.dimensions import DIMENSIONS
from warehouse.land import open_warehouse
from warehouse.publish import publish
from warehouse.query import query
from warehouse.schema import ViewDescription, describe_view, list_tables, list_views
from warehouse.writer import connected

VIEWS = Path(__file__).parent / "views"
# What table macros take that do not take a date.
ARGUMENTS = dict.fromkeys(
    ["comparable_cells_at", "consecutive_ranks_at", "mean_rank_pairs_at", "monthly_rank_at"], "[]"
)
ARGUMENTS |= {
    "forecast_benchmark_correlation_at": "3", "forecast_bins_at": "'null'", "forecast_peak_at": "3",
    "forecast_tbi_at": "'null'",
}  # fmt: skip
PROVENANCE = """
    update landed_cells as cells
    set partition_digest = rows.partition_digest, partition_version = rows.partition_version
    from rows
    where cells.model = rows.model and cells.source = rows.source and cells.month = rows.month
"""
_HOMES: dict[tuple[str, ...], tuple[Settings, Path]] = {}
CASES = sorted(folder for folder in VIEWS.glob("*/*") if folder.is_dir())


def build(case: Path, settings: Settings) -> Path:
    """Land a case's tables and publish them; return the snapshot."""
    losses = case / "chunk_losses.csv"
    with open_warehouse(settings) as warehouse:
        if losses.exists():
            warehouse.land_losses(read_losses(losses), case.name)
    with connected(settings) as connection:
        for file in sorted(case.glob("*.csv")):
            if file.stem in set(list_tables()) - {"chunk_losses"}:
                connection.register("rows", read_table(file))
                if file.stem == "landed_cells":  # landing has made them; a case says of which text
                    connection.execute(PROVENANCE)
                    continue
                if file.stem in DIMENSIONS:  # landing has named them; a case says more of them
                    key = DIMENSIONS[file.stem].names[0]
                    connection.execute(
                        f"delete from {file.stem} where {key} in (select {key} from rows)"
                    )
                connection.execute(f"insert into {file.stem} by name select * from rows")
                connection.unregister("rows")
    return Path(publish(settings))


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
    return file.read_text(encoding="utf-8") if file.exists() else f"from {case.parent.name}"


def matches(got: object, expected: str) -> bool:
    if got is None or expected == "":
        return got is None and expected == ""
    if isinstance(got, float):
        return math.isclose(got, float(expected), rel_tol=1e-9, abs_tol=1e-9)
    return str(got) == expected


def assert_expected(case: Path, rows: list[dict[str, Any]]) -> None:
    with (case / "expect.csv").open(encoding="utf-8") as stream:
        expected = list(csv.DictReader(stream))
    left = list(rows)
    for wanted in expected:
        found = [r for r in left if all(matches(r[name], wanted[name]) for name in wanted)]
        assert found, f"no row {wanted} among {left}"
        left.remove(found[0])
    assert not left, f"rows that were not expected: {left}"


def assert_as_described(description: ViewDescription, table: pa.Table) -> None:
    """Check names, the grain, and the tests of each column in a view's ``.yml``."""
    assert table.column_names == list(description.columns)
    rows = table.to_pylist()
    keys = [tuple(row[name] for name in description.grain) for row in rows]
    assert len(set(keys)) == len(keys), "the grain is not unique"
    for name, column in description.columns.items():
        assert column["description"]
        for test in column.get("tests", []):
            for value in (row[name] for row in rows):
                assert_column_test(test, value, name)


def assert_column_test(test: str | dict[str, float], value: Any, name: str) -> None:
    if test == "not_null":
        assert value is not None, f"{name} is NULL"
    elif value is not None:
        assert isinstance(test, dict)
        assert test.keys() <= {"min", "max"}, f"{name}: unknown test {test}"
        assert test.get("min", -math.inf) <= value <= test.get("max", math.inf), f"{name}={value}"


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Settings, Path]:
    """A case, landed and published once for all cases of the same rows: settings and snapshot."""
    case: Path = request.param
    rows = tuple(
        f"{p.name}:{p.read_text()}" for p in sorted(case.glob("*.csv")) if p.stem != "expect"
    )
    if rows not in _HOMES:
        settings = Settings(home=str(tmp_path_factory.mktemp("home")))
        _HOMES[rows] = settings, build(case, settings)
    return case, *_HOMES[rows]


def test_view(built: tuple[Path, Settings, Path]) -> None:
    case, settings, _ = built
    table = query(settings, statement(case))
    assert_expected(case, table.to_pylist())
    name = case.parent.name
    argument = ARGUMENTS.get(name, "date '2024-02-01'")
    call = f"{name}({argument})" if name.endswith("_at") else name
    assert_as_described(describe_view(list_views()[name]), query(settings, f"from {call}"))


def test_every_view_has_a_case_and_a_description() -> None:
    assert {case.parent.name for case in CASES} == set(list_views())
    for file in list_views().values():
        description = describe_view(file)
        assert description.description.endswith(".")
        assert file.read_text(encoding="utf-8").startswith("-- ")
        assert set(description.grain) <= set(description.columns)


@pytest.mark.slow
def test_view_in_the_plain_client(built: tuple[Path, Settings, Path], client: Path) -> None:
    case, settings, snapshot = built
    command = [client, "-readonly", "-json", "-init", "/dev/null", snapshot, "-c", statement(case)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(answer.stdout)
    ours = query(settings, statement(case)).to_pylist()
    assert len(rows) == len(ours)
    for row in ours:
        assert any(all(same(other[name], row[name]) for name in row) for other in rows), row


def same(theirs: object, ours: object) -> bool:
    """Whether a JSON value of the client is a value of ours."""
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
