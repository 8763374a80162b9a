"""Worlds in which one class of bytes goes stale: views find it, and numpy has the same errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from models.scoring.byte_classes import CLASSES, NO_TEXT, ClassSums, classify
from tests.losses import loss_row
from warehouse.database.statements import Statements
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse

pytestmark = pytest.mark.long

Floats = NDArray[np.float64]
FIRST = Month("2023-01")
CUTOFF = Month("2023-08")
NUM_MONTHS = 15
TEXT = (
    "The mayor of Paris met Ada Lovelace on 3 March 2024 at 12:30, see https://a.org/news?id=1. "
    "Then os.path.join and read_file came up; Привет, мир said the guests of Rome! "
)
PLANTED = CLASSES[:NO_TEXT]


def _months_of(stale: int, chance: np.random.Generator) -> list[dict[str, Any]]:
    """Return the sums by class of each month; class ``stale`` costs more after the cutoff.

    Each token is a series of bytes of one class.
    """
    classes = classify(TEXT)
    ends = np.concatenate([[0], 1 + np.flatnonzero(np.diff(classes)), [len(classes)]])
    kinds = classes[ends[:-1]]
    rows = []
    for number in range(NUM_MONTHS):
        month = FIRST + number
        nats = np.diff(ends) * (1 + 0.02 * chance.standard_normal(len(kinds)))
        nats[(kinds == stale) & (month > CUTOFF)] *= 1.8
        sums = ClassSums()
        sums.add(classes, ends, 0, nats, (0, len(nats)))
        rows += [
            {
                "model": f"stale {CLASSES[stale]}",
                "source": "news",
                "month": month.first_day,
                "protocol": "default",
                "byte_class": name,
                "nll_nats": sums.nats[kind],
                "num_bytes": int(sums.num_bytes[kind]),
            }
            for kind, name in enumerate(CLASSES)
            if sums.num_bytes[kind]
        ]
    return rows


@pytest.fixture(scope="module")
def peek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    settings = Settings(home=str(tmp_path_factory.mktemp("classes")))
    chance = np.random.default_rng(11)
    sums = [row for stale in range(NO_TEXT) for row in _months_of(stale, chance)]
    totals: dict[tuple[str, Any], tuple[float, int]] = {}
    for row in sums:
        nats, size = totals.get((row["model"], row["month"]), (0.0, 0))
        key = (row["model"], row["month"])
        totals[key] = (nats + row["nll_nats"], size + row["num_bytes"])
    losses = [
        loss_row(model, "news", month, "d") | {"nll_nats": nats, "num_bytes": size, "reason": None}
        for (model, month), (nats, size) in totals.items()
    ]
    facts = {"cutoff": CUTOFF.first_day, "cutoff_provenance": "planted"}
    with connected(settings) as connection:
        with open_warehouse(settings) as warehouse:
            warehouse.land_losses(pa.Table.from_pylist(losses, schema=LOSSES), "worlds")
            warehouse.upsert_models([{"name": f"stale {name}", **facts} for name in PLANTED])
        statements = Statements(connection)
        table = pa.Table.from_pylist(sums, schema=statements.columns("byte_class_losses"))
        with statements.given(sums_to_land=table):
            statements.insert("byte_class_losses", "sums_to_land")
        yield lambda text: connection.sql(text).to_arrow_table().to_pylist()


@pytest.mark.parametrize("name", PLANTED)
def test_the_class_that_goes_stale_is_found(name: str, peek: Any) -> None:
    rows = peek(f"from byte_class_gap_at(null) where model = 'stale {name}' and source = 'news'")
    assert {row["byte_class"] for row in rows} == set(PLANTED)
    for row in rows:
        is_planted = row["byte_class"] == name
        assert row["reason"] is None
        assert row["share_of_gap_low"] <= is_planted <= row["share_of_gap_high"], row["byte_class"]
        assert (row["part_of_gap_low"] > 0) == is_planted, row["byte_class"]
        assert (row["bits_per_byte_gap_low"] > 0.5) == is_planted, row["byte_class"]


def test_the_parts_add_up_to_the_gap(peek: Any) -> None:
    sums = peek(
        "select model, sum(part_of_gap + mix_of_gap) as gap, sum(share_of_gap) as share "
        "from byte_class_gap_at(null) where source is not null group by model order by model"
    )
    gaps = peek(
        "select model, bits_per_byte_gap as gap from train_test_gap "
        "where scope = 'source' order by model"
    )
    assert len(sums) == len(PLANTED)
    for found, expected in zip(sums, gaps, strict=True):
        assert found["gap"] == pytest.approx(expected["gap"], rel=1e-9), found["model"]
        assert found["share"] == pytest.approx(1, rel=1e-9), found["model"]


def _mean_variance(memory: float, num: int) -> float:
    """Return the variance of a mean, by the sum over all pairs of months."""
    apart = np.abs(np.subtract.outer(np.arange(num), np.arange(num)))
    return float((memory**apart).sum() / num**2)


def _half(effects: Floats, is_after: NDArray[np.bool_]) -> float:
    """Return half of the interval of a figure with these effects of months, each less its mean."""
    sides = (effects[~is_after], effects[is_after])
    products = [a * b for side in sides for a, b in zip(side, side[1:], strict=False)]
    num = len(effects)
    correlation = np.mean(products) / np.mean(effects**2)
    memory = min(0.9, max(0, (correlation + 2 / num) / (1 - 8 / num)))
    shares = [_mean_variance(memory, len(side)) for side in sides]
    freedom = sum(len(side) * (1 - own) for side, own in zip(sides, shares, strict=True))
    degrees = sum(len(side) // 3 for side in sides) - 2
    shock = math.sqrt((effects**2).sum() / freedom)
    return float(stats.t.ppf(0.975, degrees) * shock * math.sqrt(sum(shares)))


def test_numpy_has_the_same_errors(peek: Any) -> None:
    """The effect of a month is what the figure changes by if the month counts a little more."""
    model = "stale names"
    rows = peek(
        "select byte_class, month_number, is_after, bits_of_text, share_of_bytes "
        f"from internal.byte_class_months_at(null) where model = '{model}' and scope = 'news' "
        "order by byte_class, month_number"
    )
    names = sorted(PLANTED)
    bits = np.array([row["bits_of_text"] for row in rows]).reshape(len(names), -1)
    shares = np.array([row["share_of_bytes"] for row in rows]).reshape(len(names), -1)
    is_after = np.array([row["is_after"] for row in rows[:NUM_MONTHS]])

    def figures(weights: Floats) -> Floats:
        def mean(values: Floats, side: NDArray[np.bool_]) -> Floats:
            own: Floats = np.average(values[:, side], axis=1, weights=weights[side])
            return own

        before, after = (mean(bits, side) / mean(shares, side) for side in (~is_after, is_after))
        share = (mean(shares, ~is_after) + mean(shares, is_after)) / 2
        parts = share * (after - before)
        return np.stack([after - before, parts, parts / parts.sum()])

    step = 1e-5
    effects = np.zeros((3, len(names), NUM_MONTHS))
    for month in range(NUM_MONTHS):
        nudge = np.zeros(NUM_MONTHS)
        nudge[month] = step
        num = (is_after == is_after[month]).sum()
        slope = (figures(1 + nudge) - figures(1 - nudge)) / (2 * step)
        effects[..., month] = num * slope * (1 if is_after[month] else -1)
    found = {
        row["byte_class"]: row
        for row in peek(
            f"from internal.byte_class_errors_at(null) where model = '{model}' and scope = 'news'"
        )
    }
    for kind, name in enumerate(names):
        for figure, half in enumerate(("gap_half", "part_half", "share_half")):
            expected = _half(effects[figure, kind], is_after)
            assert found[name][half] == pytest.approx(expected, rel=1e-4), f"{name} {half}"
