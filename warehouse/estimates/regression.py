"""Generalised least squares of one model's curve on Z = [N, lambda]; ``cutoffs`` has the formulas.

    P = V^-1 - V^-1 Z G Z' V^-1        G = (Z' V^-1 Z)+

One further column x of Z has the coefficient x' P y / x' P x. V = cov(u) + theta^2 cov(lambda) is
that of the residuals (``cutoffs``), from V = I on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from warehouse.estimates.difficulty import (
    MOST_AUTOCORRELATION,
    NUM_ROUNDS,
    TINY,
    ZERO,
    Difficulty,
    Flags,
    Floats,
    Memory,
    Months,
)

LEAST_FREEDOM = 0.02  # of a month's figure; below, N alone fits the month
ROUNDING = 1e-14  # of squares, relative
_LEAST_OWN_SHARE = 0.2  # of cov(u) in the residuals' variance


@dataclass(frozen=True)
class Regression:
    """The regression of one model's curve on Z, on its observed months; V is not known yet."""

    losses: Floats
    months: Months
    columns: Floats  # Z: N, then lambda without its part in N
    num_free: int  # months minus the rank of Z
    difficulty_covariance: Floats
    memory: Memory  # of the panel's noise
    is_told: Flags  # False for a month that N alone fits

    @classmethod
    def of(cls, losses: Floats, months: Months, difficulty: Difficulty) -> Regression:
        """Return the curve of the months in ``losses``; arguments as of ``fit_cutoff``."""
        seen = ~np.isnan(losses)
        unknown = np.column_stack([np.ones(seen.sum()), difficulty.unknown[seen]])
        vectors, sizes, _ = np.linalg.svd(unknown, full_matrices=False)
        basis = vectors[:, sizes > ZERO * sizes.max(initial=0)]
        left = difficulty.values[seen] - basis @ (basis.T @ difficulty.values[seen])
        # A compressor's loss may be equal in all months: what is left of it then is rounding.
        scale = max(np.linalg.norm(difficulty.values[seen]), np.linalg.norm(losses[seen]))
        is_new = np.linalg.norm(left) > ZERO * scale
        covariance = np.zeros((seen.sum(), seen.sum()))
        if difficulty.covariance is not None:
            covariance = difficulty.covariance[np.ix_(seen, seen)]
        return cls(
            losses=losses[seen],
            months=months[seen],
            columns=np.column_stack([basis, left * is_new]),
            num_free=int(seen.sum()) - basis.shape[1] - int(is_new),
            difficulty_covariance=covariance,
            memory=difficulty.memory,
            is_told=1 - (basis**2).sum(axis=1) > LEAST_FREEDOM,
        )

    @cached_property
    def apart(self) -> Months:
        """Months between each two figures, (months, months)."""
        return np.asarray(np.abs(self.months[:, None] - self.months))

    def plus(self, *columns: Floats) -> Regression:
        """Return the curve with further columns of Z, independent of the others."""
        return replace(
            self,
            columns=np.column_stack([*columns, self.columns]),
            num_free=self.num_free - len(columns),
        )

    def weighted(self, covariance: Floats) -> WeightedFit:
        """Return the fit with V = ``covariance``."""
        return self._weighted(covariance, np.asarray(np.linalg.inv(covariance)))

    def _weighted(self, covariance: Floats, inverse: Floats) -> WeightedFit:
        scaled = inverse @ self.columns
        estimator = _inverse(self.columns.T @ scaled) @ scaled.T
        return WeightedFit(self, covariance, inverse, estimator, inverse - scaled @ estimator)

    def plain(self) -> WeightedFit:
        """Return the fit with V = I."""
        identity = np.eye(len(self.months))
        return self._weighted(identity, identity)

    def settled(self, column: Floats | None = None) -> WeightedFit:
        """Return the fit with V from residuals, in three rounds; ``column`` is one more of Z."""
        fit = self.plain()
        for _ in range(NUM_ROUNDS):
            fit = self.weighted(fit.next_covariance(column))
        return fit


@dataclass(frozen=True)
class WeightedFit:
    """The fit of a curve at one V. It is computed once, and all others at this V are from it."""

    curve: Regression
    covariance: Floats  # V
    inverse: Floats  # V^-1
    estimator: Floats  # G Z' V^-1
    annihilator: Floats  # P

    def effects(self, columns: Floats) -> tuple[Floats, Floats]:
        """Return the coefficient of each of ``columns`` (months, k) alone beside Z, and its error.

        They are 0 and infinite for a column that Z spans, beyond rounding. s^2 has a degree of
        freedom less than without the column.
        """
        losses = self.curve.losses
        weighted = self.annihilator @ columns
        norms = (columns * weighted).sum(axis=0)
        is_told = norms > ZERO * (columns * (self.inverse @ columns)).sum(axis=0)
        norms = np.where(is_told, norms, 1)
        slopes = np.where(is_told, losses @ weighted / norms, 0)
        rounding = max(float(ROUNDING * losses @ losses), TINY)
        squares = losses @ self.annihilator @ losses - slopes**2 * norms
        squares = np.maximum(squares, rounding)
        errors = np.sqrt(squares / max(self.curve.num_free - 1, 1) / norms)
        return slopes, np.where(is_told, errors, np.inf)

    def effect(self, column: Floats) -> tuple[float, float]:
        """Return the coefficient of a further column (months,) of Z, and its error."""
        slopes, errors = self.effects(column[:, None])
        return float(slopes[0]), float(errors[0])

    def next_covariance(self, column: Floats | None = None) -> Floats:
        """Return V / s^2 from the residuals of the fit, with a further column of Z if given.

        A column that Z already spans tells nothing, and is left out.
        """
        curve = self.curve
        losses = curve.losses
        num_free = curve.num_free
        if column is not None:
            slope, error = self.effect(column)
            losses = losses - slope * column
            num_free -= int(np.isfinite(error))
        figures = self.estimator @ losses
        left = losses - curve.columns @ figures
        shared = figures[-1] ** 2 * curve.difficulty_covariance
        variance = left @ left / num_free + ROUNDING * curve.losses @ curve.losses / len(left)
        own = variance - np.trace(shared) / len(left)
        own = max(own, _LEAST_OWN_SHARE * variance, TINY)
        next_to = np.flatnonzero(np.diff(curve.months) == 1)
        lagged = (left[next_to] @ left[next_to + 1]) / max(len(next_to), 1)
        r = lagged * len(left) / max(float(left @ left), TINY)
        raised = np.clip(r + (1 + 4 * r) / len(left), 0, MOST_AUTOCORRELATION)
        own_memory = Memory(1, float(raised))
        memory = max(curve.memory, own_memory, key=lambda each: each.long_run)
        return np.asarray(memory.correlations(curve.apart) + shared / own)


def _inverse(gram: Floats) -> Floats:
    """Return the pseudoinverse of Z' V^-1 Z. A column of zeros has a row and a column of zeros."""
    try:  # takes a fifth of the time of pinv
        is_zero = gram.diagonal() == 0
        return np.asarray(np.linalg.inv(gram + np.diag(is_zero)) - np.diag(is_zero))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(gram))
