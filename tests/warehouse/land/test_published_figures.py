"""The commands of docs/coverage-of-the-papers.md give its figures, from published data."""

import csv
import datetime as dt
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from core.settings import Settings
from instruments.landing import land_shipped_rates
from warehouse.land.answers import land_imported_answers
from warehouse.land.literature import load_benchmarks
from warehouse.read.publish import publish
from warehouse.read.query import query

PAGE = (Path(__file__).parents[3] / "docs" / "coverage-of-the-papers.md").read_text("utf-8")
ROWS = {
    item: (shlex.split(re.findall(r"`(tidemark sql [^`]+)`", command)[0])[2], state)
    for item, command, state in re.findall(
        r"^\| ([^|]+) \| (.*`tidemark sql .*) \| (.+) \|$", PAGE, re.M
    )
}
HUMANEVAL = {  # Table 4 of Li et al., in its order of HumanEval: HumanEval, MMLU
    "codellama-7b": (33.5, 36.9), "qwen-7b": (32.3, 58.2), "mistral-7b-v0.1": (30.5, 60.1),
    "baichuan2-7b-base": (18.3, 54.2), "llama-2-7b": (12.8, 45.3), "llama-7b": (11.6, 35.1),
    "internlm-7b": (10.4, 51.0),
}  # fmt: skip
Rows = list[dict[str, Any]]
Ask = Callable[..., tuple[Rows, str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ask(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Return a function from an item of the page to the rows of its command, and its state."""
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

    def rows(item: str, old: str = "", new: str = "") -> tuple[Rows, str]:
        [(sql, state)] = [row for name, row in ROWS.items() if name.startswith(item)]
        return query(settings, sql.replace(old, new)).to_pylist(), state.replace("−", "-")

    yield rows


def test_table_3_of_li(ask: Ask) -> None:
    rows, state = ask("Table 3, mean rate")
    figures = {name: rest for name, *rest in (row.values() for row in rows)}
    assert ", ".join(f"{each:.3f}" for each in figures["mistral-7b-v0.1"]) in state
    assert f"llama-65b's difference is {figures['llama-65b'][2]:.3f}" in state
    rows, state = ask("Table 3, expected")
    best = [row for row in rows if row["rank_in_band"] == 1]
    stated = [f"{name} ({expected:.3f})" for name, _, expected in (row.values() for row in best)]
    assert len(stated) >= 2
    assert all(text in state for text in stated if text.startswith(("mistral", "llama-2-70b")))
    assert sum(text in state for text in stated) == 2


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
    rows, _ = ask("Figure 1, rate")
    found = [row for row in rows if row["catalogue_cutoff"] and row["is_at_edge"] is not None]
    assert len(found) >= 4
    for row in found:
        stated, low, high = (
            row["catalogue_cutoff"], row["estimated_cutoff_low"], row["estimated_cutoff_high"]
        )  # fmt: skip
        assert (low or dt.date.min) <= stated <= (high or dt.date.max), row
    closed = {row["model"]: row for row in found if row["estimated_cutoff"]}
    assert closed.keys() == {"llama-7b", "llama-13b", "llama-30b"}
    assert {row["estimated_cutoff_low"] for row in closed.values()} == {dt.date(2020, 11, 1)}
    highs = [row["estimated_cutoff_high"] for row in closed.values()]
    assert max(highs) == dt.date(2021, 3, 1)


def test_tables_of_zhu(ask: Ask) -> None:
    rows, state = ask("Table 7")
    assert len(rows) == 2
    for row in rows:
        assert f" {row['tbi_x1000']:.2f}, {row['intercept']:.2f}" in state
    rows, state = ask("Table 14")
    assert all(f" {row['recency_score']:.3f}" in state for row in rows)
    rows, state = ask("Tables 8 and 15", "(6)", "(3)")
    for row in rows:
        assert f" in {row['peak']:%Y-%m}," in state, row
    rows, state = ask("Table 9")
    assert len(rows) == 2
    for row in rows:
        assert f" {row['base_adjusted_score']:.2f}" in state, row
