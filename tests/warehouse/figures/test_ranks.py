import datetime as dt
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy import stats

from core.settings import Settings
from warehouse.database.schema import read_sql
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

pytestmark = pytest.mark.long

Rows = list[dict[str, Any]]
Vector = np.ndarray[Any, np.dtype[np.float64]]

NAMES = ["a", "it's; drop table models; --", "control:zstd", 'org/"quoted"']
SOURCES = ["news", "wiki's"]
INTERVALS = "from internal.headline_intervals_at(null, null, 'new')"
MONTHS = [dt.date(2024, month, 1) for month in (1, 2, 3, 5, 8, 9, 11, 12)]
QUARTERS = np.array([(month.month - 1) // 3 for month in MONTHS])


@pytest.mark.parametrize(
    ("parameters", "size_class"),
    [(None, None), (1_999_999_999, "below 2B"), (2_700_000_000, "2B to 5B"),
     (6_700_000_000, "5B to 8B"), (7_600_000_000, "5B to 8B"), (8_030_000_000, "8B and above")],
)  # fmt: skip
def test_size_class(parameters: int | None, size_class: str | None) -> None:
    connection = duckdb.connect()
    connection.execute(read_sql("macros", "size_class"))
    assert connection.execute("select size_class(?)", [parameters]).fetchone() == (size_class,)


def documents(name: str, bits: Vector, lengths: Any) -> Rows:
    return [
        {"document_id": f"{name} {number}", "nll_nats": each * np.log(2), "num_bytes": int(length)}
        for number, (each, length) in enumerate(zip(bits, lengths, strict=True))
    ]


def random_rows(rng: np.random.Generator) -> Rows:
    rows = []
    for source in SOURCES:
        for month in MONTHS:
            lengths = rng.lognormal(7, 1, 20).astype(int) + 10
            common = rng.normal(0, 0.2, 20)
            for number, model in enumerate(NAMES):
                shock = rng.normal(0, 0.02)
                bits = lengths * (2 + 0.05 * number + shock + common + rng.normal(0, 0.05, 20))
                cell = {"model": model, "source": source, "month": month}
                rows += [cell | row for row in documents(f"{source} {month}", bits, lengths)]
    return rows


class Oracle:
    def __init__(self, rows: Rows, replicates: Rows) -> None:
        self.losses: dict[Any, list[tuple[float, float]]] = {}
        for row in rows:
            cell = (row["model"], row["source"], row["month"])
            self.losses.setdefault(cell, []).append((row["nll_nats"] / np.log(2), row["num_bytes"]))
        self.replicates: dict[Any, list[float]] = {}
        for row in sorted(replicates, key=lambda row: int(row["replicate"])):
            cell = (row["model"], row["source"], row["month"])
            ratio = row["nll_nats"] / np.log(2) / row["num_bytes"]
            self.replicates.setdefault(cell, []).append(ratio)

    def figure(self, cell: Any) -> float:
        bits, lengths = np.array(self.losses[cell]).T
        return float(bits.sum() / lengths.sum())

    def error(self, cell: Any) -> tuple[float, float]:
        """Return the jackknife's standard error, and the interval's degrees of freedom."""
        bits, lengths = np.array(self.losses[cell]).T
        left_out = (bits.sum() - bits) / (lengths.sum() - lengths)
        moved = (left_out - self.figure(cell)) * (len(bits) - 1) / len(bits)
        residuals = moved * lengths.sum() * len(bits) / (len(bits) - 1)
        error = np.sqrt((residuals**2).sum() * (len(bits) - 1) / len(bits)) / lengths.sum()
        freedom = (residuals**2).sum() ** 2 / (residuals**4).sum()
        return float(error), float(min(3 * freedom, len(bits) - 1))

    def deviations(self, cell: Any) -> Vector:
        plain = np.array(self.replicates[cell]) - self.figure(cell)
        scaled: Vector = plain * self.error(cell)[0] / np.sqrt((plain**2).mean())
        return scaled


def satterthwaite(variances: Vector, freedoms: Vector) -> float:
    return float(variances.sum() ** 2 / (variances**2 / freedoms).sum())


def changes(curve: Any) -> Vector:
    """Return what the mean of a monthly curve changes without each quarter."""
    months = np.array(curve)
    return np.array(
        [months[number != QUARTERS].mean() - months.mean() for number in np.unique(QUARTERS)]
    )


def jackknife(changed: Vector) -> tuple[float, int]:
    """Return the standard error over time, and its degrees of freedom."""
    size = len(changed)
    return float(np.sqrt((changed**2).sum() * (size - 1) / size)), size - 1


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, losses: Any) -> Settings:
    """The random rows, published."""
    settings = Settings(home=str(tmp_path_factory.mktemp("ranks")))
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(*random_rows(np.random.default_rng(17))), "world")
    publish(settings)
    return settings


@pytest.fixture(scope="module")
def oracle(home: Settings) -> Oracle:
    replicates = query(home, "from internal.cell_replicates").to_pylist()
    return Oracle(random_rows(np.random.default_rng(17)), replicates)


def test_differences_are_those_of_numpy(oracle: Oracle, home: Settings) -> None:
    rows = query(home, "from model_difference where source is not null").to_pylist()
    got = {(row["model"], row["other_model"], row["source"]): row for row in rows}
    pairs = [(a, b) for a in NAMES for b in NAMES if a < b]
    assert len(got) == len(pairs) * len(SOURCES)
    p_values, is_wider = {}, set()
    for a, b in pairs:
        for source in SOURCES:
            cells = [((a, source, month), (b, source, month)) for month in MONTHS]
            vectors = [oracle.deviations(x) - oracle.deviations(y) for x, y in cells]
            error = np.sqrt((np.mean(vectors, axis=0) ** 2).mean())
            errors = [(oracle.error(x), oracle.error(y)) for x, y in cells]
            freedom = satterthwaite(
                np.array([x[0] ** 2 + y[0] ** 2 for x, y in errors]),
                np.array([min(x[1], y[1]) for x, y in errors]),
            )
            curve = [oracle.figure(x) - oracle.figure(y) for x, y in cells]
            difference, half = np.mean(curve), stats.t.ppf(0.975, freedom) * error
            time_error, blocks = jackknife(changes(curve))
            wide = max(half, stats.t.ppf(0.975, blocks) * time_error)
            is_wider.add(bool(wide > half))
            row = got[a, b, source]
            ends = ("_low", "_low_documents", "", "_high_documents", "_high")
            found = [row[f"difference{end}"] for end in ends]
            expected = [difference + side for side in (-wide, -half, 0, half, wide)]
            assert found == pytest.approx(expected, abs=1e-7)
            tests = [(error, freedom), (time_error, blocks)]
            p_values[a, b, source] = max(
                2 * stats.t.sf(abs(difference / each), degrees) for each, degrees in tests
            )
            assert row["p_value"] == pytest.approx(p_values[a, b, source], abs=3e-5)
    assert True in is_wider
    ordered = sorted(p_values, key=lambda key: float(p_values[key]))
    worst = 0.0
    for step, key in enumerate(ordered):
        worst = min(1.0, max(worst, (len(ordered) - step) * p_values[key]))
        assert got[key]["p_value_adjusted"] == pytest.approx(worst, abs=3e-4)


def test_rank_intervals_are_those_of_numpy(oracle: Oracle, home: Settings) -> None:
    got = query(home, "from monthly_rank").to_pylist()
    assert len(got) == len(NAMES) * len(SOURCES) * len(MONTHS)
    ranked = [row for row in got if row["rank"] is not None]
    names = [name for name in NAMES if not name.startswith("control:")]
    assert len(ranked) == len(names) * len(SOURCES) * len(MONTHS)
    for row in ranked:
        cell = (row["model"], row["source"], row["month"])
        better = worse = 0
        for other in set(names) - {row["model"]}:
            rival = (other, row["source"], row["month"])
            vector = oracle.deviations(cell) - oracle.deviations(rival)
            freedom = min(oracle.error(cell)[1], oracle.error(rival)[1])
            t = (oracle.figure(cell) - oracle.figure(rival)) / np.sqrt((vector**2).mean())
            is_sure = stats.t.sf(abs(t), freedom) <= 0.05 / (len(names) - 1)
            better += bool(is_sure and t > 0)
            worse += bool(is_sure and t < 0)
        assert (row["rank_low"], row["rank_high"]) == (1 + better, len(names) - worse)
    assert any(row["rank_low"] == row["rank_high"] for row in ranked)
    assert any(row["rank_low"] < row["rank_high"] for row in ranked)


def test_headline_intervals_are_those_of_numpy(oracle: Oracle, home: Settings) -> None:
    rows = query(home, INTERVALS).to_pylist()
    assert len(rows) == len(NAMES)
    for row in rows:
        cells = [(row["model"], source, month) for source in SOURCES for month in MONTHS]
        figure = np.mean([oracle.figure(cell) for cell in cells])
        error = np.sqrt((np.mean([oracle.deviations(c) for c in cells], axis=0) ** 2).mean())
        errors = np.array([oracle.error(cell) for cell in cells])
        half = stats.t.ppf(0.975, satterthwaite(errors[:, 0] ** 2, errors[:, 1])) * error
        curves = np.reshape([oracle.figure(cell) for cell in cells], (len(SOURCES), -1))
        time_error, blocks = jackknife(np.mean([changes(curve) for curve in curves], axis=0))
        wide = max(half, stats.t.ppf(0.975, blocks) * time_error)
        ends = ("_low", "_low_documents", "", "_high_documents", "_high")
        found = [row[f"bits_per_byte{end}"] for end in ends]
        expected = [figure + side for side in (-wide, -half, 0, half, wide)]
        assert found == pytest.approx(expected, abs=1e-6)


def test_shares_saved_of_zstd_have_intervals(oracle: Oracle, home: Settings) -> None:
    rows = query(home, INTERVALS).to_pylist()
    zstd = next(row for row in rows if row["model"] == "control:zstd")
    assert zstd["saved_share"] is None
    for row in rows:
        if row is zstd:
            continue
        ratio = row["bits_per_byte"] / zstd["bits_per_byte"]
        cells = [
            ((row["model"], source, month), ("control:zstd", source, month))
            for source in SOURCES
            for month in MONTHS
        ]
        vectors = [oracle.deviations(x) - ratio * oracle.deviations(y) for x, y in cells]
        error = np.sqrt((np.mean(vectors, axis=0) ** 2).mean())
        freedoms = []
        for side in zip(*cells, strict=True):
            errors = np.array([oracle.error(cell) for cell in side])
            freedoms.append(satterthwaite(errors[:, 0] ** 2, errors[:, 1]))
        half = stats.t.ppf(0.975, min(freedoms)) * error
        curves = np.reshape(
            [oracle.figure(x) - ratio * oracle.figure(y) for x, y in cells], (len(SOURCES), -1)
        )
        time_error, blocks = jackknife(np.mean([changes(curve) for curve in curves], axis=0))
        wide = max(half, stats.t.ppf(0.975, blocks) * time_error)
        ends = ("_low", "_low_documents", "", "_high_documents", "_high")
        found = [row[f"saved_share{end}"] for end in ends]
        sides = np.array([-wide, -half, 0, half, wide]) / zstd["bits_per_byte"]
        assert found == pytest.approx(1 - ratio + sides, abs=1e-6)


def share_found(gap: float, side: int, rng: np.random.Generator) -> float:
    """Return in which share of 400 worlds a gap between two sides is found."""
    found = 0
    for _ in range(400):
        before = np.array([jackknife_month(0, rng) for _ in range(side)])
        after = np.array([jackknife_month(gap, rng) for _ in range(side)])
        both = np.concatenate([before, after])
        variances = both[:, 1] ** 2
        half = stats.t.ppf(0.975, satterthwaite(variances, both[:, 2])) * np.sqrt(variances.sum())
        found += after[:, 0].mean() - before[:, 0].mean() > half / side
    return found / 400


def jackknife_month(gap: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return a month's figure, standard error and degrees of freedom: 100 documents."""
    lengths = rng.lognormal(7, 1, 100).astype(int) + 10
    bits = lengths * (2 + gap + rng.normal(0, 0.2, 100))
    figure = bits.sum() / lengths.sum()
    residuals = (bits - lengths * figure) / (1 - lengths / lengths.sum())
    squares = (residuals**2).sum()
    error = np.sqrt(squares * 99 / 100) / lengths.sum()
    return figure, error, min(3 * squares**2 / (residuals**4).sum(), 99)


def test_a_gap_of_the_detectable_size_is_found_in_four_of_five_worlds(
    settings: Settings, losses: Any, ask: Any, subtests: pytest.Subtests
) -> None:
    rng = np.random.default_rng(29)
    rows: Rows = []
    for month in range(60):
        lengths = rng.lognormal(7, 1, 100).astype(int) + 10
        bits = lengths * (2 + rng.normal(0, 0.2, 100))
        day = {"month": dt.date(2018 + month // 12, month % 12 + 1, 1)}
        rows += [day | row for row in documents(str(month), bits, lengths)]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(*rows), "history")
    rows_by_side = {row["num_months_each_side"]: row for row in ask("from detectable_gap_at(0)")}
    begun = rng.bit_generator.state
    for side in (3, 6, 12):
        rng.bit_generator.state = begun
        with subtests.test(side=side):
            gap = rows_by_side[side]["detectable_gap_documents"]
            assert 0.75 <= share_found(gap, side, rng) <= 0.85
