"""Hints on statements that give no row: which view, which model, why, and what to do."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from core.month import Month, month_range
from core.settings import Settings
from tests.losses import loss_row, publish_rows
from tests.tiers import needs_extra
from warehouse.read.empty import explain_empty
from warehouse.read.query import connect_to_read


@pytest.fixture(scope="module")
def connection(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[duckdb.DuckDBPyConnection]:
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    months = list(month_range(Month("2024-01"), Month("2024-06")))
    rows = [
        loss_row(model, "news", month.first_day, f"{month} {number}")
        for model in ("org/it's", "control:zstd")
        for month in months
        for number in range(2)
    ]
    with connect_to_read(Path(publish_rows(settings, rows))) as connection:
        yield connection


@pytest.mark.parametrize(
    ("sql", "hints"),
    [
        (
            "from train_test_gap where model = 'org/it''s'",
            ["train_test_gap leaves out org/it's: cutoff unknown; state it: `tidemark models edit"],
        ),
        (
            "select * from main.train_test_gap where model in ('control:zstd')",
            ["train_test_gap leaves out control:zstd: compressor; compressors have no cutoff"],
        ),
        (
            "FROM train_test_gap",
            [
                "train_test_gap leaves out control:zstd: compressor",
                "train_test_gap leaves out org/it's: cutoff unknown",
            ],
        ),
        ("from train_test_gap where model = 'other'", ["no losses or answers of a model other"]),
        ("from monthly_loss where source = 'x'", ["monthly_loss has 12 rows, and none meets"]),
        (
            "from train_test_gap_at(date '2024-03-01') where source = 'x'",
            ["train_test_gap_at(date '2024-03-01') has 4 rows, and none meets the conditions"],
        ),
        ("from models, train_test_gap_at(cutoff) where false", []),
        (
            "from scylla_scores",
            ["scylla_scores has no rows; `tidemark scylla run` (extra `scylla`) has models"],
        ),
        pytest.param(
            "from papers.scylla_divergence",
            ["papers.scylla_divergence has no rows; `tidemark scylla run -m MODEL --prompt mixed"],
            marks=needs_extra("papers"),
        ),
        pytest.param(
            "from papers.scylla_probes",
            ["papers.scylla_probes has no rows; `tidemark scylla run -m MODEL -p add"],
            marks=needs_extra("papers"),
        ),
        (
            "from monthly_loss where model = 'control:zsdt'",
            ["no losses or answers of a model control:zsdt are landed; did you mean control:zstd?"],
        ),
        pytest.param(
            "from tasks.task_gap",
            ["tasks.task_gap has no rows; `tidemark tasks make` and `tidemark tasks answer`"],
            marks=needs_extra("real_tasks"),
        ),
        pytest.param(
            "from papers.loaded_scores",
            ["papers.loaded_scores has no rows; `tidemark land benchmarks FILE`"],
            marks=needs_extra("papers"),
        ),
        pytest.param(
            "from papers.corpus_rank",
            ["papers.corpus_rank has no rows; `tidemark import texts FILE --undated`, then"],
            marks=needs_extra("papers"),
        ),
        pytest.param(
            "from papers.scylla_human_difficulty",
            ["papers.scylla_human_difficulty has no rows; `tidemark land ratings FILE`"],
            marks=needs_extra("papers"),
        ),
        ("select 1 where false", []),
    ],
)
def test_an_empty_result_has_a_reason(
    connection: duckdb.DuckDBPyConnection, sql: str, hints: list[str]
) -> None:
    found = explain_empty(connection, sql)
    left_out = [line for line in found if not line.startswith("all reasons: ")]
    assert len(left_out) == len(hints), found
    for line, beginning in zip(left_out, hints, strict=True):
        assert line.startswith(beginning)
    is_left_out = any("leaves out" in line for line in found)
    assert is_left_out == ("all reasons: `from unmeasured where left_out_of =" in "".join(found))
