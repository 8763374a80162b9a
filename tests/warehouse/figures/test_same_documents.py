"""Means of replicates over sets of months: with all later months of a model, and with holes."""

import datetime as dt
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse

pytestmark = pytest.mark.long

MODELS = ("a", "b", "c")
MONTHS = [dt.date(2024, month, 1) for month in range(1, 7)]
CUTOFFS = {"a": Month("2023-12"), "b": Month("2024-02")}
OTHER_TEXT = ("c", MONTHS[3])  # this model and month have documents of their own


def losses() -> pa.Table:
    rng = np.random.default_rng(3)
    rows = []
    for month in MONTHS:
        hardness = rng.normal(0, 0.2, 6)
        for number, model in enumerate(MODELS):
            bits = 1 + 0.1 * number + hardness + rng.normal(0, 0.05, 6)
            kind = "other" if (model, month) == OTHER_TEXT else "d"
            rows += [
                {
                    "model": model, "revision": "r1", "source": "news", "month": month,
                    "document_id": f"{kind} {month} {place}", "chunk_index": 0,
                    "protocol": "default", "nll_nats": rate * math.log(2) * 50, "num_tokens": 10,
                    "num_chars": 50, "num_bytes": 50, "reason": None,
                }
                for place, rate in enumerate(bits)
            ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=LOSSES)


def test_errors_are_of_the_means_over_the_months_of_each_pair(tmp_path: Any) -> None:
    settings = Settings(home=str(tmp_path))
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(), "test")
        warehouse.upsert_models(
            [{"name": name, "cutoff": cutoff} for name, cutoff in CUTOFFS.items()]
        )
    with connected(settings) as connection:
        replicates = connection.execute(
            "select model, month, deviation from internal.pooled_deviations order by replicate"
        ).fetchall()
        pairs = connection.execute(
            "select model, other_model, num_months, standard_error "
            "from internal.same_document_differences"
        ).fetchall()
    deviations: dict[tuple[str, dt.date], list[float]] = defaultdict(list)
    for model, month, deviation in replicates:
        deviations[model, month].append(deviation)
    found = {(model, other): (num, error) for model, other, num, error in pairs}
    months = {
        ("a", "b"): MONTHS[2:],
        ("a", "c"): [*MONTHS[:3], *MONTHS[4:]],
        ("b", "c"): [MONTHS[2], *MONTHS[4:]],
    }
    assert found.keys() == months.keys()
    for (model, other), kept in months.items():
        means = [np.mean([deviations[name, month] for month in kept], axis=0)
                 for name in (model, other)]  # fmt: skip
        error = math.sqrt(np.mean((means[0] - means[1]) ** 2))
        assert found[model, other][0] == len(kept), (model, other)
        assert math.isclose(found[model, other][1], error, rel_tol=1e-9), (model, other)
        assert error > 0
