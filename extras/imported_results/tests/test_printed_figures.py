"""Published answers give the figures of docs/coverage-of-the-papers.md and of the papers."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.coverage_rows import items_of
from core.settings import Settings
from extras.imported_results.answers import land_imported_answers
from tests.tiers import needs_extra
from warehouse.read.publish import publish
from warehouse.read.query import query

PAGE = (Path(__file__).parents[3] / "docs" / "coverage-of-the-papers.md").read_text("utf-8")
ITEMS = items_of(PAGE)
Rows = list[dict[str, Any]]
Ask = Callable[..., tuple[Rows, str]]


@pytest.fixture(scope="module")
def loaded(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings of a data root with the authors' answers."""
    home = tmp_path_factory.mktemp("home")
    settings = Settings(home=str(home))
    published = shared / "data" / "published"
    with duckdb.connect() as connection:
        connection.execute(
            f"""
            copy (
                select a.*, tags, n_options_by_text as num_options
                from '{published}/gjo_answers.csv' as a
                join '{published}/gjo_questions.csv' using (question_id, opened, closed)
            ) to '{home}/answers.csv'
            """
        )
    land_imported_answers(settings, home / "answers.csv", "gjo")
    publish(settings)
    return settings


@pytest.fixture(scope="module")
def ask(loaded: Settings) -> Ask:
    """Return a function that gives the rows of an item's command, or of SQL, and its state."""

    def rows(name: str, sql: str | None = None) -> tuple[Rows, str]:
        [item] = [item for item in ITEMS if item.name.startswith(name)]
        answer = query(loaded, sql or item.queries()[0]).to_pylist()
        return answer, item.state.replace("−", "-")

    return rows


@needs_extra("papers")
@pytest.mark.smoke
def test_published_answers_give_the_printed_figures(loaded: Settings, shared: Path) -> None:
    """Tables 7 and 14 to the printed digits, from a file as users land it."""
    published = shared / "data" / "published"
    fits = _by(query(loaded, "from papers.forecast_tbi").to_pylist(), "model")
    with (published / "gjo_table7.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            fit = fits[_own_name(row["model"], fits)]
            assert f"{fit['tbi_x1000']:.2f}" == row["tbi_x1000_per_30d"]
            assert f"{fit['intercept']:.2f}" == row["intercept"]
            printed = "Symmetrical" if fit["bias_class"] == "Balanced" else fit["bias_class"]
            assert printed == row["bias_category"]
    scores = _by(query(loaded, "from papers.forecast_recency").to_pylist(), "model")
    with (published / "gjo_table14.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            score = scores[_own_name(row["model"], scores)]["recency_score"]
            assert score == float(row["score"])


def _by(rows: list[dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    return {row[key]: row for row in rows}


def _own_name(printed: str, names: dict[str, Any]) -> str:
    """Map the several spellings of a model in the paper to one."""

    def letters(name: str) -> str:
        return "".join(c for c in name.lower() if c.isalnum())

    [name] = [name for name in names if letters(name) == letters(printed)]
    return name


NAMES = {"Baichuan2-7B-Base": "Baichuan2-7B-Base", "gpt4_1106": "GPT-4-1106"}


def printed(ask: Ask, table: str) -> dict[tuple[str, str], str]:
    """Return the printed figures of a table of Zhu et al., by the page's name and column."""
    sql = f"from published_figures where reference like 'Zhu %' and printed_table = '{table}'"
    rows, _ = ask("Table 9", sql)
    names = {row["printed_model"]: row["printed_model"].replace("GPT4", "GPT-4") for row in rows}
    return {(names[row["printed_model"]], row["column_name"]): row["printed"] for row in rows}


def test_table_7_of_zhu(ask: Ask) -> None:
    rows, state = ask("Table 7")
    figures = printed(ask, "Table 7")
    assert {row["model"] for row in rows} == NAMES.keys()
    for row in rows:
        name = NAMES[row["model"]]
        found = [f"{row[column]:.2f}" for column in ("tbi_x1000", "intercept")]
        assert found == [figures[name, column] for column in ("tbi_x1000", "intercept")], name
        assert f"{name} {', '.join(found)}" in state


def test_table_14_of_zhu(ask: Ask) -> None:
    rows, state = ask("Table 14")
    figures = printed(ask, "Table 14")
    assert {row["model"] for row in rows} == NAMES.keys()
    for row in rows:
        name = NAMES[row["model"]]
        found = f"{row['recency_score']:.3f}"
        assert found == figures[name, "recency_score"], name
        assert f"{name} {found}" in state


def test_peaks_of_zhu(ask: Ask) -> None:
    rows, state = ask("Tables 8 and 15")
    figures = printed(ask, "Table 15")
    peaks = {NAMES[row["model"]]: row for row in rows}
    for name, row in peaks.items():
        assert f"{row['peak']:%Y-%m}" == figures[name, "peak"], name
        assert re.search(rf"{name}( peaks)? in {row['peak']:%Y-%m}", state), name
    row = peaks["GPT-4-1106"]
    until = f"{row['months_to_cutoff']} to its release in {row['cutoff_month']:%Y-%m}"
    months, cutoff = (
        printed(ask, "Table 8")["GPT-4-1106", column] for column in ("peak_to_cutoff", "cutoff")
    )
    assert f"GPT-4-1106 {months} to {cutoff}, here {until}" in state


def test_table_9_of_zhu(ask: Ask) -> None:
    """The page prints the paper's figures and ours, which differ."""
    rows, state = ask("Table 9")
    theirs, _, ours = state.partition(" Here: ")
    figures = printed(ask, "Table 9")
    for model, name in NAMES.items():
        [row] = [row for row in rows if row["model"] == model]
        columns = ("base_adjusted_accuracy", "accuracy_change_3_months")
        base, change = (figures[name, column] for column in columns)
        assert f"{name} {base}, {change} %" in theirs
        found = (f"{row['base_adjusted_score']:.2f}", f"{row['adjusted_change_3_pct']:.2f}")
        assert f"{', '.join(found)} %" in ours
        assert found != (base, change)


# Rows of FreshBench's file test/test.json (commit 594f906, counted from 0) whose wording comes
# again further down. The files of answers have no wording.
ASKED_AGAIN = {
    "151", "166", "184", "188", "191", "227", "249", "269", "318", "320", "391", "402", "403",
    "444", "797", "836", "837", "1040", "1046", "1070", "1096", "1112", "1209", "1254", "1291",
    "1543", "1602", "2279",
}  # fmt: skip


def test_table_16_of_zhu(ask: Ask) -> None:
    """The counts by tag are equal, if the last question of each wording counts."""
    figures, state = ask("Table 16", "from published_figures where printed_table = 'Table 16'")
    theirs = {row["row_key"]: row["value"] for row in figures if row["unit"] == "questions"}
    assert len(theirs) == 17
    [of_all] = [text for text in queries_of("Table 16") if "tag" in text]
    repeated = ", ".join(f"'{each}'" for each in sorted(ASKED_AGAIN))
    last = f"(from internal.judged_answers where question_id not in ({repeated}))"
    of_last = of_all.replace("internal.judged_answers", last)
    found = [num_equal(ask, sql, theirs) for sql in (of_last, of_all)]
    assert f"equal, {found[0]} of 17" in state
    assert f"All 2,418 give {found[1]} of 17" in state


def queries_of(name: str) -> list[str]:
    [item] = [item for item in ITEMS if item.name.startswith(name)]
    return item.queries()


def num_equal(ask: Ask, sql: str, theirs: dict[str, float]) -> int:
    rows, _ = ask("Table 16", sql)
    ours = {row["tag"]: row["num_questions"] for row in rows}
    return sum(ours.get(tag) == number for tag, number in theirs.items())
