"""The panel estimator: models with different cutoffs serve as controls for each other.

For month m and model i with cutoff c_i (last month of its training data):

    y_im = alpha_i + sum_k gamma_ik regime_km + theta_i lambda_m
           + delta_i after_im + epsilon_i after_im (h_im - hbar_i) + u_im

- y: bits per byte in month m, of the documents that most models share.
- regime: 1 in the months of the source's regime k, else 0; the first regime has no column. A break
  of the source that all models share is in lambda. gamma is what a model feels of it besides.
- lambda: the month's difficulty for language models, with mean 0.
- theta: the model's sensitivity to lambda, limited to 0.5 ... 1.5, with mean 1 over the models.
- after: 1 if m > c_i, else 0. h: m - c_i. hbar: the mean of h over the months after c_i.
- delta: the mean gap over the months after c_i. epsilon: the growth of the gap per month.

Estimation. X_i has the columns 1, regimes, after and after (h - hbar), in this order. A column is
left out if the model's months cannot tell it from the former ones. R_i is I - X_i X_i+ (+:
pseudoinverse) on the model's months, 0 elsewhere. First, theta = 1.

    M = sum_i theta_i^2 R_i        lambda = M+ sum_i theta_i R_i y_i
    theta_i = (R_i lambda)' y_i / |R_i lambda|^2, clipped to 0.5 ... 1.5, then divided by the mean

lambda and theta are computed three times in turn; then lambda is computed again. delta_i and
epsilon_i are w_i' (y_i - theta_i lambda), with w_i a row of [X_i, lambda]+. (Column lambda adds the
error of theta_i.) As lambda is linear in all y, they equal sum_j W_ij' y_j:

    W_ij = 1{i=j} w_i - theta_i theta_j R_j M+ w_i

Error. The residuals are u_j = R_j (y_j - theta_j lambda). s_j^2 is the variance of the residuals of
model j, s^2 of all models. A model's noise is autocorrelated: C_mn = r^|m - n|, with one r for all
models. The squared standard error is the maximum of

    s^2 sum_j |W_ij|^2     sum_j (s_j^2 / k) W_ij' C W_ij     G/(G-1) sum_g (sum_j W_ijg' u_jg)^2

k = sum_j tr(R_j C) / sum_j tr(R_j). The third term (CR1) sums over the G blocks of three calendar
months, each with all models. Student's t has G_i - 1 degrees of freedom (G_i: number of blocks
of model i), or those of s^2 if fewer. The difference of two models' effects has the difference of
their W.

Identification. The data determine lambda only up to the null space of M. They determine delta_i or
epsilon_i if w_i is orthogonal to it. lambda is returned for the largest set of months whose
differences of lambda are determined. With regimes, these are months of one regime.

For a thermometer (a model with a cutoff before all months), delta is part of alpha. M leaves out
models with unknown cutoff or few months.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from warehouse.estimates.panel_errors import MONTHS_OF_A_BLOCK, Errors, Flags, Floats

LEAST_SENSITIVITY = 0.5
MOST_SENSITIVITY = 1.5
NUM_ROUNDS = 3
MIN_BLOCKS = 4
_RANK_TOLERANCE = 1e-9  # of eigenvalues, relative
_ZERO = 1e-7  # of products, relative
_LEAST_SIZE = (LEAST_SENSITIVITY / MOST_SENSITIVITY) ** 2  # of M's largest eigenvalue, if not 0

NO_CUTOFF = "cutoff unknown"
NO_CONTROL = "no other model with another cutoff"
UNTOLD = "no model with another cutoff tells its months"
NONE_BEFORE = "no month before the cutoff"
NONE_AFTER = "no month after the cutoff"
ONE_AFTER = "one month after: no growth"
AT_REGIME = "a regime of the source begins right after the cutoff"
FEW_BLOCKS = "too few blocks of three months"
FEW_MONTHS = "too few months for an interval"


@dataclass(frozen=True)
class Difficulty:
    """lambda (months,) at given theta, determined up to the span of ``unknown`` (months, k)."""

    values: Floats
    inverse: Floats  # M+ (months, months)
    unknown: Floats  # orthonormal basis of M's null space
    theta: Floats
    covariance: Floats | None = None  # of lambda (months, months); None if not known
    autocorrelation: float = 0  # of the models' noise


@dataclass(frozen=True)
class Effects:
    """One effect (gap or growth) of all models, (models,); NaN if missing, with a reason."""

    values: Floats
    errors: Floats
    difference_errors: Floats  # (models, models): of one model's effect less another's
    reasons: tuple[str | None, ...]


@dataclass(frozen=True)
class PanelFit:
    """Estimates lambda (``difficulty``), delta (``gap``), epsilon (``growth``); NaN if missing."""

    theta: Floats
    difficulty: Floats
    difficulty_error: Floats
    difficulty_degrees_of_freedom: float
    gap: Effects
    growth: Effects
    degrees_of_freedom: Floats
    _annihilators: Floats
    _remainders: Floats
    _total: Floats  # M
    _solution: Difficulty
    _variance: float  # s^2

    def difficulty_without(self, model: int) -> Difficulty | None:
        """Return lambda fitted without a model, at unchanged theta; None if no model is left."""
        theta = np.nan_to_num(self.theta)
        total = self._total - theta[model] ** 2 * self._annihilators[model]
        theta[model] = 0
        if not theta.any():
            return None
        unknown = null_space(total, self._solution.unknown)
        other = solve_difficulty(theta, self._annihilators, self._remainders, total, unknown)
        return replace(other, covariance=self._variance * other.inverse)


def fit_panel(
    losses: Floats, cutoffs: Floats, months: NDArray[np.int64], regimes: Floats | None = None
) -> PanelFit:
    """Fit the panel of one source and protocol.

    Args:
        losses: bits per byte of shape (models, months); NaN for a missing month.
        cutoffs: number of each model's cutoff month, numbered as in ``months``; NaN if unknown.
        months: ascending month numbers; the number of each January is a multiple of 12.
        regimes: columns "regime" of shape (months, regimes); None if the source has one regime.
    """
    blocks = months // MONTHS_OF_A_BLOCK
    observed = ~np.isnan(losses)
    breaks = np.zeros((len(months), 0)) if regimes is None else regimes
    num_blocks = np.array([len(set(blocks[row])) for row in observed])
    enters = ~np.isnan(cutoffs) & (num_blocks >= MIN_BLOCKS)
    designs = [
        design(months, row, cutoff, breaks) if is_in else None
        for row, cutoff, is_in in zip(observed, cutoffs, enters, strict=True)
    ]
    annihilators = np.array([annihilator(each, len(months)) for each in designs])
    remainders = np.einsum("ijk,ik->ij", annihilators, np.nan_to_num(losses))
    solution = _fit_sensitivities(annihilators, remainders, enters)
    num_columns = np.array([each.columns.shape[1] if each else 0 for each in designs])
    num_free = observed.sum(axis=1) * enters - num_columns - 1
    left = remainders - solution.theta[:, None] * (annihilators @ solution.values)
    errors = Errors(solution.theta, solution.inverse, annihilators, left, num_free, months)
    effects = {
        column: _effects(column, losses, cutoffs, designs, solution, errors)
        for column in ("gap", "growth")
    }
    return PanelFit(
        theta=np.where(enters & (enters.sum() > 1), solution.theta, np.nan),
        difficulty=_told(solution),
        difficulty_error=errors.of_difficulty(_comparable(solution.unknown)),
        difficulty_degrees_of_freedom=max(1, min(len(set(blocks)) - 1, errors.num_free)),
        gap=effects["gap"],
        growth=effects["growth"],
        degrees_of_freedom=np.maximum(1, np.minimum(num_blocks - 1, errors.num_free)),
        _annihilators=annihilators,
        _remainders=remainders,
        _total=np.tensordot(solution.theta**2, annihilators, 1),
        _solution=solution,
        _variance=float(np.nan_to_num(errors.variance)),
    )


def _effects(
    column: str,
    losses: Floats,
    cutoffs: Floats,
    designs: list[Design | None],
    solution: Difficulty,
    errors: Errors,
) -> Effects:
    """Return each model's effect of a column of its design (gap or growth), with its error.

    The effect is a weighted sum of the model's losses less the difficulty of their months. It is
    NaN, with a reason, if the weights rest on months whose difficulty is unknown, or on too few.
    """
    values = np.full(len(losses), np.nan)
    reasons = list[str | None]()
    weights = np.full(losses.shape, np.nan)  # w
    stated = set(cutoffs[np.isfinite(cutoffs) & np.isfinite(losses).any(axis=1)])
    for model, design in enumerate(designs):
        reason = _reason(design, column, bool(np.isnan(cutoffs[model])))
        if reason is None and design is not None:
            w = design.weights(column, solution.values)
            if np.abs(w @ solution.unknown).max(initial=0) > _ZERO * abs(w).max():
                reason = UNTOLD if stated - {cutoffs[model]} else NO_CONTROL
            elif np.isnan(errors.variance):
                reason = FEW_MONTHS
            else:
                own = np.nan_to_num(losses[model]) - solution.theta[model] * solution.values
                values[model] = w @ own
                weights[model] = w
        reasons.append(reason)
    return Effects(values, *errors.of_effects(weights), tuple(reasons))


@dataclass(frozen=True)
class Design:
    """Matrix X of one model, over its observed months; ``names`` are those of its columns."""

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
        if np.linalg.norm(left) <= _ZERO * np.linalg.norm(extended[:, -1]):
            extended = self.columns
        weights[self.observed] = np.linalg.pinv(extended)[number]
        return weights


def design(months: NDArray[np.int64], observed: Flags, cutoff: float, regimes: Floats) -> Design:
    """Return X of a model, for its ``observed`` months; arguments as of ``fit_panel``."""
    ages = months[observed] - cutoff
    after = ages > 0
    num_after = int(after.sum())
    hinge = np.where(after, ages - ages[after].sum() / max(num_after, 1), 0)
    columns = np.ones((len(ages), 1))
    base = columns / np.sqrt(max(len(ages), 1))  # orthonormal, of the same span
    names = ["level"]
    wanted = [
        *(("regime", each) for each in regimes[observed].T),
        ("gap", after),
        ("growth", hinge),
    ]
    for name, column in wanted:
        left = column - base @ (base.T @ column)
        size = np.linalg.norm(left)
        if size > _ZERO * np.linalg.norm(column):
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


def _reason(design: Design | None, column: str, is_unknown: bool) -> str | None:
    """Return the reason why X lacks a column; None if X has the column."""
    if is_unknown:
        return NO_CUTOFF
    if design is None:
        return FEW_BLOCKS
    if design.num_after == 0:
        return NONE_AFTER
    if column == "gap" and design.num_after == len(design.columns):
        return NONE_BEFORE
    if column == "growth" and design.num_after == 1:
        return ONE_AFTER
    return None if column in design.names else AT_REGIME


def _fit_sensitivities(annihilators: Floats, remainders: Floats, enters: Flags) -> Difficulty:
    """Return theta and lambda; theta is 0 for models that ``enters`` excludes."""
    theta = enters.astype(float)
    total = annihilators[enters].sum(axis=0)
    unknown = null_space(total, np.zeros((len(total), 0)))
    solution = solve_difficulty(theta, annihilators, remainders, total, unknown)
    for _ in range(NUM_ROUNDS if enters.any() else 0):
        left = annihilators @ solution.values
        squares = (left * left).sum(axis=1)
        is_told = squares > _ZERO * squares.max(initial=0)
        slopes = (left * remainders).sum(axis=1) / np.where(is_told, squares, 1)
        slopes = np.clip(np.where(is_told, slopes, 1), LEAST_SENSITIVITY, MOST_SENSITIVITY)
        theta = np.where(enters, slopes, 0) / slopes[enters].mean()
        total = np.tensordot(theta**2, annihilators, 1)
        solution = solve_difficulty(theta, annihilators, remainders, total, unknown)
    return solution


def null_space(total: Floats, known: Floats) -> Floats:
    """Return an orthonormal basis of M's null space; ``known`` is a basis of a part of it."""
    least = _RANK_TOLERANCE * max(np.trace(total), _LEAST_SIZE)
    try:  # takes a twentieth of the time of eigh
        np.linalg.cholesky(total + known @ known.T - least * np.eye(len(total)))
    except np.linalg.LinAlgError:  # there are other directions, or almost
        sizes, vectors = np.linalg.eigh(total)
        known = vectors[:, sizes <= _RANK_TOLERANCE * max(sizes[-1], _LEAST_SIZE)]
    return known


def solve_difficulty(
    theta: Floats, annihilators: Floats, remainders: Floats, total: Floats, unknown: Floats
) -> Difficulty:
    """Solve for lambda; ``total`` is M, and ``unknown`` its null space."""
    inverse = np.linalg.inv(total + unknown @ unknown.T) - unknown @ unknown.T
    return Difficulty(inverse @ (theta @ remainders), inverse, unknown, theta)


def _comparable(unknown: Floats) -> Flags:
    """Return True for the largest set of months whose differences of lambda are determined."""
    is_near = np.abs(unknown[:, None] - unknown).max(axis=2, initial=0) <= _ZERO
    counts = is_near.sum(axis=1)
    return np.asarray(is_near[counts.argmax()] & (counts.max() > 1))


def _told(solution: Difficulty) -> Floats:
    """Return lambda minus its mean over comparable months; NaN for other months."""
    is_told = _comparable(solution.unknown)
    mean = solution.values[is_told].mean() if is_told.any() else 0
    return np.where(is_told, solution.values - mean, np.nan)
