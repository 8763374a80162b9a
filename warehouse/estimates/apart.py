"""The curves of a panel's models without their common part; lambda is free in every month.

    y_j = x_j' gamma_j + kappa_j lambda^ + theta_j lambda + sum_k beta_k column_kj + u_j

- x: 1 and the regimes of the source. lambda^ and theta_j: those of the fit without columns. With
  two curves there is no kappa, since lambda^ is half of each.
- q_k: column k without the part that the other terms explain. e: y without that part. With R_j,
  which projects out x_j and lambda^, and M = sum_j theta_j^2 R_j:

    q_j = R_j (column_j - theta_j M+ sum_i theta_i R_i column_i)

beta is the regression of e on all q. s^2 is the variance of what is left of e, and L = (1 + r) / (1
- r). r is the autocorrelation of the AR(1) noise for which such residuals are expected. Residuals
  have less autocorrelation than the noise, since x, lambda and the columns are fitted
  (``difficulty``). Small panels have too few residuals to estimate a persistent part of the noise.
  Allowing for such a part would lose true changes, and would avoid no false ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from warehouse.estimates.difficulty import (
    TINY,
    ZERO,
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
from warehouse.estimates.pairs import MAX_LENGTH, ramp
from warehouse.estimates.regression import ROUNDING
from warehouse.estimates.untreated import MIN_KEPT, UNTREATED, Ramp, fit_untreated

STATED_LIMIT = 6.0  # in units of L s^2, as the next
SUPPORT_LIMIT = 3.0  # of one ramp beyond the others
AT_ONCE_SHARE = 0.5  # of G


class Explained(NamedTuple):
    """Part of the curves that columns explain."""

    sizes: Floats  # beta
    squares: float  # left
    gained: float  # squares that the columns save, in units of s^2


class OneChange(NamedTuple):
    """One change of all models: ramps of one length that end at the stated cutoffs."""

    length: int  # b - a
    rows: Floats  # (models, months)
    gained: float  # squares that it saves, in units of s^2

    def ramps(self, cutoffs: Floats) -> list[Ramp | None]:
        """Return each model's ramp; None if its cutoff is not stated."""
        return [
            None if np.isnan(each) else (int(each) + 1 - self.length, int(each) + 1)
            for each in cutoffs
        ]


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
    def of(cls, readings: Readings, pairs: Sequence[Ramp | None] = ()) -> Apart:
        """Return the curves of two models or more apart.

        ``pairs`` are ramps of the models beside which lambda^ and theta are fitted.
        """
        months = readings.months
        curves = readings.losses
        everywhere = [UNTREATED] * len(curves)
        fit = fit_untreated(replace(readings, compressors=None), everywhere, pairs)

        numbers = with_curve(curves)
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

    def one_before(self, cutoffs: Floats) -> OneChange | None:
        """Return the best change of all models before their stated cutoffs; NaN: not stated."""
        ends = cutoffs[:, None] + 1
        best = None
        for length in range(MAX_LENGTH):
            rows = np.nan_to_num(ramp(self.months, ends - length - 1, ends))
            if np.square(self.project(rows)).sum() > ZERO * np.square(rows).sum():
                found = self.explain([rows])
                is_better = best is None or found.gained > best.gained
                if found.sizes[0] > 0 and is_better:
                    best = OneChange(length + 1, rows, found.gained)
        return best

    def gained_beyond(self, pairs: list[Ramp | None], at_once: float) -> float:
        """Return what ramps save beyond G, the squares ``at_once``, in units of s^2."""
        columns = self.ramps(pairs)
        every = self.explain(columns)
        num_free = max(self.num_free - len(columns), 1)
        return every.gained - at_once / every.squares * num_free

    def follows(self, one: OneChange, at_once: float) -> bool:
        """Return True if a change before the stated cutoffs is more than chance and half of G."""
        every = self.explain([one.rows])
        others = at_once / every.squares * max(self.num_free - 1, 1)
        is_more = every.gained > AT_ONCE_SHARE * others
        return is_more and every.gained > STATED_LIMIT * self.long_run([one.rows])

    def at_once(self, pair: Ramp) -> float:
        """Return the squares that one ramp saves with a size of its own in each model."""
        height = ramp(self.months, *pair)
        own = self.annihilators @ height
        shared = self.inverse @ (self.theta[:, None] * own).T
        moved = -(self.theta[:, None, None] * (self.annihilators @ shared)).transpose(2, 0, 1)
        places = np.arange(len(own))
        moved[places, places] += own
        moved = moved.reshape(len(own), -1)
        products = moved @ self.left.ravel()
        gram = moved @ moved.T
        return float(products @ np.linalg.pinv(gram, rcond=ZERO, hermitian=True) @ products)

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


def with_curve(curves: Floats) -> list[int]:
    """Return the numbers of the models with enough months."""
    return [number for number, row in enumerate(curves) if np.isfinite(row).sum() >= MIN_KEPT]
