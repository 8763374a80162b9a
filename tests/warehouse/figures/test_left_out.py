import datetime as dt
from typing import Any

import numpy as np
import pytest

from core.month import Month
from core.settings import Settings
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

pytestmark = pytest.mark.long

FIRST = Month("2023-01")
# Months, position of the cutoff and of the release, first month with a single document.
MODELS = {
    "long": (24, 11, 9, 24),
    "late": (24, 21, 18, 24),
    "eleven": (11, 5, 7, 11),
    "nine": (9, 4, 6, 9),
    "pair": (2, 0, 1, 2),
    "single document": (24, 11, 9, 10),
}
# Of "late", two months are after the cutoff; of "nine", five are before it and four after it.
TOLD = {
    ("train_test_gap", "late"): "no interval: 2 months on a side of the cutoff; 3 are needed",
    ("train_test_gap", "nine"): "no interval: 2 blocks of three months; 4 are needed",
    ("tbi_likelihood", "eleven"): "no interval: 11 months; 12 are needed",
    (
        "decay_by_horizon",
        "nine",
    ): "no interval: 1 complete quarter after the release; 2 are needed",
}
# Views with the scope of the rows: of single sources, or of the mean over all.
FIGURES = {
    ("train_test_gap", "source"): "bits_per_byte_gap",
    ("train_test_gap", "all"): "bits_per_byte_gap",
    ("tbi_likelihood", "source"): "tbi_per_month",
    ("tbi_likelihood", "all"): "tbi_per_month",
    ("decay_by_horizon", "source"): "decay_mean_pct",
}


def rows_of(name: str, num_months: int, first_single: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(num_months)
    return [
        {
            "model": name, "month": (FIRST + month).first_day, "document_id": f"{month}-{number}",
            "num_bytes": 100, "num_chars": 100, "nll_nats": float(rng.uniform(50, 60)),
        }
        for month in range(num_months)
        for number in range(3 if month < first_single else 1)
    ]  # fmt: skip


def test_a_figure_has_an_interval_or_one_reason(settings: Settings, losses: Any) -> None:
    facts = [
        {
            "name": name, "cutoff": (FIRST + cutoff).first_day, "cutoff_provenance": "planted",
            "released": (FIRST + release).first_day + dt.timedelta(days=9),
        }
        for name, (_, cutoff, release, _) in MODELS.items()
    ]  # fmt: skip
    rows = [
        row for name, (num, _, _, single) in MODELS.items() for row in rows_of(name, num, single)
    ]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(*rows), "world")
        warehouse.upsert_models(facts)
    publish(settings)
    unmeasured = query(settings, "from unmeasured").to_pylist()
    for (view, scope), figure in FIGURES.items():
        rows = query(settings, f"from {view} where {figure} is not null").to_pylist()
        shown = {row["model"]: row for row in rows if row.get("scope", scope) == scope}
        reasons = {
            row["model"]: row["reason"]
            for row in unmeasured
            if (row["left_out_of"], row["scope"]) == (view, scope)
        }
        lacking = {name for name, row in shown.items() if row[f"{figure}_low"] is None}
        assert lacking and lacking < set(shown)
        assert set(MODELS) - set(shown) | lacking == set(reasons)
        assert all(shown[name]["reason"] == reasons[name] for name in lacking)
        told = {
            name: reason
            for (of_view, name), reason in TOLD.items()
            if (of_view, "source") == (view, scope)
        }
        assert told.items() <= {name: shown[name]["reason"] for name in lacking}.items()
        assert all(
            reasons[name].startswith("no interval: ") == (name in lacking) for name in reasons
        )


def test_means_over_sources_without_common_months_have_a_reason(
    settings: Settings, losses: Any, ask: Any
) -> None:
    sources = {"even": range(0, 24, 2), "odd": range(1, 24, 2)}
    rows = [
        {
            "model": "apart", "source": source, "month": (FIRST + month).first_day,
            "document_id": f"{month}-{number}", "num_bytes": 100, "num_chars": 100,
            "nll_nats": 50.0 + number + month,
        }
        for source, months in sources.items()
        for month in months
        for number in range(3)
    ]  # fmt: skip
    facts = {"name": "apart", "cutoff": (FIRST + 11).first_day, "cutoff_provenance": "planted"}
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(*rows), "world")
        warehouse.upsert_models([facts])
    reasons = {
        row["left_out_of"]: row["reason"]
        for row in ask("from unmeasured where scope = 'all'")
        if row["left_out_of"] in {"train_test_gap", "tbi_likelihood"}
    }
    assert reasons == {
        "train_test_gap": "no month on a side of the cutoff that all sources have",
        "tbi_likelihood": "0 months that all sources have; 2 are needed",
    }
