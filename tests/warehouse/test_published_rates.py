"""The rates that the authors of paper 000 published must give the Table 3 that they printed."""

from __future__ import annotations

import csv
import datetime as dt
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.schemas import LOSSES
from core.settings import Settings
from warehouse.land import open_warehouse

NUM_BYTES = 10**9


def as_losses(file: Path) -> pa.Table:
    """Turn compression rates into losses, one row a model and month."""
    with file.open(encoding="utf-8") as stream:
        rows = [
            {
                "model": row["model"],
                "revision": "published",
                "source": row["source"],
                "month": dt.date.fromisoformat(f"{row['month']}-01"),
                "document_id": row["month"],
                "chunk_index": 0,
                "protocol": "published",
                "nll_nats": float(row["compression_rate"]) * 8 * math.log(2) * NUM_BYTES,
                "num_tokens": NUM_BYTES,
                "num_chars": NUM_BYTES,
                "num_bytes": NUM_BYTES,
            }
            for row in csv.DictReader(stream)
        ]
    return pa.Table.from_pylist(rows, schema=LOSSES)


def agrees(figure: float, printed: str) -> bool:
    """Whether a figure rounds to what is printed, a tie either way."""
    unit = 10.0 ** -len(printed.partition(".")[2])
    return abs(figure - float(printed)) <= unit / 2 + 1e-9


def printed_like(figures: dict[str, float], row: dict[str, str]) -> list[str]:
    return [name for name, figure in figures.items() if not agrees(figure, row[name])]


def test_table_3_of_paper_000(settings: Settings, shared: Path, ask: Any) -> None:
    with open_warehouse(settings) as warehouse:
        rates = as_losses(shared / "data/published/wikitext_monthly_rates.csv")
        warehouse.land_losses(rates, "published rates")
    gaps = {row["model"]: row for row in ask("from train_test_gap_at(date '2023-01-01')")}
    averages = ask("from monthly_loss select model, avg(compression_rate) as mean group by all")
    means = {row["model"]: 100 * row["mean"] for row in averages}
    with (shared / "data/published/wikitext_table3.csv").open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    assert table
    for row in table:
        gap = gaps[row["model_json"]]
        figures = {
            "avg_17_23_pct": means[row["model_json"]],
            "rate23_pct": gap["bits_per_byte_after"] * 100 / 8,
            "diff_pct": gap["bits_per_byte_gap"] * 100 / 8,
        }
        assert not printed_like(figures, row), (row, figures)
        assert gap["bits_per_byte_all"] * 100 / 8 == pytest.approx(figures["avg_17_23_pct"])
