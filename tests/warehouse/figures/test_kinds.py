"""Figures at a fixed mix, from sealed documents to the view, against plain numpy."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats

from core.corpus.partition import Partition, Seal, document_id, tables_of
from core.corpus.sealing import seal_partition
from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from core.storage.store import Store
from tests.losses import loss_row
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

FIRST = Month("2024-01")
EASY, HARD = 1.0, 2.0  # bits per byte
NUM_HARD = (4, 10, 16, 1)  # of 20 documents of each month
Row = dict[str, Any]


def documents_of(number: int) -> list[Row]:
    """Draw a month's documents: hard ones first; two of three share a cluster."""
    rng = np.random.default_rng(number)
    return [
        {
            "native_id": f"{number}-{each}", "date_kind": "created", "licence": "CC0-1.0",
            "category": "math.AG" if each < NUM_HARD[number] else "cs.CL",
            "language": "en",
            "cluster_id": f"c{each - each % 3 // 2}",
            "text": "x" * int(rng.integers(100, 400)),
            "bits_per_byte": (HARD if each < NUM_HARD[number] else EASY) + rng.normal(0, 0.05),
        }
        for each in range(20)
    ]  # fmt: skip


def seal(store: Store, number: int) -> Seal:
    partition = Partition("papers", FIRST + number)
    rows = [{k: v for k, v in row.items() if k != "bits_per_byte"} for row in documents_of(number)]
    return seal_partition(store, partition, tables_of(rows, partition))


def losses_of(number: int) -> pa.Table:
    rows = [
        loss_row(
            "org/model", "papers", (FIRST + number).first_day,
            document_id("papers", row["native_id"], None),
            nll_nats=row["bits_per_byte"] * len(row["text"]) * math.log(2),
            num_chars=len(row["text"]), num_bytes=len(row["text"]), reason=None,
        )
        for row in documents_of(number)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=LOSSES)


def land(settings: Settings, documents_first: bool) -> None:
    store = Store(settings.home)
    seals = [seal(store, number) for number in range(len(NUM_HARD))]
    with open_warehouse(settings) as warehouse:
        for number, each in enumerate(seals):
            for is_documents in (documents_first, not documents_first):
                if is_documents:
                    warehouse.land_documents(each)
                else:
                    warehouse.land_losses(losses_of(number), "losses")
    publish(settings)


def by_hand() -> list[tuple[float, float]]:
    """Return each month's standardised figure and the half of its interval."""
    months = [documents_of(number) for number in range(len(NUM_HARD))]
    total = {"cs.CL": 0, "math.AG": 0}
    for row in (row for month in months for row in month):
        total[row["category"]] += len(row["text"])
    return [month_by_hand(month, total) for month in months]


def month_by_hand(rows: list[Row], total: dict[str, int]) -> tuple[float, float]:
    raw = ratio(rows)
    figure, variances, freedoms = 0.0, [], []
    for kind, size in total.items():
        own = [row for row in rows if row["category"] == kind]
        weight, error, freedom = size / sum(total.values()), abs(ratio(own) - raw), 1.0
        names = {row["cluster_id"] for row in own}
        if len(names) > 1:
            left = [ratio([r for r in own if r["cluster_id"] != name]) for name in names]
            shift = np.array(left) - ratio(own)
            error = math.sqrt((shift**2).sum() * (len(names) - 1) / len(names))
            freedom = min(len(names) - 1, (shift**2).sum() ** 2 / (shift**4).sum())
        figure += weight * ratio(own)
        variances.append((weight * error) ** 2)
        freedoms.append(freedom)
    spread = sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    half = scipy.stats.t.ppf(0.975, max(1, sum(variances) ** 2 / spread))
    return figure, float(half * math.sqrt(sum(variances)))


def ratio(rows: list[Row]) -> float:
    sizes = [len(row["text"]) for row in rows]
    return float(np.average([row["bits_per_byte"] for row in rows], weights=sizes))


@pytest.mark.long
def test_a_month_with_more_of_a_hard_kind_is_no_harder_month(settings: Settings) -> None:
    land(settings, documents_first=True)
    rows = query(settings, "from monthly_loss_standardised order by month").to_pylist()
    raw = [row["bits_per_byte"] for row in rows]
    assert raw[0] + 0.2 < raw[1] < raw[2] - 0.2
    figures = [row["standardised_bits_per_byte"] for row in rows]
    assert max(figures) - min(figures) < 0.1
    for row, (figure, half) in zip(rows, by_hand(), strict=True):
        assert (row["weight_covered"], row["num_kinds"]) == (pytest.approx(1), 2)
        assert row["standardised_bits_per_byte"] == pytest.approx(figure, rel=1e-9)
        assert row["standardised_bits_per_byte_high"] - figure == pytest.approx(half, rel=1e-6)


@pytest.mark.slow
def test_the_order_of_landing_does_not_matter(settings: Settings, tmp_path: Any) -> None:
    other = Settings(home=str(tmp_path / "other"))
    land(settings, documents_first=True)
    land(other, documents_first=False)
    kinds = "from internal.cell_kinds order by all"
    assert query(settings, kinds) == query(other, kinds)
    assert query(settings, kinds)["kind"].to_pylist().count("math, en") == len(NUM_HARD)
