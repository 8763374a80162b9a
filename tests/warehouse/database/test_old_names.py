"""Former names of views: aliases in schema ``old``."""

import duckdb
import pytest

from core.settings import Settings
from warehouse.database.schema import SNAPSHOT
from warehouse.database.writer import connected
from warehouse.read.query import query


@pytest.mark.long
def test_former_names_find_their_views(empty: Settings) -> None:
    view = query(empty, "from internal.source_mix")
    assert query(empty, "from source_mix") == view
    assert query(empty, "from old.source_mix") == view
    macro = query(empty, "from internal.control_adjusted_gap_at(date '2024-02-01')")
    assert query(empty, "from control_adjusted_gap_at(date '2024-02-01')") == macro
    with duckdb.connect(f"{empty.home}/{SNAPSHOT}", read_only=True) as plain:
        assert plain.sql("from old.source_mix").columns == view.column_names
        with pytest.raises(duckdb.CatalogException, match=r"internal\.source_mix"):
            plain.sql("from source_mix")


# Columns that a view had before it became part of another one.
FORMER = {
    "train_test_gap_overall": {"model", "protocol", "num_sources", "split_basis", "q_value"},
    "train_test_gap_overall_at(date '2024-02-01')": {"model", "num_sources", "expected_next_low"},
    "control_adjusted_gap_overall": {"model", "adjusted_gap", "compressor_reason", "num_documents"},
    "cutoff_registry": {"model", "source", "scope", "role", "stated_cutoff", "is_contradicted"},
    "decay_after_release": {"model", "decay_mean_pct", "decay_3_pct", "decay_12_pct_high"},
    "estimated_cutoff_by_source": {"model", "source", "detectable_change", "p_value"},
    "scylla_score_tests": {"model", "level", "score", "p_value"},
    "tbi_likelihood_overall": {"model", "num_sources", "num_months", "bias_slope"},
}


@pytest.mark.long
@pytest.mark.parametrize("relation", FORMER)
def test_a_view_that_became_rows_of_another_has_its_former_columns(
    empty: Settings, relation: str
) -> None:
    assert FORMER[relation] <= set(query(empty, f"from {relation}").column_names)


@pytest.mark.long
def test_a_view_of_main_becomes_an_alias_when_a_database_is_opened(settings: Settings) -> None:
    """A database of before has these objects in ``main``; its digest of definitions differs."""
    with connected(settings) as connection:
        connection.execute("create view train_test_gap_overall as select 1 as former")
        connection.execute("create macro train_test_gap_overall_at(day) as table select day")
        connection.execute("update internal.schema_version set definitions = 'of before'")
    with connected(settings) as connection:
        objects = connection.execute(
            "select schema_name from duckdb_views() where view_name = 'train_test_gap_overall' "
            "union all select schema_name from duckdb_functions() "
            "where function_name = 'train_test_gap_overall_at'"
        ).fetchall()
        columns = connection.sql("from old.train_test_gap_overall").columns
    assert objects == [("old",), ("old",)]
    assert FORMER["train_test_gap_overall"] <= set(columns)
