"""Boards of planted worlds: models are ranked by text that is new to them, or not at all.

A model's loss on a month is its level, plus the month's difficulty, less what it gains on months up
to its cutoff. The truth is the level, which no view knows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from duckdb import DuckDBPyConnection as Connection

from core.month import Month, month_range
from core.settings import Settings
from tests.losses import publish_rows
from warehouse.read.query import opened, run_statement

pytestmark = pytest.mark.long

FIRST, NUM_MONTHS, SOURCES = Month("2021-01"), 18, ("code", "news")
NUM_BYTES = 1000


@dataclass(frozen=True)
class Model:
    name: str
    level: float  # bits per byte of text that is new to it
    cutoff: str | None
    gain: float = 0.4  # bits per byte less on text up to the cutoff
    seen_up_to: str | None = None  # of a model whose cutoff is unknown

    def loss(self, source: str, month: Month) -> float:
        last_seen = self.cutoff or self.seen_up_to
        is_seen = last_seen is not None and month <= Month(last_seen)
        better_on_code = -1.9 * (self.name == "control:xz" and source == "code")
        return self.level - self.gain * is_seen + better_on_code


def publish_world(
    settings: Settings, models: Sequence[Model], num_months: int = NUM_MONTHS, seed: int = 0
) -> Path:
    """Publish a world of models; return the path of the snapshot."""
    dice = np.random.default_rng(seed)
    rows = []
    for month in month_range(FIRST, FIRST + (num_months - 1)):
        for source in SOURCES:
            difficulty = dice.normal(0, 0.05)
            documents = dice.normal(0, 0.05, 4)
            for model in models:
                shock = dice.normal(0, 0.01)
                figures = model.loss(source, month) + difficulty + documents + shock
                for number, figure in enumerate(figures + dice.normal(0, 0.01, 4)):
                    rows.append(
                        {
                            "model": model.name, "revision": "r", "source": source,
                            "month": month.first_day, "document_id": f"{source} {month} {number}",
                            "chunk_index": 0, "protocol": "default",
                            "nll_nats": float(figure) * NUM_BYTES * math.log(2), "num_tokens": 300,
                            "num_chars": NUM_BYTES, "num_bytes": NUM_BYTES, "reason": None,
                        }
                    )  # fmt: skip
    known = [
        {"name": model.name, "kind": "reference", "cutoff": Month(model.cutoff),
         "cutoff_provenance": "planted", "cutoff_precision": "month"}
        for model in models if model.cutoff
    ]  # fmt: skip
    return Path(publish_rows(settings, rows, *known))


def ranks(snapshot: Connection) -> dict[str, int | None]:
    return dict(_rows(snapshot, "select model, rank from headline order by bits_per_byte"))


MODELS = [
    Model("old", 2.0, "2020-12"),
    Model("middle", 2.1, "2021-04"),
    Model("young", 2.2, "2021-08"),
    Model("newest", 1.7, "2022-06"),
    Model("leaked", 2.3, None, seen_up_to="2022-06"),
    Model("control:xz", 3.0, None),
    Model("control:zstd", 3.1, None),
]


@pytest.fixture(scope="module")
def staggered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A world in which the better model has the older cutoff, and one has seen all months."""
    settings = Settings(home=str(tmp_path_factory.mktemp("staggered")))
    with opened(publish_world(settings, MODELS)) as snapshot:
        yield snapshot


def test_the_better_model_of_older_cutoff_is_first(staggered: Connection) -> None:
    found = ranks(staggered)
    assert found.pop("leaked") is None  # its cutoff is unknown
    assert found == {
        "old": 1, "middle": 2, "young": 3, "control:xz": None, "control:zstd": None
    }  # fmt: skip
    bases = "select distinct basis, num_months from headline where rank is not null"
    assert _rows(staggered, bases) == [["after 2021-08", 10]]
    basis = "select basis from headline where model = 'leaked'"
    assert _rows(staggered, basis) == [["cutoff unknown: months may have been seen in training"]]


def test_text_seen_in_training_counts_if_it_is_asked_for(staggered: Connection) -> None:
    every = "from headline_at(null, null, months := 'all')"
    best = f"select model {every} order by rank limit 2"
    assert _rows(staggered, best) == [["newest"], ["leaked"]]
    bases = f"select distinct basis, num_months {every}"
    assert _rows(staggered, bases) == [["all months, also those seen in training", 18]]


def test_a_compressor_that_is_best_on_a_source_has_no_rank(staggered: Connection) -> None:
    code = "from monthly_rank where source = 'code' and month >= date '2021-09-01'"
    lowest = f"select distinct arg_min(model, bits_per_byte) over (partition by month) {code}"
    assert _rows(staggered, lowest) == [["control:xz"]]
    assert _rows(staggered, f"select distinct model {code} and rank = 1") == [["old"]]


def test_pairs_are_compared_on_text_new_to_both(staggered: Connection) -> None:
    rows = _rows(
        staggered,
        "select model, other_model, difference, p_value_adjusted, basis from model_difference "
        "where source is null and list_has_all(['old', 'middle', 'young'], [model, other_model])",
    )
    assert len(rows) == 3
    levels = {model.name: model.level for model in MODELS}
    for model, other, difference, p_value, basis in rows:
        assert difference == pytest.approx(levels[model] - levels[other], abs=0.03)
        assert p_value is None or p_value < 0.05
        assert basis == ("after 2021-08" if "young" in (model, other) else "after 2021-04")


def test_a_model_without_a_new_month_is_left_out_with_the_reason(staggered: Connection) -> None:
    reason = "select reason from unmeasured where model = 'newest' and left_out_of = 'headline'"
    assert _rows(staggered, reason) == [["no month after 2022-06"]]
    pairs = "from model_difference where 'newest' in (model, other_model)"
    reasons = f"select distinct difference, reason {pairs}"
    assert _rows(staggered, reasons) == [[None, "no common month after both cutoffs"]]


def test_a_first_month_without_new_text_has_no_rank(settings: Settings) -> None:
    models = [
        Model("a", 2.0, "2021-01"),
        Model("b", 2.1, "2021-03"),
        Model("control:xz", 3.0, None),
    ]
    with opened(publish_world(settings, models, num_months=1)) as snapshot:
        assert ranks(snapshot) == {"control:xz": None}
        reasons = "select distinct reason from unmeasured where left_out_of = 'headline'"
        assert ["no month after 2021-01"] in _rows(snapshot, reasons)
        assert _rows(snapshot, "select max(rank) from monthly_rank") == [[None]]


@pytest.mark.slow
@pytest.mark.parametrize("num_models", [8, 45, 100])
def test_the_order_is_right_beyond_the_resolution(settings: Settings, num_models: int) -> None:
    dice = np.random.default_rng(num_models)
    months = 36
    levels = 2.0 + np.cumsum(dice.exponential(0.3 / num_models, num_models))
    cutoffs = sorted(dice.integers(-6, months - 2, num_models))  # the worse, the later
    models = [
        Model(f"m{i:03}", float(level), str(FIRST + int(cutoff)))
        for i, (level, cutoff) in enumerate(zip(levels, cutoffs, strict=True))
    ]
    ranked = "select model, rank, resolution from headline_at(null, null) where rank is not null"
    with opened(publish_world(settings, models, months, seed=num_models)) as snapshot:
        rows = _rows(snapshot, ranked)
    assert len(rows) > num_models / 2
    truth = {model.name: model.level for model in models}
    right, told = 0, 0
    for model, rank, resolution in rows:
        for other, other_rank, _ in rows:
            if truth[model] + resolution < truth[other]:
                told += 1
                right += rank < other_rank
    assert told > 0
    assert right >= 0.95 * told


def _rows(snapshot: Connection, sql: str) -> list[list[Any]]:
    return [list(row.values()) for row in run_statement(snapshot, sql).read_all().to_pylist()]
