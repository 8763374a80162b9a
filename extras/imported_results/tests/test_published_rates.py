"""The commands of docs/coverage-of-the-papers.md give its figures, from published data."""

import csv
import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.coverage_rows import items_of
from benchmarks.write_guide import differences
from core.settings import Settings
from extras.imported_results.figures import land_shipped_rates, load_benchmarks
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
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings of a data root with the authors' rates and scores."""
    home = tmp_path_factory.mktemp("home")
    settings = Settings(home=str(home))
    land_shipped_rates(settings)
    with (home / "scores.csv").open("w", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "benchmark", "score"])
        for number, benchmark in enumerate(("HumanEval", "MMLU")):
            writer.writerows((model, benchmark, each[number]) for model, each in HUMANEVAL.items())
    load_benchmarks(settings, home / "scores.csv")
    publish(settings)
    return settings


@pytest.fixture(scope="module")
def ask(loaded: Settings) -> Ask:
    """Return a function that gives the rows of an item's command, and its state."""

    def rows(name: str) -> tuple[Rows, str]:
        [item] = [item for item in ITEMS if item.name.startswith(name)]
        answer = query(loaded, item.queries()[0]).to_pylist()
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
        stated = row["catalogue_cutoff"]
        low = row["estimated_cutoff_low"]
        high = row["estimated_cutoff_high"]
        assert (low or dt.date.min) <= stated <= (high or dt.date.max), row
    closed = {row["model"]: row for row in found if row["estimated_cutoff"]}
    assert closed.keys() == {"llama-7b", "llama-13b", "llama-30b", "llama-65b"}
    lows = [row["estimated_cutoff_low"] for row in closed.values()]
    highs = [row["estimated_cutoff_high"] for row in closed.values()]
    assert f"LLaMA: {min(lows):%Y-%m} to {max(highs):%Y-%m};" in state
    opened = {row["estimated_cutoff_low"] for row in found if row["model"] not in closed} - {None}
    *others, last = (f"{low:%Y-%m}" for low in sorted(opened))
    assert f"from {', '.join(others)} or {last} on" in state
