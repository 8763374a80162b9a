"""Public views that an analyst cannot misread: one kind of row, one meaning of a name."""

import csv
import math
import re
from pathlib import Path

import duckdb

from models.catalogue import list_shipped
from warehouse.database.comments import comments_of_view
from warehouse.database.materialised import list_materialised
from warehouse.database.reference import describe_all
from warehouse.database.schema import (
    describe_view,
    is_macro,
    list_tables,
    list_views,
    public_name,
    read_sql,
)

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "warehouse" / "reference"
PUBLIC = {
    public_name(name): describe_view(file)
    for name, file in list_views().items()
    if not describe_view(file).is_internal
}
# NULL of these keys is no mean over rows of the view: another column tells the two kinds of rows.
TOLD_BY = {
    "papers.instrument_correlation": "instrument",  # puzzles have no source
}
# Figures under the default protocol alone, or facts that no protocol changes. A question's
# difficulty is fitted from all protocols at once.
WITHOUT_PROTOCOL = {
    "compared_cells", "headline", "headline_at", "minima", "papers.loaded_scores",
    "simulated_sources", "source_months", "text_difference",
    "tokenizer_comparison", "training_ends",
}  # fmt: skip


def test_rows_of_a_mean_are_told_from_rows_of_one_source_or_level() -> None:
    for name, described in PUBLIC.items():
        open_keys = [
            key
            for key in ("source", "level", "kind")
            if key in described.grain and "not_null" not in described.columns[key].get("tests", ())
        ]
        if open_keys and name not in TOLD_BY:
            assert "scope" in described.columns, name
            assert "not_null" in described.columns["scope"].get("tests", ()), name
        elif open_keys:
            assert TOLD_BY[name] in described.grain, name


def test_the_comment_of_a_view_with_means_says_to_select_one_scope() -> None:
    entries = {name: text for name, _, column, text, *_ in describe_all() if column is None}
    for view in list_views():
        comment = next(comments_of_view(view))
        described = PUBLIC.get(public_name(view))
        has_means = described is not None and "scope" in described.columns
        assert ("Select one scope before you average" in comment) == has_means, view
        if described is not None:
            entry = entries[public_name(view)]
            assert ("Select one scope before you average" in entry) == has_means, view


def test_no_view_mixes_protocols() -> None:
    """A row is of one protocol, which is one of its keys."""
    assert {n for n, each in PUBLIC.items() if "protocol" not in each.grain} == WITHOUT_PROTOCOL


def test_accuracy_of_forecasts_is_that_after_the_cutoff() -> None:
    for name in {"forecast_accuracy", "papers.forecast_by_group"} & PUBLIC.keys():
        columns = PUBLIC[name].columns
        assert "after the cutoff" in columns["accuracy"]["description"], name
        assert "after the cutoff" in columns["num_questions"]["description"], name
        assert "before the cutoff" in columns["accuracy_of_all_questions"]["description"], name


def test_each_model_of_a_paper_that_is_named_is_one_of_the_catalogue() -> None:
    shipped = {entry.name for entry in list_shipped()}
    shipped |= {"control:flac", "control:png"}  # compressors of published rates alone
    with (REFERENCE / "names" / "published_models.csv").open(encoding="utf-8") as stream:
        names = list(csv.DictReader(stream))
    assert len(names) > 80
    assert [row for row in names if row["model"] not in shipped] == []
    for paper in {row["paper"] for row in names}:
        with (REFERENCE / f"{paper}.csv").open(encoding="utf-8") as stream:
            printed = {row["model"] for row in csv.DictReader(stream)}
        told = [row["printed_model"] for row in names if row["paper"] == paper]
        assert len(set(told)) == len(told), paper
        assert set(told) <= printed, paper


def test_ratios_are_those_of_sums() -> None:
    """The mean of the rates of a short and of a long chunk is not the rate of both."""
    with duckdb.connect() as connection:
        for name in ("bits_per_byte", "bits_per_char", "bits_per_token"):
            connection.execute(read_sql("macros", name))
            rows = "(values (ln(2) * 30.0, 10), (ln(2) * 90.0, 90), (null, 1000)) as r (nats, num)"
            sql = f"select {name}(nats, num) from {rows}"
            [(rate,)] = connection.execute(sql).fetchall()
            [(none,)] = connection.execute(f"{sql} where nats is null").fetchall()
            assert math.isclose(rate, 1.2, rel_tol=1e-12), name
            assert none is None, "without a loss there is no rate"


def test_the_dictionary_has_all_public_objects_with_meanings() -> None:
    rows = list(describe_all())
    kinds = {name: kind for name, kind, column, *_ in rows if column is None}
    assert PUBLIC.keys() <= kinds.keys()
    macros = {public_name(name) for name, file in list_views().items() if is_macro(file)}
    for name, kind, column, meaning, _, parameters in rows:
        assert meaning, (name, column)
        assert (kind == "macro") == bool(parameters), name
    assert {name for name in PUBLIC if kinds[name] == "macro"} == macros & PUBLIC.keys()
    assert kinds["bits_per_byte"] == "macro"
    assert len({(name, column) for name, _, column, *_ in rows}) == len(rows)


READS = re.compile(r"\b(?:internal|old|materialised)\.(\w+)")


def test_figures_of_the_site_read_public_views_or_kept_rows() -> None:
    """What a snapshot keeps as a table costs a reader no more than a public view."""
    kept = {*list_tables(), *list_materialised()}
    files = sorted((ROOT / "reports" / "site" / "queries").glob("*.sql"))
    assert len(files) > 50
    found = {file.stem: set(READS.findall(file.read_text("utf-8"))) - kept for file in files}
    assert {name: read for name, read in found.items() if read} == {}


def test_views_use_no_function_that_older_clients_lack() -> None:
    """DuckDB 1.5's own client reads the snapshot; it has no function ``if``."""
    using = [
        name
        for name, file in list_views().items()
        if re.search(r"\bif\(", file.read_text(encoding="utf-8"))
    ]
    assert using == []
