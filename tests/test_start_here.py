"""The questions of analysts: one list for the database, the guide, the site and its llms.txt."""

import math
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from benchmarks.write_guide import (
    ANALYSTS,
    MEASURED,
    lay_out,
    line_differences,
    printed_answers,
    with_questions,
)
from core.month import Month, month_range
from core.settings import Settings
from reports.site.build import opened_site
from reports.site.pages import data
from tests.losses import loss_row, publish_rows
from warehouse.database.questions import AnalystQuestion, list_analyst_questions
from warehouse.database.schema import describe_view, list_tables, list_views

QUESTIONS = list_analyst_questions()
GUIDE = ANALYSTS.read_text(encoding="utf-8")
PRINTED = printed_answers(GUIDE)
READ = re.compile(r"\b(?:from|join)\s+(\w+(?:\.\w+)?)")
Ask = Callable[[str], pa.Table]

each_question = pytest.mark.parametrize("asked", QUESTIONS, ids=lambda each: each.question)


def asking(settings: Settings, sql: str) -> pa.Table:
    """Ask as an analyst does: in plain DuckDB, on the published file."""
    path = Path(settings.home) / "warehouse.duckdb"
    with closing(duckdb.connect(str(path), read_only=True)) as connection:
        return connection.sql(sql).to_arrow_table()


def test_the_guide_prints_each_question_with_an_answer() -> None:
    assert with_questions(GUIDE) == GUIDE, "run python -m benchmarks.write_guide DEMO"
    for each in QUESTIONS:
        lines = PRINTED[each.query].splitlines()
        assert len(lines) >= 1, f"{each.question}: run python -m benchmarks.write_guide DEMO"
        assert (len(lines) == 1) == bool(each.is_empty), each.question


def test_each_query_reads_its_view_and_public_ones_alone() -> None:
    public = {name for name, schema in list_tables().items() if schema == "main"}
    public |= {n for n, file in list_views().items() if describe_view(file).schema == "main"}
    assert 40 <= len(QUESTIONS) <= 60
    assert len({each.question for each in QUESTIONS}) == len(QUESTIONS)
    for each in QUESTIONS:
        read = READ.findall(each.query)
        assert each.view in read, each.question
        assert set(read) <= public, each.question
        assert not each.query.rstrip().endswith(";"), each.question


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A model that loses half a bit per byte more after its cutoff, an old one, a compressor."""
    settings = Settings(home=str(tmp_path_factory.mktemp("planted")))
    months = list(month_range(Month("2023-01"), Month("2024-06")))
    bits = {"old": (2.0, 2.0), "new": (1.0, 1.5), "control:zstd": (4.0, 4.0)}
    rows = [
        loss_row(
            model, source, month.first_day, f"{month} {source} {number}",
            nll_nats=math.log(2) * 20 * levels[month > Month("2023-08")] * (1 + number / 100),
        )
        for model, levels in bits.items()
        for source in ("arxiv", "wikipedia_new")
        for month in months
        for number in (-1, 1)
    ]  # fmt: skip
    known = {"kind": "reference", "cutoff_provenance": "planted", "cutoff_precision": "month"}
    publish_rows(
        settings, rows,
        {"name": "old", "cutoff": Month("2022-12"), **known},
        {"name": "new", "cutoff": Month("2023-08"), **known},
    )  # fmt: skip
    return settings


@pytest.mark.long
def test_the_database_has_the_list_in_its_order(planted: Settings) -> None:
    rows = asking(planted, "from start_here").to_pylist()
    assert rows == [
        {"question": each.question, "query": each.query, "view": each.view} for each in QUESTIONS
    ]


@pytest.mark.long
def test_each_query_runs_and_has_the_columns_that_are_printed(planted: Settings) -> None:
    path = Path(planted.home) / "warehouse.duckdb"
    with closing(duckdb.connect(str(path), read_only=True)) as connection:
        for each in QUESTIONS:
            found = [column[0] for column in connection.execute(each.query).description]
            printed = PRINTED[each.query].partition("\n")[0]
            assert printed.split() == found, each.question


@pytest.mark.long
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which model is best overall?", [("new", 1.5), ("old", 2.0), ("control:zstd", 4.0)]),
        ("How large is the gap after the cutoff, over all sources?", [("new", 0.5)]),
        (
            "What is one figure over several months, by bytes and not by months?",
            [("new", 1.5), ("old", 2.0), ("control:zstd", 4.0)],
        ),
        (
            "How do losses before and after a date of my own compare?",
            [("control:zstd", 0.0), ("new", 1.5 - (8 * 1.0 + 4 * 1.5) / 12), ("old", 0.0)],
        ),
        ("Where does a model's knowledge end?", [("control:zstd", None), ("new", "2023-08"),
                                                 ("old", None)]),
        ("Which losses may be wrong?", []),
    ],
)  # fmt: skip
def test_answers_are_those_that_are_planted(
    planted: Settings, question: str, expected: list[tuple[str, object]]
) -> None:
    [asked] = [each for each in QUESTIONS if each.question == question]
    answers = {"headline": "bits_per_byte", "train_test_gap": "bits_per_byte_gap",
               "monthly_loss": "bits_per_byte", "train_test_gap_at": "bits_per_byte_gap",
               "estimated_cutoff": "cutoff_text", "scored_cells": "source"}  # fmt: skip
    rows = asking(planted, asked.query).to_pylist()
    found = [(row["model"], row[answers[asked.view]]) for row in rows]
    assert [model for model, _ in found] == [model for model, _ in expected]
    for (_, answer), (_, wanted) in zip(found, expected, strict=True):
        assert answer == (pytest.approx(wanted, abs=1e-9) if wanted is not None else None)


@pytest.mark.long
def test_the_page_of_data_lists_the_questions(planted: Settings) -> None:
    with opened_site(planted) as site:
        page = next(iter(data.make_pages(site)))
    assert page.path == "data.html"
    listed = page.fields["questions"]
    assert isinstance(listed, list)
    assert [row["query"] for row in listed] == [each.query for each in QUESTIONS]


@pytest.mark.slow
@each_question
def test_answers_of_the_demo_are_those_that_are_printed(
    demo: Settings, asked: AnalystQuestion
) -> None:
    found = asking(demo, asked.query)
    assert (found.num_rows == 0) == bool(asked.is_empty)
    if MEASURED.isdisjoint(found.column_names):
        assert list(line_differences(PRINTED[asked.query], lay_out(found))) == []
