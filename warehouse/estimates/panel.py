"""The panel estimator: models with different cutoffs serve as controls for each other.

For month m and model i with cutoff c_i (last month of its training data):

    y_im = alpha_i + sum_k gamma_ik regime_km + theta_i lambda_m
           + delta_i after_im + epsilon_i after_im (h_im - hbar_i) + u_im

- y: bits per byte in month m, of the documents that most models share.
- regime: 1 in the months of the source's regime k, else 0; the first regime has no column. A break
  of the source that all models share is in lambda. gamma is the additional effect on the model.
- lambda: the month's difficulty for language models, with mean 0.
- theta: the model's sensitivity to lambda, limited to 0.5 ... 1.5, with mean 1 over the models.
- after: 1 if m > c_i, else 0. h: m - c_i. hbar: the mean of h over the months after c_i.
- delta: the mean gap over the months after c_i. epsilon: the growth of the gap per month.

Estimation: lambda and theta as in ``difficulty``. X_i has the columns 1, regimes, after and after
(h - hbar), in this order. delta_i and epsilon_i are w_i' (y_i - theta_i lambda), with w_i a row of
[X_i, lambda]+. (Column lambda adds the error of theta_i.) lambda has the errors of all y, and of
all theta. To first order, the error of delta_i or epsilon_i is sum_j W_ij' u_j:

    W_ij = 1{i=j} w_i - theta_i (theta_j R_j M+ (w_i + sum_k v_k theta_k R_k lambda)
           - v_j R_j lambda)
    v = (P B P)+ e        e_k = theta_k w_i' M+ R_k lambda
    B_jk = 1{j=k} |R_j lambda|^2 - theta_j theta_k lambda' R_j M+ R_k lambda

B is of joint least squares of theta and lambda. P takes the mean off the free theta, since theta
keeps the mean 1; it is 0 for a theta at a limit, which has no error. Without v, the intervals of
three models were too narrow under a break that affects all three.

Error. The residuals are u_j = R_j (y_j - theta_j lambda). s_j^2 is the variance of the residuals of
model j, s^2 of all models. A model's noise is autocorrelated: C has the form of ``difficulty``, one
for all models. The squared standard error is the maximum of

    s^2 sum_j |W_ij|^2     sum_j (s_j^2 / k) W_ij' C W_ij     G/(G-1) sum_g (sum_j W_ijg' u_jg)^2

The third term (CR1) sums over the G blocks of three calendar months, each with all models.
Student's t has G_i - 1 degrees of freedom (G_i: number of blocks of model i), or those of s^2 if
fewer. The difference of two models' effects has the difference of their W.

C is the one for which such residuals are expected, and k is the share of its variance that they
keep. lambda and theta take a part of the noise away, most of it in small panels. Q_j projects out
X_j, and R_j lambda if theta_j is free. With S = sum_j theta_j^2 Q_j, the residuals of model j are

    sum_k P_jk u_k        P_jk = 1{j=k} Q_j - theta_j theta_k Q_j S+ Q_k

N is a matrix with 1 for the months of one distance. The sum of products of such residuals has the
expectation s^2 tr(A C), A = sum_jk P_kj N P_jk. Of more than 30 models, lambda takes little: Q is
R there, and S+ is 0.

Identification. The data determine delta_i or epsilon_i if w_i is orthogonal to the null space of M.
lambda is returned for the largest set of months whose
differences of lambda are determined. With regimes, these are months of one regime.

For a thermometer (a model with a cutoff before all months), delta is part of alpha. M leaves out
models with unknown cutoff or few months.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warehouse.estimates.difficulty import (
    ZERO,
    Design,
    Difficulty,
    DifficultyFit,
    Flags,
    Floats,
    Memory,
    Months,
    design,
    find_memory,
    fit_difficulty,
    lags,
    null_space,
    pseudoinverse,
)

MONTHS_OF_A_BLOCK = 3
MIN_BLOCKS = 4
LEAST_FREEDOM = 0.5  # degrees of freedom of s^2
MOST_EXACT = 30  # models of which the noise that lambda takes away is computed

NO_CUTOFF = "cutoff unknown"
NO_CONTROL = "no other model with another known cutoff"
UNTOLD = "no model with another cutoff tells its months"
NONE_BEFORE = "no month before the cutoff"
NONE_AFTER = "no month after the cutoff"
ONE_AFTER = "one month after: no growth"
AT_REGIME = "a regime of the source begins right after the cutoff"
FEW_BLOCKS = "too few blocks of three months"
NO_FREEDOM = "{} months leave no degrees of freedom for an interval"


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
    enters: Flags  # (models,): of known cutoff, with enough months
    gap: Effects
    growth: Effects
    degrees_of_freedom: Floats
    solution: DifficultyFit

    def difficulty_without(self, model: int) -> Difficulty | None:
        """Return lambda fitted without a model; None if fewer than two models entered the fit."""
        return None if np.isnan(self.theta).all() else self.solution.without(model)


def fit_panel(
    losses: Floats, cutoffs: Floats, months: Months, regimes: Floats | None = None
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
    solution = fit_difficulty(losses, designs, len(losses), months)
    errors = Errors(solution)
    is_told = _comparable(solution.whole.unknown)
    mean = solution.whole.values[is_told].mean() if is_told.any() else 0
    return PanelFit(
        theta=np.where(enters & (enters.sum() > 1), solution.theta, np.nan),
        difficulty=np.where(is_told, solution.whole.values - mean, np.nan),
        difficulty_error=errors.of_difficulty(is_told),
        difficulty_degrees_of_freedom=max(1, min(len(set(blocks)) - 1, errors.num_free)),
        enters=enters,
        gap=_effects("gap", losses, cutoffs, designs, errors),
        growth=_effects("growth", losses, cutoffs, designs, errors),
        degrees_of_freedom=np.maximum(1, np.minimum(num_blocks - 1, errors.num_free)),
        solution=solution,
    )


def _effects(
    column: str, losses: Floats, cutoffs: Floats, designs: list[Design | None], errors: Errors
) -> Effects:
    """Return each model's effect of a column of its design (gap or growth), with its error.

    The effect is a weighted sum of the model's losses less the difficulty of their months. It is
    NaN, with a reason, if the weights rest on months whose difficulty is unknown, or on too few.
    """
    solution = errors.solution
    difficulty = solution.whole.values
    values = np.full(len(losses), np.nan)
    reasons = list[str | None]()
    weights = np.full(losses.shape, np.nan)  # w
    enters = [own_design is not None for own_design in designs]
    num_months = int(np.isfinite(losses[enters]).any(axis=0).sum())
    stated = set(cutoffs[np.isfinite(cutoffs) & np.isfinite(losses).any(axis=1)])
    for model, own_design in enumerate(designs):
        seen = errors.solution.months[np.isfinite(losses[model])]
        reason = _reason(own_design, column, cutoffs[model], seen)
        if reason is None and own_design is not None:
            w = own_design.weights(column, difficulty)
            if np.abs(w @ solution.whole.unknown).max(initial=0) > ZERO * abs(w).max():
                reason = UNTOLD if stated - {cutoffs[model]} else NO_CONTROL
            elif np.isnan(errors.variance):
                reason = NO_FREEDOM.format(num_months)
            else:
                own = np.nan_to_num(losses[model]) - solution.theta[model] * difficulty
                values[model] = w @ own
                weights[model] = w
        reasons.append(reason)
    return Effects(values, *errors.of_effects(weights), tuple(reasons))


def _reason(design: Design | None, column: str, cutoff: float, seen: Months) -> str | None:
    """Return the reason why X lacks a column; None if X has the column.

    ``seen`` are the model's months. A side of the cutoff without any counts before their number:
    more months after the cutoff give no month before it.
    """
    if np.isnan(cutoff):
        return NO_CUTOFF
    num_after = int((seen > cutoff).sum())
    if len(seen) and num_after == 0:
        return NONE_AFTER
    if column == "gap" and 0 < num_after == len(seen):
        return NONE_BEFORE
    if design is None:
        return FEW_BLOCKS
    if column == "growth" and num_after == 1:
        return ONE_AFTER
    return None if column in design.names else AT_REGIME


def _comparable(unknown: Floats) -> Flags:
    """Return True for the largest set of months whose differences of lambda are determined."""
    is_near = np.abs(unknown[:, None] - unknown).max(axis=2, initial=0) <= ZERO
    counts = is_near.sum(axis=1)
    return np.asarray(is_near[counts.argmax()] & (counts.max() > 1))


class Errors:
    """The standard errors of linear functions of lambda and of the models' curves."""

    def __init__(self, solution: DifficultyFit) -> None:
        self.solution = solution
        months = solution.months
        blocks = months // MONTHS_OF_A_BLOCK
        self._blocks = (blocks[:, None] == np.unique(blocks)).astype(float)  # (months, blocks)
        free = solution.num_free
        self.num_free = float(free.sum())
        self.variance = solution.variance if self.num_free > LEAST_FREEDOM else np.nan
        squares = (solution.residuals**2).sum(axis=1)
        variances = np.where(free >= 1, squares / np.maximum(free, 1), self.variance)
        memory, kept = memory_of(solution)
        self._correlations = memory.correlations(np.abs(months[:, None] - months))
        self._variances = variances / kept

    def of_effects(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the standard errors of each model's w' (y - theta lambda), and of differences.

        ``weights`` has each model's w, (models, months); NaN for a model without the effect.
        Differences have the shape (models, models): of one model's effect less another's.
        """
        all_weights = self._of_difficulty(-self.solution.theta[:, None] * weights)
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
        solution = self.solution
        theta = solution.theta[:, None]
        moved = solution.annihilators @ solution.whole.values
        sizes = self._of_sensitivities(weights @ solution.inverse @ (theta * moved).T, moved)
        shared = solution.inverse @ (weights + sizes @ (theta * moved)).T
        of_shared = (solution.annihilators @ shared).transpose(2, 0, 1)
        return np.asarray(theta * of_shared - sizes[:, :, None] * moved)

    def _of_sensitivities(self, effects: Floats, moved: Floats) -> Floats:
        """Return v (figures, models) of e, the ``effects``; ``moved`` is R lambda."""
        solution = self.solution
        scaled = solution.theta[:, None] * moved
        matrix = np.diag((moved**2).sum(axis=1)) - scaled @ solution.inverse @ scaled.T
        free = solution.is_free.astype(float)
        centring = np.diag(free) - np.outer(free, free) / max(free.sum(), 1)
        inverse = np.linalg.pinv(centring @ matrix @ centring, rcond=ZERO, hermitian=True)
        return np.asarray(effects @ inverse)

    def _covariances(self, weights: Floats) -> Floats:
        """Return the three terms of the squared error as covariances (3, figures, figures).

        ``weights`` has W, of shape (figures, models, months).
        """
        flat = weights.reshape(len(weights), self.solution.residuals.size)
        lagged = self._variances[:, None] * (weights @ self._correlations)
        scores = (weights * self.solution.residuals).sum(axis=1) @ self._blocks
        num_blocks = scores.shape[1]
        return np.array(
            [
                self.variance * flat @ flat.T,
                lagged.reshape(flat.shape) @ flat.T,
                scores @ scores.T * num_blocks / max(num_blocks - 1, 1),
            ]
        )


def memory_of(solution: DifficultyFit) -> tuple[Memory, float]:
    """Return the memory of the models' noise, and the share of its variance that residuals keep."""
    if solution.num_models > MOST_EXACT:
        return solution.memory
    residuals = solution.residuals[: solution.num_models]
    theta = solution.theta[: solution.num_models]
    kept = _without_sensitivities(solution)
    shared = np.tensordot(theta**2, kept, 1)
    unknown = null_space(shared, np.zeros((len(shared), 0)))
    inverse = pseudoinverse(shared, unknown)
    total, *lagged = (
        _expected(is_apart, kept, theta, inverse)
        for is_apart in (np.eye(len(shared)), *lags(solution.months))
    )
    if np.trace(total) < LEAST_FREEDOM:
        return solution.memory
    return find_memory(total, lagged, residuals, solution.months)


def _without_sensitivities(solution: DifficultyFit) -> Floats:
    """Return Q (models, months, months)."""
    kept = solution.annihilators[: solution.num_models].copy()
    moved = kept @ solution.whole.values
    for model in np.flatnonzero(solution.is_free[: solution.num_models]):
        kept[model] -= np.outer(moved[model], moved[model]) / (moved[model] @ moved[model])
    return np.asarray(kept)


def _expected(is_apart: Floats, kept: Floats, theta: Floats, inverse: Floats) -> Floats:
    """Return A of the months that are apart: N is ``is_apart``, Q is ``kept``, S+ ``inverse``."""
    own = kept @ is_apart @ kept
    weighted = (theta**2)[:, None, None] * own
    crossed = np.tensordot(weighted @ inverse, kept, ((0, 2), (0, 1)))
    middle = inverse @ weighted.sum(axis=0) @ inverse
    scaled = (theta**2)[:, None, None] * kept
    shared = np.tensordot(scaled @ middle, kept, ((0, 2), (0, 1)))
    return np.asarray(own.sum(axis=0) - crossed - crossed.T + shared)
