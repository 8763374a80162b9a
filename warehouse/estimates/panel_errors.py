"""Standard errors of figures that are linear in the curves of a panel (formulas: ``panel``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
MONTHS_OF_A_BLOCK = 3
MOST_AUTOCORRELATION = 0.9
TINY = float(np.finfo(float).tiny)


class Errors:
    """The standard errors of linear functions of lambda and of the models' curves.

    Args:
        theta: of shape (models,); 0 for a model that did not enter.
        inverse: M+ of shape (months, months).
        annihilators: R of shape (models, months, months).
        residuals: u of shape (models, months).
        num_free: each model's months minus the columns of X and theta.
        months: month numbers; the number of each January is a multiple of 12.
    """

    def __init__(
        self,
        theta: Floats,
        inverse: Floats,
        annihilators: Floats,
        residuals: Floats,
        num_free: Floats,
        months: NDArray[np.int64],
    ) -> None:
        self._theta = theta
        self._inverse = inverse
        self._annihilators = annihilators
        self._residuals = residuals
        blocks = months // MONTHS_OF_A_BLOCK
        self._blocks = (blocks[:, None] == np.unique(blocks)).astype(float)  # (months, blocks)
        squares = (residuals**2).sum(axis=1)
        # lambda takes a share of each model's degrees of freedom.
        free = num_free - theta**2 * np.einsum("ijk,kj->i", annihilators, inverse)
        free = np.where(theta > 0, free, 0)
        self.num_free = float(free.sum())
        self.variance = squares.sum() / self.num_free if self.num_free > 0.5 else np.nan
        variances = np.where(free >= 1, squares / np.maximum(free, 1), self.variance)
        total = annihilators.sum(axis=0)
        r, kept = find_autocorrelation(total, lag(annihilators, months), residuals, months)
        self._correlations = r ** np.abs(months[:, None] - months)
        self._variances = variances / kept

    def of_effects(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the standard errors of each model's w' (y - theta lambda), and of differences.

        ``weights`` has each model's w, (models, months); NaN for a model without the effect.
        Differences have the shape (models, models): of one model's effect less another's.
        """
        all_weights = self._of_difficulty(-self._theta[:, None] * weights)
        models = np.arange(len(weights))
        all_weights[models, models] += weights
        each = self._covariances(all_weights)
        own = each.diagonal(axis1=1, axis2=2)
        squares = (own[:, :, None] + own[:, None] - 2 * each).max(axis=0)
        return np.sqrt(own.max(axis=0)), np.sqrt(np.maximum(squares, 0))

    def of_difficulty(self, is_told: Flags) -> Floats:
        """Return the standard error of each month's lambda minus the mean, or NaN."""
        errors = np.full(len(is_told), np.nan)
        shares = is_told / max(is_told.sum(), 1)
        weights = self._of_difficulty(np.eye(len(is_told))[is_told] - shares)
        each = self._covariances(weights).diagonal(axis1=1, axis2=2)
        errors[is_told] = np.sqrt(each.max(axis=0))
        return errors

    def _of_difficulty(self, weights: Floats) -> Floats:
        """Return the weight of each y (figures, models, months) in ``weights`` times lambda."""
        products = self._annihilators @ (self._inverse @ weights.T)  # (models, months, figures)
        return np.asarray(self._theta[:, None] * products.transpose(2, 0, 1))

    def _covariances(self, weights: Floats) -> Floats:
        """Return the three terms of the squared error as covariances (3, figures, figures).

        ``weights`` has W, of shape (figures, models, months).
        """
        flat = weights.reshape(len(weights), self._residuals.size)
        lagged = self._variances[:, None] * (weights @ self._correlations)
        scores = (weights * self._residuals).sum(axis=1) @ self._blocks
        num_blocks = scores.shape[1]
        return np.array(
            [
                self.variance * flat @ flat.T,
                lagged.reshape(flat.shape) @ flat.T,
                scores @ scores.T * num_blocks / max(num_blocks - 1, 1),
            ]
        )


def lag(annihilators: Floats, months: NDArray[np.int64]) -> Floats:
    """Return sum_i R_i N R_i (months, months), with N_mn = 1 for neighbouring months."""
    is_next = np.abs(months[:, None] - months) == 1
    return np.asarray(np.tensordot(annihilators @ is_next, annihilators, ((0, 2), (0, 1))))


def find_autocorrelation(
    total: Floats, lagged: Floats, residuals: Floats, months: NDArray[np.int64]
) -> tuple[float, float]:
    """Return r of the noise, and the share of the noise's variance that the residuals keep.

    r, from 0 to 0.9, gives the observed ratio of the residuals' products: of neighbouring months to
    the same month. Residuals (models, months) are R y. The expected products are those of R C R:
    ``total`` is sum_i R_i, and ``lagged`` is sum_i R_i N R_i (``lag``).
    """
    apart = np.abs(months[:, None] - months)
    products = residuals.T @ residuals
    observed = (products * (apart == 1)).sum() / max(np.trace(products), TINY)
    candidates = np.linspace(0, MOST_AUTOCORRELATION, 91)
    powers = candidates[:, None] ** np.arange(apart.max() + 1)
    ratios = [powers @ np.bincount(apart.ravel(), each.ravel()) for each in (lagged, total)]
    expected = ratios[0] / np.maximum(ratios[1], TINY)
    best = np.abs(expected - observed).argmin()
    return float(candidates[best]), float(ratios[1][best] / max(np.trace(total), TINY))
