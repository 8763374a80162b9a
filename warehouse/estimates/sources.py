"""Test whether the change in a mean over sources comes from a single source.

A change of a single source, or of a model on a single source, moves the mean over sources, too. So
each source s is left out in turn. theta, w and V stay those of the mean over all sources. The other
S - 1 sources give

    y_s = (S y - y of source s) / (S - 1)        lambda_s = M+ sum_i w_i theta_i R_i y_is
    y_s = theta lambda_s + N gamma + beta_s ramp + u

with the ramp found in y (``cutoffs``, ``untreated``). The change rests on source s if beta_s is at
most 2 of its errors, and 2 of its errors less than beta. Then the change is no cutoff over all
sources. With equal changes in two sources, this happens in 0.2 % of simulated data sets; with more
sources, it is rarer.

The change of one source hides changes of all sources. So y_s, without that source, is dated like a
mean (``Rest``), with the panels without each other model. The change in y_s may come from another
source. So with three sources or more, each other source is left out of y_s, too. If the change
comes from one source, nothing is reported.

With three sources or more, and at most 8 other models, the interval also holds the intervals of
each y_s. It also holds the intervals of the panels without each other model (``untreated``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warehouse.estimates.cutoffs import CutoffFit, fit_cutoff
from warehouse.estimates.difficulty import Difficulty, DifficultyFit, Floats, Months
from warehouse.estimates.pairs import ramp
from warehouse.estimates.regression import Regression
from warehouse.estimates.untreated import MOST_OTHERS, DatedCurve, widened

MIN_SOURCES = 3  # of a wider interval
NUM_ERRORS = 2.0

Part = tuple[Floats, Difficulty]  # a model's y_s (months,), and lambda_s without the model


@dataclass(frozen=True)
class Rest:
    """A source that alone shows a model's change, and the change of the other sources, if any."""

    source: str
    cutoff: CutoffFit | None


def leave_out_sources(
    rests: dict[str, Floats], fit: DifficultyFit, dated: list[DatedCurve]
) -> tuple[list[DatedCurve], list[Rest | None]]:
    """Return the changes with wider intervals, and what each that rests on one source leaves.

    ``rests`` has the rows of ``fit`` in the means without each source. ``fit`` has lambda of the
    mean over all sources, and ``dated`` the changes in it.
    """
    curves = np.array(list(rests.values()))  # (sources, rows, months)
    fits = [_of_curves(fit, rows) for rows in curves]
    changes = list(dated)
    lefts: list[Rest | None] = [None] * len(dated)
    for number, each in enumerate(dated):
        whole = fit.without(number)
        found = each.found
        if found is None or whole is None:
            continue
        own = np.where(np.isnan(each.losses), np.nan, curves[:, number])
        parts = _parts(fits, number, own)
        source = _rests_on(each.losses, fit.months, whole, found, parts)
        if source is not None:
            rest = replace(each, losses=own[source])
            others = [_of_curves(fit, rows) for rows in _without_two(curves, source)]
            parts = _parts(others, number, _without_two(own, source))
            lefts[number] = Rest(list(rests)[source], _date_rest(fits[source], number, rest, parts))
        elif len(parts) >= MIN_SOURCES and len(each.others) <= MOST_OTHERS:
            fits_of_parts = [fit_cutoff(curve, fit.months, rest) for curve, rest in parts]
            changes[number] = each.widened(fits_of_parts)
    return changes, lefts


def _of_curves(fit: DifficultyFit, rows: Floats) -> DifficultyFit:
    """Return the fit of other curves (rows, months), at unchanged theta, w and V."""
    return replace(fit, remainders=(fit.annihilators @ np.nan_to_num(rows)[:, :, None])[:, :, 0])


def _parts(fits: list[DifficultyFit], number: int, curves: Floats) -> list[Part]:
    """Return each of a model's curves with lambda of its fit, without the model."""
    difficulties = [fit.without(number) for fit in fits]
    return [
        (curve, difficulty)
        for curve, difficulty in zip(curves, difficulties, strict=True)
        if difficulty is not None
    ]


def _without_two(rests: Floats, source: int) -> Floats:
    """Return the means without a source and each other one, from those without one source."""
    num_sources = len(rests)
    others = np.delete(rests, source, axis=0)
    if num_sources == 2:
        return others[:0]
    both = (num_sources - 1) * (others + rests[source]) - num_sources * rests.mean(axis=0)
    return np.asarray(both / (num_sources - 2))


def _date_rest(
    fit: DifficultyFit, number: int, rest: DatedCurve, parts: list[Part]
) -> CutoffFit | None:
    """Return the change of a model without a source; None if it rests on one source, too.

    ``fit`` is without the source, and ``parts`` without each other one, too.
    """
    difficulty = fit.without(number)
    rest = replace(rest, cutoff=fit_cutoff(rest.losses, fit.months, difficulty))
    found = rest.found
    if found is None or difficulty is None:
        return None
    if _rests_on(rest.losses, fit.months, difficulty, found, parts) is not None:
        return None
    return widened(fit, number, rest).cutoff


def _rests_on(
    losses: Floats, months: Months, whole: Difficulty, found: CutoffFit, parts: list[Part]
) -> int | None:
    """Return the number of the source that a change rests on; None if there is none."""
    curve = Regression.of(losses, months, whole)
    height = ramp(curve.months, found.start, found.end)
    fit = curve.settled(height)
    beta, _ = fit.effect(height)
    for number, (rest, difficulty) in enumerate(parts):
        own = Regression.of(rest, months, difficulty).weighted(fit.covariance)
        slope, error = own.effect(height)
        if slope <= NUM_ERRORS * error and slope + NUM_ERRORS * error < beta:
            return number
    return None
