"""Look for a second change in a model's curve: text of two times in its training, in stages.

The model of ``cutoffs``, with two steps, the last months before them being j and k >= j + 3:

    y_m = theta lambda_m + N_m gamma + beta_j (m > j) + beta_k (m > k) + u_m      beta_j, beta_k > 0

V is that of the single ramp. One change may have any shape of these: a ramp from a to b, and a
straight line from b on, as text thins out and the model ages; or a parabola.

    F = (squares left by the best shape - squares left by two steps) / (squares left by them / v)
    p = exp(0.5 - F v / (v + 2) / 2), at most 1        v = months - parameters - 2 (for j and k)

So the more a curve bends, or the longer its text thins out, the smaller is F. Simulated with a
single change, 36 and 24 months, white and AR(0.5) noise, 100 worlds of 24 kinds: 95 % of F v / (v +
2) are below 6.0 in each kind, 98 % below 8.0. p is 0.05 at 7.0. The kinds are a step, a logistic
curve, and ramps of 12 months (linear, square, root). Further kinds are growth, alone or after a
step or a ramp.

Months: first and second are j and k. Text may thin out before either. So each is a ramp in turn, up
to the other step, as in ``cutoffs``. Its last month with text, b - 1, is taken in place of the
step's if that saves more than 3.84 s^2. The intervals hold the months of all steps and ramps with
at most 7.35 s^2 more squares than the best. An interval that reaches the first or the last month
that can be told is open there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warehouse.estimates.difficulty import TINY, ZERO, Months
from warehouse.estimates.pairs import Hinges, Places

STEP_LIMIT = 3.84  # in units of s^2, as the next
INTERVAL_LIMIT = 7.35
MIN_APART = 3  # months
MIN_FREE = 3
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Rise:
    """The last month before a rise, and its interval; an open end is NaN."""

    month: int
    low: float
    high: float


@dataclass(frozen=True)
class Rises:
    """The best two rises in a curve. ``p_value`` is that of a single change."""

    first: Rise
    second: Rise
    p_value: float

    @property
    def is_found(self) -> bool:
        """True if a single change explains the curve worse, by more than chance."""
        return self.p_value <= SIGNIFICANT


def find_rises(
    hinges: Hinges, steps: Months, ramps: Places, bend: float, num_free: int
) -> Rises | None:
    """Return the best two rises, with p = 1 if no two steps rise; None if the months are too few.

    Args:
        hinges: of the curve at V.
        steps: places of the months after which there may be a step.
        ramps: places of the first and the last month of each ramp that is tried.
        bend: squares that a parabola saves.
        num_free: months minus parameters minus 2.
    """
    if num_free < MIN_FREE or len(steps) <= MIN_APART:
        return None
    places = np.triu_indices(len(steps), MIN_APART)
    first, second = (steps[each] for each in places)
    gained = hinges.gained_by_two((first, first + 1), (second, second + 1), only_rises=True)
    best = int((gained >= (1 - ZERO) * gained.max()).argmax())
    variance = max(hinges.total - gained[best], hinges.least, TINY) / num_free
    start, end = ramps
    line = end, len(hinges.months) - 1  # from the end of the ramp on
    single = max(hinges.gained_by_two(ramps, line, only_rises=False).max(), bend)
    statistic = (gained[best] - single) / variance * num_free / (num_free + 2)
    rises = []
    for steps_of_rise, other, is_apart in (
        (first, second[best], end <= second[best]),
        (second, first[best], start > first[best]),
    ):
        thin = start[is_apart], end[is_apart]
        of_thin = hinges.gained_by_two(thin, (other, other + 1), only_rises=True)
        squares = np.append(gained, of_thin)
        lasts = np.append(steps_of_rise, thin[1] - 1)
        is_thin = squares.max() > gained[best] + STEP_LIMIT * variance
        inside = lasts[squares >= squares.max() - INTERVAL_LIMIT * variance]
        low = float(hinges.months[inside.min()])
        high = float(hinges.months[inside.max()])
        rises.append(
            Rise(
                month=int(hinges.months[lasts[squares.argmax() if is_thin else best]]),
                low=low if inside.min() > steps[0] else np.nan,
                high=high if inside.max() < steps[-1] else np.nan,
            )
        )
    return Rises(rises[0], rises[1], float(np.exp(min(0.5 - statistic / 2, 0))))
