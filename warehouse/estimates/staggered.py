"""Tell cutoffs of a panel's models from one change that all share; date weak ones together.

If language models alone feel a new recipe of a source's texts, compressors do not show it. Then it
looks like cutoffs of all models. So the curves of the models alone have to show that the changes
differ from model to model. lambda is free in every month, and so are the sensitivities:

    y_j = x_j' gamma_j + kappa_j lambda^ + theta_j lambda + sum_k beta_k column_kj + u_j

- x: 1 and the regimes of the source. lambda^ and theta_j: those of the fit without columns. With
  two curves there is no kappa, since lambda^ is half of each.
- q_k: column k without what the other terms explain. e: the same of y. With R_j, which projects out
  x_j and lambda^, and M = sum_j theta_j^2 R_j:

    q_j = R_j (column_j - theta_j M+ sum_i theta_i R_i column_i)

beta is the regression of e on all q. s^2 is the variance of what is left of e, and L = (1 + r) / (1
- r). r is the autocorrelation of the AR(1) noise for which such residuals are expected. Residuals
have less autocorrelation than the noise, since x, lambda and the columns are fitted
(``difficulty``). Small panels have too few residuals to estimate a part of the noise that lasts.
To allow for such a part would lose true changes, and avoid no false ones.

The changes are those of models, not of the source, if one of these holds:

- The ramps found (``untreated``), a beta each, save more than 3 s^2 for each ramp. About p = 0.05
  of three changes.
- One beta for all models saves more than 6 L s^2, and is positive. Its column has a ramp of 1 to 24
  months in each model, which ends at the stated cutoff. The best length counts.
- The ramps of the joint fit, a beta each, save more than 16 L s^2 for each ramp.

Only panels of at most 9 models are asked for the last two. Then the joint fit tells the changes. If
nothing holds, no cutoff is told. The exception: all models have the same stated cutoff, and each
interval is closed and holds it.

Joint fit. In a small panel all models may thin out in the same months. Then ``untreated`` has only
compressors there, and finds few changes. But the ramps of the others are known well enough to keep
their months. So lambda is fitted to all months of all models, and to the compressors,

    y_j = x_j' gamma_j + beta_j ramp_j + epsilon_j max(m - b_j, 0) + theta_j lambda + u_j

with the ramps of the other models at the months found so far. The noise u lasts from month to
month: cov(lambda) has C of ``difficulty``, and no curve's noise has less of it. Else noise
that lasts looks like ramps. Each model in turn is dated by
``cutoffs`` against lambda without it; its best ramp is the new one. First ramps are those of
``untreated``, found or not. This is repeated until no ramp moves, at most six times. A model whose
stated cutoff is before the months has a ramp only if its change is found.

The joint fit dates the models whose ramps are not found, or found without the first rule. There are
three conditions:

- The second or the third rule holds.
- Something besides the ramps tells lambda: compressors with theta of 0.5 or more, a thermometer, or
  three other models.
- The model's own ramp saves more than 3 L s^2 beyond those of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from warehouse.estimates.cutoffs import CutoffFit, fit_cutoff
from warehouse.estimates.difficulty import (
    LEAST_SENSITIVITY,
    TINY,
    ZERO,
    DifficultyFit,
    Flags,
    Floats,
    Months,
    Readings,
    annihilator,
    design,
    find_memory,
    lags,
    null_space,
    pseudoinverse,
)
from warehouse.estimates.pairs import MAX_LENGTH, MIN_FREE, ramp
from warehouse.estimates.regression import ROUNDING
from warehouse.estimates.untreated import (
    LEAST_OTHERS,
    MIN_KEPT,
    MOST_OTHERS,
    UNTREATED,
    DatedCurve,
    Ramp,
    fit_untreated,
    kept_losses,
    spell_of,
    widened,
)

FOUND_LIMIT = 3.0  # in units of s^2, for each ramp found
STATED_LIMIT = 6.0  # in units of L s^2, as the next two
JOINT_LIMIT = 16.0  # for each ramp
SUPPORT_LIMIT = 3.0  # of one ramp beyond the others
MOST_TURNS = 6


class Explained(NamedTuple):
    """Part of the curves that columns explain."""

    sizes: Floats  # beta
    squares: float  # left
    gained: float  # squares that the columns save, in units of s^2


@dataclass(frozen=True)
class Apart:
    """The curves of a panel without what all models share."""

    curves: Floats  # (models, months); 0 for a missing month
    months: Months
    theta: Floats
    annihilators: Floats  # R
    inverse: Floats  # M+
    num_free: int

    @classmethod
    def of(cls, readings: Readings) -> Apart:
        """Return the curves of two models or more apart."""
        months = readings.months
        curves = readings.losses
        everywhere = [UNTREATED] * len(curves)
        fit = fit_untreated(replace(readings, compressors=None), everywhere)

        numbers = _with_curve(curves)
        columns = readings.regimes
        if len(numbers) > 2:  # of two curves, lambda^ is half of each
            columns = np.column_stack([columns, fit.whole.values])
        designs = [
            design(months, ~np.isnan(row), np.inf, columns) if number in numbers else None
            for number, row in enumerate(curves)
        ]
        annihilators = np.array([annihilator(each, len(months)) for each in designs])
        total = np.tensordot(fit.theta**2, annihilators, 1)
        num_kept = round(float(np.trace(annihilators.sum(axis=0))))
        unknown = null_space(total, np.zeros((len(months), 0)))
        return cls(
            curves=np.nan_to_num(curves),
            months=months,
            theta=fit.theta,
            annihilators=annihilators,
            inverse=pseudoinverse(total, unknown),
            num_free=num_kept - (len(months) - unknown.shape[1]),
        )

    @cached_property
    def left(self) -> Floats:
        """E (models, months)."""
        return self.project(self.curves)

    def project(self, rows: Floats) -> Floats:
        """Return q of a column, or e of the curves; ``rows`` has the shape (models, months)."""
        moved = (self.annihilators @ rows[:, :, None])[:, :, 0]
        shared = self.inverse @ (self.theta @ moved)
        return np.asarray(moved - self.theta[:, None] * (self.annihilators @ shared))

    def explain(self, columns: list[Floats]) -> Explained:
        """Fit columns, each of shape (models, months)."""
        moved = np.array([self.project(each).ravel() for each in columns])
        moved = moved.reshape(len(columns), self.curves.size)
        whole = self.left.ravel()
        sizes = np.linalg.pinv(moved @ moved.T, rcond=ZERO, hermitian=True) @ (moved @ whole)
        rest = whole - sizes @ moved
        rounding = ROUNDING * float(np.square(self.curves).sum()) + TINY
        squares = float(rest @ rest) + rounding
        gained = float(whole @ whole) + rounding - squares
        num_free = max(self.num_free - len(columns), 1)
        return Explained(sizes, squares, gained / squares * num_free)

    def long_run(self, columns: list[Floats]) -> float:
        """Return L of the residuals after ``columns``; r is estimated as in ``difficulty``."""
        numbers = np.flatnonzero(self.theta)
        shape = (len(numbers), len(self.months))
        left = self.left[numbers].ravel()
        vectors = np.array([self.project(each)[numbers].ravel() for each in columns])
        vectors = vectors.reshape(len(columns), left.size)
        base, sizes, _ = np.linalg.svd(vectors.T, full_matrices=False)
        base = base[:, sizes > ZERO * sizes.max(initial=0)]
        left = left - base @ (base.T @ left)
        whole = (self._projection(numbers) - base @ base.T).reshape(shape * 2)
        is_next, _ = lags(self.months)
        lagged = np.einsum("imjn,nk,jkil->ml", whole, is_next, whole, optimize=True)
        total = np.einsum("imil->ml", whole)
        memory, _ = find_memory(total, [lagged], left.reshape(shape), self.months)
        return memory.long_run

    def _projection(self, numbers: Months) -> Floats:
        """Return the matrix of ``project`` for the months of some models, one after the other."""
        own = self.annihilators[numbers]
        shared = self.theta[numbers][:, None, None] * own
        matrix = -np.einsum("imn,nl,jlk->imjk", shared, self.inverse, shared, optimize=True)
        places = np.arange(len(numbers))
        matrix[places, :, places] += own
        return np.asarray(matrix.reshape(len(numbers) * len(self.months), -1))

    def ramps(self, pairs: list[Ramp | None]) -> list[Floats]:
        """Return a column for each model with a ramp."""
        columns = []
        for number, pair in enumerate(pairs):
            if pair is not None:
                rows = np.zeros(self.curves.shape)
                rows[number] = ramp(self.months, *pair)
                columns.append(rows)
        return columns

    def follows_stated(self, cutoffs: Floats) -> bool:
        """Return True if one change before all stated cutoffs is found; NaN: not stated."""
        ends = cutoffs[:, None] + 1
        most = 0.0
        best = np.zeros(self.curves.shape)
        for length in range(MAX_LENGTH):
            rows = np.nan_to_num(ramp(self.months, ends - length - 1, ends))
            if np.square(self.project(rows)).sum() > ZERO * np.square(rows).sum():
                found = self.explain([rows])
                if found.sizes[0] > 0 and found.gained > most:
                    most = found.gained
                    best = rows
        return most > STATED_LIMIT and most > STATED_LIMIT * self.long_run([best])

    def supported(self, pairs: list[Ramp | None]) -> Flags:
        """Return True for each model whose ramp saves enough beyond the ramps of the others."""
        columns = self.ramps(pairs)
        least = SUPPORT_LIMIT * self.long_run(columns)
        every = self.explain(columns)
        variance = every.squares / max(self.num_free - len(columns), 1)
        is_supported = np.zeros(len(pairs), dtype=bool)
        places = [number for number, pair in enumerate(pairs) if pair is not None]
        for place, number in enumerate(places):
            others = columns[:place] + columns[place + 1 :]
            more = (self.explain(others).squares - every.squares) / variance
            is_supported[number] = more > least
        return is_supported


class Joint(NamedTuple):
    """The ramps of all models, and lambda of all their months."""

    pairs: list[Ramp | None]
    dated: list[DatedCurve]
    is_anchored: bool


def tell_apart(dated: list[DatedCurve], readings: Readings) -> tuple[list[DatedCurve], list[bool]]:
    """Return the changes, with those of the joint fit, and True for each that may be shared.

    ``dated`` is as in ``find_bends``. If there are fewer than two curves, or their months do not
    overlap, the changes stay as they are. None of them may be shared then.
    """
    is_found = [each.found is not None for each in dated]
    is_shared = [False] * len(dated)
    kept = kept_losses(readings, dated)
    numbers = _with_curve(kept.losses)
    apart = Apart.of(kept) if len(numbers) > 1 else None
    if apart is None or apart.num_free - len(numbers) < MIN_FREE:
        return dated, is_shared
    pairs = [None if each.found is None else (each.found.start, each.found.end) for each in dated]
    gained = apart.explain(apart.ramps(pairs)).gained
    stated = readings.cutoffs[numbers]
    is_kept = any(is_found) and gained > FOUND_LIMIT * sum(is_found)
    is_kept = is_kept or _is_stated([dated[number].found for number in numbers], stated)
    told: dict[int, DatedCurve] = {}
    if len(numbers) <= MOST_OTHERS + 1 and not (is_kept and all(is_found)):
        told = _told_jointly(apart, dated, kept)
    changes = list(dated)
    for number, each in told.items():
        if not (is_found[number] and is_kept):
            changes[number] = each
    if not is_kept:
        is_shared = [is_in and number not in told for number, is_in in enumerate(is_found)]
    return changes, is_shared


def _told_jointly(
    apart: Apart, dated: list[DatedCurve], readings: Readings
) -> dict[int, DatedCurve]:
    """Return the changes that the joint fit may tell, by number of the model."""
    joint = fit_jointly(dated, readings)
    if not joint.is_anchored:
        return {}
    if not apart.follows_stated(readings.cutoffs):
        columns = apart.ramps(joint.pairs)
        every = apart.explain(columns)
        if every.gained <= JOINT_LIMIT * apart.long_run(columns) * len(columns):
            return {}
    is_supported = apart.supported(joint.pairs)
    return {
        number: each
        for number, each in enumerate(joint.dated)
        if each.found is not None and is_supported[number]
    }


def fit_jointly(dated: list[DatedCurve], readings: Readings) -> Joint:
    """Fit the ramps of all models in turn; ``readings`` are without low months."""
    is_old = readings.cutoffs < readings.months[0]
    numbers = _with_curve(readings.losses)
    pairs = [_kept(each.cutoff, old) for each, old in zip(dated, is_old, strict=True)]
    changes = list(dated)
    everywhere = [UNTREATED] * len(dated)
    fit = fit_untreated(readings, everywhere, pairs)
    for _ in range(MOST_TURNS):
        former = list(pairs)
        for number in numbers:
            changes[number] = _dated_again(fit, number, dated[number])
            pair = _kept(changes[number].cutoff, is_old[number])
            if pair != pairs[number]:
                pairs[number] = pair
                fit = fit_untreated(readings, everywhere, pairs)
        if pairs == former:
            break
    has_thermometer = any(is_old[number] and pairs[number] is None for number in numbers)
    has_compressor = readings.compressors is not None and fit.theta[-1] >= LEAST_SENSITIVITY
    is_anchored = has_thermometer or has_compressor or len(numbers) > LEAST_OTHERS
    wide = [widened(fit, number, each) for number, each in enumerate(changes)]
    return Joint(pairs, wide, bool(is_anchored))


def _dated_again(fit: DifficultyFit, number: int, former: DatedCurve) -> DatedCurve:
    """Return a model's change against lambda without the model."""
    difficulty = fit.without(number)
    found = fit_cutoff(former.losses, fit.months, difficulty)
    changed = replace(former, others=fit.others(number), difficulty=difficulty, cutoff=found)
    return replace(changed, spell=spell_of(changed.found, former.spell))


def _with_curve(curves: Floats) -> list[int]:
    """Return the numbers of the models with enough months."""
    return [number for number, row in enumerate(curves) if np.isfinite(row).sum() >= MIN_KEPT]


def _kept(change: CutoffFit | None, is_old: bool) -> Ramp | None:
    """Return the best ramp of a model in the joint fit; None if it has none."""
    if change is None or change.most <= 0 or (is_old and not change.is_found):
        return None
    return change.best_ramp


def _is_stated(found: list[CutoffFit | None], cutoffs: Floats) -> bool:
    """Return True if these models all state one month, and the interval of each change has it."""
    return any(found) and all(
        cutoff == cutoffs[0] and (each is None or each.cutoff_low <= cutoff <= each.cutoff_high)
        for each, cutoff in zip(found, cutoffs, strict=True)
    )
