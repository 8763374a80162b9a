"""The rates that the authors of paper 000 published must give the Table 3 that they printed."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from flows.cli import main


def agrees(figure: float, printed: str) -> bool:
    """Whether a figure rounds to what is printed, a tie either way."""
    unit = 10.0 ** -len(printed.partition(".")[2])
    return abs(figure - float(printed)) <= unit / 2 + 1e-9


def printed_like(figures: dict[str, float], row: dict[str, str]) -> list[str]:
    return [name for name, figure in figures.items() if not agrees(figure, row[name])]


@pytest.fixture
def landed(
    settings: Settings,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Land the published rates as a user does, and return what the command said."""
    rates = shared / "data/published/wikitext_monthly_rates.csv"
    command = ["tidemark", "--home", settings.home, "land-published", str(rates)]
    monkeypatch.setattr("sys.argv", [*command, "--reference", "Li et al. 2024"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 0
    return capsys.readouterr().out


def test_table_3_of_paper_000(landed: str, shared: Path, ask: Callable[..., Any]) -> None:
    assert landed == "1,636 rates landed\n"
    gaps = {row["model"]: row for row in ask("from train_test_gap_at(date '2023-01-01')")}
    assert {row["protocol"] for row in gaps.values()} == {"published"}
    with (shared / "data/published/wikitext_table3.csv").open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    assert table
    for row in table:
        gap = gaps[row["model_json"]]
        figures = {
            "avg_17_23_pct": gap["bits_per_byte_all"] * 100 / 8,
            "rate23_pct": gap["bits_per_byte_after"] * 100 / 8,
            "diff_pct": gap["bits_per_byte_gap"] * 100 / 8,
        }
        assert not printed_like(figures, row), (row, figures)


def test_table_3_as_it_ships(landed: str, ask: Callable[..., Any]) -> None:
    """The printed table that ships agrees with the rates, where the models' names are the same."""
    rows = ask(
        """
        select g.model, f.printed, 100 * g.bits_per_byte_after / 8 as rate
        from train_test_gap_at(date '2023-01-01') as g
        inner join published_figures as f
            on lower(g.model) = lower(f.model) and f.row_key = 'Wikitext'
        where f.reference like 'Li %' and f.printed_table = 'Table 3' and column_name = 'rate_2023'
        """
    )
    assert len(rows) >= 8
    assert [row for row in rows if not agrees(row["rate"], row["printed"])] == []
