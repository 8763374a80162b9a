"""Published rates and scores give printed tables of the papers, by the coverage page's commands."""

import csv
import math
import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from benchmarks.coverage_rows import items_of
from core.plugins import list_extras
from core.settings import Settings
from extras.imported_results.figures import (
    SHIPPED_SCORES,
    land_published,
    land_shipped_rates,
    load_benchmarks,
)
from models.catalogue import list_shipped
from tests.losses import publish_rows
from warehouse.read.publish import publish
from warehouse.read.query import query

PAGE = (Path(__file__).parents[3] / "docs" / "coverage-of-the-papers.md").read_text("utf-8")
LI = PAGE.partition("## Li et al.")[2].partition("\n## ")[0]
ITEMS = items_of(LI)
SPLIT = "train_test_gap_at(date '2023-01-01') where protocol = 'published' and scope = 'source'"
Rows = list[dict[str, Any]]
Ask = Callable[[str], Rows]

pytestmark = pytest.mark.skipif("papers" not in list_extras(), reason="needs the views of papers")


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Return a function that asks a world of the shipped rates, and the printed ones of Table 4."""
    home = tmp_path_factory.mktemp("home")
    settings = Settings(home=str(home))
    land_shipped_rates(settings)
    load_benchmarks(settings, SHIPPED_SCORES)
    publish(settings)
    printed = query(settings, "from published_figures where printed_table = 'Table 4'").to_pylist()
    lines = ["model,source,month,compression_rate"]
    for row in printed:
        if row["reference"].startswith("Li ") and row["column_name"] in {
            "rate_2023_code", "rate_2023_arxiv",
        }:  # fmt: skip
            source = row["column_name"].removeprefix("rate_2023_")
            lines.append(f"{row['model']},{source},2023-01,{row['printed']}")
    assert len(lines) == 1 + 14
    rates = home / "rates.csv"
    rates.write_text("\n".join(lines), encoding="utf-8")
    land_published(settings, rates, "Li et al. 2024, Table 4", is_percent=True)
    publish(settings)
    return lambda sql: query(settings, sql).to_pylist()


def printed_by(ask: Ask, table: str, column: str, key: str | None = None) -> dict[str, str]:
    """Return the printed figures of a column of a table of Li et al., by the catalogue's model."""
    rows = ask(
        f"from published_figures where reference like 'Li %' and printed_table = '{table}' "
        f"and column_name = '{column}' and model is not null"
    )
    return {row["model"]: row["printed"] for row in rows if key in (None, row["row_key"])}


def state_of(name: str) -> str:
    [item] = [each for each in ITEMS if each.name.startswith(name)]
    return item.state.replace("−", "-")


def query_of(name: str) -> str:
    [item] = [each for each in ITEMS if each.name.startswith(name)]
    [sql] = item.queries()
    return sql


def test_ranks_of_table_4(ask: Ask) -> None:
    """By the printed rates of code and arXiv, and by the scores: all 28 ranks are the printed."""
    rows = ask(query_of("Table 4, rates"))
    for benchmark, source in (("HumanEval", "code"), ("MMLU", "arxiv")):
        own = [row for row in rows if (row["benchmark"], row["source"]) == (benchmark, source)]
        by_score = {row["model"]: str(row["score_rank"]) for row in own}
        by_rate = {row["model"]: str(row["rank"]) for row in own}
        assert len(own) == 7
        assert by_score == printed_by(ask, "Table 4", f"{benchmark.lower()}_rank")
        assert by_rate == printed_by(ask, "Table 4", f"rate_2023_{source}_rank")


def test_the_page_prints_the_ranks_by_wikipedia_rates(ask: Ask) -> None:
    rows = ask(f"{query_of('Table 4, rates')} order by score_rank")
    of_code = [row for row in rows if row["benchmark"] == "HumanEval"]
    ours = [str(row["rank"]) for row in of_code if row["source"] == "wikitext"]
    theirs = [str(row["rank"]) for row in of_code if row["source"] == "code"]
    state = state_of("Table 4, rates")
    assert f"ranks by rate are {', '.join(ours)} in the order of HumanEval" in state
    assert f"Printed for code: {', '.join(theirs)}." in state


def test_the_page_prints_the_correlations_of_table_4(ask: Ask) -> None:
    rows = ask(f"{query_of('Table 4, correlation')} and scope_name = 'wikitext'")
    whole = [row for row in rows if (row["model_kind"], row["size_class"]) == ("all", "all")]
    state = state_of("Table 4, correlation")
    assert {row["against"] for row in whole} >= {"HumanEval", "MMLU"}
    for row in whole:
        if row["against"] in {"HumanEval", "MMLU"}:
            figures = [f"{row[name]:.2f}" for name in ("pearson", "pearson_low", "pearson_high")]
            assert f"{row['against']} {figures[0]} ({figures[1]} to {figures[2]})" in state
            assert row["num_models"] == 7


def test_rates_of_2k_windows_in_table_5(ask: Ask) -> None:
    """The first column of Table 5 is the rate of 2023 that Table 3 prints."""
    printed = printed_by(ask, "Table 5", "rate_2023", "2K")
    rows = ask(f"select model, bits_per_byte_after as bits from {SPLIT} and source = 'wikitext'")
    found = {row["model"]: f"{100 * row['bits'] / 8:.3f}" for row in rows}
    assert len(printed) == 5
    assert {model: found[model] for model in printed} == printed
    assert "2K windows: equal, 5 of 5" in state_of("Table 5")


def test_bits_per_byte_of_table_6(ask: Ask) -> None:
    printed = printed_by(ask, "Table 6", "bits_per_byte")
    rows = ask(f"select model, bits_per_byte_after as bits from {SPLIT} and source = 'wikitext'")
    found = {row["model"]: f"{row['bits']:.4f}" for row in rows}
    equal = {model for model, figure in printed.items() if found[model] == figure}
    assert printed.keys() - equal == {"chatglm3-6b-base"}
    assert len(equal) == 4
    other = f"ChatGLM3-6B {printed['chatglm3-6b-base']}, here {found['chatglm3-6b-base']}"
    assert f"BPB: 4 of 5 equal, as `bits_per_byte_after` of Table 3's command; {other}" in (
        state_of("Table 6")
    )


def test_llama_65b_becomes_worse_by_more_than_the_text_says(ask: Ask) -> None:
    """Section 5.2 says 20 %; the printed figures of Table 3 give what the command gives."""
    [row] = ask(query_of("Section 5.2"))
    after, gap = (
        printed_by(ask, "Table 3", column, "Wikitext")["llama-65b"]
        for column in ("rate_2023", "rate_2023_less_2017_2022")
    )
    assert (after, gap) == ("4.673", "1.10")
    least, most = (100 * each / (float(after) - each) for each in (1.095, 1.105))
    assert 20 < least < row["worse_pct"] < most
    assert f"here {row['worse_pct']:.1f} %" in state_of("Section 5.2")
    state = state_of("Section 5.2")
    whole = float(printed_by(ask, "Table 3", "rate_2017_2023", "Wikitext")["llama-65b"])
    latest = float(printed_by(ask, "Table 3", "rate_2023", "Wikitext")["llama-65b"])
    share = f"{100 * (latest - whole) / latest:.1f}"
    assert f"({latest:.3f} - {whole:.3f}) / {latest:.3f}, is {share} %" in state
    assert f"{row['than_all_pct']:.1f}" == share


def test_bits_per_byte_of_table_6_by_the_authors_file(shared: Path) -> None:
    """The shipped rates have four decimals; the file has all, and gives the printed 0.6652."""
    path = shared / "data" / "published" / "wikitext_monthly_rates.csv"
    with path.open(encoding="utf-8") as stream:
        rates = [
            8 * float(row["compression_rate"])
            for row in csv.DictReader(stream)
            if row["model"] == "chatglm3-6b-base" and row["month"] >= "2023-01"
        ]
    assert f"{mean(rates):.4f}" == "0.6652"
    assert "the authors' file gives 0.6652, the shipped rates" in state_of("Table 6")


SIZES = {"16K": 16384, "32K": 32768, "4K/200K": 4096}
MODELS = {
    "LLaMA": ("llama-7b", "llama-13b", "llama-65b"), "InternLM": ("internlm-7b",),
    "Llama-2": ("llama-2-7b", "llama-2-13b", "llama-2-70b"), "CodeLlama": ("codellama-7b",),
    "Baichuan2": ("baichuan2-7b-base",), "Mistral": ("mistral-7b-v0.1",), "Qwen": ("qwen-7b",),
    "ChatGLM3": ("chatglm3-6b-base",), "Yi": ("yi-6b", "yi-34b"),
}  # fmt: skip


def test_models_of_table_2(shared: Path) -> None:
    """Month of release, size and context; of Yi, the paper prints 7B for 6B, and 200K for 4K."""
    [path] = (shared / "seeds").glob("000_*.txt")
    table = path.read_text("utf-8").partition("| Model     | Release |")[2]
    lines = re.findall(r"^\| (\S+) +\| (\d{4}-\d\d) \| (\S+) +\| (\S+) +\| (\S+) +\|$", table, re.M)
    assert [line[0] for line in lines] == list(MODELS)
    catalogue: dict[str, Any] = {entry.name: entry for entry in list_shipped()}
    for printed, released, cutoff, sizes, context in lines:
        entries = [catalogue[name] for name in MODELS[printed]]
        for entry, size in zip(entries, sizes.removesuffix("B").split("/"), strict=True):
            assert str(entry.released).startswith(released), entry.name
            assert entry.context == int(SIZES.get(context, context)), entry.name
            billions = entry.parameters / 1e9
            is_size = math.floor(billions) <= int(size) <= math.ceil(billions)
            assert is_size or (entry.name, size) == ("yi-6b", "7")
            if cutoff != "-":
                assert str(entry.cutoff).startswith(cutoff[:4]), entry.name


def test_averages_of_opencompass(tmp_path: Path) -> None:
    """Thirteen models by three corpora: the command's mean is the printed one."""
    settings = Settings(home=str(tmp_path))
    land_shipped_rates(settings)
    publish(settings)
    rows = query(settings, "from published_figures where reference like 'OpenCompass%'").to_pylist()
    figures = {(row["printed_model"], row["column_name"]): row["printed"] for row in rows}
    assert len(figures) == 4 * 13
    losses = [
        {
            "model": model, "revision": "r", "source": corpus, "month": None, "document_id": corpus,
            "chunk_index": 0, "protocol": "opencompass-swce", "num_tokens": 10_000,
            "nll_nats": 10_000 * float(printed) * math.log(2), "num_chars": 10_000,
            "num_bytes": 10_000,
        }
        for (model, corpus), printed in figures.items()
        if corpus != "average"
    ]  # fmt: skip
    publish_rows(settings, losses)
    [item] = [each for each in items_of(PAGE) if each.name.startswith("Table of results")]
    found = query(settings, item.queries()[0]).to_pylist()
    assert len(found) == len(losses) == 39
    for row in found:
        assert f"{row['average_bits_per_char']:.4f}" == figures[row["model"], "average"]
