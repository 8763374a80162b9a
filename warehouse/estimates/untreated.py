"""The difficulty of the months from untreated model-months, and all cutoffs of a panel in turn.

A month of a model is treated once its training text thins out. Models that are treated at different
times are no controls for each other ("forbidden comparisons": Goodman-Bacon 2021). So lambda is
estimated without the months in which text thins out. Cutoffs are dated against it (Borusyak,
Jaravel and Spiess 2024, "Revisiting Event-Study Designs"):

    y_im = x_im' gamma_i + theta_i lambda_m + u_im        in the months that model i keeps

- x: 1 and the regimes of the source. After a cutoff, a model has a level and a line of its own
  (``panel``: after, hinge), so that its effect there is free.
- Kept months: up to ``start`` and from ``end`` on, of the model's ``Spell``. A model whose cutoff
  is before the window (a thermometer) keeps all months.
- Compressors are one row, the mean of their curves. x has a straight line, too: a drift that only
  language models feel is no change. Its theta is limited to 0.1 ... 3.

theta and lambda as in ``panel``, three times in turn, with weights w of the rows:

    M = sum_i w_i theta_i^2 R_i        lambda = M+ sum_i w_i theta_i R_i y_i        cov = s^2 M+

The models' noise may last from month to month. If few other models tell lambda, its error lasts,
too, and looks like a ramp. So panels of at most 9 models have another cov, and the joint fit, too
(``staggered``). C_mn = r^|m - n| and k are those of ``panel``. No curve has a smaller r:

    cov = M+ K M+
    K = s^2 (sum of models theta_i^2 R_i C R_i / k + compressors' w theta^2 R)

w is 1 for a model. For the compressors, w = s^2 / (s_c^2 (1 + r) / (1 - r)), 0.005 to 1. s_c^2 and
r, limited to 0 ... 0.9, are the variance and the autocorrelation of their residuals; s^2 is the
variance of the models' residuals.

Spells in turn. First, a model with a stated cutoff c keeps the months up to c - 8 and after c (of
fewer than 24 months: up to c less a third of them). A model without one enters later, if others or
a compressor can tell lambda. Then each model is dated by ``cutoffs`` against lambda without it. If
a change is found, its interval is the new spell: text thins out from the lowest onset to the
highest cutoff; months beyond an open end are left out. If none is found, a model with a stated
cutoff has its first spell. Another is untreated; but if no cutoff is stated within the window, it
does not enter. This is repeated until no spell moves (in a large panel: one in twenty), at most six
times. In a large panel, rounds after the second date only models whose spells have just moved, and
all are dated at the end.

The intervals also hold those found without each of the other models, if there are 3 to 8.

A month in which no model is kept, and no compressor has a figure, is in ``Difficulty.unknown``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from warehouse.estimates.contamination import find_low_months
from warehouse.estimates.cutoffs import CutoffFit, fit_cutoff
from warehouse.estimates.panel import (
    LEAST_SENSITIVITY,
    MOST_SENSITIVITY,
    Design,
    Difficulty,
    annihilator,
    design,
    null_space,
    solve_difficulty,
)
from warehouse.estimates.panel_errors import (
    MOST_AUTOCORRELATION,
    TINY,
    Flags,
    Floats,
    find_autocorrelation,
    lag,
)
from warehouse.estimates.regression import ZERO, Months

MARGIN = 8  # months before a stated cutoff in which text may thin out
MIN_KEPT = 4  # months of a row
LEAST_WEIGHT = 0.005  # of the compressors; without it, curves without noise would leave them out
LEAST_OTHERS = 3
MOST_OTHERS = 8
NUM_SENSITIVITIES = 3
MOST_ROUNDS = 6
LARGE_PANEL = 20  # models; one spell in so many may still move
_CONTROL_SENSITIVITY = 0.1, 3.0


class Spell(NamedTuple):
    """Text thins out after month ``start`` and before month ``end``."""

    start: float
    end: float


UNTREATED = Spell(np.inf, np.inf)


@dataclass(frozen=True)
class Untreated:
    """lambda of the kept months; arrays have a row per model, then one of the compressors."""

    theta: Floats  # 0: the row did not enter
    weights: Floats  # w
    annihilators: Floats  # R
    remainders: Floats  # R y
    total: Floats  # M
    unknown: Floats
    noises: Floats  # each row's part of K = M cov(lambda) M
    autocorrelation: float  # of the models' noise
    num_models: int

    def without(self, *numbers: int) -> Difficulty | None:
        """Return lambda without some rows, at unchanged theta; None if no row is left."""
        theta = self.theta.copy()
        total = self.total
        for number in numbers:
            share = self.weights[number] * theta[number] ** 2
            total = total - share * self.annihilators[number]
            theta[number] = 0
        if not theta.any():
            return None
        unknown = null_space(total, self.unknown)
        weighted = theta * self.weights
        found = solve_difficulty(weighted, self.annihilators, self.remainders, total, unknown)
        noise = self.noise - self.noises[[*numbers]].sum(axis=0)
        covariance = found.inverse @ noise @ found.inverse
        return replace(
            found, theta=theta, covariance=covariance, autocorrelation=self.autocorrelation
        )

    @cached_property
    def noise(self) -> Floats:
        """K, (months, months)."""
        return np.asarray(self.noises.sum(axis=0))


@dataclass(frozen=True)
class DatedCurve:
    """One model's curve and the change that a panel shows in it."""

    others: list[int]  # numbers of the models that lambda is fitted with
    spell: Spell | None  # the model's own, in the fits of the others
    difficulty: Difficulty | None  # lambda without the model
    losses: Floats  # (months,); NaN for a low month, too
    cutoff: CutoffFit | None


def fit_untreated(
    losses: Floats,
    spells: list[Spell | None],
    months: Months,
    regimes: Floats,
    control: Floats | None,
) -> Untreated:
    """Fit lambda to the months that models keep.

    Args:
        losses: bits per byte of shape (models, months); NaN for a missing month.
        spells: one of each model; None if it does not enter.
        months: ascending month numbers.
        regimes: as in ``panel.fit_panel``.
        control: the compressors' curve (months,), or None.
    """
    rows = [_kept(row, spell, months) for row, spell in zip(losses, spells, strict=True)]
    ends = [np.inf if spell is None else spell.end for spell in spells]
    designs = [
        design(months, ~np.isnan(row), end - 1, regimes)
        if np.isfinite(row).sum() >= MIN_KEPT
        else None
        for row, end in zip(rows, ends, strict=True)
    ]
    if control is not None:
        line = (months - months.mean()) / 12
        rows.append(control)
        designs.append(design(months, ~np.isnan(control), np.inf, np.column_stack([line, regimes])))
    rows_of_losses = np.nan_to_num(np.array(rows))
    has_memory = len(losses) <= MOST_OTHERS + 1
    return fit_rows(rows_of_losses, designs, len(losses), months, has_memory=has_memory)


def _kept(losses: Floats, spell: Spell | None, months: Months) -> Floats:
    """Return the losses of the months that a model keeps, NaN for the others."""
    if spell is None:
        return np.full(len(months), np.nan)
    return np.where((months <= spell.start) | (months >= spell.end), losses, np.nan)


def fit_rows(
    losses: Floats,
    designs: list[Design | None],
    num_models: int,
    months: Months,
    *,
    has_memory: bool = False,
) -> Untreated:
    """Fit lambda to rows of models, then of compressors, each with its X; None: it does not enter.

    ``losses`` (rows, months) are 0 in the months that a row does not keep. With ``has_memory``,
    the models' noise lasts from month to month.
    """
    enters = np.array([each is not None for each in designs])
    is_model = enters & (np.arange(len(losses)) < num_models)
    annihilators = np.array([annihilator(each, len(months)) for each in designs])
    remainders = (annihilators @ losses[:, :, None])[:, :, 0]
    least, most = _CONTROL_SENSITIVITY
    lowest = np.where(is_model, LEAST_SENSITIVITY, least)
    highest = np.where(is_model, MOST_SENSITIVITY, most)
    num_columns = np.array([each.columns.shape[1] if each else 0 for each in designs])
    num_kept = np.array([each.observed.sum() if each else 0 for each in designs])
    counted = is_model if is_model.any() else enters
    theta = enters.astype(float)
    weights = np.ones(len(losses))
    nothing = np.zeros((len(months), 0))
    for turn in range(NUM_SENSITIVITIES + 1):
        total = np.tensordot(theta**2 * weights, annihilators, 1)
        unknown = null_space(total, nothing)
        found = solve_difficulty(theta * weights, annihilators, remainders, total, unknown)
        moved = annihilators @ found.values
        left = remainders - theta[:, None] * moved
        squares = (left**2).sum(axis=1)
        traces = annihilators.reshape(len(losses), -1) @ found.inverse.ravel()  # of R M+
        taken = theta**2 * weights * traces
        num_free = np.where(enters, num_kept - num_columns - 1 - taken, 0)
        variance = float(squares[counted].sum() / max(float(num_free[counted].sum()), 0.5))
        if turn == NUM_SENSITIVITIES:
            break
        for row in np.flatnonzero(enters & ~is_model):
            if is_model.sum() >= 2 and num_free[row] >= 1:
                own = squares[row] / num_free[row] * _long_run(left[row], months, num_kept[row])
                weights[row] = np.clip(variance / max(own, TINY), LEAST_WEIGHT, 1)
        theta = _sensitivities(moved, remainders, lowest, highest) * enters
        theta = theta / (theta[is_model].mean() if is_model.any() else 1)
    correlation, noises = _noises(annihilators, left, is_model & has_memory, months)
    return Untreated(
        theta=theta,
        weights=weights,
        annihilators=annihilators,
        remainders=remainders,
        total=total,
        unknown=unknown,
        noises=variance * (theta**2 * weights)[:, None, None] * noises,
        autocorrelation=correlation,
        num_models=num_models,
    )


def _noises(
    annihilators: Floats, left: Floats, has_memory: Flags, months: Months
) -> tuple[float, Floats]:
    """Return r of the rows whose noise lasts, and R C R / k of each row, as in ``panel``.

    ``left`` (rows, months) are residuals. For rows whose noise does not last, it is R.
    """
    lasting = annihilators[has_memory]
    if not len(lasting):
        return 0.0, annihilators
    total = lasting.sum(axis=0)
    r, kept = find_autocorrelation(total, lag(lasting, months), left[has_memory], months)
    correlations = r ** np.abs(months[:, None] - months)
    noises = annihilators.copy()
    noises[has_memory] = lasting @ correlations @ lasting / kept
    return r, noises


def _long_run(left: Floats, months: Months, num_kept: float) -> float:
    """Return (1 + r) / (1 - r) of residuals (months,); 0 in months that a row does not keep."""
    is_next = np.diff(months) == 1
    products = (left[:-1] * left[1:])[is_next]
    r = float(products.sum() / max(np.square(left).sum(), TINY))
    r = float(np.clip(r + (1 + 4 * r) / num_kept, 0, MOST_AUTOCORRELATION))
    return (1 + r) / (1 - r)


def _sensitivities(moved: Floats, remainders: Floats, lowest: Floats, highest: Floats) -> Floats:
    """Return theta by least squares of R y on R lambda; 1 where lambda tells nothing."""
    squares = (moved**2).sum(axis=1)
    is_told = squares > ZERO * squares.max(initial=0)
    slopes = (moved * remainders).sum(axis=1) / np.where(is_told, squares, 1)
    return np.asarray(np.clip(np.where(is_told, slopes, 1), lowest, highest))


def date_cutoffs(
    losses: Floats, cutoffs: Floats, months: Months, regimes: Floats, control: Floats | None
) -> list[DatedCurve]:
    """Date the cutoffs of all models of a panel in turn.

    ``cutoffs`` (models,) are the numbers of the stated months, NaN if unknown. Other arguments are
    as in ``fit_untreated``.
    """
    first = _first_spells(cutoffs, months, control is not None)
    spells = first
    is_stated = bool((cutoffs >= months[0]).any())
    later = [UNTREATED if each is None and is_stated else each for each in first]
    numbers = range(len(losses))
    is_large = len(losses) > LARGE_PANEL
    clean = losses
    due = list(numbers)
    dated: dict[int, DatedCurve] = {}
    for number_of_round in range(MOST_ROUNDS):
        fit = fit_untreated(clean, spells, months, regimes, control)
        dated |= {each: _date(fit, each, losses[each], months, spells[each]) for each in due}
        clean = np.array([dated[each].losses for each in numbers])  # without low months
        former = spells
        spells = [spell_of(dated[each].cutoff, later[each]) for each in numbers]
        moved = [each for each in numbers if spells[each] != former[each]]
        if len(moved) <= len(losses) // LARGE_PANEL:
            break
        due = moved if is_large and number_of_round else list(numbers)
    stale = set(numbers) - set(due)
    dated |= {each: _date(fit, each, losses[each], months, former[each]) for each in stale}
    return [widened(fit, each, dated[each], months) for each in numbers]


def _first_spells(cutoffs: Floats, months: Months, has_control: bool) -> list[Spell | None]:
    spells = [_first_spell(cutoff, months) for cutoff in cutoffs]
    is_alone = not has_control and not any(spells)
    return [UNTREATED] * len(spells) if is_alone else spells


def _first_spell(cutoff: float, months: Months) -> Spell | None:
    if np.isnan(cutoff):
        return None
    margin = min(MARGIN, len(months) // 3)
    is_outside = cutoff < months[0] or cutoff - margin >= months[-1]
    return UNTREATED if is_outside else Spell(cutoff - margin, cutoff + 1)


def _date(
    fit: Untreated, number: int, losses: Floats, months: Months, spell: Spell | None
) -> DatedCurve:
    others = [row for row in range(fit.num_models) if row != number and fit.theta[row]]
    difficulty = fit.without(number)
    if difficulty is None:
        return DatedCurve(others, spell, None, losses, None)
    kept = np.where(find_low_months(losses, difficulty), np.nan, losses)
    return DatedCurve(others, spell, difficulty, kept, fit_cutoff(kept, months, difficulty))


def spell_of(found: CutoffFit | None, otherwise: Spell | None) -> Spell | None:
    """Return the months that the interval of a change holds."""
    if found is None or not found.is_found:
        return otherwise
    start = -np.inf if np.isnan(found.onset_low) else found.onset_low - 1
    return Spell(start, np.inf if np.isnan(found.cutoff_high) else found.cutoff_high + 1)


def widened(fit: Untreated, number: int, dated: DatedCurve, months: Months) -> DatedCurve:
    """Return the change with the intervals of panels without another model, if they are few."""
    found = dated.cutoff
    if found is None or not found.is_found or not LEAST_OTHERS <= len(dated.others) <= MOST_OTHERS:
        return dated
    rests = [fit.without(number, other) for other in dated.others]
    fits = [fit_cutoff(dated.losses, months, rest) for rest in rests if rest]
    wide = found.widened([each for each in fits if each and each.is_found])
    return replace(dated, cutoff=wide)
