"""Test whether the other models of a panel change in the months of one model's change.

A change of the source may have a different size in each model. Then some models rise relative to
the others. The change of each single model may be within chance (``bends``). So all other models
are tested together. For a change of model i with ramp_i, the curves without their common part
(``apart``) are fitted twice. lambda^ and theta are fitted beside the changes found, because large
changes would distort theta.

- The first fit has a ramp for each model: the change found in the model. If no change is found in
  another model, or if it equals ramp_i, the ramp ends at the stated cutoff. These ramps have one
  common length, the best with one size in all models.
- The second fit also has ramp_i in every other model, with a separate size for each model.

Ramps of all models with sizes in proportion to theta are a part of lambda. So only what the sizes
have beyond a common c theta_j can be estimated; c is the one that leaves least in the other models.
The change of model i is its size without c theta_i.

T is the sum of squares of the first fit minus that of the second, in units of s^2. k is one less
than the number of other models. If the source does not change, T / L has about a chi-squared
distribution with k degrees of freedom. So the others change in the same months on two conditions:

- T / L > k + 3 sqrt(2 k).
- S sqrt(1 - k L / T) is more than a quarter of the change of model i. S is the root of the mean
  square, over k, of what the sizes of the others have beyond c theta_j. A smaller one may come from
  ramps whose months are not exact.

Only changes within three months are tested, in panels of five to 30 models. The months of a long
ramp are less exact, so the others seem to change in them, too. In smaller panels, k is too small.
"""

from __future__ import annotations

import numpy as np

from warehouse.estimates.apart import Apart, with_curve
from warehouse.estimates.difficulty import Readings
from warehouse.estimates.pairs import MIN_FREE
from warehouse.estimates.staggered import MOST_JOINT
from warehouse.estimates.untreated import LEAST_OTHERS, DatedCurve, Ramp, kept_losses

LIMIT = 3.0  # standard deviations of T / L
LEAST_SHARE = 0.25  # of the change
LONGEST = 3  # months of a change


def change_together(dated: list[DatedCurve], readings: Readings) -> list[bool]:
    """Return True for each change in whose months the other models change, too.

    ``dated`` is as in ``find_bends``.
    """
    together = [False] * len(dated)
    kept = kept_losses(readings, dated)
    numbers = with_curve(kept.losses)
    is_asked = LEAST_OTHERS + 1 < len(numbers) <= MOST_JOINT
    if not is_asked or not any(each.found for each in dated):
        return together
    plain = Apart.of(kept)
    if plain.num_free - 2 * len(numbers) < MIN_FREE:
        return together
    one = plain.one_before(readings.cutoffs)
    stated = [None] * len(dated) if one is None else one.ramps(readings.cutoffs)
    changes = [None if each.found is None else (each.found.start, each.found.end) for each in dated]
    apart = Apart.of(kept, changes)
    for number, change in enumerate(changes):
        if change is not None and number in numbers and change[1] - change[0] <= LONGEST:
            own = [
                ramp if each is None or each == change else each
                for each, ramp in zip(changes, stated, strict=True)
            ]
            own[number] = change
            others = [change if place in numbers else None for place in range(len(dated))]
            others[number] = None
            together[number] = _are_told(apart, own, others, number)
    return together


def _are_told(apart: Apart, own: list[Ramp | None], others: list[Ramp | None], number: int) -> bool:
    """Return True if the ramps ``others`` are told beside those of ``own``."""
    columns = apart.ramps(own)
    further = apart.ramps(others)
    first = apart.explain(columns)
    second = apart.explain(columns + further)
    num_free = max(apart.num_free - len(columns) - len(further), 1)
    gained = (first.squares - second.squares) / second.squares * num_free
    gained /= apart.long_run(columns)
    expected = len(further) - 1
    if gained <= expected + LIMIT * np.sqrt(2 * expected):
        return False
    is_other = np.array([pair is not None for pair in others])
    theta = apart.theta[is_other]
    sizes = second.sizes[len(columns) :]
    common = sizes @ theta / (theta @ theta)
    beyond = sizes - common * theta
    place = sum(pair is not None for pair in own[:number])
    change = second.sizes[place] - common * apart.theta[number]
    typical = np.sqrt(beyond @ beyond / expected * (1 - expected / gained))
    return bool(typical > LEAST_SHARE * abs(change))
