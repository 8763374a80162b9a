"""Estimate lambda, the difficulty of the months, from curves with a sensitivity theta each.

For row i (a model, or the mean of compressors) and month m, with w_i the weight of a row:

    y_im = x_im' gamma_i + theta_i lambda_m + u_im

x has the columns of a ``Design``. A column is left out if it is a linear combination of earlier
columns in the row's months. R_i is I - X_i X_i+ (+: pseudoinverse) on the row's months, 0
elsewhere. First, theta and w are 1.

    M = sum_i w_i theta_i^2 R_i        lambda = M+ sum_i w_i theta_i R_i y_i
    theta_i = (R_i lambda)' y_i / |R_i lambda|^2, clipped, then divided by the models' mean

lambda and theta are computed three times in turn; then lambda is computed again. theta is clipped
to 0.5 ... 1.5 for models, to 0.1 ... 3 for compressors. w is 1 for a model. For compressors,
w = s^2 / (s_c^2 (1 + r) / (1 - r)), 0.005 to 1, if there are two models. s_c^2 and r, limited to
0 ... 0.9, are the variance and the autocorrelation of their residuals; s^2 is the variance of the
models' residuals R_i (y_i - theta_i lambda).

Error of lambda: cov = s^2 M+. A share q of the models' noise may last from month to month, as AR(1)
does; the rest is white. Then, with k of ``panel``:

    C_mn = 1 if m = n, else q r^|m - n|
    cov = M+ K M+
    K = s^2 (sum of models theta_i^2 R_i C R_i / k + compressors' w theta^2 R)

q and r are common to all models. Two ratios of the residuals determine them. Both divide by the
squares: products one month apart, and products two to six months apart. R C R must reproduce both
ratios. So a small share with long persistence is distinguished from noise that persists only
briefly as a whole.

The data determine lambda only up to the null space of M.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Months = NDArray[np.int64]

LEAST_SENSITIVITY = 0.5
MOST_SENSITIVITY = 1.5
NUM_ROUNDS = 3
MOST_AUTOCORRELATION = 0.9
LEAST_WEIGHT = 0.005  # of the compressors; without it, curves without noise would leave them out
TINY = float(np.finfo(float).tiny)
ZERO = 1e-7  # of products and lengths, relative
_CONTROL_SENSITIVITY = 0.1, 3.0
_RANK_TOLERANCE = 1e-9  # of eigenvalues, relative
_FARTHEST = 6  # months, of residuals whose products count
_CANDIDATES = np.linspace(0, MOST_AUTOCORRELATION, 46)  # of r
_SHARES = np.linspace(0, 1, 51)
_LEAST_SIZE = (LEAST_SENSITIVITY / MOST_SENSITIVITY) ** 2  # of M's largest eigenvalue, if not 0


@dataclass(frozen=True)
class Memory:
    """Noise of which a part lasts from month to month, as AR(1) does; the rest is white."""

    share: float  # q, of the variance
    r: float  # autocorrelation of that part

    def correlations(self, apart: Months) -> Floats:
        """Return C of months that are ``apart`` by these numbers of months, of the same shape."""
        powers = self.share * self.r ** np.arange(apart.max() + 1)
        powers[0] = 1
        return np.asarray(powers[apart])

    @property
    def long_run(self) -> float:
        """The variance of a mean over many months, in units of that of white noise."""
        return 1 + 2 * self.share * self.r / (1 - self.r)


WHITE = Memory(0, 0)


@dataclass(frozen=True)
class Readings:
    """The curves of a panel; models are rows, and months are columns."""

    losses: Floats  # bits per byte; NaN for a missing month
    cutoffs: Floats  # (models,): numbers of the stated months; NaN if unknown
    months: Months  # ascending; the number of each January is a multiple of 12
    regimes: Floats  # (months, regimes): 1 in the months of a regime; the first has no column
    compressors: Floats | None  # mean curve of all compressors; NaN where one has no figure


@dataclass(frozen=True)
class Design:
    """Matrix X of one row, over its observed months; ``names`` are those of its columns."""

    observed: Flags
    columns: Floats  # (observed months, columns)
    names: tuple[str, ...]
    num_after: int

    def weights(self, column: str, difficulty: Floats) -> Floats:
        """Return w: the column's row in the pseudoinverse of [X, lambda]; 0 if not observed."""
        number = self.names.index(column)
        extended = np.column_stack([self.columns, difficulty[self.observed]])
        weights = np.zeros(len(self.observed))
        left = extended[:, -1] - self.columns @ (np.linalg.pinv(self.columns) @ extended[:, -1])
        if np.linalg.norm(left) <= ZERO * np.linalg.norm(extended[:, -1]):
            extended = self.columns
        weights[self.observed] = np.linalg.pinv(extended)[number]
        return weights


def design(months: Months, observed: Flags, cutoff: float, others: Floats) -> Design:
    """Return X: 1, ``others`` (months, columns), and after and hinge (``panel``) of a cutoff."""
    ages = months[observed] - cutoff
    after = ages > 0
    num_after = int(after.sum())
    hinge = np.where(after, ages - ages[after].sum() / max(num_after, 1), 0)
    columns = np.ones((len(ages), 1))
    base = columns / np.sqrt(max(len(ages), 1))  # orthonormal, of the same span
    names = ["level"]
    wanted = [*(("other", each) for each in others[observed].T), ("gap", after), ("growth", hinge)]
    for name, column in wanted:
        left = column - base @ (base.T @ column)
        size = np.linalg.norm(left)
        if size > ZERO * np.linalg.norm(column):
            columns = np.column_stack([columns, column])
            base = np.column_stack([base, left / size])
            names.append(name)
    return Design(observed, columns, tuple(names), num_after)


def annihilator(design: Design | None, num_months: int) -> Floats:
    """Return matrix R (months, months), which projects out X; 0 in months not observed."""
    matrix = np.zeros((num_months, num_months))
    if design is not None:
        base, _ = np.linalg.qr(design.columns)
        inside = np.ix_(design.observed, design.observed)
        matrix[inside] = np.eye(len(base)) - base @ base.T
    return matrix


@dataclass(frozen=True)
class Difficulty:
    """lambda (months,), determined up to the span of ``unknown`` (months, k)."""

    values: Floats
    unknown: Floats  # orthonormal basis of M's null space
    covariance: Floats | None = None  # of lambda (months, months); None if not known
    memory: Memory = WHITE  # of the models' noise


@dataclass(frozen=True)
class DifficultyFit:
    """lambda and theta of a panel; arrays have a row per model, then one of the compressors."""

    months: Months
    theta: Floats  # 0 for a row that is left out of the fit
    is_free: Flags  # theta is not at a limit
    weights: Floats  # w
    annihilators: Floats  # R
    remainders: Floats  # R y
    residuals: Floats  # R (y - theta lambda)
    whole: Difficulty  # of all rows
    inverse: Floats  # M+ of all rows (months, months)
    num_free: Floats  # degrees of freedom of each row's residuals
    variance: float  # s^2
    num_models: int
    has_memory: bool  # each curve's noise lasts at least as that of all models
    error_lasts: bool  # so does that of lambda

    def others(self, number: int) -> list[int]:
        """Return the numbers of the models that lambda without a model is fitted with."""
        return [row for row in range(self.num_models) if row != number and self.theta[row]]

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
        unknown = null_space(total, self.whole.unknown)
        inverse = pseudoinverse(total, unknown)
        noise = self._noise - self._noises[[*numbers]].sum(axis=0)
        return Difficulty(
            values=inverse @ (theta * self.weights @ self.remainders),
            unknown=unknown,
            covariance=inverse @ noise @ inverse,
            memory=self.memory[0] if self.has_memory else WHITE,
        )

    @cached_property
    def total(self) -> Floats:
        """M (months, months)."""
        return np.tensordot(self.theta**2 * self.weights, self.annihilators, 1)

    @cached_property
    def memory(self) -> tuple[Memory, float]:
        """The memory of the models' noise, and the share of its variance that residuals keep."""
        of_models = self.annihilators[: self.num_models]
        lagged = [
            np.tensordot(of_models @ is_apart, of_models, ((0, 2), (0, 1)))
            for is_apart in lags(self.months)
        ]
        left = self.residuals[: self.num_models]
        return find_memory(of_models.sum(axis=0), lagged, left, self.months)

    @cached_property
    def _noises(self) -> Floats:
        """Each row's part of K = M cov(lambda) M."""
        noises = self.annihilators
        if self.error_lasts:
            memory, kept = self.memory
            correlations = memory.correlations(np.abs(self.months[:, None] - self.months))
            noises = noises.copy()
            of_models = noises[: self.num_models]
            noises[: self.num_models] = of_models @ correlations @ of_models / max(kept, TINY)
        return np.asarray(self.variance * (self.theta**2 * self.weights)[:, None, None] * noises)

    @cached_property
    def _noise(self) -> Floats:
        """K, (months, months)."""
        return np.asarray(self._noises.sum(axis=0))


def fit_difficulty(
    losses: Floats,
    designs: list[Design | None],
    num_models: int,
    months: Months,
    *,
    has_memory: bool = False,
    error_lasts: bool = False,
) -> DifficultyFit:
    """Fit lambda to rows of models, then of compressors, each with its X; None: it does not enter.

    ``losses`` (rows, months) are NaN in the months without a figure.
    """
    enters = np.array([each is not None for each in designs])
    is_model = enters & (np.arange(len(losses)) < num_models)
    annihilators = np.array([annihilator(each, len(months)) for each in designs])
    remainders = (annihilators @ np.nan_to_num(losses)[:, :, None])[:, :, 0]
    num_columns = np.array([each.columns.shape[1] if each else 0 for each in designs])
    num_kept = np.array([each.observed.sum() if each else 0 for each in designs])
    counted = is_model if is_model.any() else enters
    theta = enters.astype(float)
    is_free = enters
    weights = np.ones(len(losses))
    unknown = null_space(annihilators.sum(axis=0), np.zeros((len(months), 0)))
    for turn in range(NUM_ROUNDS + 1):
        inverse = pseudoinverse(np.tensordot(theta**2 * weights, annihilators, 1), unknown)
        whole = Difficulty(inverse @ (theta * weights @ remainders), unknown)
        moved = annihilators @ whole.values
        residuals = remainders - theta[:, None] * moved
        squares = (residuals**2).sum(axis=1)
        traces = annihilators.reshape(len(losses), -1) @ inverse.ravel()  # of R M+
        taken = theta**2 * weights * traces  # lambda takes a share of the degrees of freedom
        num_free = np.where(enters, num_kept - num_columns - 1 - taken, 0)
        variance = float(squares[counted].sum() / max(float(num_free[counted].sum()), 0.5))
        if turn == NUM_ROUNDS:
            break
        for row in np.flatnonzero(enters & ~is_model):
            if is_model.sum() >= 2 and num_free[row] >= 1:
                lasting = _long_run(residuals[row], months, num_kept[row])
                own = squares[row] / num_free[row] * lasting
                weights[row] = np.clip(variance / max(own, TINY), LEAST_WEIGHT, 1)
        theta, is_free = _sensitivities(moved, remainders, is_model)
        theta *= enters
        theta = theta / (theta[is_model].mean() if is_model.any() else 1)
    return DifficultyFit(
        months=months,
        theta=theta,
        is_free=is_free,
        weights=weights,
        annihilators=annihilators,
        remainders=remainders,
        residuals=residuals,
        whole=whole,
        inverse=inverse,
        num_free=num_free,
        variance=variance,
        num_models=num_models,
        has_memory=has_memory,
        error_lasts=error_lasts,
    )


def null_space(total: Floats, known: Floats) -> Floats:
    """Return an orthonormal basis of M's null space; ``known`` is a basis of a part of it."""
    least = _RANK_TOLERANCE * max(np.trace(total), _LEAST_SIZE)
    try:  # takes a twentieth of the time of eigh
        np.linalg.cholesky(total + known @ known.T - least * np.eye(len(total)))
    except np.linalg.LinAlgError:  # there are other directions, or almost
        sizes, vectors = np.linalg.eigh(total)
        known = vectors[:, sizes <= _RANK_TOLERANCE * max(sizes[-1], _LEAST_SIZE)]
    return known


def pseudoinverse(total: Floats, unknown: Floats) -> Floats:
    """Return M+; ``total`` is M, and ``unknown`` its null space."""
    return np.asarray(np.linalg.inv(total + unknown @ unknown.T) - unknown @ unknown.T)


def _sensitivities(moved: Floats, remainders: Floats, is_model: Flags) -> tuple[Floats, Flags]:
    """Return theta by least squares of R y on R lambda, and True where it is not at a limit.

    Theta is 1 where lambda tells nothing, and not free.
    """
    squares = (moved**2).sum(axis=1)
    is_told = squares > ZERO * squares.max(initial=0)
    slopes = (moved * remainders).sum(axis=1) / np.where(is_told, squares, 1)
    lowest = np.where(is_model, LEAST_SENSITIVITY, _CONTROL_SENSITIVITY[0])
    highest = np.where(is_model, MOST_SENSITIVITY, _CONTROL_SENSITIVITY[1])
    theta = np.clip(np.where(is_told, slopes, 1), lowest, highest)
    return theta, is_told & (slopes > lowest) & (slopes < highest)


def _long_run(left: Floats, months: Months, num_kept: float) -> float:
    """Return (1 + r) / (1 - r) of residuals (months,); 0 in months that a row does not keep."""
    is_next = np.diff(months) == 1
    products = (left[:-1] * left[1:])[is_next]
    r = float(products.sum() / max(np.square(left).sum(), TINY))
    r = float(np.clip(r + (1 + 4 * r) / num_kept, 0, MOST_AUTOCORRELATION))
    return (1 + r) / (1 - r)


def lags(months: Months) -> Floats:
    """Return N (2, months, months): 1 for months one apart, and for months two to six apart."""
    apart = np.abs(months[:, None] - months)
    return np.array([apart == 1, (apart > 1) & (apart <= _FARTHEST)], dtype=float)


def find_memory(
    total: Floats, lagged: list[Floats], residuals: Floats, months: Months
) -> tuple[Memory, float]:
    """Return the memory of the noise, and the share of the noise's variance that residuals keep.

    Residuals (models, months) are R y. The expected products are those of R C R: ``total`` is
    sum_i R_i, and ``lagged`` is sum_i R_i N R_i for each N of ``lags``. Of the shares and r that
    are tried, those are taken that are nearest to both observed ratios. A ratio counts by how much
    it scatters in white noise.
    """
    apart = np.abs(months[:, None] - months)
    products = residuals.T @ residuals
    is_apart = lags(months)[: len(lagged)]
    shares = _SHARES if len(lagged) > 1 else _SHARES[-1:]
    observed = (is_apart * products).sum(axis=(1, 2)) / max(np.trace(products), TINY)
    powers = _CANDIDATES[:, None] ** np.arange(apart.max() + 1)
    binned = np.array([np.bincount(apart.ravel(), each.ravel()) for each in (total, *lagged)])
    of_white = binned[:, 0]
    lasting = powers @ binned.T  # (candidates of r, squares and both lags)
    expected = of_white + shares[:, None, None] * (lasting - of_white)
    kept = expected[..., 0]
    off = (expected[..., 1:] / np.maximum(kept, TINY)[..., None] - observed) ** 2
    off = off @ (1 / np.maximum(is_apart.sum(axis=(1, 2)), 1))
    share, r = np.unravel_index(off.argmin(), off.shape)
    memory = Memory(float(shares[share]), float(_CANDIDATES[r]))
    return memory, float(kept[share, r] / max(np.trace(total), TINY))
