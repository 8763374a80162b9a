"""Date a model's cutoff: the best ramp in its curve, relative to the difficulty of the months.

For one model, with lambda and cov(lambda) fitted without it (``untreated``):

    y_m = theta lambda_m + N_m gamma + beta ramp_m + u_m          beta > 0
    ramp_m = clip((m - a) / (b - a), 0, 1)                        a < b <= a + 24
    V = cov(u) + theta^2 cov(lambda)                              cov(u_m, u_n) = s^2 r^|m - n|

- y: bits per byte. N: a basis of all functions of the month that the other models leave
  undetermined in lambda; it contains the constant and the regimes of the source. So a change in the
  month in which a regime begins counts as a change of the source.
- The cutoff is b - 1, the last month with training text. The onset is a + 1, but not after the
  cutoff. A sudden end is a step: b = a + 1.

Estimation: generalised least squares with Z = [N, lambda] and

    P = V^-1 - V^-1 Z (Z' V^-1 Z)^-1 Z' V^-1

ramp = (H_a - H_b) / (b - a) with hinges H_k = max(m - k, 0). So H' P H and H' P y give all fits.
A pair (a, b) has at least three months up to a, and two after it. s, r and theta come from the
residuals of the best ramp, in three rounds. r is raised by (1 + 4 r) / months, and limited to
0 ... 0.9. s^2 is at least a fifth of the residuals' variance. If the noise of all models lasts more
than that, cov(u) is s^2 C instead (``untreated``).

Choice: the best step, if its squares are at most 3.84 s^2 more than those of the best ramp. In a
hole, several pairs fit equally well; the first is taken.

Growth: a loss that only grows after the cutoff, without a jump, follows the hinge H_a:

    y_m = theta lambda_m + N_m gamma + beta H_a,m / (T - a) + u_m        T: the last month

This is also the ramp to b = T. It counts as growth on two conditions. Its residual sum of squares
is at most 3.84 s^2 above that of the best ramp, and below that of the best step. Then the cutoff is
a. Growth may be slow at first, so its first month is uncertain. So the reported interval
(``changes``) also holds each a with which the square of H_a fits as well as the pairs in it.

Two rises: ``pairs`` tests two steps against one change. If two steps are found, ``reason`` names
them. Cutoff and intervals stay those of the single ramp. A straight line may fit as well as two
steps of one size. Then ``reason`` names both explanations, and no cutoff is reported.

Test: F = squares gained / (squares left / v), v = months - parameters - 2 (for a and b). p =
exp(-0.4 - F v / (v + 2) / 5), at most 1. The formula fits the distribution of F in data sets
without a change, simulated with AR(0.5) noise u. With white noise, p is larger than needed
(docs/metrics.md). A straight line over all months is no cutoff: its squares must be at least 2.71
s^2 more than those of the best ramp. If those of a parabola are not, the curve may bend smoothly:
the interval has no upper end, and begins with the onset's.

Detectable change: a step of size d in month a has an F whose root is about d / e_a plus normal
noise of 1. Here e_a^2 = s^2 / (step' P step). The step is found if that is more than the critical
root. The step error e is an e_a for all months that can be dated. With it, as many steps are found:

    mean_a Phi(d / e_a - 3.6) = 0.8        e = d / (3.6 + 0.84)

View ``cutoff_tests`` has d at the p-value that its q-values need:

    d = e (0.84 + sqrt(5 (v + 2) / v (-0.4 - ln p)))

The same for ramps of eight months (b = a + 9). They also have to save 2.71 s^2 more than a straight
line. So, with q = ramp' P line,

    e_a^2 = s^2 / min(ramp' P ramp, (ramp' P ramp - q^2 / line' P line) (3.6 + 0.84)^2 / (1.65 +
            0.84)^2)

If only compressors determine lambda, N has a straight line (``untreated``). A break of the site
without a regime may then look like a cutoff. The compressors' curve is fitted with the same ramp, a
straight line and the regimes. There is no cutoff if |change| > 2 errors, or 2 (|change| + 2 errors)
> beta - 2 errors.

Intervals hold all pairs with at most 7.35 s^2 more squares than the best (Hansen 2000, "Sample
Splitting and Threshold Estimation", table 1). A hinge among them may be growth from a on, or text
that thins out until after T. So the interval holds a, and has no upper end. An interval that
reaches the first possible month has no lower end; one that reaches the last three months has no
upper end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from warehouse.estimates.difficulty import NUM_ROUNDS, TINY, ZERO, Difficulty, Flags, Floats, Months
from warehouse.estimates.pairs import (
    INTERVAL_LIMIT,
    MIN_BEFORE,
    MIN_FREE,
    SIGNIFICANT,
    STEP_LIMIT,
    Fits,
    Pairs,
    Rises,
    find_rises,
    interval,
    ramp,
)
from warehouse.estimates.regression import Regression

LAST_MONTHS = 3
LINE_LIMIT = 2.71  # in units of s^2
CRITICAL = 3.6  # root of F at p = 0.05
POWER = 0.8
RAMP_MONTHS = 8  # of the ramp whose size is told beside that of a step
POWER_QUANTILE = 0.84  # of the normal distribution, at POWER
LOGISTIC = 1.7  # the logistic distribution with this scale is nearly the normal one
NUM_HALVINGS = 30
STATED_SCALE = 2.4  # of p, if the months of the change are stated (``staggered``)


@dataclass(frozen=True)
class CutoffFit:
    """The best ramp in one model's curve. Months are numbers; an open end is NaN."""

    start: int  # a
    end: int  # b; the last month if the loss only grows
    is_growth: bool
    cutoff_low: float
    cutoff_high: float
    onset_low: float
    onset_high: float
    jump: float  # beta, in bits per byte
    jump_error: float  # standard error of beta
    p_value: float
    is_line: bool  # True if a straight line over all months fits as well
    first_datable: int  # an earlier cutoff has no lower end
    last_datable: int  # a later cutoff has no upper end
    num_free: int  # v
    best: int  # the place of the best ramp, of any shape
    fits: Fits  # at the last V
    variance: float  # s^2

    @property
    def cutoff(self) -> int:
        """The last month with training text."""
        return self.start if self.is_growth else self.end - 1

    @property
    def onset(self) -> int:
        """The first month with less training text, or the cutoff if that is earlier."""
        return min(self.start + 1, self.cutoff)

    @property
    def is_found(self) -> bool:
        """True if the change is more than chance, and more than a straight line."""
        return self.p_value <= SIGNIFICANT and not self.is_line

    @property
    def is_closed(self) -> bool:
        """True if both ends of the interval of the cutoff are inside the months."""
        return bool(np.isfinite(self.cutoff_low) and np.isfinite(self.cutoff_high))

    # Most fits are made to find the spell of a model (``untreated``). They need none of these.

    @cached_property
    def step_error(self) -> float:
        """The error at which steps are found as often as on average over the datable months."""
        return self._error_of(self.fits.norm, self.fits.pairs.is_step)

    @cached_property
    def ramp_error(self) -> float:
        """The same error of ramps of RAMP_MONTHS; NaN if none fits in the months."""
        pairs = self.fits.pairs
        hinges = self.fits.hinges
        is_ramp = ~pairs.is_growth & (pairs.last - pairs.first == RAMP_MONTHS + 1)
        line = np.zeros_like(pairs.start), np.full_like(pairs.start, len(pairs.months) - 1)
        norms = self.fits.norm
        of_line = hinges.norms(line)
        is_new = of_line > ZERO * np.abs(norms).max(initial=0)
        shared = hinges.of_two((pairs.start, pairs.end), line)
        beside = norms - np.where(is_new, shared**2 / np.where(is_new, of_line, 1), 0)
        ratio = (CRITICAL + POWER_QUANTILE) / (np.sqrt(LINE_LIMIT) + POWER_QUANTILE)
        return self._error_of(np.minimum(norms, beside * ratio**2), is_ramp)

    def _error_of(self, norms: Floats, is_kind: Flags) -> float:
        pairs = self.fits.pairs
        is_datable = (pairs.cutoffs >= self.first_datable) & (pairs.cutoffs <= self.last_datable)
        is_told = norms > ZERO * norms.max(initial=0)
        norms = norms[is_kind & is_datable & is_told]
        return _step_error(norms, self.variance) if len(norms) else np.nan

    @property
    def num_told(self) -> int:
        """The number of months that other curves tell."""
        return int(self.fits.fit.curve.is_told.sum())

    @cached_property
    def rises(self) -> Rises | None:
        """The best two steps; None if the months are too few."""
        pairs = self.fits.pairs
        ramps = pairs.start[~pairs.is_growth], pairs.end[~pairs.is_growth]
        steps = pairs.start[pairs.is_growth]
        return find_rises(self.fits.hinges, steps, ramps, self._bend, self.num_free - 1)

    @property
    def is_parabola(self) -> bool:
        """True if a parabola over all months fits as well as the best ramp."""
        return bool((self.most - self._bend) / self.variance < LINE_LIMIT)

    @cached_property
    def _bend(self) -> float:
        """The squares that a parabola over all months saves."""
        curve = self.fits.fit.curve
        line = (curve.months - curve.months.mean()) / 12
        columns = np.column_stack([line, line**2])
        weighted = self.fits.fit.annihilator @ columns
        products = weighted.T @ curve.losses
        return float(products @ np.linalg.pinv(columns.T @ weighted, rcond=ZERO) @ products)

    @property
    def most(self) -> float:
        """The squares that the best ramp saves."""
        return float(self.fits.gained[self.best])

    @property
    def best_ramp(self) -> tuple[int, int]:
        """The months a and b of the best ramp."""
        pairs = self.fits.pairs
        return int(pairs.first[self.best]), int(pairs.last[self.best])

    def doubt(self, months: Months) -> Floats:
        """Return the most that ramp_m differs from that of a pair in the interval, (months,)."""
        is_in = (self.most - self.fits.gained) / self.variance <= INTERVAL_LIMIT
        first = self.fits.pairs.first[is_in, None]
        last = self.fits.pairs.last[is_in, None]
        heights = ramp(months, first, last)
        return np.asarray(np.abs(heights - ramp(months, self.start, self.end)).max(axis=0))

    def opened(self) -> CutoffFit:
        """Return the change as one that may be the source's: the cutoff is not before its onset."""
        low = float(np.minimum(self.cutoff_low, self.onset_low))  # NaN if either is
        return replace(self, cutoff_low=low, cutoff_high=np.nan, onset_high=np.nan)

    def begun_slowly(self) -> CutoffFit:
        """Return growth with intervals that hold the months from which its square may grow."""
        curve = self.fits.fit.curve
        starts = self.fits.pairs.first[self.fits.pairs.is_growth]
        columns = np.maximum(curve.months[:, None] - starts, 0.0) ** 2
        weighted = self.fits.fit.annihilator @ columns
        norms = (columns * weighted).sum(axis=0)
        is_new = norms > ZERO * (columns * (self.fits.fit.inverse @ columns)).sum(axis=0)
        products = curve.losses @ weighted
        gained = np.where(is_new, products**2 / np.where(is_new, norms, 1), 0)
        is_in = (products > 0) & (self.most - gained <= INTERVAL_LIMIT * self.variance)
        if not self.is_growth or not is_in.any():
            return self
        first = float(starts[is_in].min())
        first = first if first >= self.first_datable else np.nan
        return replace(
            self,
            cutoff_low=float(np.minimum(self.cutoff_low, first)),  # NaN if either is
            onset_low=float(np.minimum(self.onset_low, first)),
        )

    def excludes(self, month: float) -> bool:
        """Return True if the interval of the cutoff leaves out a month; False for NaN."""
        return bool(self.cutoff_low > month or self.cutoff_high < month)

    def stated_at(self, month: float, lasting: float) -> CutoffFit:
        """Return the fit with the p-value of a change that ends at a stated month, if smaller.

        ``lasting`` is L of the panel's noise (``staggered``).
        """
        fits = self.fits
        is_stated = (fits.pairs.last == month + 1) & ~fits.pairs.is_growth
        most = float(fits.gained[is_stated].max(initial=0))
        statistic = most / self.variance * self.num_free / (self.num_free + 2)
        p_value = float(min(1, np.exp(-0.4 - statistic / lasting / STATED_SCALE)))
        return replace(self, p_value=min(p_value, self.p_value))

    def widened(self, others: list[CutoffFit | None]) -> CutoffFit:
        """Return the fit with intervals that hold those of other changes; open ends stay open."""
        fits = [self, *(fit for fit in others if fit is not None and fit.is_found)]
        return replace(
            self,
            cutoff_low=float(np.min([fit.cutoff_low for fit in fits])),
            cutoff_high=float(np.max([fit.cutoff_high for fit in fits])),
            onset_low=float(np.min([fit.onset_low for fit in fits])),
            onset_high=float(np.max([fit.onset_high for fit in fits])),
        )


def fit_cutoff(losses: Floats, months: Months, difficulty: Difficulty | None) -> CutoffFit | None:
    """Fit the best ramp to one model's curve; return None if the months are too few.

    Args:
        losses: bits per byte of shape (months,); NaN for a missing month.
        months: ascending month numbers.
        difficulty: lambda of the same months, fitted without the model; None if nothing tells it.
    """
    if difficulty is None:
        return None
    curve = Regression.of(losses, months, difficulty)
    pairs = Pairs.of(curve)
    if curve.num_free - 3 < MIN_FREE or not len(pairs.start):
        return None
    fit = curve.plain()
    for _ in range(NUM_ROUNDS):
        best = pairs.fit(fit).best(~pairs.is_growth)
        height = ramp(curve.months, pairs.first[best], pairs.last[best])
        fit = curve.weighted(fit.next_covariance(height))
    return _conclude(pairs.fit(fit))


def _conclude(fits: Fits) -> CutoffFit:
    """Choose a pair; give the test, and the intervals of both its months."""
    curve = fits.fit.curve
    pairs = fits.pairs
    best = fits.best(~pairs.is_growth)
    step = fits.best(pairs.is_step)
    growth = fits.best(pairs.is_growth)
    most = fits.gained[best]
    num_free = curve.num_free - 3
    variance = max(fits.hinges.total - most, fits.hinges.least, TINY) / num_free
    lost = (most - fits.gained) / variance  # of each pair, in units of s^2
    chosen = step if lost[step] <= STEP_LIMIT else best
    is_growth = bool(lost[growth] <= STEP_LIMIT and lost[growth] < lost[step] - ZERO)
    chosen = growth if is_growth else chosen
    is_in = lost <= INTERVAL_LIMIT
    cutoffs = pairs.cutoffs[is_in]
    told = curve.months[curve.is_told]
    ends = told[MIN_BEFORE - 1], told[-LAST_MONTHS]
    cutoff_low, cutoff_high = interval(cutoffs, *ends)
    onset_low, onset_high = interval(np.minimum(pairs.first[is_in] + 1, cutoffs), *ends)
    statistic = most / variance * num_free / (num_free + 2)
    return CutoffFit(
        start=int(pairs.first[chosen]),
        end=int(pairs.last[chosen]),
        is_growth=is_growth,
        cutoff_low=cutoff_low,
        cutoff_high=np.nan if (is_in & pairs.is_growth).any() else cutoff_high,
        onset_low=onset_low,
        onset_high=onset_high,
        jump=float(fits.slope[chosen]),
        jump_error=float(np.sqrt(variance / max(float(fits.norm[chosen]), TINY))),
        p_value=float(min(1, np.exp(-0.4 - statistic / 5))),
        is_line=bool((most - fits.line_gained) / variance < LINE_LIMIT),
        first_datable=int(ends[0]) + 1,
        last_datable=int(ends[1]) - 1,
        num_free=num_free,
        best=best,
        fits=fits,
        variance=variance,
    )


def _step_error(norms: Floats, variance: float) -> float:
    """Return the error at which steps with these step' P step are found as often as on average."""
    low = 0.0
    high = 100.0
    for _ in range(NUM_HALVINGS):  # of the step's size, in units of the smallest error
        size = (low + high) / 2
        excess = size * np.sqrt(norms / norms.max()) - CRITICAL
        found = 1 / (1 + np.exp(-LOGISTIC * excess))
        if found.mean() < POWER:
            low = size
        else:
            high = size
    return float(low / (CRITICAL + POWER_QUANTILE) * np.sqrt(variance / norms.max()))


def may_be_the_site(fit: CutoffFit, losses: Floats, months: Months, regimes: Floats) -> bool:
    """Return True if a compressor's curve (months,) does not rule out a break of the site."""
    size, error = _site_change(fit.start, fit.end, losses, months, regimes)
    return bool(size > 2 * error or 2 * (size + 2 * error) > fit.jump - 2 * fit.jump_error)


def site_step(
    step_error: float, length: int, losses: Floats, months: Months, regimes: Floats
) -> float:
    """Return a change for which a compressor rules out a break of the site in 80 % of worlds.

    It is in the middle of the months. The compressor's own figure is at most its error there, in
    most worlds.
    """
    middle = float(np.median(months[~np.isnan(losses)]))
    start = middle - length // 2
    _, error = _site_change(start, start + length, losses, months, regimes)
    return (2 + POWER_QUANTILE) * step_error + 2 * (1 + 2) * error


def _site_change(
    start: float, end: float, losses: Floats, months: Months, regimes: Floats
) -> tuple[float, float]:
    """Return the size of a ramp in a compressor's curve, beside a line, and its error."""
    line = (months - months.mean()) / 12
    others = Difficulty(np.zeros(len(months)), np.column_stack([line, regimes]))
    fit = Regression.of(losses, months, others).plain()
    size, error = fit.effect(ramp(fit.curve.months, start, end))
    return abs(size), error
