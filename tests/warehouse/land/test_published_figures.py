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
from warehouse.database.writer import connected
from warehouse.land.answers import land_imported_answers
from warehouse.land.literature import land_published, load_benchmarks
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
    "CodeLlama-7B": (33.5, 36.9), "Qwen-7B": (32.3, 58.2), "Mistral-7B": (30.5, 60.1),
    "Baichuan2-7B-Base": (18.3, 54.2), "Llama-2-7B-HF": (12.8, 45.3), "LLaMA-7B-HF": (11.6, 35.1),
    "internlm-7B": (10.4, 51.0),
}  # fmt: skip
Rows = list[dict[str, Any]]
Ask = Callable[..., tuple[Rows, str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ask(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Return a function from an item of the page to the rows of its command, and its state."""
    home = tmp_path_factory.mktemp("home")
    settings, published = Settings(home=str(home)), shared / "data" / "published"
    land_published(settings, published / "wikitext_monthly_rates.csv", "Li et al. 2024")
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
    with connected(settings) as connection:
        for pattern, cutoff in (("LLaMA-%", "2020-12-01"), ("Llama-2-%", "2022-09-01")):
            connection.execute("update models set cutoff = ? where model like ?", [cutoff, pattern])
        size = "1e9 * try_cast(regexp_extract(model, '([0-9]+)B', 1) as double)"
        connection.execute(f"update models set parameters = {size}")
    publish(settings)

    def rows(item: str, old: str = "", new: str = "") -> tuple[Rows, str]:
        [(sql, state)] = [row for name, row in ROWS.items() if name.startswith(item)]
        return query(settings, sql.replace(old, new)).to_pylist(), state.replace("−", "-")

    yield rows


def test_table_3_of_li(ask: Ask) -> None:
    rows, state = ask("Table 3, mean rate")
    figures = {name: rest for name, *rest in (row.values() for row in rows)}
    assert ", ".join(f"{each:.3f}" for each in figures["Mistral-7B"]) in state
    assert f"LLaMA-65B's difference is {figures['LLaMA-65B'][2]:.3f}" in state
    rows, state = ask("Table 3, expected")
    best = [row for row in rows if row["rank_in_band"] == 1]
    stated = [f"{name} ({expected:.3f})" for name, _, expected in (row.values() for row in best)]
    assert len(stated) >= 2
    assert all(text in state for text in stated if text.startswith(("Mistral", "Llama-2-70B")))
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
    found = [row for row in rows if row["catalogue_cutoff"] and row["estimated_cutoff"]]
    assert len(found) >= 4
    for row in found:
        stated, low, high = (
            row["catalogue_cutoff"], row["estimated_cutoff_low"], row["estimated_cutoff_high"]
        )  # fmt: skip
        assert (low or dt.date.min) <= stated <= (high or dt.date.max), row
        if stated.year == 2020:
            assert low == dt.date(2020, 11, 1)
            assert high <= dt.date(2021, 4, 1)


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
