"""An evening's walk: twelve questions, put to SQL and to the data files of the pages."""

import json
import math
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import duckdb
import pytest

from core.settings import Settings
from reports.site.build import opened_site, page_modules
from reports.site.files import data_files
from tests.reports import curves as planted

pytestmark = pytest.mark.long

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Step:
    """A question to SQL, and the figures of the pages that answer it, too."""

    question: str
    sql: str  # the first columns are keys; then the answer
    figures: str  # pattern of names
    num_keys: int = 1


STEPS = (
    Step(
        "Which model is best, at which level?",
        "select model, bits_per_byte, rank, basis, num_months from headline",
        "board",
    ),
    Step(
        "What is each model's level in each month?",
        """
        select model, source, month, bits_per_byte(nll_nats, num_bytes) as bits_per_byte
        from chunk_losses
        where protocol = 'default' and month is not null
        group by model, source, month
        """,
        "source-*-levels",
        3,
    ),
    Step(
        "And on each source, over the months that are new to all?",
        """
        select l.model, l.source, avg(l.bits_per_byte) as bits_per_byte, count(*) as num_months
        from monthly_loss as l
        inner join compared_cells as c
            on l.model = c.model and l.source = c.source and l.month = c.month
        where l.protocol = 'default' and (c.is_ranked or is_compressor(l.model))
        group by l.model, l.source
        """,
        "profile",
        2,
    ),
    Step(
        "Is a model better than the next one, by more than chance?",
        """
        select model, next_model as other, next_difference as difference,
            next_p_value_adjusted as p_value_adjusted
        from headline_at(null, null)
        where next_model is not null
        """,
        "neighbours",
        2,
    ),
    Step(
        "How much worse is a model after its cutoff, beyond what others share?",
        """
        select model, source, adjusted_gap, adjusted_gap_low, adjusted_gap_high,
            q_value as gap_q_value
        from control_adjusted_gap
        where protocol = 'default' and scope = 'source' and basis = 'panel'
        """,
        "source-*-models",
        2,
    ),
    Step(
        "And of its own losses alone, over all sources?",
        """
        select model, bits_per_byte_gap, bits_per_byte_gap_low, bits_per_byte_after
        from train_test_gap
        where scope = 'all' and protocol = 'default' and bits_per_byte_gap is not null
        """,
        "plane",
    ),
    Step(
        "How fast does the gap grow?",
        """
        select model, growth_per_year, growth_per_year_low, growth_per_year_high
        from ageing
        where protocol = 'default' and scope = 'all' and growth_per_year is not null
        """,
        "board",
    ),
    Step(
        "Where does training text end, by the losses and by the maker?",
        """
        select model, cutoff_text, estimated_cutoff, catalogue_cutoff as stated_cutoff
        from estimated_cutoff
        where protocol = 'default' and scope = 'all' and cutoff_text is not null
        """,
        "board",
    ),
    Step(
        "How hard is each month?",
        """
        select source, month, difficulty, compressor_difficulty
        from month_difficulty
        where protocol = 'default' and scope = 'source' and difficulty is not null
        """,
        "source-*-difficulty",
        2,
    ),
    Step(
        "How often is a model right on questions from after its cutoff?",
        """
        select model, source, protocol, accuracy, accuracy_low, expected_accuracy, num_questions
        from forecast_accuracy
        where accuracy is not null
        """,
        "forecasts",
        3,
    ),
    Step(
        "Does a model generalise to inputs of others?",
        """
        select model, protocol, score, score_low, score_high
        from scylla_scores
        where scope = 'all' and ood_split = 'ood' and rules = 'strict' and score is not null
        """,
        "puzzles",
        2,
    ),
    Step(
        "From how many documents is all this?",
        """
        select source, count(distinct (month, document_id)) as num_documents,
            min(month) as first_month, max(month) as last_month
        from chunk_losses
        where protocol = 'default' and month is not null
        group by source
        """,
        "sources",
    ),
)  # fmt: skip


def asked(snapshot: Path, sql: str) -> tuple[list[str], Rows]:
    """Ask as an analyst does, in plain DuckDB. Return columns and rows; days are texts."""
    with closing(duckdb.connect(str(snapshot), read_only=True)) as connection:
        table = connection.sql(sql).to_arrow_table()
    rows = json.loads(json.dumps(table.to_pylist(), default=lambda day: day.isoformat()))
    return table.column_names, rows


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


def differences(snapshot: Path, figures: dict[str, Rows]) -> Iterator[str]:
    """Yield each question on which SQL and the pages differ."""
    for step in STEPS:
        columns, rows = asked(snapshot, step.sql)
        answer = columns[step.num_keys]
        names = [name for name in figures if fnmatchcase(name, step.figures)]
        if not names:
            continue  # a page leaves out what it cannot tell
        shown = [row for name in names for row in figures[name] if row[answer] is not None]
        by_sql, by_pages = (
            {
                tuple(row[name] for name in columns[: step.num_keys]):
                [row[name] for name in columns[step.num_keys :]]
                for row in found
            }
            for found in (rows, shown)
        )  # fmt: skip
        if odd := sorted(by_sql.keys() ^ by_pages.keys(), key=str):
            yield f"{step.question} {len(odd)} answers are on one side only: {odd[:3]}"
        for key in by_sql.keys() & by_pages.keys():
            if not all(map(is_same, by_pages[key], by_sql[key])):
                yield f"{step.question} {key}: SQL {by_sql[key]}, pages {by_pages[key]}"


def written(settings: Settings) -> dict[str, Rows]:
    """Return the JSON file of each figure, without drawing the charts."""
    with opened_site(settings) as site:
        pages = [page for module in page_modules() for page in module.make_pages(site)]
        assert not site.failures
        figures = [figure for page in pages for figure in page.figures]
        files = {
            figure.name: content
            for figure in figures
            for name, content in data_files(figure, site)
            if name == f"figures/{figure.name}.json"
        }
    return {name: json.loads(content) for name, content in files.items()}


def read_figures(root: Path) -> dict[str, Rows]:
    """Return the JSON files of the figures of a written site."""
    files = (root / "figures").glob("*.json")
    return {
        file.stem: json.loads(file.read_text(encoding="utf-8"))
        for file in files
        if not file.name.endswith(".metadata.json")
    }


def walked(settings: Settings, figures: dict[str, Rows]) -> set[str]:
    """Assert that SQL and the pages agree; return the questions that both answer."""
    snapshot = Path(settings.home) / "warehouse.duckdb"
    assert list(differences(snapshot, figures)) == []
    told = [step for step in STEPS if any(fnmatchcase(name, step.figures) for name in figures)]
    return {step.question for step in told if asked(snapshot, step.sql)[1]}


@pytest.mark.slow  # the test below walks, too
def test_a_first_month(publish_figures: Any) -> None:
    curves = {
        **planted.level("a", "news", 1.0, 1),
        **planted.level("a", "code", 2.0, 1),
        **planted.level("b", "news", 1.5, 1),
        **planted.level("b", "code", 2.5, 1),
        **planted.level("control:zstd", "news", 3.0, 1),
    }
    settings = publish_figures(curves, {"a": "2023-11", "b": "2023-12"})
    answered = walked(settings, written(settings))
    assert STEPS[0].question in answered
    assert not any("gap" in question for question in answered), "a month tells no gap"


def test_a_figure_that_differs_is_found(usual: Settings, root: Path) -> None:
    figures = read_figures(root)
    assert len(walked(usual, figures)) >= 4
    [row] = [row for row in figures["board"] if row["model"] == "early"]
    row["bits_per_byte"] += 1e-6
    levels = next(rows for name, rows in figures.items() if name.endswith("-levels"))
    del levels[0]
    snapshot = Path(usual.home) / "warehouse.duckdb"
    assert len(list(differences(snapshot, figures))) == 2


@pytest.mark.slow
def test_a_world_of_45_models(publish_figures: Any) -> None:
    curves, cutoffs = planted.crowd(45, random.Random(0))
    settings = publish_figures(curves, cutoffs)
    answered = walked(settings, written(settings))
    assert len(answered) >= 9, "no forecasts and no puzzles, and a page may leave one out"


@pytest.mark.slow
def test_the_demo(demo: Settings) -> None:
    figures = read_figures(Path(demo.home) / "report")
    assert walked(demo, figures) == {step.question for step in STEPS}
