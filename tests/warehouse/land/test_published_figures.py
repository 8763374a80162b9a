"""The commands of docs/coverage-of-the-papers.md give its figures, from published data."""

import csv
import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.coverage_rows import items_of
from benchmarks.write_guide import differences
from core.settings import Settings
from instruments.landing import land_shipped_rates
from warehouse.land.answers import land_imported_answers
from warehouse.land.literature import load_benchmarks
from warehouse.read.publish import publish
from warehouse.read.query import query

PAGE = (Path(__file__).parents[3] / "docs" / "coverage-of-the-papers.md").read_text("utf-8")
ITEMS = items_of(PAGE)
HUMANEVAL = {  # Table 4 of Li et al., in its order of HumanEval: HumanEval, MMLU
    "codellama-7b": (33.5, 36.9), "qwen-7b": (32.3, 58.2), "mistral-7b-v0.1": (30.5, 60.1),
    "baichuan2-7b-base": (18.3, 54.2), "llama-2-7b": (12.8, 45.3), "llama-7b": (11.6, 35.1),
    "internlm-7b": (10.4, 51.0),
}  # fmt: skip
Rows = list[dict[str, Any]]
Ask = Callable[..., tuple[Rows, str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def loaded(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings of a data root with the authors' rates, scores and answers."""
    home = tmp_path_factory.mktemp("home")
    settings, published = Settings(home=str(home)), shared / "data" / "published"
    land_shipped_rates(settings)
    with (home / "scores.csv").open("w", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "benchmark", "score"])
        for number, benchmark in enumerate(("HumanEval", "MMLU")):
            writer.writerows((model, benchmark, each[number]) for model, each in HUMANEVAL.items())
    load_benchmarks(settings, home / "scores.csv")
    duckdb.execute(
        f"""
        copy (
            select a.*, n_options_by_text as num_options from '{published}/gjo_answers.csv' as a
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


def test_the_results_on_the_page_are_those_of_its_queries(loaded: Settings) -> None:
    """The demo has the same rates. The first result counts equal figures of Table 3."""
    assert list(differences(PAGE, loaded, 0)) == []
    [lines] = re.findall(r"^column_name  .*\n((?:.+\n)+)```", PAGE, re.M)
    numbers = [line.split()[1:] for line in lines.splitlines()]
    assert numbers == [["17"] * 3] * 3


def test_table_3_of_li(ask: Ask) -> None:
    rows, state = ask("Table 3, mean rate")
    figures = {name: rest for name, *rest in (row.values() for row in rows)}
    assert ", ".join(f"{each:.3f}" for each in figures["mistral-7b-v0.1"]) in state


def test_ranks_of_table_3_of_li(ask: Ask) -> None:
    """Each of the three models that the page calls first is the first of the command's column."""
    rows, state = ask("Table 3, expected")
    for rank, firsts in (
        ("rank_as_printed", {"mistral-7b-v0.1", "llama-2-70b"}),
        ("rank_in_band", {"mistral-7b-v0.1", "llama-2-13b"}),
    ):
        best = {row["model"]: row["expected"] for row in rows if row[rank] == 1}
        assert best.keys() == firsts, rank
        for model, expected in best.items():
            assert state.count(f"{model} ({expected:.3f})") == 1, model
    [first] = [row for row in rows if row["model"] == "llama-2-70b"]
    assert first["rank_in_band"] is None
    assert len([row for row in rows if row["rank_in_band"] is None]) == 4


def test_table_4_of_li(ask: Ask) -> None:
    rows, state = ask("Table 4, rates")
    ranks = {row["model"]: row["rank"] for row in rows if row["benchmark"] == "HumanEval"}
    order = sorted(ranks[model] for model in HUMANEVAL)
    listed = ", ".join(str(order.index(ranks[model]) + 1) for model in HUMANEVAL)
    assert f"are {listed} in the order of HumanEval" in state
    rows, state = ask("Table 4, correlation")
    fits = {row["against"]: row for row in rows if row["model_kind"] == row["size_class"] == "all"}
    for benchmark in ("HumanEval", "MMLU"):
        ends = [fits[benchmark][name] for name in ("pearson", "pearson_low", "pearson_high")]
        assert "{} {:.2f} ({:.2f} to {:.2f})".format(benchmark, *ends) in state


def test_figure_1_of_li(ask: Ask) -> None:
    rows, state = ask("Figure 1, rate")
    found = [row for row in rows if row["catalogue_cutoff"] and row["is_at_edge"] is not None]
    assert len(found) >= 4
    for row in found:
        stated, low, high = (
            row["catalogue_cutoff"], row["estimated_cutoff_low"], row["estimated_cutoff_high"]
        )  # fmt: skip
        assert (low or dt.date.min) <= stated <= (high or dt.date.max), row
    closed = {row["model"]: row for row in found if row["estimated_cutoff"]}
    assert closed.keys() == {"llama-7b", "llama-13b", "llama-30b", "llama-65b"}
    lows = [row["estimated_cutoff_low"] for row in closed.values()]
    highs = [row["estimated_cutoff_high"] for row in closed.values()]
    assert f"LLaMA: {min(lows):%Y-%m} to {max(highs):%Y-%m};" in state
    opened = {row["estimated_cutoff_low"] for row in found if row["model"] not in closed} - {None}
    *others, last = (f"{low:%Y-%m}" for low in sorted(opened))
    assert f"from {', '.join(others)} or {last} on" in state


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
