"""Distinguish cutoffs from one change common to all models; date weak cutoffs jointly.

A change of a source's texts may affect language models but not compressors. Such a change looks
like cutoffs of all models. So the curves of the models alone have to show that the changes differ
from model to model. ``apart`` has these curves without their common part, s^2 and L.

The source may change in the same months for all models, with a different size in each. This is one
ramp with a beta for each model. G is the largest reduction of the sum of squares by such a ramp.
The ramp is tried in the months of each ramp found and in their medians; of more than nine ramps, in
the medians alone. G is 0 in panels of more than 30 models. G is also 0 if models in which no change
is found clearly lack the common change. They lack it if their mean change in the median months is,
by 2 errors, less than half of the median change.

The changes are those of models, not of the source, if one of these holds:

- The ramps found (``untreated``), a beta each, save more than G + 3 s^2 for each ramp.
- One beta for all models saves more than 6 L s^2 and more than half of G, and is positive. Its
  column has a ramp of 1 to 24 months in each model, which ends at the stated cutoff. The best
  length counts.
- The ramps of the joint fit, a beta each, save more than G + 16 L s^2 for each ramp.

The last two rules apply to panels of at most nine models. They also apply to panels of up to 30
models with a month that has at most three untreated models. Then the changes come from the joint
fit. If no rule holds, no cutoff is reported. The exception: all models have the same stated cutoff,
and each interval is closed and holds it.

Joint fit. All models may thin out in the same months. Then ``untreated`` has only compressors
there, and finds few changes. But the ramps of the others are known well enough to keep their
months. So lambda is fitted to all months of all models, and to the compressors,

    y_j = x_j' gamma_j + beta_j ramp_j + epsilon_j max(m - b_j, 0) + theta_j lambda + u_j

with the ramps of the other models at the months found so far. The noise u lasts from month to
month: cov(lambda) has C of ``difficulty``, and no curve's noise has less of it. Else noise that
lasts looks like ramps. Each model in turn (of more than nine: all at once) is dated by ``cutoffs``
against lambda without it; its best ramp is the new one. This is repeated until no ramp moves, at
most six times. A model whose stated cutoff is before the months has a ramp only if its change is
found. There are two starts: the ramps of ``untreated``, found or not, and those of the second rule.
The fit with the smaller s^2 is taken.

The joint fit dates the models whose ramps are not found, or found without the first rule. There are
three conditions:

- The second or the third rule holds.
- Something besides the ramps determines lambda: compressors with theta of 0.5 or more, a
  thermometer, or three other models.
- The model's own ramp saves more than 3 L s^2 beyond those of the others.

If the second rule holds, a model's change needs no search over all months. The best of
the ramps that end at its stated cutoff has its own p, with F and v of ``cutoffs``:

    p = exp(-0.4 - F v / (v + 2) / (2.4 L))

The smaller p of both counts. The ramp and its intervals stay those of the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from warehouse.estimates.apart import Apart, OneChange, with_curve
from warehouse.estimates.cutoffs import CutoffFit, fit_cutoff
from warehouse.estimates.difficulty import (
    LEAST_SENSITIVITY,
    DifficultyFit,
    Floats,
    Months,
    Readings,
)
from warehouse.estimates.pairs import MIN_FREE
from warehouse.estimates.untreated import (
    LEAST_OTHERS,
    MOST_OTHERS,
    NO_MONTH,
    UNTREATED,
    DatedCurve,
    Ramp,
    fit_untreated,
    kept_losses,
    spell_of,
    widened,
)

FOUND_LIMIT = 3.0  # in units of s^2, for each ramp found beyond G
JOINT_LIMIT = 16.0  # in units of L s^2, for each ramp beyond G
MOST_TURNS = 6
MOST_JOINT = 30  # models
SPARED_SHARE = 0.5  # of the median change


class Joint(NamedTuple):
    """The ramps of all models, and lambda of all their months."""

    pairs: list[Ramp | None]
    dated: list[DatedCurve]
    is_anchored: bool
    variance: float  # s^2 of lambda's fit


def tell_apart(dated: list[DatedCurve], readings: Readings) -> tuple[list[DatedCurve], list[bool]]:
    """Return the changes, with those of the joint fit, and True for each that may be shared.

    ``dated`` is as in ``find_bends``. If there are fewer than two curves, or their months do not
    overlap, the changes stay as they are. None of them may be shared then.
    """
    is_found = [each.found is not None for each in dated]
    is_shared = [False] * len(dated)
    kept = kept_losses(readings, dated)
    numbers = with_curve(kept.losses)
    apart = Apart.of(kept) if len(numbers) > 1 else None
    if apart is None or apart.num_free - len(numbers) < MIN_FREE:
        return dated, is_shared
    pairs = [None if each.found is None else (each.found.start, each.found.end) for each in dated]
    stated = readings.cutoffs[numbers]
    at_once = _squares_at_once(apart, dated)
    is_kept = any(is_found) and apart.gained_beyond(pairs, at_once) > FOUND_LIMIT * sum(is_found)
    is_kept = is_kept or _is_stated([dated[number].found for number in numbers], stated)
    told: dict[int, DatedCurve] = {}
    if not (is_kept and all(is_found)) and _needs_joint_fit(dated, readings.months):
        told = _told_jointly(apart, dated, kept, at_once)
    changes = list(dated)
    for number, each in told.items():
        if not (is_found[number] and is_kept):
            changes[number] = each
    if not is_kept:
        is_shared = [is_in and number not in told for number, is_in in enumerate(is_found)]
    return changes, is_shared


def _squares_at_once(apart: Apart, dated: list[DatedCurve]) -> float:
    """Return G, the squares that one change of all models at once saves; 0 if some are spared."""
    found = [each.found for each in dated if each.found is not None]
    if not found or len(dated) > MOST_JOINT:
        return 0.0
    spread = [(each.start, each.end) for each in found]
    start, end = np.median(spread, axis=0).astype(int)
    middle = int(start), int(end)
    least = SPARED_SHARE * float(np.median([each.jump for each in found]))
    if _are_spared([each for each in dated if each.found is None], middle, least):
        return 0.0
    candidates = {middle, *spread} if len(found) <= MOST_OTHERS + 1 else {middle}
    return max(apart.at_once(pair) for pair in sorted(candidates))


def _are_spared(others: list[DatedCurve], pair: Ramp, least: float) -> bool:
    """Return True if the mean change of models in these months is surely less than ``least``."""
    weights = 0.0
    changes = 0.0
    for each in others:
        if each.cutoff is not None:
            fits = each.cutoff.fits
            is_pair = (fits.pairs.first == pair[0]) & (fits.pairs.last == pair[1])
            norm = fits.norm[is_pair & ~fits.pairs.is_growth] / each.cutoff.variance
            slope = fits.slope[is_pair & ~fits.pairs.is_growth]
            weights += float(norm.sum())
            changes += float(norm @ slope)
    return weights > 0 and changes / weights + 2 / np.sqrt(weights) < least


def _needs_joint_fit(dated: list[DatedCurve], months: Months) -> bool:
    """Return True for a small panel, or if in some month few models are told to be untreated."""
    if len(dated) <= MOST_OTHERS + 1:
        return True
    if len(dated) > MOST_JOINT:
        return False
    kept = np.zeros(len(months), dtype=int)
    for each in dated:
        start, end = each.spell or NO_MONTH
        kept += ((months <= start) | (months >= end)) & ~np.isnan(each.losses)
    return bool(kept.min() <= LEAST_OTHERS)


def _told_jointly(
    apart: Apart, dated: list[DatedCurve], readings: Readings, at_once: float
) -> dict[int, DatedCurve]:
    """Return the changes that the joint fit may tell, by number of the model."""
    one = apart.one_before(readings.cutoffs)
    joint = _best_joint(dated, readings, one)
    if not joint.is_anchored:
        return {}
    changes = joint.dated
    if one is not None and apart.follows(one, at_once):
        lasting = apart.long_run([one.rows])
        changes = [
            replace(each, cutoff=each.cutoff and each.cutoff.stated_at(cutoff, lasting))
            for each, cutoff in zip(joint.dated, readings.cutoffs, strict=True)
        ]
    else:
        columns = apart.ramps(joint.pairs)
        least = JOINT_LIMIT * apart.long_run(columns) * len(columns)
        if apart.gained_beyond(joint.pairs, at_once) <= least:
            return {}
    is_supported = apart.supported(joint.pairs)
    return {
        number: each
        for number, each in enumerate(changes)
        if each.found is not None and is_supported[number]
    }


def _best_joint(dated: list[DatedCurve], readings: Readings, one: OneChange | None) -> Joint:
    """Return the better of the joint fits from the ramps of ``untreated`` and from stated ones."""
    is_old = readings.cutoffs < readings.months[0]
    first = [_kept(each.cutoff, old) for each, old in zip(dated, is_old, strict=True)]
    joint = fit_jointly(dated, readings, first)
    if one is None:
        return joint
    stated = [
        pair if each is None or old else each
        for each, pair, old in zip(one.ramps(readings.cutoffs), first, is_old, strict=True)
    ]
    other = fit_jointly(dated, readings, stated)
    return min(joint, other, key=lambda each: each.variance)


def fit_jointly(dated: list[DatedCurve], readings: Readings, first: Sequence[Ramp | None]) -> Joint:
    """Fit the ramps of all models in turn, from ``first`` on.

    ``readings`` are without low months.
    """
    is_old = readings.cutoffs < readings.months[0]
    numbers = with_curve(readings.losses)
    is_large = len(numbers) > MOST_OTHERS + 1
    pairs = list(first)
    changes = list(dated)
    everywhere = [UNTREATED] * len(dated)
    fit = fit_untreated(readings, everywhere, pairs)
    for _ in range(MOST_TURNS):
        former = list(pairs)
        is_due = False
        for number in numbers:
            changes[number] = _dated_again(fit, number, dated[number])
            pair = _kept(changes[number].cutoff, is_old[number])
            is_due |= pair != pairs[number]
            pairs[number] = pair
            if is_due and not is_large:
                fit = fit_untreated(readings, everywhere, pairs)
                is_due = False
        if is_due:
            fit = fit_untreated(readings, everywhere, pairs)
        if pairs == former:
            break
    has_thermometer = any(is_old[number] and pairs[number] is None for number in numbers)
    has_compressor = readings.compressors is not None and fit.theta[-1] >= LEAST_SENSITIVITY
    is_anchored = has_thermometer or has_compressor or len(numbers) > LEAST_OTHERS
    wide = [widened(fit, number, each) for number, each in enumerate(changes)]
    return Joint(pairs, wide, bool(is_anchored), fit.variance)


def _dated_again(fit: DifficultyFit, number: int, former: DatedCurve) -> DatedCurve:
    """Return a model's change against lambda without the model."""
    difficulty = fit.without(number)
    found = fit_cutoff(former.losses, fit.months, difficulty)
    changed = replace(former, others=fit.others(number), difficulty=difficulty, cutoff=found)
    return replace(changed, spell=spell_of(changed.found, former.spell))


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
