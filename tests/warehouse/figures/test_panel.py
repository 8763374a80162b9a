"""The panel against joint least squares with a dummy for each month, written without its module."""

import datetime as dt
import math
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.linalg
import scipy.stats

from benchmarks.statistics.panels import Staggered
from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from tests.losses import loss_row
from warehouse.estimates import panel
from warehouse.estimates.panel import PanelFit, fit_panel
from warehouse.estimates.panels import OTHER_SOURCES, PanelFigure, read_panels
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

Rows = dict[str, dict[str, Any]]  # by model
Array = np.ndarray[Any, np.dtype[np.float64]]
FIRST = Month("2021-01")
START = FIRST.months_since(Month("1970-01"))
NUM_MONTHS = 24
# Of models m0 to m7, in months from the first: a thermometer, equal ones, none, after the window.
CUTOFFS = (-5, 4, 9, 9, 13, 18, None, 40)


class Joint:
    """Least squares of all models' months at once, at given sensitivities."""

    def __init__(self, y: Array, cutoffs: Array, months: Any, starts: tuple[int, ...] = ()) -> None:
        self.y, self.cutoffs, self.months, self.starts = y, cutoffs, months, starts
        self.cells = [(i, m) for i in range(len(y)) for m in range(len(months)) if self.has(i, m)]
        self.models = sorted({i for i, _ in self.cells})
        self.columns = {model: self.find_columns(model) for model in self.models}
        self.theta = dict.fromkeys(self.models, 1.0)
        self.limited: set[int] = set()
        for _ in range(3 if self.models else 0):
            slopes = {i: self.free_slope(i) for i in self.models}
            self.limited = {i for i, slope in slopes.items() if not 0.5 < slope < 1.5}
            mean = np.mean(np.clip(list(slopes.values()), 0.5, 1.5))
            self.theta = {i: np.clip(slope, 0.5, 1.5) / mean for i, slope in slopes.items()}

    def has(self, model: int, month: int) -> bool:
        own = self.months[~np.isnan(self.y[model])]
        is_in = not np.isnan(self.cutoffs[model]) and len(set(own // 3)) >= 4
        return is_in and not np.isnan(self.y[model, month])

    def find_columns(self, model: int) -> tuple[list[int], Array, list[str]]:
        own = [m for i, m in self.cells if i == model]
        age = self.months[own] - self.cutoffs[model]
        wanted = {"level": np.ones(len(own))}
        wanted |= {f"from {start}": np.array(own) >= start for start in self.starts}
        after = age > 0
        mean = age[after].sum() / max(after.sum(), 1)
        wanted |= {"gap": after, "growth": np.where(after, age - mean, 0)}
        columns, names = [wanted.pop("level")], ["level"]
        for name, column in wanted.items():
            if np.linalg.matrix_rank([*columns, column], rtol=1e-9) > len(columns):
                columns.append(column.astype(float))
                names.append(name)
        return own, np.array(columns).T, names

    def design(self) -> tuple[Array, dict[tuple[int, str], int]]:
        """Return the joint design: months first, then each model's columns."""
        place: dict[tuple[int, str], int] = {}
        blocks = [np.zeros((len(self.cells), len(self.months)))]
        for row, (i, m) in enumerate(self.cells):
            blocks[0][row, m] = self.theta[i]
        for i in self.models:
            _, columns, names = self.columns[i]
            block = np.zeros((len(self.cells), len(names)))
            block[[k for k, (j, _) in enumerate(self.cells) if j == i]] = columns
            for k, name in enumerate(names):
                place[i, name] = sum(b.shape[1] for b in blocks) + k
            blocks.append(block)
        return np.hstack(blocks), place

    @cached_property
    def weighting(self) -> Array:
        """Return the pseudoinverse of the design with columns of theta that keep their mean."""
        design, difficulty = self.design()[0], self.difficulty()
        owners = np.array([i for i, _ in self.cells])
        all_columns = [(owners == i) * difficulty[[m for _, m in self.cells]] for i in self.models]
        columns = [
            column for i, column in zip(self.models, all_columns, strict=True)
            if i not in self.limited
            and np.linalg.norm(self.projection(i) @ column[owners == i]) > 1e-9
        ]  # fmt: skip
        if len(columns) < 2:
            return np.asarray(scipy.linalg.pinv(design, rtol=1e-10))
        kept = np.array(columns).T @ scipy.linalg.null_space(np.ones((1, len(columns))))
        inverse = scipy.linalg.pinv(np.column_stack([design, kept]), rtol=1e-10)
        return np.asarray(inverse[: design.shape[1]])

    def difficulty(self) -> Array:
        values = np.array([self.y[cell] for cell in self.cells])
        design = self.design()[0]
        return np.asarray(scipy.linalg.lstsq(design, values, cond=1e-10)[0][: len(self.months)])

    def month_difficulties(self) -> list[tuple[float | None, float | None]]:
        """Return each month's lambda less the mean, with its standard error; None if not told."""
        design, count = self.design()[0], len(self.months)
        free = scipy.linalg.null_space(design, 1e-9)[:count] if self.models else np.eye(count)
        is_near = np.abs(free[:, None] - free).max(axis=2, initial=0) < 1e-7
        is_told = is_near[is_near.sum(axis=1).argmax()]
        found: list[tuple[float | None, float | None]] = [(None, None)] * count
        values = np.array([self.y[cell] for cell in self.cells])
        inverse = scipy.linalg.pinv(design, rtol=1e-10) @ values
        several = is_told & (is_told.sum() > 1)
        weighting = self.weighting if several.any() else design.T
        for month in np.flatnonzero(several):
            weights = weighting[month] - weighting[:count][is_told].mean(axis=0)
            value = float(inverse[month] - inverse[:count][is_told].mean())
            found[month] = value, self.error(design, weights)
        return found

    def with_difficulty(self, model: int) -> tuple[Array, Array, list[str]]:
        own, columns, names = self.columns[model]
        both = np.column_stack([columns, self.difficulty()[own]])
        left = both[:, -1] - columns @ scipy.linalg.lstsq(columns, both[:, -1])[0]
        if np.abs(left).max() < 1e-9:
            both = columns
        return both, self.y[model, own], names

    def free_slope(self, model: int) -> float:
        design, values, names = self.with_difficulty(model)
        if design.shape[1] == len(names):
            return 1.0
        return float(scipy.linalg.lstsq(design, values)[0][-1])

    def effect(self, model: int, name: str) -> tuple[float, float] | None:
        """Return figure and standard error, or None if the months cannot tell it."""
        design, place = self.design()
        if (model, name) not in place:
            return None
        if np.abs(scipy.linalg.null_space(design, 1e-9)[place[model, name]]).max(initial=0) > 1e-7:
            return None
        own, values, names = self.with_difficulty(model)
        row = scipy.linalg.pinv(own)[names.index(name)]
        error = self.error(design, self.weights(model, row))
        return (float(row @ values), error) if error is not None else None

    def difference_error(self, model: int, other: int, name: str) -> float | None:
        design, each = self.design()[0], []
        for one in (model, other):
            own, _, names = self.with_difficulty(one)
            row = scipy.linalg.pinv(own)[names.index(name)]
            each.append(self.weights(one, row))
        return self.error(design, each[0] - each[1])

    def weights(self, model: int, row: Array) -> Array:
        inverse = self.weighting
        is_own = np.array([i == model for i, _ in self.cells])
        weights = -self.theta[model] * (row @ inverse[[m for i, m in self.cells if i == model]])
        weights[is_own] += row
        return np.asarray(weights)

    def error(self, design: Array, weights: Array) -> float | None:
        inverse = scipy.linalg.pinv(design, rtol=1e-10)
        owners = np.array([i for i, _ in self.cells])
        at = np.array([m for _, m in self.cells])
        values = np.array([self.y[cell] for cell in self.cells])
        hat = design @ inverse
        left = values - hat @ values
        free = {i: (1 - np.diag(hat)[owners == i]).sum() - 1 for i in self.models}
        self.num_free = sum(free.values())
        if self.num_free < 0.5:
            return None
        variance = left @ left / sum(free.values())
        of_models, kept = 0.0, 0.0
        rest = self.rest(design, owners, at)
        share, r = self.memory(left, rest, owners, at)
        for i in self.models:
            mine, own = left[owners == i], self.months[at[owners == i]]
            s2 = mine @ mine / free[i] if free[i] >= 1 else variance
            correlations = share * r ** np.abs(own[:, None] - own) + (1 - share) * np.eye(len(own))
            of_models += s2 * (weights[owners == i] @ correlations @ weights[owners == i])
            kept += np.trace(rest[np.ix_(owners == i, owners == i)] @ correlations)
        of_models *= np.trace(rest) / kept
        quarters = self.months[at] // 3
        scores = [(weights * left)[quarters == q].sum() for q in set(self.months // 3)]
        clustered = len(scores) / (len(scores) - 1) * np.square(scores).sum()
        return math.sqrt(max(variance * weights @ weights, of_models, clustered))

    def projection(self, model: int) -> Array:
        columns = self.columns[model][1]
        return np.asarray(np.eye(len(columns)) - columns @ scipy.linalg.pinv(columns))

    def rest(self, design: Array, owners: Array, at: Array) -> Array:
        """Return the projection that leaves no months, columns and free sensitivities."""
        difficulty = self.difficulty()[at]
        free = [(owners == i) * difficulty for i in self.models if i not in self.limited]
        columns = np.column_stack([design, *free])
        return np.asarray(np.eye(len(columns)) - columns @ scipy.linalg.pinv(columns, rtol=1e-9))

    def memory(self, left: Array, rest: Array, owners: Array, at: Array) -> tuple[float, float]:
        """Return the lasting share and the r whose expected products fit the residuals best."""
        counts = np.zeros(2)
        for others in np.abs(self.months[:, None] - self.months):
            counts += (others == 1).sum(), ((others >= 2) & (others <= 6)).sum()
        is_same = owners[:, None] == owners
        apart = np.abs(self.months[at][:, None] - self.months[at])
        observed = by_distance(np.outer(left, left) * is_same, apart)
        of_white = by_distance(rest * is_same, apart)
        expected: dict[tuple[float, float], Array] = {}
        for r in np.arange(46) / 50:
            of_lasting = by_distance(rest @ (r**apart * is_same) @ rest * is_same, apart)
            for share in np.arange(51) / 50:
                expected[share, r] = (1 - share) * of_white + share * of_lasting

        def off(memory: tuple[float, float]) -> float:
            ratios = expected[memory][1:] / expected[memory][0] - observed[1:] / observed[0]
            return float((ratios**2 / counts).sum())

        return min(expected, key=off)


def by_distance(products: Array, apart: Array) -> Array:
    """Return the sums of products of the same month, of months one apart, and two to six apart."""
    places = (apart == 0, apart == 1, (apart > 1) & (apart < 7))
    return np.array([products[each].sum() for each in places])


def draw(number: int, models: list[int]) -> Array:
    """Draw an unbalanced panel: drift, sensitivities, growing gaps, a third of months missing."""
    rng = np.random.default_rng(number)
    drift = 0.002 * np.arange(NUM_MONTHS) + rng.normal(0, 0.03, NUM_MONTHS)
    y = 1 + 0.1 * np.arange(len(models))[:, None] + rng.normal(0, 0.01, (len(models), NUM_MONTHS))
    for row, model in zip(y, models, strict=True):
        row += rng.uniform(0.7, 1.3) * drift
        age = np.arange(NUM_MONTHS) - (CUTOFFS[model] or 0)
        row += np.where(age > 0, 0.05 + 0.002 * age, 0)
        row[rng.random(NUM_MONTHS) < rng.choice([0.05, 0.33, 0.6])] = np.nan
    return y


def members(number: int) -> list[int]:
    rng = np.random.default_rng([number, 1])
    return sorted(rng.choice(len(CUTOFFS), 1 + number % len(CUTOFFS), replace=False).tolist())


def numbered(models: list[int]) -> Array:
    return START + np.array([np.nan if CUTOFFS[m] is None else CUTOFFS[m] for m in models], float)


def assert_close(figure: float | None, expected: float | None, what: object) -> None:
    is_none = figure is None or math.isnan(figure)
    assert is_none == (expected is None), what
    if figure is not None and expected is not None:
        assert figure == pytest.approx(expected, rel=1e-9, abs=1e-9), what


@pytest.mark.parametrize(("number", "starts"), [(4, (12,)), (7, (5, 14, 23)), (6, (10, 19))])
def test_fit_of_a_source_with_regimes(number: int, starts: tuple[int, ...]) -> None:
    y, cutoffs = draw(number, members(number)), numbered(members(number))
    for start in starts:
        y[:, start:] += np.random.default_rng(start).normal(0, 0.3, (len(y), 1))
    label = np.searchsorted(starts, months() - START, side="right")
    regimes = [label == number + 1 for number in range(len(starts))]
    fit = fit_panel(y, cutoffs, months(), np.array(regimes, dtype=float).T)
    joint = Joint(y, cutoffs, months(), starts)
    told = 0
    for model in range(len(y)):
        for name in ("gap", "growth"):
            expected, found = joint.effect(model, name) or (None, None), getattr(fit, name)
            assert_close(found.values[model], expected[0], (model, name))
            assert_close(found.errors[model], expected[1], (model, name))
            told += expected[0] is not None
    assert told > 3


def test_a_gap_that_begins_with_a_regime_is_not_told() -> None:
    y, _ = staggered([3, 9, 15, 19])
    regime = (months() - START > 9).astype(float)[:, None]
    fit = fit_panel(y, START + np.array([3.0, 9, 15, 19]), months(), regime)
    assert fit.gap.reasons == (None, panel.AT_REGIME, None, None)
    assert fit.growth.reasons == (None,) * 4
    assert fit.gap.values[2] == pytest.approx(0.1, abs=0.03)


def months() -> Any:
    return START + np.arange(NUM_MONTHS)


@pytest.mark.long
def test_the_views_agree_with_least_squares_on_12_panels(settings: Settings) -> None:
    rows = []
    for number in range(12):
        models = members(number)
        for model, curve in zip(models, draw(number, models), strict=True):
            rows += [cell(f"m{model}", f"s{number:02}", m, bits) for m, bits in enumerate(curve)]
    land(settings, [row for row in rows if not math.isnan(row["nll_nats"])])
    views = ("control_adjusted_gap", "ageing", "model_sensitivity")
    tables = [query(settings, f"from {view}").to_pylist() for view in views]
    assert_ages_agree(query(settings, "from age_in_parameters").to_pylist(), tables[1])
    more = (
        "internal.panel_effects",
        "internal.panel_difficulty",
        "effect_difference",
        "internal.panel_differences",
    )
    effects, difficulties, differences, errors = (
        query(settings, f"from {table} where source is not null").to_pylist() for table in more
    )
    pairs = {(row["source"], *pair(row)): row["difference_error"] for row in errors}
    for number in range(12):
        source = f"s{number:02}"
        assert_source_agrees(number, *(by_model(rows, source) for rows in (*tables, effects)))
        days = {row["month"]: row for row in difficulties if row["source"] == source}
        assert_months_agree(number, days)
        own = [row for row in differences if row["source"] == source and row["basis"] == "panel"]
        assert_differences_agree(number, own, pairs)
    assert len([row for row in differences if row["basis"] == "panel"]) == len(pairs) > 60


def pair(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["model"], row["other_model"], row["effect"]


def assert_months_agree(number: int, rows: dict[Any, dict[str, Any]]) -> None:
    y, cutoffs = draw(number, members(number)), numbered(members(number))
    joint = Joint(y, cutoffs, months())
    for month, (value, error) in enumerate(joint.month_difficulties()):
        row = rows.pop((FIRST + month).first_day, None)
        if row is None:
            assert np.isnan(y[~np.isnan(cutoffs), month]).all()
            continue
        assert_close(row["difficulty"], value, (number, month))
        assert_close(row["difficulty_error"], error, (number, month))
    assert not rows


def assert_differences_agree(
    number: int, rows: list[dict[str, Any]], pairs: dict[Any, float]
) -> None:
    models = members(number)
    joint = Joint(draw(number, models), numbered(models), months())
    for row in rows:
        one, other = (models.index(int(row[name][1:])) for name in ("model", "other_model"))
        figures = [joint.effect(each, row["effect"]) for each in (one, other)]
        assert figures[0] is not None and figures[1] is not None
        assert_close(row["difference"], figures[0][0] - figures[1][0], row)
        error = joint.difference_error(one, other, row["effect"])
        assert_close(pairs[row["source"], *pair(row)], error, row)


def assert_ages_agree(ages: list[dict[str, Any]], growths: list[dict[str, Any]]) -> None:
    """Fieller's interval has the ratios at which a combination of both figures has 0 inside."""
    growth_of = {(row["model"], row["source"]): row for row in growths}
    told = [row for row in ages if row["reason"] is None]
    assert len(told) >= 5
    for row in told:
        number = int(row["source"][1:])
        models = [m for m in members(number) if m != 6]
        y = draw(number, members(number))[[members(number).index(m) for m in models]]
        cutoffs = numbered(models) - START
        is_shared = ~np.isnan(y).any(axis=0)
        is_before = is_shared & (np.arange(NUM_MONTHS) <= cutoffs.min())
        is_in = (
            is_before if is_before.any() else is_shared & (np.arange(NUM_MONTHS) > cutoffs.max())
        )
        line = scipy.stats.linregress(np.log(sizes()[models]), y[:, is_in].mean(axis=1))
        half = scipy.stats.t.ppf(0.975, len(models) - 2) * line.stderr
        growth = growth_of[row["model"], row["source"]]
        own = growth["growth_per_year"]
        own_half = growth["growth_per_year_high"] - own
        assert row["equivalent_share"] == pytest.approx(math.exp(own / line.slope), rel=1e-9)
        for end in ("low", "high"):
            ratio = math.log(row[f"equivalent_share_{end}"])
            outside = (own - ratio * line.slope) ** 2
            assert outside == pytest.approx(own_half**2 + (ratio * half) ** 2, rel=1e-5)


def sizes() -> Array:
    return np.asarray(1e9 * 2.0 ** (len(CUTOFFS) - np.arange(len(CUTOFFS))))


def assert_source_agrees(
    number: int, gaps: Rows, growths: Rows, thetas: Rows, effects: Rows
) -> None:
    models = [m for m in members(number) if f"m{m}" in gaps]
    y = draw(number, members(number))[[members(number).index(m) for m in models]]
    joint = Joint(y, numbered(models), months())
    for place, model in enumerate(models):
        freedom = len({int(m) // 3 for m in months()[~np.isnan(y[place])]}) - 1
        for row, view, name in (
            (gaps[f"m{model}"], "adjusted_gap", "gap"),
            (growths[f"m{model}"], "growth_per_month", "growth"),
        ):
            figure, error = joint.effect(place, name) or (None, None)
            assert_close(row[view], figure, (number, model, name))
            assert (row["reason"] is None) == (figure is not None)
            assert_close(effects[f"m{model}"][f"{name}_error"], error, (number, model, name))
            if figure is not None and error is not None:
                half = (row[f"{view}_high"] - row[f"{view}_low"]) / 2
                freedom = min(freedom, joint.num_free)
                # t_975 is a polynomial, right to 1e-7.
                assert half == pytest.approx(scipy.stats.t.ppf(0.975, freedom) * error, rel=3e-7)
        theta = joint.theta.get(place) if len(joint.models) > 1 else None
        assert_close(thetas[f"m{model}"]["sensitivity"], theta, (number, model))


def by_model(rows: list[dict[str, Any]], source: str) -> Rows:
    return {row["model"]: row for row in rows if row["source"] == source}


def cell(model: str, source: str, month: int, bits: float, document: str = "d") -> dict[str, Any]:
    first = (FIRST + month).first_day
    nats = bits * 1000 * math.log(2)
    return loss_row(model, source, first, document, nll_nats=nats, num_chars=1000, num_bytes=1000)


def land(settings: Settings, rows: list[dict[str, Any]]) -> None:
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist(rows, schema=LOSSES), "panels")
        warehouse.upsert_models(
            [
                {
                    "name": f"m{number}",
                    "cutoff": FIRST + cutoff,
                    "cutoff_provenance": "stated",
                    "family": "m",
                    "parameters": 10**9 * 2 ** (len(CUTOFFS) - number),
                }
                for number, cutoff in enumerate(CUTOFFS)
                if cutoff is not None
            ]
        )
    publish(settings)


def staggered(cutoffs: list[float], noise: float = 0.005) -> tuple[Array, PanelFit]:
    """Fit models with a gap of 0.1 and growth of 0.01 a month from their cutoffs on."""
    rng = np.random.default_rng(0)
    y = rng.normal(0, noise, (len(cutoffs), NUM_MONTHS)) + rng.normal(0, 0.05, NUM_MONTHS)
    for row, cutoff in zip(y, cutoffs, strict=True):
        age = np.arange(NUM_MONTHS) - (-99 if math.isnan(cutoff) else cutoff)
        after = age > 0
        if after.any():
            row += np.where(after, 0.1 + 0.01 * (age - age[after].mean()), 0)
    return y, fit_panel(y, START + np.array(cutoffs), months())


@pytest.mark.parametrize(
    ("cutoffs", "gap_reason", "growth_reason"),
    [([8], panel.NO_CONTROL, panel.NO_CONTROL),
     ([8, 8, 8], panel.NO_CONTROL, panel.NO_CONTROL),
     ([math.nan, 5, 9], panel.NO_CUTOFF, panel.NO_CUTOFF),
     ([-9, 5, 9], panel.NONE_BEFORE, None),
     ([23, 5, 9], panel.NONE_AFTER, panel.NONE_AFTER),
     ([22, 5, 9], None, panel.ONE_AFTER),
     ([22, 21], panel.UNTOLD, panel.ONE_AFTER),
     ([8, 5], None, None),
     ([8, 40], None, None)],
)  # fmt: skip
def test_a_figure_that_cannot_be_told_has_a_reason(
    cutoffs: list[float], gap_reason: str | None, growth_reason: str | None
) -> None:
    _, fit = staggered(cutoffs)
    for found, reason in ((fit.gap, gap_reason), (fit.growth, growth_reason)):
        assert found.reasons[0] == reason
        assert np.isnan(found.values[0]) == np.isnan(found.errors[0]) == (reason is not None)


@pytest.mark.parametrize(
    ("cutoff", "gap_reason", "growth_reason"),
    [(5, panel.FEW_BLOCKS, panel.FEW_BLOCKS),
     (-9, panel.NONE_BEFORE, panel.FEW_BLOCKS),  # more months would not give any before it
     (8, panel.NONE_AFTER, panel.NONE_AFTER)],
)  # fmt: skip
def test_too_few_blocks(cutoff: float, gap_reason: str, growth_reason: str) -> None:
    y, _ = staggered([5, 9, 12])
    y[0, 9:] = np.nan
    fit = fit_panel(y, START + np.array([cutoff, 9.0, 12.0]), months())
    assert fit.gap.reasons == (gap_reason, None, None)
    assert fit.growth.reasons == (growth_reason, None, None)
    assert np.isnan(fit.theta[0])
    assert fit.enters.tolist() == [False, True, True]


def test_a_gap_without_degrees_of_freedom_counts_the_months() -> None:
    losses = np.array([[1.00, 1.04, 0.98, 1.16], [1.01, 1.03, 1.20, 1.31]])
    fit = fit_panel(losses, np.array([590.0, 604.0]), np.array([600, 603, 606, 609]))
    assert np.isnan(fit.gap.values[1])
    assert fit.gap.reasons[1] == "4 months leave no degrees of freedom for an interval"


def test_a_thermometer_tells_what_models_that_change_at_once_cannot() -> None:
    _, alone = staggered([11, 11, 11])
    _, fit = staggered([11, 11, 11, -30])
    assert np.isnan(alone.gap.values).all()
    assert fit.gap.values[:3] == pytest.approx([0.1] * 3, abs=0.02)
    assert np.isnan(alone.difficulty[12:]).all(), "only months before the cutoff compare"
    assert not np.isnan(alone.difficulty[:12]).any()


def test_months_before_a_common_cutoff_are_told_by_their_differences() -> None:
    y, alone = staggered([11, 11, 11], noise=0)
    before = y[0, :12]
    assert alone.difficulty[:12] == pytest.approx(before - before.mean(), abs=1e-9)


def test_no_month_is_told_where_each_may_differ_by_growth_from_each_other() -> None:
    _, fit = staggered([-30, -30, -30])
    assert np.isnan(fit.difficulty).all()


def test_a_fit_depends_on_the_figures_alone() -> None:
    y, fit = staggered([3, 7, 7, 15, -2])
    again = fit_panel(y.copy(), START + np.array([3.0, 7, 7, 15, -2]), months())
    assert np.array_equal(fit.gap.values, again.gap.values, equal_nan=True)
    assert np.array_equal(fit.difficulty, again.difficulty)
    turned = fit_panel(y[::-1], START + np.array([-2.0, 15, 7, 7, 3]), months())
    assert turned.growth.values[::-1] == pytest.approx(fit.growth.values, rel=1e-9, nan_ok=True)


def test_the_difficulty_without_a_model() -> None:
    y, fit = staggered([3, 8, 12, 16, 19], noise=0)
    without = fit.difficulty_without(2)
    assert without is not None
    values = without.values - without.values.mean()
    assert values == pytest.approx(fit.difficulty, abs=1e-9)
    _, pair = staggered([8, 12])
    other = pair.difficulty_without(1)
    assert other is not None
    assert other.unknown.shape == (NUM_MONTHS, 3)  # level, gap and growth of the other model


def test_a_world_without_gaps_shows_none() -> None:
    excluded = []
    for number in range(60):
        rng = np.random.default_rng(number)
        shocks = rng.standard_normal(36)
        for month in range(1, 36):
            shocks[month] += 0.5 * shocks[month - 1]
        drift = 0.02 * shocks + 0.003 * np.arange(36)
        y = np.linspace(0.8, 1.2, 6)[:, None] * drift + rng.normal(0, 0.01, (6, 36))
        fit = fit_panel(y, np.linspace(4, 28, 6).round(), np.arange(36))
        excluded.append(np.abs(fit.gap.values / fit.gap.errors) > scipy.stats.t.ppf(0.975, 11))
    assert np.mean(excluded) <= 0.06


@pytest.mark.long
def test_a_differing_document_costs_itself(settings: Settings) -> None:
    rng = np.random.default_rng(2)
    lengths = rng.uniform(0.5, 1.5, (NUM_MONTHS, 3))
    rows = [
        cell(f"m{model}", "news", month, 1 + model + lengths[month, document], f"d{document}")
        for model in (1, 2, 4)
        for month in range(NUM_MONTHS)
        for document in range(3)
        if (model, month, document) != (2, 7, 0)
    ]
    rows += [row | {"model": "control:zstd"} for row in rows if row["model"] == "m1"]
    rows += [cell("m4", "far", month, 1.0, "x") for month in range(NUM_MONTHS)]
    rows += [cell(f"m{m}", "far", month, 1.0) for month in range(NUM_MONTHS) for m in (1, 2)]
    land(settings, rows)
    found = query(settings, "from control_adjusted_gap where source = 'news' order by model")
    assert found["adjusted_gap"].to_pylist() == pytest.approx([0, 0, 0], abs=1e-9)
    numbers = query(settings, "from internal.panel_effects where source = 'news' order by model")
    assert numbers["num_documents"].to_pylist() == [72, 71, 72]
    assert found["compressor_adjusted_gap"].to_pylist() == pytest.approx([0, 0, 0], abs=1e-9)
    gaps = query(settings, "from internal.control_adjusted_gap_at(cast(null as date))").to_pylist()
    assert {row["num_months_left_out"] for row in gaps if row["source"] == "news"} == {0}
    [row] = query(
        settings, "from control_adjusted_gap where source = 'far' and model = 'm4'"
    ).to_pylist()
    assert row["reason"] == "other documents than most models"
    mean = query(
        settings, "from control_adjusted_gap where scope = 'all' and model = 'm4'"
    ).to_pylist()
    assert mean[0]["reason"] == "other sources than most models"
    tables = [query(settings, f"from internal.{name}") for name in TABLES]
    publish(settings)
    assert tables == [query(settings, f"from internal.{name}") for name in TABLES]
    assert max(tables[1]["month"].to_pylist()) < dt.date(2023, 1, 1)


TABLES = ("panel_effects", "panel_difficulty")


@pytest.mark.parametrize("source", ["break", "drift"])
def test_intervals_of_few_models_hold_the_gap_beside_what_all_feel(source: str) -> None:
    """Formerly 163 and 164 of 180: errors of the other models' sensitivities did not count."""
    design = Staggered(3, 84, apart=24, length=0, gap=0.03, source=source)
    held = 0
    for number in range(60):
        y, cutoffs, _, _ = design.draw(501, number)
        fit = fit_panel(y, cutoffs, np.arange(84))
        quantile = scipy.stats.t.ppf(0.975, fit.degrees_of_freedom)
        held += int((np.abs(fit.gap.values - 0.03) <= quantile * fit.gap.errors).sum())
    assert held >= 0.93 * 180


def test_intervals_of_few_models_hold_the_gap_in_noise_that_lasts() -> None:
    """Formerly 165 of 180: the noise that lambda takes away from the residuals did not count."""
    design = Staggered(3, 84, apart=24, length=0, gap=0.03, memory=0.8, lasting=1 / 3)
    held = 0
    for number in range(60):
        y, cutoffs, _, _ = design.draw(501, number)
        fit = fit_panel(y, cutoffs, np.arange(84))
        quantile = scipy.stats.t.ppf(0.975, fit.degrees_of_freedom)
        held += int((np.abs(fit.gap.values - 0.03) <= quantile * fit.gap.errors).sum())
    assert held >= 0.93 * 180


def test_the_memory_of_few_models_is_that_of_their_noise() -> None:
    """A mean over many months has 3 times the variance of white noise; formerly 2.45 was told."""
    design = Staggered(3, 84, apart=24, length=0, gap=0.03, memory=0.5)
    told = []
    for number in range(60):
        y, cutoffs, _, _ = design.draw(501, number)
        memory, _ = panel.memory_of(fit_panel(y, cutoffs, np.arange(84)).solution)
        told.append(memory.long_run)
    assert 2.7 <= np.median(told) <= 3.3


@pytest.mark.parametrize(
    ("num_others", "reason"),
    [(1, "too few months of news, which the mean over sources has"), (2, OTHER_SOURCES)],
)
def test_a_tie_of_sources_is_no_majority(num_others: int, reason: str) -> None:
    """Formerly, one of two models was said to have other sources than most models."""
    names = ["m0", *(f"m{number}" for number in range(1, num_others + 1))]
    cells: list[PanelFigure] = [
        {
            "model": name,
            "source": "blog" if name == "m0" else "news",
            "protocol": "default",
            "month": dt.date(2023, month, 1),
            "is_text": True,
            "is_compressor": False,
            "cutoff": None,
            "role": None,
            "standard_error": None,
            "bits_per_byte": 1.0,
            "num_documents": 1,
        }
        for name in names
        for month in range(1, 13)
    ]
    *_, (source, means, _) = read_panels(cells, dict.fromkeys(names, np.nan))
    assert source is None
    assert [means[name].reason for name in names] == [reason, *[None] * num_others]
