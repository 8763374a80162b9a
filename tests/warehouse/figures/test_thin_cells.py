"""A thin cell takes no figure over many cells away: each public view, with and without the cell."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from tests.losses import loss_row
from warehouse.database.schema import describe_view, is_macro, list_views, qualify
from warehouse.database.writer import connected
from warehouse.estimates.estimate import estimate
from warehouse.land.losses import open_warehouse
from warehouse.read.query import run_statement

pytestmark = pytest.mark.slow

FIRST = Month("2022-01")
NUM_MONTHS = 16
CUTOFFS = {"early": 6, "late": 9}  # positions of the last months of training
MODELS = (*CUTOFFS, "control:zstd")
GAP = 0.2
THIN = (FIRST + 4).first_day
# Figures of a single month or document: a thin month may have none.
OF_A_MONTH = (
    "monthly_loss", "monthly_rank", "month_difficulty", "rise_after_cutoff", "worst_documents",
)  # fmt: skip
# The order and the intervals over documents of all sources; a diary changes the first.
OF_ALL_SOURCES = ("headline",)
Rows = list[dict[str, Any]]


def healthy() -> Rows:
    rng = np.random.default_rng(0)
    rows = []
    for source in ("blog", "news"):
        for position in range(NUM_MONTHS):
            shock = rng.normal(0, 0.01)
            for number in range(4):
                hard = rng.normal(0, 0.1)
                size = int(rng.integers(80, 300))
                for model in MODELS:
                    gap = GAP if position > CUTOFFS.get(model, NUM_MONTHS) else 0
                    rate = 2 + gap + shock + hard + rng.normal(0, 0.01)
                    row = loss_row(
                        model, source, (FIRST + position).first_day,
                        f"{source}-{position}-{number}", nll_nats=rate * size * math.log(2),
                        num_bytes=size, num_chars=size,
                    )  # fmt: skip
                    rows.append(row)
    return rows


def is_first(row: dict[str, Any]) -> bool:
    return str(row["document_id"]).endswith("-0")


def with_one_document(rows: Rows) -> Rows:
    """Leave one document in a month of a source."""
    return [row for row in rows if (row["source"], row["month"]) != ("blog", THIN) or is_first(row)]


def with_one_document_of_a_model(rows: Rows) -> Rows:
    cell = ("early", "blog", THIN)
    return [
        row for row in rows if (row["model"], row["source"], row["month"]) != cell or is_first(row)
    ]


def with_a_diary(rows: Rows) -> Rows:
    """Add a source with one document in every month."""
    return rows + [
        {**row, "source": "diary"} for row in rows if row["source"] == "blog" and is_first(row)
    ]


def position(row: dict[str, Any]) -> int:
    return Month.of(row["month"]).months_since(FIRST)


def with_a_late_source(num_months: int) -> Callable[[Rows], Rows]:
    """Add a source that has the last months alone."""

    def add(rows: Rows) -> Rows:
        return rows + [
            {**row, "source": "late"}
            for row in rows
            if row["source"] == "blog" and position(row) >= NUM_MONTHS - num_months
        ]

    return add


def with_ten_times_the_documents(rows: Rows) -> Rows:
    """Repeat the documents of the later half nine times, under other names."""
    return rows + [
        {**row, "document_id": f"{row['document_id']}-again-{number}"}
        for row in rows
        for number in range(9)
        if position(row) >= NUM_MONTHS // 2
    ]


def with_a_late_model(rows: Rows) -> Rows:
    """Add a model of unknown cutoff that has the last months alone; drop one loss of another."""
    cell = ("early", "blog", THIN)
    kept = [
        {**row, "nll_nats": None, "reason": "dropped"}
        if (row["model"], row["source"], row["month"]) == cell and is_first(row)
        else row
        for row in rows
    ]
    return kept + [
        {**row, "model": "new"} for row in rows if row["model"] == "late" and position(row) >= 11
    ]


def with_a_month_that_fails(rows: Rows) -> Rows:
    """Leave one model's month without a finite loss."""
    cell = ("early", "blog", THIN)
    return [
        {**row, "nll_nats": math.nan, "reason": "non_finite"}
        if (row["model"], row["source"], row["month"]) == cell
        else row
        for row in rows
    ]


def read_views(home: Path, rows: Rows) -> dict[str, Rows]:
    settings = Settings(home=str(home))
    facts = [
        {
            "name": model, "cutoff": (FIRST + cutoff).first_day, "cutoff_provenance": "planted",
            "released": (FIRST + cutoff + 1).first_day,
        }
        for model, cutoff in CUTOFFS.items()
    ]  # fmt: skip
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist(rows, schema=LOSSES), "world")
        warehouse.upsert_models(facts)
    found = {}
    with connected(settings) as connection:
        connection.begin()
        estimate(connection)
        for view, file in list_views().items():
            if not describe_view(file).is_internal and not is_macro(file):
                table = run_statement(connection, f"from {qualify(view)}").read_all()
                found[view] = table.to_pylist()
        connection.rollback()
    return found


def figures(found: dict[str, Rows]) -> dict[tuple[Any, ...], float]:
    kept = {}
    for view, rows in found.items():
        grain = describe_view(list_views()[view]).grain
        for row in rows:
            key = tuple(row[name] for name in grain)
            for column, value in row.items():
                if isinstance(value, float) and column not in grain:
                    kept[view, column, *key] = value
    return kept


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Any, ...], float]:
    return figures(read_views(tmp_path_factory.mktemp("healthy"), healthy()))


@pytest.mark.parametrize("change", [with_one_document, with_one_document_of_a_model, with_a_diary])
def test_a_thin_cell_empties_no_figure_over_many(
    tmp_path: Path, base: dict[tuple[Any, ...], float], change: Callable[[Rows], Rows]
) -> None:
    found = read_views(tmp_path, change(healthy()))
    left = figures(found)
    lost = {key for key in base if key not in left and key[0] not in OF_A_MONTH}
    if change is with_a_diary:  # documents of a diary say nothing about others
        lost = {key for key in lost if not key[1].endswith("_documents")}
        lost = {key for key in lost if key[0] not in OF_ALL_SOURCES}
    if change is with_one_document_of_a_model:  # it has too few of the month's documents
        lost = {key for key in lost if key[0] != "suspected_contamination"}
    assert sorted(lost, key=repr) == []


@pytest.mark.parametrize(
    "change",
    [
        with_a_late_source(3),
        with_a_late_source(7),
        with_ten_times_the_documents,
        with_a_late_model,
    ],
)
def test_what_is_added_empties_no_figure(
    tmp_path: Path, base: dict[tuple[Any, ...], float], change: Callable[[Rows], Rows]
) -> None:
    """Formerly a late source left the mean of all sources without an interval, or a slope."""
    left = figures(read_views(tmp_path, change(healthy())))
    lost = {key for key in base if key not in left and key[0] not in OF_A_MONTH}
    if change is with_a_late_model:  # what is compared begins with its first month
        lost = {key for key in lost if key[0] != "compared_cells"}
    assert sorted(lost, key=repr) == []


def test_a_month_that_fails_empties_figures_of_its_own_cell_alone(
    tmp_path: Path, base: dict[tuple[Any, ...], float]
) -> None:
    found = read_views(tmp_path, with_a_month_that_fails(healthy()))
    left = figures(found)
    lost = {key for key in base if key not in left and key[0] not in OF_A_MONTH}
    lost = {key for key in lost if THIN not in key}
    # Six months are the base of a decay. The other two are of models with the same months.
    lost = {key for key in lost if key[0] not in ("decay_by_horizon", "corpus_size")}
    lost = {key for key in lost if key[0] != "rank_stability"}
    lost = {key for key in lost if not (key[0] == "effect_difference" and "decay" in key)}
    assert sorted(lost, key=repr) == []
    decays = [row for row in found["decay_by_horizon"] if row["decay_pct"] is None]
    told = {row["reason"] for row in decays if (row["model"], row["source"]) == ("early", "blog")}
    assert told == {"5 months right before the release; 6 are needed"}


def test_the_gap_of_a_source_with_a_thin_month_is_as_planted(tmp_path: Path) -> None:
    rows = read_views(tmp_path, with_one_document(healthy()))["train_test_gap"]
    thin = [row for row in rows if row["source"] == "blog"]
    assert {row["model"] for row in thin} == set(CUTOFFS)
    for row in thin:
        assert row["bits_per_byte_gap_low"] < GAP < row["bits_per_byte_gap_high"]
        assert (
            row["bits_per_byte_gap_low_documents"] < GAP < row["bits_per_byte_gap_high_documents"]
        )
        assert row["p_value"] < 0.05
        assert row["reason"] is None


def test_each_missing_interval_has_a_reason(tmp_path: Path) -> None:
    found = read_views(tmp_path, with_a_diary(with_one_document(healthy()))[:-100])
    silent = [
        (view, row)
        for view, rows in found.items()
        for row in rows
        if any(value is None and "_low" in name for name, value in row.items())
        and not row.get("reason")
    ]
    assert [(view, tuple(row.values())[:4]) for view, row in silent] == []
