"""The page of tasks: planted answers in, figures and titles out."""

import json
from pathlib import Path

import duckdb
import pytest

from core.month import Month
from core.settings import Settings
from reports.site.build import write_site
from tests.reports.curves import level, losses
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

MODELS = ("fresh", "stale")
MONTHS = ("2024-02-01", "2024-03-01")
TASKS_A_MONTH = 40


def _is_right(model: str, month: str, number: int) -> bool:
    """Return True but for the second month's tasks of model ``stale``, of which a quarter is."""
    return (model, month) != ("stale", MONTHS[1]) or number % 4 == 0


def _answers(connection: duckdb.DuckDBPyConnection) -> None:
    for month in MONTHS:
        for number in range(TASKS_A_MONTH):
            name = f"{month}-{number}"
            connection.execute(
                "insert into forecast_questions (source, question_id, month, opened, num_options, "
                "answer_index, status) values ('arxiv:task-cloze', ?, ?, ?, 4, 0, 'resolved')",
                [name, month, month],
            )
            for model in MODELS:
                is_right = _is_right(model, month, number)
                connection.execute(
                    "insert into forecast_answers (model, source, question_id, protocol, "
                    "chosen_index, is_parsed, is_correct) values (?, 'arxiv:task-cloze', ?, "
                    "'task-letter', ?, true, ?)", [model, name, 1 - is_right, is_right],
                )  # fmt: skip


def _site(home: Path, *, has_tasks: bool) -> Path:
    """Publish losses on two sources, and answers to tasks of the first; return the site's root."""
    settings = Settings(home=str(home))
    models = [
        {"name": model, "kind": "reference", "cutoff": Month("2024-02"),
         "cutoff_provenance": "planted", "cutoff_precision": "month"}
        for model in MODELS
    ]  # fmt: skip
    with open_warehouse(settings) as warehouse:
        figures = {}
        for source in ("arxiv", "news"):
            for model in MODELS:
                figures |= level(model, source, 1.0)
        warehouse.land_losses(losses(figures), "planted")
        warehouse.upsert_models(models)
    if has_tasks:
        with connected(settings) as connection:
            _answers(connection)
    publish(settings)
    return Path(write_site(settings)).parent


def test_the_page_has_what_was_planted(tmp_path: Path) -> None:
    site = _site(tmp_path, has_tasks=True)
    rows = duckdb.sql(f"from '{site}/figures/tasks.parquet'").to_arrow_table().to_pylist()
    found = {row["model"]: (row["accuracy_before"], row["accuracy_after"]) for row in rows}
    assert found == {"fresh": (1, 1), "stale": (1, pytest.approx(0.25))}
    # Wilson's interval of 10 of 40, computed by hand from its formula with z = 1.959964.
    stale = next(row for row in rows if row["model"] == "stale")
    ends = (stale["accuracy_after_low"], stale["accuracy_after_high"])
    assert ends == pytest.approx((0.14187, 0.40194), abs=1e-4)
    text = (site / "tasks.html").read_text(encoding="utf-8")
    assert "fewer tasks are right in 1 of 2 comparisons, and more in 0, each for itself" in text
    assert (site / "figures" / "tasks-by-month.svg").stat().st_size > 1000
    assert "../tasks.html" in (site / "sources" / "arxiv.html").read_text()
    assert "tasks.html" not in (site / "sources" / "news.html").read_text()


def test_without_answers_there_is_no_page(tmp_path: Path) -> None:
    site = _site(tmp_path, has_tasks=False)
    listed = {each["name"] for each in json.loads((site / "figures.json").read_text())}
    assert not {name for name in listed if name.startswith("tasks")}
    assert not (site / "tasks.html").exists()
    assert "tasks.html" not in (site / "sources" / "arxiv.html").read_text()
